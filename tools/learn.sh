#!/bin/sh
# tools/learn.sh - the course, from a fresh clone: builds what it needs, then checks an exercise.
#
# usage: tools/learn.sh [NUMBER] [OPTION...]       as build/tools/learn, whose --help explains them
#
# Installs what is missing (a C compiler, meson, ninja, pkg-config) and builds into build/, which takes one
# to five minutes the first time, longer on a busy or slow machine. Exits with 2 if something is missing that it
# can't install.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

need compiler meson ninja pkg-config
configure build
compile build learn
exec build/tools/learn "$@"
