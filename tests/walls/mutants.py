#!/usr/bin/env python3
"""tests/walls/mutants.py - hostile model files through every reader, and through the programs.

usage: mutants.py [--short | --long | --repeat NUMBER] [--first NUMBER] [--library N] [--programs N]

Small files of every kind are made by the programs: models, checkpoints with moments and averages,
with vocabularies of words, characters and parts of words, state_dicts in f32 and bf16. Each
mutant is one of them with a few edits of what it says, its header or its bytes, its checksum mostly
right again (tests/fuzz/mutator.h), so that it passes the door and is met by what is behind it.

* mutants.c takes them through the library: each is refused with a sentence, or is a model that
  decodes, and that is the same when it was saved and loaded again.
* Of others each program makes what it can: it ends by itself, with a status of its own, in time and
  memory; what it refuses it says in a sentence; nothing that it prints steers a terminal; what train
  has saved is whole.

A failed mutant is kept as failed-NUMBER.safetensors. After a build; WEFT_BUILD: its
folder (build)."""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("WEFT_BUILD", f"{ROOT}/build"))
TOOLS = os.path.join(BUILD, "tools")
MUTANTS = os.path.join(BUILD, "tests/walls/mutants")
IN_LIBRARY = {"short": 6000, "long": 500000}
IN_PROGRAMS = {"short": 40, "long": 3000}
SECONDS, PATIENCE = 60, 900  # of the processor; of the clock: the machine may be busy
MEMORY = 1 << 30
SANITIZED = b"__asan_init" in open(MUTANTS, "rb").read() if os.path.exists(MUTANTS) else False

PAIRS = "".join(f"a b{i % 3} c\tx y{i % 2}\n" for i in range(6))
TINY = "--d-model 4 --heads 2 --layers 1 --d-ff 3 --max-steps 2 --lr-steps 10 --warmup 1 --batch-size 4 --quiet"
DATA = f"{ROOT}/tests/data"
TEXT = "--train pairs --valid pairs --max-len 8 --min-freq 1"
RESUME = "--resume --threads 1 --max-steps 3"

# name, command; {} is the file
BASES = [
    ("adam", f"train --task copy --max-len 5 --valid-size 0 {TINY} -o {{}}"),
    ("averages", f"train --task sort --max-len 5 --valid-size 2 --ema 0.9 --tie all {TINY} -o {{}}"),
    ("momentum", f"train --task date --max-len 30 --valid-size 2 --optimizer sgd {TINY} -o {{}}"),
    ("word", f"train {TEXT} --tokenizer word --norm post --positions none {TINY} -o {{}}"),
    ("char", f"train {TEXT} --tokenizer char --positions learned --tie decoder {TINY} -o {{}}"),
    ("bpe", f"train {TEXT} --tokenizer bpe --accum 2 --ema 0.5 {TINY} -o {{}}"),
    ("joint", f"train {TEXT} --tokenizer bpe --share-vocab --tie all --optimizer sgd {TINY} -o {{}}"),
    ("guided", f"train {TEXT} --alignments links --tokenizer bpe {TINY} -o {{}}"),
    ("encoder", f"train --task pairs --train pairs --valid-size 0 --tokenizer word --max-len 8 {TINY} -o {{}}"),
    ("masked", f"train --task mask --text lines --tokenizer-json {DATA}/tokenizer/learned-wordpiece.json --max-len 5"
     f" --text-eval-size 0 {TINY} -o {{}}"),
    ("classes", f"train --task classify --train pairs --valid pairs --tokenizer-json {DATA}/tokenizer/learned-wordpiece.json"
     f" --max-len 5 {TINY} -o {{}}"),
    ("adapter", "train --train pairs --valid pairs --init word --lora 1 --max-steps 2 --batch-size 4 --quiet -o {}"),
    ("marian", f"convert --from marian {DATA}/marian/shared.bin -o {{}}"),
    ("marian-text", f"convert --from marian {DATA}/marian/words.bin --spm-src {DATA}/words_de.spm -o {{}}"),
    ("torch", "convert --to torch char -o {}"),
    ("torch-tied", "convert --to torch joint -o {}"),
    ("bf16", "convert --to torch --dtype bf16 adam -o {}"),
    ("plain", "convert --heads 2 --norm pre --positions sinusoidal torch-tied -o {}"),
]

