#!/bin/sh
# tests/core/file/unreliable.sh - unreliable.c in a folder of its own.
#
# usage: unreliable.sh PROGRAM
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder"
