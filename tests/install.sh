#!/bin/sh
# tests/install.sh - the README's C program, built against an installed weft as its reader would build it.
#
# usage: install.sh SOURCE_FOLDER BUILD_FOLDER    installs into a temporary prefix; exits 77 without pkg-config.
set -eu
source=$1 build=$2
command -v pkg-config > /dev/null || { echo "no pkg-config: skipped"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
meson install -C "$build" --no-rebuild --destdir "$folder" > "$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
pc=$(find "$folder" -name weft.pc)
prefix=$(pkg-config --variable=prefix "$pc")
export PKG_CONFIG_PATH="$(dirname "$pc")"
mkdir "$folder/program"
cd "$folder/program"
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$source/README.md" > example.c
[ -s example.c ] || { echo "README.md holds no C program"; exit 1; }
flags="$(pkg-config --define-variable=prefix="$folder$prefix" --cflags --libs weft)"
${CC:-cc} -Wall -Wextra -Werror -std=c17 example.c ${WEFT_TEST_CFLAGS:-} $flags -o example
LD_LIBRARY_PATH=$(dirname "$(dirname "$pc")") ./example | tee output
grep -q '^loss ' output || { echo "the example printed no loss"; exit 1; }
awk '/^loss / { if (!n++) first = $2; last = $2 } END { exit !(last < first / 10) }' output ||
    { echo "the example did not learn"; exit 1; }
grep -q '^digraph' graph.dot || { echo "the example wrote no graph"; exit 1; }
for tool in train generate graph inspect convert; do
    "$(find "$folder" -name "weft-$tool" -type f)" --version > /dev/null || { echo "weft-$tool is not installed"; exit 1; }
done
echo "install: the README's program builds, trains and draws"
