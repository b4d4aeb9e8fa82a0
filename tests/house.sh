#!/bin/sh
# tests/house.sh - rules for the project as a whole: includes between folders, symbols, headers, sizes.
#
# usage: house.sh SOURCE_FOLDER LIBRARY.so LIBRARY.a      prints what it counted; exits 1 at a broken rule.
set -eu
whole() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
source=$1 shared=$(whole "$2") archive=$(whole "$3")
cd "$source"
bad=0
fail() { echo "house: $*" >&2; bad=1; }
for file in "$shared" "$archive"; do [ -e "$file" ] || fail "there is no $file"; done

# A folder includes only the folders above it in this list: "core/..." from anywhere, "../core/..." in a public header.
library=$(find core ops nn models -name '*.[ch]' -o -name '*.inc' | sort)
programs=$(find tools -name '*.[ch]' ! -path 'tools/examples/*' | sort)
sources=$(echo "$library" | grep '\.c$')
comment=':[0-9]+: *(\*|/\*|//)'
for pair in 'core:ops|nn|models|tools' 'ops:nn|models|tools' 'nn:models|tools' 'models:tools'; do
    found=$(grep -nE "#include +\"(\.\./)*(${pair#*:})/" $(echo "$library" | grep "^${pair%%:*}/") || true)
    [ -z "$found" ] || fail "${pair%%:*} includes from a folder below it: $found"
done

# The library returns errors: it never ends the program, and never prints. Text for emitted programs may.
runs=$(echo "$library" | grep -vE '^models/emit/(plain|program)/')
found=$(grep -nE '(^|[^a-z_])(abort|exit|_exit|quick_exit|perror|printf|puts|putchar|vprintf) *\(' $runs |
    grep -vE "$comment" || true)
[ -z "$found" ] || fail "the library ends the program or prints: $found"
found=$(grep -nwE 'stdout|stderr' $runs | grep -vE "$comment" || true)
[ -z "$found" ] || fail "the library knows where to print: $found"

# A stream in memory loses characters when memory is short, and reports that only if it is asked.
found=$(grep -nE '(open_memstream|fmemopen) *\(' $sources || true)
[ -z "$found" ] || fail "a stream in memory: $found"

# Numbers in files do not depend on the locale: core/base/number.c reads and writes them. Numbers
# in messages may. The programs print with printf, because no program sets a locale.
found=$(grep -nE '\<(strto(d|f|ld)|atof|setlocale|uselocale|newlocale) *\(' $library $programs |
    grep -v '^core/base/number\.c:' || true)
[ -z "$found" ] || fail "a number read by the locale, or the locale set: $found"
found=$(grep -nE 'printf *\(.*%[-+ #0-9.*]*l?[aefgAEFG]' $sources | grep -vE '^core/base/number\.c:|^models/emit/(plain|program)/|message' || true)
[ -z "$found" ] || fail "a real number written by the locale: $found"

# Only a few files of the programs create files or write to stderr: the arguments of only() name
# them. output.c replaces a file as a whole, and terminal.c replaces control characters in
# messages.
only() { # PATTERN SENTENCE FILES...: nowhere but in these
    pattern=$1 sentence=$2
    shift 2
    found=$(grep -nE "$pattern" $programs | grep -vE "$comment" |
        grep -vE "^tools/[a-z/]*/($(echo "$*" | tr ' ' '|'))\.c:" || true)
    [ -z "$found" ] || fail "$sentence: $found"
}
only 'open_memstream|"/dev/null"' 'a memory stream or a device that may not be there' none
only 'O_CREAT|fopen\([^)]*"[wa]|rename\(|mkstemp' 'a file is made elsewhere than in output.c' \
    output store bench_measure
only '(fprintf|fputs|fputc|fwrite|puts)\(.*stderr|perror|vfprintf' 'stderr is written to elsewhere' \
    terminal options report progress generate_output convert embed
