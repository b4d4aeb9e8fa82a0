"""Tokenizers in the form of well-known models, small, and hostile texts, for tokenizer_peer.py."""
import base64
import io
import json
import os
import pydoc_data.topics
import random
import re
import unicodedata

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

WORDS = ("Die Straße über Größe naïve café résumé señor Ångström İstanbul ışık Привет мир как дела Ελληνικά κείμενο σοφός "
         "中文 分词 测试 数据 日本語 テキスト ひらがな 한국어 문장 שלום עולם مرحبا بالعالم हिन्दी पाठ ไทย ข้อความ 👍 😀 don't I'll you've WE'RE 3.14 2026 x=1; foo_bar").split()


def corpus():
    text = "\n".join(pydoc_data.topics.topics.values())
    rng = random.Random(7)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    lines += [" ".join(rng.choice(WORDS) for _ in range(rng.randrange(2, 12))) for _ in range(3000)]
    rng.shuffle(lines)
    return lines


# ---- hostile texts ----------------------------------------------------------------------------

GROUPS = [
    range(0x20, 0x7F), range(0, 0x20), range(0x80, 0x250), range(0x300, 0x370), range(0x370, 0x530), range(0x590, 0x700),
    range(0x900, 0x980), range(0xE00, 0xE80), range(0x1100, 0x1200), range(0x1E00, 0x2000), range(0x2000, 0x2070), range(0x2070, 0x2C00),
    range(0x3000, 0x3200), range(0x4E00, 0x5000), range(0xAC00, 0xAD00), range(0xF900, 0xFB50), range(0xFE00, 0x10000),
    range(0x1D400, 0x1D500), range(0x1F1E6, 0x1F200), range(0x1F300, 0x1F700), range(0x2F800, 0x2FA20), range(0xE0000, 0xE0080),
]
ODD = ["\u0301", "\u200d", "\ufe0f", "\u00a0", "\u3000", "\u2581", "\u00ad", "\ufeff", "\ufffd", "\x00", "\r\n", "\t", "\u0130", "\u017f", "\u212a",
       "\u00df", "\u1e9e", "'s", "'S", "'\u017f", "'Ll", "'VE", "n't", " .", " ,", " ' ", "<s>", "</s>", "<mask>", "[MASK]", "[CLS]", "<|endoftext|>",
       "<unk>", "[UNK]", "<extra_id_0>", "<0x41>", "##", "  ", "   ", "\u1100\u1161\u11a8", "e\u0301\u0323", "\u0323\u0301", "\u0344", "\u2126", "\ufb01",
       "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\U0001F1E9\U0001F1EA", "1234567", "\u0663\u0664", "\u00bd", "\u2460", "word", "TOK", "\u0e33",
       "\u09dc", "\u1e9b\u0323", "\n", "\n\n", "http://a.b/c?d=e", "CamelCaseWord", "ALLCAPS", "snake_case", "\u0cc6\u0cc2", "\u11099\u110ba", "\u0915\u094d\u0937"]


def piece(rng, lines):
    kind = rng.randrange(8)
    if kind < 2:
        line = rng.choice(lines)
        at = rng.randrange(len(line))
        return line[at:at + rng.randrange(1, 40)]
    if kind == 2:
        return rng.choice(ODD)
    if kind == 3:
        return rng.choice(ODD) * rng.randrange(1, 5)
    if kind == 4:
        group = rng.choice(GROUPS)
        return "".join(chr(rng.choice(group)) for _ in range(rng.randrange(1, 8)))
    if kind == 5:
        return "".join(chr(rng.choice(rng.choice(GROUPS))) for _ in range(rng.randrange(1, 8)))
    if kind == 6:
        c = rng.randrange(0x110000)
        return chr(c if not 0xD800 <= c < 0xE000 else 32)
    return rng.choice(WORDS) + rng.choice(["", " ", "  ", "\n", ".", "-"])


