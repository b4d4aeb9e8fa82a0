#!/usr/bin/env python3
"""tests/ops/ops_peer.py - the rows of `bench ops` in PyTorch, in turns with it.

    tests/ops/ops_peer.py build/tests/bench [--threads 1] [--seconds 0.2] [--rounds 5]
                          [--only PREFIX] [--least] [--slowest]

Each round is the table by weft, then by PyTorch; --only: the rows whose names begin with this.
Printed: the medians of both, and the median over the rounds of weft's time by PyTorch's. With
--least these are the fastest single runs of all rounds, which other programs disturb least.
--slowest: the largest ratios first. Rows of bench_ops.inc are the ops of ops.h: a function without
a row is named, unless NOT_TIMED has it.
Needs torch.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
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


# ---- every op: the rows of tests/bench/bench_ops.inc, by name --------------------------------

SOURCE = pathlib.Path(__file__).resolve().parents[2]

NOT_TIMED = {
    "zeros ones constant": "full",
    "arange is_training position_ids count_of size_of":
        "a few numbers for the engine",
    "matrix reshape_like squeeze unsqueeze flatten detach cache split chunk": "views",
    "segment_softmax linear_scan sinusoid rotary rotary_table rotate attention_weights":
        "not in PyTorch",
    "bitwise_right_shift_logical": "not in PyTorch",
    "dropout": "the identity outside training; bench step has it",
    "assign accumulate sgd_step adam_step rmsprop_step lion_step check_finite": "bench step has it",
    "conv2d conv_transpose2d conv_transpose1d fold": "rows of bench_ops.c, and their gradients",
    "max_pool2d avg_pool2d cross_entropy_over": "rows of bench_ops.c; cross_entropy",
    "min_rows argmin": "max_rows",
    "stft log_mel_spectrogram": "power_spectrum",
    "mel_filters": "a constant",
}


def one_of(names):
    return {name for group in names for name in group.split()}


def missing_rows():
    """Functions of ops.h that return tensors and that no row calls."""
    paths = [path for path in sorted((SOURCE / "ops").glob("*.h")) if path.name != "custom.h"]
    header = "".join(path.read_text() for path in paths)
    rows = (SOURCE / "tests/bench/bench_ops.inc").read_text()
    called = set(re.findall(r"wf_(\w+)\(", rows))
    tensors = r"WF_API (?:wf_tensor \*|wf_sorted |wf_\w+_result )wf_(\w+)\("
    return sorted(set(re.findall(tensors, header)) - called - one_of(NOT_TIMED))


def operands():
    shape, n = (64, 32, 16, 16), 64 * 32 * 16 * 16
    o = argparse.Namespace()
    o.x, o.y, o.u = torch.randn(shape), torch.randn(shape), torch.rand(shape) * 1.98 - 0.99
    o.p, o.m = torch.randn(shape).abs(), torch.randn(shape) > 0
    o.v, o.w, o.t = torch.randn(16), torch.randn(32, 1, 1), torch.randn(4096, 256)
    o.a, o.b = torch.randn(256, 256), torch.randn(256, 256)
    o.k, o.l = torch.randn(8, 8, 128, 64), torch.randn(8, 8, 128, 64)
    o.t3, o.c3 = torch.randn(16, 64, 512), torch.randn(64, 64, 3)
    o.ids = (torch.arange(n) * 7 % 16).view(shape)
    o.i32 = o.ids.int()
    o.rows = torch.arange(4096) * 7 % 256
    o.labels = o.rows
    return o


CHANNELS = (0, 2, 3)
ROWS = {
    "fill": lambda o: torch.full_like(o.x, 2),
    "full": lambda o: torch.full(o.x.shape, 2.0),
    "rand": lambda o: torch.rand_like(o.x),
    "randn": lambda o: torch.randn_like(o.x),
    "bernoulli": lambda o: torch.bernoulli(o.u.square()),
    "categorical": lambda o: torch.distributions.Categorical(logits=o.t).sample(),
    "add_channel": lambda o: o.x + o.w,
    "mul_row": lambda o: o.x * o.v,
    "pow": lambda o: torch.pow(o.p, o.y),
    "pow_scalar": lambda o: torch.pow(o.p, 2.5),
    "xlogy": lambda o: torch.xlogy(o.x, o.p),
    "floor_divide": lambda o: torch.div(o.x, o.y, rounding_mode="floor"),
    "clamp_tensors": lambda o: torch.clamp(o.x, o.u, o.p),
    "lerp": lambda o: torch.lerp(o.x, o.y, o.u),
    "equal": lambda o: torch.eq(o.x, o.y),
    "not_equal": lambda o: torch.ne(o.x, o.y),
    "logical_and": lambda o: torch.logical_and(o.x, o.m),
    "logical_or": lambda o: torch.logical_or(o.x, o.m),
    "logical_xor": lambda o: torch.logical_xor(o.x, o.m),
    "acosh": lambda o: torch.acosh(o.p + 1),
    "log_sigmoid": lambda o: F.logsigmoid(o.x),
    "leaky_relu": lambda o: F.leaky_relu(o.x, 0.01),
    "gelu_tanh": lambda o: F.gelu(o.x, approximate="tanh"),
    "affine": lambda o: o.x * 2 + 1,
    "scale": lambda o: o.x * 2,
    "clamp": lambda o: torch.clamp(o.x, -1, 1),
    "where": lambda o: torch.where(o.m, o.x, o.y),
    "masked_fill": lambda o: o.x.masked_fill(o.m, 0),
    "sum_channels": lambda o: o.x.sum(CHANNELS),
    "sum_0_2": lambda o: o.x.sum((0, 2)),
    "sum_1_3": lambda o: o.x.sum((1, 3)),
    "sum_0": lambda o: o.x.sum(0),
    "sum_1": lambda o: o.x.sum(1),
    "sum_rows": lambda o: o.x.sum(3),
    "sum_all": lambda o: o.x.sum(),
    "sum_to": lambda o: o.x.sum_to_size(32, 1, 1),
    "mean_channels": lambda o: o.x.mean(CHANNELS),
    "mean_image": lambda o: o.x.mean((2, 3)),
    "max_channels": lambda o: o.x.amax(CHANNELS),
    "max_0_2": lambda o: o.x.amax((0, 2)),
    "max_1": lambda o: o.x.amax(1),
    "max_rows": lambda o: o.x.amax(3),
    "min_channels": lambda o: o.x.amin(CHANNELS),
    "min_rows": lambda o: o.x.amin(3),
    "prod_rows": lambda o: o.x.prod(3),
    "var_channels": lambda o: o.x.var(CHANNELS),
    "var_rows": lambda o: o.x.var(3),
    "std_rows": lambda o: o.x.std(3),
    "vector_norm_rows": lambda o: torch.linalg.vector_norm(o.x, dim=3),
    "vector_norm_channels": lambda o: torch.linalg.vector_norm(o.x, dim=CHANNELS),
    "norm_1_rows": lambda o: torch.linalg.vector_norm(o.x, 1, dim=3),
    "logsumexp_1": lambda o: o.x.logsumexp(1),
    "logsumexp_rows": lambda o: o.x.logsumexp(3),
    "any_rows": lambda o: o.x.any(3),
    "all_rows": lambda o: o.x.all(3),
    "square_sum": lambda o: o.x.square().sum(),
    "argmax_1": lambda o: o.x.argmax(1),
    "argmax_rows": lambda o: o.x.argmax(3),
    "argmin_rows": lambda o: o.x.argmin(3),
    "cumsum_rows": lambda o: o.x.cumsum(3),
    "cumsum_1": lambda o: o.x.cumsum(1),
    "cumprod_rows": lambda o: o.x.cumprod(3),
    "sort_rows": lambda o: o.x.sort(dim=3, stable=True),
    "sort_256": lambda o: o.t.sort(dim=1, stable=True),
    "argsort_256": lambda o: o.t.argsort(dim=1, stable=True),
    "topk_rows": lambda o: o.x.topk(4, 3),
    "topk_256": lambda o: o.t.topk(8, 1),
    "matmul": lambda o: o.a @ o.b,
    "matmul_batch": lambda o: o.k @ o.l.transpose(-1, -2),
    "gemm": lambda o: torch.addmm(o.b, o.a.T, o.b),
    "einsum_sums": lambda o: torch.einsum("bchw,bdhw->bcd", o.x, o.y),
    "outer": lambda o: o.t[:, :, None] * o.v,
    "vecdot": lambda o: torch.linalg.vecdot(o.x, o.y),
    "permute": lambda o: (o.x.permute(0, 2, 3, 1) * 1.5).contiguous(),
    "transpose_last": lambda o: (o.x.transpose(2, 3) * 1.5).contiguous(),
    "reshape_permuted": lambda o: o.x.transpose(1, 2).reshape(-1),
    "slice": lambda o: o.x[..., 2:12] * 1.5,
    "slice_step": lambda o: o.x[..., ::2] * 1.5,
    "flip_rows": lambda o: o.x.flip(3) * 1.5,
    "flip_1": lambda o: o.x.flip(1) * 1.5,
    "diagonal": lambda o: o.x.diagonal() * 1.5,
    "expand": lambda o: (o.w.expand(64, 32, 16, 16) * 1.5).contiguous(),
    "broadcast_to": lambda o: (o.v.expand_as(o.x) * 1.5).contiguous(),
    "pad_rows": lambda o: F.pad(o.x, (1, 1)),
    "pad_2": lambda o: F.pad(o.x, (0, 0, 1, 1)),
    "concat_1": lambda o: torch.cat([o.x, o.y], 1),
    "concat_rows": lambda o: torch.cat([o.x, o.y], 3),
    "stack": lambda o: torch.stack([o.x, o.y], -1),
    "tile": lambda o: o.x.tile(1, 2, 1, 1),
    "tile_rows": lambda o: o.x.tile(1, 1, 1, 2),
    "repeat_interleave": lambda o: o.x.repeat_interleave(2, 3),
    "roll_2": lambda o: o.x.roll(3, 2),
    "roll_rows": lambda o: o.x.roll(3, 3),
    "cast_to_ids": lambda o: o.x.int(),
    "cast_to_real": lambda o: o.i32.float(),
    "embedding": lambda o: F.embedding(o.rows, o.t),
    "gather_rows": lambda o: o.x.gather(3, o.ids),
    "gather_1": lambda o: o.x.gather(1, o.ids),
    "scatter_add_rows": lambda o: o.x.scatter_add(3, o.ids, o.y),
    "index_select_1": lambda o: o.x.index_select(1, torch.arange(32)),
    "index_select_rows": lambda o: o.x.index_select(3, torch.arange(16)),
    "index_add_1": lambda o: o.x.index_add(1, torch.arange(32), o.y),
    "index_copy_1": lambda o: o.x.index_copy(1, torch.arange(32), o.y),
    "scatter_rows": lambda o: o.x.scatter(3, o.ids, o.y),
    "scatter_max_rows": lambda o: o.x.scatter_reduce(3, o.ids, o.y, "amax"),
    "scatter_min_rows": lambda o: o.x.scatter_reduce(3, o.ids, o.y, "amin"),
    "scatter_mul_rows": lambda o: o.x.scatter_reduce(3, o.ids, o.y, "prod"),
    "resize_rows": lambda o: F.interpolate(o.x, (16, 32), mode="bilinear"),
    "interpolate": lambda o: F.interpolate(o.x, (32, 32), mode="bilinear"),
    "pad_reflect_rows": lambda o: F.pad(o.x, (1, 1, 0, 0), mode="reflect"),
    "power_spectrum": lambda o: torch.stft(
        o.t3.view(1024, 512), 128, window=torch.hann_window(128), return_complex=True
    ).abs().square(),
    "one_hot": lambda o: F.one_hot(o.ids, 16).float(),
    "bitwise_and": lambda o: torch.bitwise_and(o.i32, o.i32),
    "bitwise_or": lambda o: torch.bitwise_or(o.i32, o.i32),
    "bitwise_xor": lambda o: torch.bitwise_xor(o.i32, o.i32),
    "bitwise_not": lambda o: torch.bitwise_not(o.i32),
    "bitwise_left_shift": lambda o: torch.bitwise_left_shift(o.i32, o.i32),
    "bitwise_right_shift": lambda o: torch.bitwise_right_shift(o.i32, o.i32),
    "group_norm": lambda o: F.group_norm(o.x, 8),
    "batch_norm": lambda o: F.batch_norm(o.x, None, None, training=True),
    "unfold_rows": lambda o: o.x.unfold(3, 3, 1) * 1.5,
    "unfold_2": lambda o: (o.x.unfold(2, 3, 1) * 1.5).contiguous(),
    "conv1d": lambda o: F.conv1d(o.t3, o.c3, padding=1),
    "max_pool1d": lambda o: F.max_pool1d(o.t3, 2),
    "avg_pool1d": lambda o: F.avg_pool1d(o.t3, 2),
    "softmax_rows": lambda o: o.x.softmax(3),
    "softmax_1": lambda o: o.x.softmax(1),
    "softmax_256": lambda o: o.t.softmax(1),
    "masked_softmax": lambda o: o.x.masked_fill(CAUSAL, -torch.inf).softmax(3),
    "log_softmax_rows": lambda o: o.x.log_softmax(3),
    "log_softmax_1": lambda o: o.x.log_softmax(1),
    "log_softmax_256": lambda o: o.t.log_softmax(1),
    "layer_norm_rows": lambda o: F.layer_norm(o.x, (16,), o.v, o.v),
    "layer_norm_256": lambda o: F.layer_norm(o.t, (256,)),
    "layer_norm_over": lambda o: F.layer_norm(o.x, o.x.shape[1:]),
    "rms_norm_256": lambda o: F.rms_norm(o.t, (256,), eps=1e-5),
    "attention": lambda o: F.scaled_dot_product_attention(o.k, o.l, o.k),
    "cross_entropy": lambda o: F.cross_entropy(o.t, o.labels, reduction="sum"),
}
CAUSAL = torch.ones(16, 16).triu(1).bool()
for plain in """add sub mul div maximum minimum atan2 logaddexp fmod remainder less less_equal greater
greater_equal""".split():
    ROWS[plain] = lambda o, f=getattr(torch, plain): f(o.x, o.y)
for plain in """logical_not isnan isinf isfinite neg abs square exp exp2 expm1 sin cos tan atan sinh cosh
tanh asinh erf erfc floor ceil round trunc sign sigmoid tril triu""".split():
    ROWS[plain] = lambda o, f=getattr(torch, plain): f(o.x)
for plain in "sqrt rsqrt reciprocal log log2 log10 log1p".split():
    ROWS[plain] = lambda o, f=getattr(torch, plain): f(o.p)
for plain in "asin acos atanh".split():
    ROWS[plain] = lambda o, f=getattr(torch, plain): f(o.u)
for plain in "softplus softsign relu relu6 elu selu gelu silu mish hardsigmoid".split():
    ROWS[plain] = lambda o, f=getattr(F, plain): f(o.x)

# by which operand, the op
GRADIENTS = {
    "add_channel": ("w", lambda o: o.x + o.w),
    "gather_rows": ("x", lambda o: o.x.gather(3, o.ids)),
    "sort_rows": ("x", lambda o: o.x.sort(dim=3, stable=True)[0]),
    "cumprod_rows": ("x", lambda o: o.x.cumprod(3)),
    "softmax_rows": ("x", lambda o: o.x.softmax(3)),
    "softmax_1": ("x", lambda o: o.x.softmax(1)),
    "log_softmax_256": ("t", lambda o: o.t.log_softmax(1)),
    "var_channels": ("x", lambda o: o.x.var(CHANNELS)),
    "max_rows": ("x", lambda o: o.x.amax(3)),
    "slice_step": ("x", lambda o: o.x[..., ::2]),
    "pad_rows": ("x", lambda o: F.pad(o.x, (1, 1))),
    "unfold_rows": ("x", lambda o: o.x.unfold(3, 3, 1)),
    "embedding": ("t", lambda o: F.embedding(o.rows, o.t)),
    "layer_norm_256": ("t", lambda o: F.layer_norm(o.t, (256,))),
    "gelu": ("x", lambda o: F.gelu(o.x)),
    "silu": ("x", lambda o: F.silu(o.x)),
    "tanh": ("x", lambda o: o.x.tanh()),
    "cross_entropy": ("t", lambda o: F.cross_entropy(o.t, o.labels, reduction="sum")),
}


def gradient_of(name):
    which, op = GRADIENTS[name]
    o = operands()
    of = getattr(o, which).requires_grad_()
    dy = torch.randn_like(op(o))
    return lambda: torch.autograd.grad(op(o), of, dy)


def every_op(name):
    if name.startswith("grad_"):
        return gradient_of(name.removeprefix("grad_"))
    o = operands()
    return lambda: ROWS[name](o)


# ---- times -------------------------------------------------------------------------------------


def maker(name):
    """What runs a row: an op by name alone, or OP, what its number means, the number, [SHAPE]."""
    if "[" not in name:
        return every_op(name)
    words, shape = name[:-1].split(" [")
    op, _, argument = words.rsplit(" ", 2)
    return MAKERS[op](torch.randn([int(n) for n in shape.split(",")]), int(argument))


def timed(name, seconds):
    """The median and the least time of a run."""
    run = maker(name)
    run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times)


def weft_rows(o):
    command = [o.bench, "ops", "--json", "--threads", str(o.threads), "--seconds", str(o.seconds)]
    command += ["--only", o.only] if o.only else []
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr.strip().rpartition("\n")[2])
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return {e["name"]: (e["median"], e["min"]) for e in events if e["event"] == "result"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="PREFIX")
    parser.add_argument("--least", action="store_true", help="the fastest single runs")
    parser.add_argument("--slowest", action="store_true", help="the largest ratios first")
    o = parser.parse_args()
    for name in missing_rows():
        print(f"wf_{name} has no row")
    torch.set_num_threads(o.threads)
    rounds = []
    for _ in range(o.rounds):
        ours = weft_rows(o)
        rounds.append({name: list(zip(ours[name], timed(name, o.seconds))) for name in ours})
    print(f"{'':38} {'weft ms':>9} {'torch ms':>9} {'ratio':>6}")
    table, of_rounds = [], min if o.least else statistics.median
    for name in rounds[0]:
        pairs = [r[name][o.least] for r in rounds]
        ours, theirs = (of_rounds(side) for side in zip(*pairs))
        ratio = ours / theirs if o.least else statistics.median(a / b for a, b in pairs)
        table.append((ratio, name, ours, theirs))
    for ratio, name, ours, theirs in sorted(table, reverse=True) if o.slowest else table:
        print(f"{name:38} {ours * 1e3:9.3f} {theirs * 1e3:9.3f} {ratio:6.2f}")


if __name__ == "__main__":
    main()
