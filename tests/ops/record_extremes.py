#!/usr/bin/env python3
"""Record what PyTorch computes at the ends of the types: tests/data/extremes.txt.

    ninja -C build tests/random-graphs
    tests/ops/record_extremes.py build/tests/random-graphs tests/data/extremes.txt

A program for each op and kind of operand: numbers at the ends (zeros, tiny, huge, infinite, NaN), all
pairs of them, rows with offsets of 1e4 and 1e7 and magnitudes of 1e30 and 1e-30, sizes 0 and 1.
Values, and gradients of sums, in f32 and f64, each beside PyTorch's of the same type. What differs
is printed; where weft has a convention of its own (CONVENTIONS), the element is not compared.
"""

import sys
import warnings

import numpy as np
import torch

from graph_torch import BINARY, T, UNARY
from random_graphs import Weft, evaluate, hashes, numbers

INF, NAN = float("inf"), float("nan")
ENDS = [
    0.0, -0.0, 1, -1, 0.5, -0.5, 2, 1e-3, -1e-3, 1e-7, 1e-20, -1e-20, 1e-30, -1e-30,
    20, -20, 80, -80, 90, -90, 700, -700, 1e4, -1e4, 1e7, -1e7, 1e10, -1e10,
    1e19, -1e19, 1e30, -1e30, 1e38, -1e38, 3e38, -3e38, INF, -INF, NAN, 9.25,
]
FEW = 7  # every seventh end, for pairs


class Program:
    def __init__(self, name):
        self.name, self.lines, self.steps, self.n = name, [], [], 0

    def leaf(self, kind, low, high, key, shape):
        self.lines.append(f"leaf {kind} {low!r} {high!r} {key} " + " ".join(map(str, shape)))
        return self.add(("leaf", kind, low, high, key, tuple(shape)))

    def op(self, name, x, i=(), r=()):
        self.lines.append(f"{name} {' '.join(map(str, x))} | {' '.join(map(str, i))} | "
                          + " ".join(map(repr, r)))
        return self.add(("op", name, tuple(x), tuple(i), tuple(r)))

    def add(self, step):
        self.steps.append(step)
        self.n += 1
        return self.n - 1

    def show(self, y, wrt):
        self.shown = [y]
        x = self.run(torch.float64)
        if x[y].is_floating_point() and x[y].requires_grad and wrt:
            s = self.op("sum", [y], ((1 << x[y].dim()) - 1, 0))
            self.lines.append(f"grad {s} " + " ".join(map(str, wrt)))
            self.steps.append(("grad", s, tuple(wrt)))
            self.shown += range(self.n, self.n + len(wrt))
            self.n += len(wrt)
        self.lines.append("show " + " ".join(map(str, self.shown)))
        return self

    def run(self, dtype):
        torch.set_default_dtype(dtype)
        x = []
        for s in self.steps:
            x += [ends(s, dtype)] if s[0] == "leaf" and s[1] == "e" else evaluate(s, x, dtype)
        torch.set_default_dtype(torch.float64)
        return x


def ends(s, dtype):
    _, _, low, _, key, shape = s
    k = np.arange(int(np.prod(shape))) // int(low) * key % len(ENDS)
    v = np.array(ENDS, np.float32)[k]
    return torch.from_numpy(v).to(dtype).reshape(shape).requires_grad_()


# ---- programs ------------------------------------------------------------------------------------


