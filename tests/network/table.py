#!/usr/bin/env python3
"""How fast several machines would train, beside one: a table, from dry runs of train with ranks that are not there.

    table.py [--build FOLDER] [--cores 8] [--speed-up 6.8] TRAIN.DE TRAIN.EN

A rank has a machine of so many cores, together so many times as fast as one core here: the speed-up is what you say. Bytes are
those of the dry run. Nothing of the exchange is hidden behind the backward pass here, and delays are left out.
"""
import argparse
import json
import subprocess

TOKENS, FEW = 4096, 256  # in a micro-batch; where only the bytes are of interest
MODELS = {"base": ["--preset", "base"], "large": ["--preset", "base", "--d-model", "1024", "--d-ff", "4096", "--heads", "16"]}
RANKS, RATES, WORTH = (2, 8, 32, 256), (1, 10, 100), 0.8


def dry_run(program, model, ranks, tokens):
    """Seconds that an update of a micro-batch for each rank computes, on one thread; bytes in the busier direction."""
    out = subprocess.run(program + model + ["--share-vocab", "--tie", "all", "--dry-run", "--json", "--accum", str(ranks),
                                            "--ranks", str(ranks), "--network", "100Gb,50us", "--max-tokens", str(tokens),
                                            "--threads", "1"], check=True, capture_output=True, text=True).stdout
    said = {e["event"]: e for e in map(json.loads, out.splitlines())}
    return said["network"]["seconds"] - said["network"]["exchanging"], max(said["ranks"]["sent"], said["ranks"]["received"])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--cores", type=int, default=8)
    p.add_argument("--speed-up", type=float, default=6.8)
    p.add_argument("source")
    p.add_argument("target")
    a = p.parse_args()
    program = [f"{a.build}/tools/train", "--train-src", a.source, "--train-tgt", a.target]
    print("| model | machines | MB each way |" + "".join(f" {r} Gbit/s | {100 * WORTH:.0f} % from, thousand |" for r in RATES))
    print("| --- " * (3 + 2 * len(RATES)) + "|")
    for name, model in MODELS.items():
        batch = dry_run(program, model, 2, TOKENS)[0] / a.speed_up
        for ranks in RANKS:
            sent = dry_run(program, model, ranks, FEW)[1]
            row = f"| {name} | {ranks} | {sent / 1e6:.0f} |"
            for rate in RATES:
                exchanging = 8e-9 * sent / rate
                least = WORTH / (1 - WORTH) * exchanging / batch * TOKENS
                row += f" {100 * batch / (batch + exchanging):.0f} % | {least / 1000:.1f} |"
            print(row, flush=True)
        print(f"{name}: {batch:.2f} s for {TOKENS} tokens on {a.cores} cores", flush=True)


if __name__ == "__main__":
    main()
