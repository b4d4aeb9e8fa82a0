"""Points where ops jump or have no gradient, and points beside them: does random_graphs.py leave out
the first, by the rules K of graph_torch.py, and none of the others? It asks before its first graph.

Rows are operands, integers and reals, as in a line of a program. Each rule has a row of both kinds.
"""

import math

INF = math.inf
MOST = (2, 0)  # axis 1 of two, which is not kept


def at(*values, i=(), r=()):
    return [list(v) for v in values], i, r


BY_ONE = {
    "abs": (0, 0.5), "sign": (0, 0.5), "relu": (0, 0.5), "softsign": (0, 0.5), "selu": (0, -0.5),
    "floor": (2, 2.5), "ceil": (-1, 2.5), "trunc": (2, 2.5), "cast_i32": (-3, 2.5), "round": (2.5, 2),
    "relu6": (6, 5.5), "hardsigmoid": (-3, 0),
}
BY_TWO = ("maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
# name, left out, not left out
ROWS = [
    *[(name, at([1.25, a]), at([1.25, b])) for name, (a, b) in BY_ONE.items()],
    *[(name, at([1, 2], [3, 2]), at([1, 2], [3, 2.5])) for name in BY_TWO],
    # points nearer to a kink than 1e-7 of the largest operand, or than 1e-7 if that is below 1,
    # are left out
    ("relu", at([1, 0.9e-7]), at([1, 1.1e-7])),
    ("relu", at([100, 0.9e-5]), at([100, 1.1e-5])),
    ("relu", at([math.nan]), at([])),
    ("relu6", at([0]), at([3])),
    ("hardsigmoid", at([3]), at([4])),
    ("leaky_relu", at([0], r=(0.1,)), at([-1], r=(0.1,))),
    ("elu", at([0], r=(0.5,)), at([-1], r=(0.5,))),
    ("clamp", at([-0.6], r=(-0.6, 0.7)), at([0.5], r=(-0.6, 0.7))),
    ("clamp", at([0.7], r=(-0.6, 0.7)), at([0.8], r=(-0.6, 0.7))),
    ("clamp_tensors", at([1], [1], [2]), at([1.5], [1], [2])),
    ("clamp_tensors", at([2], [1], [2]), at([0], [1], [2])),
    ("clamp_tensors", at([0], [1], [1]), at([3], [1], [2])),
    *[(name, at([4], [2]), at([5], [2])) for name in ("fmod", "remainder", "floor_divide")],
    *[(name, at([4], [0]), at([-5], [2])) for name in ("fmod", "remainder", "floor_divide")],
    ("xlogy", at([0], [2]), at([1], [2])),
    *[(name, at([[1, 3, 3]], i=MOST), at([[1, 3, 2]], i=MOST)) for name in ("max", "min")],
    *[(name, at([1, 3, 3], i=(0,)), at([1, 3, 2], i=(0,))) for name in ("argmax", "argmin")],
    *[(name, at([1, 3, 3], i=(0, 1)), at([1, 3, 2], i=(0, 1))) for name in ("sort", "argsort")],
    *[(name, at([1, 3, 3], i=(2, 0, 1)), at([1, 3, 2], i=(2, 0, 1)))
      for name in ("topk", "topk_indices")],
    ("max_pool1d", at([[[1, 2, 2]]], i=(2, 0, 1, 0, 0, 0, 0)), at([[[1, 2, 1]]], i=(2, 0, 1, 0, 0, 0, 0))),
    ("max_pool2d", at([[[[1, 2], [0, 2]]]], i=(2, 2, 1, 1, 0, 0, 0)),
     at([[[[1, 2], [0, 0]]]], i=(2, 2, 1, 1, 0, 0, 0))),
    ("l1_loss", at([1, 2], [1, 3], i=(2,)), at([1, 2], [0, 3], i=(2,))),
    *[(name, at([0.7], [0], i=(2,), r=(0.7,)), at([0], [0], i=(2,), r=(0.7,)))
      for name in ("smooth_l1_loss", "huber_loss")],
    ("std", at([[1, 1], [1, 2]], i=MOST, r=(0,)), at([[1, 3], [1, 2]], i=MOST, r=(0,))),
    # the sum of magnitudes has a kink at each 0, the Euclidean norm where all are 0
    ("vector_norm", at([[0, 1]], i=MOST, r=(1,)), at([[-2, 1]], i=MOST, r=(1,))),
    ("vector_norm", at([[0, 0], [0, 1]], i=MOST, r=(2,)), at([[0, 2], [0, 1]], i=MOST, r=(2,))),
    # the largest and the least magnitude have a kink at ties, and where they are 0
    ("vector_norm", at([[1, -1]], i=MOST, r=(INF,)), at([[1, -2]], i=MOST, r=(INF,))),
    ("vector_norm", at([[0], [1]], i=MOST, r=(INF,)), at([[2], [-1]], i=MOST, r=(INF,))),
    ("vector_norm", at([[1e-8], [1]], i=MOST, r=(INF,)), at([[0, 1]], i=MOST, r=(INF,))),
    ("vector_norm", at([[0, 1]], i=MOST, r=(-INF,)), at([[2, 1]], i=MOST, r=(-INF,))),
    ("vector_norm", at([[0]], i=MOST, r=(-INF,)), at([[2]], i=MOST, r=(-INF,))),
    ("cosine_similarity", at([0, 0], [1, 2], i=(0,)), at([0, 1], [1, 2], i=(0,))),
    ("scatter_max", at([1, 2], [0], [1], i=(0,)), at([1, 2], [0], [2], i=(0,))),
    ("scatter_min", at([1, 2], [1, 1], [1, 1], i=(0,)), at([1, 2], [1, 1], [1, 3], i=(0,))),
    ("scatter_mul", at([0, 2], [0], [1], i=(0,)), at([1, 2], [0], [1], i=(0,))),
    ("scatter_mul", at([1, 2], [0], [0], i=(0,)), at([3, 2], [0], [1], i=(0,))),
    ("log_mel_spectrogram", at([0] * 400, i=(3,)), at([math.sin(k * k) for k in range(640)], i=(3,))),
]


def wrong(rules, reason):
    """Says of each row that is not what it should be. `reason` of a row: why it is left out, or None."""
    found = [f"{name}: no row" for name in sorted(set(rules) ^ {row[0] for row in ROWS})]
    for name, kink, beside in ROWS:
        for row, want in ((kink, "kink"), (beside, None)):
            have = reason(name, *row)
            if have != want:
                found.append(f"{name} {row}: left out by {have}, not by {want}")
    return found
