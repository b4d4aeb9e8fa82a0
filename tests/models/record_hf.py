#!/usr/bin/env python3
"""Record what transformers computes: tests/data/hf/CASE, a folder as save_pretrained writes it, with values.safetensors.

    tests/models/record_hf.py tests/data/hf

Needs torch, transformers, sentencepiece; the tests need none of them. values.safetensors holds sources, targets, the
log-probabilities of each target token and of the end, computed in f64, and what generate() finds with beams 1 and 4:
rows of ids, filled up with -1. "marian" has a tokenizer, and lines with their ids: "lines.txt", "lines".
"""
import json
import pathlib
import random
import sys
import tempfile

import numpy as np
import sentencepiece
import torch
from safetensors.torch import save_file
from transformers import MarianTokenizer

import hf_peer
from hf_peer import CASES, mask_of, random_rows, save, sources, torch_scores, torch_tokens

TINY = dict(d_model=8, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=12, decoder_ffn_dim=12,
            encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=24, init_std=0.4)
SEARCH = dict(max_length=16, num_beams=4)
WORDS = "the a house tree dog Haus Baum läuft grün ß é".split()


def pieces(folder, side, seed):
    random.seed(seed)
    text = pathlib.Path(folder) / side
    text.write_text("\n".join(" ".join(random.choices(WORDS, k=6)) for _ in range(400)))
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(text), vocab_size=34, minloglevel=2,
                                             hard_vocab_limit=False, normalization_rule_name="identity")
    model = sentencepiece.SentencePieceProcessor(f"{text}.model")
    return [model.id_to_piece(i) for i in range(3, model.get_piece_size())], pathlib.Path(f"{text}.model").read_bytes()


def add_tokenizer(folder):
    """Returns how many pieces there are."""
    with tempfile.TemporaryDirectory() as work:
        (source, source_spm), (target, target_spm) = pieces(work, "source", 1), pieces(work, "target", 2)
    known = ["</s>", "<unk>", *dict.fromkeys(source + target + [">>fra<<"]), "<pad>"]
    (folder / "source.spm").write_bytes(source_spm)
    (folder / "target.spm").write_bytes(target_spm)
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(known)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": False, "unk_token": "<unk>"}))
    return len(known)


def record_lines(folder):
    tokenizer = MarianTokenizer.from_pretrained(folder)
    random.seed(3)
    lines = [" ".join(random.choices(WORDS, k=k)) for k in range(1, 8)] + [">>fra<< the dog", ">>xx<<dog", "zq \"a\" "]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    return rows_of([tokenizer(line).input_ids for line in lines])


def rows_of(rows):
    out = np.full((len(rows), max(map(len, rows))), -1, np.int32)
    for i, row in enumerate(rows):
        out[i, :len(row)] = row
    return torch.tensor(out)


def record(root, name, case, how):
    family, config, generation, _ = CASES[case]
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    sizes = dict(config, **TINY)
    if name == "marian":
        n = add_tokenizer(folder)
        sizes.update(vocab_size=n, pad_token_id=n - 1, decoder_start_token_id=n - 1)
        generation = dict(generation, bad_words_ids=[[n - 1]])
    CASES[name] = (family, sizes, dict(generation, **SEARCH), how)
    model = save(hf_peer.make(name), folder, how)
    rng, c = np.random.default_rng(7), model.config
    src, src_length = sources(rng, 12, 9, c)
    tgt, tgt_length = random_rows(rng, 12, 7, getattr(c, "decoder_vocab_size", c.vocab_size), c)
    values = {"src": torch.tensor(src), "src_length": torch.tensor(src_length), "tgt": torch.tensor(tgt),
              "tgt_length": torch.tensor(tgt_length)}
    for beam in (1, 4):
        found = model.generate(input_ids=torch.tensor(src).long(), attention_mask=mask_of(src_length, 9), num_beams=beam)
        values[f"beam{beam}"] = rows_of([torch_tokens(model, row) for row in found])
    values["log_probs"] = torch.tensor(torch_scores(model.double(), src, src_length, tgt, tgt_length))
    if name == "marian":
        values["lines"] = record_lines(folder)
    save_file(values, folder / "values.safetensors")


def main():
    root = pathlib.Path(sys.argv[1])
    record(root, "marian", "opus", "safetensors")
    record(root, "marian_separate", "opus-separate", "legacy")
    record(root, "marian_half", "opus-untied", "half")
    record(root, "bart", "bart-untied", "safetensors")
    record(root, "mbart", "mbart", "bin")
    record(root, "m2m", "m2m", "safetensors")


main()
