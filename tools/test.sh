#!/bin/sh
# tools/test.sh - all tests, from a fresh clone: what CI calls.
#
# usage: tools/test.sh
#
# Installs what is missing (a C compiler, meson, ninja, pkg-config, Check, zlib), then builds and tests three times: as
# released (build/), with the address and undefined-behaviour sanitizers (build-asan/), and the threaded
# suites with the thread sanitizer (build-tsan/). While tests run, the next build compiles at the lowest priority. Ends with
# all failures, then Check's closing line of each.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

results=
failures=
failed=0

# fails TEXT: to be repeated at the end, because a log is often shown from its end.
fails() {
    failed=1
    failures="$failures
$1
"
}

# The allocations that tests ask for and no machine has: the sanitizers' allocators warn of thousands.
without_warnings() { grep --line-buffered -v '^==[0-9]*==WARNING: [A-Za-z]*Sanitizer failed to allocate 0x' || true; }

# tests NAME FOLDER PROGRAM [SUITE...]: run its suites, or all, with their output visible, and keep Check's closing line.
tests() {
    name=$1 folder=$2 program=$3
    shift 3
    log=$folder/tests${1:+-$1}.log
    { WEFT_TOOLS=$PWD/$folder/tools "$folder/tests/$program" --jobs "$jobs" "$@" && echo 0 > "$folder/status" ||
        echo 1 > "$folder/status"; } 2>&1 | without_warnings | tee "$log"
    closing=$(grep '%: Checks:' "$log" | tail -n 1)
    closing=${closing:-did not finish}
    results="$results$(printf '%-28s' "$name")$closing
"
    [ "$(cat "$folder/status")" = 0 ] || fails "$name: $closing
$(check_failures "$log")"
}

# check_failures LOG: what stands after Check's closing line without our counts: failed tests, and what leaks. Of a run
# that did not come so far, its end.
check_failures() {
    if grep -q '%: Checks:' "$1"; then
        sed -n '/%: Checks:/,$p' "$1" |
            grep -vE '%: Checks:|^Instruction set |^ *[0-9]+ [A-Za-z]' | head -n 400
    else
        tail -n 20 "$1"
    fi
}

# meson_failures LOG: of Meson's testlog.txt the tests that failed: name, result, the last lines of what each printed.
meson_failures() {
    awk -v most=20 '
        function tell(  i) {
            if (name != "" && result !~ /^(exit status (0|77)|)$/) {
                print "meson test " name ": " result
                for (i = n > most ? n - most + 1 : 1; i <= n; i++) print "    " lines[i]
            }
            name = result = ""
        }
        /^=+ [0-9]+\/[0-9]+ =+$/ { tell(); n = 0; next }
        /^=+$/ || /^-+ std(out|err) -+$/ { next }
        /^test: / && name == "" { name = $NF; next }
        /^result: / && result == "" { sub(/^result: */, ""); result = $0; next }
        { lines[++n] = $0 }
        END { tell() }' "$1"
}

# build FOLDER OPTIONS...: all targets, or $targets
build() {
    folder=$1
    say "building into $folder/"
    configure "$@"
    # shellcheck disable=SC2086 # words
    compile "$folder" ${targets:-}
}

# build_behind FOLDER OPTIONS...: as build, at the lowest priority: in the time in which tests wait for each other, or for a clock.
build_behind() {
    behind=$1
    say "building into $behind/ while tests run"
    (nicely='nice -n 19' && build "$@") > "build/$behind.log" 2>&1 &
    builder=$!
}

# await_build: until the build behind the tests is there
await_build() {
    say "waiting for $behind/"
    wait $builder || { cat "build/$behind.log" >&2; exit 1; }
    say "built into $behind/"
}

need compiler meson ninja pkg-config check zlib
# For the kernels of another machine, which no one has to have: tests/systems.sh neon is skipped without.
[ -z "${CI:-}" ] || (need arm) || say "the NEON kernels are not tested here"
# For ranks on several machines, likewise: without it train-mpi is not built.
[ -z "${CI:-}" ] || (need mpi) || say "train-mpi is not tested here"
# A small quarantine: Check forks for every test, and a fork copies what its parent holds.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=16
export UBSAN_OPTIONS=print_stacktrace=1
# Lines are all that a sanitizer tells of a place: variables, for a debugger, would cost two fifths of the compilers' time.
# No suite runs a program of MPI.
sanitized='-Doptimization=1 -Ddebug=false -Db_ndebug=false -Db_lundef=false -Dtests=enabled -Dmpi=disabled'
# As many suites at a time as there are processors. Each works in a folder of its own.
jobs=$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)

build build -Dtests=enabled
build_behind build-asan $sanitized -Db_sanitize=address,undefined '-Dc_args=-g1 -fno-sanitize-recover=all'
say "the house, the instruction sets, the installed library, the NEON kernels in an emulator, MPI where it is"
# The kernels that are best here run with all suites, below.
WEFT_OTHER_ISA=1 meson test -C build --no-suite all --no-rebuild --print-errorlogs ||
    fails "$(meson_failures build/meson-logs/testlog.txt)"
tests 'release' build weft-tests

await_build
# These suites run no programs, and no other kernels than the best here.
best=$(sed -n 's/^Instruction set \([a-z0-9]*\)$/\1/p' build/tests.log | tail -n 1)
kernels=base
[ "${best:-base}" = base ] || kernels=base,$best
targets=thread-tests
build_behind build-tsan $sanitized -Db_sanitize=thread -Dc_args=-g1 -Dkernels=$kernels
tests 'address and undefined' build-asan weft-tests
# The kernels of base are watched with more checks than those of wide vectors (meson.build), so all that ops run is run on them.
WEFT_ISA=base tests 'address and undefined, base' build-asan weft-tests ops products table_bits

await_build
tests 'thread' build-tsan thread-tests

[ $failed = 0 ] || printf '\nFailures:\n%s' "$failures"
printf '\n%s' "$results"
exit $failed
