#!/usr/bin/env python3
"""tests/models/lora_peer.py - low-rank adapters, trained beside PEFT: the same losses.

    ninja -C build tests/lora_peer
    lora_peer.py build [--steps 50] [--only NAME]

Random models of LlamaForCausalLM, GPT2LMHeadModel and BartForConditionalGeneration are converted with `convert --from hf`,
and random adapters that PEFT has made with `convert --from hf --base`. Then, through libweft.so and the programs:

  losses    AdamW on the same batches, from the same adapters: the loss of each step, within 1e-4
  adapters  after the last step every number of A and B: told, with the largest difference
  frozen    no weight of the model has moved, and the optimizer holds moments of adapters alone
  out       `convert --to hf`, opened by PEFT without a warning, gives the logits of the trained adapters
  merged    `convert --adapter` gives the logits of PEFT's merge_and_unload
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import (BartConfig, BartForConditionalGeneration, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM)

BOUND, LOGITS = 1e-4, 2e-5
V, B, T, RATE, DECAY = 320, 4, 24, 2e-3, 0.01
IDS = dict(vocab_size=V, bos_token_id=0, eos_token_id=1)
LLAMA = LlamaConfig(**IDS, max_position_embeddings=64, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
                    num_attention_heads=4, num_key_value_heads=2)
GPT2 = GPT2Config(**IDS, n_positions=64, n_embd=64, n_layer=3, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
BART = BartConfig(vocab_size=V, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                  decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=64,
                  dropout=0, attention_dropout=0, activation_dropout=0, pad_token_id=1, bos_token_id=0, eos_token_id=2,
                  decoder_start_token_id=2, forced_eos_token_id=2)
# name: (class, configuration, options of LoraConfig)
CASES = {
    "llama": (LlamaForCausalLM, LLAMA, dict(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])),
    "llama-all": (LlamaForCausalLM, LLAMA, dict(r=4, lora_alpha=4, target_modules="all-linear")),
    "llama-rooted": (LlamaForCausalLM, LLAMA, dict(r=6, lora_alpha=5, use_rslora=True, target_modules=["o_proj", "k_proj"])),
    "gpt2": (GPT2LMHeadModel, GPT2, dict(r=8, lora_alpha=16, target_modules=["c_attn"], fan_in_fan_out=True)),
    "gpt2-all": (GPT2LMHeadModel, GPT2, dict(r=4, lora_alpha=8, target_modules="all-linear", fan_in_fan_out=True)),
    "bart": (BartForConditionalGeneration, BART, dict(r=4, lora_alpha=8, target_modules="all-linear")),
}



def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(str(c) for c in command)}: {done.stderr}")
    return done.stdout


def random_tensors(model, rng):
    """Weights that are not nearly zero, so that every layer has an effect."""
    for name, p in model.named_parameters():
        with torch.no_grad():
            if p.ndim == 2:
                p.copy_(torch.from_numpy(rng.normal(0, 0.15, p.shape).astype(np.float32)))


def made_batches(rng, model, steps):
    """(src or None, tgt, labels) of each step. In labels -1 does not count."""
    for _ in range(steps):
        ids = rng.integers(3, V, (B, T + 1)).astype(np.int32)
        if model.config.is_encoder_decoder:
            ids[:, 0] = 2
            yield rng.integers(3, V, (B, T)).astype(np.int32), ids[:, :-1], ids[:, 1:]
        else:
            yield None, ids[:, :-1], ids[:, 1:]


def loss_of(model, src, tgt, labels):
    tgt, labels = torch.from_numpy(tgt).long(), torch.from_numpy(np.array(labels)).long()
    logits = model(torch.from_numpy(src).long(), decoder_input_ids=tgt).logits if src is not None else model(tgt).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def train(model, batches):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=DECAY)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def logits_of(model, batch):
    src, tgt, _ = batch
    tgt = torch.from_numpy(np.array(tgt)).long()
    with torch.no_grad():
        return (model(torch.from_numpy(src).long(), decoder_input_ids=tgt) if src is not None else model(tgt)).logits


def opened(kind, base, folder):
    """PEFT's model of two folders; a warning fails, but not what it says of transformers itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FutureWarning)
        return PeftModel.from_pretrained(kind.from_pretrained(base), folder).eval()


def check(name, build, peer, folder, steps):
    kind, config, options = CASES[name]
    rng, tools = np.random.default_rng(7), build / "tools"
    torch.manual_seed(3)
    model = kind(config).eval()
    random_tensors(model, rng)
    model.save_pretrained(folder / "base")
    run(tools / "convert", "--from", "hf", folder / "base", "-o", folder / "base.weft")
    tuned = get_peft_model(model, LoraConfig(lora_dropout=0, bias="none", **options))
    tuned.eval()
    tuned.save_pretrained(folder / "first")
    run(tools / "convert", "--from", "hf", "--base", folder / "base.weft", folder / "first", "-o", folder / "first.weft")

    batches = list(made_batches(rng, model, steps))
    with open(folder / "batches", "wb") as f:
        for src, tgt, labels in batches:
            for part in (src, tgt, labels):
                f.write(b"" if part is None else np.ascontiguousarray(part).tobytes())
    expected = train(tuned, batches)
    sizes = [steps, B, T if batches[0][0] is not None else 0, T, RATE, DECAY]
    files = [folder / "base.weft", folder / "first.weft", folder / "batches", *sizes]
    *losses, told = run(peer, *files, 0, folder / "own.weft").splitlines()
    worst = max(abs(float(a) - b) for a, b in zip(losses, expected, strict=True))
    moved, others, *_ = map(int, told.split())

    run(tools / "convert", "--to", "hf", folder / "own.weft", "-o", folder / "own")
    own = opened(kind, folder / "base", folder / "own")
    theirs, ours = tuned.state_dict(), own.state_dict()
    apart = max((theirs[k] - ours[k]).abs().max().item() for k in theirs if "lora_" in k)
    run(tools / "convert", "--adapter", folder / "own.weft", folder / "base.weft", "-o", folder / "merged.weft")
    run(tools / "convert", "--to", "hf", folder / "merged.weft", "-o", folder / "merged")
    merged = kind.from_pretrained(folder / "merged").eval()
    together = (logits_of(merged, batches[0]) - logits_of(own.merge_and_unload(), batches[0])).abs().max().item()
    good = worst <= BOUND and not moved and not others and together <= LOGITS and losses[0] != losses[-1]
    print(f"{name:13} losses {expected[0]:.4f} .. {expected[-1]:.4f}, {worst:.1e} apart; adapters {apart:.1e} apart; "
          f"merged {together:.1e}; moved {moved}, other moments {others}{'' if good else ': FAILED'}")
    for layout, word in ((2, "bf16"), (3, "int8")):
        *rounded, _ = run(peer, *files, layout, folder / "rounded.weft").splitlines()
        print(f"{'':13} base in {word}: losses {float(rounded[0]):.4f} .. {float(rounded[-1]):.4f}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only")
    given = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    build, good = given.build.resolve(), True
    peer = build / "tests/lora_peer"
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            if given.only in (None, name):
                place = pathlib.Path(folder) / name
                place.mkdir()
                good &= check(name, build, peer, place, given.steps)
    sys.exit(not good)


if __name__ == "__main__":
    main()
