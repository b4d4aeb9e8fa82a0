#!/usr/bin/env python3
"""tests/coverage.py - what the tests reached: lines and branches per folder, from gcov's own counts.

usage: coverage.py BUILD_FOLDER [--files] [--missed [PREFIX]]

BUILD_FOLDER was configured with -Db_coverage=true and its tests have run; tests/coverage.sh does
both. A line that is compiled more than once (a kernel, in each element type and instruction set)
counts once, and is reached where any of its copies was. --files adds a row for each file, --missed
prints what was not reached, with its source. Needs gcov, which comes with gcc.
"""
import collections
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

FOLDERS = ["core", "ops", "nn", "models", "tools"]
SOURCE = pathlib.Path(__file__).resolve().parent.parent


class File:
    """The lines of one file, and the branches of each: reached or not."""

    def __init__(self):
        self.lines = {}
        self.branches = {}

    def add(self, number, count, branches):
        self.lines[number] = self.lines.get(number, 0) + count
        have = self.branches.get(number, [])
        if len(branches) == len(have):
            branches = [a or b for a, b in zip(have, branches)]
        if len(branches) != len(have) or not have:
            # Copies of a line differ in their branches: the copy of which most were reached
            # counts.
            share = lambda flags: sum(flags) / len(flags) if flags else -1
            branches = max(branches, have, key=share)
        if branches:
            self.branches[number] = branches

    def totals(self):
        flags = [flag for branches in self.branches.values() for flag in branches]
        return [sum(count > 0 for count in self.lines.values()), len(self.lines), sum(flags), len(flags)]


def read(build):
    """Run gcov over every object that has counts; return {path: File}."""
    files = collections.defaultdict(File)
    counts = sorted(str(path.resolve()) for path in pathlib.Path(build).rglob("*.gcda"))
    if not counts:
        sys.exit(f"coverage: no counts in {build}: run its tests first")
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            done = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--hash-filenames", count],
                                  cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode:
                print(f"coverage: {count} is damaged and left out", file=sys.stderr)
        for report in pathlib.Path(folder).glob("*.gcov.json.gz"):
            with gzip.open(report) as stream:
                content = json.load(stream)
            for file in content["files"]:
                path = os.path.normpath(os.path.join(content["current_working_directory"], file["file"]))
                if not path.startswith(str(SOURCE) + os.sep):
                    continue
                name = os.path.relpath(path, SOURCE)
                if name.split(os.sep)[0] in FOLDERS:
                    merge(files[name], file["lines"])
    return files


def merge(file, lines):
    """A static function in a header, or a macro's, stands in gcov's list once for each of its uses."""
    together = {}
    for line in lines:
        flags = [branch["count"] > 0 for branch in line["branches"] if not branch["throw"]]
        count, have = together.get(line["line_number"], (0, []))
        together[line["line_number"]] = (count + line["count"],
            [a or b for a, b in zip(have, flags)] if len(have) == len(flags) else max(have, flags, key=len))
    for number, (count, flags) in together.items():
        file.add(number, count, flags)


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


def row(name, totals):
    lines, all_lines, branches, all_branches = totals
    print(f"{name:<36} {lines:>6} of {all_lines:>6} {percent(lines, all_lines):>6.1f} %"
          f"  {branches:>6} of {all_branches:>6} {percent(branches, all_branches):>6.1f} %")


def print_missed(name, file):
    source = (SOURCE / name).read_text().splitlines()
    for number in sorted(file.lines):
        branches = file.branches.get(number, [])
        if file.lines[number] and all(branches):
            continue
        what = "line" if not file.lines[number] else f"{branches.count(False)} of {len(branches)}"
        print(f"{name}:{number}: [{what}] {source[number - 1].strip()}")


def main():
    arguments = sys.argv[1:]
    missed = arguments[arguments.index("--missed") + 1:] if "--missed" in arguments else None
    files = read(arguments[0])
    if missed is not None:
        for name in sorted(files):
            if not missed or name.startswith(tuple(missed)):
                print_missed(name, files[name])
        return
    print(f"{'':<36} {'lines':>16} {'':>8}  {'branches':>16}")
    for folder in FOLDERS:
        names = [name for name in sorted(files) if name.split(os.sep)[0] == folder]
        if "--files" in arguments:
            for name in names:
                row(name, files[name].totals())
        row(folder, [sum(column) for column in zip(*(files[name].totals() for name in names))] or [0] * 4)


main()
