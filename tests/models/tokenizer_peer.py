#!/usr/bin/env python3
"""Compares tokens of a tokenizer.json with those of the library tokenizers, on hostile texts.

    pip install tokenizers==0.23.3 sentencepiece
    ninja -C build tests/tokenizer_peer
    tests/models/tokenizer_peer.py build/tests/tokenizer_peer [--lines 1000] [--seed 1] [--only NAME...] [--time] [--large] [--keep DIR]

Every recipe of tokenizer_recipes.py is trained or written by hand, and saved as a tokenizer.json. Compared are ids, type
ids, offsets and decoded text, with and without special tokens, of single texts and of pairs. It prints the first
differences of each recipe. With --time it says how long loading and encoding take, in turns, on one thread; with --large instead of
the recipes those of 150,000 entries.
"""
import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizer_recipes as recipes  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

SHOWN = 3


def pack(text):
    data = text.encode()
    return struct.pack("<i", len(data)) + data


def request(case):
    text, pair, special = case
    head = b"" if special else struct.pack("<i", -2)
    return head + (pack(text) if pair is None else struct.pack("<i", -1) + pack(text) + pack(pair))


class Answers:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        self.at += 4
        return struct.unpack_from("<i", self.data, self.at - 4)[0]

    def text(self):
        n = self.number()
        self.at += n
        return self.data[self.at - n:self.at].decode(errors="replace")

    def next(self):
        n = self.number()
        if n < 0:
            return "refused: " + self.text()
        numbers = struct.unpack_from(f"<{4 * n}i", self.data, self.at)
        self.at += 16 * n
        return [numbers[i:i + 4] for i in range(0, 4 * n, 4)], self.text(), self.text()


def characters(text):
    """Places of bytes, counted in characters, as the library counts them."""
    places = {}
    at = 0
    for i, c in enumerate(text):
        for _ in range(len(c.encode())):
            places[at] = i
            at += 1
    places[at] = len(text)
    return places


def converted(places, begin, end):
    if begin not in places:
        return begin, end
    if end in places:
        return places[begin], places[end]
    return places[begin], places.get(end - 1, places[begin] + 1) + 1


def expected(tokenizer, case):
    text, pair, special = case
    try:
        e = tokenizer.encode(text, pair, add_special_tokens=special)
        return (list(zip(e.ids, e.type_ids, e.offsets)), tokenizer.decode(e.ids, skip_special_tokens=False),
                tokenizer.decode(e.ids, skip_special_tokens=True), e.sequence_ids)
    except BaseException as error:  # also the panics of Rust
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"refused: {error}"


def differs(want, got, case):
    if isinstance(want, str):
        return None if isinstance(got, str) or "slice index" in want or "out of bounds" in want or "range" in want else f"library {want}"
    if isinstance(got, str):
        return got
    tokens, with_special, without = got
    maps = [characters(case[0]), characters(case[1] or "")]
    for i, (token, expect) in enumerate(zip(tokens, want[0])):
        place = converted(maps[1 if want[3][i] == 1 else 0], token[2], token[3])
        if (token[0], token[1], place) != (expect[0], expect[1], tuple(expect[2])):
            return f"token {i}: {token} as characters {place}, library {expect}; ids {[t[0] for t in tokens][:12]}, library {[t[0] for t in want[0]][:12]}"
    if len(tokens) != len(want[0]):
        return f"{len(tokens)} tokens, library {len(want[0])}: {[t[0] for t in tokens][-6:]} {[t[0] for t in want[0]][-6:]}"
    if with_special != want[1]:
        return f"decoded {with_special!r}, library {want[1]!r}"
    return None if without == want[2] else f"decoded without special tokens {without!r}, library {want[2]!r}"


def compare(program, path, lines, rng, name):
    tokenizer = Tokenizer.from_file(path)
    cases = [(line, rng.choice(lines) if rng.random() < 0.1 else None, rng.random() < 0.9) for line in lines]
    run = subprocess.run([program, path], input=b"".join(map(request, cases)), capture_output=True)
    if run.returncode:
        print(f"{name}: {run.stderr.decode().strip() or run.returncode}")
        return 1
    answers, bad = Answers(run.stdout), 0
    for case in cases:
        what = differs(expected(tokenizer, case), answers.next(), case)
        if what:
            bad += 1
            if bad <= SHOWN:
                print(f"{name}: {case!r}: {what}")
    print(f"{name}: {len(cases)} texts, {bad} differ", flush=True)
    return bad


def measure(program, path, lines, name):
    data = b"".join(pack(line) for line in lines)
    size = sum(len(line.encode()) for line in lines) / 1e6
    ours, theirs, loads, tokenizer = [], [], [], None
    for _ in range(5):
        del tokenizer  # its end is not part of loading the next one
        loaded, encoded = map(float, subprocess.run([program, path, "--time"], input=data, capture_output=True, check=True).stdout.split())
        start = time.process_time()
        tokenizer = Tokenizer.from_file(path)
        middle = time.process_time()
        for line in lines:
            tokenizer.encode(line)
        theirs.append(time.process_time() - middle)
        ours.append(encoded)
        loads.append((loaded, middle - start))
    a, b, load = sorted(ours)[2], sorted(theirs)[2], [sorted(x)[2] for x in zip(*loads)]
    times = sorted(y / x for x, y in zip(ours, theirs))[2]
    print(f"{name}: {size / a:.1f} MB/s, library {size / b:.1f} MB/s: {times:.1f} times; load {1e3 * load[0]:.1f} ms, library {1e3 * load[1]:.1f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--keep")
    o = parser.parse_args()
    folder = o.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    corpus, bad = recipes.corpus(), 0
    for name, make in (recipes.LARGE if o.large else recipes.RECIPES).items():
        if o.only and not any(part in name for part in o.only):
            continue
        rng = random.Random(f"{o.seed} {name}")
        path = os.path.join(folder, f"large-{name}.json" if o.large else f"{name}.json")
        if not os.path.exists(path):
            tokenizer = make(corpus)
            tokenizer.save(path) if isinstance(tokenizer, Tokenizer) else open(path, "w").write(tokenizer)
        if o.time:
            if name != "cut-second":  # which the library refuses without a second text
                measure(o.program, path, corpus[:o.lines], name)
        else:
            bad += compare(o.program, path, recipes.hostile(rng, corpus, o.lines), rng, name)
    print(f"{bad} differ")
    return bad > 0


sys.exit(main())
