#!/usr/bin/env python3
"""tests/models/encoder_peer.py - encoders of transformers and sentence-transformers, imported: the same vectors.

    ninja -C build tests/encoder_peer; encoder_peer.py build [--lines 1000] [--only NAME]

Random models of BERT, RoBERTa, XLM-R, CamemBERT, MPNet and DistilBERT are saved as transformers and sentence-transformers save
them, and as older ones did, and converted with `convert --from hf`. Then, through libweft.so and the program embed:

  ids       of hostile lines, cut where the model ends: the same as the tokenizer's
  hidden    vectors of the tokens of padded batches, both sides in f64: within 1e-12
  head      where there is one: log-probabilities of all tokens, or of the classes of lines, within 1e-11
  vectors   of lines, both sides in f32: the cosine is at least 1 - 1e-7
  bits      of vectors: the same for any batch and number of threads
  back      `convert --to hf`, opened without a warning, gives the same vectors; imported again, the same bytes
"""
import argparse
import ctypes
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import (AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification, BertConfig, BertForMaskedLM, BertForPreTraining,
                          BertForSequenceClassification, BertModel, CamembertConfig, CamembertModel, DistilBertConfig,
                          DistilBertForMaskedLM, DistilBertForSequenceClassification, DistilBertModel, MPNetConfig, MPNetForMaskedLM,
                          MPNetForSequenceClassification, MPNetModel, PreTrainedTokenizerFast,
                          RobertaConfig, RobertaForMaskedLM, RobertaForSequenceClassification, RobertaModel, XLMRobertaConfig,
                          XLMRobertaForMaskedLM, XLMRobertaForSequenceClassification, XLMRobertaModel)

import tokenizer_recipes as recipes
from hf_lm_peer import Warnings

BOUND, COSINE, MASKED = 1e-12, 1e-7, 1e-11
V = 2600
SIZES = dict(vocab_size=V, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=40)
ROBERTA = dict(SIZES, max_position_embeddings=42, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0,
               eos_token_id=2)
MPNET = dict(SIZES, max_position_embeddings=42, layer_norm_eps=1e-5)
DISTIL = dict(vocab_size=V, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=40)
NAMES = ["negative", 'a "b"', "Häuser"]
NAMED = dict(id2label=dict(enumerate(NAMES)), label2id={name: i for i, name in enumerate(NAMES)})
BERT_T, BYTES_T, SPM_T = recipes.bert, recipes.roberta, recipes.xlmr

