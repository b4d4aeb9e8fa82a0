#!/usr/bin/env python3
"""Random graphs, computed by weft and by PyTorch: are all values and gradients the same?

    ninja -C build tests/random-graphs
    tests/ops/random_graphs.py build/tests/random-graphs --graphs 100000 --seed 1
    tests/ops/random_graphs.py build/tests/random-graphs --graphs 300 --seed 1 \\
        --record tests/data/random_graphs.txt

A graph has 2 to 30 nodes from the constructors of graph_ops.inc, gradients of a loss by leaves and
by nodes between, and often gradients of these. Compared: every node in f64, all fetched; outputs and
gradients fused, in f64 and f32; and in weft, to the bit: two threads, memory with other contents, an
axis of 3 or 5 steps whose size is bound later. Needs torch.

Judged against PyTorch's f64. How much rounding a graph magnifies is measured: e, the error of
PyTorch's own f32. Allowed are 1e-11 of the largest element and 1e-6 e in f64 (rounding alone would
give 2e-9 e), and in f32 2e-6 and 20 e; and the rounding of the graph's largest number, 1e-14 and 2e-6,
for what is zero by cancellation. Left out by rule, and counted: operands within 1e-7 of a kink,
a tie or a jump (where rounding decides; in f32 within 1e-4), values that are not finite or above 1e4,
and graphs that weft refuses with a sentence. The rules are tried first, by the rows of graph_kinks.py.
"""

import argparse
import collections
import os
import random
import struct
import subprocess
import sys
import time

import numpy as np
import torch

import graph_kinks
from graph_torch import FORMULAS, K, T, UNARY

torch.set_num_threads(1)


