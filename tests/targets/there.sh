#!/bin/sh
# tests/targets/there.sh - a compiler for another machine whose programs run here, in an emulator: for the suites that compile
# what they emit.
#
# usage: WEFT_EMIT_CC="tests/targets/there.sh qemu-riscv64 riscv64-linux-gnu-gcc -static" build/tests/weft-tests emit plain
#
# A linked program NAME becomes NAME.there, and NAME a script that runs it. Options for this machine's processor are left out.
set -eu
emulator=$1 program='' links=yes takes=''
shift
for word in "$@"; do
    shift
    [ -z "$takes" ] || program=$word
    takes=''
    case $word in
        -march=native) continue ;;
        -c | -S | -E) links='' ;;
        -o) takes=yes ;;
    esac
    set -- "$@" "$word"
done
"$@"
[ -n "$links" ] && [ -n "$program" ] || exit 0
mv "$program" "$program.there"
printf '#!/bin/sh\nexec %s "$0.there" "$@"\n' "$emulator" > "$program"
chmod +x "$program"