only '\<open\([^)]*O_RDONLY|inflate' 'text is opened elsewhere than in text_input.c' text_input output
# Every program begins with terminal_open, and checks which files it uses. Excepted are the main
# into which a learner's code is linked, and that of the manual's examples, which have neither
# options nor files.
for main in $(grep -l '^int main' $programs | grep -vE '^tools/(learn/lesson_main|docs/describe_ops)\.c$'); do
    sed -n '/^int main/,/^}/p' "$main" | grep -m 1 '(.*);$' | grep -q terminal_open ||
        fail "$main does not begin with terminal_open"
    sed -n '/^int main/,/^}/p' "$main" | grep -q 'check_uses\|train_main\|open_job\|convert_file' ||
        fail "$main does not check which files it uses"
done

# One mechanism for each thing, in one file. Kernels are excepted, because they work on vectors.
once() { # FILES PATTERN SENTENCE: nowhere but in these files
    found=$(grep -nE "$2" $library $programs | grep -vE "$comment" | grep -vE "^($1):" || true)
    [ -z "$found" ] || fail "$3: $found"
}
once 'core/base/utf8\.h|core/base/utf8_long\.c' '0x[cC]0\) *[!=]=|0x80 \| \(|0x[cC]0 \||& 0x3[fF]\>' 'UTF-8 is read or written elsewhere than in utf8.h and utf8_long.c'
once 'core/file/json\.c' '\\\\u%' 'a string of JSON is escaped elsewhere than in json.c'
# Emitted files have these functions in plain C.
once 'core/base/random\.h|tools/sources/plain_tasks\.c' '1099511628211|0x0*100000001[bB]3' 'FNV elsewhere than in random.h'
once 'core/base/random\.h|ops/emit/plain_rows\.c' '0x9[eE]3779[bB]97[fF]4[aA]7[cC]15' 'a hash of words is mixed elsewhere than in random.h'
once 'core/base/bf16\.h|ops/kernels/panels\.inc' '0x7[fF]{3} \+' 'bf16 is rounded elsewhere than in bf16.h'
once 'core/base/clock\.h' 'CLOCK_MONOTONIC' 'the time is read elsewhere than in clock.h'
once 'core/op\.h' '\<MESSAGE = [0-9]' 'a size of messages beside WF_MESSAGE'

# What a build leaves behind is not kept.
if [ -d .git ] || [ -f .git ]; then
    found=$(git ls-files 2> /dev/null | grep -E '\.(log|pid|o|so|a|orig|rej)$' || true)
    [ -z "$found" ] || fail "a file that a build left is in the repository: $found"
fi

# A file's name is used once.
found=$(find core ops nn models tools tests -name '*.[ch]' | sed 's|.*/||' | sort | uniq -d)
[ -z "$found" ] || fail "two files have one name: $found"

