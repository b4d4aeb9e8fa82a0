#!/bin/sh
# tests/pages.sh - every program and every option in the commands of the pages is there, and the examples of the help and
# of the manual pages run.
#
# usage: pages.sh SOURCE_FOLDER BUILD_FOLDER      prints how many it looked up and ran; exits 1 at one that is missing or fails.
#
# A command is a line of a ```sh block, with the lines that a backslash continues, that names build/tools/PROGRAM. An example
# is a line below "Examples" in a program's help, or between .Bd and .Ed in a manual page.
set -eu
source=$1 tools=$(cd "$2" && pwd)/tools
cd "$source"
source=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0 commands=0 options=0

# Commands, one a line: the page, the program, and the words up to the next program or comment.
for page in $(find . -name '*.md' ! -path './build*' ! -path './.git/*'); do
    awk -v page="$page" '
        /^```sh$/ { on = 1; next }
        /^```/ { on = 0 }
        on { line = line $0; if (sub(/\\$/, " ", line)) next
             sub(/  *#.*/, "", line)
             n = split(line, part, "build/tools/")
             for (i = 2; i <= n; i++) print page, part[i]
             line = "" }' "$page"
done > "$folder/commands"

while read -r page program words; do
    commands=$((commands + 1))
    # train-mpi is built only where there is an MPI, and has the options of train.
    [ "$program" != train-mpi ] || program=train
    [ -e "$folder/$program" ] || "$tools/$program" --help > "$folder/$program" 2> /dev/null ||
        { echo "pages: $page runs $program, which is not there" >&2; bad=1; continue; }
    # The first page runs on a machine with nothing but what its first command installs.
    case $page:$words in
        ./README.md:*"| dot "*) echo "pages: $page needs Graphviz for $program $words" >&2; bad=1 ;;
    esac
    # With --formula, an option may be the name of a variable of the formula, which --help does not list:
    # graph --formula "a * b" --a 2 --b 3. So of such a command only --formula itself is looked up.
    case $words in *--formula*) words=--formula ;; esac
    for option in $(echo "$words" | sed 's/|.*//' | grep -oE '(^| )--?[a-zA-Z][a-z0-9-]*' || true); do
        options=$((options + 1))
        grep -qE -e "(^|[ ,])$option([ ,]|\$)" "$folder/$program" ||
            { echo "pages: $page gives $program $option, which it does not know" >&2; bad=1; }
    done
done < "$folder/commands"
[ $commands -gt 20 ] && [ $options -gt 60 ] || { echo "pages: only $commands commands were found" >&2; bad=1; }
echo "pages: $options options of $commands commands are there"

# ---- examples ----------------------------------------------------------------------------------------------------------

# The lines of a manual page's examples, as they are typed.
typed() { sed -n '/^\.Bd/,/^\.Ed/{/^\./d;s/\\-/-/g;s/\\e/\\/g;p;}' "$1"; }

# The help and the page of a program have the same examples.
programs='train generate convert inspect graph bench tokenize embed'
if [ -x "$tools/train-mpi" ] && command -v mpirun > /dev/null; then programs="$programs train-mpi"; fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
for program in $programs; do
    "$tools/$program" --help | sed -n '/^Examples$/,/^$/s/^  //p' > "$folder/examples"
    "$tools/$program" --man > "$folder/page"
    typed "$folder/page" | sed -E "s/(^| )weft-$program /\1$program /" | cmp -s - "$folder/examples" && [ -s "$folder/examples" ] ||
        { echo "pages: --help and --man of $program have other examples, or none" >&2; bad=1; }
    typed "$folder/page"
done > "$folder/all"
typed "$tools/weft.7" > "$folder/overview"

# Programs under their installed names. A training stops after two seconds, a measurement takes the shortest time and one
# size of many: whether they run is asked here, not what they reach.
mkdir "$folder/bin" "$folder/work" "$folder/alone"
for program in $programs; do
    cat > "$folder/bin/weft-$program" << END
#!/bin/sh
case "$program \$*" in
    train*--max-time*) ;;
    train*--train* | train*--text*) set -- "\$@" --max-time 2 --threads 1 ;;
    train*) set -- "\$@" --max-time 2 --threads 1 --valid-size 20 ;;
    bench\ gemm*--s[ih]* | bench\ step*) set -- "\$@" --seconds 0 ;;
    bench\ gemm*) set -- "\$@" --seconds 0 --size 128 ;;