def programs():
    for name in sorted(UNARY):
        p = Program(name)
        yield p.show(p.op(name, [p.leaf("e", 1.0, 0.0, 1, [len(ENDS)])]), [0])
    for name, r in (("leaky_relu", (0.1,)), ("elu", (0.7,)), ("affine", (2.0, 1.0)),
                    ("scale", (-1.0,)), ("clamp", (-1.0, 1.0)), ("pow_scalar", (2.0,)),
                    ("pow_scalar", (3.0,)), ("pow_scalar", (-1.0,)), ("pow_scalar", (0.5,)),
                    ("pow_scalar", (1.7,)), ("fill", (1.5,))):
        p = Program(f"{name}_{r[0]}")
        yield p.show(p.op(name, [p.leaf("e", 1.0, 0.0, 1, [len(ENDS)])], (), r), [0])
    for name in sorted(BINARY):
        p = Program(name)
        few = (len(ENDS) + FEW - 1) // FEW * 2
        a = p.leaf("e", float(few), 0.0, FEW, [few * few])
        b = p.leaf("e", 1.0, 0.0, FEW, [few * few])
        yield p.show(p.op(name, [a, b]), [0, 1])
    for name in ("and", "or", "xor", "not", "left_shift", "right_shift", "right_shift_logical"):
        for low, high in ((-2147483648, 2147483648), (-300, 300)):
            p = Program(f"bitwise_{name}")
            x = [p.leaf("n", low, high, 5, [200])]
            if name != "not":
                x.append(p.leaf("n", *((0, 32) if "shift" in name else (low, high)), 6, [200]))
            yield p.show(p.op(f"bitwise_{name}", x), [])
    rows = [("offset 0", -3, 3), ("offset 1e4", 1e4 - 3, 1e4 + 3), ("offset 1e7", 1e7 - 30, 1e7 + 30),
            ("offset -1e7", -1e7 - 30, -1e7 + 30), ("1e30", -1e30, 1e30), ("1e-30", -1e-30, 1e-30),
            ("3e38", -3e38, 3e38), ("1e19", 1e19, 2e19), ("equal 1e30", 1e30, 1e30)]
    shapes = [[3, 5], [1, 1], [2, 0]]
    for what, low, high in rows:
        for shape in shapes:
            for name, i, r in (
                ("sum", (2, 0), ()), ("mean", (2, 0), ()), ("max", (2, 0), ()), ("min", (2, 0), ()),
                ("prod", (2, 0), ()), ("logsumexp", (2, 0), ()), ("var", (2, 0), (0.0,)),
                ("var", (2, 0), (1.0,)), ("std", (2, 0), (0.0,)), ("any", (2, 0), ()),
                ("all", (2, 0), ()), ("vector_norm", (2, 0), (1.0,)),
                ("vector_norm", (2, 0), (2.0,)), ("vector_norm", (2, 0), (INF,)),
                ("square_sum", (), ()), ("cumsum", (1, 0), ()), ("cumprod", (1, 0), ()),
                ("softmax", (-1,), ()), ("log_softmax", (-1,), ()), ("argmax", (1,), ()),
                ("argmin", (1,), ()), ("sort", (1, 0), ()), ("argsort", (1, 1), ()),
                ("masked_softmax", (0,), ()), ("layer_norm", (), (1e-5,)),
                ("rms_norm", (), (1e-5,)), ("matmul", (), ()), ("vecdot", (), ()),
                ("mse_loss", (0,), ()), ("l1_loss", (1,), ()), ("bce_logits", (0,), ()),
                ("cosine_similarity", (1,), ()), ("cross_entropy", (-100,), (0.0,)),
                ("cross_entropy", (-100,), (0.1,)), ("logaddexp", (), ()), ("lerp", (), ()),
                ("concat", (0,), ()), ("tril", (0,), ()), ("flip", (3,), ()), ("roll", (1, 0), ()),
                ("segment_softmax", (), ()), ("group_norm", (1,), (1e-5,)),
                ("batch_norm", (), (1e-5,)), ("batch_norm_mean", (), (1e-5,)),
                ("batch_norm_variance", (), (1e-5,)), ("scatter", (1,), ()),
                ("scatter_max", (1,), ()), ("scatter_min", (1,), ()), ("scatter_mul", (1,), ()),
                ("resize", (1, 2, 0, 4), ()), ("resize", (1, 3, 1, 3), ()),
                ("stft_real", (3, 2, 3, 1, 0), ()), ("power_spectrum", (3, 2, 3, 0, 0), ()),
                ("pad", (1, 1, 1), (0.0,)), ("gelu", (), ()), ("silu", (), ()), ("mish", (), ()),
            ):
                if 0 in shape and name in ("max", "min", "argmax", "argmin", "cross_entropy",
                                              "roll") or r == (INF,) and 0 in shape:
                    continue  # refused by both
                p = Program(f"{name}{list(r) if r else ''} {what} {shape}")
                x = [p.leaf("p", float(low), float(high), 5, shape)]
                if name in ("vecdot", "mse_loss", "l1_loss", "logaddexp", "lerp", "concat",
                            "cosine_similarity"):
                    x.append(p.leaf("p", float(low), float(high), 6, shape))
                if name == "bce_logits":
                    x.append(p.leaf("b", 0.25, 0.75, 6, shape))
                if name == "lerp":
                    x.append(p.leaf("b", 0.25, 0.75, 6, shape))
                if name == "matmul":
                    x.append(p.leaf("p", -1.0, 1.0, 6, [shape[1], 2]))
                if name == "segment_softmax":
                    x += [p.leaf("n", 0, 2, 7, shape[:1]), p.leaf("b", 0.0, 1.0, 6, [2])]
                if name.startswith("scatter"):
                    x += [p.leaf("n", 0, max(shape[1], 1), 7, shape),
                          p.leaf("p", float(low), float(high), 6, shape)]
                if name == "cross_entropy":
                    x.append(p.leaf("n", 0, shape[1], 7, shape[:1]))
                wrt = [k for k in x if p.lines[k].startswith("leaf p")]
                try:
                    p.show(p.op(name, x, i, r), wrt)
                except (RuntimeError, IndexError):
                    continue  # PyTorch refuses it
                yield p


