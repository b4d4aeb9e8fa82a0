#!/usr/bin/env python3
"""tests/models/hf_lm_peer.py - language models of transformers, imported: the same scores and the same continuations.

    hf_lm_peer.py build [--prompts 1000] [--only NAME]

Random models of GPT2LMHeadModel, GPTBigCode-, Llama-, Mistral-, Qwen2-, Qwen3-, Gemma- and
Starcoder2ForCausalLM are saved as transformers saves them,
and as older ones did, and converted with `convert --from hf`. Then, through libweft.so and the program generate:

  scores    log-probabilities of each token after a prompt and of the end, both sides in f64: within 2e-5
  greedy    generate() without sampling, both sides in f32: the same token ids for every prompt, or it is told;
            a tie is where transformers' own two best logits are less than 1e-5 apart
  text      `generate` with the folder's tokenizer.json: the same text as transformers, which decodes it
  back      `convert --to hf`, opened without a warning, gives the same logits; imported again, the same bytes
  trained   models of `train --task lm`, of both forms: `convert --to hf`, opened without a warning, gives the ids, the
            log-probabilities and the text that weft gives; imported and written again, the same folder
"""
import argparse
import ctypes
import json
import logging
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (AutoModelForCausalLM, AutoTokenizer, GemmaConfig, GemmaForCausalLM, GPT2Config, GPT2LMHeadModel, GPTBigCodeConfig,
                          GPTBigCodeForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM,
                          PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, Starcoder2Config,
                          Starcoder2ForCausalLM)

from hf_peer import Weft

BOUND, TIE, NEW = 2e-5, 1e-5, 20
CLASSES = {"gpt2": (GPT2Config, GPT2LMHeadModel), "llama": (LlamaConfig, LlamaForCausalLM),
           "mistral": (MistralConfig, MistralForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM),
           "qwen3": (Qwen3Config, Qwen3ForCausalLM), "bigcode": (GPTBigCodeConfig, GPTBigCodeForCausalLM),
           "gemma": (GemmaConfig, GemmaForCausalLM), "starcoder2": (Starcoder2Config, Starcoder2ForCausalLM)}
V = 320
IDS = dict(vocab_size=V, bos_token_id=0, eos_token_id=1)
GPT2 = dict(IDS, n_positions=48, n_embd=32, n_layer=2, n_head=4)
LLAMA = dict(IDS, max_position_embeddings=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)

