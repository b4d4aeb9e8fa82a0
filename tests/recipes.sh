#!/bin/sh
# tests/recipes.sh - follows the instructions of the folders' READMEs for adding something, in a copy, and runs its tests.
#
# usage: recipes.sh SOURCE FOLDER      the copy is FOLDER/recipes; prints each edit; exits 1 at the first that fails
#
# A recipe's edits are a sentence that ends in one of
#     The file `PATH`:                     and a fenced block: a new file
#     In `PATH`, below `TEXT`:             and a fenced block: goes behind the first line that has TEXT
set -eu
source=$1 copy=$2/recipes
rm -rf "$copy"
mkdir -p "$copy"
(cd "$source" && cp -R core ops nn models tools tests weft.h weft.hpp meson.build meson_options.txt LICENSE README.md CHANGES.md SECURITY.md .clang-format "$copy")
cd "$copy"

# Writes each edit into a file of its own: the path, the text (none: a new file), then the block.
mkdir edits
awk -v folder=edits '
    FNR == 1 { edit = ""; inside = 0 }
    !inside && match($0, /The file `[^`]+`:$/) { split(substr($0, RSTART), part, "`"); edit = part[2]; text = "" }
    !inside && match($0, /In `[^`]+`, below `[^`]+`:$/) { split(substr($0, RSTART), part, "`"); edit = part[2]; text = part[4] }
    /^```/ { if (inside) { inside = 0; edit = ""; close(out) }
             else { inside = 1; out = "" 
                    if (edit != "") { out = sprintf("%s/%03d", folder, ++n); print edit > out; print text > out } }
             next }
    inside && out != "" { print > out }' core/README.md ops/README.md nn/README.md models/README.md tools/README.md

count=0
for edit in edits/*; do
    path=$(sed -n 1p "$edit") text=$(sed -n 2p "$edit")
    sed 1,2d "$edit" > block
    if [ -z "$text" ]; then
        [ ! -e "$path" ] || { echo "recipes: $path is there already" >&2; exit 1; }
        cp block "$path"
        echo "new: $path"
    else
        at=$(grep -nF -m 1 -e "$text" "$path" | cut -d: -f1)
        [ -n "$at" ] || { echo "recipes: no line of $path has '$text'" >&2; exit 1; }
        sed -i "${at}r block" "$path"
        echo "line $at of $path: $(wc -l < block) more"
    fi
    count=$((count + 1))
done
[ $count -gt 0 ] || { echo "recipes: none found" >&2; exit 1; }

# Without optimisation the build is quick, and its programs are slow. Warnings are errors, as for any
# change. Of the programs only those are built that run below.
CFLAGS= meson setup build -Dbuildtype=plain -Doptimization=0 -Dkernel-level=1 -Dc_args=-DSMALL_CODE -Dkernels=avx2,neon -Dtests=enabled -Dwerror=true > setup.log 2>&1 ||
    { cat setup.log >&2; exit 1; }
tools=$(printf 'tools/%s ' train generate graph inspect convert bench tokenize embed describe-ops)
shared=$(basename "$(readlink -f build/libweft.so)")
# shellcheck disable=SC2086 # words
ninja -C build "$shared" tests/recipe-tests $tools > build.log 2>&1 || { grep -A 8 -E 'error|FAILED' build.log >&2; exit 1; }
export WEFT_TOOLS=$PWD/build/tools
build/tests/recipe-tests --jobs 2
# The model that was added is trained with the flag that was added, resumed and run.
cd "$WEFT_TOOLS"
./train --arch bigram --task copy --lr-floor 1e-4 --max-steps 20 --valid-size 0 --quiet -o bigram.safetensors
./train --resume --max-steps 30 --valid-size 0 --quiet -o bigram.safetensors
./inspect bigram.safetensors | grep -E 'bigram model|lr-floor'
printf '5 6 7\n' | ./generate --model bigram.safetensors --beam 2 --quiet
./graph --model bigram.safetensors > bigram.dot
! ./graph --model bigram.safetensors --of attention > bigram.dot || exit 1
# A model is trained on the kind of data that was added, by one process and by two, which must
# write the same file.
./train --task successor --max-steps 20 --valid-size 60 --quiet -o one.safetensors
./train --task successor --max-steps 20 --valid-size 60 --quiet --processes 2 -o two.safetensors
cmp one.safetensors two.safetensors
./train --resume --max-steps 30 --valid-size 60 --json -o one.safetensors > events
grep -q '"event":"test".*"sequences":100' events
printf '5 6 7\n' | ./generate --model one.safetensors --quiet
cd "$copy"
# So are pages of the manual.
if command -v python3 > /dev/null; then
    python3 tools/docs/manual.py . build manual
    [ -e manual/ops/hardswish.html ] && [ -e manual/ops/normalize.html ] || exit 1
fi
tests/house.sh . build/libweft.so build/libweft.a > house.log 2>&1 || { cat house.log >&2; exit 1; }
echo "recipes: $count edits, built and tested"
