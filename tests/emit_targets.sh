#!/bin/sh
# tests/emit_targets.sh - the files of graph --emit-c on other compilers, processors and without a C library: a table.
#
# usage: emit_targets.sh [--kept] [--only "MODEL..."] [--lines N] [--runs N] [WAY...]
#
#   --kept     no models are trained: they are those that an earlier run left
#   --only     only these models and plans, for example: emit_targets.sh --only "copy8 gru_2" cortex-m4f
#   --lines N  a board answers the first N lines of each model (40)
#   --runs N   a board runs the first N recorded runs of each plan (3)
#   WAY        the ways that are taken (all of them, more than an hour on two cores):
#
#   gcc clang tcc                                this machine's compilers
#   i386 aarch64 riscv64                         static; the last two in qemu-user
#   cortex-m3 cortex-m4f cortex-m7 cortex-m33    boards of qemu-system-arm, without a C library (targets/cortex.c)
#   wasm                                         clang and lld, in node (targets/wasm.js)
#   sanitizers analyze                           address and undefined behaviour; gcc's and clang's analyzer, cppcheck
#
# Models are trained: the copy task, in f32 and in int8; dates; a translator with byte pairs, in f32, in int8, and in int8 with
# less memory, where a layer computes keys and values again; and language models of the forms of GPT and of Llama. The
# translator and the model of GPT's form are written with --batch too, and then give the same scores. The files are compiled
# alone, every warning an error, and need no symbol but those of the compiler's runtime. Then they answer lines.
# The text and the bits of each score must be those of generate. The training of the copy task is compared in the same way: its
# lines are numbers of updates, and the answers the checksum and the bytes of the file that `train` writes then. Plans are those
# of the programs in tools/examples, of a GRU, of a convolutional network and of an autoencoder, with the first 20 runs of each
# (targets/record_plans.c): the bits of all results must be those of the library. The last three compute outputs for 1,000 rows
# or images. Plans in f64 and ops of one's own have no form in C.
#
# A model has 1,000 different lines. Boards are emulated slowly, so each answers the first 40 of them and the first 3 runs of a
# plan, or as many as --lines and --runs say. For them the sizes of the copy model's program in int8 are told, and the
# instructions of a line: the emulator knows no time. copy8 has the sizes that `train` chooses; small8, with --d-ff 96, must fit
# into 200 KB of flash and 64 KB of memory with its stack. Both are compiled for size. The M3, which has no floating point, has
# no large plans.
#
# The programs are those of build/tools (WEFT_TOOLS: another folder). Work is kept in build-targets/ (WEFT_TARGETS: another
# folder), logs too: build-targets/WAY.log. On Debian all of it needs: gcc g++ clang tcc lld nodejs gcc-i686-linux-gnu
# gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu libc6-dev-arm64-cross libc6-dev-riscv64-cross qemu-user gcc-arm-none-eabi qemu-system-arm clang-tools
# cppcheck. What is missing is said. Exits with 1 if a way failed, with 77 if none could run.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$(cd "${WEFT_TOOLS:-$root/build/tools}" && pwd)
out=${WEFT_TARGETS:-$root/build-targets}
mkdir -p "$out"
out=$(cd "$out" && pwd)
here=$root/tests/targets
all_ways='gcc clang tcc i386 aarch64 riscv64 cortex-m3 cortex-m4f cortex-m7 cortex-m33 wasm sanitizers analyze'
models='copy copy8 small8 date translator translator8 kept8 translator_batch gpt gpt_batch llama training'
examples='char_lm custom_op data_parallel digits_cnn digits_mlp digits_vae gan lora resume server'
small_plans='custom_op_7 custom_op_8 gan_3 gru_2 lora_2 lora_3 networks_2 networks_4 resume_1 server_2 server_3'
plans="$small_plans networks_1 networks_3 char_lm_1 char_lm_2 data_parallel_1 data_parallel_2 digits_cnn_1 digits_cnn_2
    digits_mlp_1 digits_mlp_2 digits_vae_1 digits_vae_2 gan_1 gan_2 gru_1 lora_1 lora_6 lora_7 lora_8 resume_2 server_1
    spiral_1 spiral_2"
