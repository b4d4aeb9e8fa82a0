#!/bin/sh
# tools/quickstart.sh - from a fresh clone to a trained Transformer and its pictures. Safe to run again: a model
# that is there stays, and is not trained again.
#
# usage: tools/quickstart.sh [--help]          SEED=7 tools/quickstart.sh trains another one, if none is there
#
# Installs what is missing (a C compiler, meson, ninja, pkg-config, zlib), builds into build/, trains the copy
# task and writes into quickstart/. Exits with 2 if something is missing that it can't install, except zlib.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

case ${1:-} in
    --help | -h) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p;}' tools/quickstart.sh; exit 0 ;;
    ?*) say "$1: there is no option but --help. SEED=7 tools/quickstart.sh trains another model, if none is there"; exit 2 ;;
esac

need compiler meson ninja pkg-config
want zlib build "text packed by gzip can't be read"
[ -e build/tools/train ] || say "building into build/: one to five minutes, longer on a busy or slow machine"
configure build
compile build train generate convert inspect graph embed tokenize tools/bench

out=quickstart
mkdir -p $out
model=$out/copy.safetensors
if [ -e $model ]; then
    say "$model is there, and stays: move it to another place to train again"
else
    say "training: an encoder-decoder Transformer learns to copy sequences of 3 to 12 numbers"
    # Under another name until it is done, so that a training that was stopped leaves no model.
    new=$out/copy.new.safetensors
    setting() { build/tools/inspect $new | sed -n "s/^ *train\.$1  *//p"; }
    if [ ! -e $new ]; then
        build/tools/train --task copy --seed "${SEED:-1}" -o $new --curve $out/loss.svg
    elif [ -z "$(setting step)" ] || [ "$(setting step)" != "$(setting lr-steps)" ]; then
        say "going on with $new: move it to another place to begin anew"
        build/tools/train --resume -o $new --curve $out/loss.svg
    fi
    mv $new $model
fi
say "drawing"
build/tools/graph --of attention > $out/attention.dot
if has dot; then dot -Tsvg $out/attention.dot -o $out/attention.svg; fi
echo "1 2 3 4 5 6 7 8 9 10" |
    build/tools/generate --model $out/copy.safetensors --quiet \
        --attention $out/attention-heatmap.svg > /dev/null

cat >&2 << END

In $out/:
  copy.safetensors        the trained model, with all that a resumed training needs
  loss.svg                its loss while it learned, or since it went on after a stop
  attention-heatmap.svg   where the decoder looks in "1 2 3 4 5 6 7 8 9 10": the diagonal is the copying
  attention.dot           the graph of one multi-head attention$(has dot && echo ', drawn in attention.svg' ||
    echo '; to draw it, install the package graphviz and run
                          dot -Tsvg quickstart/attention.dot -o quickstart/attention.svg')

Next:
  echo "5 4 3 2 1" | build/tools/generate --model $out/copy.safetensors
  build/tools/train --task sort -o sort.safetensors
  build/tools/graph --of transformer --html transformer.html
  build/tools/inspect $out/copy.safetensors
  tools/learn.sh 0
  tools/test.sh
END
