#!/bin/sh
# tools/test.sh - all tests, from a fresh clone: what CI calls.
#
# usage: tools/test.sh
#
# Installs what is missing (a C compiler, meson, ninja, pkg-config, Check, zlib), then builds and tests three times: as
# released (build/), with the address and undefined-behaviour sanitizers (build-asan/), and the threaded
# suites with the thread sanitizer (build-tsan/). Where CI is set, it also installs an MPI, and an emulator for the NEON
# kernels. While tests run, the next build compiles at the lowest priority. Ends with all failures, then Check's closing
# line of each.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

results=
failures=
failed=0

# fails TEXT: note a failure. Failures are printed at the end, because a log is often shown from its end.
fails() {
    failed=1
    failures="$failures
$1
"
}

# Drops the sanitizers' warnings of failed allocations: tests ask thousands of times for more memory than there is.
without_warnings() { grep --line-buffered -v '^==[0-9]*==WARNING: [A-Za-z]*Sanitizer failed to allocate 0x' || true; }

# run_suites NAME FOLDER PROGRAM [SUITE...]: its suites, or all, with their output visible. Leaves a log and a status.
run_suites() {
    log=$2/$(log_name "$1") folder=$2 program=$3
    shift 3
    { WEFT_TOOLS=$PWD/$folder/tools "$folder/tests/$program" --jobs "$jobs" "$@" && echo 0 > "$log.status" ||
        echo 1 > "$log.status"; } 2>&1 | without_warnings | tee "$log"
}

log_name() { echo "tests $1.log" | tr -d , | tr ' ' -; }

# keep_closing_line NAME FOLDER: Check's closing line of these suites, and their failures
keep_closing_line() {
    log=$2/$(log_name "$1")
    closing=$(grep '%: Checks:' "$log" | tail -n 1)
    closing=${closing:-did not finish}
    results="$results$(printf '%-28s' "$1")$closing
"
    [ "$(cat "$log.status")" = 0 ] || fails "$1: $closing
$(check_failures "$log")"
}

# tests NAME FOLDER PROGRAM [SUITE...]: both
tests() {
    run_suites "$@"
    keep_closing_line "$1" "$2"
}

# check_failures LOG: print the failed tests and the leaks, which follow Check's closing line in the log, without the
# counts of weft-tests. For a run without a closing line, print the end of the log.
check_failures() {
    if grep -q '%: Checks:' "$1"; then
        sed -n '/%: Checks:/,$p' "$1" |
            grep -vE '%: Checks:|^Instruction set |^ *[0-9]+ [A-Za-z]' | head -n 400
    else
        tail -n 20 "$1"
    fi
}

# meson_failures LOG: print the failed tests in Meson's testlog.txt: name, result, and the last lines of each one's output.
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

# build_behind FOLDER OPTIONS...: build in the background, at the lowest priority: it uses the time in which tests wait.
build_behind() {
    behind=$1
    say "building into $behind/ while tests run"
    (nicely='nice -n 19' && build "$@") > "build/$behind.log" 2>&1 &
    builder=$!
}

# await_build: wait for the build in the background
await_build() {
    say "waiting for $behind/"
    wait $builder || { cat "build/$behind.log" >&2; exit 1; }
    say "built into $behind/"
}

need compiler meson ninja pkg-config check zlib
# Only in CI: an MPI for ranks on several machines; without it, train-mpi is not built.
[ -z "${CI:-}" ] || (need mpi) || say "train-mpi is not tested here"
# Only in CI: a compiler and an emulator for the NEON kernels, installed while weft compiles; without them, tests/systems.sh neon
# is skipped.
installer=
[ -z "${CI:-}" ] || { { (need arm) || say "the NEON kernels are not tested here"; } & installer=$!; }
# A small quarantine: Check forks for every test, and a fork copies what its parent holds.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=16:clear_shadow_mmap_threshold=1000000000
export UBSAN_OPTIONS=print_stacktrace=1
# -g1: sanitizers print only line numbers. The variables of -g would cost two fifths of the compilers' time.
# No suite runs a program of MPI.
sanitized='-Doptimization=1 -Ddebug=false -Db_ndebug=false -Db_lundef=false -Dtests=enabled -Dmpi=disabled'
# One suite more at a time than there are processors, because some wait for clocks or for each other. Each works in a folder
# of its own.
jobs=$(($(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2) + 1))

build build -Dtests=enabled
[ -z "$installer" ] || wait $installer
targets=suites # the examples, the walls and the manual are built only as released
build_behind build-asan $sanitized -Db_sanitize=address,undefined '-Dc_args=-g1 -fno-sanitize-recover=all'
say "the house, the instruction sets, the installed library, the NEON kernels in an emulator, MPI where it is"
# Meson's tests run the other instruction sets; the best kernels of this machine run with all suites, below.
WEFT_OTHER_ISA=1 meson test -C build --num-processes "$jobs" --no-suite all --no-rebuild --print-errorlogs ||
    fails "$(meson_failures build/meson-logs/testlog.txt)"
tests 'release' build weft-tests

await_build
# The threaded suites run no programs, and only the best kernels of this machine.
best=$(sed -n 's/^Instruction set \([a-z0-9]*\)$/\1/p' build/tests-release.log | tail -n 1)
kernels=base
[ "${best:-base}" = base ] || kernels=base,$best
targets=thread-tests
build_behind build-tsan $sanitized -Db_sanitize=thread -Dc_args=-g1 -Dkernels=$kernels
tests 'address and undefined' build-asan weft-tests
await_build
# meson.build gives the base kernels more sanitizer checks than those with wide vectors, so the suites of ops also run with base:
# beside the threaded suites, which wait for each other half of the time.
base='address and undefined, base'
(WEFT_ISA=base run_suites "$base" build-asan weft-tests ops products table_bits > build-asan/base.log) &
runner=$!
tests 'thread' build-tsan thread-tests
wait $runner
cat build-asan/base.log
keep_closing_line "$base" build-asan

[ $failed = 0 ] || printf '\nFailures:\n%s' "$failures"
printf '\n%s' "$results"
exit $failed
