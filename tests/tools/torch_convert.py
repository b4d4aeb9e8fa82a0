#!/usr/bin/env python3
"""Hold `convert` and `generate --score` against PyTorch: the module of record_models.py, in every variant.

    tests/tools/torch_convert.py build/tools                           compare; ends with 1 if a difference is too large
    tests/tools/torch_convert.py --record tests/data/scores.tsv        write what test_convert.c compares with

Needs torch and safetensors. For each variant a state_dict is saved as PyTorch users save them, converted, and
pairs of many lengths are scored in batches, so that most of them are padded; the log-probabilities are compared with
PyTorch's in f64 from the same weights. Then the model goes back to a state_dict, which the module must load with
strict=True, bit for bit; the model's own file must open in Python as well. Last, models that weft has trained are
handed to PyTorch.
"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

from record_models import ACTIVATIONS, CASES, NAMES, SMALL, Model, new_model

BOUND = 1e-5
SIZES = dict(src_vocab=50, tgt_vocab=60, max_len=40, d_model=32, num_heads=4, dim_feedforward=48, encoder_layers=3,
             decoder_layers=2)
PREFIXES = ["", "module.", "model."]


# ---- scores -----------------------------------------------------------------------------------------------------

def pairs_for(c, n, longest, generator):
    """Sources and targets of any length, an empty target among them; pad_id inside sources where there is one."""
    draw = lambda low, high, size: torch.randint(low, high, size, generator=generator).tolist()
    length = lambda least: draw(least, longest + 1, (1,))[0]
    out = [(draw(0, c["src_vocab"], (length(1),)), draw(0, c["tgt_vocab"], (length(0),))) for _ in range(n)]
    out[0] = (out[0][0], [])
    return out


def scores(model, c, pairs):
    """log p of every target token and of the end, of all pairs in one padded batch."""
    S, T = max(len(s) for s, _ in pairs), 1 + max(len(t) for _, t in pairs)
    src, tgt = torch.zeros(len(pairs), S, dtype=torch.long), torch.zeros(len(pairs), T, dtype=torch.long)
    for i, (s, t) in enumerate(pairs):
        src[i, :len(s)] = torch.tensor(s)
        tgt[i, :len(t) + 1] = torch.tensor([c["start_id"]] + t)
    with torch.no_grad():
        log_probs = model(src, torch.tensor([len(s) for s, _ in pairs]), tgt).log_softmax(-1)
    return [[log_probs[i, k, token].item() for k, token in enumerate(t + [c["end_id"]])]
            for i, (_, t) in enumerate(pairs)]


def line(pair):
    return "\t".join(" ".join(map(str, ids)) for ids in pair)


def weft_scores(tools, path, pairs):
    """The same log-probabilities by generate --score, which must not depend on the batch."""
    text = "".join(line(p) + "\n" for p in pairs)
    run = lambda *more: subprocess.run([f"{tools}/generate", "--model", path, "--score", "--json", *more], input=text,
                                       capture_output=True, text=True, check=True).stdout
    out = run()
    assert out == run("--batch-size", "1") == run("--batch-size", "3", "--threads", "1"), "batches change the figures"
    return [json.loads(row)["log_probs"] for row in out.splitlines()]


def difference(a, b):
    assert [len(x) for x in a] == [len(x) for x in b]
    return max(abs(x - y) for p, q in zip(a, b) for x, y in zip(p, q))


# ---- files ------------------------------------------------------------------------------------------------------

def save_state(model, c, path, packed, prefix, once):
    """As PyTorch users save: tied tables under all names (clones), or once (safetensors' save_model)."""
    if once:
        save_model(model, path)
        state = load_file(path)
        metadata = dict(safe_open(path, "pt").metadata())
        metadata = {k if k == "format" else prefix + k: v if k == "format" else prefix + v for k, v in metadata.items()}
    else:
        state, metadata = {k: v.detach().clone() for k, v in model.state_dict().items()}, None
    if not packed:
        for name in [k for k in state if k.endswith("in_proj_weight")]:
            for letter, part in zip("qkv", state.pop(name).chunk(3)):
                state[name.replace("in_proj", letter + "_proj")] = part.clone()
    save_file({prefix + k: v for k, v in state.items()}, path, metadata=metadata)


def flags(c):
    out = ["--heads", c["num_heads"], "--norm", "pre" if c["norm_first"] else "post",
           "--positions", c["positions"], "--activation", c["activation"], "--layer-norm-eps", c["layer_norm_eps"],
           "--pad-id", c["pad_id"], "--start-id", c["start_id"], "--end-id", c["end_id"]]
    out += ["--scale-embedding"] if c["scale_embedding"] else []
    out += ["--max-len", c["max_len"]] if c["positions"] != "learned" else []
    return [str(x) for x in out]


def convert(tools, *arguments):
    subprocess.run([f"{tools}/convert", *arguments], check=True, capture_output=True, text=True)


def check_back(tools, model, c, path, folder):
    """Both exports, in bf16 and in f32, must load strictly: f32 bit for bit, bf16 as PyTorch rounds. Returns the f32 module."""
    back = f"{folder}/back.safetensors"
    convert(tools, "--to", "torch", "--dtype", "bf16", path, "-o", back)
    rounded = Model(c)
    rounded.load_state_dict(load_file(back), strict=True)
    assert all(t.dtype == torch.bfloat16 for t in load_file(back).values())
    convert(tools, "--to", "torch", path, "-o", back)
    loaded = Model(c)
    loaded.load_state_dict(load_file(back), strict=True)
    for name, want in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], want), name
        assert torch.equal(rounded.state_dict()[name], want.bfloat16().float()), name
    return loaded