same_plans='lora_4 lora_5 server_4 server_5 server_6 server_7 server_8' # other decoders of the same models have these
strict='-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -ffreestanding -nostdlib'
most=1000      # lines of a model
board_lines=40 # of them on a board
board_runs=3   # of a plan there
only='' kept=''

. "$root/tests/systems/ways.sh"

# ---- models ----------------------------------------------------------------------------------------

# Writes pairs of sentences: each target has a translation of each word, and the first two words
# are exchanged.
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

# Sequences of numbers, dates, sentences with words that the translator has not seen, and pieces of the licence: all different.
write_lines() {
    random='function random(n) { state = state * 16807 % 2147483647; return 1 + state % n } BEGIN { state = 1 }'
    awk -v n=$most "$random"' BEGIN {
        while (lines < n) {
            line = random(10)
            for (k = random(9); k > 1; k--) line = line " " random(10)
            if (!seen[line]++) { print line; lines++ }
        }
    }' > copy.lines
    awk -v n=$most 'BEGIN {
        split("January February March April May June July August September October November December", month, " ")
        for (i = 0; i < n; i++)
            if (i % 2) print 1 + i % 28 " " month[1 + i * 5 % 12] " " 1900 + i * 7 % 200
            else print month[1 + i % 12] " " 1 + i * 3 % 28 ", " 1950 + i % 99
    }' > date.lines
    awk -v n=$most "$random"' BEGIN {
        print "Der unbekannte Käfer 日本 ?"
        print ""
        words = split("der ein Hund Mann Garten läuft schläft im roten kleinen Haus und Hunde Käfer Straße 7", word, " ")
        while (lines < n - 2) {
            line = word[random(words)]
            for (k = random(7); k > 0; k--) line = line " " word[random(words)]
            if (!seen[line]++) { print line; lines++ }
        }
    }' > translator.lines
    tr '\n' ' ' < "$root/LICENSE" | awk -v n=$most "$random"' { text = text $0 }
        END { print ""; print "é"
            while (lines < n - 2) {
                line = substr(text, random(length(text)), 1 + random(14))
                if (!seen[line]++) { print line; lines++ }
            } }' > gpt.lines
    cp copy.lines copy8.lines
    cp copy.lines small8.lines
    cp translator.lines translator8.lines
    cp translator.lines kept8.lines
    cp translator.lines translator_batch.lines
    cp gpt.lines gpt_batch.lines
    cp gpt.lines llama.lines
    printf '1\n6\n20\n' > training.lines
}

# emit_model NAME FILE WEIGHTS OPTIONS...: writes NAME.c, the outputs of generate, and the answers
# of the program on this machine, which must have the scores of generate
emit_model() {
    name=$1 file=$2 weights=$3
    shift 3
    "$tools/graph" --emit-c "$file" "$@" --weights $weights -o "$name.c" 2> "$name.sizes" &&
        "$tools/generate" "$file" --quiet --threads 1 --weights $weights < "$name.lines" > "$name.expected" &&
        "$tools/generate" "$file" --quiet --threads 1 --weights $weights --json < "$name.lines" | ./scores > "$name.scores" &&
        answer_here "$name" && cut -f 1 "$name.answers" | cmp - "$name.scores"
}

# emit_batch NAME N ALONE FILE WEIGHTS OPTIONS...: emits a file for N lines at once. Its program
# answers the lines one by one, and then N at once: both times with the scores of the file ALONE.
emit_batch() {
    name=$1 n=$2 alone=$3
    shift 3
    emit_model "$name" "$@" --batch "$n" && cmp "$name.answers" "$alone.answers" &&
        echo "#define ANSWERED_TOGETHER $n" >> "$name.c" && answer_here "$name" && cmp "$name.answers" "$alone.answers"
}

memory_of() { sed 's/ bytes of memory.*//; s/.*: //' "$out/$1.sizes"; }

answer_here() {
    cc -std=c11 -O2 -include "$1.c" "$here/hosted.c" -o "$1.program" && "./$1.program" < "$1.lines" > "$1.answers"
}

train_model() {
    name=$1
    shift
    "$tools/train" "$@" --seed 1 --threads 1 --quiet --overwrite -o "$name" > /dev/null
}

