#!/bin/sh
# tests/systems.sh - weft built and tested with other compilers, levels, C libraries and processors: a table.
#
# usage: systems.sh [--arithmetic] [WAY...]    all of them (hours on two cores), or those named: systems.sh clang-O2
#
#   gcc-O0 gcc-O1 gcc-O2 gcc-O3 gcc-Os, clang-O0 ...         this machine's compilers; the kernels are at -O3 in all but
#                                                            those that end with -all: clang-O1-all; also clang-19-O3 ...
#   gcc-fortify2 gcc-fortify3 clang-fortify2 clang-fortify3  -O2 with _FORTIFY_SOURCE
#   gcc-c2x clang-c2x                                        the next C
#   musl                                                     static, with musl-gcc
#   i386 aarch64 s390x                                       32 bits; NEON; big endian: static, the last two in qemu-user
#   neon                                                     a part of aarch64, in about a minute: what `meson test` runs
#   valgrind analyze                                         memcheck on the baseline kernels; clang's analyzer and cppcheck
#
# Everything compiles with -Wall -Wextra -Wpedantic -Wshadow -Werror. Besides the suites, each way works with every set of
# kernels that runs there, on one thread and on two: it trains the copy task for 200 steps and a language model for 20, and
# decodes 200 lines greedily, with a beam of 4 and by drawing, with weights in f32, bf16 and int8. All eleven files must be
# those of gcc-O2, whose SHA-256 are printed at the end: the same bits on every machine. `bench signature` prints the
# README's number. And it builds and runs the README's program. --arithmetic: no suites but those that compare bits.
#
# Builds are kept in build-systems/ (WEFT_SYSTEMS: another folder), logs too: build-systems/WAY.log. Other machines' suites
# run with systems/check.h. On Debian all of it needs: gcc clang musl-tools gcc-i686-linux-gnu gcc-aarch64-linux-gnu
# gcc-s390x-linux-gnu qemu-user valgrind clang-tools cppcheck. What is missing is said. Exits with 1 if a way failed, with 77
# if none could run.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=${WEFT_SYSTEMS:-$root/build-systems}
mkdir -p "$out"
out=$(cd "$out" && pwd)
export CK_DEFAULT_TIMEOUT="${CK_DEFAULT_TIMEOUT:-3600}"
strict='-Wall -Wextra -Wpedantic -Wshadow -Werror'

all_ways='gcc-O0 gcc-O1 gcc-O2 gcc-O3 gcc-Os clang-O0 clang-O1 clang-O2 clang-O3 clang-Os gcc-fortify2 gcc-fortify3
    clang-fortify2 clang-fortify3 gcc-c2x clang-c2x gcc-O1-all clang-O1-all musl i386 aarch64 s390x valgrind analyze'

# Suites that are left out: with any compiler those that train for long or measure time ($slow);
# with all but -O2 also those that run the programs hundreds of times, and the kernels, which are
# always compiled at -O3 ($long).
slow='draws learning bench'
long="$slow train_text generate convert model_faults steps kernels"
every=$(sed -nE 's/^(SUITE|ROWS)\((.*)\)$/\2/p' "$root/tests/suites.inc")
without() { # without LIST: the suites that are not in it
    for suite in $every; do
        case " $* " in *" $suite "*) ;; *) echo "$suite" ;; esac
    done
}
# An emulator is slow, so it runs the suites that say the most; where it cannot use files, only
# those of them that need none.
emulated='init pool file load graph errors plan rewrite run state misuse ops extents panels gradients nn optim torch text print'
without_files='init pool graph errors plan rewrite run state misuse extents panels gradients nn optim print'
refusal='neither reads nor writes files here'

. "$root/tests/systems/ways.sh"

# ---- building --------------------------------------------------------------------------------------

# build OPTIONS...: into $folder, warnings are errors
build() {
    if [ -f "$folder/build.ninja" ]; then
        meson configure "$folder" "$@"
    else
        rm -rf "$folder"
        # shellcheck disable=SC2086 # a file or nothing
        meson setup "$folder" "$root" ${cross:+--cross-file "$cross"} -Dtests=enabled -Dbuildtype=plain \
            -Dmpi=disabled -Dzlib=disabled -Dwerror="${werror:-true}" "$@"
    fi
    # shellcheck disable=SC2086 # words
    ninja -C "$folder" "tests/$test_program" ${programs-tools/train tools/generate tools/inspect tools/graph \
        tools/convert tools/bench tests/bench}
}

