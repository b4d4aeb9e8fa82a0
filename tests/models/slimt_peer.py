#!/usr/bin/env python3
"""tests/models/slimt_peer.py - int8 translators with SSRU decoders in slimt 0.1.0, another engine of Marian's int8 files.

usage: slimt_peer.py TOOLS FOLDER [MODELS [SENTENCES]]
       slimt_peer.py --time TEXT TOOLS FOLDER [LINES [ROUNDS]]

Writes MODELS random models (default 6) with a SentencePiece vocabulary, and gives slimt SENTENCES texts (default 100), one at a
time, because in a batch it takes every row's likeliest token by comparing with the first row. slimt adds the position 0 in every
step of the decoder, where Marian and weft add the position of the step. So its whole outputs are compared with marian_peer.py's
formulas with position 0, and `generate --arithmetic marian`, whose outputs are those of the formulas with all positions, is
compared with it in the first token. A difference behind two logits within 0.2 is a tie: slimt's exp and its bias have other last
bits, so that activations may be rounded to other integers. Exits with 1 if there is another difference. Needs numpy, sentencepiece
and slimt.

--time writes random models of the sizes of Firefox's (marian_peer.py) with a vocabulary of 32,000 pieces learned from TEXT, and
translates its first LINES (default 200) in ROUNDS (default 3) turns, on one thread: by slimt, all at once, and by `generate
--batch-size 4`, from a file in int8 and in Marian's arithmetic. `</s>` is never the likeliest, so that every output has as many
tokens as its source, which is where slimt stops; it has a shortlist of all tokens. Figures are source words a second of processor
time, of generate without its start, which is the time of one line. Then it prints the memory of generate after 20 blocks.
"""
import glob
import importlib.util
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import sentencepiece

import marian_peer
from marian_peer import EOS, UNK

TIE = 0.2


class PositionZero(marian_peer.Int8):
    def decoder_positions(self, n):
        return np.repeat(self.positions(1), n, 0)


def open_slimt():
    """The engine's module alone: the package around it needs programs that fetch models."""
    path, = glob.glob(os.path.join(importlib.util.find_spec("slimt").submodule_search_locations[0], "_slimt*.so"))
    spec = importlib.util.spec_from_file_location("_slimt", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def learn_vocabulary(folder, rng):
    words = ["".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 4))) for _ in range(400)]
    lines = [" ".join(rng.choice(words) for _ in range(rng.randint(2, 8))) for _ in range(2000)]
    (folder / "text").write_text("\n".join(lines))
    sentencepiece.SentencePieceTrainer.train(input=str(folder / "text"), model_prefix=str(folder / "vocab"), vocab_size=256,
                                             eos_id=EOS, unk_id=UNK, bos_id=-1, pad_id=-1, minloglevel=2)
    return folder / "vocab.model", lines


def open_engine(slimt, m, folder, vocabulary):
    config = slimt.Config()
    config.encoder_layers, config.decoder_layers = m["enc"], m["dec"]
    config.num_heads, config.feed_forward_depth = m["H"], 2
    return slimt.Model(config, slimt.Package(str(folder / "model.bin"), str(vocabulary), str(folder / "all.bin")))


# ---- speed -----------------------------------------------------------------------------------------------------------

LENGTHS = "--threads 1 --batch-size 4 --beam 1 --max-len-a 1 --max-len-b 0 --at-limit no-end --quiet".split()


def generate_seconds(command, folder, lines):
    """Processor time of these lines, without that of one line."""
    seconds = []
    for n in (len(lines), 1):
        (folder / "lines").write_text("".join(line + "\n" for line in lines[:n]))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*map(str, command), "-i", folder / "lines"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return seconds[0] - seconds[1]


def settled(command, lines):
    """MiB that are resident, and of these anonymous, after 20 blocks of four lines."""
    p = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for i in range(0, 80, 4):
        p.stdin.write("".join(lines[(i + k) % len(lines)] + "\n" for k in range(4)).encode())
        p.stdin.flush()
        for _ in range(4):
            p.stdout.readline()
    rows = dict(line.split()[:2] for line in open(f"/proc/{p.pid}/smaps_rollup") if line.startswith(("Rss:", "Anonymous:")))
    p.stdin.close()
    p.wait()
    return [int(rows[k]) / 1024 for k in ("Rss:", "Anonymous:")]