def hostile(rng, lines, n):
    out = [""]
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and (c < 0x30000 or c >= 0xE0000 and c < 0xE0200)]
    step = max(1, len(codes) // max(1, n // 4))
    start = rng.randrange(step)
    for i in range(start, len(codes), step):  # a walk through all code points
        out.append("a" + chr(codes[i]) + "b " + chr(codes[i]) + chr(codes[min(i + 1, len(codes) - 1)]))
    while len(out) < n:
        out.append("".join(piece(rng, lines) for _ in range(rng.randrange(1, 9))))
    return out[:n]


def cases(tokenizer, rng, lines, n):
    """What the library makes of n of the lines, some of them in pairs: rows of NAME.cases.json."""
    out = []
    for line in rng.sample(lines, n):
        pair, special = (rng.choice(lines) if rng.random() < 0.15 else None), rng.random() < 0.9
        try:
            e = tokenizer.encode(line, pair, add_special_tokens=special)
            decoded = tokenizer.decode(e.ids, False), tokenizer.decode(e.ids, True)
        except BaseException:  # also the panics of Rust
            continue
        places = []
        for i, (begin, end) in enumerate(e.offsets):
            of = pair if e.sequence_ids[i] == 1 else line
            places.append([len(of[:begin].encode()), len(of[:end].encode())])
        out.append({"text": line, "pair": pair, "special": special, "tokens": [[a, b, *c] for a, b, c in zip(e.ids, e.type_ids, places)],
                    "decoded": decoded[0], "skipped": decoded[1]})
    return out


# ---- parts ------------------------------------------------------------------------------------

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
TEKKEN = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# kinds of regular expressions that the models above do not use
ODDITIES = r"(?<=a)b+?|(?<!\w)\d{2,}|\bx\B|(?>a|ab)c|[a-c&&[^b]]+|\x{4E00}|[^\W\d_]{2,3}|^\s|\p{^L}{4,}?|(?=[.!])[.!]+|(?:foo|ba[rz])*+q|\h{3}|.$"

_charsmaps = {}


def charsmap(rule):
    """The precompiled map of a rule, from a small model that sentencepiece trains."""
    if rule not in _charsmaps:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f g"] * 9), model_writer=model, vocab_size=12,
                                                 normalization_rule_name=rule, minloglevel=2)
        _charsmaps[rule] = field(field(model.getvalue(), 3), 2)
    return _charsmaps[rule]


def field(message, wanted):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 2:
            n = varint()
            if tag >> 3 == wanted:
                return message[at:at + n]
            at += n
        elif tag & 7 == 0:
            varint()
        else:
            at += 4 if tag & 7 == 5 else 8


def train(model, trainer, lines, normalizer=None, pre=None, post=None, decoder=None, size=3000):
    t = Tokenizer(model)
    if normalizer:
        t.normalizer = normalizer
    if pre:
        t.pre_tokenizer = pre
    t.train_from_iterator(lines[:size], trainer)
    if post:
        t.post_processor = post
    if decoder:
        t.decoder = decoder
    return t


ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def byte_bpe(lines, pre, special=("<|endoftext|>",), post=None, vocab=2000, decoder=None, normalizer=None, **model):
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=list(special), initial_alphabet=ALPHABET, show_progress=False)
    return train(models.BPE(**model), trainer, lines, normalizer, pre, post, decoder or decoders.ByteLevel())


def split_bytes(*patterns, behavior="isolated"):
    return pre_tokenizers.Sequence([*(pre_tokenizers.Split(Regex(p), behavior, False) for p in patterns), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2(lines):
    return byte_bpe(lines, pre_tokenizers.ByteLevel(add_prefix_space=False), post=processors.ByteLevel(trim_offsets=False))


def gpt2_trimmed(lines):
    return byte_bpe(lines, pre_tokenizers.ByteLevel(add_prefix_space=True), post=processors.ByteLevel(trim_offsets=True))


def roberta(lines):
    t = byte_bpe(lines, pre_tokenizers.ByteLevel(add_prefix_space=False), ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
                 processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return t


def deberta(lines):
    return byte_bpe(lines, pre_tokenizers.ByteLevel(add_prefix_space=True), ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"],
                    processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]))


def llama3(lines):
    t = byte_bpe(lines, split_bytes(LLAMA3), ["<|begin_of_text|>", "<|end_of_text|>"], ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True, add_prefix_space=False),
                                            processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B:1",
                                                                          special_tokens=[("<|begin_of_text|>", 0)])])
    t.add_special_tokens(["<|eot_id|>", "<s>"])
    return t