# The emitted training begins anew. After each number of updates, the file that it saves must be
# the one that train writes then.
make_training() {
    small='--task copy --valid-size 0 --d-model 16 --heads 2 --layers 1 --d-ff 32 --batch-size 8'
    for last in $(cat training.lines); do
        train_model training $small --max-steps "$last" || return 1
        cksum < training | cut -d ' ' -f 1,2
    done > training.expected
    "$tools/graph" --emit-c training --train --from-start --prefix trained -o training.model 2> training.sizes || return 1
    { echo '#define MODEL_TASK' && cat training.model "$here/plain_updates.c"; } > training.c
    answer_here training
}

# record_program NAME COMPILER SOURCES...: records the plans of a program. It runs with the
# argument 1, in one process, because with several the weights would change between recorded runs.
# Without a compiler for C++, a program in C++ is left out.
record_program() {
    name=$1 compiler=$2
    shift 2
    has "${compiler%% *}" || return 0
    $compiler -O1 -I"$tools/../include" "$@" record_plans.o "$tools/../libweft.a" -Wl,--wrap=wf_run,--wrap=wf_run_state \
        -Wl,--wrap=wf_plan_free -lm -pthread -lz -o "$name.recorded" && WEFT_RECORD=$out/$name "./$name.recorded" 1 > "$name.said" &&
        sed -n "s/^record_plans: /$name /p" "$name.said"
}

