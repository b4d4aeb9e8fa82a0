#!/bin/sh
# tests/walls/run.sh - the walls, one or all of them, in their long form. See README.md.
#
# usage: run.sh [--short] WALL...      in the root of the project, after a build; or: run.sh all
#
# A wall is a program of this folder, WALL.py or WALL.sh, that takes --short or --long and ends with
# the line "WALL: N cases, F failures, S s". Exits 1 if one of them failed.
set -u
folder=$(dirname "$0")
form=--long failed=0
[ "${1:-}" != --short ] || { form=--short; shift; }
walls() { for wall in "$folder"/*.py "$folder"/*.sh; do basename "$wall" | sed 's/\.[a-z]*$//'; done | grep -vx run; }
[ $# -gt 0 ] || { echo "usage: run.sh [--short] all | $(walls | tr '\n' ' ')" >&2; exit 2; }
[ "$*" != all ] || set -- $(walls)
for wall in "$@"; do
    for program in "$folder/$wall".py "$folder/$wall".sh; do [ ! -x "$program" ] || break; done
    "$program" $form || failed=1
done
exit $failed
