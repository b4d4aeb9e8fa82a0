#!/usr/bin/env python3
"""tests/completion.py - completes command lines in bash, zsh and fish, as people do with the tab key.

usage: completion.py BUILD_FOLDER       exits 77 if none of the three shells is there

bash and zsh run on a pseudo-terminal: a line is typed, a tab, and Enter. The command is a function that
prints its arguments, so that what was completed is read exactly. fish prints its completions itself.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

# A line to complete, and the arguments that stand there afterwards.
LINES = [
    ("weft-train --d-mo", ["--d-model"]),
    ("weft-train --norm po", ["--norm", "post"]),
    ("weft-train --train pai", ["--train", "pairs.tsv"]),
    ("weft-train --max-steps 5 --over", ["--max-steps", "5", "--overwrite"]),
    ("weft-train --completion fi", ["--completion", "fish"]),
    ("weft-generate the-mo", ["the-model.safetensors"]),
    ("weft-generate -m the-mo", ["-m", "the-model.safetensors"]),
    ("weft-bench gem", ["gemm"]),
    ("weft-graph --of atten", ["--of", "attention"]),
    ("weft-convert --positions learn", ["--positions", "learned"]),
    ("weft-inspect --js", ["--json"]),
    ("weft-tokenize --off", ["--offsets"]),
    ("weft-embed --format np", ["--format", "npy"]),
]
PROGRAMS = ["train", "generate", "graph", "inspect", "convert", "bench", "tokenize", "embed"]


def read_until(terminal, text, seconds=20):
    seen = b""
    end = time.time() + seconds
    while text not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.time()))
        if not ready:
            raise SystemExit(f"completion: no {text!r} in {seen[-2000:]!r}")
        seen += os.read(terminal, 65536)
    return seen


def type_lines(command, setup, folder, lines):
    """The arguments that each line has after a tab, in a shell on a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="dumb", PS1="$ ", HOME=folder, COLUMNS="200", LC_ALL="C.UTF-8")
        os.execvp(command[0], command)
    try:
        shows = "; ".join(f"weft-{name}() {{ printf 'ARG[%s]' \"$@\"; echo END; }}" for name in PROGRAMS)
        os.write(terminal, (setup + "; " + shows + "; echo RE''ADY\n").encode())
        read_until(terminal, b"READY")
        results = []
        for line in lines:
            os.write(terminal, line.encode() + b"\t")
            time.sleep(0.3)
            os.write(terminal, b"\n")
            shown = read_until(terminal, b"END").decode(errors="replace")
            results.append(re.findall(r"ARG\[([^\]]*)\]", shown))
        return results
    finally:
        os.close(terminal)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def in_bash(tools, folder, lines):
    files = "; ".join(f"source {tools}/weft-{name}.bash" for name in PROGRAMS)
    return type_lines(["bash", "--norc", "--noprofile", "-i"], files, folder, lines)


def in_zsh(tools, folder, lines):
    setup = f"PS1='$ '; unsetopt zle_bracketed_paste; fpath=({tools} $fpath); autoload -Uz compinit; compinit -D -u"
    return type_lines(["zsh", "-f", "-i"], setup, folder, lines)


def in_fish(tools, folder, lines):
    results = []
    for line in lines:
        files = "; ".join(f"source {tools}/weft-{name}.fish" for name in PROGRAMS)
        run = subprocess.run(["fish", "--no-config", "-c", f"{files}; complete -C '{line}'"], cwd=folder,
                             env=dict(os.environ, HOME=folder), capture_output=True, text=True, timeout=60)
        words = line.split()[1:-1]
        completed = [row.split("\t")[0] for row in run.stdout.splitlines()]
        results.append(words + completed if len(completed) == 1 else completed)
        if run.stderr:
            raise SystemExit(f"completion: fish says {run.stderr}")
    return results


def main():
    tools = os.path.abspath(os.path.join(sys.argv[1], "tools"))
    bad = tried = 0
    for name, complete in [("bash", in_bash), ("zsh", in_zsh), ("fish", in_fish)]:
        if not shutil.which(name):
            print(f"completion: no {name}: skipped")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for file in ["pairs.tsv", "the-model.safetensors"]:
                open(os.path.join(folder, file), "w").close()
            lines = LINES + ([("weft-train --norm=po", ["--norm=post"])] if name != "fish" else [])
            results = complete(tools, folder, [line for line, _ in lines])
        for (line, expected), result in zip(lines, results):
            tried += 1
            if result != expected:
                bad += 1
                print(f"completion: {name} completes '{line}' to {result}, not {expected}", file=sys.stderr)
    print(f"completion: {tried} lines completed, {bad} wrongly")
    sys.exit(1 if bad else 0 if tried else 77)


main()
