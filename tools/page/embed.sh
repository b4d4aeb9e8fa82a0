#!/bin/sh
# tools/page/embed.sh - a text file as C: an array of its lines, ended by NULL, named after the file.
#
# usage: embed.sh graph.css > graph_css.c      defines page_graph_css, which page.h declares.
set -eu
name=$(basename "$1" | tr '.-' '__')
echo "/* Made by tools/page/embed.sh. */"
echo '#include "tools/page/page.h"'
echo "const char *const page_$name[] = {"
# A question mark is escaped because ?? and another character are one character of C.
LC_ALL=C sed -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$/\\n",/' "$1"
echo '    0,'
echo '};'