# name: (configuration, class, tokenizer, modules or None for a folder of transformers, how it is saved)
CASES = {
    "minilm": (BertConfig(**SIZES), BertModel, BERT_T, ["mean", Normalize()], ""),
    "minilm-old": (BertConfig(**SIZES), BertModel, BERT_T, ["mean", Normalize()], "old"),
    "bert": (BertConfig(**SIZES), BertModel, BERT_T, None, ""),
    "bert-masked": (BertConfig(**SIZES), BertForMaskedLM, BERT_T, None, ""),
    "bert-hub": (BertConfig(**SIZES), BertForPreTraining, BERT_T, None, "gamma"),
    "bert-relu": (BertConfig(**dict(SIZES, hidden_act="relu", num_hidden_layers=3)), BertModel, BERT_T, ["cls"], ""),
    "bert-untied": (BertConfig(**dict(SIZES, tie_word_embeddings=False)), BertForMaskedLM, BERT_T, None, ""),
    "bert-bin": (BertConfig(**SIZES), BertModel, BERT_T, ["max"], "bin"),
    "bert-half": (BertConfig(**SIZES), BertModel, BERT_T, ["weightedmean"], "half"),
    "bert-shards": (BertConfig(**SIZES), BertModel, BERT_T, None, "shards"),
    "bert-dense": (BertConfig(**SIZES), BertModel, BERT_T, ["mean", Dense(32, 20), Normalize()], ""),
    "bert-many": (BertConfig(**SIZES), BertModel, BERT_T,
                  [("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"),
                   Dense(192, 24, bias=False, activation_function=torch.nn.Identity())], ""),
    "roberta": (RobertaConfig(**ROBERTA), RobertaModel, BYTES_T, ["mean", Normalize()], ""),
    "roberta-masked": (RobertaConfig(**dict(ROBERTA, hidden_act="relu")), RobertaForMaskedLM, BYTES_T, None, ""),
    "roberta-cls": (RobertaConfig(**ROBERTA), RobertaModel, BYTES_T, ["cls", Normalize()], "bin"),
    "e5": (XLMRobertaConfig(**ROBERTA), XLMRobertaModel, SPM_T, ["mean", Normalize()], "old"),
    "xlmr-masked": (XLMRobertaConfig(**ROBERTA), XLMRobertaForMaskedLM, SPM_T, None, ""),
    "camembert": (CamembertConfig(**ROBERTA), CamembertModel, SPM_T, ["mean_sqrt_len_tokens"], ""),
    "mpnet": (MPNetConfig(**MPNET), MPNetModel, BERT_T, ["mean", Normalize()], ""),
    "mpnet-long": (MPNetConfig(**dict(MPNET, max_position_embeddings=302, num_hidden_layers=3)), MPNetModel, BYTES_T,
                   ["mean", Dense(32, 20), Normalize()], ""),
    "mpnet-old": (MPNetConfig(**MPNET), MPNetModel, BERT_T, ["mean", Normalize()], "old"),
    "mpnet-masked": (MPNetConfig(**dict(MPNET, hidden_act="relu")), MPNetForMaskedLM, BERT_T, None, "bin"),
    "mpnet-untied": (MPNetConfig(**dict(MPNET, tie_word_embeddings=False)), MPNetForMaskedLM, BERT_T, None, ""),
    "mpnet-classes": (MPNetConfig(**MPNET, **NAMED), MPNetForSequenceClassification, BERT_T, None, ""),
    "distilbert": (DistilBertConfig(**DISTIL), DistilBertModel, BERT_T, ["mean", Dense(32, 16, activation_function=torch.nn.GELU())], ""),
    "bert-classes": (BertConfig(**SIZES, **NAMED), BertForSequenceClassification, BERT_T, None, ""),
    "roberta-classes": (RobertaConfig(**ROBERTA, **NAMED), RobertaForSequenceClassification, BYTES_T, None, "bin"),
    "xlmr-classes": (XLMRobertaConfig(**ROBERTA, num_labels=2), XLMRobertaForSequenceClassification, SPM_T, None, ""),
    "distilbert-classes": (DistilBertConfig(**DISTIL, num_labels=5), DistilBertForSequenceClassification, BERT_T, None, ""),
    "distilbert-masked": (DistilBertConfig(**DISTIL), DistilBertForMaskedLM, BERT_T, None, "bin"),
}


# ---- folders -----------------------------------------------------------------------------------------------------------

def make(config, kind):
    model = kind(config).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if key.endswith("bias") or "norm" in key.lower():
                p.add_(0.1 * torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * (0.5 if "embedding" in key else 0.2))
    return model


def special(tokenizer):
    if tokenizer.token_to_id("[CLS]") is not None:
        return dict(pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", unk_token="[UNK]")
    return dict(pad_token="<pad>", cls_token="<s>", sep_token="</s>", unk_token="<unk>")


def make_old(folder):
    """As sentence-transformers 2 wrote it."""
    modules = json.loads((folder / "modules.json").read_text())
    for m in modules:
        m["type"] = "sentence_transformers.models." + m["type"].rsplit(".", 1)[1]
        if m["path"].endswith("Normalize"):
            shutil.rmtree(folder / m["path"])
    (folder / "modules.json").write_text(json.dumps(modules))
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    old = {"word_embedding_dimension": pooling["embedding_dimension"], "pooling_mode_cls_token": False,
           "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(old))
    (folder / "sentence_bert_config.json").write_text(json.dumps(dict(max_seq_length=20, do_lower_case=False)))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"__version__": {"pytorch": "1.6.0"}}))


