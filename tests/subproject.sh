#!/bin/sh
# tests/subproject.sh - one program and one meson.build, against an installed weft and with weft as a subproject.
#
# usage: subproject.sh SOURCE_FOLDER BUILD_FOLDER    works in a temporary folder; exits 77 without meson or pkg-config
#
# The program is the README's, linked with the shared library and with the static one. Beside it the examples, a file that
# does not compile where more of weft can be included than is installed, and one that asks for the version.
set -eu
source=$1 build=$2
for program in meson pkg-config; do
    command -v $program > /dev/null || { echo "no $program: skipped"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
quietly() { "$@" > "$folder/log" 2>&1 || { cat "$folder/log"; echo "failed: $*"; exit 1; }; }

mkdir -p "$folder/program/subprojects"
cd "$folder/program"
ln -s "$source" subprojects/weft
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$source/README.md" > example.c
cat > version.c << 'END'
#include <string.h>
#include <weft/weft.h>

#if __has_include(<nn/nn.h>) || __has_include(<tests/support/support.h>) || __has_include(<weft/tests/support/support.h>) || \
    __has_include(<weft/core/record/record.h>) || __has_include(<weft/tools/cli/options.h>)
#error "more of weft can be included than its public headers"
#endif

int main(void) {
    return strcmp(wf_version(), WF_VERSION) || WF_VERSION_MAJOR * 100 + WF_VERSION_MINOR < 1;
}
END
mkdir examples
cp "$source"/tools/examples/*.[ch]* examples
examples=$(cd examples && ls *.c | sed "s/\(.*\)\.c/'\1', /" | tr -d '\n')
cat > meson.build << END
project('program', 'c', default_options: ['buildtype=release', 'c_std=c17', 'warning_level=3', 'werror=true'])
foreach kind, static : { 'shared': false, 'static': true }
  weft = dependency('weft', fallback: 'weft', static: static)
  executable('example-' + kind, 'example.c', dependencies: weft)
  executable('version-' + kind, 'version.c', dependencies: weft)
endforeach
weft = dependency('weft', fallback: 'weft')
executable('version', 'version.c', dependencies: weft)
libraries = [weft, dependency('threads'), meson.get_compiler('c').find_library('m', required: false)]
foreach name : [$examples]
  executable(name, 'examples' / name + '.c', dependencies: libraries, c_args: ['-Wshadow', '-Wconversion'])
endforeach
if add_languages('cpp', native: false, required: false)
  executable('spiral', 'examples/spiral.cpp', dependencies: weft, override_options: ['cpp_std=c++17'])
endif
END

# try WAY: builds and runs the programs of the build folder WAY; static ones must not need the
# shared library.
try() {
    quietly meson compile -C "$1"
    for kind in '' -shared -static; do quietly "$1/version$kind"; done
    for kind in shared static; do quietly "$1/example-$kind" && cp "$folder/log" "$1.$kind"; done
    cmp "$1.shared" "$1.static"
    for name in examples/*.c*; do
        name=$(basename "${name%.*}")
        [ "$1" = installed ] || [ ! -x "$1/$name" ] || quietly "$1/$name" # tests/examples.sh runs the installed ones
    done
    ! readelf -d "$1/example-static" 2> /dev/null | grep -q 'NEEDED.*libweft' ||
        { echo "$1: the static program asks for the shared library"; exit 1; }
}

quietly meson install -C "$build" --no-rebuild --destdir "$folder/installed"
pc=$(find "$folder/installed" -name weft.pc)
for text in LICENSE README.md; do
    [ -n "$(find "$folder/installed" -path "*/doc/weft/$text")" ] || { echo "$text is not installed"; exit 1; }
done
export PKG_CONFIG_PATH="$(dirname "$pc")" PKG_CONFIG_SYSROOT_DIR="$folder/installed"
quietly meson setup --wrap-mode=nofallback installed
LD_LIBRARY_PATH=$(dirname "$(dirname "$pc")") try installed
mkdir reader
cp example.c reader
awk '/^```meson$/ { on = 1; next } /^```/ { on = 0 } on' "$source/tools/package/README.md" > reader/meson.build
quietly meson setup --wrap-mode=nofallback reader/build reader
quietly meson compile -C reader/build
# Without optimisation the build is quick, and its programs are slow, but give the same bits.
quietly meson setup --force-fallback-for=weft -Doptimization=0 -Dweft:kernel-level=1 -Dweft:kernels=base subproject
try subproject
cmp installed.shared subproject.shared
echo "subproject: the same program builds and runs against an installed weft and with weft as a subproject"
