#!/usr/bin/env python3
"""tests/models/hf_text_peer.py - text of many languages to ids and back, as transformers has it.

    hf_text_peer.py build [--lines 4000] [--bytes 20000] [--only NAME]

Needs torch, transformers, sentencepiece, protobuf. Small SentencePiece models are trained here on text that is made
here; folders of M2M100, NLLB, mBART and mBART-50 with random weights are converted with `convert --from hf`, and lines
go through libweft.so's tokenizers:

  ids      of sources in several languages, of targets; and the text of ids, cut short, shuffled, with special ones.
           They must be equal to those of the family's rule, on ids of the library sentencepiece: fairseq's, which the
           models were trained with. M2M100Tokenizer of transformers is that rule; NllbTokenizer and the MBart ones of
           transformers 5 are rewritten for the library tokenizers: how many lines they cut otherwise is told, of lines
           as people write them and of hostile ones
  outputs  `generate --source-language --target-language` writes what generate() and decode() of transformers make
  back     `convert --to hf`: transformers opens it, with the same languages, and makes the same ids; read again it
           is the same bytes
  bart     the byte-level vocabularies of BART, trained here and, with merges that make the same piece in several ways, made
           up: ids of lines that nobody would write, and text of any ids, are those of BartTokenizer
"""
import argparse
import ctypes
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

import sentencepiece
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer
from transformers import BartTokenizer, M2M100Tokenizer, MBart50Tokenizer, MBartTokenizer, NllbTokenizer
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M_CODES
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART50_CODES
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES as MBART_CODES
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB_CODES

import spm_peer
from hf_peer import CLASSES

FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]
TINY = dict(d_model=8, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2,
            decoder_attention_heads=2, max_position_embeddings=64, decoder_start_token_id=2, init_std=0.5)
# name: (family, class, kind of SentencePiece model, codes of languages, is there a vocab.json,
# does the code of a language follow the source, unused rows of the table, languages that are
# compared)
CASES = {
    "m2m": ("m2m_100", M2M100Tokenizer, "bpe", [f"__{c}__" for c in M2M_CODES["m2m100"]], True, False, 8, ("en", "fr", "zu")),
    "wmt21": ("m2m_100", M2M100Tokenizer, "bpe", [f"__{c}__" for c in M2M_CODES["wmt21"]], True, False, 8, ("en", "de", "ha")),
    "nllb": ("m2m_100", NllbTokenizer, "bpe", NLLB_CODES, False, False, 2, ("eng_Latn", "fra_Latn", "zul_Latn")),
    "mbart": ("mbart", MBartTokenizer, "unigram", MBART_CODES, False, True, 0, ("en_XX", "de_DE", "zh_CN")),
    "mbart50": ("mbart", MBart50Tokenizer, "unigram", MBART50_CODES, False, False, 0, ("en_XX", "fr_XX", "sl_SI")),
}


def train(work, kind):
    text = work / "corpus.txt"
    text.write_text("\n".join(spm_peer.corpus(1, 4000)))
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(work / kind), vocab_size=3000, model_type=kind,
                                             minloglevel=2, hard_vocab_limit=False, character_coverage=0.995,
                                             normalization_rule_name="nmt_nfkc")
    return work / f"{kind}.model"


class Rule:
    """Ids as fairseq made them, and transformers 4: SentencePiece's pieces, their places moved or looked up."""

    def __init__(self, case, spm):
        _, _, _, codes, vocabulary, self.behind, _, _ = CASES[case]
        self.sp = sentencepiece.SentencePieceProcessor(str(spm))
        pieces = [self.sp.id_to_piece(i) for i in range(3, self.sp.get_piece_size())]
        if vocabulary:  # another order than the .spm's, some pieces missing
            random.Random(5).shuffle(pieces)
            pieces = pieces[:-100]
        self.base = FAIRSEQ + pieces
        self.pieces = self.base + codes + ([] if vocabulary else ["<mask>"])
        self.ids = {p: i for i, p in enumerate(self.pieces)}
        self.around = "__" if vocabulary else ""

    def language(self, code):
        return self.ids[self.around + code + self.around]

    def source(self, line, code):
        ids = [self.ids.get(p, 3) for p in self.sp.encode(line, out_type=str)]
        return ids + [2, self.language(code)] if self.behind else [self.language(code)] + ids + [2]

    def text(self, ids):  # without special tokens
        return self.sp.decode([self.pieces[i] for i in ids if 4 <= i < len(self.base)]).strip()


