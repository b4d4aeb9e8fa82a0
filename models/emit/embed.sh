#!/bin/sh
# models/emit/embed.sh - files of C as an array of their lines, as ops/emit/embed.sh makes it, under
# another name.
#
# usage: embed.sh ops/emit/embed.sh wf_search_text plain_search.c > search_text.c
set -eu
embed=$1 name=$2
shift 2
sh "$embed" "$@" | sed "s/wf_plain_text/$name/"
