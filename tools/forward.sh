#!/bin/sh
# tools/forward.sh - a folder in which the public headers lie as they are installed: weft/nn/nn.h.
#
# usage: forward.sh SOURCE INTO HEADERS...    meson.build calls it, for programs that have weft as a subproject
#
# Each file in INTO/weft includes the header in the source tree. A file that is right already is not written again.
set -eu
source=$1 into=$2/weft
shift 2
for header in "$@"; do
    line="#include \"$source/$header\""
    [ "$(cat "$into/$header" 2> /dev/null || true)" != "$line" ] || continue
    mkdir -p "$into/$(dirname "$header")"
    echo "$line" > "$into/$header"
done