def make_folder(case, folder, rule, spm):
    family, tokenizer, _, _, vocabulary, _, spare, some = CASES[case]
    config, model = CLASSES[family]
    torch.manual_seed(1)
    made = model(config(vocab_size=len(rule.pieces) + spare, **TINY))
    made.generation_config.max_length, made.generation_config.num_beams = 24, 4
    made.save_pretrained(folder)
    (folder / "sentencepiece.bpe.model").write_bytes(spm.read_bytes())
    if vocabulary:
        (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(rule.base)}))
    settings = dict(tokenizer_class=tokenizer.__name__, src_lang=some[0])
    if vocabulary:
        settings["language_codes"] = case if case == "wmt21" else "m2m100"
    if tokenizer is NllbTokenizer:  # without them transformers 5 has no languages
        added = {len(rule.base) + i: p for i, p in enumerate(rule.pieces[len(rule.base):])}
        settings["added_tokens_decoder"] = {str(i): dict(content=p, special=True, normalized=False) for i, p in added.items()}
        settings["extra_special_tokens"] = rule.pieces[len(rule.base):-1]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


# ---- weft --------------------------------------------------------------------------------------------------------------

class Options(ctypes.Structure):  # wf_sentencepiece_options, models/text.h
    _fields_ = [("model", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("pieces", ctypes.c_void_p),
                ("n_pieces", ctypes.c_int64), ("special", ctypes.c_int32 * 4), ("before", ctypes.POINTER(ctypes.c_int32)),
                ("after", ctypes.POINTER(ctypes.c_int32)), ("n_before", ctypes.c_int), ("n_after", ctypes.c_int),
                ("language_codes", ctypes.c_bool), ("added", ctypes.c_int32)]


class Weft:
    def __init__(self, lib, file):
        self.lib = lib
        for name in ("wf_file_open", "wf_tokenizer_from_meta", "wf_tokenizer_from_sentencepiece"):
            getattr(lib, name).restype = ctypes.c_void_p
        for name in ("wf_tokenizer_encode", "wf_tokenizer_decode"):
            getattr(lib, name).restype = ctypes.c_int64
        message = ctypes.create_string_buffer(256)
        opened = ctypes.c_void_p(lib.wf_file_open(str(file).encode()))
        self.sides = [ctypes.c_void_p(lib.wf_tokenizer_from_meta(opened, name, message))
                      for name in (b"src_tokenizer", b"tgt_tokenizer")]
        if not all(self.sides):
            sys.exit(f"{file}: {message.value.decode()}")

    def with_language(self, language):  # as `generate --source-language` does it
        o, message = Options(), ctypes.create_string_buffer(256)
        self.lib.wf_tokenizer_sentencepiece(self.sides[0], ctypes.byref(o))
        before, after = (ctypes.c_int32 * 1)(language), (ctypes.c_int32 * 2)(2, language)
        if o.n_after == 2:
            o.after = after
        else:
            o.before, o.n_before = before, 1
        return ctypes.c_void_p(self.lib.wf_tokenizer_from_sentencepiece(ctypes.byref(o), message))

    def encode(self, tokenizer, line):
        text, ids = line.encode(), (ctypes.c_int32 * 60000)()
        n = self.lib.wf_tokenizer_encode(tokenizer, text, ctypes.c_size_t(len(text)), ids, ctypes.c_int64(60000), None)
        return list(ids[:n])

    def decode(self, side, ids):
        out = ctypes.create_string_buffer(1 << 18)
        n = self.lib.wf_tokenizer_decode(self.sides[side], (ctypes.c_int32 * (len(ids) + 1))(*ids), ctypes.c_int64(len(ids)),
                                         out, ctypes.c_size_t(len(out)))
        return out.raw[:n].decode()


# ---- both --------------------------------------------------------------------------------------------------------------

def line_sets(n):
    known = spm_peer.corpus(2, n)
    usual = [unicodedata.normalize("NFKC", line) for line in known]
    hostile = [t.decode("utf-8", "ignore") for t in spm_peer.hostile(3, n, known)]
    return {"usual": usual, "hostile": [t for t in hostile if not has_special(t)]}


def has_special(text):  # transformers takes those out of a line; weft has them as text
    return any(s in text for s in ("<s>", "</s>", "<unk>", "<pad>", "<mask>")) or len(text) > 15000


def outputs(rng, ids, rule):
    """Ids as a model may put them out."""
    ids = list(ids)
    for _ in range(rng.randint(0, 3)):
        ids.insert(rng.randrange(len(ids) + 1), rng.choice([0, 1, 2, 3, rng.randrange(len(rule.pieces))]))
    if rng.random() < 0.3:
        rng.shuffle(ids)
    return ids[:rng.randint(0, len(ids))]


def compare(weft, rule, theirs, some, lines, differ, name):
    """Differences: from the rule, of encoding and of decoding; from transformers' class, of both."""
    rng, table = random.Random(9), {code: weft.with_language(rule.language(code)) for code in some}
    for i, line in enumerate(lines):
        code = some[i % len(some)]
        want, ours = rule.source(line, code), weft.encode(table[code], line)
        theirs.src_lang = code
        differ[name, "ids"] += ours != want
        differ[name, "ids of transformers"] += ours != theirs(line).input_ids
        differ[name, "target ids"] += weft.encode(weft.sides[1], line) != [i for i in want if i < len(rule.base)][:-1]
        ids = outputs(rng, want, rule)
        text = weft.decode(i % 2, ids)
        differ[name, "text"] += text != rule.text(ids)
        differ[name, "text of transformers"] += text != theirs.decode(ids, skip_special_tokens=True).strip()
        if ours != want and differ[name, "ids"] <= 2:
            print("   ", repr(line[:80]), "\n      weft", ours[:30], "\n      rule", want[:30])
        if text != rule.text(ids) and differ[name, "text"] <= 2:
            print("   ", ids[:30], "\n      weft", repr(text[:80]), "\n      rule", repr(rule.text(ids)[:80]))


def convert(build, *arguments):
    run = subprocess.run([build / "tools/convert", *map(str, arguments)], capture_output=True, text=True)
    said = [line for line in run.stderr.splitlines() if line.startswith("convert:")]
    return said if run.returncode == 0 else sys.exit(f"convert {arguments}: {run.stderr}")


def compare_back(build, case, rule, file, folder, lines):
    convert(build, "--to", "hf", file, "-o", folder)
    again, some = CASES[case][1].from_pretrained(folder), CASES[case][7]
    convert(build, "--from", "hf", folder, "-o", folder / "again.weft")
    same = (folder / "again.weft").read_bytes() == file.read_bytes()
    bad = sum(again.convert_tokens_to_ids(p) != i for i, p in enumerate(rule.pieces))
    special = sum(p not in again.all_special_tokens for p in rule.pieces[len(rule.base):])
    return same, bad, special, again


def compare_outputs(build, case, rule, folder, file, theirs):
    """How many lines of `generate` differ."""
    model, some = CLASSES[CASES[case][0]][1].from_pretrained(folder).eval(), CASES[case][7]
    lines, differ = line_sets(60)["usual"], 0
    lines = [line for line in lines if len(rule.source(line, some[0])) < 40]
    for source, target in ((some[0], some[1]), (some[2], some[0])):
        theirs.src_lang, want = source, []
        for line in lines:
            ids = torch.tensor([theirs(line).input_ids])
            with torch.no_grad():
                found = model.generate(ids, forced_bos_token_id=rule.language(target))
            want.append(" ".join(theirs.decode(found[0], skip_special_tokens=True).split()))
        command = [build / "tools/generate", "--model", file, "--source-language", source, "--target-language", target,
                   "--quiet"]
        ours = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True)
        if ours.returncode:
            sys.exit(ours.stderr)
        distinct = len(set(want))
        differ += sum(" ".join(a.split()) != b for a, b in zip(ours.stdout.split("\n"), want, strict=False))
    return differ, 2 * len(lines), distinct


