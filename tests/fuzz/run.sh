#!/bin/sh
# tests/fuzz/run.sh - builds the fuzz targets with clang, libFuzzer and sanitizers, and runs them.
#
# usage: run.sh [RUNS [TARGET ...]]   RUNS of each target (default 1,000,000), one after the other;
#                                     0: no limit, until a target fails or you stop it
#        SECONDS_EACH=20 run.sh 0     so many seconds of each target
#        MAX_LEN=256 run.sh           inputs no longer than that (default 65536): many more a second
#        QUICK=1 run.sh               without tracing comparisons, inputs up to 2048 bytes or the
#                                     largest seed: twice as many a second, guided by coverage
#                                     alone; in build-fuzz-quick
#        run.sh --merge [TARGET ...]  what was found goes into corpus/, in place of what did before: of
#                                     the inputs that reach the same code the smallest, none above
#                                     8 kB, at most 140 files and 140 kB a target
#        run.sh --build [TARGET ...]  builds them, and no more
#        run.sh --damage TARGET FLIPS FILE...   no fuzzing: every truncation of files, and so many of
#                                     their bits flipped, one at a time
#
# Needs clang with libFuzzer (Debian: clang and libclang-rt-14-dev, or the version of your clang).
# Works in build-fuzz beside the sources, which git ignores; inputs that reach new code are kept
# there, and are where the next run starts. The seeds are in corpus/, which the ordinary tests replay.
# Exits 1 when a target failed: the input is build-fuzz/TARGET-crash-...; put it into corpus/TARGET
# and mend the fault. FUZZ_LOUD=1 shows the report of a crash in `settings`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${BUILD:-$root/build-fuzz${QUICK:+-quick}}
all="safetensors model state_dict torch_file vocabulary codes byte_level spm tokenizer hf marian text json settings pairs metrics shortlist links"
mode=run
case ${1:-} in --merge | --build | --damage) mode=${1#--}; shift ;; esac
runs=1000000
[ $mode != run ] || [ $# -eq 0 ] || { runs=$1; shift; }
targets=${*:-$all}
[ $mode != damage ] || targets=$1
CC=${CC:-clang}
flags='-std=c17 -D_POSIX_C_SOURCE=200809L -O1 -g -fno-omit-frame-pointer -ffp-contract=off'
check='-fsanitize=address,undefined -fno-sanitize-recover=all'

${CC#ccache } --version > /dev/null 2>&1 || { echo "no $CC here: install clang, or set CC" >&2; exit 2; }

# compile SOURCE FLAGS...: into its object, if that is older than the source or any header
newest=$(find "$root" -name '*.h' -o -name '*.inc' | grep -v /build | xargs ls -t | sed -n 1p)
objects=
compile() {
    case $1 in /*) source=$1 ;; *) source=$root/$1 ;; esac
    object=$out/objects/$(echo "$1" | tr / -).o
    shift
    objects="$objects $object"
    [ "$object" -nt "$source" ] && [ "$object" -nt "$newest" ] || $CC $flags -I"$root" "$@" -c "$source" -o "$object"
}

# Files with loops over every byte. Tracing the comparisons of their counters would take half of
# the time, so it is left out.
loops='core/file/crc32.c models/text/sentencepiece/spm_trie.c'
tracing() {
    case " $loops ${QUICK:+$1} " in *" $1 "*) echo -fno-sanitize-coverage=trace-cmp ;; esac
}

# Writes the C files with the texts of which emitted files are made, by the rules of the Meson
# build.
write_texts() {
    [ -e "$out/texts/build.ninja" ] || meson setup "$out/texts" "$root" > "$out/texts.log" || exit 1
    texts=$(ninja -C "$out/texts" -t targets all | sed -n 's/^\([^ ]*\.c\): CUSTOM_COMMAND.*$/\1/p')
    ninja -C "$out/texts" $texts > "$out/texts.log" || exit 1
}

# Compiles the library, its kernels without instrumentation, and $tools, the parts of the programs.
build_library() {
    mkdir -p "$out/objects"
    write_texts
    for source in $(cd "$root" && find core ops nn models -name '*.c' ! -path '*/kernels/*' ! -name 'plain_*') $tools $more \
        $(printf "$out/texts/%s " $texts); do
        compile "$source" $check -fsanitize=fuzzer-no-link $(tracing "$source")
    done
    compile ops/kernels/kernels.c
    compile ops/kernels/cache_blocks.c
    kernels="-O2 -ffp-contract=fast -fno-math-errno -fno-trapping-math"
    sets=base
    case $(uname -m) in x86_64) sets='base avx2 avx512' ;; aarch64) sets='base neon' ;; esac
    for set in $sets; do
        for real in f32 f64; do
            case $set in
                avx2) compile ops/kernels/avx2_$real.c $kernels -mavx2 -mfma -mf16c ;;
                avx512) compile ops/kernels/avx512_$real.c $kernels -mavx512f -mavx512vl -mavx512bw \
                    -mavx512dq -mavx2 -mfma -mf16c ;;
                *) compile ops/kernels/${set}_$real.c $kernels ;;
            esac
        done
    done
    rm -f "$out/libweft.a"
    ar rcs "$out/libweft.a" $objects
}
# The parts of the programs, except files with a main, those that need an MPI, those of bench, and
# those of the course, whose build must name a compiler.
tools=$(cd "$root" && find tools -mindepth 2 -name '*.c' ! -name 'plain_*' ! -path '*/bench/*' ! -path '*/learn/*' ! -name '*mpi*' |
    xargs grep -L '^int main(')
more='tests/fuzz/fuzz_file.c tests/fuzz/mutant.c tests/fuzz/mutator.c tests/support/shortlists.c'

build_target() {
    wrap= how=-fsanitize=fuzzer program=$out/fuzz_$1
    [ "$1" != settings ] || wrap=-Wl,--wrap=exit
    [ $mode != damage ] || { how=$here/damage.c; program=$out/damage_$1; }
    $CC $flags -I"$root" $check $how -DWEFT_LIBFUZZER $wrap "$here/fuzz_$1.c" "$out/libweft.a" \
        -lm -lpthread -o "$program"
}

run_target() {
    mkdir -p "$out/corpus/$1"
    limit=$runs
    [ "$runs" != 0 ] || limit=-1
    longest=65536 more=
    if [ -n "${QUICK:-}" ]; then
        # -max_len is at least the size of the largest seed: a cut file is rarely valid, and that seed may be the only one.
        longest=$(find "$here/corpus/$1" -type f -exec wc -c {} + | awk '$2 != "total" && $1 > most { most = $1 }
            END { print (most > 2048 ? most : 2048) }') more="-entropic=0 -use_cmp=0"
    fi
    echo "== $1"
    "$out/fuzz_$1" -runs="$limit" -max_total_time="${SECONDS_EACH:-0}" -max_len="${MAX_LEN:-$longest}" $more \
        -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="$out/$1-" \
        $(dictionary "$1") \
        "$out/corpus/$1" "$here/corpus/$1"
}

# Prints the option that gives libFuzzer a target's dictionary, words that chance would not find:
# the target's own, or those of texts.
dictionary() {
    case $1 in
        json | tokenizer | settings | torch_file | hf) echo "-dict=$here/dict/$1.dict" ;;
        text | vocabulary | codes | byte_level | spm | pairs | metrics) echo "-dict=$here/dict/text.dict" ;;
    esac
}

# Replaces the inputs in corpus/ that were found, which are named by their hash; the seeds stay. Of
# the merged inputs, sorted by size, it takes each one, or every second, third... so that there are
# few enough.
merge_target() {
    rm -rf "$out/merged/$1" "$out/small/$1"
    mkdir -p "$out/merged/$1" "$out/small/$1" "$out/corpus/$1"
    find "$here/corpus/$1" "$out/corpus/$1" -type f -size -17 -exec cp -n {} "$out/small/$1/" \;
    "$out/fuzz_$1" -merge=1 -timeout=20 "$out/merged/$1" "$out/small/$1" > "$out/$1-merge.log" 2>&1
    stride=0 files=1000 bytes=0
    while [ $files -gt 140 ] || [ $bytes -gt 140000 ]; do
        stride=$((stride + 1))
        chosen=$(cd "$out/merged/$1" && ls -rS | awk "NR % $stride == 0")
        files=$(echo "$chosen" | wc -l)
        bytes=$(cd "$out/merged/$1" && cat $chosen | wc -c)
    done
    find "$here/corpus/$1" -regextype egrep -regex '.*/[0-9a-f]{40}' -delete
    for file in $chosen; do cp -n "$out/merged/$1/$file" "$here/corpus/$1/"; done
    echo "$1: $(ls "$here/corpus/$1" | wc -l) files, $(du -sk --apparent-size "$here/corpus/$1" | cut -f1) kB"
}

# Blocks are small and freed at once: a shorter queue of freed ones is twice as fast.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=4}
build_library
failed=0
for target in $targets; do
    build_target "$target"
    [ $mode != run ] || run_target "$target" || failed=1
    [ $mode != merge ] || merge_target "$target"
done
if [ $mode = damage ]; then
    shift
    "$out/damage_$targets" "$@" || failed=1
fi
exit $failed
