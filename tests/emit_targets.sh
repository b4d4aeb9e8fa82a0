#!/bin/sh
# tests/emit_targets.sh - the files of graph --emit-c on other compilers, processors and without a C library: a table.
#
# usage: emit_targets.sh [WAY...]    all of them (minutes on two cores), or those named: emit_targets.sh cortex-m4f
#
#   gcc clang tcc                                this machine's compilers
#   i386 aarch64 riscv64                         static; the last two in qemu-user
#   cortex-m3 cortex-m4f cortex-m7 cortex-m33    boards of qemu-system-arm, without a C library (targets/cortex.c)
#   wasm                                         clang and lld, in node (targets/wasm.js)
#   sanitizers analyze                           address and undefined behaviour; gcc's and clang's analyzer, cppcheck
#
# Four small models are trained: the copy task, a translator with byte pairs, and language models of the forms of GPT and of
# Llama. Their files are compiled alone, every warning an error, and need no symbol but those of the compiler's runtime. Then
# they answer lines. The text must be that of generate, byte for byte, and the bits of each score those that this machine's
# compiler gives. For the Cortex-M the sizes of the copy model's program are told, and the instructions of a line: the emulator
# knows no time.
#
# The programs are those of build/tools (WEFT_TOOLS: another folder). Work is kept in build-targets/ (WEFT_TARGETS: another
# folder), logs too: build-targets/WAY.log. On Debian all of it needs: gcc clang tcc lld nodejs gcc-i686-linux-gnu
# gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user gcc-arm-none-eabi qemu-system-arm clang-tools
# cppcheck. What is missing is said. Exits with 1 if a way failed, with 77 if none could run.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$(cd "${WEFT_TOOLS:-$root/build/tools}" && pwd)
out=${WEFT_TARGETS:-$root/build-targets}
mkdir -p "$out"
out=$(cd "$out" && pwd)
here=$root/tests/targets
all_ways='gcc clang tcc i386 aarch64 riscv64 cortex-m3 cortex-m4f cortex-m7 cortex-m33 wasm sanitizers analyze'
models='copy translator gpt llama'
strict='-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -ffreestanding -nostdlib'

has() { command -v "$1" > /dev/null 2>&1; }
need() { for program in "$@"; do has "$program" || { echo "no $program" > "$out/$way.why"; return 77; }; done; }

# ---- models ----------------------------------------------------------------------------------------

# Pairs in which a word has another name, and the first two change places.
write_pairs() {
    awk 'BEGIN {
        split("der ein Hund Mann Garten läuft schläft im roten kleinen Haus und", source, " ")
        split("the a dog man garden runs sleeps in red small house and", target, " ")
        for (i = 0; i < 400; i++) {
            a = b = ""
            for (k = 0; k < 2 + i % 6; k++) {
                w = 1 + (i * 7 + k * k * 3 + k) % 12
                a = a (k ? " " : "") source[w]
                b = k == 1 ? target[w] " " b : b (k ? " " : "") target[w]
            }
            print a "\t" b
        }
    }' > pairs.tsv
}

write_lines() {
    awk 'BEGIN { for (i = 0; i < 40; i++) {
        for (k = 0; k < 1 + i % 9; k++) printf "%s%d", k ? " " : "", 1 + (i * 7 + k * k) % 10
        print "" } }' > copy.lines
    { awk -F '\t' 'NR % 20 == 0 { print $1 }' pairs.tsv; echo 'Der unbekannte Käfer 日本 ?'; echo; } > translator.lines
    { awk 'NF > 4 { print $1, $2, $3 }' "$root/LICENSE" | head -n 12; echo; echo 'é'; } > gpt.lines
    cp gpt.lines llama.lines
}

# train NAME OPTIONS...: its file, and what generate answers
make_model() {
    name=$1 emit=$2
    shift 2
    "$tools/train" "$@" --seed 1 --threads 1 --quiet --overwrite -o "$name" > /dev/null &&
        "$tools/graph" --emit-c "$name" $emit -o "$name.c" 2> "$name.sizes" &&
        "$tools/generate" "$name" --quiet --threads 1 < "$name.lines" > "$name.expected" &&
        cc -std=c11 -O2 -include "$name.c" "$here/hosted.c" -o "$name.program" &&
        "./$name.program" < "$name.lines" > "$name.answers"
}