def change_weights(folder, how):
    file = folder / "model.safetensors"
    if how == "gamma":
        state = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
                 for k, v in load_file(file).items()}
        state["bert.embeddings.position_ids"] = torch.arange(40)[None]
        state["cls.predictions.decoder.bias"] = state["cls.predictions.bias"].clone()
        save_file(state, file, {"format": "pt"})
    if how == "bin":
        torch.save(load_file(file), folder / "pytorch_model.bin")
        file.unlink()


def save(name, folder):
    config, kind, tokenizer, modules, how = CASES[name]
    torch.manual_seed(sum(map(ord, name)))
    model = make(config, kind).to(torch.float16 if how == "half" else torch.float32)
    t = tokenizer(recipes.corpus()[:4000])
    fast = PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=24 if len(name) % 2 else 10**30, **special(t))
    if modules is None:
        model.save_pretrained(folder, max_shard_size="40KB" if how == "shards" else "50GB")
        fast.save_pretrained(folder)
    else:
        with tempfile.TemporaryDirectory() as plain:
            model.save_pretrained(plain)
            fast.save_pretrained(plain)
            whole = [Transformer(plain)]
            whole += [Pooling(whole[0].get_embedding_dimension(), modules[0]), *modules[1:]]
            SentenceTransformer(modules=whole).save(str(folder), create_model_card=False)
    if how == "old":
        make_old(folder)
    change_weights(folder, how)


# ---- weft --------------------------------------------------------------------------------------------------------------

def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.decode()}")
    return done.stdout


class Tokenizer:
    def __init__(self, build, path):
        self.lib = lib = ctypes.CDLL(str(build / "libweft.so"))
        self.message = ctypes.create_string_buffer(256)
        lib.wf_file_open.restype = lib.wf_tokenizer_from_meta.restype = ctypes.c_void_p
        lib.wf_tokenizer_encode.restype = ctypes.c_int64
        file = ctypes.c_void_p(lib.wf_file_open(str(path).encode()))
        self.tokenizer = ctypes.c_void_p(lib.wf_tokenizer_from_meta(file, b"tokenizer", self.message))
        if not self.tokenizer:
            sys.exit(self.message.value.decode())

    def encode(self, text):
        ids, raw = (ctypes.c_int32 * 4096)(), text.encode()
        n = self.lib.wf_tokenizer_encode(self.tokenizer, raw, ctypes.c_size_t(len(raw)), ids, ctypes.c_int64(4096), self.message)
        return list(ids[:n]) if n >= 0 else self.message.value.decode()


def weft_vectors(build, path, lines, *more):
    raw = run(build / "tools" / "embed", path, "--format", "f32", "--quiet", *more, input="".join(line + "\n" for line in lines).encode())
    return np.frombuffer(raw, np.float32).reshape(len(lines), -1)


def weft_values(build, program, path, rows, what):
    """Values of f64 of the graph: tests/models/encoder_peer.c."""
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    raw = run(program, path, what, input=text.encode())
    return np.frombuffer(raw, np.float64)


# ---- the comparison ----------------------------------------------------------------------------------------------------

def compare_values(build, path, folder, name, rows):
    """The largest differences of hidden vectors and of log-probabilities."""
    program = build / "tests" / "encoder_peer"
    model = AutoModel.from_pretrained(folder, dtype=torch.float64).eval()
    config = CASES[name][0]
    pad = config.pad_token_id or 0
    S = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (S - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (S - len(row)) for row in rows])
    keep = mask.bool().numpy()
    with torch.no_grad():
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()
    ours = weft_values(build, program, path, rows, "hidden").reshape(hidden.shape)
    error = np.abs(ours - hidden)[keep].max()
    if not has_head(name):
        return error, 0.0
    model = class_of(name).from_pretrained(folder, dtype=torch.float64).eval()
    with torch.no_grad():
        logs = torch.log_softmax(model(input_ids=ids, attention_mask=mask).logits, -1).numpy()
    difference = np.abs(weft_values(build, program, path, rows, "log_probs").reshape(logs.shape) - logs)
    return error, (difference if classifies(name) else difference[keep]).max()