def qwen2(lines):
    t = byte_bpe(lines, split_bytes(QWEN2), post=processors.ByteLevel(trim_offsets=False, add_prefix_space=False), normalizer=normalizers.NFC())
    t.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    t.add_tokens(["<tool_call>", AddedToken("word", single_word=True)])
    return t


def whisper(lines):
    t = byte_bpe(lines, pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|notimestamps|>"])
    t.post_processor = processors.TemplateProcessing(single="<|startoftranscript|> <|en|> <|notimestamps|> $A <|endoftext|>",
                                                     pair="<|startoftranscript|> <|en|> <|notimestamps|> $A $B <|endoftext|>",
                                                     special_tokens=[("<|startoftranscript|>", 1), ("<|en|>", 2), ("<|notimestamps|>", 3), ("<|endoftext|>", 0)])
    return t


def clip(lines):
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>", initial_alphabet=ALPHABET, show_progress=False)
    t = train(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", continuing_subword_prefix=""), trainer, lines,
              normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
              pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
              processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False), decoders.ByteLevel())
    return t


def bert(lines, lowercase=True, accents=None, clean=True, chinese=True, old=False):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    post = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)) if old else processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=2500, special_tokens=special, show_progress=False), lines,
                 normalizers.BertNormalizer(clean, chinese, accents, lowercase), pre_tokenizers.BertPreTokenizer(), post, decoders.WordPiece("##", True))


def byte_fallback(lines, vocab=1500, **model):
    """A BPE model of characters with ids for all bytes."""
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=special, show_progress=False, limit_alphabet=150)
    t = train(models.BPE(unk_token="<unk>", byte_fallback=True, **model), trainer, [line.replace(" ", "▁") for line in lines])
    data = json.loads(t.to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(data))


def llama2(lines):
    t = byte_fallback(lines, fuse_unk=True)
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t


def llama2_new(lines):
    t = byte_fallback(lines, fuse_unk=True)
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t


def gemma(lines):
    t = byte_fallback(lines, fuse_unk=True)
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous", False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_tokens(["\n\n", "\t", "  ", "   "])
    return t


def unigram(lines, normalizer, pre, special=("<s>", "<pad>", "</s>", "<unk>"), post=None, decoder=None, vocab=1500, fallback=False):
    trainer = trainers.UnigramTrainer(vocab_size=vocab, special_tokens=list(special), unk_token="<unk>", show_progress=False)
    t = train(models.Unigram(), trainer, lines, normalizer, pre, post, decoder or decoders.Metaspace(), size=1500)
    if not fallback:
        return t
    data = json.loads(t.to_str())
    data["model"]["byte_fallback"] = True
    data["model"]["vocab"] += [[f"<0x{b:02X}>", -30.0] for b in range(256)]
    return Tokenizer.from_str(json.dumps(data))


def t5(lines):
    t = unigram(lines, normalizers.Precompiled(charsmap("nmt_nfkc")), pre_tokenizers.Metaspace(), ("<pad>", "</s>", "<unk>"),
                processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]))
    t.add_special_tokens([f"<extra_id_{i}>" for i in range(3)])
    return t


def xlmr(lines):
    t = unigram(lines, normalizers.Precompiled(charsmap("nmt_nfkc")), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
                post=processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return t


def mt5(lines):
    return unigram(lines, normalizers.Sequence([normalizers.Precompiled(charsmap("nmt_nfkc_cf")), normalizers.Replace(Regex(" {2,}"), " ")]),
                   pre_tokenizers.Metaspace("▁", "always", True), fallback=True)


def albert(lines):
    return unigram(lines, normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
                                                normalizers.Lowercase(), normalizers.Precompiled(charsmap("nfkc"))]),
                   pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
                   processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]))