def check_opens(model, c, path):
    """The model's own file is a state_dict: load_model for any, load_state_dict where no table is tied."""
    opened = Model(c)
    if c["tie"] == "none":
        opened.load_state_dict(load_file(path), strict=True)
    else:
        load_model(opened, path)
    for name, want in model.state_dict().items():
        assert torch.equal(opened.state_dict()[name], want), name


# ---- from PyTorch -----------------------------------------------------------------------------------------------

def variants():
    axes = itertools.product([0, 1], ["none", "decoder", "all"], ["sinusoidal", "learned"], [True, False], [0, 1])
    for i, (norm_first, tie, positions, packed, final) in enumerate(axes):
        c = {**SMALL, **SIZES, "norm_first": norm_first, "tie": tie, "positions": positions, "encoder_norm": final,
             "decoder_norm": final, "activation": list(ACTIVATIONS)[i % 4], "scale_embedding": i % 3 != 0,
             "bias": i % 5 != 4, "output_bias": i % 7 != 6, "start_id": i % 2, "end_id": i % 3,
             "pad_id": 3 if i % 2 else -1}
        if tie == "all":
            c["src_vocab"] = c["tgt_vocab"]
        yield c, dict(packed=packed, prefix=PREFIXES[i % 3], once=tie != "none" and i % 4 > 1)


def from_torch(tools, folder):
    worst = {}
    for number, (c, form) in enumerate(variants()):
        torch.manual_seed(number)
        model = new_model(c, spread=c["d_model"] ** -0.5).eval()
        path, made = f"{folder}/state.safetensors", f"{folder}/model.weft"
        save_state(model, c, path, **form)
        convert(tools, *flags(c), path, "-o", made)
        pairs = pairs_for(c, 40, c["max_len"] - 1, torch.Generator().manual_seed(number))
        ours = weft_scores(tools, made, pairs)
        loaded = check_back(tools, model, c, made, folder)
        check_opens(model, c, made)
        theirs = scores(loaded.double().eval(), c, pairs)
        alone = [scores(loaded, c, [p])[0] for p in pairs[:5]]
        assert difference(alone, theirs[:5]) < 1e-9, "PyTorch's own figures depend on padding"
        d, f32 = difference(ours, theirs), difference(scores(model, c, pairs), theirs)
        final = ["without", "with"][c["encoder_norm"]] + " final norms"
        least = min(min(x) for x in theirs)
        for key in ("all", ["post-norm, ", "pre-norm, "][c["norm_first"]] + final, "tied: " + c["tie"],
                    "positions: " + c["positions"], "q, k, v: " + ("packed" if form["packed"] else "separate")):
            was = worst.get(key, (0, 0, 0, 0))
            worst[key] = (max(was[0], d), max(was[1], f32), min(was[2], least), was[3] + 1)
    print(f"{'largest differences of log p':32} variants  weft, f32 - PyTorch, f64  PyTorch, f32 - f64  least log p")
    for key, (d, f32, least, n) in sorted(worst.items()):
        print(f"{key:32} {n:8}  {d:24.2e}  {f32:18.2e}  {least:11.1f}")
    return worst["all"][0]


