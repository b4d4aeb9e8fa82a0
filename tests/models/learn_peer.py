#!/usr/bin/env python3
"""Learns vocabularies with `tokenize --learn` and with the library tokenizers, and compares them.

    pip install tokenizers==0.23.3
    tests/models/learn_peer.py build/tools/tokenize --text FILE [--held FILE] [--sizes 1000 8000] [--lines 2000] [--only bpe]

Of each kind and size it asks: does the library read the file that was learned here; does it give the same ids, for lines of the
text and hostile ones; how many tokens has a word of the held-out text (or of the text) with our vocabulary and with that of the
library's own trainer; how long did each take. For BPE it counts how many merges are the same, for WordPiece and Unigram how many
pieces.

    tests/models/learn_peer.py build/tools/tokenize --record

learns from tests/data/bpe.txt what the suite json_learn learns, and writes the files tests/data/tokenizer/learned-KIND.json and,
beside each, what the library makes of hostile lines.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizer_recipes as recipes  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers, trainers  # noqa: E402

SPECIAL = {"bpe": ["<|endoftext|>"], "unigram": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
           "wordpiece": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]}


def ours(program, kind, size, text, path):
    start = time.time()
    run = subprocess.run([program, "--learn", kind, "--vocab-size", str(size), "-i", text, "-o", path], capture_output=True, text=True)
    return run.stderr.strip(), time.time() - start


def theirs(kind, size, lines, like):
    """The library's trainer, with the steps of our file."""
    special = SPECIAL[kind]
    model, trainer = {
        "bpe": lambda: (models.BPE(), trainers.BpeTrainer(vocab_size=size, min_frequency=2, special_tokens=special, show_progress=False,
                                                          initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))),
        "unigram": lambda: (models.Unigram(), trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>",
                                                                     show_progress=False)),
        "wordpiece": lambda: (models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(
            vocab_size=size, min_frequency=2, limit_alphabet=1000, special_tokens=special, show_progress=False)),
    }[kind]()
    tokenizer = Tokenizer(model)
    if like.normalizer:
        tokenizer.normalizer = like.normalizer
    tokenizer.pre_tokenizer = like.pre_tokenizer
    start = time.time()
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer, time.time() - start


def alike(kind, a, b):
    a, b = (json.loads(t.to_str())["model"] for t in (a, b))
    if kind == "bpe":
        same = sum(x == y for x, y in zip(a["merges"], b["merges"]))
        return f"{same} of {len(a['merges'])} merges at the same place"
    pieces = [{x[0] for x in m["vocab"]} if kind == "unigram" else set(m["vocab"]) for m in (a, b)]
    return f"{len(pieces[0] & pieces[1])} of {len(pieces[0])} pieces in both"


def tokens_per_word(tokenizer, lines):
    words = sum(len(line.split()) for line in lines)
    return sum(len(e.ids) for e in tokenizer.encode_batch(lines, add_special_tokens=False)) / words


def differing(program, path, tokenizer, lines):
    data = "\n".join(lines).encode() + b"\n"
    run = subprocess.run([program, "--tokenizer", path, "--json"], input=data, capture_output=True, check=True)
    got = [json.loads(line) for line in run.stdout.splitlines()]
    bad = 0
    for line, answer in zip(lines, got, strict=True):
        e = tokenizer.encode(line)
        if (e.ids, e.type_ids) != (answer["ids"], answer["type_ids"]):
            bad += 1
            if bad < 4:
                print(f"differs: {line!r}: library {e.ids[:12]}, here {answer['ids'][:12]}")
    return bad


def record(program):
    """Small vocabularies of the suites, and what the library makes of them."""
    data = pathlib.Path(__file__).parent.parent / "data"
    text, folder = data / "bpe.txt", data / "tokenizer"
    lines = text.read_text().split("\n")
    for kind, size in (("bpe", 400), ("unigram", 130), ("wordpiece", 150)):
        path, rng = folder / f"learned-{kind}.json", random.Random(kind)
        said, _ = ours(program, kind, size, text, path)
        if said:
            sys.exit(said)
        some = [line for line in recipes.hostile(rng, [x for x in lines if x], 200) if len(line) <= 60] + lines
        cases = recipes.cases(Tokenizer.from_file(str(path)), rng, some, 30)
        (folder / f"learned-{kind}.cases.json").write_text(json.dumps({"cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--text")
    parser.add_argument("--held")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 8000])
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--only", nargs="*", default=list(SPECIAL))
    o = parser.parse_args()
    if o.record:
        return record(o.program)
    lines = open(o.text, encoding="utf-8", newline="\n").read().split("\n")
    held = open(o.held, encoding="utf-8", newline="\n").read().split("\n") if o.held else lines
    rng, bad = random.Random(1), 0
    hostile = [line.translate({0: " ", 10: " ", 13: " "}) for line in recipes.hostile(rng, [l for l in lines if l], o.lines)]
    with tempfile.TemporaryDirectory() as folder:
        for kind in o.only:
            for size in o.sizes:
                path = os.path.join(folder, f"{kind}-{size}.json")
                said, seconds = ours(o.program, kind, size, o.text, path)
                if said:
                    print(f"{kind} {size}: {said}")
                    continue
                mine = Tokenizer.from_file(path)
                other, their_seconds = theirs(kind, size, lines, mine)
                n = differing(o.program, path, mine, hostile + rng.sample(lines, min(len(lines), o.lines)))
                bad += n
                print(f"{kind} {size}: {n} texts differ; tokens per word {tokens_per_word(mine, held):.4f}, of the library's trainer "
                      f"{tokens_per_word(other, held):.4f}; {alike(kind, mine, other)}; {seconds:.1f} s, library {their_seconds:.1f} s", flush=True)
    return bad > 0


sys.exit(main())