# native CC OPTIONS...
native() {
    need "$1" meson ninja || return 77
    if has ccache; then export CC="ccache $1"; else export CC="$1"; fi
    shift
    build "$@"
}

# foreign COMPILER FAMILY ENDIAN [EMULATOR]: a static build for another machine
foreign() {
    cross=$out/$way.ini wrapper=${4:-}
    need "$1" ${wrapper:+"$wrapper"} meson ninja || return 77
    CC=$1 ar=ar
    if has "${CC%gcc}ar"; then ar=${CC%gcc}ar; fi
    cat > "$cross" << END
[binaries]
c = [$(has ccache && echo "'ccache', ")'$1']
ar = '$ar'
$([ -z "$wrapper" ] || echo "exe_wrapper = '$wrapper'")
[built-in options]
c_link_args = ['-static']
[properties]
needs_exe_wrapper = $([ -n "$wrapper" ] && echo true || echo false)
[host_machine]
system = 'linux'
cpu_family = '$2'
cpu = '$2'
endian = '$3'
END
    static=-static
    # musl does not contain the headers of the kernel, so those of the system are searched last.
    headers=''
    [ "$CC" != musl-gcc ] || headers='-idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu'
    build -Doptimization="${level:-2}" "-Dc_args=$headers"
}

# ---- running ---------------------------------------------------------------------------------------

# wrap_programs: sets $tools to a folder in which the programs run by their names, through the
# emulator if there is one.
wrap_programs() {
    tools=$folder/tools
    [ -n "$wrapper" ] || return 0
    tools=$folder/wrapped/tools
    mkdir -p "$tools" "$folder/wrapped/tests"
    for program in tools/train tools/generate tools/graph tools/inspect tools/convert tools/bench tests/bench; do
        printf '#!/bin/sh\nexec %s %s "$@"\n' "$wrapper" "$folder/$program" > "$folder/wrapped/$program"
        chmod +x "$folder/wrapped/$program"
    done
}

suites() {
    # One process for all tests: what the emulator has translated stays translated.
    [ -z "$wrapper" ] || export CK_FORK=no
    if [ -n "$arithmetic" ]; then ran="$ran, suites that compare bits"; else ran="$ran, $# suites"; fi
    # shellcheck disable=SC2086 # an emulator or nothing
    WEFT_TOOLS=$tools ${WATCH:-} $wrapper "$folder/tests/$test_program" "$@" > "$out/$way.suites" 2>&1 && status=0 || status=$?
    cat "$out/$way.suites"
    counted=$(sed -n 's/.*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 \2 \3/p' "$out/$way.suites" |
        awk -v had="${counted:-0}" '{ split(had, h, " "); print h[1] + $1 - $2 - $3 " of " h[3] + $1 }')
    return $status
}

