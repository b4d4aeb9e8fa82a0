#!/bin/sh
# tests/mpi/example.sh - the example data_parallel writes the same file as 1, 2 and 4 processes and over MPI.
#
# usage: example.sh build/tests/mpi-collectives build/tests/mpi-data-parallel build/tools/examples/example-data_parallel
set -eu
whole() { (cd "$(dirname "$1")" && echo "$PWD/$(basename "$1")"); }
collectives=$(whole "$1") over_mpi=$(whole "$2") example=$(whole "$3")
. "$(dirname "$0")/run.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "mpi: $*" >&2; cat err >&2; exit 1; }
"$example" 1 one > out.one 2> err || fail 'one process'
for n in 2 4; do
    "$example" $n processes > out 2> err || fail "$n processes"
    cmp one processes && cmp out.one out || fail "$n processes write another file"
    rm processes
done
for n in 1 2 4; do
    ranks $n "$over_mpi" $n ranks > out 2> err || fail "$n ranks over MPI"
    cmp one ranks && cmp out.one out || fail "$n ranks over MPI write another file"
    rm ranks
done
code=0
ranks 2 "$over_mpi" 3 ranks > out 2> err || code=$?
[ $code != 0 ] && [ ! -e ranks ] && grep -q 'another number of ranks' err || fail "2 ranks for 3: exit $code"
echo 'data_parallel: the same file as 1, 2 and 4 processes and ranks over MPI'