def time_model(slimt, tools, folder, name, m, lines, rounds):
    rng = np.random.default_rng(m["D"])
    p = marian_peer.weights_of(m, rng)
    p["decoder_ff_logit_out_b"][0, EOS] = -50
    marian_peer.write_binary(folder / "model.bin", p, marian_peer.settings_of(m), rng)
    vocabulary = folder / "vocab.model"
    for command in (["--from", "marian", folder / "model.bin", "--spm-src", vocabulary, "-o", folder / "model.weft"],
                    ["--weights", "int8", folder / "model.weft", "-o", folder / "model.int8"]):
        marian_peer.run(tools / "convert", "--overwrite", *command)
    commands = {"weft": [tools / "generate", folder / "model.int8", *LENGTHS],
                "weft, Marian's arithmetic": [tools / "generate", folder / "model.weft", "--arithmetic", "marian", *LENGTHS]}
    engine, words, speeds = open_engine(slimt, m, folder, vocabulary), sum(len(line.split()) for line in lines), {}
    service = slimt.Service(1)
    service.translate(engine, lines[:1])
    for _ in range(rounds):
        begin = time.process_time()
        service.translate(engine, lines)
        speeds.setdefault("slimt", []).append(words / (time.process_time() - begin))
        for side, command in commands.items():
            speeds.setdefault(side, []).append(words / generate_seconds(command, folder, lines))
    for side, speed in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(speed, speeds["slimt"]))
        memory = "; {:.1f} MiB, {:.1f} of them anonymous".format(*settled(commands[side], lines)) if side in commands else ""
        print(f"{name}: {side}: {statistics.median(speed):.0f} words/s, {ratio:.2f} x slimt{memory}", flush=True)


def time_all(text, tools, folder, n=200, rounds=3):
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "vocab.model").exists():
        sentencepiece.SentencePieceTrainer.train(input=text, model_prefix=str(folder / "vocab"), vocab_size=32000, eos_id=EOS,
                                                 unk_id=UNK, bos_id=-1, pad_id=-1, minloglevel=2)
    marian_peer.write_shortlist(folder / "all.bin", 32000, np.zeros((32000, 1), np.uint32))
    with open(text) as f:
        lines = [next(f).strip() for _ in range(n)]
    slimt = open_slimt()
    for name, sizes in marian_peer.FIREFOX[:3]:
        time_model(slimt, tools, folder, name, marian_peer.firefox_model(sizes), lines, rounds)


# ---- outputs ---------------------------------------------------------------------------------------------------------

def main():
    if sys.argv[1] == "--time":
        time_all(sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]), *map(int, sys.argv[5:]))
        return
    tools, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    models, sentences = ([int(a) for a in sys.argv[3:]] + [6, 100][len(sys.argv) - 3:])[:2]
    folder.mkdir(parents=True, exist_ok=True)
    slimt = open_slimt()
    vocabulary, lines = learn_vocabulary(folder, random.Random(1))
    spm = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
    whole, first = np.zeros(3, int), np.zeros(3, int)
    marian_peer.write_shortlist(folder / "all.bin", 256, np.zeros((256, 1), np.uint32))  # of all tokens: slimt must have one
    for seed in range(models):
        rng = np.random.default_rng(seed)
        m = {"D": [64, 128][seed % 2], "F": 256, "H": 8, "enc": 6, "dec": [2, 4][seed // 2 % 2], "V": [256, 256], "tie": "all",
             "pre": False, "top": False, "decoder": "rnn", "act": "relu"}
        p = marian_peer.weights_of(m, rng)
        p["decoder_ff_logit_out_b"][0, UNK] = -100  # slimt may write it
        p, parts = marian_peer.write_binary(folder / "model.bin", p, marian_peer.settings_of(m), rng)
        engine = open_engine(slimt, m, folder, vocabulary)
        service = slimt.Service(1)
        marian_peer.run(tools / "convert", "--from", "marian", folder / "model.bin", "-o", folder / "model.weft")
        texts = [str(t) for t in rng.choice(lines, sentences)]
        sources = [spm.encode(t) + [EOS] for t in texts]
        outputs = marian_peer.run(tools / "generate", folder / "model.weft", "--arithmetic", "marian",
                                  text="".join(" ".join(map(str, s)) + "\n" for s in sources)).splitlines()
        at_zero = PositionZero(m, p, parts)
        for text, source, line in zip(texts, sources, outputs, strict=True):
            theirs = service.translate(engine, [text])[0].target.text
            ids, gaps = at_zero.greedy(source)
            same = theirs == spm.decode(ids[:len(source)])
            whole += same, not same and min(gaps[:len(source)]) < TIE, not same and min(gaps[:len(source)]) >= TIE
            begin = spm.decode([int(t) for t in line.split()[:1]])
            same = theirs.startswith(begin) and bool(theirs) == bool(begin)
            first += same, not same and gaps[0] < TIE, not same and gaps[0] >= TIE
    for name, (equal, ties, wrong) in (("slimt and the formulas, whole outputs", whole), ("slimt and weft, first tokens", first)):
        print(f"{name}: {equal + ties + wrong} sentences: {equal} equal, {ties} ties, {wrong} wrong")
    sys.exit(bool(whole[2] or first[2]))


if __name__ == "__main__":
    main()