def hashes(key, n):
    e = np.arange(1, n + 1, dtype=np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    h = (np.uint64(key * 2654435761 & 0xFFFFFFFF) ^ (e * np.uint64(2246822519))) & mask
    h = ((h ^ (h >> np.uint64(15))) * np.uint64(2654435761)) & mask
    h = ((h ^ (h >> np.uint64(13))) * np.uint64(3266489917)) & mask
    return ((h ^ (h >> np.uint64(16))) >> np.uint64(20)).astype(np.float64) / 4096


class Rejected(Exception):
    pass


class Graph:
    """A program, and its values in PyTorch while it is written."""

    def __init__(self, rng, dtype=torch.float64):
        self.rng, self.dtype = rng, dtype
        self.lines, self.steps, self.x, self.leaves = [], [], [], []
        self.margin, self.used, self.size = 1.0, collections.Counter(), 1.0

    def leaf(self, kind, low, high, shape):
        key = len(self.lines) * 7919 + self.rng.randrange(1 << 20)
        self.lines.append(f"leaf {kind} {low} {high} {key} " + " ".join(map(str, shape)))
        return self.step(("leaf", kind, low, high, key, tuple(shape)))

    def op(self, name, x, i=(), r=()):
        t = [self.x[k] for k in x]
        if name in K:
            with torch.no_grad():
                margin = K[name](t, i, r)
            least = margin.min().item() if margin.numel() else 1.0
            size = max([1.0] + [u.abs().max().item() for u in t if u.numel()])
            if not least > 1e-7 * size:
                raise Rejected("kink")
            self.margin = min(self.margin, least / size)
        k = self.step(("op", name, tuple(x), tuple(i), tuple(r)))
        self.lines.append(f"{name} {' '.join(map(str, x))} | {' '.join(map(str, i))} | "
                          + " ".join(map(repr, r)))
        self.used[name] += 1
        return k

    def grad(self, y, wrt, values):
        k = self.step(("grad", y, tuple(wrt)), values)
        self.lines.append(f"grad {y} " + " ".join(map(str, wrt)))
        return k

    def step(self, s, values=None):
        try:
            values = values or evaluate(s, self.x, self.dtype)
        except (RuntimeError, TypeError, IndexError, ValueError) as e:
            raise Rejected("PyTorch refuses") from e
        for v in values:
            if v.numel():
                top = v.detach().abs().max().item()
                if not top < 1e4:
                    raise Rejected("not finite" if top != top or top == float("inf") else "large")
                self.size = max(self.size, top)
        self.steps.append(s)
        self.x += values
        return len(self.x) - len(values)

    # ---- operands

    def shape(self, k):
        return list(self.x[k].shape)

    def real(self, rank=None, least=1, most=9, any_size=False):
        """A real node of this rank: one of the later ones, or a new leaf."""
        fits = [k for k, v in enumerate(self.x) if v.is_floating_point() and (
            v.dim() == rank if rank is not None else least <= v.dim() <= most) and (
            any_size or v.numel() > 0) and v.numel() < 20000]
        if fits and self.rng.random() < 0.9:
            return fits[-1 - min(int(self.rng.expovariate(0.35)), len(fits) - 1)]
        rank = rank if rank is not None else self.rng.randint(least, min(most, 4))
        return self.new([self.side() for _ in range(rank)])

    def side(self):
        return self.rng.choice((1, 2, 2, 3, 3, 4, 5))

    def new(self, shape, low=-2, high=2, kind=None):
        return self.leaf(kind or self.rng.choice("ppi"), low, high, shape)

    def like(self, shape, low=-2, high=2):
        """A node of this shape: there already, or a leaf."""
        fits = [k for k, v in enumerate(self.x) if v.is_floating_point()
                and list(v.shape) == list(shape)]
        if fits and self.rng.random() < 0.6:
            return self.rng.choice(fits)
        return self.new(shape, low, high)

    def ids(self, below, shape):
        return self.leaf("n", 0, below, shape)

    def mask(self, shape):
        return self.op("cast_real", [self.ids(2, shape)])

    def within(self, k, low, high):
        v = self.x[k].detach()
        if v.numel() == 0 or (v.min() >= low and v.max() <= high):
            return k
        s = self.op("sigmoid", [k])
        return self.op("affine", [s], (), (high - low, low))

    def broadcast(self, shape):
        """A shape that broadcasts to this one."""
        cut = self.rng.randint(0, len(shape)) if self.rng.random() < 0.4 else 0
        return [1 if self.rng.random() < 0.25 else s for s in shape[cut:]]

    def axis(self, k, any_sign=True):
        n = self.x[k].dim()
        a = self.rng.randrange(n)
        return a

    def axes(self, k, empty=False):
        n = self.x[k].dim()
        return self.rng.randrange(0 if empty else 1, 1 << n) if n else 0


def leaf_values(s, dtype):
    _, kind, low, high, key, shape = s
    n = int(np.prod(shape)) if shape else 1
    h = hashes(key, n)
    if kind == "n":
        return torch.from_numpy((low + np.floor((high - low) * h)).astype(np.int64)).reshape(shape)
    v = torch.from_numpy((low + (high - low) * h).astype(np.float32)).to(dtype).reshape(shape)
    return v.requires_grad_() if kind != "b" else v


def evaluate(s, x, dtype):
    if s[0] == "leaf":
        return [leaf_values(s, dtype)]
    if s[0] == "op":
        given = [x[k] for k in s[2]]
        y = T[s[1]](given, list(s[3]), list(s[4]))
        # view_as makes a new tensor where PyTorch returns the operand itself
        return [y.view_as(y) if any(y is t for t in given) else y]
    y, wrt = x[s[1]], [x[k] for k in s[2]]
    grads = torch.autograd.grad(y, wrt, create_graph=True, allow_unused=True)
    return [torch.zeros_like(v) if g is None else g for g, v in zip(grads, wrt)]


# ---- how operands are chosen, for each constructor ------------------------------------------------

RANGES = {
    "sqrt": (0.2, 4), "rsqrt": (0.2, 4), "reciprocal": (0.2, 4), "log": (0.2, 4), "log2": (0.2, 4),
    "log10": (0.2, 4), "log1p": (-0.6, 4), "tan": (-1.1, 1.1), "asin": (-0.8, 0.8),
    "acos": (-0.8, 0.8), "acosh": (1.2, 5), "atanh": (-0.8, 0.8), "exp": (-6, 3), "exp2": (-6, 3),
    "expm1": (-6, 3), "sinh": (-3, 3), "cosh": (-3, 3), "square": (-20, 20), "erfc": (-3, 3),
    "erf": (-3, 3),
}
G = {}


def gen(*names):
    def put(f):
        for name in names:
            G[name] = (lambda f, name: lambda g: f(g, name))(f, name)
        return f

    return put


@gen(*[n for n in UNARY if n not in ("logical_not",)])
def _(g, name):
    k = g.real(least=0, any_size=True)
    if name in RANGES:
        k = g.within(k, *RANGES[name])
    g.op(name, [k])


@gen("leaky_relu", "elu", "scale", "dropout", "fill", "check_finite", "pow_scalar")
def _(g, name):
    k = g.real(least=0, any_size=True)
    if name == "pow_scalar":
        r = g.rng.choice((-2, -1, -0.5, 0.5, 1, 1.5, 2, 3, 0))
        return g.op(name, [g.within(k, 0.3, 3)], (), (float(r),))
    r = g.rng.choice((0.1, 0.5, 2.0)) if name != "dropout" else 0.5
    g.op(name, [k], (), () if name == "check_finite" else (r,))


@gen("affine", "clamp")
def _(g, name):
    r = (-0.6, 0.7) if name == "clamp" else (g.rng.choice((-1.5, 0.5, 2.0)), 0.3)
    g.op(name, [g.real(least=0, any_size=True)], (), r)


@gen("cast_i32")
def _(g, name):
    g.op("cast_real", [g.op(name, [g.within(g.real(least=0), -9, 9)])])


@gen("logical_not")
def _(g, name):
    m = g.mask([g.side(), g.side()])
    g.op(name, [m])


BINARY_NAMES = ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2", "logaddexp",
                "xlogy", "fmod", "remainder", "floor_divide", "equal", "not_equal", "less",
                "less_equal", "greater", "greater_equal")


