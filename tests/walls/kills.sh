#!/bin/sh
# tests/walls/kills.sh - programs are killed while they write: see kills.c.
#
# usage: kills.sh [--short | --long]     after a build; WEFT_BUILD: its folder (build)
build=${WEFT_BUILD:-$(dirname "$0")/../../build}
WEFT_TOOLS=${WEFT_TOOLS:-$build/tools} exec "$build/tests/walls/kills" "$@"