# name: (family, configuration, how it is saved)
CASES = {
    "gpt2": ("gpt2", GPT2, ""),
    "gpt2-hub": ("gpt2", dict(GPT2, n_inner=40, activation_function="relu"), "bare"),
    "gpt2-untied": ("gpt2", dict(GPT2, tie_word_embeddings=False, n_layer=3), ""),
    "gpt2-bin": ("gpt2", dict(GPT2, layer_norm_epsilon=1e-3, activation_function="gelu"), "bin"),
    "gpt2-half": ("gpt2", GPT2, "half"),
    "gpt2-shards": ("gpt2", GPT2, "shards"),
    "llama": ("llama", LLAMA, ""),
    "llama-old": ("llama", LLAMA, "old"),
    "llama-tied": ("llama", dict(LLAMA, tie_word_embeddings=True, num_key_value_heads=1), ""),
    "llama-wide": ("llama", dict(LLAMA, head_dim=12, rms_norm_eps=1e-3), ""),
    "llama-bias": ("llama", dict(LLAMA, attention_bias=True, num_key_value_heads=4), ""),
    "llama-biases": ("llama", dict(LLAMA, attention_bias=True, mlp_bias=True), "bin"),
    "llama-linear": ("llama", dict(LLAMA, rope_parameters=dict(rope_type="linear", rope_theta=1000.0, factor=4.0)), ""),
    "llama-3": ("llama", dict(LLAMA, rope_parameters=LLAMA3), ""),
    "llama-3-old": ("llama", dict(LLAMA, rope_parameters=LLAMA3), "old"),
    "llama-bf16": ("llama", LLAMA, "bfloat"),
    "llama-shards": ("llama", dict(LLAMA, num_hidden_layers=3), "shards"),
    "smollm": ("llama", dict(LLAMA, hidden_size=36, num_attention_heads=9, num_key_value_heads=3, tie_word_embeddings=True,
                             rope_parameters=dict(rope_type="default", rope_theta=100000.0)), ""),
    "mistral": ("mistral", dict(LLAMA, sliding_window=None), ""),
    "mistral-window": ("mistral", dict(LLAMA, sliding_window=7), ""),
    "qwen2": ("qwen2", LLAMA, ""),
    "qwen2-tied": ("qwen2", dict(LLAMA, tie_word_embeddings=True, use_sliding_window=True, sliding_window=5,
                                 max_window_layers=0), ""),
    "qwen3": ("qwen3", dict(LLAMA, head_dim=16), ""),
    "qwen3-tied": ("qwen3", dict(LLAMA, head_dim=8, tie_word_embeddings=True, attention_bias=True), "bin"),
    "bigcode": ("bigcode", GPT2, ""),
    "bigcode-untied": ("bigcode", dict(GPT2, tie_word_embeddings=False, activation_function="relu", n_inner=40), "bin"),
    "gemma": ("gemma", dict(LLAMA, head_dim=16), ""),
    "gemma-bias": ("gemma", dict(LLAMA, head_dim=8, attention_bias=True, num_key_value_heads=1), "bin"),
    "gemma-old": ("gemma", dict(LLAMA, head_dim=8, num_key_value_heads=4), "old"),
    "starcoder2": ("starcoder2", LLAMA, ""),
    "starcoder2-window": ("starcoder2", dict(LLAMA, sliding_window=6, tie_word_embeddings=False, num_key_value_heads=4), "shards"),
}


# ---- transformers ------------------------------------------------------------------------------------------------------

def make(name):
    family, config, _ = CASES[name]
    torch.manual_seed(sum(map(ord, name)))
    model = CLASSES[family][1](CLASSES[family][0](**config)).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if key.endswith("bias") or "norm" in key or ".ln_" in key:
                p.add_(0.1 * torch.randn_like(p))
            elif "wpe" not in key:
                p.copy_(torch.randn_like(p) * (0.3 if "embed" in key or "wte" in key or "lm_head" in key else 0.25))
    model.generation_config.pad_token_id = None
    return model


def make_old(folder):
    """As transformers 4 wrote it: rope_theta and rope_scaling, and frequencies among the weights."""
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    if config["model_type"] == "gemma":
        config["hidden_act"] = "gelu"
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = dict(rope) if rope["rope_type"] != "default" else None
    (folder / "config.json").write_text(json.dumps(config))
    state = load_file(folder / "model.safetensors")
    width = config["hidden_size"] // config["num_attention_heads"]
    state["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(width // 2)
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def save(model, folder, how):
    model.to(dict(half=torch.float16, bfloat=torch.bfloat16).get(how, torch.float32))
    model.save_pretrained(folder, max_shard_size="20KB" if how == "shards" else "50GB")
    file = folder / "model.safetensors"
    if how == "shards" and len(list(folder.glob("model-*.safetensors"))) < 3:
        sys.exit("not in several files")
    if how == "old":
        make_old(folder)
    if how == "bare":
        state = {k.removeprefix("transformer."): v for k, v in load_file(file).items()}
        state["h.0.attn.bias"] = torch.ones(1, 1, 4, 4)
        save_file(state, file, {"format": "pt"})
    if how == "bin":
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        file.unlink()
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def add_tokenizer(folder, bos):
    words = "the a house tree dog runs it's we'll 1999 ½ ... Haus läuft grün ß é 日本".split()
    rng = np.random.default_rng(5)
    lines = [" ".join(rng.choice(words, 8)) for _ in range(400)]
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=V - 6, special_tokens=["<s>", "</s>"],
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    if bos:
        t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    t.save(str(folder / "tokenizer.json"))
    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token="</s>", bos_token="<s>")