@gen(*BINARY_NAMES)
def _(g, name):
    a = g.real(least=0, any_size=True)
    b = g.like(g.broadcast(g.shape(a)))
    if name in ("div", "fmod", "remainder", "floor_divide"):
        b = g.within(b, 0.3, 3)
    if name == "pow":
        a, b = g.within(a, 0.3, 3), g.within(b, -3, 3)
    elif name == "xlogy":
        b = g.within(b, 0.3, 3)
    elif name == "atan2":
        b = g.within(b, 0.2, 3)
    elif g.rng.random() < 0.4 and name not in ("div", "fmod", "remainder", "floor_divide"):
        a, b = b, a
    g.op(name, [a, b])


@gen("logical_and", "logical_or", "logical_xor")
def _(g, name):
    shape = [g.side(), g.side()]
    g.op(name, [g.mask(shape), g.mask(g.broadcast(shape))])


@gen("lerp", "clamp_tensors")
def _(g, name):
    a = g.real(least=0, any_size=True)
    shape = g.shape(a)
    b, c = g.like(g.broadcast(shape)), g.like(g.broadcast(shape))
    if name == "clamp_tensors":
        b, c = g.within(b, -1, -0.2), g.within(c, 0.2, 1)
    g.op(name, [a, b, c])


@gen("where", "masked_fill")
def _(g, name):
    a = g.real(least=0, any_size=True)
    m = g.mask(g.broadcast(g.shape(a)))
    if name == "where":
        g.op(name, [m, a, g.like(g.broadcast(g.shape(a)))])
    else:
        g.op(name, [a, m], (), (g.rng.choice((-1.5, 0.25)),))


@gen("sum", "mean", "max", "min", "prod", "logsumexp")
def _(g, name):
    k = g.real(least=0, any_size=name in ("sum", "prod", "logsumexp"))
    if name == "prod":
        k = g.within(k, -1.5, 1.5)
    if name == "logsumexp" and g.x[k].numel() == 0:
        raise Rejected("not finite")
    g.op(name, [k], (g.axes(k, True), g.rng.randrange(2)))


@gen("any", "all")
def _(g, name):
    m = g.mask([g.side(), g.side()])
    g.op(name, [m], (g.axes(m), g.rng.randrange(2)))


@gen("var", "std", "vector_norm")
def _(g, name):
    k = g.real()
    a = g.axes(k)
    n = np.prod([s for j, s in enumerate(g.shape(k)) if a >> j & 1])
    r = g.rng.choice((1.0, 2.0, float("inf"), float("-inf"))) if name == "vector_norm" else float(
        g.rng.randrange(2) if n > 1 else 0)
    if name == "std" and n < 2:
        raise Rejected("kink")
    g.op(name, [k], (a, g.rng.randrange(2)), (r,))


@gen("square_sum", "square_sums")
def _(g, name):
    g.op(name, [g.real(least=0, any_size=True)])


@gen("inverse_count")
def _(g, name):
    k = g.real()
    g.op(name, [k], (g.axes(k),))


@gen("argmax", "argmin", "argsort", "topk_indices", "topk", "sort")
def _(g, name):
    k = g.real()
    a = g.axis(k)
    if name.startswith("topk"):
        i = (g.rng.randint(1, g.shape(k)[a]), a, g.rng.randrange(2))
    else:
        i = (a,) if name.startswith("argm") else (a, g.rng.randrange(2))
    y = g.op(name, [k], i)
    if name not in ("sort", "topk"):
        g.op("cast_real", [y])


@gen("cumsum", "cumprod")
def _(g, name):
    k = g.real(any_size=True)
    if name == "cumprod":
        k = g.within(k, -1.5, 1.5)
    g.op(name, [k], (g.axis(k), g.rng.randrange(2)))


@gen("linear_scan")
def _(g, name):
    k = g.real()
    g.op(name, [g.within(k, -1.2, 1.2), g.like(g.shape(k))], (g.axis(k), g.rng.randrange(2)))


@gen("matmul", "gemm")
def _(g, name):
    a = g.real(least=2)
    shape, n = g.shape(a), g.side()
    t = g.rng.randrange(4) if name == "gemm" else 0
    inner, rows = (shape[-2], shape[-1]) if t & 1 else (shape[-1], shape[-2])
    lead = g.broadcast(shape[:-2])
    b = g.like(lead + ([n, inner] if t & 2 else [inner, n]))
    x = [a, b]
    if name == "gemm" and g.rng.random() < 0.5:
        x.append(g.like(g.broadcast([rows, n])))
    g.op(name, x, (t,) if name == "gemm" else ())


@gen("einsum")
def _(g, name):
    which = g.rng.randrange(len(FORMULAS))
    size = {c: g.side() for c in "abcdijkl"}
    terms = FORMULAS[which].split("->")[0].split(",")
    if terms[0].startswith("..."):
        a = g.real()
        return g.op(name, [a, g.like(g.shape(a))], (which,))
    first = g.real(rank=len(terms[0])) if len(set(terms[0])) == len(terms[0]) else None
    if first is not None:
        size |= dict(zip(terms[0], g.shape(first)))
    x = [first if first is not None and n == 0 else g.like([size[c] for c in t])
         for n, t in enumerate(terms)]
    g.op(name, x, (which,))