make_models() {
    text='--d-model 32 --heads 4 --layers 2 --d-ff 64 --max-len 24 --batch-size 16 --max-steps 200'
    cd "$out"
    write_pairs && write_lines || return 1
    # The sizes of a model of the task as train chooses them.
    make_model copy '--max-length 20' --task copy --max-steps 300 --valid-size 0 &&
        make_model translator '--beam 4 --max-length 24' --train pairs.tsv --tokenizer bpe --share-vocab --vocab-size 200 $text --valid-size 20 &&
        make_model gpt '' --task lm --text "$root/LICENSE" --tokenizer byte-bpe --vocab-size 300 $text --text-eval-size 0 &&
        make_model llama '' --task lm --text "$root/LICENSE" --tokenizer text-char --form llama --kv-heads 2 $text --text-eval-size 0
}

# ---- steps of a way --------------------------------------------------------------------------------

# alone SYMBOLS NM CC...: each file as an object, at several levels; the only undefined symbols match SYMBOLS
alone() {
    symbols=$1 nm=$2
    shift 2
    for level in -O0 -Os -O2 -O3; do
        for name in $models; do
            "$@" $strict $level -c "$out/$name.c" -o "$folder/$name.o" || return 1
            found=$("$nm" -u "$folder/$name.o" | awk '{ print $NF }' | grep -vxE "$symbols" || true)
            [ -z "$found" ] || { echo "error: $name.c with $level needs" $found; return 1; }
        done
    done
    ran="alone"
}

# answers NAME: the file $folder/got has this model's answers
answers() {
    cut -f 2- "$folder/got" | cmp - "$out/$1.expected" || { ran="$ran; OTHER TEXT of $1"; return 1; }
    cmp "$folder/got" "$out/$1.answers" || { ran="$ran; OTHER BITS of $1's scores"; return 1; }
    lines=$((lines + $(wc -l < "$folder/got")))
}

# hosted EMULATOR CC...: each program's answers
hosted() {
    emulator=$1
    shift
    for name in $models; do
        "$@" -include "$out/$name.c" "$here/hosted.c" -o "$folder/$name" || return 1
        $emulator "$folder/$name" < "$out/$name.lines" > "$folder/got" || return 1
        answers "$name" || return 1
    done
    ran="$ran, $* ran"
}

native() {
    need "$1" || return 77
    alone "${2:-none}" nm "$1" && hosted '' "$1" -O2 && hosted '' "$1" -O3 -march=native
}

# foreign PREFIX EMULATOR SYMBOLS FLAGS...
foreign() {
    prefix=$1 emulator=$2 symbols=$3
    shift 3
    need "$prefix-gcc" $emulator || return 77
    alone "$symbols" "$prefix-nm" "$prefix-gcc" "$@" && hosted "$emulator" "$prefix-gcc" "$@" -O2 -static
}

# The x87 unit computes other bits, so a file for it does not let itself be compiled.
i386_way() {
    foreign i686-linux-gnu '' '__u?(div|mod)di3|_GLOBAL_OFFSET_TABLE_|__x86.*' -msse2 -mfpmath=sse || return
    ! i686-linux-gnu-gcc -c "$out/copy.c" -o "$folder/x87.o" 2> "$folder/said" && grep 'other bits' "$folder/said" &&
        ran="$ran, x87 refused"
}

# cortex BOARD FLASH RAM TICK FLAGS...
cortex() {
    board=$1 flash=$2 ram=$3 tick=$4
    shift 4
    need arm-none-eabi-gcc qemu-system-arm || return 77
    alone '__aeabi_.*' arm-none-eabi-nm arm-none-eabi-gcc "$@" || return 1
    for name in $models; do
        arm-none-eabi-gcc -std=c11 -O2 "$@" -ffreestanding -nostdlib -nostartfiles -DTICK="$tick" -include "$out/$name.c" \
            "$here/cortex.c" -T "$here/cortex.ld" -Wl,--defsym=FLASH="$flash",--defsym=RAM="$ram" -lgcc \
            -o "$folder/$name.elf" || return 1
        cp "$out/$name.lines" "$folder/lines"
        (cd "$folder" && rm -f got && timeout 900 qemu-system-arm -M "$board" -display none -serial none -monitor none \
            -icount shift=0 -semihosting-config enable=on,target=native -kernel "$name.elf" > said 2>&1) ||
            { cat "$folder/said"; return 1; }
        echo "$name: $(cat "$folder/said")"
        answers "$name" || return 1
        [ $name != copy ] || sizes=$(arm-none-eabi-size "$folder/copy.elf" | awk 'NR == 2 { print $1 + $2 }')
        [ $name != copy ] || said=$(cat "$folder/said")
    done
    ran="$ran, $board; copy: $sizes bytes of flash, $(sed 's/ bytes of memory.*//; s/.*: //' "$out/copy.sizes") of memory, $said"
}

