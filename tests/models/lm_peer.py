#!/usr/bin/env python3
"""tests/models/lm_peer.py - the language model as PyTorch users write it: GPT and Llama forms.

    lm_peer.py --record tests/data
        lm_FORM.safetensors: initial weights in f32, with weft's configuration in the metadata;
        lm_FORM_steps.safetensors: 50 batches, and the losses of 50 steps of AdamW on them, computed
        in f64. The tests read them.
    lm_peer.py --text FILE --train build/tools/train --threads 2
        tokens/s of training beside `train --task lm`, in turns: a block of steps of one, of the
        other, and so on; the medians of each, and of the ratios of neighbours. --cpu: by seconds of
        the processor instead of the clock's, for a machine that does other work as well.

A step is what a user would run: forward, cross-entropy, backward, clipping, fused AdamW with decay
of matrices alone. --compile: torch.compile. Needs torch, numpy and safetensors.
"""
import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn

SMALL = dict(vocab=19, max_len=12, d_model=16, num_heads=4, dim_feedforward=24, layers=2,
             activation="gelu-tanh", positions="learned", tied=1, norm_first=1, final_norm=1,
             scale_embedding=1, bias=1, output_bias=1, layer_norm_eps=1e-5, start_id=3, end_id=3,
             start_first=1)
FORMS = {
    "gpt": dict(),
    "llama": dict(norm="rms", positions="rotary", activation="silu", gated=1, num_kv_heads=2, bias=0,
                  output_bias=0, tied=0, scale_embedding=0),
}
ACTIVATIONS = {"gelu-tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def norm(c):
    if c.get("norm") == "rms":
        return RMSNorm(c["d_model"], c["layer_norm_eps"])
    return nn.LayerNorm(c["d_model"], c["layer_norm_eps"], bias=bool(c["bias"]))


def rotated(x, turns):
    """Pairs (i, i + d/2) of each head, [B,H,T,d]."""
    cos, sin = turns
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv = c["num_heads"], c.get("num_kv_heads") or c["num_heads"]
        width = c["d_model"]
        self.d = width // self.heads
        rows = (self.heads + 2 * self.kv) * self.d
        self.in_proj_weight = nn.Parameter(torch.empty(rows, width))
        self.in_proj_bias = nn.Parameter(torch.empty(rows)) if c["bias"] else None
        self.out_proj = nn.Linear(width, width, bias=bool(c["bias"]))

    def forward(self, x, turns):
        B, T, _ = x.shape
        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias).split(
            [self.heads * self.d, self.kv * self.d, self.kv * self.d], -1)
        q, k, v = (p.view(B, T, -1, self.d).transpose(1, 2) for p in parts)
        if turns is not None:
            q, k = rotated(q, turns), rotated(k, turns)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kv != self.heads)
        return self.out_proj(y.transpose(1, 2).reshape(B, T, -1))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner, bias = c["d_model"], c["dim_feedforward"], bool(c["bias"])
        self.self_attn, self.norm1, self.norm2 = Attention(c), norm(c), norm(c)
        self.linear1 = nn.Linear(width, inner, bias=bias)
        self.linear2 = nn.Linear(inner, width, bias=bias)
        self.linear3 = nn.Linear(width, inner, bias=bias) if c.get("gated") else None
        self.activation = ACTIVATIONS[c["activation"]]

    def forward(self, x, turns):
        x = x + self.self_attn(self.norm1(x), turns)
        y = self.norm2(x)
        h = self.activation(self.linear1(y))
        return x + self.linear2(h * self.linear3(y) if self.linear3 else h)


class LanguageModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, width = c, c["d_model"]
        self.embedding = nn.Embedding(c["vocab"], width)
        if c["positions"] == "learned":
            self.position = nn.Embedding(c["max_len"], width)
        self.transformer = nn.Module()
        self.transformer.layers = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.transformer.norm = norm(c)
        self.output = nn.Linear(width, c["vocab"], bias=bool(c["output_bias"]))
        if c["tied"]:
            self.output.weight = self.embedding.weight
        self.scale = math.sqrt(width) if c["scale_embedding"] else 1.0

    def turns(self, T, x):
        d = self.c["d_model"] // self.c["num_heads"]
        rates = 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
        angle = torch.arange(T, dtype=x.dtype)[:, None] * rates
        return angle.cos(), angle.sin()

    def forward(self, ids, labels):
        T = ids.shape[1]
        x = self.embedding(ids) * self.scale
        turns = self.turns(T, x) if self.c["positions"] == "rotary" else None
        if self.c["positions"] == "learned":
            x = x + self.position.weight[:T]
        for layer in self.transformer.layers:
            x = layer(x, turns)
        logits = self.output(self.transformer.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def optimizer(model, rate):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [dict(params=matrices, weight_decay=0.01), dict(params=others, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-9, fused=True)


def step_of(run, model, opt):
    def step(ids, labels):
        opt.zero_grad(set_to_none=True)
        loss = run(ids, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        return loss.item()
    return step


# ---- losses ---------------------------------------------------------------------------------------

def record(form, folder):
    from safetensors.torch import save_file
    torch.manual_seed(17)
    c = {**SMALL, **FORMS[form]}
    model = LanguageModel(c)
    for name, p in model.named_parameters():
        gain = ".norm" in name and name.endswith("weight")
        nn.init.normal_(p, 1.0 if gain else 0.0, 0.1 if p.dim() == 1 else 0.3)
    out = {k: v.detach().clone() for k, v in model.state_dict().items()}
    if c["tied"]:
        del out["output.weight"]
    meta = {"weft.config." + k: v if isinstance(v, str) else "%.17g" % v for k, v in sorted(c.items())}
    save_file(out, f"{folder}/lm_{form}.safetensors", metadata={"weft.model": "language_model", **meta})
    model.double()
    out = {}
    step, losses = step_of(model, model, optimizer(model, 0.005)), []
    for i in range(50):
        text = torch.randint(0, c["vocab"], (4, c["max_len"] + 1)).cumsum(1) % c["vocab"]
        ids, labels = text[:, :-1], text[:, 1:]
        out[f"tgt.{i}"], out[f"labels.{i}"] = (t.to(torch.int32).contiguous() for t in (ids, labels))
        losses.append(step(ids, labels))
    out["losses"] = torch.tensor(losses, dtype=torch.float64)
    save_file(out, f"{folder}/lm_{form}_steps.safetensors")


# ---- speed ----------------------------------------------------------------------------------------

def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def weft_steps(o, file, first, steps):
    """Tokens/s of steps first+1..first+steps, by the program's own lines; with --cpu, seconds of all
    of the run."""
    command = [o.train, "--text", o.text, "-o", file, "--max-steps", str(first + steps), "--log-every",
               str(steps), "--threads", str(o.threads), "--json", "--quiet", "--save-every", "0"]
    if first:
        command += ["--resume"]
    else:
        command += ["--task", "lm", "--tokenizer", "byte", "--d-model", str(o.width), "--layers",
                    str(o.layers), "--heads", str(o.heads), "--d-ff", str(4 * o.width), "--max-len",
                    str(o.length), "--max-tokens", str(o.batch * o.length), "--text-eval-size", "0",
                    "--lr", "1e-3", "--lr-steps", "100000", "--dropout", "0", "--overwrite", "--form", o.form]
        command += ["--kv-heads", str(max(o.heads // 2, 1))] if o.form == "llama" else []
    began = processor()
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if o.cpu:
        return processor() - began
    lines = [json.loads(line) for line in out.splitlines()]
    return [line["tokens_per_second"] for line in lines if line["event"] == "step"][-1]


def torch_steps(o):
    """A function that makes so many steps and returns tokens/s, on windows of the same text."""
    c = {**SMALL, **FORMS[o.form], "vocab": 260, "max_len": o.length, "d_model": o.width,
         "num_heads": o.heads, "dim_feedforward": 4 * o.width, "layers": o.layers}
    if o.form == "llama":
        c.update(tied=1, num_kv_heads=max(o.heads // 2, 1))
    torch.manual_seed(0)
    text = torch.frombuffer(bytearray(open(o.text, "rb").read()), dtype=torch.uint8).long() + 4
    model = LanguageModel(c)
    for name, p in model.named_parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0, 1 / math.sqrt(o.width))
    step = step_of(torch.compile(model) if o.compile else model, model, optimizer(model, 1e-3))

    clock = time.process_time if o.cpu else time.perf_counter

    def steps(n):
        begin = clock()
        for _ in range(n):
            at = torch.randint(0, len(text) - o.length - 1, (o.batch,)).tolist()
            windows = torch.stack([text[i : i + o.length + 1] for i in at])
            step(windows[:, :-1], windows[:, 1:])
        return n * o.batch * o.length / (clock() - begin)

    steps(3)  # the first compiles
    return steps


def weft_block(o, file, i):
    """Tokens/s of a round; by the processor: what more steps take than one does."""
    if not o.cpu:
        return weft_steps(o, file, i * o.steps, o.steps)
    first = i * (o.steps + 2)
    one = weft_steps(o, file, first, 1)
    many = weft_steps(o, file, first + 1, o.steps + 1)
    return o.steps * o.batch * o.length / (many - one)


def compare(o):
    torch.set_num_threads(o.threads)
    run, ours, theirs = torch_steps(o), [], []
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "m.safetensors")
        for i in range(o.rounds):
            ours.append(weft_block(o, file, i))
            theirs.append(run(o.steps))
    ratios = [a / b for a, b in zip(ours, theirs)]
    print(json.dumps(dict(form=o.form, threads=o.threads, by="processor" if o.cpu else "clock", compiled=o.compile, rounds=o.rounds,
                          weft=round(statistics.median(ours)), torch=round(statistics.median(theirs)),
                          ratio=round(statistics.median(ratios), 3),
                          ratios=[round(r, 2) for r in ratios])))


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--record", metavar="FOLDER")
    p.add_argument("--text", metavar="FILE")
    p.add_argument("--train", default="build/tools/train")
    p.add_argument("--form", choices=FORMS, default="gpt")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--steps", type=int, default=12, help="in a round")
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--length", type=int, default=256)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--compile", action="store_true")
    return p.parse_args()


def main():
    o = options()
    for form in FORMS if o.record else []:
        record(form, o.record)
    if o.text:
        compare(o)


if __name__ == "__main__":
    main()
