#!/usr/bin/env python3
"""Models that `train --like WORD` makes, beside transformers: trained on made-up lines, written by `convert --to hf`, opened there.

usage: tests/models/like_peer.py build/tools [--lines 300]

Says for each word of --like: how many lines have other token ids there, the largest difference of a token's log-probability, how
many greedy outputs and outputs of the search that the folder asks for are others, and whether a folder that was read and written
again has the same bytes. Exits with 1 if anything differs; of the outputs one in a hundred may, where two tokens or hypotheses are
equal to seven digits, and is printed.
"""
import argparse
import filecmp
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import transformers

WORDS = "the a cat dog house tree runs sees likes big small red green don't Über façade 12 , . naïve 日本 it's".split()
TRAIN = ["--preset", "tiny", "--epochs", "3", "--threads", "2", "--quiet"]


def make_lines(rng, n):
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 8))) for _ in range(n)]


def learn_spm(work, **ids):
    import sentencepiece
    text = (work / "pairs.tsv").read_text().replace("\t", "\n")
    (work / "text").write_text(text)
    sentencepiece.SentencePieceTrainer.train(input=str(work / "text"), model_prefix=str(work / "joint"), vocab_size=90,
                                             hard_vocab_limit=False, minloglevel=2, **ids)
    return ["--spm-src", str(work / "joint.model")]


T5_IDS = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
LIKE = {"bart": lambda work: [], "marian": learn_spm, "t5": lambda work: learn_spm(work, **T5_IDS),
        "t5 --tie all": lambda work: learn_spm(work, **T5_IDS)}


def run(tools, program, *arguments, stdin=None):
    return subprocess.run([tools / program, *map(str, arguments)], input=stdin, capture_output=True, text=True, check=True).stdout


def same_folders(a, b):
    names = sorted(p.name for p in a.iterdir())
    return names == sorted(p.name for p in b.iterdir()) and filecmp.cmpfiles(a, b, names, shallow=False)[0] == names


def log_probs(model, tokenizer, source, target):
    """Of each token of the target and of its end, teacher-forced."""
    src = torch.tensor([tokenizer(source).input_ids])
    labels = torch.tensor([tokenizer(text_target=target).input_ids])
    start = torch.tensor([[model.config.decoder_start_token_id]])
    with torch.no_grad():
        logits = model(input_ids=src, decoder_input_ids=torch.cat([start, labels[:, :-1]], 1)).logits
    return torch.log_softmax(logits[0].double(), -1).gather(1, labels[0][:, None])[:, 0].tolist()


def compare(word, tools, work, n):
    rng = random.Random(1)
    work.mkdir()
    lines = make_lines(rng, 2000)
    (work / "pairs.tsv").write_text("".join(f"{s}\t{' '.join(reversed(s.split())).upper()}\n" for s in lines))
    run(tools, "train", "--train", work / "pairs.tsv", "--like", *word.split(), *LIKE[word](work), *TRAIN, "-o", work / "m")
    run(tools, "convert", "--to", "hf", work / "m", "-o", work / "folder")
    run(tools, "convert", "--from", "hf", work / "folder", "-o", work / "back")
    run(tools, "convert", "--to", "hf", work / "back", "-o", work / "folder2")
    same = same_folders(work / "folder", work / "folder2")

    tokenizer = transformers.AutoTokenizer.from_pretrained(work / "folder")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(work / "folder").eval()
    lines = make_lines(rng, n)
    targets = [" ".join(reversed(s.split())).upper() for s in lines]
    pairs = "".join(f"{s}\t{t}\n" for s, t in zip(lines, targets))
    largest, ids = 0.0, 0
    for record, s, t in zip(run(tools, "generate", work / "m", "--score", "--json", "--quiet", stdin=pairs).splitlines(), lines, targets):
        mine = json.loads(record)["log_probs"]
        theirs = log_probs(model, tokenizer, s, t)
        ids += len(mine) != len(theirs)
        if len(mine) == len(theirs):
            largest = max([largest] + [abs(a - b) for a, b in zip(mine, theirs)])

    counts = {}
    text = "".join(s + "\n" for s in lines)
    for name, beam in (("greedy", ["--beam", "1"]), ("asked", [])):
        mine = run(tools, "generate", work / "back", *beam, "--quiet", stdin=text).splitlines()
        more = {"num_beams": 1} if beam else {}
        differ = []
        for s, m in zip(lines, mine):
            src = torch.tensor([tokenizer(s).input_ids])
            with torch.no_grad():
                out = model.generate(src, **more)
            theirs = tokenizer.decode(out[0], skip_special_tokens=True)
            if theirs != m:
                differ.append((s, m, theirs))
        counts[name] = len(differ)
        for row in differ[:3]:
            print("   ", *map(repr, row))
    print(f"{word}: {n} lines: {ids} with other ids; log-probabilities differ by {largest:.1e} at most; other outputs: greedy "
          f"{counts['greedy']}, as the folder asks {counts['asked']}; written again {'the same bytes' if same else 'OTHER BYTES'}",
          flush=True)
    return same and not ids and largest < 2e-5 and max(counts.values()) <= n // 100


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        good = [compare(word, a.tools.resolve(), pathlib.Path(work) / word, a.lines) for word in LIKE if a.only in word]
    sys.exit(0 if all(good) and good else 1)


if __name__ == "__main__":
    main()