def run(case, build, lib, work, lines):
    folder = work / case
    spm = train(work, CASES[case][2])
    rule = Rule(case, spm)
    make_folder(case, folder, rule, spm)
    told = convert(build, "--from", "hf", folder, "-o", work / f"{case}.weft")
    same, bad, special, again = compare_back(build, case, rule, work / f"{case}.weft", work / f"{case}.out", lines)
    weft, differ = Weft(lib, work / f"{case}.weft"), {}
    other, n, distinct = compare_outputs(build, case, rule, folder, work / f"{case}.weft", again)
    print(f"{case}: back {'the same bytes' if same else 'OTHER BYTES'}; of what is written transformers has {bad} other ids, "
          f"{special} languages that are not special; {other} of {n} outputs differ ({distinct} are not alike)", *told, flush=True)
    for name, some in line_sets(lines).items():
        for what in ("ids", "target ids", "text", "ids of transformers", "text of transformers"):
            differ[name, what] = 0
        compare(weft, rule, again, CASES[case][7], some, differ, name)
        print(f"  {name:8} of {len(some)} lines differ:", ", ".join(f"{k} {v}" for (n, k), v in differ.items() if n == name),
              flush=True)
    exact = ("ids", "target ids", "text") + (("ids of transformers", "text of transformers") if rule.around else ())
    return same and not bad and not other and not special and not told and all(v == 0 for (n, k), v in differ.items() if k in exact)


# ---- bytes -------------------------------------------------------------------------------------------------------------

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
BLANKS = " \t\v\f\x1c\x1f\u0085\u00a0\u1680\u2003\u200b\u2028\u202f\u205f\u3000\ufeff\u180e\n\r"


def learned(work, lines):
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(lines, vocab_size=3000, special_tokens=SPECIAL, show_progress=False)
    trained.save_model(str(work))
    return json.loads((work / "vocab.json").read_text()), (work / "merges.txt").read_text()


