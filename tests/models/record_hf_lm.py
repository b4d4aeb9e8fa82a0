#!/usr/bin/env python3
"""Record what transformers computes of language models: tests/data/hf/CASE, a folder as save_pretrained writes it, with
values.safetensors.

    tests/models/record_hf_lm.py tests/data/hf [CASE ...]

Needs torch and transformers; the tests need neither. values.safetensors holds prompts ("src"), targets, the log-probabilities
of each target token and of the end, computed in f64, and what generate() finds without sampling ("greedy"): rows of ids, filled
up with -1. Each has a tokenizer.json, lines with their ids ("lines.txt", "lines"), and the texts that generate() goes on with
("texts.txt").
"""
import pathlib
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

import hf_lm_peer
from hf_lm_peer import CASES, GPT2, LLAMA, LLAMA3, V, add_tokenizer, save, torch_greedy, torch_scores

NEW = 10
TINY_GPT2 = dict(GPT2, n_positions=24, n_embd=8, n_head=2)
TINY = dict(LLAMA, max_position_embeddings=32, hidden_size=8, intermediate_size=12, num_attention_heads=4)
RECORDED = {
    "lm_gpt2": ("gpt2", TINY_GPT2, "bare"),
    "lm_llama": ("llama", dict(TINY, rope_parameters=LLAMA3, tie_word_embeddings=True), "old"),
    "lm_linear": ("llama", dict(TINY, rope_parameters=dict(rope_type="linear", rope_theta=1000.0, factor=4.0),
                                tie_word_embeddings=True, attention_bias=True), ""),
    "lm_mistral": ("mistral", dict(TINY, sliding_window=5, tie_word_embeddings=True), "bfloat"),
    "lm_qwen2": ("qwen2", TINY, "half"),
    "lm_qwen3": ("qwen3", dict(TINY, head_dim=6, tie_word_embeddings=True), ""),
    "lm_bigcode": ("bigcode", TINY_GPT2, ""),
    "lm_gemma": ("gemma", dict(TINY, head_dim=6), "bfloat"),
    "lm_starcoder2": ("starcoder2", dict(TINY, sliding_window=5), "half"),
}


def rows_of(rows):
    out = np.full((len(rows), max(map(len, rows))), -1, np.int32)
    for i, row in enumerate(rows):
        out[i, :len(row)] = row
    return torch.tensor(out)


def record(root, name):
    family, _, _ = CASES[name] = RECORDED[name]
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    model = save(hf_lm_peer.make(name), folder, RECORDED[name][2])
    tokenizer = add_tokenizer(folder, family not in ("gpt2", "bigcode"))
    rng = np.random.default_rng(7)
    src = [[int(x) for x in rng.integers(2, V, n)] for n in (1, 2, 5, 9, 12)]
    tgt = [[int(x) for x in rng.integers(2, V, n)] for n in (4, 0, 7, 1, 9)]
    lines = ["the house", "it's 1999", " we'll  run", "日本 läuft ½", "</s> dog", "a"]
    ids = [tokenizer(line).input_ids for line in lines]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    greedy = [torch_greedy(model, [row], NEW)[0] for row in src]
    texts = [tokenizer.decode(torch_greedy(model, [row], NEW)[0], skip_special_tokens=True) for row in ids]
    texts = ["".join(" " if c < " " else c for c in text) for text in texts]  # a line each
    (folder / "texts.txt").write_text("".join(text + "\n" for text in texts))
    scores = torch_scores(model.double(), src, tgt)
    logs = np.zeros((len(src), 10))
    for i, row in enumerate(scores):
        logs[i, :len(row)] = row
    save_file({"src": rows_of(src).clamp(min=0), "src_length": torch.tensor([len(r) for r in src], dtype=torch.int32),
               "tgt": rows_of(tgt).clamp(min=0), "tgt_length": torch.tensor([len(r) for r in tgt], dtype=torch.int32),
               "log_probs": torch.tensor(logs), "greedy": rows_of(greedy), "lines": rows_of(ids)}, folder / "values.safetensors")


def main():
    transformers.logging.set_verbosity_error()
    for name in sys.argv[2:] or RECORDED:
        record(pathlib.Path(sys.argv[1]), name)


if __name__ == "__main__":
    main()
