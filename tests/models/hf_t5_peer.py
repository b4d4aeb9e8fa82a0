#!/usr/bin/env python3
"""tests/models/hf_t5_peer.py - transformers' own models of T5's families, imported: as hf_peer.py, whose checks these are.

    hf_t5_peer.py build [--lines 1000] [--only NAME]

24 random models: T5 1.0, T5 1.1 and FLAN, mT5, UMT5, MADLAD-400's form of T5 1.1, saved in all ways; and a folder as
transformers 4 wrote it, whose configuration says nothing of scaled outputs. Biases of distances are large, so that a wrong
bucket shows, and some models have scores of attention that choose one key alone.
"""
import json
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import (MT5Config, MT5ForConditionalGeneration, T5Config, T5ForConditionalGeneration, UMT5Config,
                          UMT5ForConditionalGeneration)
from transformers.models.mt5 import modeling_mt5
from transformers.models.t5 import modeling_t5
from transformers.models.umt5 import modeling_umt5

import hf_peer

V = hf_peer.V
SIZES = dict(vocab_size=V, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=2, num_heads=4, dropout_rate=0.0,
             decoder_start_token_id=0)
GATED = dict(SIZES, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
MADLAD = dict(GATED, pad_token_id=1, eos_token_id=2, d_kv=16, num_heads=3)
PLAIN, BEAMS = dict(max_length=28), dict(max_length=28, num_beams=4, length_penalty=0.6, early_stopping=True)
hf_peer.CLASSES.update(t5=(T5Config, T5ForConditionalGeneration), mt5=(MT5Config, MT5ForConditionalGeneration),
                       umt5=(UMT5Config, UMT5ForConditionalGeneration))
# Names with "own": the output has a table of its own; with "sharp": attention chooses one key;
# with "old": as transformers 4 saved them.
CASES = {
    "t5": ("t5", SIZES, PLAIN, "safetensors"),
    "t5-bin": ("t5", dict(SIZES, d_kv=5, num_layers=3), BEAMS, "bin"),
    "t5-legacy": ("t5", dict(SIZES, num_layers=1, num_decoder_layers=1), PLAIN, "legacy"),
    "t5-shards": ("t5", dict(SIZES, d_model=24, d_kv=11), PLAIN, "shards"),
    "t5-half": ("t5", SIZES, BEAMS, "half"),
    "t5-sharp": ("t5", dict(SIZES, relative_attention_num_buckets=8, relative_attention_max_distance=16), PLAIN, "safetensors"),
    "t5-old": ("t5", SIZES, PLAIN, "safetensors"),
    "t5-deep": ("t5", dict(SIZES, num_layers=2, num_decoder_layers=4), dict(PLAIN, use_cache=False), "safetensors"),
    "flan-own": ("t5", GATED, PLAIN, "safetensors"),
    "flan-own-bin": ("t5", dict(GATED, num_heads=6, d_kv=9), BEAMS, "bin"),
    "flan-own-old": ("t5", GATED, PLAIN, "safetensors"),
    "flan-tied": ("t5", GATED, PLAIN, "safetensors"),
    "flan-own-silu": ("t5", dict(GATED, feed_forward_proj="gated-silu", num_layers=4), BEAMS, "safetensors"),
    "flan-own-sharp": ("t5", dict(GATED, num_decoder_layers=1), PLAIN, "half-bin"),
    "mt5-own": ("mt5", SIZES, PLAIN, "safetensors"),
    "mt5-tied": ("mt5", SIZES, BEAMS, "safetensors"),
    "mt5-own-bin": ("mt5", dict(SIZES, d_kv=7, num_layers=3), BEAMS, "shards-bin"),
    "mt5-relu": ("mt5", dict(SIZES, feed_forward_proj="relu"), PLAIN, "bin"),
    "umt5": ("umt5", SIZES, PLAIN, "safetensors"),
    "umt5-own": ("umt5", dict(SIZES, num_layers=4, d_kv=6), BEAMS, "bin"),
    "umt5-own-old": ("umt5", dict(SIZES, tie_word_embeddings=False), PLAIN, "safetensors"),
    "umt5-sharp": ("umt5", dict(SIZES, relative_attention_num_buckets=20, relative_attention_max_distance=24), BEAMS, "shards"),
    "madlad-own": ("t5", MADLAD, BEAMS, "safetensors"),
    "madlad-own-tables": ("t5", dict(MADLAD, num_layers=3), PLAIN, "tables"),
}


def exact_norm(self, x):
    """In f64 as a whole, where transformers' variance is f32."""
    variance = x.to(x.dtype if x.dtype == torch.float64 else torch.float32).pow(2).mean(-1, keepdim=True)
    return self.weight * (x * torch.rsqrt(variance + self.variance_epsilon))


for norm in (modeling_t5.T5LayerNorm, modeling_mt5.MT5LayerNorm, modeling_umt5.UMT5LayerNorm):
    norm.forward = exact_norm


def make(name):
    family, config, generation, _ = CASES[name]
    torch.manual_seed(sum(map(ord, name)))
    model = hf_peer.CLASSES[family][1](hf_peer.CLASSES[family][0](**config)).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "layer_norm" in key:
                p.add_(0.1 * torch.randn_like(p))
            elif "relative_attention_bias" in key:
                p.normal_(0, 1)
            elif "sharp" in name and key.endswith(".q.weight"):
                p.mul_(12)
            elif "shared" in key and model.config.model_type == "t5" and not model.config.scale_decoder_outputs:
                p.mul_(0.35)
    if "own" in name:
        model.lm_head.weight = torch.nn.Parameter(0.6 * torch.randn(config["vocab_size"], config["d_model"]))
    for key, value in generation.items():
        setattr(model.generation_config, key, value)
    return model


def save(model, folder, how, of_hf_peer=hf_peer.save):
    """Further ways: as transformers 4 wrote it, and with copies of the table in place of the shared one."""
    model = of_hf_peer(model, folder, "safetensors" if how == "tables" else how)
    if folder.name.endswith("old"):
        config = json.loads((folder / "config.json").read_text())
        config["tie_word_embeddings"] = bool(config.pop("scale_decoder_outputs"))
        config["n_positions"] = 512
        (folder / "config.json").write_text(json.dumps(config))
    if how == "tables":
        tensors = load_file(folder / "model.safetensors")
        tensors["decoder.embed_tokens.weight"] = tensors.pop("shared.weight")
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return model


if __name__ == "__main__":
    hf_peer.CASES, hf_peer.make, hf_peer.save = CASES, make, save
    hf_peer.main(__doc__)