def torch_scores(model, prompts, targets):
    out = []
    for p, t in zip(prompts, targets):
        ids = torch.tensor([list(p) + list(t)])
        with torch.no_grad():
            logs = torch.log_softmax(model(ids).logits.double(), -1)[0, len(p) - 1:]
        out.append([logs[i, k].item() for i, k in enumerate(list(t) + [1])])
    return out


def torch_greedy(model, prompts, new=NEW):
    ids = torch.tensor(prompts)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        found = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, num_beams=1)
    rows = [[int(x) for x in row[ids.shape[1]:]] for row in found]
    return [row[:row.index(1)] if 1 in row else row for row in rows]


def is_tie(model, prompt, ours, theirs):
    k = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    with torch.no_grad():
        best = model(torch.tensor([list(prompt) + theirs[:k]])).logits[0, -1].topk(2).values
    return (best[0] - best[1]).item() < TIE


# ---- the comparison ----------------------------------------------------------------------------------------------------

def compare_scores(weft, path, model, rng):
    prompts = [list(rng.integers(2, V, n)) for n in range(1, 25)]
    targets = [list(rng.integers(2, V, 1 + i % 12)) for i in range(24)]
    src, tgt = np.zeros((24, 24), np.int32), np.zeros((24, 12), np.int32)
    for i in range(24):
        src[i, :len(prompts[i])], tgt[i, :len(targets[i])] = prompts[i], targets[i]
    lengths = [np.array([len(row) for row in rows], np.int32) for rows in (prompts, targets)]
    ours = weft.score(weft.open(path, 1), src, lengths[0], tgt, lengths[1])
    theirs = torch_scores(model.double(), prompts, targets)
    model.float()
    return max(abs(ours[i, k] - x) for i in range(24) for k, x in enumerate(theirs[i]))


def weft_ids(build, path, prompts):
    text = "".join(" ".join(map(str, p)) + "\n" for p in prompts)
    run = subprocess.run([build / "tools" / "generate", "-m", path, "--beam", "1", "--max-new-tokens", str(NEW), "--quiet"],
                         input=text, capture_output=True, text=True, check=True)
    return [[int(x) for x in line.split()] for line in run.stdout.splitlines()]


def compare_greedy(build, path, model, rng, n):
    lengths = rng.integers(1, 25, n)
    prompts = [[int(x) for x in rng.integers(2, V, k)] for k in lengths]
    ours, same, ties = weft_ids(build, path, prompts), 0, 0
    for k in sorted(set(lengths)):
        rows = [i for i in range(n) if lengths[i] == k]
        for i, theirs in zip(rows, torch_greedy(model, [prompts[i] for i in rows])):
            same += ours[i] == theirs
            ties += ours[i] != theirs and is_tie(model, prompts[i], ours[i], theirs)
    return same, ties


