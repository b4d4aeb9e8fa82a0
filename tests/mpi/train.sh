#!/bin/sh
# tests/mpi/train.sh - training over MPI, on this machine, writes the files of one process, and says why all ranks end.
#
# usage: train.sh build/tests/mpi-collectives build/tools      prints what it tried; exits 1 at the first that is wrong.
set -eu
whole() { (cd "$(dirname "$1")" && echo "$PWD/$(basename "$1")"); }
collectives=$(whole "$1") tools=$(whole "$2")
. "$(dirname "$0")/run.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "mpi: $*" >&2; cat err >&2; exit 1; }
for i in 1 2 3 4 5 6 7; do printf 'one two\tein zwei\nthree\tdrei\nfour a b\tvier a b\nfive\tf\n'; done > pairs
head -11 pairs > held
cut -f 1 pairs > text
size='--d-model 16 --heads 2 --layers 1 --d-ff 24 --max-len 8 --threads 1 --quiet'
pairs="--train pairs --valid held --tokenizer char --max-tokens 40 --batch-size 3 --warmup 2 $size"
numbers="--task copy --batch-size 4 --valid-size 40 --warmup 2 $size"
running="--task lm --text text --tokenizer byte --max-tokens 32 --warmup 2 $size"

# same OPTIONS...: one process and so many ranks write the same files.
same() {
    "$tools/train" "$@" -o one --overwrite > /dev/null 2> err || fail "one process: $*"
    for n in 1 2 3 4 8; do
        ranks $n "$tools/train-mpi" "$@" -o many > out 2> err || fail "$n ranks: $*"
        cmp one many && cmp one.best many.best || fail "$n ranks write another file: $*"
        rm many many.best
    done
    echo "the same files: $*"
}
# shellcheck disable=SC2086 # words
{
    same $pairs --max-steps 8 --accum 5 --dropout 0.1 --ema 0.8
    same $pairs --max-steps 8 --accum 3 --clip-norm 0.1 --arch language --share-vocab
    same $running --max-steps 8 --accum 2 --ema 0.5

    # A training whose parts were made by different numbers of ranks writes the file of one
    # process.
    "$tools/train" $numbers --max-steps 9 --lr-steps 9 -o one --overwrite > /dev/null 2> err || fail 'one process'
    ranks 3 "$tools/train-mpi" $numbers --max-steps 3 --lr-steps 9 -o many > out 2> err || fail 'a first part'
    ranks 2 "$tools/train-mpi" --resume -o many --quiet --max-steps 6 > out 2> err || fail 'a second part'
    "$tools/train" --resume -o many --quiet --max-steps 9 > out 2> err || fail 'the last part'
    cmp one many || fail 'a training in parts has another end'
    echo 'the same file, resumed with other ranks'

    # Ranks with different kernels write the file of one process: plain C, AVX2 if the processor
    # has it, and the best.
    few=base
    ! grep -q avx2 /proc/cpuinfo 2> /dev/null || few=avx2
    "$tools/train" $pairs --max-steps 8 --accum 5 --dropout 0.1 --ema 0.8 -o one --overwrite > /dev/null 2> err ||
        fail 'one process'
    # shellcheck disable=SC2016 # the rank's own variables
    ranks 3 sh -c 'case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in 0) export WEFT_ISA=$0 ;; 1) export WEFT_ISA=base ;; esac
        exec "$@"' $few "$tools/train-mpi" $pairs --max-steps 8 --accum 5 --dropout 0.1 --ema 0.8 -o many --overwrite \
        > out 2> err || fail 'ranks of different processors'
    cmp one many && cmp one.best many.best || fail 'ranks of different processors write another file'
    echo "the same files: ranks with kernels of $few, base and the best"
}

# ends CODE SENTENCE OPTIONS...: all ranks end, mpirun exits with CODE, and train prints one
# message, which has SENTENCE.
ends() {
    code=0 wanted=$1 sentence=$2
    shift 2
    ranks 3 "$tools/train-mpi" "$@" > out 2> err || code=$?
    [ $code = "$wanted" ] || fail "exit $code, not $wanted: $*"
    # Several ranks print the same message if the first one needs more than half a second to end
    # the others.
    [ "$(grep '^train: ' err | sort -u | wc -l)" = 1 ] && grep -q "^train: .*$sentence" err || fail "not what is said: $sentence"
    echo "exit $code: $sentence"
}
# shellcheck disable=SC2086 # words
{
    ends 2 'd-model' $pairs --d-model 15 -o many
    ends 1 "can't be written" $pairs -o none/many
    ends 2 'there are ranks already' $pairs --processes 2 -o many
    ends 3 'is not finite' $pairs --accum 4 --max-steps 50 --optimizer sgd --lr 1e6 --clip-norm 0 -o infinite
}
# A stopped rank (SIGSTOP) is noticed by the next one, which prints that it sent no heartbeat.
rm -f pid.*
# shellcheck disable=SC2016,SC2086 # the rank's own variables; words
ranks 3 sh -c 'echo $$ > pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; exec "$@"' rank "$tools/train-mpi" $numbers \
    --max-steps 1000000000 --save-every 1 -o endless > out 2> err &
mpirun=$!
until [ -e endless ]; do sleep 0.1; done
kill -STOP "$(cat pid.1)"
code=0
wait $mpirun || code=$?
[ $code = 124 ] && [ "$(grep -c '^train: rank 1 sent no heartbeat' err)" = 1 ] || fail "a rank that stands still: exit $code"
echo "exit $code: a rank that stands still"

"$tools/train-mpi" --help > out 2> err || fail help
"$tools/train" --help | grep default > expected
grep default out | cmp -s - expected || fail "train-mpi and train print other defaults"
echo "mpi: all is right"
