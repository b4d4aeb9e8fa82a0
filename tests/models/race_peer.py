#!/usr/bin/env python3
"""tests/models/race_peer.py - translating with a model of OPUS-MT's sizes: weft, CTranslate2 and
transformers, in turns.

    tests/models/race_peer.py --tools build/tools [--batch 1 8 32] [--beam 1 4] [--threads 1 2]
                              [--int8] [--rounds 3] [--only weft ct2 hf]

The model is a MarianMTModel of random weights: D 512, 8 heads, 6 + 6 layers, F 2048, one table of
58,101 ids. Sources have 30 random ids, outputs 40 each, by all three. A run is a process of its
own; its rate does not count loading. Printed for each case: the medians over the rounds in tokens
of output a second, weft's rate by each other's (of the medians, of the best runs), and the largest
peak of resident memory. Needs torch, transformers and, for its turns, ctranslate2.
"""
import argparse
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

V, D, SOURCE, OUTPUT = 58101, 512, 30, 40


def make_hf(a):
    import torch
    from transformers import MarianConfig, MarianMTModel
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=V, decoder_vocab_size=V, d_model=D, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
        decoder_ffn_dim=2048, activation_function="swish", max_position_embeddings=512,
        scale_embedding=True, pad_token_id=V - 1, decoder_start_token_id=V - 1, eos_token_id=0,
        forced_eos_token_id=0, bos_token_id=0)
    config.static_position_embeddings = True
    config.normalize_before = config.normalize_embedding = config.add_final_layer_norm = False
    model = MarianMTModel(config).eval()
    model.generation_config.update(bad_words_ids=[[V - 1]], num_beams=4, max_length=512,
                                   renormalize_logits=True)
    model.save_pretrained(a.hf)


def sources(n):
    r = random.Random(2)
    return [[r.randrange(2, V - 1) for _ in range(SOURCE)] for _ in range(n)]


def count(a):
    """Sentences: enough for a second or two."""
    return a.sentences - a.sentences % a.one_batch or a.one_batch


def run_weft(a):
    text = "\n".join(" ".join(map(str, s + [0])) for s in sources(count(a))) + "\n"
    run = subprocess.run(
        [f"{a.tools}/generate", "--model", a.model, "--beam", str(a.one_beam), "--threads",
         str(a.one_thread), "--batch-size", str(a.one_batch), "--min-len", str(OUTPUT),
         "--max-len-a", "0", "--max-len-b", str(OUTPUT)]
        + (["--weights", "int8"] if a.int8 else []),
        input=text, capture_output=True, text=True, check=True)
    rate = re.search(r"([\d,.]+) tokens/s", run.stderr)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return float(rate[1].replace(",", "")), peak / 1024


def run_hf(a):
    import torch
    from transformers import MarianMTModel
    torch.set_num_threads(a.one_thread)
    model = MarianMTModel.from_pretrained(a.hf).eval()
    rows = [s + [0] for s in sources(count(a))]
    took = 0
    with torch.inference_mode():
        for turn in range(2):
            begin = time.time()
            for i in range(0, len(rows) if turn else 1, a.one_batch):
                model.generate(torch.tensor(rows[i:i + a.one_batch]), num_beams=a.one_beam,
                               do_sample=False, min_new_tokens=OUTPUT, max_new_tokens=OUTPUT)
            took = time.time() - begin
    return len(rows) * OUTPUT / took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_ct2(a):
    import ctranslate2
    translator = ctranslate2.Translator(a.ct2, inter_threads=1, intra_threads=a.one_thread,
                                        compute_type="int8" if a.int8 else "float32")
    rows = [[f"t{i}" for i in s] + ["</s>"] for s in sources(count(a))]
    took = 0
    for turn in range(2):
        begin = time.time()
        for i in range(0, len(rows) if turn else 1, a.one_batch):
            translator.translate_batch(rows[i:i + a.one_batch], beam_size=a.one_beam,
                                       min_decoding_length=OUTPUT, max_decoding_length=OUTPUT,
                                       max_batch_size=0)
        took = time.time() - begin
    return len(rows) * OUTPUT / took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make_ct2(a):
    """As the converter for Marian does it, without a tokenizer's files."""
    import torch
    from ctranslate2.converters import transformers as converters
    from transformers import MarianMTModel
    loader = converters.MarianMTLoader()
    model = MarianMTModel.from_pretrained(a.hf)
    tokens = ["</s>", "<unk>"] + [f"t{i}" for i in range(2, V - 1)] + ["<pad>"]

    class Tokenizer:
        pad_token, unk_token, bos_token, eos_token = "<pad>", "<unk>", "<s>", "</s>"
        additional_special_tokens = []

        def get_vocab(self):
            return {t: i for i, t in enumerate(tokens)}

    with torch.no_grad():
        spec = loader(model, Tokenizer())
    spec.validate()
    spec.optimize()
    os.makedirs(a.ct2)
    spec.save(a.ct2)