def encode(folder, lines):
    model = SentenceTransformer(str(folder), model_kwargs=dict(dtype=torch.float32))
    config = model[0].auto_model.config
    longest = config.max_position_embeddings - (config.pad_token_id + 1 if config.model_type not in ("bert", "distilbert") else 0)
    model.max_seq_length = min(model.max_seq_length or longest, longest)
    return model, model.encode(lines, batch_size=64, show_progress_bar=False)


def has_head(name):
    return "For" in CASES[name][1].__name__


def classifies(name):
    return "Classification" in CASES[name][1].__name__


def class_of(name):
    return AutoModelForSequenceClassification if classifies(name) else AutoModelForMaskedLM if has_head(name) else AutoModel


def compare_back(build, path, name, lines, vectors):
    folder, again = path.with_name("back"), path.with_name("again.safetensors")
    run(build / "tools" / "convert", "--to", "hf", path, "-o", folder)
    with Warnings() as w:
        class_of(name).from_pretrained(folder)
        _, written = (None, None) if has_head(name) else encode(folder, lines)
    if has_head(name):  # sentence-transformers tells that it does not use the head
        _, written = encode(folder, lines)
    run(build / "tools" / "convert", "--from", "hf", folder, "-o", again)
    same = np.array_equal(vectors, written)
    bytes_same = path.read_bytes() == again.read_bytes()
    return " ".join(w.said + ["other vectors"] * (not same) + ["other bytes"] * (not bytes_same))


def run_case(build, name, n):
    rng = np.random.default_rng(3)
    texts = list(recipes.hostile(random.Random(5), recipes.corpus(), n))
    lines = [t for t in texts if not set(t) & set("\n\r\0") and not t.startswith("\ufeff")][:n // 2]
    with tempfile.TemporaryDirectory() as work:
        folder, path = pathlib.Path(work) / "folder", pathlib.Path(work) / "model.safetensors"
        save(name, folder)
        run(build / "tools" / "convert", "--from", "hf", folder, "-o", path)
        weft = Tokenizer(build, path)
        model, theirs = encode(folder, lines)
        tokenizer = model.tokenizer
        longest = model.max_seq_length
        ids = sum(weft.encode(t) == tokenizer(t, truncation=True, max_length=longest).input_ids for t in texts)
        rows = [[int(x) for x in rng.integers(0, V, k)] for k in [longest, *rng.integers(1, longest + 1, 11)]]
        error, masked = compare_values(build, path, folder, name, rows)
        ours = weft_vectors(build, path, lines)
        norms = np.linalg.norm(ours.astype(np.float64), axis=1) * np.linalg.norm(theirs.astype(np.float64), axis=1)
        cosine = 1 - ((ours.astype(np.float64) * theirs).sum(1) / norms).min()
        bits = all(np.array_equal(ours, weft_vectors(build, path, lines, "--batch-size", b, "--threads", t))
                   for b, t in ((1, 1), (7, 2), (500, 1)))
        back = compare_back(build, path, name, lines, theirs)
    ok = ids == len(texts) and error <= BOUND and masked <= MASKED and cosine <= COSINE and bits and not back
    print(f"{name:18} ids {ids} of {len(texts)}   hidden {error:.1e}   head {masked:.1e}   1 - cosine {cosine:.1e}   "
          f"{'same bits' if bits else 'OTHER BITS'}   back {back or 'same'}   {'ok' if ok else 'DIFFERS'}", flush=True)
    return ok


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
    a.add_argument("--lines", type=int, default=1000)
    a.add_argument("--only", action="append")
    a = a.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    same = [run_case(a.build, name, a.lines) for name in a.only or CASES]
    if not all(same):
        sys.exit("not all are the same")


if __name__ == "__main__":
    main()
