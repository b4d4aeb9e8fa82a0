#!/usr/bin/env python3
"""Record what transformers computes: tests/data/hf/CASE, a folder as save_pretrained writes it, with values.safetensors.

    tests/models/record_hf.py tests/data/hf [CASE ...]

Needs torch, transformers, sentencepiece, protobuf; the tests need none of them. values.safetensors holds sources, targets, the
log-probabilities of each target token and of the end, computed in f64, and what generate() finds with beams 1 and 4:
rows of ids, filled up with -1. Some have a tokenizer, lines with their ids, ids and what they read as: "lines.txt",
"lines", "outputs", "texts.txt". hf_rules.safetensors: what three of them find under rules of repetition and length ("rules").
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
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M_CODES
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES as MBART_CODES
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB_CODES
from tokenizers import ByteLevelBPETokenizer
from transformers import BartTokenizer, M2M100Tokenizer, MarianTokenizer, MBartTokenizer, NllbTokenizer, T5Tokenizer

import hf_peer
import hf_t5_peer
from hf_text_peer import SPECIAL, byte_lines
from hf_peer import mask_of, random_rows, sources, torch_scores, torch_tokens

TINY = dict(d_model=8, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=12, decoder_ffn_dim=12,
            encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=24, init_std=0.4)
TINY_T5 = dict(d_model=8, d_kv=3, d_ff=12, num_heads=2, num_layers=2, num_decoder_layers=2, relative_attention_num_buckets=8,
               relative_attention_max_distance=10)
EXTRA = 5  # tokens for masked spans
SEARCH = dict(max_length=16, num_beams=4)
WORDS = "the a house tree dog Haus Baum läuft grün ß é".split()
# class of the tokenizer, codes of languages, the code for sources and that for outputs, is there a
# vocab.json
LANGUAGES = {
    "m2m": (M2M100Tokenizer, [f"__{c}__" for c in M2M_CODES["m2m100"]], "de", "__fr__", True),
    "nllb": (NllbTokenizer, NLLB_CODES, "deu_Latn", "fra_Latn", False),
    "mbart": (MBartTokenizer, MBART_CODES, "de_DE", "ro_RO", False),
}


def pieces(folder, side, seed, kind="unigram"):
    random.seed(seed)
    text = pathlib.Path(folder) / side
    text.write_text("\n".join(" ".join(random.choices(WORDS, k=6)) for _ in range(400)))
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(text), vocab_size=34, minloglevel=2,
                                             hard_vocab_limit=False, normalization_rule_name="identity", model_type=kind)
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


def add_languages(folder, name):
    """Returns all pieces."""
    tokenizer, codes, source, _, vocabulary = LANGUAGES[name]
    with tempfile.TemporaryDirectory() as work:
        known, spm = pieces(work, "both", 4, "unigram" if name == "mbart" else "bpe")
    base = ["<s>", "<pad>", "</s>", "<unk>", *known]
    added = codes + ([] if vocabulary else ["<mask>"])
    (folder / "sentencepiece.bpe.model").write_bytes(spm)
    if vocabulary:
        (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(base)}))
    settings = dict(tokenizer_class=tokenizer.__name__, src_lang=source)
    if name != "mbart":  # or they are text, or unknown
        settings.update(extra_special_tokens=codes)
    if name == "nllb":
        settings.update(added_tokens_decoder={
            str(len(base) + i): dict(content=piece, special=True, normalized=False) for i, piece in enumerate(added)})
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return base + added


def add_bytes(folder):
    """Returns how many pieces there are."""
    random.seed(5)
    trained = ByteLevelBPETokenizer()
    lines = [" ".join(random.choices(WORDS + ["it's", "we'll", "don't", "1999", "½", "..."], k=6)) for _ in range(400)]
    trained.train_from_iterator(lines, vocab_size=320, special_tokens=SPECIAL, show_progress=False)
    trained.save_model(str(folder))
    known = json.loads((folder / "vocab.json").read_text())
    known["<mask>"] = len(known)
    (folder / "vocab.json").write_text(json.dumps(known))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BartTokenizer"}))
    return len(known)


def add_spans(folder, json_file):
    """T5's SentencePiece model, or the tokenizer.json that transformers makes of it. Returns how many pieces there are."""
    random.seed(6)
    with tempfile.TemporaryDirectory() as work:
        text = pathlib.Path(work) / "text"
        text.write_text("\n".join(" ".join(random.choices(WORDS, k=6)) for _ in range(400)))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / "spiece"), vocab_size=34, minloglevel=2, hard_vocab_limit=False,
            pad_id=0, eos_id=1, unk_id=2, bos_id=-1, pad_piece="<pad>",
            normalization_rule_name="identity")
    (folder / "spiece.vocab").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "T5Tokenizer", "extra_ids": EXTRA}))
    tokenizer = T5Tokenizer.from_pretrained(folder)
    if json_file:
        (folder / "spiece.model").unlink()
        tokenizer.save_pretrained(folder)
    return len(tokenizer)


def record_lines(folder, tokenizer, more):
    random.seed(3)
    lines = [" ".join(random.choices(WORDS, k=k)) for k in range(1, 8)] + more
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    return rows_of([tokenizer(line).input_ids for line in lines])


