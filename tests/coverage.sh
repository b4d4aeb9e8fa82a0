#!/bin/sh
# tests/coverage.sh - how much of the code the tests reach: lines and branches, per folder.
#
# usage: coverage.sh [--files] [--missed [PREFIX ...]]
#
# Builds with gcc's counters into build-coverage/ beside the sources, runs the whole suite there and
# once more the products with each other instruction set that runs here, then walls, and prints a table; --files
# and --missed as in coverage.py. With RUN=no it counts anew what an earlier run has left.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh
need compiler meson ninja pkg-config check
folder=build-coverage
if [ "${RUN:-yes}" = yes ]; then
    configure $folder -Dbuildtype=plain -Doptimization=0 -Ddebug=true -Db_coverage=true -Dtests=enabled -Dc_args=-DNDEBUG
    meson compile -C $folder > $folder/compile.log 2>&1 || { cat $folder/compile.log >&2; exit 1; }
    find $folder -name '*.gcda' -exec rm {} +
    export CK_DEFAULT_TIMEOUT=3600 WEFT_TOOLS=$PWD/$folder/tools
    $folder/tests/weft-tests >&2 || say "tests failed: what they reach is counted all the same"
    for isa in base avx2 neon; do
        WEFT_ISA=$isa $folder/tests/weft-tests products panels >&2 || [ $? = 77 ]
    done
    # Only the walls whose programs end by themselves: a program that is killed writes no counts.
    meson test -C $folder --no-rebuild -t 4 outputs texts mutants faults >&2 || true
fi
python3 tests/coverage.py $folder "$@"