make_plans() {
    rm -f ./*_[1-8].c
    cc -std=gnu17 -O1 -I"$root" -c "$here/record_plans.c" -o record_plans.o || return 1
    for name in $examples; do
        record_program $name 'cc -std=c17' "$root/tools/examples/$name.c" || return 1
    done
    for name in gru networks; do record_program $name 'cc -std=c17' -I"$root/tools/examples" "$here/$name.c" || return 1; done
    record_program spiral 'c++ -std=c++17' "$root/tools/examples/spiral.cpp" || return 1
    for name in *_[1-8].c; do
        case " $(echo $plans $same_plans) " in *" ${name%.c} "*) ;; *) echo "error: ${name%.c} is no plan of the list"; return 1 ;; esac
    done
    for name in $plans; do answer_here "$name" || return 1; done
}

make_models() {
    text='--d-model 32 --heads 4 --layers 2 --d-ff 64 --max-len 24 --batch-size 16 --max-steps 200'
    cd "$out"
    write_pairs && write_lines && cc -O1 "$here/scores.c" -o scores || return 1
    # The model copy has the sizes that train chooses for the copy task.
    train_model copy --task copy --max-steps 300 --valid-size 0 &&
        emit_model copy copy f32 --max-length 20 && emit_model copy8 copy int8 --max-length 20 &&
        train_model small --task copy --d-ff 96 --valid-size 0 && emit_model small8 small int8 --max-length 20 &&
        paste small8.lines small8.answers | awk -F '\t' 'split($1, word, " ") > 2 && $1 != $3 { exit 1 }' &&
        train_model date --task date $text --valid-size 0 && emit_model date date f32 &&
        train_model translator --train pairs.tsv --tokenizer bpe --share-vocab --vocab-size 200 $text --valid-size 20 &&
        emit_model translator translator f32 --beam 4 &&
        emit_model translator8 translator int8 --beam 4 &&
        emit_model kept8 translator int8 --beam 4 --ram "$(($(memory_of translator8) - 1))" &&
        emit_batch translator_batch 3 translator translator f32 --beam 4 &&
        train_model gpt --task lm --text "$root/LICENSE" --tokenizer byte-bpe --vocab-size 300 $text --text-eval-size 0 &&
        emit_model gpt gpt f32 && emit_batch gpt_batch 4 gpt gpt f32 &&
        train_model llama --task lm --text "$root/LICENSE" --tokenizer text-char --form llama --kv-heads 2 $text --text-eval-size 0 &&
        emit_model llama llama f32 && make_training && make_plans
}

# ---- steps of a way --------------------------------------------------------------------------------

# alone SYMBOLS NM CC...: compiles each file to an object, some at several levels; undefined
# symbols must match SYMBOLS
alone() {
    symbols=$1 nm=$2
    shift 2
    for name in $models $plans; do
        case $name in copy | translator | translator_batch | gpt | gpt_batch | llama | training) levels='-O0 -Os -O2 -O3' ;; *) levels=-O2 ;; esac
        for level in $levels; do
            "$@" $strict $level -c "$out/$name.c" -o "$folder/$name.o" || return 1
            found=$("$nm" -u "$folder/$name.o" | awk '{ print $NF }' | grep -vxE "$symbols" || true)
            [ -z "$found" ] || { echo "error: $name.c with $level needs" $found; return 1; }
        done
    done
    ran="alone"
}

# answers NAME [N]: the file $folder/got must have this model's answers to all lines, or to the first N
answers() {
    head -n "${2:-$most}" "$out/$1.expected" > "$folder/expected"
    head -n "${2:-$most}" "$out/$1.answers" > "$folder/answers"
    cut -f 2- "$folder/got" | cmp - "$folder/expected" || { ran="$ran; OTHER TEXT of $1"; return 1; }
    cmp "$folder/got" "$folder/answers" || { ran="$ran; OTHER BITS of $1's scores"; return 1; }
    counted=$((counted + $(wc -l < "$folder/got")))
}

# hosted EMULATOR CC...: each program's answers
hosted() {
    emulator=$1
    shift
    for name in $models $plans; do
        "$@" -Werror -include "$out/$name.c" "$here/hosted.c" -o "$folder/$name" || return 1
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

# The x87 unit computes other bits, so the compiler must refuse an emitted file for it (#error).
i386_way() {
    foreign i686-linux-gnu '' '__u?(div|mod|divmod)di[34]|_GLOBAL_OFFSET_TABLE_|__x86.*' -msse2 -mfpmath=sse || return
    ! i686-linux-gnu-gcc -c "$out/copy.c" -o "$folder/x87.o" 2> "$folder/said" && grep 'other bits' "$folder/said" &&
        ran="$ran, x87 refused"
}

# Flags by which unused functions are left out, and code is small.
for_size='-Os -ffunction-sections -fdata-sections -Wl,--gc-sections'

# told NAME: adds to $sizes those of this model's program, and what it printed; a program that is
# too large fails
told() {
    bytes=$(arm-none-eabi-size "$folder/$1.elf" | awk 'NR == 2 { print $1 + $2 }')
    sizes="$sizes; $1: $bytes bytes of flash, $(memory_of "$1") of memory, $(cat "$folder/said")"
    [ "$1" = copy8 ] || [ "$board" = mps2-an385 ] && return
    stack=$(sed 's/.*, \([0-9]*\) bytes of stack/\1/' "$folder/said")
    [ "$bytes" -le $((200 * 1024)) ] && [ $(($(memory_of "$1") + stack)) -le $((64 * 1024)) ] ||
        { ran="$ran$sizes: TOO LARGE"; return 1; }
}

# cortex BOARD FLASH RAM MORE TICK FLAGS...
cortex() {
    sizes=
    board=$1 flash=$2 ram=$3 more=$4 tick=$5
    shift 5
    need arm-none-eabi-gcc qemu-system-arm || return 77
    alone '__aeabi_.*' arm-none-eabi-nm arm-none-eabi-gcc "$@" || return 1
    for name in $models $plans; do
        case $name in *8) level=$for_size ;; *) level=-O2 ;; esac
        # shellcheck disable=SC2086 # words
        arm-none-eabi-gcc -std=c11 $level -Werror "$@" -ffreestanding -nostdlib -nostartfiles -DTICK="$tick" -include "$out/$name.c" \
            "$here/cortex.c" -T "$here/cortex.ld" -Wl,--defsym=FLASH="$flash",--defsym=RAM="$ram",--defsym=MORE="$more" -lgcc \
            -o "$folder/$name.elf" || return 1
        case $name in *_[1-8]) first=$board_runs ;; *) first=$board_lines ;; esac
        head -n "$first" "$out/$name.lines" > "$folder/lines"
        (cd "$folder" && rm -f got && timeout $((900 + 20 * first)) qemu-system-arm -M "$board" -display none -serial none -monitor none \
            -icount shift=0 -semihosting-config enable=on,target=native -kernel "$name.elf" > said 2>&1) ||
            { cat "$folder/said"; return 1; }
        echo "$name: $(cat "$folder/said")"
        answers "$name" "$first" || return 1
        case $name in copy8 | small8) told $name || return 1 ;; esac
    done
    ran="$ran, $board$sizes"
}

wasm_way() {
    need clang wasm-ld node || return 77
    flags='--target=wasm32 -O3 -ffreestanding -nostdlib'
    # nm does not read objects of WebAssembly. Instead, the linker refuses undefined symbols, and
    # wasm.js refuses imports.
    alone none true clang --target=wasm32 || return 1
    for extra in '' -msimd128; do
        for name in $models $plans; do
            clang $flags $extra -std=c11 -Werror -include "$out/$name.c" "$here/wasm.c" -Wl,--no-entry,-z,stack-size=65536,--stack-first \
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

# Weights and recorded inputs are left out: reading so many numbers takes an analyzer minutes.
analyze_way() {
    need gcc clang cppcheck || return 77
    for name in $models $plans; do
        awk '/^static const (float first_weights|signed char first_int8|(float|int32_t) run_[0-9]).*\{$/ { print $0 " 0 };"; skips = 1 }
            !skips { print }
            /^};/ { skips = 0 }' "$out/$name.c" > "$folder/$name.c"
        echo "$name: gcc" && gcc -std=c11 -O1 -fanalyzer -Werror -DMODEL_MAIN -c "$folder/$name.c" -o "$folder/$name.o" || return 1
        echo "$name: clang" && clang --analyze --analyzer-output text -std=c11 -DMODEL_MAIN "$folder/$name.c" > "$folder/found" 2>&1
        [ ! -s "$folder/found" ] || { cat "$folder/found"; return 1; }
        echo "$name: cppcheck" && cppcheck --quiet --std=c11 --enable=warning,portability --error-exitcode=1 -DMODEL_MAIN "$folder/$name.c" ||
            return 1
    done
    ran='gcc -fanalyzer, clang --analyze, cppcheck: nothing found'
}

run_way() {
    folder=$out/$way ran='' counted=0
    mkdir -p "$folder"
    case $way in
        gcc | clang) native "$way" ;;
        tcc) native tcc __floatundidf ;;
        i386) i386_way ;;
        aarch64) foreign aarch64-linux-gnu qemu-aarch64 none ;;
        riscv64) foreign riscv64-linux-gnu qemu-riscv64 none ;;
        cortex-m3) plans=$(named "$small_plans")
            cortex mps2-an385 0 0x20000000 0x21000000 40 -mcpu=cortex-m3 -mthumb ;;
        cortex-m4f) cortex mps2-an386 0 0x20000000 0x21000000 40 -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard ;;
        cortex-m7) cortex mps2-an500 0 0x20000000 0x60000000 40 -mcpu=cortex-m7 -mthumb -mfpu=fpv5-d16 -mfloat-abi=hard ;;
        cortex-m33) cortex mps2-an505 0x10000000 0x38000000 0x80000000 50 -mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard ;;
        wasm) wasm_way ;;
        sanitizers) sanitizers_way ;;
        analyze) analyze_way ;;
        *) echo "emit_targets.sh: there is no way called $way" >&2; exit 2 ;;
    esac
}

# Those of the names that --only leaves.
named() {
    for name in $1; do
        case " ${only:-$name} " in *" $name "*) echo "$name" ;; esac
    done
}

# Sets n_options, and what they say.
read_options() {
    n_options=0
    while :; do
        case ${1:-} in
            --kept) kept=yes n=1 ;;
            --only) only=$2 n=2 ;;
            --lines) board_lines=$2 n=2 ;;
            --runs) board_runs=$2 n=2 ;;
            *) break ;;
        esac
        shift $n
        n_options=$((n_options + n))
    done
}

main() {
    widths='11 110 6'
    read_options "$@"
    shift $n_options
    has c++ || plans=$(echo "$plans" | sed 's/spiral_.//g')
    [ -n "$kept" ] || make_models > "$out/models.log" 2>&1 || { tail -n 5 "$out/models.log" >&2; echo 'emit_targets.sh: the models FAILED' >&2; exit 1; }
    models=$(named "$models") plans=$(named "$plans")
    # shellcheck disable=SC2086 # words
    show_ways lines ${*:-$all_ways}
    end_ways
}
main "$@"
exit 0