esac
exec "$tools/$program" "\$@"
END
    chmod +x "$folder/bin/weft-$program"
done
PATH=$folder/bin:$PATH
cd "$folder/work"

# The files that the examples name: pairs of made-up words, numbers as text, models in other forms.
awk 'BEGIN { srand(1)
             for (i = 0; i < 400; i++) { s = t = ""
                 for (k = 0; k < 3 + i % 6; k++) { w = int(rand() * 40); s = s " quelle" w; t = t " target" w }
                 print substr(s, 2) "\t" substr(t, 2) } }' > pairs.tsv
tail -n 30 pairs.tsv > held-back.tsv
head -n 200 pairs.tsv > own.tsv
cut -f 1 pairs.tsv > train.de
cut -f 2 pairs.tsv > train.en
tail -n 10 train.de | tee news.de > test.de
tail -n 10 train.en > test.en
for i in 1 2 3 4 5 6 7 8; do cat "$source/LICENSE"; done > book.txt
awk -F "\t" '{ print $1 "\t" (NR % 2 ? "odd" : "even") }' pairs.tsv > labelled.tsv
cp * "$folder/alone"
cp -r "$source/tests/data/hf/marian" opus-mt-en-de
cp "$source/tests/data/marian/words.bin" model.ende.intgemm.alphas.bin
cp "$source/tests/data/words_de.spm" vocab.ende.spm
cp "$source/tests/data/torch_f32.bin" pytorch_model.bin
cp "$source/tests/data/tokenizer/gpt2.json" tokenizer.json
cp "$source/tests/data/tokenizer/bert-uncased.json" bert.json
cut -f 1 held-back.tsv | tee lines.txt questions.txt > pages.txt
quietly() { "$@" > log 2>&1 || { cat log >&2; exit 1; }; }
quietly weft-train --task copy --d-model 16 --heads 8 --layers 1 --max-steps 2 --norm post -o eight.safetensors
quietly weft-convert --to torch eight.safetensors -o in.safetensors
quietly weft-train --train pairs.tsv -o de-en.safetensors
cp de-en.best.safetensors model.weft
cp de-en.safetensors base.weft
quietly weft-train --init base.weft --train pairs.tsv --lora 2 --max-steps 2 --warmup 0 -o own.weft
quietly weft-convert --from hf opus-mt-en-de -o marian.weft
quietly weft-convert --from hf "$source/tests/data/hf/enc_many" -o minilm.safetensors
cp minilm.safetensors e5.safetensors
for word in a b c d e f; do printf '%s\t%s\n' $word $word; done > short.tsv
quietly weft-train --init marian.weft --train short.tsv --valid-size 0 --lora 2 --max-steps 2 --warmup 0 -o marian-own.weft
quietly weft-convert --to hf marian-own.weft -o peft-folder
mv de-en.safetensors old.safetensors
mv de-en.best.safetensors de-en.safetensors

# Trainings first: others use their models.
ran=0 left=0
run_examples() {
    while read -r line; do
        case $line in
            *"| dot "* | *"&& dot "*) command -v dot > /dev/null || { left=$((left + 1)); continue; } ;;
            WEFT_ISA=*) env "${line%% *}" weft-inspect --dump-config > /dev/null 2>&1 || { left=$((left + 1)); continue; } ;;
        esac
        sh -c "$line" > log 2>&1 < /dev/null ||
            { echo "pages: an example fails: $line" >&2; cat log >&2; bad=1; }
        ran=$((ran + 1))
    done < "$1"
}
grep -E '(^| )weft-train(-mpi)? ' "$folder/all" > "$folder/first"
grep -vE '(^| )weft-train(-mpi)? ' "$folder/all" > "$folder/second"
run_examples "$folder/first"
run_examples "$folder/second"
cd "$folder/alone"
run_examples "$folder/overview"
[ $ran -gt 30 ] || { echo "pages: only $ran examples were found" >&2; bad=1; }
echo "pages: $ran examples of the help and of the manual pages ran, $left could not here (no Graphviz, other kernels)"
exit $bad
