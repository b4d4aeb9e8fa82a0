#!/usr/bin/env python3
"""tests/models/torch_peer.py - PyTorch's side of `bench step`: the same models, sizes and settings.

What a user of PyTorch would run: torch.nn.Transformer (post-norm, ReLU, its final norms),
sinusoidal positions, scaled embeddings, fused Adam at 1e-4, cross-entropy over all labels. Decoding
is greedy with the whole prefix each time: nn.Transformer keeps no keys and values.

    torch_peer.py --preset base --mode train --threads 2             one JSON line on stdout
    torch_peer.py --preset copy --mode train --compile --no-mkldnn   compiled; the other BLAS path

Compare medians measured side by side: run it in turns with `bench step --json`.
"""
import argparse
import json
import math
import resource
import statistics
import sys
import time

import torch
from torch import nn

DROPOUT, RATE, CLIP = 0.1, 1e-4, 1.0

PRESETS = {
    "copy": dict(width=64, heads=4, layers=2, inner=128, src_vocab=20, tgt_vocab=20,
                 batch=32, src=10, tgt=11),
    "base": dict(width=512, heads=8, layers=6, inner=2048, src_vocab=10000, tgt_vocab=12000,
                 batch=2, src=100, tgt=120),
}


def sinusoid(length, width):
    """PE[p, 2i] = sin(p / 10000^(2i / width)), PE[p, 2i + 1] = cos of the same."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angle = torch.arange(length)[:, None] * rates
    return torch.stack((angle.sin(), angle.cos()), dim=-1).reshape(length, width)


class Translator(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width = sizes["width"]
        self.scale = math.sqrt(width)
        self.src_embedding = nn.Embedding(sizes["src_vocab"], width)
        self.tgt_embedding = nn.Embedding(sizes["tgt_vocab"], width)
        self.register_buffer("positions", sinusoid(512, width))
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(width, sizes["heads"], sizes["layers"], sizes["layers"],
                                          sizes["inner"], DROPOUT, batch_first=True)
        self.output = nn.Linear(width, sizes["tgt_vocab"])

    def embed(self, table, ids):
        return self.dropout(table(ids) * self.scale + self.positions[: ids.shape[1]])

    def encode(self, src):
        return self.transformer.encoder(self.embed(self.src_embedding, src))

    def decode(self, memory, tgt, mask):
        x = self.embed(self.tgt_embedding, tgt)
        return self.transformer.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True)

    def forward(self, src, tgt, mask):
        return self.output(self.decode(self.encode(src), tgt, mask))


def causal(length):
    return nn.Transformer.generate_square_subsequent_mask(length)


def batch_of(sizes):
    """Source, target, labels: any ids but 0, with which decoding starts."""
    return tuple(torch.randint(1, sizes[side + "_vocab"], (sizes["batch"], sizes[side]))
                 for side in ("src", "tgt", "tgt"))


def training_step(model, sizes, options):
    src, tgt, labels = batch_of(sizes)
    mask, loss_of = causal(sizes["tgt"]), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, fused=True)
    run = torch.compile(model) if options.compile else model
    model.train()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(run(src, tgt, mask).flatten(0, 1), labels.flatten()).backward()
        if not options.unguarded:
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()

    return step


def forward_step(model, sizes, options):
    src, tgt, _ = batch_of(sizes)
    mask = causal(sizes["tgt"])
    run = torch.compile(model) if options.compile else model
    model.eval()
    return torch.inference_mode()(lambda: run(src, tgt, mask))


def decoding(model, sizes, options):
    src, _, _ = batch_of(sizes)
    decode = torch.compile(model.decode, dynamic=True) if options.compile else model.decode
    model.eval()

    @torch.inference_mode()
    def step():
        memory, ids = model.encode(src), torch.zeros(sizes["batch"], 1, dtype=torch.long)
        for _ in range(sizes["tgt"]):
            hidden = decode(memory, ids, causal(ids.shape[1]))
            ids = torch.cat([ids, model.output(hidden[:, -1]).argmax(-1, keepdim=True)], 1)

    return step


def measure(step, seconds):
    """Two unseen runs (the first compiles), then until the time is over, at least three."""
    step(), step()
    taken, start = [], time.perf_counter()
    while len(taken) < 3 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        step()
        taken.append(time.perf_counter() - begin)
    return taken


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--preset", choices=PRESETS, default="copy")
    p.add_argument("--mode", choices=["train", "forward", "decode"], default="train")
    p.add_argument("--batch", type=int, help="sentences (default: the preset's)")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=5, help="of measuring")
    p.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    p.add_argument("--no-mkldnn", action="store_true", help="products by the plain BLAS")
    p.add_argument("--unguarded", action="store_true", help="train without clipping")
    return p.parse_args()


def main():
    o = options()
    sizes = dict(PRESETS[o.preset])
    sizes["batch"] = o.batch or sizes["batch"]
    torch.manual_seed(0)
    torch.set_num_threads(o.threads)
    torch.backends.mkldnn.enabled = not o.no_mkldnn
    model = Translator(sizes)
    make = {"train": training_step, "forward": forward_step, "decode": decoding}[o.mode]
    taken = measure(make(model, sizes, o), o.seconds)
    tokens = sizes["batch"] * sizes["tgt"]
    json.dump({
        "torch": torch.__version__, "preset": o.preset, "mode": o.mode,
        "batch": sizes["batch"], "threads": o.threads,
        "compile": o.compile, "mkldnn": not o.no_mkldnn,
        "guarded": o.mode == "train" and not o.unguarded,
        "median": statistics.median(taken), "min": min(taken), "runs": len(taken),
        "tokens_per_second": tokens / statistics.median(taken),
        "memory": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "parameters": sum(p.numel() for p in model.parameters()),
    }, sys.stdout)
    print()


if __name__ == "__main__":
    main()
