#!/bin/sh
# tests/walls/power.sh - the power is cut while programs write: see power.c.
#
# usage: power.sh [--short | --long]     after a build; WEFT_BUILD: its folder (build)
build=${WEFT_BUILD:-$(dirname "$0")/../../build}
WEFT_TOOLS=${WEFT_TOOLS:-$build/tools} exec "$build/tests/walls/power" "$@"