# ---- conventions of our own: (op, part): why. part y: value, d: gradient --------------------------

CONVENTIONS = {}


def convention(names, parts, why):
    for name in names.split():
        for part in parts:
            CONVENTIONS[name, part] = why


convention("gelu gelu_tanh silu mish", "yd", "limits at infinities, where PyTorch has 0 times inf; tails")
convention("hardsigmoid relu6 leaky_relu", "d", "of NaN")
convention("softsign tanh pow_scalar", "d", "PyTorch's formula loses digits")
convention("maximum minimum", "d", "on a tie a has the gradient")
convention("sum mean var std cumsum cumprod batch_norm_mean batch_norm_variance power_spectrum "
           "stft_real", "yd", "infinite or NaN by the order of partial sums")
convention("var std batch_norm_variance", "yd", "squares underflow or overflow in f32 where PyTorch sums in f64")
convention("scatter_mul", "d", "the product over the factor, where the product is no number of f32")
convention("vector_norm cosine_similarity", "yd", "the same: a norm below 1e-19 or above 1e19 in f32")
convention("layer_norm rms_norm group_norm batch_norm", "yd", "right where squares overflow; a gradient that is zero")
convention("logsumexp softmax log_softmax masked_softmax cross_entropy", "yd",
           "all digits of large logits, where PyTorch subtracts log(sum) + max; a gradient of zero")
convention("square_sum mse_loss l1_loss bce_logits matmul vecdot prod lerp", "yd",
           "infinite or NaN by the order of partial sums and products")
convention("gelu silu mish", "yd", "tails")
convention("fmod remainder", "yd", "exact where the quotient overflows f32, where PyTorch has NaN")


def differs(have, true, dtype, loose):
    """Per element. Subnormal numbers are zero in weft."""
    tiny = float(torch.finfo(dtype).tiny) * 4
    with np.errstate(all="ignore"):
        size = np.abs(true[np.isfinite(true)]).max(initial=0.0) if loose else np.abs(true)
        rest = (3e-6 if dtype == torch.float32 else 1e-12) * size
        near = np.abs(have - true) <= rest + tiny
    return ~(near | (have == true) | (np.isnan(have) & np.isnan(true)))


def text(v, skip, digits):
    return " ".join("any" if s else f"{x:.{digits}g}" for x, s in zip(v, skip))


def main():
    warnings.filterwarnings("ignore")
    torch.set_default_dtype(torch.float64)
    weft, out = Weft(sys.argv[1]), []
    compared = wrong = excepted = count = 0
    for p in programs():
        weft.run("\n".join(p.lines))
        message, arrays = weft.answer()
        if message:
            print(f"{p.name}: {message[:150]}")
            if not arrays:
                continue
        count += 1
        op, loose = p.steps[-2 if p.steps[-1][0] == "grad" else -1], " " in p.name
        op = next(s for s in p.steps if s[0] == "op")[1]
        lines = []
        for half, dtype in ((0, torch.float64), (1, torch.float32)):
            x = p.run(dtype)
            for j, k in enumerate(p.shown):
                have = arrays[p.n + half * len(p.shown) + j]
                true = numbers(x[k])
                part = "d" if j else "y"
                bad = differs(have, true, dtype, loose)
                why = CONVENTIONS.get((op, part))
                compared += len(true)
                if bad.any():
                    if why:
                        excepted += int(bad.sum())
                    else:
                        wrong += int(bad.sum())
                        at = np.where(bad)[0]
                        inputs = [numbers(x[m])[at[:3]] if x[m].numel() > at[0] and x[m].numel() == len(true)
                                  else "" for m in range(min(2, len(x)))]
                        print(f"{p.name} {part}{j} {dtype} {bad.sum()} of {len(bad)}: {have[at[:3]]}"
                              f" torch {true[at[:3]]} of {inputs}")
                bits = "32" if half else "64"
                relative = 6e-6 if half else 3e-12
                size = np.abs(true[np.isfinite(true)]).max(initial=0.0)
                absolute = (relative * size if loose else 0) + 4 * float(torch.finfo(dtype).tiny)
                # a gradient of rows that is zero by cancellation has the rounding of 1
                absolute += (1e-6 if half else 1e-14) if loose and j else 0
                lines.append(f"exact{bits} {k} {0 if loose else relative} {absolute:.3g} "
                             + text(true, bad, 9 if half else 13))
        out.append("\n".join(p.lines + lines + ["end"]))
    with open(sys.argv[2], "w") as f:
        f.write("\n".join(out) + "\n")
    print(f"{count} programs, {compared} numbers compared, {wrong} differ, "
          f"{excepted} by a convention")


if __name__ == "__main__":
    main()