wasm_way() {
    need clang wasm-ld node || return 77
    flags='--target=wasm32 -O3 -ffreestanding -nostdlib'
    # nm does not read such objects. The linker refuses undefined symbols, and wasm.js imports.
    alone none true clang --target=wasm32 || return 1
    for extra in '' -msimd128; do
        for name in $models; do
            clang $flags $extra -std=c11 -include "$out/$name.c" "$here/wasm.c" -Wl,--no-entry,-z,stack-size=65536,--stack-first \
                -o "$folder/$name.wasm" || return 1
            node "$here/wasm.js" "$folder/$name.wasm" < "$out/$name.lines" > "$folder/got" || return 1
            answers "$name" || return 1
        done
    done
    ran="$ran, node, without SIMD and with it"
}

sanitizers_way() {
    need gcc || return 77
    checks=address,undefined
    hosted '' gcc -O1 -g1 -fsanitize=$checks -fno-sanitize-recover=all || return 1
    ! has clang || hosted '' clang -O1 -g1 -fsanitize=$checks,float-cast-overflow -fno-sanitize-recover=all || return 1
    ran='address and undefined behaviour, by gcc and clang: nothing found'
}

# The weights are left out: reading so many numbers takes an analyzer minutes. cppcheck takes a struct whose members are set one
# by one for uninitialised.
analyze_way() {
    need gcc clang cppcheck || return 77
    for name in $models; do
        awk '/^static const float first_weights.*\{$/ { print $0 " 0 };"; skips = 1 }
            !skips { print }
            /^};/ { skips = 0 }' "$out/$name.c" > "$folder/$name.c"
        echo "$name: gcc" && gcc -std=c11 -O1 -fanalyzer -Werror -c "$folder/$name.c" -o "$folder/$name.o" || return 1
        echo "$name: clang" && clang --analyze --analyzer-output text -std=c11 -DMODEL_MAIN "$folder/$name.c" > "$folder/found" 2>&1
        [ ! -s "$folder/found" ] || { cat "$folder/found"; return 1; }
        echo "$name: cppcheck" && cppcheck --quiet --std=c11 --enable=warning,portability --suppress=ctuuninitvar --error-exitcode=1 -DMODEL_MAIN "$folder/$name.c" ||
            return 1
    done
    ran='gcc -fanalyzer, clang --analyze, cppcheck: nothing found'
}

run_way() {
    folder=$out/$way ran='' lines=0
    mkdir -p "$folder"
    case $way in
        gcc | clang | tcc) native "$way" ;;
        i386) i386_way ;;
        aarch64) foreign aarch64-linux-gnu qemu-aarch64 none ;;
        riscv64) foreign riscv64-linux-gnu qemu-riscv64 none ;;
        cortex-m3) cortex mps2-an385 0 0x20000000 40 -mcpu=cortex-m3 -mthumb ;;
        cortex-m4f) cortex mps2-an386 0 0x20000000 40 -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard ;;
        cortex-m7) cortex mps2-an500 0 0x20000000 40 -mcpu=cortex-m7 -mthumb -mfpu=fpv5-d16 -mfloat-abi=hard ;;
        cortex-m33) cortex mps2-an505 0x10000000 0x38000000 50 -mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard ;;
        wasm) wasm_way ;;
        sanitizers) sanitizers_way ;;
        analyze) analyze_way ;;
        *) echo "emit_targets.sh: there is no way called $way" >&2; exit 2 ;;
    esac
}

main() {
    failed=0 ran_any=0
    make_models > "$out/models.log" 2>&1 || { tail -n 5 "$out/models.log" >&2; echo 'emit_targets.sh: the models FAILED' >&2; exit 1; }
    printf '%-11s| %-110s| %-6s| %s\n' way 'what ran' lines seconds
    for way in ${*:-$all_ways}; do
        begin=$(date +%s)
        rm -f "$out/$way.why" "$out/$way.row"
        ( run_way && status=0 || status=$?; echo "$status|$ran|$lines" > "$out/$way.row" ) > "$out/$way.log" 2>&1 ||
            { tail -n 3 "$out/$way.log" >&2; exit 2; }
        IFS='|' read -r status ran lines < "$out/$way.row"
        case $status in
            0) ran_any=1 ;;
            77) ran="not run: $(cat "$out/$way.why" 2> /dev/null)" ;;
            *) failed=1 ran="FAILED: ${ran:-does not compile}, see $out/$way.log" ;;
        esac
        printf '%-11s| %-110s| %-6s| %s\n' "$way" "$ran" "$lines" $(($(date +%s) - begin))
        case $status in 0 | 77) ;; *) tail -n 12 "$out/$way.log" ;; esac
    done
    [ $failed = 0 ] || exit 1
    [ $ran_any = 1 ] || exit 77
}
main "$@"
exit 0