def record_texts(folder, tokenizer, n):
    """What ids read as that a model may put out: with special ones, languages, rows without a piece."""
    rng = random.Random(11)
    rows = [[rng.randrange(n) if rng.random() < 0.2 else rng.randrange(4, 34) for _ in range(k)] for k in range(1, 12)]
    if isinstance(tokenizer, BartTokenizer):
        rows += [[rng.randrange(n) for _ in range(rng.randint(1, 9))] for _ in range(100)]
    texts = [tokenizer.decode(row, skip_special_tokens=True) for row in rows]
    rows = [row for row, text in zip(rows, texts) if not any(c in text for c in "\n\0")]
    texts = [text if isinstance(tokenizer, BartTokenizer) else text.strip() for text in texts if not any(c in text for c in "\n\0")]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n")
    return rows_of(rows)


def rows_of(rows):
    out = np.full((len(rows), max(map(len, rows))), -1, np.int32)
    for i, row in enumerate(rows):
        out[i, :len(row)] = row
    return torch.tensor(out)


def record(root, name, case, how):
    peer = hf_peer if case in hf_peer.CASES else hf_t5_peer
    family, config, generation, _ = peer.CASES[case]
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    sizes = dict(config, **(TINY if peer is hf_peer else TINY_T5))
    if name in ("t5", "flan-own"):
        n = add_spans(folder, name != "t5")
        sizes.update(vocab_size=n + 2)
    if name == "marian":
        n = add_tokenizer(folder)
        sizes.update(vocab_size=n, pad_token_id=n - 1, decoder_start_token_id=n - 1)
        generation = dict(generation, bad_words_ids=[[n - 1]])
    if name in LANGUAGES:
        target = LANGUAGES[name][3]
        known = add_languages(folder, name)
        first = known.index(target)
        sizes.update(vocab_size=len(known) + 2)
        generation = dict(forced_bos_token_id=first)
        if name == "mbart":
            sizes.update(decoder_start_token_id=first)
            generation = {}
    if name == "bart":
        n = add_bytes(folder)
        sizes.update(vocab_size=n + 2)
        generation = dict(generation, forced_bos_token_id=0)
    peer.CASES[name] = (family, sizes, dict(generation, **SEARCH), how)
    model = peer.save(peer.make(name), folder, how)
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
        tokenizer = MarianTokenizer.from_pretrained(folder)
        values["lines"] = record_lines(folder, tokenizer, [">>fra<< the dog", ">>xx<<dog", "zq \"a\" "])
    if name in LANGUAGES:
        tokenizer = LANGUAGES[name][0].from_pretrained(folder)
        values["lines"] = record_lines(folder, tokenizer, ["zq the", "dog zq a"])
        values["outputs"] = record_texts(folder, tokenizer, len(known))
    if name == "bart":
        tokenizer = BartTokenizer.from_pretrained(folder)
        more = [t for t in byte_lines(3000) if "\n" not in t and len(tokenizer(t).input_ids) <= 40]
        values["lines"] = record_lines(folder, tokenizer, more[13:60] + more[-150:])
        values["outputs"] = record_texts(folder, tokenizer, n)
    if name in ("t5", "flan-own"):
        tokenizer = T5Tokenizer.from_pretrained(folder)
        values["lines"] = record_lines(folder, tokenizer, ["zq the", "dog zq a", "½ Haus", ""])
        values["outputs"] = record_texts(folder, tokenizer, n)
    save_file(values, folder / "values.safetensors")


# Rules of generate(): one at a time, and several together in the last row.
# tests/models/test_hf_rules.c has the same rules in this order.
RULES = [dict(no_repeat_ngram_size=1), dict(no_repeat_ngram_size=2), dict(min_new_tokens=9),
         dict(begin_suppress_tokens=[2, 4, 9, 14]), dict(repetition_penalty=1.4), dict(repetition_penalty=0.7),
         dict(exponential_decay_length_penalty=(3, 1.3)),
         dict(no_repeat_ngram_size=3, repetition_penalty=1.2, min_new_tokens=4, exponential_decay_length_penalty=(6, 1.1))]
RENORMALISED = 4  # so many of them for "marian", whose scores are made anew


def record_rules(root, file):
    """What the recorded models find under each rule: "NAME.RULE.beamBEAM", of sources "NAME.src"."""
    values = {}
    for name in ("bart", "marian_half", "marian"):
        family = json.loads((root / name / "config.json").read_text())["model_type"]
        model = hf_peer.CLASSES[family][1].from_pretrained(root / name, dtype=torch.float32).eval()
        src, src_length = sources(np.random.default_rng(9), 24, 9, model.config)
        values |= {f"{name}.src": torch.tensor(src), f"{name}.src_length": torch.tensor(src_length)}
        for i, rule in enumerate(RULES[:RENORMALISED] if name == "marian" else RULES):
            for beam in (1, 4):
                found = model.generate(input_ids=torch.tensor(src).long(), attention_mask=mask_of(src_length, 9),
                                       num_beams=beam, **rule)
                values[f"{name}.{i}.beam{beam}"] = rows_of([torch_tokens(model, row) for row in found])
    save_file(values, file)


def main():
    root, some = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for name, case, how in (("marian", "opus", "safetensors"), ("marian_separate", "opus-separate", "legacy"),
                            ("marian_half", "opus-untied", "half"), ("marian_shards", "opus", "shards"),
                            ("bart", "bart-untied", "safetensors"),
                            ("mbart", "mbart", "bin"), ("m2m", "m2m", "safetensors"), ("nllb", "m2m", "safetensors"),
                            ("t5", "t5", "safetensors"), ("flan-own", "flan-own", "safetensors"), ("umt5", "umt5", "bin"),
                            ("madlad-own", "madlad-own", "tables")):
        if not some or name in some:
            record(root, name, case, how)
    if not some or "rules" in some:
        record_rules(root, root.parent / "hf_rules.safetensors")


main()