def compare_text(build, path, model, tokenizer, n):
    rng = np.random.default_rng(9)
    words = "the house läuft grün it's we'll 1999 </s> <s> 日本 ½ xyz".split()
    lines = [" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(n)]
    run = subprocess.run([build / "tools" / "generate", "-m", path, "--beam", "1", "--max-new-tokens", "8", "--quiet", "--json"],
                         input="".join(line + "\n" for line in lines), capture_output=True, text=True, check=True)
    ours = [json.loads(line)["outputs"][0]["text"] for line in run.stdout.splitlines()]
    rows = [torch_greedy(model, [tokenizer(line).input_ids], 8)[0] for line in lines]
    theirs = [tokenizer.decode(row, skip_special_tokens=True) for row in rows]
    return sum(a == b for a, b in zip(ours, theirs))


class Warnings(logging.Handler):
    """What is said while a folder is opened."""
    def __enter__(self):
        self.said, self.caught = [], warnings.catch_warnings(record=True)
        self.list = self.caught.__enter__()
        warnings.simplefilter("always")
        transformers.logging.set_verbosity_warning()
        self.logger = logging.getLogger("transformers")
        self.logger.addHandler(self)
        return self

    def emit(self, record):
        self.said.append(record.getMessage())

    def __exit__(self, *_):
        self.logger.removeHandler(self)
        transformers.logging.set_verbosity_error()
        self.said += [str(w.message) for w in self.list]
        self.caught.__exit__(None, None, None)


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def compare_back(build, path, model):
    """What differs in the folder that is written, or ''."""
    folder, again = path.with_name("back"), path.with_name("again.safetensors")
    run(build / "tools" / "convert", "--to", "hf", path, "-o", folder)
    with Warnings() as w:
        written = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.arange(2, 40)[None] % V
    with torch.no_grad():
        same = torch.equal(model(ids).logits, written(ids).logits)
    run(build / "tools" / "convert", "--from", "hf", folder, "-o", again)
    bytes_same = path.read_bytes() == again.read_bytes()
    return " ".join(w.said + ["other logits"] * (not same) + ["other bytes"] * (not bytes_same))


# ---- trained by weft ---------------------------------------------------------------------------------------------------

def weft_encode(weft, path, lines):
    lib, message = weft.lib, ctypes.create_string_buffer(256)
    lib.wf_tokenizer_from_meta.restype, lib.wf_tokenizer_encode.restype = ctypes.c_void_p, ctypes.c_int64
    t = ctypes.c_void_p(lib.wf_tokenizer_from_meta(ctypes.c_void_p(lib.wf_file_open(str(path).encode())), b"tokenizer", message))
    if not t:
        sys.exit(message.value.decode())
    out, ids = [], (ctypes.c_int32 * 4096)()
    for line in lines:
        text = line.encode()
        n = lib.wf_tokenizer_encode(t, text, ctypes.c_size_t(len(text)), ids, ctypes.c_int64(4096), message)
        out.append(list(ids[:n]))
    return out


def hostile_lines(text, n):
    rng, lines = np.random.default_rng(4), [line for line in text.splitlines() if line]
    letters = [*" \t\n\r\v\f  aZ09.,'-_()<>½éßя日本\u00a0\u3000\u200b\U0001F600\0\x7f", "  ", " \n", "\n "]
    mixed = ["".join(rng.choice(letters, rng.integers(1, 40))) for _ in range(n)]
    return mixed + [str(rng.choice(lines)) for _ in range(n)]


def run_trained(build, form, tokens, text, prompts):
    lines = hostile_lines(text.read_text(), prompts // 2)
    with tempfile.TemporaryDirectory() as work:
        path, folder = pathlib.Path(work) / "model", pathlib.Path(work) / "folder"
        run(build / "tools" / "train", "--task", "lm", "--text", text, "--tokenizer", tokens, *form.split(), "--d-model", 48,
            "--heads", 4, "--layers", 2, "--d-ff", 96, "--max-len", 96, "--max-steps", 400, "--threads", 1, "--quiet", "-o", path)
        run(build / "tools" / "convert", "--to", "hf", path, "-o", folder)
        with Warnings() as w:
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
            tokenizer = AutoTokenizer.from_pretrained(folder)
        theirs = [tokenizer(line).input_ids for line in lines]
        ours = weft_encode(Weft(build), path, lines)
        ids = sum([tokenizer.bos_token_id, *a] == b for a, b in zip(ours, theirs))
        # weft scores the whole row as a target without a prompt: it puts the start token before
        # the row
        weft, error = Weft(build), 0.0
        decoder = weft.open(path, 1)
        model.double()
        for row in ours[:40]:
            row = np.array([row[:90]], np.int32)
            got = weft.score(decoder, np.zeros((1, 0), np.int32), np.zeros(1, np.int32), row, np.array([row.shape[1]], np.int32))
            with torch.no_grad():
                logs = torch.log_softmax(model(torch.tensor([[tokenizer.bos_token_id, *row[0]]])).logits, -1)[0]
            error = max([error, *(abs(logs[i, k].item() - got[0, i]) for i, k in enumerate(row[0]))])
        model.float()
        asked = [line for line in text.read_text().splitlines() if line.strip()][:40]
        answers = run(build / "tools" / "generate", "-m", path, "--beam", 1, "--max-new-tokens", 12, "--quiet", "--json",
                      input="".join(line[:40] + "\n" for line in asked))
        same = 0
        for line, answer in zip(asked, answers.splitlines()):
            row = torch.tensor([tokenizer(line[:40]).input_ids])
            with torch.no_grad():
                found = model.generate(row, attention_mask=torch.ones_like(row), max_new_tokens=12, do_sample=False,
                                       pad_token_id=tokenizer.eos_token_id)[0, row.shape[1]:]
            same += tokenizer.decode(found, skip_special_tokens=True) == json.loads(answer)["outputs"][0]["text"]
        run(build / "tools" / "convert", "--from", "hf", folder, "-o", path.with_name("back"))
        run(build / "tools" / "convert", "--to", "hf", path.with_name("back"), "-o", path.with_name("folder2"))
        back = all((folder / f.name).read_bytes() == f.read_bytes() for f in path.with_name("folder2").iterdir())
    ok = not w.said and ids == len(lines) and error <= BOUND and same == len(asked) and back
    print(f"trained {form} {tokens}: {type(model).__name__}, ids of {ids} of {len(lines)} lines, scores {error:.1e}, "
          f"text {same} of {len(asked)}, {'same folder' if back else 'another folder'} {' '.join(w.said)}   "
          f"{'ok' if ok else 'DIFFERS'}", flush=True)
    return ok


def run_case(build, name, prompts):
    family, _, how = CASES[name]
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as work:
        folder, path = pathlib.Path(work) / "folder", pathlib.Path(work) / "model.safetensors"
        model = save(make(name), folder, how)
        run = subprocess.run([build / "tools" / "convert", "--from", "hf", folder, "-o", path], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{name}: {run.stderr}")
        error = compare_scores(Weft(build), path, model, rng)
        same, ties = compare_greedy(build, path, model, rng, prompts)
        tokenizer = add_tokenizer(folder, family not in ("gpt2", "bigcode"))
        back = compare_back(build, path, model)
        with_text = path.with_name("text.safetensors")
        subprocess.run([build / "tools" / "convert", "--from", "hf", folder, "-o", with_text], check=True, capture_output=True)
        lines = max(prompts // 20, 1)
        texts = compare_text(build, with_text, model, tokenizer, lines)
    ok = error <= BOUND and same + ties == prompts and texts >= lines - ties and not back
    print(f"{name:16} scores {error:.1e}   greedy {same} of {prompts}, ties {ties}   text {texts} of {lines}   "
          f"back {back or 'same'}   {'ok' if ok else 'DIFFERS'}", flush=True)
    return ok


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
    a.add_argument("--prompts", type=int, default=1000)
    a.add_argument("--only", action="append")
    a.add_argument("--trained", action="store_true", help="only the models that weft trains")
    a = a.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    same = [run_case(a.build, name, a.prompts) for name in a.only or ([] if a.trained else CASES)]
    text = pathlib.Path(__file__).resolve().parents[2] / "models" / "README.md"
    forms = ("--form gpt", "--form gpt --positions sinusoidal", "--form llama", "--form llama --tie none --kv-heads 2",
             "--form llama --activation gelu-tanh", "--form gpt --positions rotary", "--form gpt --kv-heads 1")
    for form in [] if a.only else forms:
        same += [run_trained(a.build, form, tokens, text, a.prompts) for tokens in ("byte-bpe", "byte")]
    if not all(same):
        sys.exit("not all are the same")


if __name__ == "__main__":
    main()