def word_level(lines, pre, normalizer=None, decoder=None):
    return train(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=2000, special_tokens=["[UNK]", "[MASK]"], show_progress=False), lines, normalizer, pre, None, decoder)


def word_piece(lines, pre, normalizer=None, decoder=None, prefix="##"):
    return train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=2000, special_tokens=["[UNK]", "[MASK]"], continuing_subword_prefix=prefix, show_progress=False),
                 lines, normalizer, pre, None, decoder or decoders.WordPiece(prefix, False))


def char_bpe(lines, normalizer=None, pre=None, decoder=None, unk="<unk>", suffix="</w>", **model):
    more = {"end_of_word_suffix": suffix} if suffix else {}
    trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=[unk], limit_alphabet=120, show_progress=False, **more)
    return train(models.BPE(unk_token=unk, **more, **model), trainer, lines, normalizer, pre or pre_tokenizers.WhitespaceSplit(), None, decoder or decoders.BPEDecoder(suffix or "</w>"))


def changed(make, **what):
    """A recipe with other fields in its file."""
    def made(lines):
        data = json.loads(make(lines).to_str())
        for key, value in what.items():
            data[key] = {**data[key], **value} if isinstance(data.get(key), dict) and isinstance(value, dict) and key == "model" else value
        return json.dumps(data)
    return made


def truncated(make, length, stride=0, strategy="LongestFirst", direction="Right"):
    return changed(make, truncation={"direction": direction, "max_length": length, "strategy": strategy, "stride": stride})


def padded(make, strategy, direction="Right", multiple=None):
    return changed(make, padding={"strategy": strategy, "direction": direction, "pad_to_multiple_of": multiple, "pad_id": 1, "pad_type_id": 3, "pad_token": "[PAD]"})


def added(make):
    """Added tokens with every flag, some in the vocabulary, some of which others are the beginning."""
    def made(lines):
        t = make(lines)
        t.add_tokens([AddedToken("TOK", single_word=True, normalized=True), AddedToken("word", lstrip=True, rstrip=True), AddedToken("caf\u00e9", normalized=True),
                      AddedToken("the", normalized=False), AddedToken("there", single_word=True, normalized=False), AddedToken(" ' ", normalized=False),
                      AddedToken("a\u0301", normalized=True), AddedToken("##", normalized=False, rstrip=True)])
        t.add_special_tokens([AddedToken("[MASK]", lstrip=True, rstrip=True), AddedToken("<mask>", single_word=True), AddedToken("<0x41>", normalized=True)])
        return t
    return made


def untagged(lines):
    """A file of the first versions: merges as texts, and parts without a type."""
    data = json.loads(gpt2(lines).to_str())
    del data["model"]["type"]
    data["model"]["merges"] = ["#version: 0.2"] + [" ".join(m) for m in data["model"]["merges"]]
    data["normalizer"] = {"normalizers": [{"strip_left": True, "strip_right": True}, {"prepend": "x"}]} | {"type": "Sequence"}
    return json.dumps(data)


