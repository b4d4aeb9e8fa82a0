#!/bin/sh
# tests/mpi/mpi.sh - ranks over MPI, on this machine: what they send each other, and what becomes of all when one fails.
#
# usage: mpi.sh build/tests/mpi-collectives      prints what it tried; exits 1 at the first that is wrong.
set -eu
collectives=$1
. "$(dirname "$0")/run.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "mpi: $*" >&2; cat "$folder/err" >&2; exit 1; }

for n in 1 2 3 5; do
    ranks $n "$collectives" > "$folder/out" 2> "$folder/err" || fail "collectives of $n ranks"
    cat "$folder/out"
done

# breaks WHAT CODE SENTENCE: one rank of three does WHAT; mpirun must exit with CODE, and the ranks print SENTENCE. If
# a rank is killed, mpirun chooses the code: Open MPI exits with 128 + signal, MPICH with the signal.
breaks() {
    code=0
    ranks 3 "$collectives" "$1" > "$folder/out" 2> "$folder/err" || code=$?
    case "|$2|" in *"|$code|"*) ;; *) fail "$1: exit $code, not $2" ;; esac
    [ -z "$3" ] || [ "$(grep '^mpi-collectives: ' "$folder/err" | sort -u)" = "mpi-collectives: $3" ] || fail "$1: not what is said: $3"
    echo "$1: exit $code"
}
breaks fail 5 'the disk is full'
breaks stop 124 'rank 2 sent no heartbeat for 15 seconds'
breaks code 21 ''
breaks kill '137|9' ''
echo "mpi: all is right"