# ---- from weft --------------------------------------------------------------------------------------------------

TRAININGS = [[], ["--norm", "post", "--tie", "all", "--activation", "gelu"],
             ["--norm", "pre", "--tie", "decoder", "--positions", "learned", "--activation", "silu"]]


def config_of(path):
    metadata = safe_open(path, "pt").metadata()
    c = {k: metadata["weft.config." + k] for k in SMALL}
    value = lambda k, v: v.replace("-", "_") if k in NAMES else float(v) if k == "layer_norm_eps" else int(v)
    return {k: value(k, v) for k, v in c.items()}


def from_weft(tools, folder):
    worst = 0
    for number, more in enumerate(TRAININGS):
        path = f"{folder}/trained.safetensors"
        subprocess.run([f"{tools}/train", "--task", "copy", "--max-steps", "150", "--quiet", "-o", path, *more],
                       check=True, capture_output=True)
        c = config_of(path)
        back = f"{folder}/back.safetensors"
        convert(tools, "--to", "torch", path, "-o", back)
        model = Model(c)
        model.load_state_dict(load_file(back), strict=True)
        pairs = pairs_for(c, 40, 12, torch.Generator().manual_seed(number))
        worst = max(worst, difference(weft_scores(tools, path, pairs), scores(model.double().eval(), c, pairs)))
        os.remove(path)
    print(f"{'trained by weft':32} {len(TRAININGS):8}  {worst:24.2e}")
    return worst


# ---- what the tests compare with --------------------------------------------------------------------------------

def record(path):
    """Scores by the models that record_models.py wrote: case, source, target, log-probabilities."""
    with open(path, "w") as out:
        for name, changes in CASES.items():
            c = {**SMALL, **changes}
            model = Model(c)
            state = load_file(f"{os.path.dirname(path)}/model_{name}.safetensors")
            for key in [k for k in state if k.endswith("q_proj_weight")]:
                parts = [state.pop(key.replace("q_proj", x + "_proj")) for x in "qkv"]
                state[key.replace("q_proj", "in_proj")] = torch.cat(parts)
            table = next((state[k] for k in ("src_embedding.weight", "tgt_embedding.weight", "output.weight")
                          if k in state), None) if c["tie"] == "all" else None
            if table is not None:
                state.update({k: table for k in ("src_embedding.weight", "tgt_embedding.weight", "output.weight")})
            model.load_state_dict(state, strict=True)
            pairs = pairs_for(c, 6, c["max_len"] - 1, torch.Generator().manual_seed(1))
            for pair, log_probs in zip(pairs, scores(model.double().eval(), c, pairs)):
                out.write(f"{name}\t{line(pair)}\t{' '.join('%.9f' % x for x in log_probs)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="?", help="the folder of the programs")
    parser.add_argument("--record", metavar="FILE")
    o = parser.parse_args()
    torch.set_num_threads(1)
    if o.record:
        return record(o.record)
    if not o.tools:
        parser.error("say where the programs are, or --record FILE")
    torch.backends.mha.set_fastpath_enabled(False)  # which takes padding for a suffix, and knows no pad_id inside
    with tempfile.TemporaryDirectory() as folder:
        worst = max(from_torch(o.tools, folder), from_weft(o.tools, folder))
    print(f"largest difference {worst:.2e}, bound {BOUND:g}")
    sys.exit(worst > BOUND)


if __name__ == "__main__":
    main()