N, P, D = normalizers, pre_tokenizers, decoders
RECIPES = {
    "gpt2": gpt2, "gpt2-trimmed": gpt2_trimmed, "roberta": roberta, "deberta": deberta, "llama3": llama3, "qwen2": qwen2,
    "qwen3": lambda c: byte_bpe(c, split_bytes(QWEN2), normalizer=N.NFC()), "whisper": whisper, "clip": clip,
    "gpt4o": lambda c: byte_bpe(c, split_bytes(O200K)), "cl100k": lambda c: byte_bpe(c, split_bytes(CL100K)), "tekken": lambda c: byte_bpe(c, split_bytes(TEKKEN)),
    "deepseek": lambda c: byte_bpe(c, split_bytes(*DEEPSEEK)), "kimi": lambda c: byte_bpe(c, split_bytes(KIMI)),
    "gpt2-expression": lambda c: byte_bpe(c, split_bytes(GPT2)), "oddities": lambda c: byte_bpe(c, split_bytes(ODDITIES)),
    "bert-uncased": bert, "bert-cased": lambda c: bert(c, False), "bert-multilingual": lambda c: bert(c, False, True), "bert-old": lambda c: bert(c, True, False, old=True),
    "bert-raw": lambda c: bert(c, True, True, False, False),
    "llama2": llama2, "llama2-new": llama2_new, "gemma": gemma, "fallback": lambda c: byte_fallback(c), "t5": t5, "xlm-r": xlmr, "mt5": mt5, "albert": albert,
    "unigram-nmt": lambda c: unigram(c, N.Sequence([N.Nmt(), N.NFKC()]), P.Metaspace("_", "first", True)),
    "unigram-plain": lambda c: unigram(c, N.NFKC(), P.Metaspace("▁", "never", False), decoder=D.Metaspace("▁", "never")),
    "words": lambda c: word_level(c, P.Whitespace()), "words-nfc": lambda c: word_level(c, P.WhitespaceSplit(), N.NFC()),
    "words-punctuation": lambda c: word_level(c, P.Sequence([P.WhitespaceSplit(), P.Punctuation("contiguous")]), N.NFD()),
    "words-digits": lambda c: word_piece(c, P.Sequence([P.Whitespace(), P.Digits(False)]), N.NFKD()),
    "pieces-digits": lambda c: word_piece(c, P.Sequence([P.Digits(True), P.Punctuation("merged_with_next")]), N.Sequence([N.NFKC(), N.Lowercase()])),
    "pieces-delimiter": lambda c: word_piece(c, P.CharDelimiterSplit("e"), N.Strip(True, False), prefix="@@"),
    "pieces-length": lambda c: word_piece(c, P.FixedLength(3), N.Sequence([N.Strip(False, True), N.StripAccents()])),
    "pieces-length-5": lambda c: word_level(c, P.FixedLength(5), N.Nmt()),
    "pieces-space": lambda c: word_piece(c, P.CharDelimiterSplit(" "), N.Sequence([N.NFD(), N.StripAccents(), N.Strip()]), prefix=""),
    "chars": lambda c: char_bpe(c), "chars-fused": lambda c: char_bpe(c, N.NFKC(), fuse_unk=True), "chars-ctc": lambda c: char_bpe(c, decoder=D.CTC("<pad>", "|", True), suffix=""),
    "chars-ctc-raw": lambda c: char_bpe(c, decoder=D.CTC("e", " ", False), suffix=""),
    "bytes-normalized": lambda c: byte_bpe(c, P.WhitespaceSplit(), normalizer=N.ByteLevel()), "bytes-nfkd": lambda c: byte_bpe(c, P.Split(Regex("Ġ"), "merged_with_next"), normalizer=N.Sequence([N.NFKD(), N.ByteLevel()])),
    "split-previous": lambda c: byte_bpe(c, split_bytes(r"\s+", behavior="merged_with_previous")), "split-next": lambda c: byte_bpe(c, split_bytes(r"\p{P}", behavior="merged_with_next")),
    "split-contiguous": lambda c: byte_bpe(c, split_bytes(r"\p{Lu}", behavior="contiguous")), "split-removed": lambda c: byte_bpe(c, split_bytes(r"\d|$|^", behavior="removed")),
    "replace": lambda c: byte_bpe(c, P.ByteLevel(), normalizer=N.Sequence([N.Replace(Regex(r"(\p{L})\p{M}*|^"), "xé"), N.Replace("e", ""), N.Prepend("<")])),
    "decode-replace": lambda c: byte_bpe(c, P.ByteLevel(), decoder=D.Sequence([D.ByteLevel(), D.Replace(Regex(r"\s+"), "_"), D.Strip("_", 2, 1)])),
    "no-decoder": changed(gpt2, decoder=None, post_processor=None), "nothing": changed(gpt2, decoder=None, post_processor=None, pre_tokenizer=None),
    "untagged": untagged,
    "added-gpt2": added(gpt2), "added-bert": added(bert), "added-t5": added(t5), "added-llama2": added(llama2), "added-bytes": added(lambda c: byte_bpe(c, None, normalizer=N.ByteLevel())),
    "cut": truncated(bert, 7), "cut-left": truncated(roberta, 6, direction="Left"), "cut-first": truncated(deberta, 9, 2, "OnlyFirst"), "cut-second": truncated(bert, 12, 0, "OnlySecond", "Left"),
    "padded": padded(bert, "BatchLongest", multiple=8), "padded-left": padded(t5, {"Fixed": 20}, "Left"), "cut-padded": padded(lambda c: Tokenizer.from_str(truncated(llama3, 10, direction="Left")(c)), {"Fixed": 12}),
    "scripts": lambda c: word_level(c, P.UnicodeScripts(), N.NFKC()), "scripts-unigram": lambda c: unigram(c, None, P.Sequence([P.UnicodeScripts(), P.Digits(True)])),
    "ctc-words": lambda c: word_level(c, P.Whitespace(), decoder=D.CTC("[UNK]", "the", True)), "suffix-decoder": lambda c: word_level(c, P.Whitespace(), decoder=D.BPEDecoder("e")),
}


