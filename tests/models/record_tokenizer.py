#!/usr/bin/env python3
"""Records small tokenizers and what the library tokenizers makes of lines, into tests/data/tokenizer/.

    pip install tokenizers==0.23.3 sentencepiece
    tests/models/record_tokenizer.py

The recipes are those of tokenizer_peer.py, with small vocabularies. Each file NAME.json has a NAME.cases.json beside it: texts,
pairs, ids, type ids, offsets in bytes, decoded text.
"""
import io
import json
import os
import pathlib
import random
import tempfile

import sentencepiece
import tokenizer_recipes as recipes
from tokenizers import Tokenizer, trainers
from tokenizers.trainers import UnigramTrainer

NAMES = ("gpt2 roberta llama3 qwen2 clip kimi oddities bert-uncased bert-multilingual llama2 gemma t5 xlm-r unigram-nmt words-digits "
         "pieces-digits scripts chars-fused bytes-nfkd split-removed replace decode-replace added-bert cut cut-left "
         "ctc-words untagged").split()
VOCAB, LINES, LONGEST = 320, 22, 60
folder = pathlib.Path(__file__).parent.parent / "data" / "tokenizer"


def small(trainer):
    def made(**options):
        least = len(options.get("initial_alphabet", [])) + len(options.get("special_tokens", []))
        few = 600 if trainer is UnigramTrainer else 150
        return trainer(**{**options, "vocab_size": max(VOCAB if least > 100 else few, least + 60)})
    return made


def small_map(_):
    """A precompiled map of a few rules."""
    rules = [("A", "a"), ("\u00bd", "1\u20442"), ("\ufb01", "fi"), ("e\u0301", "\u00e9"), ("\u00ad", ""), ("\u3000", " "), ("\u2167", "VIII")]
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False) as f:
        for a, b in rules:
            f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f g"] * 9), model_writer=model, vocab_size=12,
                                             normalization_rule_tsv=f.name, minloglevel=2)
    os.unlink(f.name)
    return recipes.field(recipes.field(model.getvalue(), 3), 2)


for name in ("BpeTrainer", "WordPieceTrainer", "WordLevelTrainer", "UnigramTrainer"):
    setattr(trainers, name, small(getattr(trainers, name)))
recipes.charsmap = small_map
folder.mkdir(exist_ok=True)
corpus = recipes.corpus()[:400]
for name in NAMES:
    made = recipes.RECIPES[name](corpus)
    text = made.to_str() if isinstance(made, Tokenizer) else made
    (folder / f"{name}.json").write_text(json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) + "\n")
    tokenizer = Tokenizer.from_str(text)
    rng = random.Random(name)
    rng = random.Random(name)
    lines = [line for line in recipes.hostile(rng, corpus, 8 * LINES) if len(line) <= LONGEST]
    cases = recipes.cases(tokenizer, rng, lines, LINES)
    (folder / f"{name}.cases.json").write_text(json.dumps({"cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")