ROLES = {"weft": run_weft, "ct2": run_ct2, "hf": run_hf, "make-hf": make_hf, "make-ct2": make_ct2}


def one(a, role, batch=0, beam=0, threads=0, n=0):
    """In a process of its own, so that the peak of memory is its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--role", role, "--tools", a.tools,
               "--model", a.model, "--hf", a.hf, "--ct2", a.ct2, "--sentences", str(n),
               "--one-batch", str(batch), "--one-beam", str(beam), "--one-thread", str(threads)]
    run = subprocess.run(command + ["--int8"] * a.int8, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout.splitlines()[-1])


def race(a):
    print(f"tokens of output a second{', int8' if a.int8 else ''}; each other: its rate, weft's by "
          "its (of the medians, of the best)")
    for threads in a.threads:
        for beam in a.beam:
            for batch in a.batch:
                n = {w: max(batch, 4 if w == "hf" else 16) for w in a.only}
                runs = {who: [] for who in a.only}
                for _ in range(a.rounds):
                    for who in a.only:
                        runs[who].append(one(a, who, batch=batch, beam=beam, threads=threads, n=n[who]))
                rates = {w: [x[0] for x in r] for w, r in runs.items()}
                line = f"threads {threads} beam {beam} batch {batch:2}:"
                for who in a.only:
                    rate, peak = statistics.median(rates[who]), max(x[1] for x in runs[who])
                    line += f"  {who} {rate:.0f} ({peak:.0f} MB)"
                    if who != "weft" and "weft" in rates:
                        line += (f" {statistics.median(rates['weft']) / rate:.2f} x"
                                 f" {max(rates['weft']) / max(rates[who]):.2f} x")
                print(line, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tools", required=True)
    p.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
    p.add_argument("--beam", type=int, nargs="+", default=[1, 4])
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", nargs="+", default=["weft", "ct2", "hf"])
    p.add_argument("--int8", action="store_true", help="weft's and CTranslate2's weights")
    p.add_argument("--folder", help="keep the models here")
    for hidden in ("--role", "--model", "--hf", "--ct2"):
        p.add_argument(hidden, help=argparse.SUPPRESS)
    for hidden in ("--sentences", "--one-batch", "--one-beam", "--one-thread"):
        p.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.role:
        print(json.dumps(ROLES[a.role](a)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = a.folder or temporary
        a.hf, a.ct2, a.model = (f"{folder}/{x}" for x in ("hf", "ct2", "model.safetensors"))
        if not os.path.exists(a.hf):
            one(a, "make-hf")
        if "ct2" in a.only and not os.path.exists(a.ct2):
            one(a, "make-ct2")
        if "weft" in a.only and not os.path.exists(a.model):
            subprocess.run([f"{a.tools}/convert", "--from", "hf", a.hf, "-o", a.model], check=True)
        race(a)


if __name__ == "__main__":
    main()