@gen("outer", "vecdot")
def _(g, name):
    a = g.real()
    shape = g.shape(a)
    g.op(name, [a, g.like(shape[:-1] + [g.side()] if name == "outer" else shape)])


@gen("sum_to", "broadcast_to", "reshape_like")
def _(g, name):
    k = g.real(any_size=True)
    shape = g.shape(k)
    if name == "sum_to":
        g.op(name, [k, g.like(g.broadcast(shape))])
    elif name == "broadcast_to":
        g.op(name, [g.like(g.broadcast(shape)), k])
    else:
        g.op(name, [k, g.like(shape[:-2] + [shape[-2] * shape[-1]] if len(shape) > 1
                              else [1] + shape)])


@gen("reshape")
def _(g, name):
    k = g.real(least=2)
    s = g.shape(k)
    new = g.rng.choice(([-1], [0] * (len(s) - 2) + [-1, s[-1] * s[-2]], [0, -1], [1] + s))
    if 0 in new and len(new) != len(s) and new != [0, -1]:
        new = [-1]
    if new == [0, -1] and len(s) < 2:
        new = [-1]
    plain = [s[j] if d == 0 else d for j, d in enumerate(new)]
    g.op(name, [k], [len(plain)] + plain)


@gen("permute", "transpose", "flatten", "diagonal")
def _(g, name):
    k = g.real(least=2, any_size=name != "flatten")
    n = g.x[k].dim()
    a, b = g.rng.sample(range(n), 2)
    if name == "permute":
        g.op(name, [k], g.rng.sample(range(n), n))
    elif name == "flatten":
        g.op(name, [k], sorted((a, b)))
    elif name == "diagonal":
        g.op(name, [k], (g.rng.randint(-1, 1) if min(g.shape(k)[a], g.shape(k)[b]) > 1 else 0,
                         a, b))
    else:
        g.op(name, [k], (a, b))


@gen("squeeze", "unsqueeze", "flip")
def _(g, name):
    k = g.real(least=0 if name == "unsqueeze" else 1, most=5, any_size=True)
    n = g.x[k].dim()
    if name == "squeeze":
        ones = [j for j, s in enumerate(g.shape(k)) if s == 1]
        if not ones:
            k = g.op("unsqueeze", [k], (1,))
            ones = [0]
        return g.op(name, [k], (1 << g.rng.choice(ones),))
    g.op(name, [k], (1 << g.rng.randint(0, n) if name == "unsqueeze" else g.axes(k),))


@gen("slice", "slice_step", "pad", "roll", "repeat_interleave")
def _(g, name):
    k = g.real(any_size=name in ("pad",))
    a = g.axis(k)
    n = g.shape(k)[a]
    at = g.rng.randrange(n) if n else 0
    to = g.rng.randint(at if g.rng.random() < 0.03 else at + 1, n) if n else 0
    if name == "slice":
        g.op(name, [k], (a, at, to))
    elif name == "slice_step":
        g.op(name, [k], (a, at, max(to, at + 1), g.rng.randint(1, 3)))
    elif name == "pad":
        g.op(name, [k], (a, g.rng.randrange(3), g.rng.randrange(3)), (0.5,))
    elif name == "roll":
        g.op(name, [k], (g.rng.randint(-6, 6), a))
    else:
        g.op(name, [k], (g.rng.randint(1, 3), a))


@gen("expand", "tile")
def _(g, name):
    k = g.real(most=4)
    s = g.shape(k)
    if name == "tile":
        return g.op(name, [k], [g.rng.randint(1, 2) for _ in s])
    new = [g.side() for _ in range(g.rng.randrange(2))] + [
        g.side() if d == 1 else d for d in s]
    g.op(name, [k], [len(new)] + new)


@gen("concat", "stack", "chunk")
def _(g, name):
    k = g.real(most=4)
    a = g.axis(k)
    s = g.shape(k)
    if name == "chunk":
        parts = [d for d in range(1, 9) if s[a] % d == 0]
        d = g.rng.choice(parts)
        return g.op(name, [k], (a, d, g.rng.randrange(d)))
    others = []
    for _ in range(g.rng.randint(0, 2)):
        t = list(s)
        if name == "concat":
            t[a] = g.side()
        others.append(g.like(t))
    x = [k] + others
    g.rng.shuffle(x)
    g.op(name, x, (a,))


@gen("tril", "triu")
def _(g, name):
    g.op(name, [g.real(least=2)], (g.rng.randint(-2, 2),))


@gen("embedding", "index_select", "gather", "scatter_add", "index_add", "one_hot", "arange",
     "scatter", "scatter_max", "scatter_min", "scatter_mul", "index_copy")
