#!/bin/sh
# tests/install.sh - an installed weft as its users meet it: the README's C program, the headers, CMake, the programs.
#
# usage: install.sh SOURCE_FOLDER BUILD_FOLDER    installs into a temporary prefix; exits 77 without pkg-config.
set -eu
source=$1 build=$2
command -v pkg-config > /dev/null || { echo "no pkg-config: skipped"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "install: $*"; exit 1; }
quietly() { "$@" > "$folder/log" 2>&1 || { cat "$folder/log"; fail "$*"; }; }
quietly meson install -C "$build" --no-rebuild --destdir "$folder"
pc=$(find "$folder" -name weft.pc)
prefix=$folder$(pkg-config --variable=prefix "$pc")
export PKG_CONFIG_PATH="$(dirname "$pc")"
libraries=$(dirname "$PKG_CONFIG_PATH")
mkdir "$folder/program"
cd "$folder/program"

# The README's program learns.
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$source/README.md" > example.c
[ -s example.c ] || fail "README.md holds no C program"
flags="$(pkg-config --define-variable=prefix="$prefix" --cflags --libs weft)"
${CC:-cc} -Wall -Wextra -Werror -std=c17 example.c ${WEFT_TEST_CFLAGS:-} $flags -o example
LD_LIBRARY_PATH=$libraries ./example | tee output
grep -q '^loss ' output || fail "the example printed no loss"
awk '/^loss / { if (!n++) first = $2; last = $2 } END { exit !(last < first / 10) }' output ||
    fail "the example did not learn"

# The program in the comment of custom.h, which defines an op, compiles, and its gradient is right.
sed -n '/^ \* *This is a complete op/,/\*\/$/s/^ \*     //p' "$prefix/include/weft/ops/custom.h" > own_op.c
grep -q '^int main' own_op.c || fail "ops/custom.h holds no program"
${CC:-cc} -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -std=c17 own_op.c ${WEFT_TEST_CFLAGS:-} $flags -lm -o own_op
LD_LIBRARY_PATH=$libraries ./own_op | grep -q 'error below 1e-8' || fail "the gradient of the op in custom.h is wrong"

# Each header compiles alone, in every language of every compiler that is here.
headers=$(cd "$prefix/include" && find weft -name '*.h' | sort)
echo "$headers" | grep -qx weft/weft.h || fail "weft/weft.h is not installed"
n=0
for header in $headers; do
    n=$((n + 1))
    printf "#include <%s>\ntypedef int not_empty;\n" "$header" | tee "header$n.cc" > "header$n.c"
done
# with COMPILER STANDARD: compiles the headers in that language
with() {
    command -v "$1" > /dev/null || return 0
    case $2 in *++*) files=*.cc ;; *) files=header*.c ;; esac
    quietly "$1" "-std=$2" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -I "$prefix/include" $files
    ways="$ways, $1 $2"
}
ways=
for standard in c11 c17 c2x; do with gcc $standard && with clang $standard; done
for standard in c++14 c++17 c++20; do with g++ $standard && with clang++ $standard; done
echo "install: $n headers, each alone:${ways#,}"

cat > version.c << 'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>
#if WF_VERSION_NUMBER < 100 || WF_VERSION_NUMBER / 10000 != WF_VERSION_MAJOR
#error "WF_VERSION_NUMBER"
#endif
int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *seven = wf_add(wf_constant(g, 3), wf_constant(g, 4));
    wf_plan_options what = { .fetch = &seven, .n_fetch = 1 };
    wf_plan *p = wf_plan_new(g, &what);
    char text[16] = "", *dot = wf_dot(&seven, 1, NULL, NULL);
    wf_run(p), wf_print(p, seven, text, sizeof text);
    int drawn = dot && strncmp(dot, "digraph", 7) == 0;
    free(dot), wf_plan_free(p), wf_graph_free(g);
    return !drawn || strcmp(text, "7") || strcmp(wf_version(), WF_VERSION);
}
END
# The example for CMake in tools/package builds with the shared and with the static library.
# find_package does not accept weft as version 99.0.
if command -v cmake > /dev/null; then
    for kind in weft weft_static; do
        mkdir "$kind"
        awk '/^```cmake$/ { on = 1; next } /^```/ { on = 0 } on' "$source/tools/package/README.md" |
            sed "s/weft::weft)/weft::$kind)/" > "$kind/CMakeLists.txt"
        echo 'find_package(weft 99.0 QUIET)
