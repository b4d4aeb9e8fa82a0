#!/bin/sh
# ops/emit/embed.sh - a file of C as an array of its lines, with "" for blank lines, ended by 0.
#
# usage: embed.sh plain.c > plain_text.c      defines wf_plain_text
set -eu
echo '/* Made by ops/emit/embed.sh. */'
echo 'extern const char *const wf_plain_text[];'
echo 'const char *const wf_plain_text[] = {'
# A question mark is escaped because ?? and another character are one character of C.
LC_ALL=C sed -e '/^$/ { s/.*/    "",/; b' -e '}' -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$/\\n",/' "$1"
echo '    0,'
echo '};'