def _(g, name):
    k = g.real(rank=2) if name == "embedding" else g.real(most=4)
    s = g.shape(k)
    a = 0 if name == "embedding" else g.axis(k)
    if name == "one_hot":
        return g.op(name, [g.ids(4, [g.side()])], (g.rng.randint(3, 5),))
    if name == "arange":
        return g.op("cast_real", [g.op(name, [k], (a,))])
    if name == "embedding":
        return g.op(name, [k, g.ids(s[0], [g.side() for _ in range(g.rng.randint(0, 2))])])
    n = g.side()
    if name == "scatter_mul":
        k = g.within(k, -1.5, 1.5)
    if name in ("index_select", "index_add", "index_copy"):
        ids = g.ids(s[a], [n])
    else:
        ids = g.ids(s[a], [n if j == a else (d if g.rng.random() < 0.7 else 1)
                           for j, d in enumerate(s)])
    if name in ("index_select", "gather"):
        return g.op(name, [k, ids], (a,))
    src = g.like([n if j == a else d for j, d in enumerate(s)])
    g.op(name, [k, ids, g.within(src, -1.5, 1.5) if name == "scatter_mul" else src], (a,))


@gen("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift",
     "bitwise_right_shift", "bitwise_right_shift_logical")
def _(g, name):
    shape = [g.side(), g.side()]
    x = [g.leaf("n", -300, 300, shape)]
    if name.endswith("not"):
        pass
    elif "shift" in name:
        x.append(g.leaf("n", 20 if name.endswith("logical") else 0, 5 if "left" in name else 32,
                        g.broadcast(shape)))
    else:
        x.append(g.leaf("n", -300, 300, g.broadcast(shape)))
    g.op("cast_real", [g.op(name, x)])


@gen("resize", "resize_like", "resize_by")
def _(g, name):
    k = g.real(most=4)
    a = g.axis(k)
    i = [a, g.rng.randrange(4), g.rng.randrange(2)]
    i[2] = i[2] if i[1] > 1 else 0
    if name == "resize":
        return g.op(name, [k], i + [g.rng.randint(1, 7)])
    if name == "resize_like":
        s = [g.side() for _ in g.shape(k)]
        return g.op(name, [k, g.like(s)], i)
    scale = g.rng.choice((0.5, 0.7, 1.3, 1.5, 2.0, 2.5, 3.0))
    n = g.shape(k)[a]
    if int(n * scale) < 1:
        scale = 2.0
    if int(n * scale) == n and i[1] in (0, 3):
        raise Rejected("PyTorch's gradient is not that of its value")
    half = 0.5 if i[1] == 1 else 0
    steps = [(j + half) / scale for j in range(int(n * scale))]
    if i[1] < 2 and any(0 < abs(u - round(u)) < 1e-6 or u and u == round(u) for u in steps):
        raise Rejected("kink")  # the nearest element is decided by the rounding of the scale
    g.op(name, [k], i, (scale,))


@gen("interpolate")
def _(g, name):
    k = g.real(least=3, most=4)
    mode = g.rng.randrange(4)
    sizes = [g.rng.choice((0, 1, 2, 3, 4, 6)) for _ in g.shape(k)[2:]]
    g.op(name, [k], [mode, g.rng.randrange(2) if mode > 1 else 0] + sizes)


@gen("pad_reflect")
def _(g, name):
    k = g.real()
    a = g.axis(k)
    n = g.shape(k)[a]
    g.op(name, [k], (a, g.rng.randrange(n), g.rng.randrange(n)))


@gen("stft_real", "stft_imag", "power_spectrum")
def _(g, name):
    n = g.rng.choice((1, 2, 3, 4, 5, 6, 8, 10))
    length = n + g.rng.randrange(8)
    x = g.like([g.side() for _ in range(g.rng.randrange(2))] + [length])
    g.op(name, [x], (n, g.rng.randint(1, 4), g.rng.randint(1, n), g.rng.randrange(3),
                     g.rng.randrange(2)))


@gen("log_mel_spectrogram")
def _(g, name):
    if g.rng.random() < 0.8:  # it is slow in PyTorch
        raise Rejected("seldom chosen")
    x = g.new([g.side() for _ in range(g.rng.randrange(2))] + [320 + g.rng.randrange(3) * 80])
    g.op(name, [x], (g.rng.randint(3, 12),))


