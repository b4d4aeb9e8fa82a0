#!/usr/bin/env python3
"""tests/syntax.py - clang reads every C file of a build without a warning.

usage: syntax.py BUILD_FOLDER      exits 77 without clang

The build is gcc's on most machines, and clang refuses with -Wpedantic -Werror what gcc lets pass. It
only parses here, which takes a tenth of compiling. Kernels are left out: one file for each set of
instructions takes longer than all others, and tests/systems.sh compiles them by clang.
"""
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


def arguments(entry):
    """What a file's command says of names and folders, for another compiler."""
    words, kept = shlex.split(entry["command"]), []
    for at, word in enumerate(words):
        if word.startswith(("-D", "-I", "-U", "-std=", "-pthread")):
            kept.append(word)
        elif word in ("-isystem", "-include"):
            kept += words[at:at + 2]
    return kept


def check(clang, entry):
    command = [clang, *arguments(entry), "-fsyntax-only", *WARNINGS, entry["file"]]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr or shlex.join(command)


def main():
    clang = shutil.which("clang")
    if not clang:
        print("syntax: no clang: skipped")
        return 77
    with open(os.path.join(sys.argv[1], "compile_commands.json")) as file:
        entries = {entry["file"]: entry for entry in json.load(file)
                   if entry["file"].endswith(".c") and "/kernels/" not in entry["file"]}
    with concurrent.futures.ThreadPoolExecutor(2) as two:
        failed = [text for text in two.map(lambda entry: check(clang, entry), entries.values()) if text]
    print("\n".join(failed[:20]))
    print(f"syntax: {len(entries)} files, {len(failed)} refused")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
