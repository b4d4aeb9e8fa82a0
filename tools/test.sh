#!/bin/sh
# tools/test.sh - all tests, from a fresh clone: what CI calls.
#
# usage: tools/test.sh
#
# Installs what is missing (a C compiler, meson, ninja, pkg-config, Check), then builds and tests three times: as
# released (build/), with the address and undefined-behaviour sanitizers (build-asan/), and the threaded
# suites with the thread sanitizer (build-tsan/). Ends with Check's closing line of each.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

results=
failed=0

# tests NAME FOLDER SUITES...: run them with their output visible, and keep Check's closing line.
tests() {
    name=$1 folder=$2
    shift 2
    { WEFT_TOOLS=$PWD/$folder/tools "$folder/tests/weft-tests" "$@" && echo 0 > "$folder/status" ||
        echo 1 > "$folder/status"; } 2>&1 | tee "$folder/tests.log"
    [ "$(cat "$folder/status")" = 0 ] || failed=1
    results="$results$(printf '%-28s' "$name")$(grep '%: Checks:' "$folder/tests.log" || echo 'did not finish')
"
}

# build FOLDER OPTIONS...
build() {
    folder=$1
    say "building into $folder/"
    configure "$@"
    compile "$folder"
}

need compiler meson ninja pkg-config check
# For the kernels of another machine, which no one has to have: tests/systems.sh neon is skipped without.
[ -z "${CI:-}" ] || (need arm) || say "the NEON kernels are not tested here"
# For ranks on several machines, likewise: without it train-mpi is not built.
[ -z "${CI:-}" ] || (need mpi) || say "train-mpi is not tested here"
# A small quarantine: Check forks for every test, and a fork copies what its parent holds.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=16
export UBSAN_OPTIONS=print_stacktrace=1
sanitized='-Dbuildtype=debugoptimized -Db_lundef=false -Dtests=enabled'

build build -Dtests=enabled
say "the house, the instruction sets, the installed library, the NEON kernels in an emulator, MPI where it is"
meson test -C build --no-suite all --no-rebuild --print-errorlogs || failed=1
tests 'release' build

build build-asan $sanitized -Db_sanitize=address,undefined -Dc_args=-fno-sanitize-recover=all
# The rows of the table of ops are thousands of tests, and a fork of a sanitized program is slow: they share a process.
rows='ops gradients extents'
others=$(sed -n 's/^SUITE(\(.*\))$/\1/p' tests/suites.inc | grep -vxF "$(printf '%s\n' $rows)")
tests 'address and undefined' build-asan $others
export CK_FORK=no
tests 'address and undefined, ops' build-asan $rows
unset CK_FORK

build build-tsan $sanitized -Db_sanitize=thread
tests 'thread' build-tsan pool transport courier sharded rank_failures plan rewrite run state

printf '\n%s' "$results"
exit $failed
