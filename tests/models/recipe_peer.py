#!/usr/bin/env python3
"""tests/models/recipe_peer.py - the README's translator beside PyTorch: tokens/s of training.

    tests/models/recipe_peer.py --train build/tools/train --threads 2

The recipe is what `train` does with two files and --share-vocab --tie all, but of words: width 128,
4 + 4 pre-norm layers, 4 heads, 256 inside, 8,000 ids, dropout 0.2, label smoothing 0.1, batches of
4,096 tokens by length. The pairs are made up: some batches, short to long, out of 29,000 pairs as
long as those of Multi30k. PyTorch gets the batches that weft cuts from them, padding and all. In
turns: an epoch of one, of the other; printed are the medians of target tokens/s, and of the ratios
of neighbours. A turn of weft is two epochs, of which the second counts: the first touches memory.

PyTorch's side is what a user would run: torch.nn.Transformer with padding masks, the loss's own
label smoothing, clipping, fused Adam. --compile: torch.compile. Needs torch.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import tempfile
import time

import torch
from torch import nn

from torch_peer import sinusoid

WIDTH, HEADS, LAYERS, INNER, IDS = 128, 4, 4, 256, 8000
DROPOUT, SMOOTHING, RATE, CLIP, MAX_TOKENS = 0.2, 0.1, 1e-3, 1.0, 4096
PAIRS, PAD, FIRST_WORD = 29000, 0, 4


# ---- batches --------------------------------------------------------------------------------------

def lengths_of(draw):
    """Source and target: the logarithm is normal, sources a little longer or shorter."""
    tgt = min(max(round(math.exp(draw.gauss(2.65, 0.31))), 4), 50)
    return min(max(round(tgt * math.exp(draw.gauss(0, 0.2))), 3), 50), tgt


def pairs_of(n_batches):
    """The pairs of some batches of all, as lists of words 0... Each word is among them, so that
    weft's vocabulary is as large as it should be; some are frequent."""
    draw = random.Random(1)
    everything = batches_of([tuple(range(n) for n in lengths_of(draw)) for _ in range(PAIRS)])
    chosen = everything[len(everything) // n_batches // 2 :: len(everything) // n_batches]
    unseen = list(range(IDS - FIRST_WORD))
    draw.shuffle(unseen)

    def word():
        if unseen and draw.random() < 0.5:
            return unseen.pop()
        return int((IDS - FIRST_WORD) * draw.random() ** 4)

    pairs = [tuple([word() for _ in side] for side in pair) for batch in chosen for pair in batch]
    assert not unseen, "more --batches"
    return pairs


def batches_of(pairs):
    """As tools/data/batches.c cuts them: by target, then source, up and down in turn."""
    order = sorted(pairs, key=lambda p: (len(p[1]), len(p[0]) * (1 - 2 * (len(p[1]) % 2))))
    batches, batch = [], []
    for pair in order:
        longer = batch + [pair]
        width = max(len(p[0]) for p in longer) + max(len(p[1]) + 1 for p in longer)
        if batch and len(longer) * width > MAX_TOKENS:
            batches.append(batch)
            longer = [pair]
        batch = longer
    return batches + [batch]


def padded(rows):
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def tensors_of(batch):
    """Source, target that begins with 1, labels that end with 2."""
    src = [[w + FIRST_WORD for w in p[0]] for p in batch]
    tgt = [[w + FIRST_WORD for w in p[1]] for p in batch]
    return padded(src), padded([[1] + row for row in tgt]), padded([row + [2] for row in tgt])


def write_lines(path, rows):
    with open(path, "w") as f:
        f.writelines(" ".join(f"w{word}" for word in row) + "\n" for row in rows)


# ---- PyTorch --------------------------------------------------------------------------------------

class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(IDS, WIDTH)
        nn.init.normal_(self.table.weight, 0, 1 / math.sqrt(WIDTH))
        self.register_buffer("positions", sinusoid(256, WIDTH))
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, INNER, DROPOUT,
                                          batch_first=True, norm_first=True)
        self.transformer.encoder.enable_nested_tensor = False  # a warning otherwise
        for layer in self.transformer.modules():
            if isinstance(layer, nn.MultiheadAttention):
                layer.dropout = 0.0  # --attention-dropout
        self.bias = nn.Parameter(torch.zeros(IDS))

    def embed(self, ids):
        x = self.table(ids) * math.sqrt(WIDTH) + self.positions[: ids.shape[1]]
        return self.dropout(x)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        padding = src == PAD
        x = self.transformer(self.embed(src), self.embed(tgt), tgt_mask=mask, tgt_is_causal=True,
                             src_key_padding_mask=padding, memory_key_padding_mask=padding)
        return nn.functional.linear(x, self.table.weight, self.bias)


