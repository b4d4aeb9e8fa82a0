#!/bin/sh
# tests/kill_and_resume.sh - a training that is killed again and again is the same training.
#
# usage: kill_and_resume.sh [KILLS]       in a folder that may be written to; train and
#                                         inspect on the PATH, or WEFT_TOOLS their folder
#
# A training that saves after every step is ended with kill -9 at a moment of chance, KILLS times
# (20). After each of them its file is a model that inspect finds whole, or there is none yet, and
# the training goes on from it. In the end the file, and that of the best weights, equal those of a
# training of as many steps that nobody disturbed, byte for byte, and nothing else is left behind.
set -eu
kills=${1:-20}
PATH=${WEFT_TOOLS:+$WEFT_TOOLS:}$PATH
folder=$(mktemp -d ./kills.XXXXXX)
trap 'rm -rf "$folder"' EXIT
fail() { echo "kill_and_resume: $*" >&2; exit 1; }
command -v train > /dev/null && command -v inspect > /dev/null || fail "set WEFT_TOOLS to the folder of the programs"

i=0
while [ $i -lt 40 ]; do
    echo "eins $((i % 7)) zwei $((i % 5))	one $((i % 7)) two $((i % 5))"
    i=$((i + 1))
done > "$folder/pairs"

settings='--tokenizer word --d-model 16 --heads 2 --layers 1 --d-ff 16 --batch-size 7 --accum 2 --ema 0.9
    --lr-steps 1000000000 --warmup 2'
# training FILE MORE...: from its beginning, or on
training() {
    file=$folder/$1.safetensors
    shift
    if [ -e "$file" ]; then how=--resume; else how=$settings; fi
    # shellcheck disable=SC2086 # settings are words
    exec train $how --train "$folder/pairs" --valid "$folder/pairs" --valid-every 3 --threads 1 --quiet \
        -o "$file" "$@"
}
# How many steps the file has.
steps() { inspect "$folder/$1.safetensors" | sed -n 's/^ *train\.step *//p'; }

done=0 during=0
while [ $done -lt "$kills" ]; do
    training killed --save-every 1 --max-steps 100000000 &
    pid=$!
    sleep "0.0$(($(od -An -N2 -tu2 /dev/urandom) % 90 + 10))"
    { kill -9 $pid && ! wait $pid; } 2> /dev/null || fail "the training ended by itself"
    done=$((done + 1))
    for left in "$folder"/*.tmp-*; do [ ! -e "$left" ] || { during=$((during + 1)); break; }; done
    [ ! -e "$folder/killed.safetensors" ] || inspect "$folder/killed.safetensors" > /dev/null ||
        fail "the file is damaged after $done kills"
done

[ ! -e "$folder/killed.safetensors" ] || last=$(steps killed)
last=$((${last:-0} + 6))
(training killed --max-steps $last > /dev/null) || fail "the killed training does not end"
(training whole --max-steps $last > /dev/null) || fail "the undisturbed training does not end"
for name in '' .best; do
    cmp "$folder/killed$name.safetensors" "$folder/whole$name.safetensors" ||
        fail "after $last steps and $done kills: another file"
done
left=$(find "$folder" -name '*.tmp-*' | wc -l)
[ "$left" -eq 0 ] || fail "$left temporary files are left behind"
echo "$done kills in $last steps, a temporary file there after $during of them: the same file, nothing left behind"
