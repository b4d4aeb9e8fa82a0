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

AT_ONCE = 50  # files that one process reads
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


def front_end(clang, group, file):
    """The command by which clang parses files that have these arguments, without the files. Starting clang takes
    longer than parsing most of them, and its front end, unlike the driver, reads many in one process."""
    directory, words, _ = group
    shown = subprocess.run([clang, "-###", *words, "-fsyntax-only", *WARNINGS, file], cwd=directory, capture_output=True, text=True)
    command = shlex.split(shown.stderr.strip().split("\n")[-1])
    name = command.index("-main-file-name")
    assert command[-3:] == ["-x", "c", file], shown.stderr
    return command[:name] + command[name + 2:-1]


def check(clang, group, files):
    """What clang says of the files, or None."""
    done = subprocess.run(front_end(clang, group, files[0]) + files, cwd=group[0], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr or " ".join(files)


def main():
    clang = shutil.which("clang")
    if not clang:
        print("syntax: no clang: skipped")
        return 77
    with open(os.path.join(sys.argv[1], "compile_commands.json")) as file:
        entries = {entry["file"]: entry for entry in json.load(file)
                   if entry["file"].endswith(".c") and "/kernels/" not in entry["file"]}
    groups = {}
    for file, entry in entries.items():
        with open(os.path.join(entry["directory"], file)) as text:
            # in a process of its own: its pragmas could change what the next files are told
            alone = file if "#pragma GCC diagnostic" in text.read() else None
        groups.setdefault((entry["directory"], tuple(arguments(entry)), alone), []).append(file)
    parts = [(group, files[at:at + AT_ONCE]) for group, files in groups.items() for at in range(0, len(files), AT_ONCE)]
    with concurrent.futures.ThreadPoolExecutor(2) as two:
        failed = [text for text in two.map(lambda part: check(clang, *part), parts) if text]
    print("\n".join(failed[:20]))
    print(f"syntax: {len(entries)} files, {'some refused' if failed else 'all accepted'}")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