def torch_epochs(o, batches):
    """A function that makes an epoch and returns target tokens/s."""
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    model = Translator().train()
    run = torch.compile(model) if o.compile else model
    loss_of = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
    data = [tensors_of(batch) for batch in batches]
    tokens = sum(len(p[1]) + 1 for batch in batches for p in batch)

    def step(src, tgt, labels):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(run(src, tgt).flatten(0, 1), labels.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        return loss.item()

    def epoch():
        begin = time.perf_counter()
        for batch in data:
            step(*batch)
        return tokens / (time.perf_counter() - begin)

    step(*data[0])
    if o.compile:
        epoch()
    return epoch


# ---- weft -----------------------------------------------------------------------------------------

def weft_epochs(o, folder, pairs, n_batches):
    """The same, of the second of two epochs, by the program's own line."""
    for side, name in enumerate(("src", "tgt")):
        write_lines(f"{folder}/{name}", [p[side] for p in pairs])
    write_lines(f"{folder}/valid", [pairs[0][0]])
    command = [o.train, "--train-src", f"{folder}/src", "--train-tgt", f"{folder}/tgt", "-o",
               f"{folder}/m.safetensors", "--share-vocab", "--tie", "all", "--tokenizer", "word",
               "--vocab-size", str(IDS), "--max-tokens", str(MAX_TOKENS), "--dropout", str(DROPOUT),
               "--overwrite", "--valid-src", f"{folder}/valid", "--valid-tgt",
               f"{folder}/valid", "--valid-every", "0", "--save-every", "0", "--max-steps",
               str(2 * n_batches), "--log-every", str(n_batches), "--threads", str(o.threads),
               "--json"] + (["--profile"] if o.profile else [])

    def epoch():
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True,
                             stderr=None if o.profile else subprocess.DEVNULL).stdout
        steps = [e for e in map(json.loads, out.splitlines()) if e["event"] == "step"]
        assert steps[-1]["epoch"] == 2, "weft cuts other batches"
        return steps[-1]["tokens_per_second"]

    return epoch


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--train", default="build/tools/train")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--batches", type=int, default=10, help="in an epoch, of short to long pairs")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--profile", action="store_true", help="also where weft's time goes")
    return p.parse_args()


def main():
    o = options()
    pairs = pairs_of(o.batches)
    batches = batches_of(pairs)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = weft_epochs(o, folder, pairs, len(batches)), torch_epochs(o, batches)
        rounds = [(ours(), theirs()) for _ in range(o.rounds)]
    ratios = [a / b for a, b in rounds]
    print(json.dumps({
        "torch": torch.__version__, "isa": os.environ.get("WEFT_ISA", "best"),
        "torch_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": o.threads, "compile": o.compile, "batches": len(batches),
        "weft": round(statistics.median(a for a, _ in rounds)),
        "pytorch": round(statistics.median(b for _, b in rounds)),
        "ratio": round(statistics.median(ratios), 2), "ratios": [round(r, 2) for r in ratios],
    }))


if __name__ == "__main__":
    main()