# What each mutant goes through, as file `m`.
PROGRAMS = [
    "inspect m",
    "inspect --json m",
    "generate --model m --threads 1 -i lines --max-len-b 3 --beam 2",
    "generate --model m --threads 1 -i ids --max-len-b 3 --attention attention.svg",
    "generate --model m --threads 1 -i lines --max-len-b 3 --alignment soft --suppress-tokens 1",
    "generate --model m --threads 1 -i pairs --score --alignment hard",
    "generate --arithmetic marian --model m --threads 1 -i ids --max-len-b 3",
    "embed m lines --threads 1",
    "generate word --adapter m -i lines --max-len-b 3 --threads 1",
    "graph --of transformer --model m -o graph.dot",
    "convert --to torch m -o out",
    "convert --to marian m -o out",
    "convert --to marian --calibrate ids m -o out",
    f"convert --to marian --scales {DATA}/marian/shared.bin m -o out",
    "convert --heads 2 --norm pre --positions sinusoidal m -o out",
    f"train {RESUME} --train pairs --valid pairs -o m",
    f"train {RESUME} --train pairs --valid pairs --alignments links -o m",
    f"train {RESUME} -o m",
]


def make_bases(folder):
    with open(f"{folder}/pairs", "w") as f:
        f.write(PAIRS)
    with open(f"{folder}/links", "w") as f:
        f.write("0-0 1-1 2-0\n\n" * 3)
    with open(f"{folder}/lines", "w") as f:
        f.write("a b1 c\nb0\n\nzz \u20ac a\n")
    with open(f"{folder}/ids", "w") as f:
        f.write("1 2 3\n0\n19 19\n")
    for name, command in BASES:
        words = command.format(name).split()
        subprocess.run([os.path.join(TOOLS, words[0])] + words[1:], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [f"{folder}/{name}" for name, _ in BASES]


def limit():
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def steers(text):
    return re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text)


def whole(path):
    """What train has saved can be read."""
    return subprocess.run([f"{TOOLS}/inspect", path], capture_output=True).returncode == 0


def wrong_with(command, folder, accepted):
    words = command.split()
    try:
        done = subprocess.run([os.path.join(TOOLS, words[0])] + words[1:], cwd=folder, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return "hangs"
    said = done.stderr.decode(errors="replace")
    accepted[command] += done.returncode == 0
    if re.search("Sanitizer|runtime error:", said):
        return f"is sanitized: {said[:2000]}"
    if done.returncode not in (0, 1, 2, 3):
        return f"ends with {done.returncode}: {said[-300:]}"
    if done.returncode and not re.search(rf"^{words[0]}: .{{8}}", said, re.M):
        return f"exit {done.returncode} without a sentence: '{said[-300:]}'"
    if "out of memory" in said:
        return f"takes too much memory: {said[-300:]}"
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        if steers(text):
            return f"steers the terminal from {name}: {steers(text).group()!r}"
    if words[0] == "train" and done.returncode == 0 and not whole(f"{folder}/m"):
        return "has saved what can't be read"
    return None


def through_programs(number, bases, folder, accepted):
    """What was wrong with its runs."""
    original = f"{folder}/mutant"
    subprocess.run([MUTANTS, "--write", str(number), original] + bases, check=True)
    found = []
    for command in PROGRAMS:
        shutil.copy(original, f"{folder}/m")
        wrong = wrong_with(command, folder, accepted)
        if wrong:
            found.append(f"mutant {number}: {command}: {wrong}")
    if found:
        shutil.copy(original, f"failed-{number}.safetensors")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--repeat", type=int, metavar="NUMBER")
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER")
    parser.add_argument("--library", type=int, metavar="MUTANTS")
    parser.add_argument("--programs", type=int, metavar="MUTANTS")
    options = parser.parse_args()
    begin, form = time.time(), "long" if options.long else "short"
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="weft-mutants-", dir=memory) as folder:
        bases = make_bases(folder)
        first, count, runs = options.first, IN_LIBRARY[form], IN_PROGRAMS[form]
        count = count if options.library is None else options.library
        runs = runs if options.programs is None else options.programs
        numbers = range(first, first + runs)
        if options.repeat is not None:
            first, count, numbers = options.repeat, 1, [options.repeat]
        judged = subprocess.run([MUTANTS, str(first), str(count)] + bases, stdout=subprocess.PIPE, text=True,
                                env=dict(os.environ, TMPDIR=folder))
        print(judged.stdout, end="", flush=True)
        told = re.search(r"(\d+) mutants, (\d+) failures", judged.stdout)
        if not told:
            sys.exit("mutants: the program gave up")
        cases, failures = int(told[1]), int(told[2])
        accepted = dict.fromkeys(PROGRAMS, 0)
        for number in numbers:
            found = through_programs(number, bases, folder, accepted)
            cases, failures = cases + len(PROGRAMS), failures + len(found)
            for line in found:
                print(line, flush=True)
        for command in PROGRAMS:
            print(f"{accepted[command]:6} of {len(numbers)} accepted by {command}")
    if failures:
        print(f"again: {sys.argv[0]} --repeat NUMBER")
    print(f"mutants: {cases} cases, {failures} failures, {time.time() - begin:.0f} s")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
