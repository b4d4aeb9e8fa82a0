#!/bin/sh
# ops/emit/embed.sh - files of C as an array of their lines, with "" for blank lines, ended by 0.
#
# usage: embed.sh one.c more.c > plain_text.c      defines wf_plain_text
set -eu
echo '/* Made by ops/emit/embed.sh. */'
echo 'extern const char *const wf_plain_text[];'
echo 'const char *const wf_plain_text[] = {'
# A question mark is escaped because ?? and a third character may be a trigraph, one character of C.
for file; do
    LC_ALL=C sed -e '/^$/ { s/.*/    "",/; b' -e '}' -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$/\\n",/' "$file"
    echo '    "",'
done
echo '    0,'
echo '};'
