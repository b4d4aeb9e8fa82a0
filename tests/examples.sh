#!/bin/sh
# tests/examples.sh - the examples from an installed weft: each compiles in every language, and does what it says.
#
# usage: examples.sh SOURCE_FOLDER BUILD_FOLDER    installs into a temporary prefix; exits 77 without pkg-config.
#
# They are compiled as they are installed, in share/doc/weft/examples, as C11, C17, C23 and C++17, with gcc and clang.
# One language is linked and run: a program exits with 0 if it reached what it is there to show.
set -eu
source=$1 build=$2
command -v pkg-config > /dev/null || { echo "no pkg-config: skipped"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "examples: $*"; exit 1; }
quietly() { "$@" > "$folder/log" 2>&1 || { cat "$folder/log"; fail "$*"; }; }
quietly meson install -C "$build" --no-rebuild --destdir "$folder"
pc=$(find "$folder" -name weft.pc)
prefix=$folder$(pkg-config --variable=prefix "$pc")
export PKG_CONFIG_PATH="$(dirname "$pc")"
libraries=$(dirname "$PKG_CONFIG_PATH")
flags="$(pkg-config --define-variable=prefix="$prefix" --cflags --libs weft) -lm -pthread ${WEFT_TEST_CFLAGS:-}"
strict='-Wall -Wextra -Wshadow -Wconversion -Werror'
cd "$prefix/share/doc/weft/examples"
for example in "$source"/tools/examples/*; do
    case $example in */meson.build | */pytorch) continue ;; esac
    cmp -s "$example" "$(basename "$example")" || fail "$(basename "$example") is not installed"
done

# compile COMPILER STANDARD [FLAGS...] FILES...
ways=
compile() {
    command -v "$1" > /dev/null || return 0
    compiler=$1 standard=$2
    shift 2
    quietly "$compiler" "-std=$standard" $strict -fsyntax-only $(pkg-config --define-variable=prefix="$prefix" --cflags weft) "$@"
    ways="$ways, $compiler $standard"
}
for standard in c11 c17 c2x; do
    compile gcc $standard *.c
    compile clang $standard *.c
done
# C's initialisers leave fields out; of all these compilers only g++ warns of that.
compile g++ c++17 -Wno-missing-field-initializers -x c++ *.c
compile clang++ c++17 -x c++ *.c
for standard in c++17 c++20; do
    compile g++ $standard *.cpp
    compile clang++ $standard *.cpp
done
echo "examples: compile as${ways#,}"

mkdir "$folder/run"
for example in *.c *.cpp; do
    name=${example%.*} compiler="${CC:-cc} -std=c17"
    case $example in *.cpp)
        compiler="${CXX:-c++} -std=c++17"
        [ -z "${WEFT_TEST_CFLAGS:-}" ] && command -v "${CXX:-c++}" > /dev/null || continue ;;
    esac
    quietly $compiler -O2 $strict "$example" $flags -o "$folder/run/$name"
    echo "-- $name"
    (cd "$folder/run" && LD_LIBRARY_PATH=$libraries "./$name") || fail "$name did not reach what it is there to show"
done
for n in 1 2 4; do
    (cd "$folder/run" && LD_LIBRARY_PATH=$libraries ./data_parallel $n file.$n) || fail "data_parallel with $n processes"
    cmp "$folder/run/file.1" "$folder/run/file.$n" || fail "$n processes do not write the file of one"
done
echo "examples: all reach what they say"
