#!/usr/bin/env python3
"""Record what PyTorch's nn.Transformer computes: tests/data/model_CASE.safetensors and steps_OPTIMIZER.safetensors.

    tests/models/record_models.py tests/data

Needs torch and safetensors; the tests need neither, they read the files. Each model_ file is the state_dict of a module
as a PyTorch user would write it, in f32, with weft's configuration in the metadata: the tests load it like any
other model. Choices are numbers there, as they were before weft wrote their names: such files stay readable. values_CASE.safetensors holds the inputs, and what was computed in f64 from exactly those
weights: logits, sums of the loss, and the gradient of the summed loss by every parameter.
"""
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file, save_model

IGNORE = -1
SMALL = dict(src_vocab=11, tgt_vocab=13, max_len=9, d_model=8, num_heads=2, dim_feedforward=12,
             encoder_layers=2, decoder_layers=2, activation="relu", positions="sinusoidal", tie="none",
             norm_first=0, encoder_norm=0, decoder_norm=0, scale_embedding=1, bias=1, output_bias=1,
             pad_id=-1, start_id=0, end_id=0, layer_norm_eps=1e-5)
CASES = {
    "post": dict(),
    "pre": dict(norm_first=1, encoder_norm=1, decoder_norm=1, positions="learned", activation="gelu", tie="decoder",
                smoothing=0.1),
    "tied": dict(src_vocab=13, tie="all", activation="silu", encoder_norm=1, decoder_norm=1, output_bias=0,
                 smoothing=0.2),
    "plain": dict(positions="learned", bias=0, scale_embedding=0, activation="gelu_tanh", pad_id=3, start_id=1, end_id=2,
                  dim_feedforward=8, layer_norm_eps=1e-3),
    "uneven": dict(positions="none", norm_first=1, encoder_layers=3, decoder_layers=1, num_heads=4),
}
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}
NAMES = {"activation": list(ACTIVATIONS), "positions": ["none", "sinusoidal", "learned"],
           "tie": ["none", "decoder", "all"]}


def sinusoid(length, width):
    p = torch.arange(length, dtype=torch.float64)[:, None]
    angle = p / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack((angle.sin(), angle.cos()), -1).reshape(length, width)


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, D = c, c["d_model"]
        self.src_embedding = nn.Embedding(c["src_vocab"], D)
        self.tgt_embedding = nn.Embedding(c["tgt_vocab"], D)
        if c["positions"] == "learned":
            self.src_position = nn.Embedding(c["max_len"], D)
            self.tgt_position = nn.Embedding(c["max_len"], D)
        self.transformer = nn.Transformer(
            D, c["num_heads"], c["encoder_layers"], c["decoder_layers"], c["dim_feedforward"], dropout=0.0,
            activation=ACTIVATIONS[c["activation"]], layer_norm_eps=c["layer_norm_eps"], batch_first=True,
            norm_first=bool(c["norm_first"]), bias=bool(c["bias"]))
        if not c["encoder_norm"]:
            self.transformer.encoder.norm = None
        if not c["decoder_norm"]:
            self.transformer.decoder.norm = None
        self.output = nn.Linear(D, c["tgt_vocab"], bias=bool(c["output_bias"]))
        if c["tie"] != "none":
            self.output.weight = self.tgt_embedding.weight
        if c["tie"] == "all":
            self.src_embedding.weight = self.tgt_embedding.weight

    def embed(self, tokens, side):
        x = getattr(self, side + "_embedding")(tokens)
        if self.c["scale_embedding"]:
            x = x * math.sqrt(self.c["d_model"])
        if self.c["positions"] == "learned":
            x = x + getattr(self, side + "_position").weight[: tokens.shape[1]]
        if self.c["positions"] == "sinusoidal":
            x = x + sinusoid(tokens.shape[1], self.c["d_model"]).to(x.dtype)
        return x

    def forward(self, src, src_length, tgt):
        padding = torch.arange(src.shape[1]) >= src_length[:, None]
        if self.c["pad_id"] >= 0:
            padding = padding | (src == self.c["pad_id"])
        causal = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).triu(1)
        y = self.transformer(self.embed(src, "src"), self.embed(tgt, "tgt"), tgt_mask=causal,
                             src_key_padding_mask=padding, memory_key_padding_mask=padding)
        return self.output(y)