if(weft_FOUND)
  message(FATAL_ERROR "weft ${weft_VERSION} is taken for 99.0")
endif()' >> "$kind/CMakeLists.txt"
        cp version.c "$kind/example.c"
        CFLAGS="${WEFT_TEST_CFLAGS:-}" quietly cmake -S "$kind" -B "$kind/build" -Dweft_DIR="$libraries/cmake/weft"
        quietly cmake --build "$kind/build"
        "$kind/build/example" || fail "with CMake, $kind: the wrong sum or version"
    done
    ! readelf -d weft_static/build/example 2> /dev/null | grep -q 'NEEDED.*libweft' || fail "CMake: static is not static"
    echo "install: CMake finds it, shared and static"
fi

# The soname and the symbol versions name the series, so a program of another series does not start. (A library
# of the name that 0.1 had, without any code, stands for the one that such a program was linked with.)
series=$(pkg-config --modversion weft | cut -d. -f1-2)
case $series in 0.*) ;; *) series=${series%%.*} ;; esac
if [ "$(uname)" = Linux ]; then
    readelf -d "$libraries/libweft.so" | grep -q "SONAME.*\[libweft.so.$series\]" || fail "the soname is not libweft.so.$series"
    echo 'const char *wf_version(void); const char *wf_version(void) { return ""; }' > before.c
    ${CC:-cc} -shared -fPIC -Wl,-soname,libweft.so.0 before.c -o libbefore.so
    echo 'const char *wf_version(void); int main(void) { return wf_version() == 0; }' > linked.c
    ${CC:-cc} linked.c ${WEFT_TEST_CFLAGS:-} -o linked libbefore.so
    ! LD_LIBRARY_PATH=$libraries ./linked 2> log || fail "a program of another series starts"
    grep -q 'libweft.so.0:' log || fail "a program of another series fails in another way: $(cat log)"
fi
if readelf -V "$libraries/libweft.so" 2> /dev/null | grep -q 'Version definition'; then
    for name in $(nm -D --defined-only "$libraries/libweft.so" | awk '$3 ~ /^wf_/ { print $3 }'); do
        case $name in *@@WEFT_$series) ;; *) fail "$name has no version" ;; esac
    done
elif [ "$(uname)" = Linux ]; then
    fail "the library's names have no versions"
fi

for text in LICENSE README.md CHANGES.md; do
    [ -s "$prefix/share/doc/weft/$text" ] || fail "share/doc/weft/$text is not installed"
done
for tool in train generate graph inspect convert tokenize embed; do
    "$(find "$prefix" -name "weft-$tool" -type f)" --version > /dev/null || fail "weft-$tool is not installed"
done

# The installed manual pages and completions are those that the programs print, and the pages that
# they refer to exist. mandoc looks for such pages in the system's folder alone, so this script
# looks for them.
share=$prefix/share
man=$(find "$prefix" -name man7 -type d)
man=${man%/man7}
pages=0
for program in $(find "$prefix" -name 'weft-*' -type f -perm -100 | sort); do
    name=$(basename "$program")
    same() { "$program" "$1" | cmp -s - "$2" || fail "$2 is not what $name $1 prints"; }
    same --man "$man/man1/$name.1"
    same --completion=bash "$share/bash-completion/completions/$name.bash"
    same --completion=zsh "$share/zsh/site-functions/_$name"
    same --completion=fish "$share/fish/vendor_completions.d/$name.fish"
    grep -q "^\.It .*$name\b" "$man/man7/weft.7" || fail "weft(7) does not name $name"
    pages=$((pages + 1))
done
[ $pages -ge 6 ] || fail "only $pages programs are installed"
: > log
for page in "$man"/man1/weft-*.1 "$man/man7/weft.7"; do
    ! command -v mandoc > /dev/null || mandoc -Tlint "$page" 2>&1 | grep -v 'referenced manual not found: Xr weft' > log || true
    [ ! -s log ] || { cat log; fail "mandoc has objections to $page"; }
    sed -nE 's/^\.(It )?Xr ([^ ]*) ([17]).*/man\3\/\2.\3/p' "$page" | while read -r other; do
        [ -e "$man/$other" ] || fail "$page refers to $other, which is not installed"
    done
done
command -v mandoc > /dev/null && lint="mandoc has no objections" || lint="no mandoc"
echo "install: $pages programs with manual pages and completions as they print them; $lint"

echo "install: the README's program builds and trains; the op in custom.h is right"
