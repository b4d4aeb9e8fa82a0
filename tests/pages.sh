#!/bin/sh
# tests/pages.sh - every program and every option in the commands of the pages is there.
#
# usage: pages.sh SOURCE_FOLDER BUILD_FOLDER      prints how many it looked up; exits 1 at one that is missing.
#
# A command is a line of a ```sh block, with the lines that a backslash continues, that names build/tools/PROGRAM.
set -eu
source=$1 tools=$2/tools
cd "$source"
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
    # It is built where there is an MPI, and has the options of train.
    [ "$program" != train-mpi ] || program=train
    [ -e "$folder/$program" ] || "$tools/$program" --help > "$folder/$program" 2> /dev/null ||
        { echo "pages: $page runs $program, which is not there" >&2; bad=1; continue; }
    for option in $(echo "$words" | sed 's/|.*//' | grep -oE '(^| )--?[a-zA-Z][a-z0-9-]*' || true); do
        options=$((options + 1))
        grep -qE -e "(^|[ ,])$option([ ,]|\$)" "$folder/$program" ||
            { echo "pages: $page gives $program $option, which it does not know" >&2; bad=1; }
    done
done < "$folder/commands"
[ $commands -gt 20 ] && [ $options -gt 60 ] || { echo "pages: only $commands commands were found" >&2; bad=1; }
echo "pages: $options options of $commands commands are there"
exit $bad
