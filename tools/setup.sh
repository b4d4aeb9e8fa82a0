# tools/setup.sh - what the scripts that build weft share: find what is missing, install it, build. To be sourced.
#
# Only what is missing is installed, by the machine's own package manager. Without root or sudo the exact
# command is printed instead, with exit 2. apt-get has been tried; dnf, pacman and brew are written from
# their manuals and have NOT been tried.

say() { echo "$(basename "$0"): $*" >&2; }

has() { command -v "$1" > /dev/null 2>&1; }

# A compiler that is there but can't link (no headers of the C library) is missing too.
has_compiler() {
    # CC may have words: "ccache gcc".
    has ${CC:-cc} || return 1
    folder=$(mktemp -d)
    echo '#include <stdio.h>
int main(void) { return puts("") < 0; }' > "$folder/a.c"
    ${CC:-cc} "$folder/a.c" -o "$folder/a" 2> /dev/null && status=0 || status=1
    rm -rf "$folder"
    return $status
}

# is_there WHAT
is_there() {
    case $1 in
        compiler) has_compiler ;;
        meson) has meson ;;
        ninja) has ninja || has ninja-build || has samu ;;
        pkg-config) has pkg-config || has pkgconf ;;
        arm) has aarch64-linux-gnu-gcc && has qemu-aarch64 ;;
        mpi) has mpirun && { pkg-config --exists ompi-c 2> /dev/null || pkg-config --exists mpich 2> /dev/null; } ;;
        zlib) pkg-config --exists zlib 2> /dev/null || pkgconf --exists zlib 2> /dev/null ;;
        check) pkg-config --exists check 2> /dev/null || pkgconf --exists check 2> /dev/null ;;
    esac
}

# package MANAGER WHAT: its names there
package() {
    case $1:$2 in
        apt-get:compiler) echo gcc libc6-dev ;;
        apt-get:ninja | dnf:ninja) echo ninja-build ;;
        apt-get:arm) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ;;
        apt-get:zlib) echo zlib1g-dev ;;
        dnf:zlib) echo zlib-devel ;;
        apt-get:mpi) echo openmpi-bin libopenmpi-dev ;;
        dnf:mpi) echo openmpi-devel ;;
        pacman:mpi) echo openmpi ;;
        brew:mpi) echo open-mpi ;;
        dnf:compiler) echo gcc glibc-devel ;;
        dnf:pkg-config) echo pkgconf-pkg-config ;;
        dnf:check) echo check-devel ;;
        pacman:compiler) echo gcc ;;
        pacman:pkg-config) echo pkgconf ;;
        brew:compiler) echo gcc ;;
        *) echo "$2" ;;
    esac
}

# install_command MANAGER PACKAGES...
install_command() {
    manager=$1
    shift
    case $manager in
        apt-get) echo "apt-get update && apt-get install -y --no-remove --no-install-recommends $*" ;;
        dnf) echo "dnf install -y $*" ;;
        pacman) echo "pacman -Sy --noconfirm --needed $*" ;;
        brew) echo "brew install $*" ;;
    esac
}

# root MANAGER: print the command to become root: "" (root already, or not needed) or "sudo"; fail without either.
# A sudo that asks for a password counts only if stdin is a terminal.
root() {
    [ "$(id -u)" = 0 ] || [ "$1" = brew ] && return 0
    has sudo || return 1
    sudo -n true 2> /dev/null || [ -t 0 ] || return 1
    echo sudo
}

# need WHAT...: install each that is missing; exit with 2 if that fails, or if meson is too old. $fetched: a shell fetches
# lists of packages once.
need() {
    missing=
    for what in "$@"; do is_there "$what" || missing="$missing $what"; done
    if [ -n "$missing" ]; then install_missing $missing; fi
    oldest=$(printf '%s\n1.0.1\n' "$(meson --version)" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)
    if [ "$oldest" != 1.0.1 ]; then
        say "meson $(meson --version) is too old: 1.0.1 or later is needed, for example by: pip install meson"
        exit 2
    fi
}

# want WHAT FOLDER LOSS: install it if it is missing, and reconfigure the build folder; if that fails, print LOSS and go on.
want() {
    if is_there "$1"; then return; fi
    (install_missing "$1") || { say "going on without $1: $3"; return; }
    if [ -f "$2/build.ninja" ]; then meson setup --reconfigure "$2" > /dev/null; fi
}

install_missing() {
    for manager in apt-get dnf pacman brew none; do has $manager && break; done
    if [ $manager = none ]; then
        say "missing: $*; install them, no known package manager (apt-get, dnf, pacman, brew) is here"
        exit 2
    fi
    packages=
    for what in "$@"; do packages="$packages $(package $manager "$what")"; done
    command=$(install_command $manager $packages)
    if ! as=$(root $manager); then
        say "missing: $*; there is neither root nor sudo. As root, run:"
        echo "$command" >&2
        exit 2
    fi
    if [ -n "${fetched:-}" ]; then command=${command#apt-get update && }; fi
    fetched=yes
    say "installing$packages"
    $as env DEBIAN_FRONTEND=noninteractive sh -c "$command" >&2 || {
        say "that failed: $command"
        exit 2
    }
    for what in "$@"; do
        is_there "$what" || { say "$what is still missing after: $command"; exit 2; }
    done
}

# configure FOLDER OPTIONS...: set up a build folder, or set these options of the one that is there.
configure() {
    folder=$1
    shift
    if [ -f "$folder/build.ninja" ]; then meson configure "$folder" "$@" > /dev/null && return; fi
    rm -rf "$folder/meson-private" "$folder/meson-info"
    log=$(mktemp)
    ${nicely:-} meson setup "$folder" "$@" > "$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; exit 1; }
    rm -f "$log"
}

# compile FOLDER [TARGET...]: build, and print each tenth of the progress. The output of the compilers goes to
# FOLDER/compile.log; its end is printed if the build fails. $nicely: a prefix of the meson command, such as nice, or nothing.
compile() {
    folder=$1
    shift
    rm -f "$folder/compiled"
    { ${nicely:-} meson compile -C "$folder" "$@" 2>&1 && : > "$folder/compiled"; } | tee "$folder/compile.log" | tell_tenths
    [ -e "$folder/compiled" ] && return
    tail -n 40 "$folder/compile.log" >&2
    say "the build failed; all that was printed: $folder/compile.log"
    exit 1
}

# tell_tenths: read lines that begin with "[12/287]", and print a sentence for each tenth of the steps.
tell_tenths() {
    told=0
    while read -r line; do
        case $line in
            \[[0-9]*/[0-9]*\]*) ;;
            *) continue ;;
        esac
        steps=${line#?}
        steps=${steps%%]*}
        done=${steps%/*} all=${steps#*/}
        [ $((done * 10 / all)) -gt $told ] || continue
        told=$((done * 10 / all))
        say "built $done of $all"
    done
}