# work KERNELS THREADS: writes eleven files to $folder/work, and their SHA-256 to $folder/sums
work() {
    files=$folder/work small='--d-model 32 --heads 2 --layers 1 --d-ff 64 --quiet --overwrite'
    mkdir -p "$files"
    awk 'BEGIN { for (i = 0; i < 200; i++) { for (k = 0; k < 3 + i % 8; k++) printf "%d ", (i * 7 + k * k) % 10; print "" } }' \
        > "$files/lines"
    # shellcheck disable=SC2086 # words
    WEFT_ISA=$1 "$tools/train" --task copy --seed 1 --max-steps 200 $small --batch-size 16 --valid-size 20 --threads "$2" \
        -o "$files/copy.safetensors" &&
        (cd "$root" && WEFT_ISA=$1 "$tools/train" --task lm --text LICENSE --tokenizer byte --max-steps 20 $small \
            --max-tokens 1024 --threads "$2" -o "$files/lm.safetensors") || return 1
    for weights in f32 bf16 int8; do
        for search in '--beam 1' '--beam 4' '--sample --seed 3'; do
            name=$weights-$(echo "$search" | tr -d ' -')
            WEFT_ISA=$1 "$tools/generate" --model "$files/copy.safetensors" -i "$files/lines" --weights $weights $search \
                --threads "$2" --quiet > "$files/$name" && [ "$(wc -l < "$files/$name")" = 200 ] || return 1
        done
    done
    (cd "$files" && rm -f ./*.best.safetensors sums lines && sha256sum -- * > ../sums)
}

# newer_source FILE: succeeds if a source was changed after FILE was written
newer_source() {
    [ -n "$(cd "$root" && find core ops nn models tools -name '*.[ch]' -newer "$1" | head -n 1)" ]
}

# same_bits SET THREADS: fails unless the files are those of gcc-O2 with base and one thread
same_bits() {
    if [ "$way-$1-$2" = gcc-O2-base-1 ]; then
        cp "$folder/sums" "$out/sums"
    elif [ ! -f "$out/sums" ] || newer_source "$out/sums"; then
        (way=gcc-O2 folder=$out/gcc-O2 cross='' wrapper='' && native gcc -Doptimization=2 && wrap_programs && work base 1 &&
            cp "$folder/sums" "$out/sums") || return
    fi
    diff "$out/sums" "$folder/sums"
}

readme() {
    mkdir -p "$folder/example"
    awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$root/README.md" > "$folder/example/example.c"
    # shellcheck disable=SC2086 # words
    $CC -std=c17 $strict -I"$folder/include" "$folder/example/example.c" "$folder/libweft.a" ${static:-} -lm -pthread \
        -o "$folder/example/example" &&
        (cd "$folder/example" && $wrapper ./example > output) &&
        awk '/^loss / { if (!n++) first = $2; last = $2 } END { exit !(last < first / 10) }' "$folder/example/output"
}

# The sets of kernels that this build has and this machine runs.
sets_here() {
    for set in base avx2 avx512 neon; do
        ! WEFT_ISA=$set "$tools/bench" gemm --size 4 --seconds 0 --threads 1 > /dev/null 2>&1 || echo $set
    done
}

# signature SET: the README's number
signature() {
    number=$(sed -n 's/^ *`\([0-9a-f]\{32\}\)` everywhere.*/\1/p' "$root/README.md")
    [ "$(WEFT_ISA=$1 "$tools/bench" signature)" = "$number" ] || { ran="$ran; ANOTHER SIGNATURE with $1"; return 1; }
}

# signatures: compares `bench signature` of each set; `work` would take an emulator long.
signatures() {
    for set in $(sets_here); do
        signature "$set" || return 1
        ran="$ran, signature with $set"
    done
}

programs_run() {
    sets=$(sets_here)
    for set in $sets; do
        for threads in 1 2; do
            work "$set" $threads || { ran="$ran; the work FAILED with $set"; return 1; }
            same_bits "$set" $threads || { ran="$ran; OTHER BITS with $set, $threads threads"; return 1; }
        done
        signature "$set" || return 1
    done
    ran="$ran, work and signature (same bits: $(echo $sets))"
    readme || { ran="$ran; the README's program FAILED"; return 1; }
    ran="$ran, README's program"
}

# On this machine the programs must refuse to read and to write files, with a message.
refuses_files() {
    "$tools/inspect" "$root/tests/data/model_plain.safetensors" > "$out/$way.refused" 2>&1 && return 1
    grep "$refusal" "$out/$way.refused" || return 1
    "$tools/train" --task copy --max-steps 1 --d-model 8 --heads 1 --layers 1 --d-ff 8 --valid-size 0 \
        -o "$folder/refused.safetensors" > "$out/$way.refused" 2>&1 && return 1
    grep "$refusal" "$out/$way.refused" && [ ! -e "$folder/refused.safetensors" ] && ran="$ran, files are refused with a sentence"
}

# whole SUITES...: runs the suites and the programs of a build
whole() {
    # All suites of bits-tests.
    [ -z "$arithmetic" ] || set --
    wrap_programs
    ran="-Werror"
    suites "$@" && good=0 || good=1
    programs_run || good=1
    return $good
}

# ---- the ways --------------------------------------------------------------------------------------

valgrind_way() {
    need gcc valgrind meson ninja || return 77
    CC=gcc
    build -Doptimization=1 -Ddebug=true -Dc_args=-fno-inline || return 1
    wrap_programs
    ran='memcheck, no leaks looked for in tests that end early'
    export WEFT_ISA=base
    WATCH='valgrind --quiet --error-exitcode=99 --trace-children=no --child-silent-after-fork=no' \
        suites init load graph errors plan rewrite run state misuse optim model_file text dot print
}

# A finding is either mended, or looked at and known: a line of systems/known_findings.txt.
analyze_way() {
    need clang cppcheck || return 77
    ran='clang --analyze, cppcheck'
    sources=$(cd "$root" && find core ops nn models tools -name '*.c' ! -path '*/kernels/*' | sort)
    (
        cd "$root"
        for source in $sources; do
            clang --analyze -Xclang -analyzer-output=text -std=c17 -D_POSIX_C_SOURCE=200809L -I. "$source" -o /dev/null
        done
        cppcheck --quiet --std=c11 --enable=warning,portability -D__GNUC__ -D_POSIX_C_SOURCE=200809L -I. \
            core ops nn models tools
    ) > "$out/$way.found" 2>&1
    grep -E '^[^ ]*:[0-9]+:[0-9]+: (warning|error|portability):' "$out/$way.found" | sed 's/:[0-9]*:[0-9]*:/:/' | sort -u |
        grep -vxFf "$root/tests/systems/known_findings.txt" > "$out/$way.new" || true
    cat "$out/$way.new"
    counted="$(echo "$sources" | wc -l) files" ran="$ran: $(wc -l < "$out/$way.new") new findings"
    [ ! -s "$out/$way.new" ]
}

run_way() {
    folder=$out/$way cross='' wrapper='' static='' ran='' counted=''
    case $way in
        gcc-O2 | clang-O2) native "${way%-*}" -Doptimization=2 || return; whole $(without $slow) ;;
        gcc-O? | clang-O?) native "${way%-*}" -Doptimization="${way#*-O}" || return; whole $(without $long) ;;
        *-O?-all) level=${way%-all} level=${level#*-O}
            native "${way%-O*}" -Doptimization="$level" -Dkernel-level="$level" || return; whole $(without $long) ;;
        *-O?) native "${way%-O?}" -Doptimization="${way##*-O}" || return; whole $(without $long) ;;
        *-fortify?) native "${way%-*}" -Doptimization=2 \
            -Dc_args="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${way#*-fortify}" || return; whole $(without $long) ;;
        *-c2x) native "${way%-*}" -Doptimization=2 -Dc_std=c2x || return; whole $(without $long) ;;
        musl) foreign musl-gcc x86_64 little || return; whole $(without $long) ;;
        i386) foreign i686-linux-gnu-gcc x86 little || return; whole $(without $long) ;;
        aarch64) foreign aarch64-linux-gnu-gcc aarch64 little qemu-aarch64 || return
            whole $emulated ;;
        neon) programs=${arithmetic:+tools/bench} level=1
            [ -n "$arithmetic" ] || test_program=neon-tests
            foreign aarch64-linux-gnu-gcc aarch64 little qemu-aarch64 || return
            wrap_programs
            ran=-Werror
            suites && { [ -z "$arithmetic" ] || signatures; } ;;
        # gcc cannot unroll some loops for s390x, and no option turns off its warning about that.
        s390x) werror=false; foreign s390x-linux-gnu-gcc s390x big qemu-s390x || return
            wrap_programs; ran='warnings allowed'; suites $without_files && readme && refuses_files ;;
        valgrind) valgrind_way ;;
        analyze) analyze_way ;;
        *) echo "systems.sh: there is no way called $way" >&2; exit 2 ;;
    esac
}

main() {
    arithmetic='' test_program=weft-tests widths='15 84 14'
    if [ "${1:-}" = --arithmetic ]; then
        arithmetic=yes test_program=bits-tests programs='tools/train tools/generate tools/bench'
        shift
    fi
    # shellcheck disable=SC2086 # words
    show_ways 'checks passed' ${*:-$all_ways}
    [ ! -f "$out/sums" ] || cat "$out/sums"
    end_ways
}
main "$@"
exit 0