def new_model(c, spread=0.4):
    model = Model(c)
    for name, p in model.named_parameters():
        gain = ".norm" in name and name.endswith("weight")
        nn.init.normal_(p, 1.0 if gain else 0.0, 0.1 if p.dim() == 1 else spread)
    return model  # f32: the weights are what a file of f32 holds


def metadata(c):
    number = lambda k, v: str(NAMES[k].index(v)) if k in NAMES else "%.17g" % v
    return {"weft.config." + k: number(k, c[k]) for k in SMALL}


def batch(c, B=3, S=5, T=4):
    """Right-padded sources and targets; what pads them must not matter."""
    src_length = torch.tensor([S, S - 2, 1])
    src = torch.randint(4, c["src_vocab"], (B, S))
    if c["pad_id"] >= 0:
        src[0, S - 1] = c["pad_id"]
    tgt = torch.randint(0, c["tgt_vocab"], (B, T))
    labels = torch.randint(0, c["tgt_vocab"], (B, T))
    labels[1, T - 1:] = IGNORE
    labels[2, 1:] = IGNORE
    return dict(src=src, src_length=src_length, tgt=tgt, labels=labels)


def loss_sum(model, b, smoothing):
    logits = model(b["src"], b["src_length"], b["tgt"])
    flat, labels = logits.reshape(-1, logits.shape[-1]), b["labels"].reshape(-1)
    loss = F.cross_entropy(flat, labels, ignore_index=IGNORE, reduction="sum", label_smoothing=smoothing)
    return logits, loss, F.cross_entropy(flat, labels, ignore_index=IGNORE, reduction="sum")


def save_weights(model, c, path):
    if c["tie"] == "all":  # safetensors' own way with tied weights: one name of three
        return save_model(model, path, metadata=metadata(c))
    state = {k: v.detach().clone() for k, v in model.state_dict().items()}
    if c["norm_first"] and c["positions"] == "none":  # as torch stores it where widths of q, k and v differ
        for name in [k for k in state if k.endswith("in_proj_weight")]:
            for letter, part in zip("qkv", state.pop(name).chunk(3)):
                state[name.replace("in_proj", letter + "_proj")] = part.clone()
    save_file(state, path, metadata=metadata(c))


def record_case(name, changes, folder):
    torch.manual_seed(17)
    c = {**SMALL, **changes}
    smoothing = c.pop("smoothing", 0.0)
    model = new_model(c)
    save_weights(model, c, f"{folder}/model_{name}.safetensors")
    model.double()
    b = batch(c)
    logits, loss, nll = loss_sum(model, b, smoothing)
    loss.backward()
    out = {k: v.to(torch.int32) for k, v in b.items()}
    out.update(logits=logits.detach(), loss=loss.detach(), nll=nll.detach(),
               smoothing=torch.tensor(smoothing, dtype=torch.float64))
    for key, p in model.named_parameters():
        out["grad." + key] = p.grad
    save_file({k: v.contiguous() for k, v in out.items()}, f"{folder}/values_{name}.safetensors")


# ---- ten steps of each optimizer, with the gradient of the mean loss --------------------------------------------

def adamw(model):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW([dict(params=matrices, weight_decay=0.1), dict(params=others, weight_decay=0.0)], lr=0.01)


OPTIMIZERS = {
    "adam": (lambda m: torch.optim.Adam(m.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9), 0),
    "adamw": (adamw, 0.5),
    "sgd": (lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9), 0),
}


def record_steps(name, folder):
    make, clip = OPTIMIZERS[name]
    torch.manual_seed(17)
    model = new_model(SMALL).double()  # the weights of model_post
    optimizer = make(model)
    losses, norms, out = [], [], {}
    for step in range(10):
        b = batch(SMALL)
        optimizer.zero_grad()
        _, loss, _ = loss_sum(model, b, 0.0)
        loss = loss / (b["labels"] != IGNORE).sum()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip if clip else math.inf))
        optimizer.step()
        losses.append(loss.detach())
        out.update({f"{k}.{step}": v.to(torch.int32) for k, v in b.items()})
    out.update(losses=torch.stack(losses), norms=torch.stack(norms))
    save_file(out, f"{folder}/steps_{name}.safetensors")


if __name__ == "__main__":
    for case, changes in CASES.items():
        record_case(case, changes, sys.argv[1])
    for optimizer in OPTIMIZERS:
        record_steps(optimizer, sys.argv[1])
