#!/bin/sh
# tests/house.sh - what holds for the house as a whole: rooms, symbols, headers, sizes.
#
# usage: house.sh SOURCE_FOLDER LIBRARY.so      prints what it counted; exits 1 at a broken rule.
set -eu
source=$1 library=$2
cd "$source"
bad=0
fail() { echo "house: $*" >&2; bad=1; }

# A room includes only the rooms above it.
upward() { grep -nE "#include +\"(\.\./)*($2)/" "$1"/*.c "$1"/*.h "$1"/*/*.[ch] 2>/dev/null || true; }
for pair in 'core:ops|nn|models|tools' 'ops:nn|models|tools' 'nn:models|tools' 'models:tools'; do
    found=$(upward "${pair%%:*}" "${pair#*:}")
    [ -z "$found" ] || fail "${pair%%:*} includes from a room below it: $found"
done

# The library returns errors: it never ends the program, and never prints.
found=$(grep -nE '(^|[^a-z_])(abort|exit|_exit|quick_exit|perror|printf|puts|putchar|vprintf) *\(' \
    core/*.c ops/*.c ops/kernels/*.[chi]* nn/*.c models/*.c | grep -vE ':[0-9]+: *(\*|/\*|//)' || true)
[ -z "$found" ] || fail "the library ends the program or prints: $found"
found=$(grep -nwE 'stdout|stderr' core/*.c ops/*.c ops/kernels/*.[chi]* nn/*.c models/*.c |
    grep -vE ':[0-9]+: *(\*|/\*|//)' || true)
[ -z "$found" ] || fail "the library knows where to print: $found"

# Undefined symbols: the C library, its maths and threads, and the compiler's runtime. A sanitizer adds its own.
known='GLIBC|GCC_|_ITM_|__gmon_start__|__cxa_finalize|__asan|__ubsan|__tsan|__lsan|__sanitizer|__odr_asan'
found=$(nm -D --undefined-only "$library" | awk '{print $NF}' | grep -vE "@($known)|^($known)" || true)
[ -z "$found" ] || fail "undefined symbols from elsewhere: $found"
exported=$(nm -D --defined-only "$library" | awk '$2 ~ /[TDRBVW]/ {print $3}')
found=$(echo "$exported" | grep -vE '^wf_|^_init$|^_fini$|^(__start_|__stop_|__asan|__odr_asan|__tsan|__ubsan)' || true)
[ -z "$found" ] || fail "exported without the prefix wf_: $found"

# Public headers compile alone, as C17 and as C++17.
headers='core/graph.h core/op.h core/file.h ops/ops.h nn/nn.h models/transformer.h models/text.h'
strict='-I. -Wall -Wextra -Wpedantic -Werror -fsyntax-only'
for header in $headers; do
    echo "#include \"$header\"" | ${CC:-cc} -std=c17 -Wshadow -x c $strict - || fail "$header does not compile alone as C17"
    if command -v "${CXX:-c++}" > /dev/null; then
        echo "#include \"$header\"" | ${CXX:-c++} -std=c++17 -x c++ $strict - ||
            fail "$header does not compile alone as C++17"
    fi
done

# core stays small. Lines of code: without blank lines and comments.
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
for room in core ops nn models tools; do
    files=$(find $room -name '*.[ch]' -o -name '*.inc' | sort)
    echo "lines of code in $room: $(code_lines $files) ($(cat $files | wc -l) with blank lines and comments)"
done
[ "$(code_lines core/*.[ch])" -le 4000 ] || fail "core is more than 4,000 lines of code"
echo "exported symbols: $(echo "$exported" | grep -c '^wf_')"
[ $bad = 0 ] && echo "house: all rules hold"
exit $bad
