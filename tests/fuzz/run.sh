#!/bin/sh
# tests/fuzz/run.sh - builds the fuzz targets with clang, libFuzzer and sanitizers, and runs them.
#
# usage: run.sh [RUNS [TARGET ...]]   RUNS of each target (default 1,000,000), one after the other;
#                                     0: no limit, until a target fails or you stop it
#        SECONDS_EACH=20 run.sh 0     so many seconds of each target
#        MAX_LEN=256 run.sh           inputs no longer than that (default 4096): many more a second
#
# Targets: safetensors vocabulary codes. Needs clang with libFuzzer (Debian: clang and
# libclang-rt-14-dev, or the version of your clang). Works in build-fuzz beside the sources, which
# git ignores; inputs that reach new code are kept there, and are where the next run starts. The
# seeds are in corpus/.
# Exits 1 when a target failed: the input is build-fuzz/TARGET-crash-...; put it into corpus/TARGET,
# where the ordinary tests replay it, and mend the fault.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${BUILD:-$root/build-fuzz}
runs=${1:-1000000}
[ $# -eq 0 ] || shift
targets=${*:-safetensors vocabulary codes}
CC=${CC:-clang}
flags='-std=c17 -D_POSIX_C_SOURCE=200809L -O1 -g -fno-omit-frame-pointer'
check='-fsanitize=address,undefined -fno-sanitize-recover=all'

command -v "$CC" > /dev/null || { echo "no $CC here: install clang, or set CC" >&2; exit 2; }

# The library's parts that read files, instrumented; the linker takes what a target needs.
library=$out/libweft.a
if [ ! -e "$library" ] ||
    [ -n "$(find "$root/core" "$root/models" -name '*.[ch]' -newer "$library")" ]; then
    mkdir -p "$out/objects"
    for source in "$root"/core/*.c "$root"/models/*.c; do
        object=$out/objects/$(basename "$(dirname "$source")")-$(basename "$source" .c).o
        "$CC" $flags $check -fsanitize=fuzzer-no-link -c "$source" -o "$object"
    done
    rm -f "$library"
    ar rcs "$library" "$out"/objects/*.o
fi

failed=0
for target in $targets; do
    "$CC" $flags $check -fsanitize=fuzzer -DWEFT_LIBFUZZER "$here/fuzz_$target.c" "$library" \
        -lm -lpthread -o "$out/fuzz_$target"
    mkdir -p "$out/corpus/$target"
    [ "$runs" = 0 ] && limit=-1 || limit=$runs
    echo "== $target"
    "$out/fuzz_$target" -runs="$limit" -max_total_time="${SECONDS_EACH:-0}" -max_len="${MAX_LEN:-4096}" \
        -timeout=10 -print_final_stats=1 -artifact_prefix="$out/$target-" \
        "$out/corpus/$target" "$here/corpus/$target" || failed=1
done
exit $failed