@gen("unfold", "fold")
def _(g, name):
    size, step, dilation = g.rng.randint(1, 3), g.rng.randint(1, 3), g.rng.randint(1, 2)
    need = (size - 1) * dilation + 1
    k = g.real(most=4)
    a = g.axis(k)
    s = g.shape(k)
    if s[a] < need:
        s[a] = need + g.rng.randrange(3)
        k = g.like(s)
    if name == "unfold":
        return g.op(name, [k], (a, size, step, dilation))
    y = s[:a] + [(s[a] - need) // step + 1] + s[a + 1:] + [size]
    g.op(name, [g.like(y), k], (a, size, step, dilation))


@gen("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")
def _(g, name):
    two = 2 if name.endswith("2d") else 1
    groups = g.rng.choice((1, 1, 2))
    cin, cout = groups * g.rng.randint(1, 2), groups * g.rng.randint(1, 2)
    kernel = [g.rng.randint(1, 3) for _ in range(two)]
    stride, padding, dilation = ([g.rng.randint(*b), g.rng.randint(*b)] for b in
                                 ((1, 2), (0, 1), (1, 2)))
    transposed = "transpose" in name
    sides = [(kernel[j] - 1) * dilation[j] + 1 + g.rng.randrange(3) for j in range(two)]
    x = g.like([g.rng.randint(1, 2), cin] + sides)
    w = g.like(([cin, cout // groups] if transposed else [cout, cin // groups]) + kernel)
    extra = [g.like([cout])] if g.rng.random() < 0.5 else []
    out = [g.rng.randrange(stride[j]) for j in range(2)]
    g.op(name, [x, w] + extra, stride + padding + dilation + [groups] + (out if transposed else []))


@gen("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d")
def _(g, name):
    two = 2 if name.endswith("2d") else 1
    kernel = [g.rng.randint(1, 3), g.rng.randint(1, 3)]
    stride = [g.rng.randint(1, 2), g.rng.randint(1, 2)]
    padding = [g.rng.randint(0, k // 2) for k in kernel]
    k = g.like([g.rng.randint(1, 2), g.side()] + [kernel[j] + g.rng.randrange(3)
                                                  for j in range(two)])
    g.op(name, [k], kernel + stride + padding + [g.rng.randrange(2) if "avg" in name else 0])


@gen("softmax", "log_softmax")
def _(g, name):
    k = g.real()
    g.op(name, [g.within(k, -9, 9)], (g.axis(k),))


@gen("masked_softmax")
def _(g, name):
    k = g.within(g.real(least=2), -9, 9)
    x = [k] + ([g.mask(g.broadcast(g.shape(k)))] if g.rng.random() < 0.6 else [])
    g.op(name, x, (g.rng.randrange(2),))


@gen("layer_norm", "rms_norm", "layer_norm_over")
def _(g, name):
    k = g.real()
    if name == "layer_norm_over":
        return g.op(name, [k], (g.axes(k),), (0.01,))
    n = g.shape(k)[-1:]
    more = [g.like(n) for _ in range(g.rng.randint(0, 2 if name == "layer_norm" else 1))]
    g.op(name, [k] + more, (), (0.01,))


@gen("segment_softmax")
def _(g, name):
    k = g.within(g.real(most=3), -9, 9)
    n = g.side()
    g.op(name, [k, g.ids(n, g.shape(k)[:1]), g.new([n])])


@gen("group_norm", "batch_norm", "batch_norm_mean", "batch_norm_variance", "batch_norm_running")
def _(g, name):
    k = g.real(least=2, most=4)
    c = g.shape(k)[1]
    more = [g.like([c]) for _ in range(g.rng.randrange(3))]
    if name == "group_norm":
        groups = g.rng.choice([d for d in range(1, c + 1) if c % d == 0])
        return g.op(name, [k] + more, (groups,), (0.01,))
    if name == "batch_norm_running":
        more = [g.new([c], -1, 1, "b"), g.new([c], 0.3, 2, "b"), g.like([c]), g.like([c])]
    g.op(name, [k] + (more if name in ("batch_norm", "batch_norm_running") else []), (), (0.01,))


@gen("rotary", "rotate")
def _(g, name):
    s = [g.side() for _ in range(g.rng.randint(0, 1))] + [g.side(), g.rng.choice((2, 4, 6))]
    k = g.like(s)
    if name == "rotary":
        return g.op(name, [k, g.ids(50, [s[-2]])], (g.rng.randrange(2),), (100.0,))
    g.op(name, [k, g.like([s[-2], 2, s[-1]])], (g.rng.randrange(2),))


@gen("attention", "attention_weights")
def _(g, name):
    lead = g.rng.choice(([g.side()], [g.side(), g.side()]))
    t, s, d = g.side(), g.side(), g.side()
    q, k = g.like(lead + [t, d], -1, 1), g.like(lead + [s, d], -1, 1)
    q, k = g.within(q, -2, 2), g.within(k, -2, 2)
    x = [q, k] + ([g.like(lead + [s, g.side()])] if name == "attention" else [])
    if g.rng.random() < 0.4:
        x.append(g.mask([t, s]))
    g.op(name, x, (g.rng.randrange(2), g.rng.choice((0, 0, 2))), (g.rng.choice((0.0, 0.7)),))


@gen("cross_entropy", "cross_entropy_over", "nll_loss", "cross_entropy_loss")
def _(g, name):
    k = g.within(g.real(least=2, most=3), -9, 9)
    s = g.shape(k)
    if name == "cross_entropy_over":
        a = g.axis(k)
        return g.op(name, [k, g.ids(s[a], s[:a] + s[a + 1:])], (-100, a), (0.0,))
    labels = g.ids(s[-1], s[:-1])
    if name == "nll_loss":
        return g.op(name, [k, labels], (g.rng.randrange(3), -100))
    r = (g.rng.choice((0.0, 0.1)),)
    ignored = g.rng.choice((-100, 0)) if name == "cross_entropy" else -100
    g.op(name, [k, labels], (ignored,) if name == "cross_entropy" else (g.rng.randrange(3), -100), r)


@gen("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "bce_logits",
     "cosine_similarity")
def _(g, name):
    a = g.real()
    b = g.like(g.shape(a))
    if name == "cosine_similarity":
        along = [j for j, d in enumerate(g.shape(a)) if d > 1]
        if not along:
            raise Rejected("cosine of one step: 1 or -1, and its gradient is rounding")
        return g.op(name, [a, b], (g.rng.choice(along),))
    if name in ("kl_div", "bce_logits"):
        b = g.within(b, 0.1, 0.9)
    i = (g.rng.randrange(3), g.rng.randrange(2)) if name == "kl_div" else (g.rng.randrange(3),)
    g.op(name, [a, b], i, (0.7,) if name in ("smooth_l1_loss", "huber_loss") else ())


# ---- a graph -------------------------------------------------------------------------------------


def weighted(g, nodes):
    total = None
    for k in nodes:
        w = g.new(g.shape(k), -1.5, 1.5, "b")
        s = g.op("sum", [g.op("mul", [k, w])], ((1 << g.x[k].dim()) - 1, 0))
        total = s if total is None else g.op("add", [total, s])
    return total


def differentiate(g, outputs, wrt):
    of = [k for k in outputs if g.x[k].requires_grad]
    if not of:
        return None, []
    y = weighted(g, of)
    found = torch.autograd.grad(g.x[y], [g.x[k] for k in wrt], create_graph=True,
                                allow_unused=True)
    wrt = [k for k, d in zip(wrt, found) if d is not None]
    if not wrt:
        return y, []
    first = g.grad(y, wrt, [d for d in found if d is not None])
    return y, list(range(first, first + len(wrt)))


def write(seed, names, left_out):
    rng = random.Random(seed)
    g = Graph(rng)
    scale = 40 if rng.random() < 0.02 else 1
    for _ in range(rng.randint(1, 3)):
        shape = [g.side() for _ in range(rng.randint(0, 4))]
        if shape and rng.random() < 0.04:
            shape[rng.randrange(len(shape))] = 0
        if shape and scale > 1:
            shape[-1] *= scale
        g.new(shape)
    for _ in range(rng.randint(2, 16)):
        name = rng.choice(names)
        before = len(g.x), len(g.steps), len(g.lines), g.margin
        try:
            G[name](g)
        except Rejected as e:
            left_out[str(e)] += 1
            # The ops that made the operands stay, because they are part of the graph.
            g.lines = g.lines[: len(g.steps)]
            del before
    reals = [k for k, v in enumerate(g.x) if v.is_floating_point()]
    uses = {k for s in g.steps if s[0] == "op" for k in s[2]}
    sinks = [k for k in reals if k not in uses] or reals
    outputs = rng.sample(sinks, min(len(sinks), 4))
    leaves = [k for k, v in enumerate(g.x) if v.is_leaf and v.requires_grad]
    between = [k for k in reals if not g.x[k].is_leaf and g.x[k].requires_grad]
    wrt = rng.sample(leaves, min(len(leaves), 4)) + rng.sample(between, min(len(between),
                                                                            rng.randrange(2)))
    shown, orders = list(outputs), 0
    try:
        y, grads = differentiate(g, outputs, wrt)
        if grads:
            orders = 1
            shown += [y] + grads
        if grads and rng.random() < 0.4:
            at = len(g.steps), len(g.x), len(g.lines)
            y, seconds = differentiate(g, grads, [k for k in wrt if k in leaves])
            if seconds:
                orders = 2
                shown += seconds
    except Rejected as e:
        left_out[f"gradient {e}"] += 1
        g.lines = g.lines[: len(g.steps)]
    shown = list(dict.fromkeys(shown))[:32]
    g.lines.append("show " + " ".join(map(str, shown)))
    return g, shown, orders


def narrow(g):
    """The same program in f32."""
    torch.set_default_dtype(torch.float32)
    x = []
    for s in g.steps:
        x += evaluate(s, x, torch.float32)
    torch.set_default_dtype(torch.float64)
    return x


# ---- comparing -----------------------------------------------------------------------------------


class Weft:
    def __init__(self, program):
        self.named = 0
        self.p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, text):
        self.p.stdin.write(text.encode() + b"\nend\n")
        self.p.stdin.flush()
        return self

    def answer(self):
        read = self.p.stdout.read
        head = read(4)
        if len(head) < 4:
            raise RuntimeError(f"weft ended: {self.p.wait()}")
        message = read(struct.unpack("i", head)[0]).decode()
        self.named += struct.unpack("i", read(4))[0]
        arrays = []
        for _ in range(struct.unpack("i", read(4))[0]):
            n = struct.unpack("q", read(8))[0]
            arrays.append(np.frombuffer(read(8 * n), np.float64))
        return message, arrays


def numbers(t):
    # zeros of a second derivative have no memory, and numpy would read behind a view's offset
    if t._is_zerotensor():
        return np.zeros(t.numel())
    return t.detach().double().reshape(-1).numpy(force=True)


def far(have, true, allowed):
    if len(have) != len(true):
        return "size"
    if len(true) == 0:
        return None
    with np.errstate(invalid="ignore"):
        e = np.abs(have - true).max()
    return None if e <= allowed else f"{e:.3g} > {allowed:.3g}"


def largest(v):
    return np.abs(v).max() if len(v) else 0.0


def compare(g, shown, message, arrays, f32, left_out):
    """What is wrong, or None."""
    if message:
        return message
    wide, n = [numbers(v) for v in g.x], len(g.x)
    thin = [numbers(v) for v in f32]
    floor = 1e-14 * g.size
    errors = [largest(a - b) for a, b in zip(thin, wide)]
    finite = bool(np.isfinite(errors).all())
    errors = [e if np.isfinite(e) else 1e-3 * largest(w) for e, w in zip(errors, wide)]
    for k in range(n):
        bad = far(arrays[k], wide[k], 1e-11 * largest(wide[k]) + 1e-6 * errors[k] + floor)
        if bad:
            return f"node {k} f64: {bad}"
    for j, k in enumerate(shown):
        bad = far(arrays[n + j], wide[k], 1e-11 * largest(wide[k]) + 1e-6 * errors[k] + floor)
        if bad:
            return f"shown {k} f64 fused: {bad}"
    if g.margin < 1e-4 or not finite:
        left_out["f32 near a kink" if finite else "f32 not finite in PyTorch"] += 1
        return None
    for j, k in enumerate(shown):
        allowed = 2e-6 * largest(wide[k]) + 20 * errors[k] + 2e-6 * g.size
        bad = far(arrays[n + len(shown) + j], wide[k], allowed)
        if bad:
            return f"shown {k} f32 fused: {bad} (torch {errors[k]:.3g})"
    return None


def want(g, shown, f32):
    """Lines for a file: see graph_text.h."""
    lines = []
    for k in shown:
        v = numbers(g.x[k])
        w = 2 * hashes(1, len(v)) - 1
        e = largest(numbers(f32[k]) - v)
        lines.append(f"want {k} {len(v)} {float((w * v).sum())!r} {float(np.abs(w * v).sum())!r} {e:.3g}")
    return lines


def reason_to_leave_out(name, operands, i, r):
    """Of one op of these operands; None: there is none."""
    g = Graph(random.Random(1))
    g.x = [torch.tensor(v, dtype=torch.float64) for v in operands]
    if name.startswith("scatter"):
        g.x[1] = g.x[1].long()
    try:
        g.op(name, range(len(g.x)), i, r)
    except Rejected as e:
        return str(e)
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--graphs", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--minutes", type=float, default=float("inf"), help="ends then, though --graphs are not done")
    p.add_argument("--ops", help="only these")
    p.add_argument("--record")
    p.add_argument("--keep", help="a folder for programs that differ")
    a = p.parse_args()
    torch.set_default_dtype(torch.float64)
    bad = graph_kinks.wrong(K, reason_to_leave_out)
    if bad:
        sys.exit("\n".join(bad))
    names = a.ops.split(",") if a.ops else sorted(G)
    weft, begin, began = Weft(a.program), time.process_time(), time.monotonic()
    left_out, used, done = collections.Counter(), collections.Counter(), collections.Counter()
    recorded, wrong = [], 0
    for n in range(a.graphs):
        if time.monotonic() - began > 60 * a.minutes:
            break
        seed = a.seed * 1000003 + n
        g, shown, orders = write(seed, names, left_out)
        weft.run("\n".join(g.lines))
        f32 = narrow(g)
        try:
            message, arrays = weft.answer()
        except RuntimeError as e:
            message, arrays = str(e), []
            weft = Weft(a.program)
        if message.startswith("record:"):
            left_out["refused"] += 1
            done[message[:110]] += 0
            if a.keep:
                print(f"refused {seed}: {message}")
            continue
        bad = compare(g, shown, message, arrays, f32, left_out)
        done["graphs"] += 1
        done["nodes"] += len(g.x)
        done[f"orders {orders}"] += 1
        used += g.used
        if bad:
            wrong += 1
            print(f"WRONG {seed}: {bad}", flush=True)
            if a.keep:
                with open(os.path.join(a.keep, f"{seed}.txt"), "w") as f:
                    f.write("\n".join(g.lines) + "\nend\n")
        elif a.record:
            recorded.append("\n".join(g.lines + want(g, shown, f32) + ["end"]))
    if a.record:
        with open(a.record, "w") as f:
            f.write("\n".join(recorded) + "\n")
    print(f"seed {a.seed}: {done['graphs']} graphs, {wrong} wrong; {done['nodes']} nodes, "
          f"{done['orders 1']} with gradients, {done['orders 2']} with second order; "
          f"{weft.named} with a size bound later; "
          f"{time.monotonic() - began:.0f} s, {time.process_time() - begin:.0f} s of PyTorch")
    print("left out: " + ", ".join(f"{k} {v}" for k, v in sorted(left_out.items())))
    rare = [f"{k} {used[k]}" for k in sorted(T, key=lambda k: used[k])[:12]]
    print("rarest: " + ", ".join(rare))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