def made_up(work, lines):
    """Pairs in any order, of pieces that other pairs make, too."""
    rng, (known, _) = random.Random(4), learned(work, lines)
    pieces = [p for p in known if p not in SPECIAL]
    pairs = [(p[:i], p[i:]) for p in pieces for i in range(1, len(p)) if p[:i] in known and p[i:] in known]
    rng.shuffle(pairs)
    return known, "".join(f"{a} {b}\n" for a, b in pairs)


BART = {"bart": (learned, False, True), "bart-space": (learned, True, True), "bart-order": (made_up, False, False)}


def make_bart(case, folder, work, lines):
    make, space, mask = BART[case]
    known, merges = make(work, lines)
    if mask:
        known["<mask>"] = len(known)
    config, model = CLASSES["bart"]
    made = model(config(vocab_size=len(known) + 3, forced_bos_token_id=0, **TINY))
    made.generation_config.max_length, made.generation_config.num_beams = 24, 4
    made.save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps(known))
    (folder / "merges.txt").write_text(merges)
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(tokenizer_class="BartTokenizer", add_prefix_space=space)))
    return len(known)


def byte_lines(n):
    rng, known = random.Random(6), spm_peer.corpus(2, 2000)
    stock = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'", "’s", "don't", "''ll", "1'd", "a1b2", "१२", "½", "Ⅷ", "x²", "_", "e\u0301",
             "\U0001f600", "\u200d", "  ", "\t ", " \u3000", "0", "...", "aaaa", "ab" * 20]

    def point():
        while True:
            c = rng.choice((rng.randrange(0x250), rng.randrange(0x3000), rng.randrange(0x20000), rng.randrange(0x110000)))
            if not 0xD800 <= c < 0xE000:
                return chr(c)

    def line():
        parts = [lambda: rng.choice(stock), lambda: rng.choice(BLANKS) * rng.randint(1, 3), point,
                 lambda: rng.choice(known)[:rng.randint(1, 9)], lambda: " ", lambda: str(rng.randint(0, 99999))]
        return "".join(rng.choice(parts)() for _ in range(rng.randint(0, 25)))

    out = [t.decode("utf-8", "ignore") for t in spm_peer.hostile(3, n // 2, known)]
    while True:
        out = [t.rstrip("\r\n") for t in out]
        out = [t for t in out if not any(s in t for s in (*SPECIAL, "<mask>"))]
        if len(out) == n:
            return out
        out += [line() for _ in range(n - len(out))]


def run_bart(case, build, lib, work, lines):
    folder, back, file = work / case, work / f"{case}.out", work / f"{case}.weft"
    n = make_bart(case, folder, work, spm_peer.corpus(1, 4000) + ["it's we're I'll don't she'd I've I'm"] * 50)
    told = convert(build, "--from", "hf", folder, "-o", file)
    convert(build, "--to", "hf", file, "-o", back)
    convert(build, "--from", "hf", back, "-o", back / "again.weft")
    same = (back / "again.weft").read_bytes() == file.read_bytes()
    first, theirs = BartTokenizer.from_pretrained(folder), BartTokenizer.from_pretrained(back)
    weft, rng, ids, targets, texts, files = Weft(lib, file), random.Random(8), 0, 0, 0, 0
    for i, line in enumerate(byte_lines(lines)):
        want = theirs(line).input_ids
        files += want != first(line).input_ids
        ids += weft.encode(weft.sides[0], line) != want
        targets += weft.encode(weft.sides[1], line) != want[:-1]
        some = [rng.randrange(n) for _ in range(rng.randint(0, 20))] if i % 2 else rng.sample(want, rng.randint(0, len(want)))
        texts += weft.decode(i % 2, some) != theirs.decode(some, skip_special_tokens=True)
        if ids == 1 and weft.encode(weft.sides[0], line) != want:
            print("   ", repr(line[:80]), "\n      weft", weft.encode(weft.sides[0], line)[:30], "\n      theirs", want[:30])
    print(f"{case}: back {'the same bytes' if same else 'OTHER BYTES'}; of {i + 1} lines differ: ids {ids}, target ids {targets}, "
          f"text {texts}; of what is written transformers makes {files} others", *told, flush=True)
    return same and not (told or ids or targets or texts or files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=4000)
    parser.add_argument("--bytes", type=int, default=20000)
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    build = a.build.resolve()
    lib = ctypes.CDLL(str(build / "libweft.so"))
    with tempfile.TemporaryDirectory() as work:
        good = [run(name, build, lib, pathlib.Path(work), a.lines) for name in CASES if a.only in name]
        good += [run_bart(name, build, lib, pathlib.Path(work), a.bytes) for name in BART if a.only in name]
    sys.exit(0 if all(good) and good else 1)


if __name__ == "__main__":
    main()
