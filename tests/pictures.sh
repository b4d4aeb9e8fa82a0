#!/bin/sh
# tests/pictures.sh - the pictures in the README are what today's programs draw: their titles, labels and axes.
#
# usage: pictures.sh SOURCE_FOLDER BUILD_FOLDER
#
# Colours and sizes are not compared: weights differ with the processor, and a layout with the version of Graphviz.
# The heat map is compared with that of a shorter training, which has learned to copy, too.
set -eu
whole() { (cd "$1" && pwd); }
source=$(whole "$1") tools=$(whole "$2")/tools
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "pictures: $*" >&2; exit 1; }

# texts PICTURE: prints the contents of the SVG file's text elements, sorted, except those of class "value", which are the
# weights in the cells of the heat map.
texts() { grep -o '<text[^>]*>[^<]*' "$1" | grep -v 'class="value' | sed 's/<text[^>]*>//' | sort; }

# same NAME WHY: the picture NAME of the README must have the texts of the one that was drawn here.
same() {
    texts "$source/tools/pictures/$1" > old
    texts "$1" > new
    [ -s old ] && [ -s new ] || fail "$1 holds no text"
    diff old new || fail "tools/pictures/$1 is not what is drawn today: $2"
}

"$tools/train" --task copy --seed 1 --lr-steps 1200 --max-steps 1200 --valid-size 0 --quiet -o copy.safetensors
echo '1 2 3 4 5 6 7 8 9 10' |
    "$tools/generate" --model copy.safetensors --quiet --attention heatmap.svg > output
[ "$(cat output)" = '1 2 3 4 5 6 7 8 9 10' ] || fail "the model has not learned to copy: $(cat output)"
same heatmap.svg 'run tools/quickstart.sh and copy quickstart/attention-heatmap.svg'

# Each example has a picture, and gives the same bits everywhere.
python=$(command -v python3) && {
    "$python" "$source/tools/pictures/draw_examples.py" "$source" "$tools/.." examples > left
    for example in "$source"/tools/examples/*.c "$source"/tools/examples/*.cpp; do
        picture=example_$(basename "${example%.c*}").svg
        grep -q "($(basename "$example")).*(../pictures/$picture)" "$source/tools/examples/README.md" ||
            fail "the README of the examples does not show $picture"
        [ -e "examples/$picture" ] || grep -q "$(basename "${example%.c*}")" left || fail "$picture was not drawn"
        [ ! -e "examples/$picture" ] || cmp "examples/$picture" "$source/tools/pictures/$picture" ||
            fail "tools/pictures/$picture is not what the example prints today: tools/pictures/draw_examples.py . build tools/pictures"
    done
    echo "pictures: $(ls examples | wc -l) of examples are what they print today"
}

"$tools/graph" --of attention > attention.dot
if command -v dot > /dev/null; then
    dot -Tsvg attention.dot -o attention.svg
    same attention.svg 'run tools/quickstart.sh where Graphviz is installed, and copy quickstart/attention.svg'
    echo "pictures: 2 are what is drawn today"
else
    echo "pictures: 1 is what is drawn today; no Graphviz for the other"
fi
