#!/usr/bin/env python3
"""Record what transformers and sentence-transformers compute of encoders: tests/data/hf/CASE, a folder as they write it, with
values.safetensors.

    tests/models/record_encoder.py tests/data/hf [CASE ...]

Needs torch, transformers and sentence-transformers; the tests need none of them. values.safetensors holds rows of ids ("src",
"src_length"), the vectors of their tokens ("hidden") and, where there is a head, the log-probabilities of all tokens
("log_probs") or classes ("class_log_probs"), computed in f64. lines.txt has lines, "lines" their ids filled up with -1, "vectors" their vectors in f32.
"""
import pathlib
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification, BertConfig, BertModel, DistilBertConfig,
                          DistilBertForMaskedLM, DistilBertForSequenceClassification, MPNetConfig, MPNetForMaskedLM, RobertaConfig, RobertaForMaskedLM)

import encoder_peer
from encoder_peer import CASES, NAMED, classifies, encode, save
from record_hf_lm import rows_of
from sentence_transformers.base.modules import Dense, Normalize

LINES = ["the house", "Häuser laufen grün, it's 1999", "", "x", "the dog runs in the house and the house runs in the dog and the tree",
         "[MASK] of <mask> </s> [SEP]", "日本 ½"]
TEXT = ["the house runs in a tree", "it's a dog, we'll run", "Haus läuft grün 1999", "the trees and the dogs"] * 20


def words(_):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(TEXT, trainers.WordPieceTrainer(vocab_size=90, show_progress=False,
                                                          special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def letters(_):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=280, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                    special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return t


BERT = dict(vocab_size=100, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            max_position_embeddings=24)
RECORDED = {
    "enc_dense": (BertConfig(**BERT), BertModel, words, ["mean", Dense(8, 6), Normalize()], ""),
    "enc_old": (BertConfig(**BERT), BertModel, words, ["mean", Normalize()], "old"),
    "enc_many": (BertConfig(**dict(BERT, hidden_act="relu")), BertModel, words,
                 [("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")], "half"),
    "enc_roberta": (RobertaConfig(**dict(BERT, vocab_size=290, pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1,
                                         layer_norm_eps=1e-5)), RobertaForMaskedLM, letters, None, ""),
    "enc_distil": (DistilBertConfig(vocab_size=100, dim=8, n_layers=1, n_heads=2, hidden_dim=12, max_position_embeddings=24,
                                    tie_word_embeddings=False), DistilBertForMaskedLM, words, None, "bin"),
    "enc_mpnet": (MPNetConfig(**dict(BERT, max_position_embeddings=42)), MPNetForMaskedLM, words, None, ""),
    "enc_classes": (DistilBertConfig(vocab_size=100, dim=8, n_layers=1, n_heads=2, hidden_dim=12, max_position_embeddings=24,
                                     **NAMED), DistilBertForSequenceClassification, words, None, ""),
}


def record(root, name):
    CASES[name] = RECORDED[name]
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    save(name, folder)
    for extra in ("README.md", ".gitattributes"):
        (folder / extra).unlink(missing_ok=True)
    config = RECORDED[name][0]
    model, vectors = encode(folder, LINES)
    longest = min(model.max_seq_length, config.max_position_embeddings - (2 if config.pad_token_id == 1 else 0))
    ids = [model.tokenizer(t, truncation=True, max_length=longest).input_ids for t in LINES]
    rng = np.random.default_rng(7)
    rows = [[int(x) for x in rng.integers(0, config.vocab_size, n)] for n in (1, 2, 5, 9, 12)]
    lengths = torch.tensor([len(r) for r in rows])
    src = rows_of(rows)
    mask = (src >= 0).long()
    values = {"src": src.clamp(min=0), "src_length": lengths.int(), "lines": rows_of(ids), "vectors": torch.tensor(vectors)}
    with torch.no_grad():
        f64 = AutoModel.from_pretrained(folder, dtype=torch.float64).eval()
        padded = torch.where(mask.bool(), src, config.pad_token_id or 0)
        values["hidden"] = f64(input_ids=padded, attention_mask=mask).last_hidden_state * mask[..., None]
        if "Masked" in RECORDED[name][1].__name__:
            head = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float64).eval()
            logs = torch.log_softmax(head(input_ids=padded, attention_mask=mask).logits, -1)
            values["log_probs"] = (logs * mask[..., None]).float()
        if classifies(name):
            head = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float64).eval()
            values["class_log_probs"] = torch.log_softmax(head(input_ids=padded, attention_mask=mask).logits, -1)
    (folder / "lines.txt").write_text("\n".join(LINES) + "\n")
    save_file({k: v.contiguous() for k, v in values.items()}, folder / "values.safetensors")


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    encoder_peer.V = 100
    for name in sys.argv[2:] or RECORDED:
        record(pathlib.Path(sys.argv[1]), name)


if __name__ == "__main__":
    main()
