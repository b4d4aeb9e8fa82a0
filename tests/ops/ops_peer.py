#!/usr/bin/env python3
"""tests/ops/ops_peer.py - the rows of `bench ops` in PyTorch, in turns with it.

    tests/ops/ops_peer.py build/tools/bench [--threads 1] [--seconds 0.2] [--rounds 5]

Each round is the whole table by weft, then by PyTorch. Printed: the medians of both, and the
median over the rounds of weft's time by PyTorch's. Needs torch.
"""
import argparse
import json
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F


def conv(x, stride):
    w = torch.randn(x.shape[1], x.shape[1], 3, 3)
    return lambda: F.conv2d(x, w, stride=stride, padding=1)


def conv_gradient(x, stride, which):
    """By x alone, or by the weight alone."""
    w = torch.randn(x.shape[1], x.shape[1], 3, 3)
    dy = torch.randn_like(F.conv2d(x, w, stride=stride, padding=1))
    mask = [which == "dx", which == "dw", False]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, [stride] * 2, [1, 1], [1, 1], False, [0, 0], 1, mask
    )


def max_pool_gradient(x):
    x.requires_grad_()
    dy = torch.randn_like(F.max_pool2d(x, 2))
    return lambda: torch.autograd.grad(F.max_pool2d(x, 2), x, dy)


MAKERS = {
    "conv2d": conv,
    "conv2d dx": lambda x, stride: conv_gradient(x, stride, "dx"),
    "conv2d dw": lambda x, stride: conv_gradient(x, stride, "dw"),
    "max_pool2d": lambda x, size: lambda: F.max_pool2d(x, size),
    "max_pool2d dx": lambda x, size: max_pool_gradient(x),
    "avg_pool2d": lambda x, size: lambda: F.avg_pool2d(x, size),
    "cumsum": lambda x, axis: lambda: torch.cumsum(x, axis),
    "sort": lambda x, axis: lambda: torch.sort(x, axis),
    "topk": lambda x, k: lambda: torch.topk(x, k),
}


def timed(name, seconds):
    """The median time of a run: `name` is OP, what its number means, the number, [SHAPE]."""
    words, shape = name[:-1].split(" [")
    op, _, argument = words.rsplit(" ", 2)
    run = MAKERS[op](torch.randn([int(n) for n in shape.split(",")]), int(argument))
    run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def weft_rows(o):
    command = [o.bench, "ops", "--json", "--threads", str(o.threads), "--seconds", str(o.seconds)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    events = [json.loads(line) for line in out.splitlines()]
    return {e["name"]: e["median"] for e in events if e["event"] == "result"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    rounds = []
    for _ in range(o.rounds):
        ours = weft_rows(o)
        rounds.append({name: (ours[name], timed(name, o.seconds)) for name in ours})
    print(f"{'':38} {'weft ms':>9} {'torch ms':>9} {'ratio':>6}")
    for name in rounds[0]:
        ours, theirs = (statistics.median(r[name][i] for r in rounds) for i in (0, 1))
        ratio = statistics.median(r[name][0] / r[name][1] for r in rounds)
        print(f"{name:38} {ours * 1e3:9.3f} {theirs * 1e3:9.3f} {ratio:6.2f}")


if __name__ == "__main__":
    main()