# Anyone must be able to compile the examples, so they include nothing of the source tree but the installed headers.
found=$(grep -n '#include "' tools/examples/*.[ch]* | grep -vE '"(digits|sentences)\.h"' || true)
[ -z "$found" ] || fail "an example includes more than is installed: $found"

# A public header must be short enough to be read as a whole: it has at most two hundred lines.
for header in $(sed -n 's/^#include "\(.*\)"$/\1/p' weft.h); do
    [ "$(wc -l < "$header")" -le 200 ] || fail "$header has more than 200 lines"
done

# The programs include installed headers and these private ones. *_internal.h is for other rooms of the library and for the programs.
private='(core|ops|nn|models)/[a-z_]*_internal\.h|core/base/(caches|clock|memory|random|utf8)\.h|core/file/(crc32|json|lfs|loader)\.h|models/choices\.h|ops/base/scalars\.h'
public=$(sed -n 's/^#include "\(.*\)"$/\1/p' weft.h | tr '\n' '|')
found=$(grep -nE '#include "(core|ops|nn|models)/' $programs | grep -vE "\"($public$private)\"" || true)
[ -z "$found" ] || fail "a program includes a private header of the library: $found"

# Undefined symbols may come from the C library, its maths and threads, and the compiler's runtime. A sanitizer adds its own.
known='GLIBC|GCC_|_ITM_|__gmon_start__|__cxa_finalize|__asan|__ubsan|__tsan|__lsan|__sanitizer|__odr_asan'
found=$(nm -D --undefined-only "$shared" | awk '{print $NF}' | grep -vE "@($known)|^($known)" || true)
[ -z "$found" ] || fail "undefined symbols from elsewhere: $found"
exported=$(nm -D --defined-only "$shared" | awk '$2 ~ /[TDRBVW]/ {print $3}')
found=$(echo "$exported" | grep -vE '^wf_|^_init$|^_fini$|^(__start_|__stop_|__asan|__odr_asan|__tsan|__ubsan)' || true)
[ -z "$found" ] || fail "exported without the prefix wf_: $found"
# An archive hides no symbols: a function graph_add of a program must not clash with one of the
# library.
found=$(nm --defined-only --extern-only "$archive" | awk 'NF == 3 { print $3 }' | grep -vE '^wf_|^__(asan|odr_asan|tsan|ubsan)' || true)
[ -z "$found" ] || fail "in the archive without the prefix wf_: $found"

# weft.h includes every header that declares something public, so that the header is installed.
# Each header compiles alone, as C17 and as C++17; tests/install.sh tries other languages.
headers=$(sed -n 's/^#include "\(.*\)"$/\1/p' weft.h)
for header in $(grep -l 'WF_API' $(echo "$library" | grep '\.h$')); do
    echo "$headers" | grep -qx "$header" || fail "weft.h does not include $header, which declares something public"
done
strict='-I. -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only'
for header in weft.h $headers; do
    printf '#include "%s"\ntypedef int not_empty;\n' "$header" | ${CC:-cc} -std=c17 -x c $strict - || fail "$header does not compile alone as C17"
    if command -v "${CXX:-c++}" > /dev/null; then
        echo "#include \"$header\"" | ${CXX:-c++} -std=c++17 -x c++ $strict - ||
            fail "$header does not compile alone as C++17"
    fi
done

# The headers of ops: a contents page, and a header for each section.
ops=$(echo ops/ops.h; sed -n 's/^#include "\([a-z_]*\.h\)"$/ops\/\1/p' ops/ops.h)

# test_extremes.c calls every public function of core, ops and nn with extreme arguments, except
# those that an op's own functions call.
inside='wf_(fail|show|set_shape|same_shape|broadcast_shapes|view_[a-z]+)'
tried=$(cat tests/core/record/test_extremes.c tests/core/record/extremes_*.inc
    sed -nE 's/^(UNARY|BINARY|COMPARE|STEP)\(([a-z_0-9]+),.*/wf_\2/p' ops/elementwise/*.inc)
for function in $(cat core/graph.h core/tensor.h core/run.h core/lend.h core/op.h core/picture.h $ops nn/*.h | tr '\n' ' ' | grep -oE 'WF_API [^;]*;' |
    sed -nE 's/^[^(]*[ *](wf_[a-z0-9_]+)\(.*/\1/p' | grep -vxE "$inside"); do
    echo "$tried" | grep -qE "(^|[^a-z_])$function([^a-z_0-9]|\$)" || fail "tests/core/record/extremes_*.inc has no row for $function"
done

# test_constructors.c gives each function that records a node a spoilt tensor in place of each
# operand. Functions of layers are left out, because their errors begin with the layer's path.
constructors=$(cat tests/core/record/constructors.inc
    sed -nE 's/^(UNARY|BINARY|COMPARE|STEP)\(([a-z_0-9]+),.*/ROW(\2, /p' ops/elementwise/*.inc)
for function in $(cat $ops nn/loss.h nn/attention.h | tr '\n' ' ' | grep -oE 'WF_API [^;]*;' |
    grep -E '(wf_tensor \*|wf_sorted |_result )wf_[a-z0-9_]+\([^)]*wf_tensor \*|void wf_[a-z]+\(wf_tensor \*' |
    grep -v 'const struct wf_' | sed -nE 's/^[^(]*[ *]wf_([a-z0-9_]+)\(.*/\1/p'); do
    echo "$constructors" | grep -q "^ROW($function, " || fail "tests/core/record/constructors.inc has no row for $function"
done

# test_axes.c gives each function that takes an axis a set of axes, and each that takes a set an
# axis.
for function in $(cat $ops nn/*.h | tr '\n' ' ' | grep -oE 'WF_API [^;]*;' |
    grep -E '(uint32_t axes|int (axis|a|b|from|to)\>|int \*order)' | sed -nE 's/^[^(]*[ *](wf_[a-z0-9_]+)\(.*/\1/p'); do
    grep -qE "(^|[^a-z_])$function\(" tests/ops/test_axes.c || fail "tests/ops/test_axes.c has no row for $function"
done

# The README is read in three minutes, and every link between pages leads somewhere.
[ "$(wc -c < README.md)" -le 6144 ] || fail "README.md has more than 6 KB: move what is special to a page of its own"
for page in $(find . -name '*.md' ! -path './build*' ! -path './.git/*' ! -path './quickstart/*'); do
    for link in $(grep -oE '\]\([^)#: ]+' "$page" | sed 's/^](//'); do
        [ -e "$(dirname "$page")/$link" ] || fail "$page links to $link, which is not there"
    done
done

# Suites that scripts name exist, and tests/suites.inc names none twice.
twice=$(sed -nE 's/^(SUITE|ROWS)\((.*)\)$/\2/p' tests/suites.inc | sort | uniq -d)
[ -z "$twice" ] || fail "tests/suites.inc names a suite twice: $twice"
for line in $(grep -hE '^(SUITE|ROWS)' tests/few/*_suites.inc); do
    grep -qxF "$line" tests/suites.inc || fail "tests/few has the suite $line, which tests/suites.inc has not"
done
for suite in $(sed -nE "s/^(emulated|without_files|slow|long)='(.*)'/\2/p; s/^ *suites ([a-z_ ]+)$/\1/p" tests/systems.sh); do
    grep -qxE "(SUITE|ROWS)\($suite\)" tests/suites.inc || fail "a script runs the suite $suite, which is not there"
done

# words.py finds comments that are hard to understand, and statements within which a debugger
# cannot stop.
if command -v python3 > /dev/null; then
    python3 tests/words.py . || fail "comments or statements are written as tests/words.py says they are not"
fi

# core stays small. Blank lines and comments do not count as lines of code.
code_lines() {
    cat "$@" | awk '
        { line = $0; code = "" }
        { while (length(line)) {
            if (inside) { i = index(line, "*/"); if (!i) break; line = substr(line, i + 2); inside = 0; continue }
            i = index(line, "/*"); if (!i) { code = code line; break }
            code = code substr(line, 1, i - 1); line = substr(line, i + 2); inside = 1 } }
        { sub(/\/\/.*/, "", code); if (code ~ /[^ \t]/) n++ }
        END { print n + 0 }'
}
for folder in core ops nn models tools; do
    files=$(find $folder -name '*.[ch]' -o -name '*.inc' | sort)
    echo "lines of code in $folder: $(code_lines $files) ($(cat $files | wc -l) with blank lines and comments)"
done
# The engine itself, without files, text and threads: what must be read to know how a graph is recorded and run.
engine=$(find core/record core/plan -name '*.[ch]' ! -name print.c ! -name 'pool.[ch]')
echo "lines of code that record and run: $(code_lines $engine)"
[ "$(code_lines $engine)" -le 3305 ] || fail "recording and running take more than 3,305 lines of code"
echo "exported symbols: $(echo "$exported" | grep -c '^wf_')"
# clang-format leaves comments as they are. Lines with more than ASCII may have more bytes than columns.
found=$(awk 'length > 100 && !/[^ -~]/ { print FILENAME ":" FNR }' weft.h $(find core ops nn models tools -name '*.[ch]'))
[ -z "$found" ] || fail "lines of more than 100 columns: $found"
# Code is laid out by .clang-format, as version 14 reads it: others differ in small things.
if clang-format --version 2> /dev/null | grep -q 'version 14'; then
    found=$(find weft.h core ops nn models tools tests -name '*.[ch]' ! -path 'ops/kernels/*' \
        -exec clang-format --dry-run -Werror {} + 2>&1 | sed -n 's/^\([^:]*\):.*error.*/\1/p' | sort -u)
    [ -z "$found" ] || fail "not as .clang-format wants it (clang-format -i, version 14): $found"
fi

[ $bad = 0 ] && echo "house: all rules hold"
exit $bad