# ---- large files ------------------------------------------------------------------------------

ENTRIES = 150000


def grown(rng, pieces, prefix, longest, taken):
    """Pairs of pieces without end, and what they give; none is in `taken`, where each is put."""
    while True:
        left, right = rng.choice(pieces), rng.choice(pieces)
        both = left + (right[len(prefix):] if right.startswith(prefix) else right)
        if both not in taken and len(both) <= longest:
            taken.add(both)
            pieces.append(both)
            yield left, right, both


def large_bpe(lines, spaced=False):
    """Qwen's form, with a merge for nearly every entry: as pairs, or as texts "a b"."""
    data = json.loads(qwen2(lines).to_str())
    vocab, merges = data["model"]["vocab"], data["model"]["merges"]
    added = {a["content"] for a in data["added_tokens"]}
    more = grown(random.Random(3), [piece for piece in vocab if piece not in added], "", 16, set(vocab))
    while len(vocab) < ENTRIES:
        left, right, both = next(more)
        vocab[both] = len(vocab)
        merges.append([left, right])
    if spaced:
        data["model"]["merges"] = [" ".join(m) for m in merges]
    return data


def large_pieces(lines):
    data = json.loads(bert(lines).to_str())
    vocab = data["model"]["vocab"]
    more = grown(random.Random(4), [piece for piece in vocab if piece[0] != "["], "##", 14, set(vocab))
    while len(vocab) < ENTRIES:
        vocab[next(more)[2]] = len(vocab)
    return data


def large_unigram(lines):
    data = json.loads(xlmr(lines).to_str())
    vocab, rng = data["model"]["vocab"], random.Random(5)
    more = grown(rng, [piece for piece, _ in vocab[4:]], "\u2581", 14, {piece for piece, _ in vocab})
    while len(vocab) < ENTRIES:
        vocab.append([next(more)[2], -8 - 8 * rng.random()])
    return data


# As the library saves them, as its short form, and with every character above U+007F as an escape.
LARGE = {
    "bpe": lambda c: json.dumps(large_bpe(c), ensure_ascii=False, indent=2), "bpe-short": lambda c: json.dumps(large_bpe(c, True), ensure_ascii=False, separators=(",", ":")),
    "bpe-escaped": lambda c: json.dumps(large_bpe(c, True), indent=2), "pieces": lambda c: json.dumps(large_pieces(c), ensure_ascii=False, indent=2),
    "unigram": lambda c: json.dumps(large_unigram(c), ensure_ascii=False, indent=2),
}
