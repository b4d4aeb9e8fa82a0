#!/usr/bin/env python3
"""Record what PyTorch computes for the rows of the table of ops: tests/data/ops.safetensors.

    build/tests/weft-tests --operands operands.safetensors
    tests/ops/record_ops.py operands.safetensors tests/data/ops.safetensors

Needs torch and safetensors; the tests need neither, they read the file. A row is recorded if it
has a formula below, under its own name, of its operands a, b, c, ... Everything is computed in
f64 from operands that f32 holds exactly. In the file: ROW/x0, x1, ... operands; w the
cotangent; y the value; d0, d1, ... the gradients of the differentiable operands, or, for an
update, what it has written.
"""

import math
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

INFINITY = float("inf")


def attend(q, k, v, mask=None, causal=False, scale=None, window=0, bias=None):
    """scaled_dot_product_attention; mask 1 = may attend; nothing open gives zeros."""
    open_ = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    if causal:
        open_ = open_.tril(k.shape[-2] - q.shape[-2])
    if mask is not None:
        if mask.dim() == 3 and q.dim() == 4:
            mask = mask.unsqueeze(1)
        open_ = open_ & (mask != 0)
    if window:
        open_ = open_.triu(k.shape[-2] - q.shape[-2] - window + 1)
    return weights(q, k, open_, scale, bias) @ v


def weights(q, k, open_=None, scale=None, bias=None):
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    return open_softmax(scores, open_)


def rotary_table(ids, dim, base, interleaved):
    angles = ids.double().unsqueeze(-1) / base ** (torch.arange(0, dim, 2).double() / dim)
    cos, sin = angles.cos(), angles.sin()
    if interleaved:
        cos, sin = cos.repeat_interleave(2, -1), torch.stack((-sin, sin), -1).flatten(-2)
    else:
        cos, sin = torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
    return torch.stack((cos, sin), -2)


def rotary(x, ids, base, interleaved):
    if ids.dim() == 2 and x.dim() == 4:
        ids = ids.unsqueeze(1)
    cos, sin = rotary_table(ids, x.shape[-1], base, interleaved).unbind(-2)
    if interleaved:
        partner = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    else:
        partner = torch.cat(x.chunk(2, -1)[::-1], -1)
    return x * cos + partner * sin


def open_softmax(x, open_=None):
    if open_ is None:
        return torch.softmax(x, -1)
    open_ = open_.expand_as(x)
    some = open_.any(-1, keepdim=True)
    shut = ~open_ & some  # a row without anything open keeps finite scores, then becomes zero
    return torch.where(some, torch.softmax(x.masked_fill(shut, -INFINITY), -1), 0.0)


def causal(x):
    rows, columns = x.shape[-2:]
    return torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)


def loss(logits, labels, smoothing=0.0, ignore=-1):
    return F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        labels.reshape(-1),
        reduction="sum",
        label_smoothing=smoothing,
        ignore_index=ignore,
    )


def expanded(ids, src):
    """ids as PyTorch wants them: in the shape of src."""
    return ids.expand(src.shape)


def last(x, axis, ids, src):
    """scatter, where the last of several elements for one place counts, in the order of the axis."""
    for k in range(src.shape[axis]):
        one = torch.tensor([k])
        x = x.scatter(axis, ids.index_select(axis, one), src.index_select(axis, one))
    return x


def segment_softmax(x, ids, segments):
    y = torch.zeros_like(x)
    for i in range(segments.shape[0]):
        rows = (ids == i).nonzero().flatten()
        y = y.index_add(0, rows, x[rows].softmax(0))
    return y


def resized(x, axis, size, mode, corners=None):
    """One axis of x as the last one of an image."""
    y = x.movedim(axis, -1)
    image = F.interpolate(
        y.reshape(1, -1, 1, y.shape[-1]), (1, size), mode=mode, align_corners=corners
    )
    return image.reshape(*y.shape[:-1], size).movedim(-1, axis)


def stft(x, points, hop, window, center=False):
    window = window.to(x.dtype)
    return torch.stft(
        x, points, hop, len(window), window, center, pad_mode="reflect", return_complex=True
    )


def parts(y):
    return y.real + 0.3 * y.imag


def power(y):
    return y.real**2 + y.imag**2


def mel_filters(rate, points, filters, low=0.0, high=None, htk=False, plain=False):
    """librosa.filters.mel and librosa.mel_frequencies, in its steps: ramps, lower and upper slopes."""
    high = rate / 2 if high is None else high

    def to_mel(f):
        if htk:
            return 2595.0 * math.log10(1.0 + f / 700.0)
        return f / (200.0 / 3) if f < 1000 else 15 + math.log(f / 1000.0) / (math.log(6.4) / 27.0)

    def to_hz(m):
        if htk:
            return 700.0 * (10.0 ** (m / 2595.0) - 1.0)
        return (200.0 / 3) * m if m < 15 else 1000.0 * math.exp(math.log(6.4) / 27.0 * (m - 15))

    bins = torch.linspace(0, rate / 2, 1 + points // 2, dtype=torch.double)
    mels = torch.linspace(to_mel(low), to_mel(high), filters + 2, dtype=torch.double)
    corners = torch.tensor([to_hz(m) for m in mels.tolist()], dtype=torch.double)
    widths = corners.diff()
    ramps = corners[:, None] - bins
    lower, upper = -ramps[:-2] / widths[:-1, None], ramps[2:] / widths[1:, None]
    weights = torch.minimum(lower, upper).clamp(min=0)
    return weights if plain else weights * (2.0 / (corners[2:] - corners[:-2]))[:, None]


def log_mel_spectrogram(x, filters):
    """whisper.audio.log_mel_spectrogram."""
    y = stft(x, 400, 160, torch.hann_window(400, dtype=torch.double), True)
    y = mel_filters(16000, 400, filters) @ power(y[..., :-1])
    y = y.clamp(min=1e-10).log10()
    return (torch.maximum(y, y.max() - 8.0) + 4.0) / 4.0


def shifted(x, count):
    """A logical right shift of i32; a count outside of 0..31 gives 0."""
    inside = (count >= 0) & (count < 32)
    return torch.where(inside, ((x & 0xFFFFFFFF) >> count.clamp(0, 31)).int(), 0)


def everything(a, b):
    counted = (b != 1).sum().to(a.dtype)
    return loss(a, b, 0.1, 1) + 0.3 * loss(a, b, 0.0, 1) + counted


def sgd(p, buffer, grad, scale, rates, momentum, decay, dampening=0, nesterov=False):
    parameter = p.clone().requires_grad_()
    parameter.grad = grad * scale
    optimizer = torch.optim.SGD(
        [parameter],
        lr=rates[0].item(),
        momentum=momentum,
        weight_decay=decay,
        dampening=dampening,
        nesterov=nesterov,
    )
    if buffer is not None:
        optimizer.state[parameter]["momentum_buffer"] = buffer.clone()
    optimizer.step()
    written = (parameter.detach(),)
    return written if buffer is None else written + (optimizer.state[parameter]["momentum_buffer"],)


def adam(p, m, v, grad, scale, rates, beta1, beta2, eps, decay, decoupled):
    """One step as PyTorch documents Adam and AdamW, with the bias corrections that are fed."""
    rate, c1, c2 = (r.item() for r in rates)
    g = grad * scale
    if decoupled:
        p = p - rate * decay * p
    else:
        g = g + decay * p
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    return p - rate * (m * c1) / ((v * c2).sqrt() + eps), m, v


def step_from(optimizer, p, state, grad, rates, **options):
    """One step of an optimizer of PyTorch, from a state: the parameter and the state after it."""
    parameter = p.clone().requires_grad_()
    parameter.grad = grad.clone()
    optimizer = optimizer([parameter], lr=rates[0].item(), foreach=False, **options)
    optimizer.state[parameter] = dict(step=torch.tensor(5.0))
    optimizer.state[parameter].update((name, x.clone()) for name, x in state.items())
    optimizer.step()
    return (parameter.detach(),) + tuple(optimizer.state[parameter][name] for name in state)


def rmsprop(p, v, buffer, grad, rates, alpha, eps, decay=0, momentum=0):
    state = dict(square_avg=v)
    if buffer is not None:
        state["momentum_buffer"] = buffer
    options = dict(alpha=alpha, eps=eps, weight_decay=decay, momentum=momentum)
    return step_from(torch.optim.RMSprop, p, state, grad, rates, **options)


def centered(p, v, m, buffer, grad, rates, alpha, eps, decay, momentum):
    """RMSprop from any state: where v < m^2, which PyTorch makes NaN, the variance is 0."""
    g = grad + decay * p
    v, m = alpha * v + (1 - alpha) * g * g, alpha * m + (1 - alpha) * g
    step = g / ((v - m * m).clamp(min=0).sqrt() + eps)
    if buffer is None:
        return p - rates[0] * step, v, m
    buffer = momentum * buffer + step
    return p - rates[0] * buffer, v, m, buffer


def adagrad(p, v, grad, rates, eps, decay):
    return step_from(
        torch.optim.Adagrad, p, dict(sum=v), grad, rates, eps=eps, weight_decay=decay
    )


def lion(p, m, grad, scale, rates, beta1, beta2, decay):
    """Algorithm 2 of Chen et al. (2023)."""
    g, rate = grad * scale, rates[0]
    update = torch.sign(beta1 * m + (1 - beta1) * g)
    return p - rate * (update + decay * p), beta2 * m + (1 - beta2) * g


def classes(a, b, weight=None, smoothing=0.0, ignore=-100, reduction="mean", by=F.cross_entropy):
    """With the classes on the last axis; real targets are probabilities."""
    last = a.dim() - 1
    options = dict(label_smoothing=smoothing) if by is F.cross_entropy else {}
    b = b.movedim(last, 1) if b.is_floating_point() else b.long()
    return by(
        a.movedim(last, 1), b, weight, ignore_index=ignore, reduction=reduction, **options
    )


def binary(a, b, reduction="mean", weight=None, pos_weight=None):
    return F.binary_cross_entropy_with_logits(
        a, b, weight=weight, pos_weight=pos_weight, reduction=reduction
    )


def reversed_scan(scan, axis):
    return lambda *x: scan(*(t.flip(axis) for t in x)).flip(axis)


def linear_scan(axis):
    def scan(a, b):
        y, out = 0, []
        for a_i, b_i in zip(a.unbind(axis), b.unbind(axis)):
            y = a_i * y + b_i
            out.append(y)
        return torch.stack(out, axis)

    return scan


def sum_to(x, like):
    return x.sum_to_size(like.shape)


def fold(windows, like, axis, size, step, dilation):
    """The gradient of unfold."""
    x = torch.zeros_like(like).requires_grad_()
    y = x.unfold(axis, dilation * (size - 1) + 1, step)[..., ::dilation]
    return torch.autograd.grad(y, x, windows, create_graph=True)[0]


FORMULAS = {
    # elementwise
    "neg": lambda a: -a,
    "abs": torch.abs,
    "square": torch.square,
    "sqrt": torch.sqrt,
    "reciprocal": torch.reciprocal,
    "exp": torch.exp,
    "log": torch.log,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda a: F.gelu(a, approximate="tanh"),
    "silu": F.silu,
    "affine": lambda a: 1.7 * a - 0.3,
    "scale": lambda a: -2.5 * a,
    "clamp": lambda a: a.clamp(-0.9, 1.1),
    "clamp_one_side": lambda a: a.clamp(min=0),
    "rsqrt": torch.rsqrt,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": lambda a: torch.log1p(0.45 * a),
    "tan": lambda a: torch.tan(0.6 * a),
    "asin": lambda a: torch.asin(0.45 * a),
    "acos": lambda a: torch.acos(0.45 * a),
    "atan": lambda a: torch.atan(2 * a),
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "asinh": torch.asinh,
    "acosh": lambda a: torch.acosh(a + 1),
    "atanh": lambda a: torch.atanh(0.45 * a),
    "erfc": torch.erfc,
    "log_sigmoid": F.logsigmoid,
    "softplus": F.softplus,
    "softplus_0": lambda a: F.softplus(0 * a),
    "softsign": F.softsign,
    "relu6": lambda a: F.relu6(5 * a),
    "leaky_relu": lambda a: F.leaky_relu(a, 0.1),
    "elu": lambda a: F.elu(a, 0.7),
    "selu": F.selu,
    "mish": F.mish,
    "hardsigmoid": lambda a: F.relu6(2 * a + 3) / 6,  # F.hardsigmoid rounds 1/6 to f32
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": torch.trunc,
    "sign": torch.sign,
    "fraction": lambda a: a - a.floor(),
    **{name: torch.pow for name in ("pow", "pow_row", "pow_whole")},
    **{
        name: (lambda exponent: lambda a: a.pow(exponent))(exponent)
        for name, exponent in {
            "pow_0": 0,
            "pow_1": 1,
            "pow_2": 2,
            "pow_3": 3,
            "pow_4": 4,
            "pow_half": 0.5,
            "pow_back_half": -0.5,
            "pow_back": -1,
            "pow_any": 2.7,
        }.items()
    },
    **{name: torch.atan2 for name in ("atan2", "atan2_row")},
    **{name: torch.logaddexp for name in ("logaddexp", "logaddexp_row")},
    "xlogy": torch.xlogy,
    **{name: lambda a, b: torch.fmod(3 * a, b) for name in ("fmod", "fmod_first")},
    "remainder": lambda a, b: torch.remainder(-3 * a, b),
    "remainder_first": lambda a, b: torch.remainder(3 * a, b),
    "floor_divide": lambda a, b: torch.div(3 * a, b, rounding_mode="floor"),
    "clamp_tensors": lambda a, b, c: torch.clamp(a, 0.3 * b, 0.3 * c + 0.6),
    "clamp_tensors_low": lambda a, b: torch.clamp(a, min=b),
    "clamp_tensors_high": lambda a, b: torch.clamp(a, max=b),
    "clamp_tensors_none": lambda a: a * 1,
    "clamp_tensors_ties": lambda a: torch.clamp(a, a.detach(), a.detach()),
    "lerp": torch.lerp,
    **{name: torch.logical_and for name in ("logical_and", "logical_and_ids")},
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "logical_not": torch.logical_not,
    "isnan": lambda a: torch.isnan(a.log()),
    "isinf": lambda a: torch.isinf(a.relu().log()),
    "isfinite": lambda a: torch.isfinite(1 / a.relu()),
    "exp_scalar": torch.exp,
    "exp_empty": torch.exp,
    "tanh_one": torch.tanh,
    "sigmoid_65": torch.sigmoid,
    "gelu_129": F.gelu,
    "swish_twice": F.silu,
    "mul_itself": lambda a: a * a,
    "add_itself": lambda a: a + a,
    "sub_itself": lambda a: a - a,
    **{
        name: torch.add
        for name in (
            "add",
            "add_row",
            "add_column",
            "add_outer",
            "add_scalar",
            "add_scalars",
            "add_middle",
            "add_empty",
        )
    },
    **{name: torch.sub for name in ("sub", "sub_outer")},
    **{name: torch.mul for name in ("mul", "mul_outer", "mul_scalar")},
    **{name: torch.div for name in ("div", "div_outer")},
    **{name: torch.maximum for name in ("maximum", "maximum_row")},
    **{name: torch.minimum for name in ("minimum", "minimum_column")},
    **{name: torch.eq for name in ("equal", "equal_ids")},
    **{name: torch.ne for name in ("not_equal", "not_equal_ids")},
    **{name: torch.lt for name in ("less", "less_ids")},
    "less_equal": torch.le,
    "greater": torch.gt,
    **{name: torch.ge for name in ("greater_equal", "greater_equal_ids")},
    **{
        name: lambda a, b, c: torch.where(a != 0, b, c)
        for name in ("where", "where_broadcast", "where_scalars")
    },
    "masked_fill": lambda a, b: a.masked_fill(b != 0, -3),
    "masked_fill_row": lambda a, b: a.masked_fill(b != 0, 0.5),
    "where_own_choice": F.relu,
    "where_ids": lambda a, b, c: torch.where(b > c, b, c),
    "add_ids": torch.add,
    "sub_ids": torch.sub,
    "mul_ids": torch.mul,
    "maximum_ids": torch.maximum,
    "minimum_ids": torch.minimum,
    "floor_divide_ids": lambda a, b: torch.floor_divide(a - 4, b - 7),
    "remainder_ids": lambda a, b: torch.remainder(a - 4, b - 7),
    "fmod_ids": lambda a, b: torch.fmod(a - 4, b - 7),
    "neg_ids": torch.neg,
    "abs_ids": lambda a: torch.abs(a - 4),
    "square_ids": torch.square,
    "sign_ids": lambda a: torch.sign(a - 4),
    "clamp_ids": lambda a, b: torch.clamp(a, b, torch.tensor(7)),
    "logical_not_ids": torch.logical_not,
    "full": lambda a: a * torch.full((3, 5), 2.5),
    "full_ids": lambda a: torch.full((3, 5), -7),
    "zeros": lambda a: a + torch.zeros(3, 5),
    "ones": lambda a: a * torch.ones(3, 5),
    "constant_array": lambda a: a + torch.tensor([[1 << 24], [-2], [3]]),
    "cast_real": lambda a: a * 1,
    "cast_to_ids": lambda a: a.detach().to(torch.int32),
    "cast_from_ids": lambda a: a.to(torch.float64),
    # reductions
    "sum_all": torch.sum,
    "sum_all_keep": lambda a: a.sum((0, 1), keepdim=True),
    "sum_rows": lambda a: a.sum(0),
    "sum_columns": lambda a: a.sum(1, keepdim=True),
    "sum_last": lambda a: a.sum(-1),
    "sum_middle": lambda a: a.sum(1),
    "sum_two": lambda a: a.sum((0, 2)),
    "sum_two_keep": lambda a: a.sum((0, 2), keepdim=True),
    "sum_scalar": torch.sum,
    "sum_one": lambda a: a.sum(0),
    "sum_empty": lambda a: a.sum(0),
    "sum_to_empty": lambda a: a.sum(-1),
    "mean_all": torch.mean,
    "mean_last": lambda a: a.mean(-1, keepdim=True),
    "mean_two": lambda a: a.mean((0, 1)),
    "square_sum": lambda a: a.square().sum(),
    "square_sum_scalar": lambda a: a.square(),
    "inverse_count": lambda a: torch.tensor(1 / (a.shape[0] * a.shape[2]), dtype=a.dtype),
    "max_all": torch.amax,
    "max_last": lambda a: a.amax(-1),
    "max_rows_keep": lambda a: a.amax(0, keepdim=True),
    "max_middle": lambda a: a.amax(1),
    "max_two": lambda a: a.amax((0, 2), keepdim=True),
    "argmax_last": lambda a: a.argmax(-1),
    "argmax_rows": lambda a: a.argmax(0),
    "argmax_middle": lambda a: a.argmax(1),
    "min_all": torch.amin,
    "min_last": lambda a: a.amin(-1),
    "min_two": lambda a: a.amin((0, 2), keepdim=True),
    "argmin_last": lambda a: a.argmin(-1),
    "argmin_rows": lambda a: a.argmin(0),
    "prod_all": torch.prod,
    "prod_last": lambda a: a.prod(-1, keepdim=True),
    "prod_rows": lambda a: a.prod(0),
    "prod_two": lambda a: a.prod(0, keepdim=True).prod(2, keepdim=True),
    "prod_zeros": lambda a, b: (a * b).prod(-1),
    "prod_empty": lambda a: a.prod(-1),
    "prod_scalar": torch.prod,
    "var_all": torch.var,
    "var_last": lambda a: a.var(-1, correction=0, keepdim=True),
    "var_two": lambda a: a.var((0, 2)),
    "std_last": lambda a: a.std(-1),
    "std_rows": lambda a: a.std(0, correction=0.5, keepdim=True),
    "std_of_equal": lambda a, b: (a * b).std(0, correction=0),
    "norm_1": lambda a: torch.linalg.vector_norm(a, 1, -1),
    "norm_2": lambda a: torch.linalg.vector_norm(a, 2, -1, keepdim=True),
    "norm_2_all": torch.linalg.vector_norm,
    "norm_inf": lambda a: torch.linalg.vector_norm(a, INFINITY, 0),
    "norm_least": lambda a: torch.linalg.vector_norm(a, -INFINITY, 0),
    "logsumexp": lambda a: a.logsumexp(-1),
    "logsumexp_two": lambda a: a.logsumexp((0, 2), keepdim=True),
    "logsumexp_large": lambda a: (a + 100).logsumexp(0),
    "any": lambda a: a.bool().any(-1),
    "any_rows": lambda a: a.bool().any(0, keepdim=True),
    "all": lambda a: a.bool().all(-1),
    "all_rows": lambda a: a.bool().all(0, keepdim=True),
    "cumsum": lambda a: a.cumsum(1),
    "cumsum_rows": lambda a: a.cumsum(0),
    "cumsum_middle": lambda a: a.cumsum(1),
    "cumsum_reverse": reversed_scan(lambda a: a.cumsum(1), 1),
    "cumsum_reverse_rows": reversed_scan(lambda a: a.cumsum(0), 0),
    "cumsum_vector": lambda a: a.cumsum(0),
    "cumsum_empty": lambda a: a.cumsum(0),
    "cumprod": lambda a: a.cumprod(1),
    "cumprod_rows": lambda a: a.cumprod(0),
    "cumprod_middle": lambda a: a.cumprod(1),
    "cumprod_reverse": reversed_scan(lambda a: a.cumprod(1), 1),
    "cumprod_zeros": lambda a, b: (a * b).cumprod(1),
    "cumprod_zeros_reverse": reversed_scan(lambda a, b: (a * b).cumprod(0), 0),
    "cumprod_empty": lambda a: a.cumprod(1),
    "linear_scan": linear_scan(1),
    "linear_scan_rows": linear_scan(0),
    "linear_scan_reverse": reversed_scan(linear_scan(2), 2),
    "linear_scan_zeros": lambda a, b, c: linear_scan(1)(a * c, b),
    "linear_scan_same": lambda a: linear_scan(1)(a, a),
    "sort": lambda a: a.sort(1)[0],
    "sort_descending": lambda a: a.sort(-1, descending=True)[0],
    "sort_rows": lambda a: a.sort(0)[0],
    "sort_middle": lambda a: a.sort(1, descending=True)[0],
    "sort_empty": lambda a: a.sort(0, descending=True)[0],
    "argsort": lambda a: a.argsort(1),
    "argsort_rows": lambda a: a.argsort(0, descending=True),
    "argsort_ties": lambda a: a.argsort(dim=1, stable=True),
    "argsort_ties_descending": lambda a: a.argsort(dim=0, stable=True, descending=True),
    "topk": lambda a: a.topk(2, 1)[0],
    "topk_smallest": lambda a: a.topk(3, -1, largest=False)[0],
    "topk_rows": lambda a: a.topk(2, 0)[0],
    "topk_middle": lambda a: a.topk(1, 1, largest=False)[0],
    "topk_all": lambda a: a.topk(5, 1)[0],
    "topk_none": lambda a: a.topk(0, 1)[0],
    "topk_indices": lambda a: a.topk(2, 1)[1],
    "topk_indices_ties": lambda a: a.argsort(dim=1, stable=True, descending=True)[:, :7],
    "fill": lambda a: torch.full_like(a, 2.5),
    "sum_to_row": sum_to,
    "sum_to_column": sum_to,
    "sum_to_scalar": sum_to,
    "sum_to_middle": sum_to,
    "sum_to_same": sum_to,
    "broadcast_to": lambda a, b: a.broadcast_to(b.shape),
    "broadcast_to_scalar": lambda a, b: a.broadcast_to(b.shape),
    "broadcast_to_same": lambda a, b: a * 1,
    # products
    **{
        name: torch.matmul
        for name in (
            "matmul",
            "matmul_one",
            "matmul_dot",
            "matmul_outer",
            "matmul_batch",
            "matmul_shared",
            "matmul_shared_left",
            "matmul_broadcast",
            "matmul_no_rows",
            "matmul_no_depth",
        )
    },
    "matmul_transposed": lambda a, b: a @ b.T,
    "matmul_both_transposed": lambda a, b: a.T @ b.T,
    "matmul_gram": lambda a: a.T @ a,
    **{name: lambda a, b, c: a @ b + c for name in ("gemm_add", "gemm_batch", "gemm_no_depth")},
    **{name: lambda a, b, c: a @ b.mT + c for name in ("gemm_bias", "gemm_batch_b")},
    **{name: lambda a, b, c: a.mT @ b + c for name in ("gemm_scalar", "gemm_batch_a")},
    "gemm_column": lambda a, b, c: a.T @ b.T + c,
    "gemm_turned_addend": lambda a, b, c: a @ b + c.T,
    "gemm_on_itself": lambda a: a @ a + a,
    "gemm_on_its_computed_self": lambda a, b: a.square() @ b + a.square(),
    "matmul_shares": lambda a, b, c: a @ b + a @ c * a,
    "linear_shares": lambda a, b, c: a.square() @ (b + c).T,
    "matmul_heads": lambda a, b: a.permute(0, 2, 1, 3) @ b.permute(0, 2, 3, 1),
    **{
        name: (lambda formula: lambda *x: torch.einsum(formula, *x))(formula)
        for name, formula in {
            "einsum_dots": "...ij,...jk->...ik",
            "einsum_dots_broadcast": "...ij,...kj->...ik",
            "einsum_dots_implicit": "j...,...j",
            "einsum_dots_moved": "...i->i...",
            "einsum_dots_summed": "...i->i",
            "einsum_dots_of_none": "...i,i...->...i",
            "einsum_dots_ones": "...i,...i->...",
            "einsum_dots_diagonal": "...ii->...i",
            "einsum_product": "ij,jk->ik",
            "einsum_implicit": "ij,jk",
            "einsum_implicit_order": "ba,ca",
            "einsum_transposed": "ij,kj->ik",
            "einsum_spaces": "ij,kj->ik",
            "einsum_kept": "ij,kj->ikj",
            "einsum_outer": "ij,kl->ijkl",
            "einsum_scores": "nqhd,nkhd->nhqk",
            "einsum_values": "nhqk,nkhd->nqhd",
            "einsum_hadamard": "ij,ij->ij",
            "einsum_hadamard_turned": "ij,ji->ij",
            "einsum_dot": "i,i->",
            "einsum_summed_alone": "ij,k->k",
            "einsum_batch_product": "bij,bjk->bik",
            "einsum_bilinear": "bi,ij,bj->b",
            "einsum_chain": "ab,bc,cd->ad",
            "einsum_four": "a,b,c,d->dcba",
            "einsum_transpose": "ij->ji",
            "einsum_sum": "ij->j",
            "einsum_sum_all": "ij->",
            "einsum_trace": "ii",
            "einsum_diagonal": "ii->i",
            "einsum_batch_diagonal": "bii->ib",
            "einsum_diagonal_product": "ii,ij->j",
        }.items()
    },
    "outer": torch.outer,
    "outer_batch": lambda a, b: a[..., None] * b[..., None, :],
    "vecdot": torch.linalg.vecdot,
    "einsum_same_twice": lambda a: torch.einsum("ij,kj->ik", a, a),
    # shape
    "reshape": lambda a: a.reshape(5, 3),
    "reshape_rest": lambda a: a.reshape(2, -1),
    "reshape_flat": torch.flatten,
    "reshape_split": lambda a: a.reshape(2, 3, 2, -1),
    "reshape_merge": lambda a: a.reshape(-1, 4),
    "reshape_scalar": lambda a: a.reshape(()),
    "reshape_like": lambda a, b: a.reshape(b.shape),
    "permute": lambda a: a.permute(2, 0, 1),
    "permute_heads": lambda a: a.permute(0, 2, 1, 3),
    "transpose": lambda a: a.transpose(0, 1),
    "transpose_ends": lambda a: a.transpose(0, -1),
    "transpose_reshape": lambda a: a.transpose(0, 1).reshape(-1),
    "squeeze": lambda a: a.squeeze(1),
    "squeeze_two": lambda a: a.squeeze((0, 2)),
    "unsqueeze": lambda a: a.unsqueeze(1),
    "unsqueeze_two": lambda a: a[None, :, :, None],
    "slice": lambda a: a[:, 1:4],
    "slice_rows": lambda a: a[1:],
    "slice_negative": lambda a: a[:, -3:-1],
    "slice_all": lambda a: a * 1,
    "slice_middle": lambda a: a[:, 0:1],
    "slice_thrice": lambda a: a[:, 0:2] * a[:, 2:4] * a[:, 1:3],
    "slice_and_whole": lambda a: a.square().sum(0) + a[1:2],
    "slice_empty": lambda a: a[:, 2:2],
    "slice_twice": lambda a: a[0:2] + a[1:3],
    "slice_step": lambda a: a[:, 1::2],
    "slice_step_rows": lambda a: a[0:-1:3],
    "slice_step_middle": lambda a: a[:, -4::2],
    "slice_step_far": lambda a: a[:, ::9],
    "slice_step_one": lambda a: a[:, 1:],
    "slice_step_empty": lambda a: a[:, 2:2:3],
    "slice_step_twice": lambda a: a[:, ::4],
    "flip": lambda a: a.flip(-1),
    "flip_two": lambda a: a.flip(0, 2),
    "flip_all": lambda a: a.flip(0, 1, 2),
    "flip_empty": lambda a: a.flip(0),
    "flip_times": lambda a, b: a.flip(0) @ b.flip(0),
    "flip_of_transposed": lambda a: a.T.flip(0),
    "flip_sum": lambda a: a.sum(0).flip(0),
    "flip_reshape": lambda a: a.flip(0).flatten(),
    "flip_softmax": lambda a: F.softmax(a.flip(0), -1),
    "flip_back": lambda a: a.flip(-1) + a,
    "flip_twice": lambda a: a.flip(0),
    "flip_sliced": lambda a: a.flip(1)[:, 1:],
    "flip_diagonal": lambda a: a.flip(1).diagonal(2),
    "flip_concat": lambda a, b: torch.cat([a, b]).flip(0),
    "diagonal": lambda a: a.diagonal(),
    "diagonal_above": lambda a: a.diagonal(2),
    "diagonal_below": lambda a: a.diagonal(-1, -2, -1),
    "diagonal_turned": lambda a: a.diagonal(1, 2, 0),
    "diagonal_beyond": lambda a: a[0:0, 0],
    "expand": lambda a: a.expand(2, 3, 4),
    "expand_scalar": lambda a: a.expand(3, 2),
    "expand_same": lambda a: a * 1,
    "roll": lambda a: a.roll(2, 1),
    "roll_back": lambda a: a.roll(-1, 0),
    "roll_round": lambda a: a.roll(11, 1),
    "roll_empty": lambda a: a.roll(1, 0),
    "tile": lambda a: a.tile(2, 3),
    "tile_one": lambda a: a.tile(1, 2, 1),
    "repeat_interleave": lambda a: a.repeat_interleave(3, 1),
    "repeat_interleave_rows": lambda a: a.repeat_interleave(2, 0),
    "flatten": lambda a: a.flatten(1, 2),
    "flatten_all": torch.flatten,
    "stack": lambda a, b: torch.stack((a, b)),
    "stack_last": lambda a, b: torch.stack((a, b, a), -1),
    "stack_many": lambda a: torch.stack([a * i for i in range(40)]),
    "split_parts": lambda a: torch.cat(a.split((2, 0, 3), 1)[::-1], 1),
    "chunk": lambda a: math.prod(a.chunk(3, -1)),
    "tril": torch.tril,
    "tril_above": lambda a: a.tril(1),
    "triu": torch.triu,
    "triu_below": lambda a: a.triu(-2),
    "pad": lambda a: F.pad(a, (2, 1), value=0.5),
    "pad_rows": lambda a: F.pad(a, (0, 0, 1, 0)),
    "pad_nothing": lambda a: a * 1,
    "concat": lambda a, b: torch.cat((a, b)),
    "concat_last": lambda a, b, c: torch.cat((a, b, c), -1),
    "concat_middle": lambda a, b: torch.cat((a, b), 1),
    "concat_itself": lambda a: torch.cat((a, a)),
    "concat_one": lambda a: a * 1,
    "concat_empty": lambda a, b: torch.cat((a, b)),
    "copy": lambda a: a * 1,
    "copy_ids": lambda a: a * 1,
    "detach_ids": lambda a: a * 1,
    "detach": lambda a, b: a * b,
    "unfold": lambda a: a.unfold(1, 3, 1),
    "unfold_step": lambda a: a.unfold(0, 2, 2),
    "unfold_apart": lambda a: a.unfold(0, 2, 3),
    "unfold_dilated": lambda a: a.unfold(-2, 5, 2)[..., ::2],
    "unfold_far": lambda a: a.unfold(0, 2, 4),
    "unfold_single": lambda a: a.unfold(0, 1, 2),
    "unfold_whole": lambda a: a.unfold(1, 4, 1),
    "unfold_ones": lambda a: a.unfold(0, 1, 1),
    "unfold_twice": lambda a: a.unfold(1, 2, 1).unfold(2, 3, 2),
    "unfold_of_an_unfold": lambda a: a.unfold(0, 3, 1).unfold(1, 2, 1),
    "unfold_in_place": lambda a: (-a).unfold(0, 3, 1).exp(),
    "unfold_and_itself": lambda a: (-a).unfold(0, 3, 1).exp()
    * ((-a).unfold(0, 3, 1) + a.square().sum()),
    "unfold_product": lambda a, b: a.unfold(0, 5, 1) @ b.unfold(0, 4, 1),
    "unfold_gram": lambda a: a.unfold(0, 5, 1).T @ a.unfold(0, 5, 1),
    "unfold_sums": lambda a: a.unfold(1, 3, 1).sum(1),
    "unfold_reshaped": lambda a: a.unfold(0, 3, 1).reshape(-1),
    "unfold_ids": lambda a: a.unfold(0, 3, 2),
    "fold": lambda a, b: fold(a, b, 1, 3, 1, 1),
    "fold_step": lambda a, b: fold(a, b, 0, 2, 3, 1),
    "fold_dilated": lambda a, b: fold(a, b, -1, 3, 2, 2),
    # index
    **{
        name: lambda a, b: F.embedding(b, a)
        for name in ("embedding", "embedding_repeated", "embedding_one", "embedding_none")
    },
    **{
        name: (lambda axis: lambda a, b: torch.take_along_dim(a, b, axis))(axis)
        for name, axis in {
            "gather": 1,
            "gather_one": -1,
            "gather_rows": 0,
            "gather_middle": 1,
            "gather_broadcast": 1,
            "gather_broadcast_row": 1,
            "gather_vector": 0,
            "gather_none": 1,
            "gather_ids": 1,
        }.items()
    },
    "scatter_add": lambda a, b, c: a.scatter_add(1, b, c),
    "scatter_add_rows": lambda a, b, c: a.scatter_add(0, b, c),
    "scatter_add_middle": lambda a, b, c: a.scatter_add(-2, b, c),
    "scatter_add_itself": lambda a, b: a.scatter_add(1, b, a),
    "index_select": lambda a, b: a.index_select(1, b),
    "index_select_rows": lambda a, b: a.index_select(0, b),
    "index_select_middle": lambda a, b: a.index_select(-2, b),
    "index_add": lambda a, b, c: a.index_add(1, b, c),
    "index_add_rows": lambda a, b, c: a.index_add(0, b, c),
    "one_hot": lambda a: F.one_hot(a, 5),
    "one_hot_outside": lambda a: F.one_hot(a, 5)[..., :3],
    "arange": lambda a: torch.arange(a.shape[1]),
    "arange_rows": lambda a: torch.arange(a.shape[0]),
    "embedding_tied": lambda a, b: F.embedding(b, a) @ a.T,
    "embedding_both": lambda a, b, c: F.embedding(b, a) * F.embedding(c, a),
    # normalising
    "softmax_own_mask": lambda a: open_softmax(F.relu(a), a > 0),
    "layer_norm_own_gain": lambda a: F.layer_norm(-a, a.shape, -a, -a),
    "layer_norm_own_gain_129": lambda a: F.layer_norm(-a, a.shape, -a, -a),
    **{name: open_softmax for name in ("softmax", "softmax_one", "softmax_vector")},
    **{
        name: lambda a, b: open_softmax(a, b != 0)
        for name in ("softmax_mask", "softmax_mask_row", "softmax_mask_batch", "softmax_shut")
    },
    **{
        name: lambda a: open_softmax(a, causal(a))
        for name in ("softmax_causal", "softmax_causal_long", "softmax_causal_short")
    },
    "softmax_causal_mask": lambda a, b: open_softmax(a, causal(a) & (b != 0)),
    **{
        name: lambda a: F.log_softmax(a, -1)
        for name in ("log_softmax", "log_softmax_one", "log_softmax_batch")
    },
    "softmax_rows": lambda a: F.softmax(a, 0),
    "softmax_middle": lambda a: F.softmax(a, 1),
    "softmax_named_last": lambda a: F.softmax(a, 2),
    "log_softmax_rows": lambda a: F.log_softmax(a, -2),
    "log_softmax_middle": lambda a: F.log_softmax(a, 1),
    **{
        name: lambda a, b, c: F.layer_norm(a, a.shape[-1:], b, c)
        for name in ("layer_norm", "layer_norm_batch", "layer_norm_one_row")
    },
    "layer_norm_over_two": lambda a, b, c: F.layer_norm(a, a.shape[1:], b, c),
    "layer_norm_over_channels": lambda a, b, c: F.layer_norm(a.mT, a.shape[1:2], b, c).mT,
    "layer_norm_over_all": lambda a: F.layer_norm(a, a.shape),
    "group_norm": lambda a, b, c: F.group_norm(a, 2, b, c),
    "group_norm_plain": lambda a: F.group_norm(a, 1, eps=0.1),
    "group_norm_image": lambda a, b: F.group_norm(a, 2, b),
    "group_norm_each": lambda a, b: F.group_norm(a, 3, None, b),
    "is_training": lambda a: torch.tensor(0),
    "is_training_not": lambda a: a * 0,
    "is_training_too": lambda a: a * 1,
    "batch_norm": lambda a, b, c, d, e: F.batch_norm(a, b.clone(), c.clone(), d, e, True),
    "batch_norm_image": lambda a, b, c, d: F.batch_norm(
        a, b.clone(), c.clone(), d, None, True, eps=0.1
    ),
    "batch_norm_plain": lambda a, b: F.batch_norm(a, None, None, None, b, True),
    "batch_norm_always": lambda a: F.batch_norm(a, None, None, None, None, True),
    "batch_norm_evaluated": lambda a, b, c, d, e: (a - b[:, None])
    / (c[:, None] + 1e-5).sqrt()
    * d[:, None]
    + e[:, None],
    "batch_statistics": lambda a: a.mean((0, 2)),
    "batch_norm_statistics": lambda a, b, c: a.mean((0, 2)) + 0.3 * a.var((0, 2), correction=0),
    "layer_norm_plain": lambda a: F.layer_norm(a, a.shape[-1:]),
    "layer_norm_no_bias": lambda a, b: F.layer_norm(a, a.shape[-1:], b),
    "layer_norm_no_weight": lambda a, b: F.layer_norm(a, a.shape[-1:], None, b),
    "layer_norm_wide_eps": lambda a, b, c: F.layer_norm(a, a.shape[-1:], b, c, 0.5),
    **{
        name: lambda a, b: F.rms_norm(a, a.shape[-1:], b, 1e-5)
        for name in ("rms_norm", "rms_norm_batch", "rms_norm_one_row")
    },
    "rms_norm_plain": lambda a: F.rms_norm(a, a.shape[-1:], None, 1e-5),
    "rms_norm_wide_eps": lambda a, b: F.rms_norm(a, a.shape[-1:], b, 0.5),
    **{
        name: lambda a: F.rms_norm(-a, a.shape, -a, 1e-5)
        for name in ("rms_norm_own_gain", "rms_norm_own_gain_129")
    },
    **{
        name: lambda a, b, base=base, pairs=pairs: rotary(a, b, base, pairs)
        for name, base, pairs in (
            ("rotary", 10000, False),
            ("rotary_interleaved", 10000, True),
            ("rotary_heads", 500, False),
            ("rotary_batch", 500, False),
            ("rotary_batch_interleaved", 500, True),
            ("rotary_row", 10000, False),
            ("rotary_one_step", 10000, True),
        )
    },
    "rotary_table": lambda a: rotary_table(a, 6, 10000, False),
    "rotary_table_interleaved": lambda a: rotary_table(a, 66, 500, True),
    **{name: F.scaled_dot_product_attention for name in ("attention", "attention_3d")},
    **{
        name: lambda a, b, c: F.scaled_dot_product_attention(a, b, c, enable_gqa=True)
        for name in ("attention_grouped", "attention_one_key_head")
    },
    "attention_window": lambda a, b, c: attend(a, b, c, causal=True, window=2),
    "attention_window_long": lambda a, b, c, d: attend(a, b, c, d, causal=True, window=3),
    "attention_window_short": lambda a, b, c: attend(a, b, c, causal=True, window=2),
    "attention_window_ahead": lambda a, b, c: attend(a, b, c, window=1),
    "attention_window_additive": lambda a, b, c, d: attend(a, b, c, window=2, bias=d),
    "attention_weights_window": lambda a, b: weights(
        a, b, causal(a @ b.transpose(-1, -2)).triu(b.shape[-2] - a.shape[-2] - 1)
    ),
    "attention_grouped_causal": lambda a, b, c, d: attend(
        a, b.repeat_interleave(3, 1), c.repeat_interleave(3, 1), d, causal=True
    ),
    "attention_weights_grouped": lambda a, b: weights(a, b.repeat_interleave(2, 1)),
    "attention_scale": lambda a, b, c: F.scaled_dot_product_attention(a, b, c, scale=0.7),
    **{
        name: lambda a, b, c: attend(a, b, c, causal=True)
        for name in ("attention_causal", "attention_causal_long", "attention_causal_short")
    },
    **{
        name: attend
        for name in (
            "attention_mask_ts",
            "attention_mask_keys",
            "attention_mask_bts",
            "attention_mask_full",
            "attention_shut",
        )
    },
    "attention_mask_causal": lambda a, b, c, d: attend(a, b, c, d, causal=True),
    "attention_additive": lambda a, b, c, d: F.scaled_dot_product_attention(a, b, c, attn_mask=d),
    "attention_same": lambda a: F.scaled_dot_product_attention(a, a, a),
    "attention_heads": lambda a, b, c: F.scaled_dot_product_attention(
        *(x.permute(0, 2, 1, 3) for x in (a, b, c))
    ),
    "attention_weights": weights,
    "attention_weights_mask": lambda a, b, c: weights(
        a, b, causal(a @ b.mT) & (c.unsqueeze(1) != 0)
    ),
    "attention_weights_additive": lambda a, b, c: weights(a, b, bias=c),
    # convolution
    **{
        f"conv2d{name}": (lambda o: lambda a, b, c=None: F.conv2d(a, b, c, **o))(options)
        for name, options in {
            "": {},
            "_plain": {},
            "_padded": {"padding": 1},
            "_far_padded": {"padding": (3, 2)},
            "_stride": {"stride": 2},
            "_stride_padded": {"stride": 2, "padding": 1},
            "_far_stride": {"stride": (3, 4)},
            "_dilated": {"dilation": (2, 3)},
            "_uneven": {"stride": (3, 2), "padding": (0, 2), "dilation": (2, 3)},
            "_groups": {"groups": 2},
            "_groups_stride": {"stride": (2, 1), "padding": 1, "groups": 3},
            "_depthwise": {"padding": 1, "groups": 3},
            "_point": {},
            "_point_stride": {"stride": (2, 3)},
            "_whole": {},
            "_no_images": {},
        }.items()
    },
    "conv2d_itself": lambda a: F.conv2d(a, a, padding=1),
    "conv1d": F.conv1d,
    "conv1d_options": lambda a, b: F.conv1d(a, b, None, 2, 2, 2, 2),
    "conv1d_one": F.conv1d,
    **{
        f"conv_transpose2d{name}": (
            lambda o: lambda a, b, c=None: F.conv_transpose2d(a, b, c, **o)
        )(options)
        for name, options in {
            "": {},
            "_plain": {"padding": 1},
            "_stride": {"stride": (2, 3), "padding": (1, 0)},
            "_output": {"stride": (2, 3), "padding": 1, "output_padding": (1, 2)},
            "_gaps": {"stride": 3},
            "_groups": {"stride": (2, 1), "groups": 2},
            "_dilated": {
                "stride": (2, 1),
                "padding": (1, 2),
                "dilation": (3, 2),
                "output_padding": (1, 0),
            },
            "_cropped": {"padding": 2},
        }.items()
    },
    "conv_transpose1d": F.conv_transpose1d,
    "conv_transpose1d_options": lambda a, b: F.conv_transpose1d(a, b, None, 3, 1, 2, 2, 2),
    **{
        f"max_pool{name}": (lambda f, o: lambda a: f(a, **o))(function, options)
        for name, function, options in (
            ("2d", F.max_pool2d, {"kernel_size": 2}),
            ("2d_overlap", F.max_pool2d, {"kernel_size": (3, 2), "stride": 1}),
            ("2d_padded", F.max_pool2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
            (
                "2d_dilated",
                lambda a, **o: F.max_pool2d(F.pad(a, (2, 2), value=-INFINITY), **o),
                {"kernel_size": (2, 3), "stride": (1, 2), "dilation": (3, 2)},
            ),
            ("2d_gaps", F.max_pool2d, {"kernel_size": (1, 2), "stride": 3}),
            ("2d_whole", F.max_pool2d, {"kernel_size": (4, 3)}),
            ("2d_no_images", F.max_pool2d, {"kernel_size": 2}),
            ("1d", F.max_pool1d, {"kernel_size": 3}),
            (
                "1d_options",
                F.max_pool1d,
                {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2},
            ),
        )
    },
    **{
        f"avg_pool{name}": (lambda f, o: lambda a: f(a, **o))(function, options)
        for name, function, options in (
            ("2d", F.avg_pool2d, {"kernel_size": 2}),
            ("2d_overlap", F.avg_pool2d, {"kernel_size": (3, 2), "stride": (1, 2)}),
            ("2d_padded", F.avg_pool2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
            (
                "2d_exclude",
                F.avg_pool2d,
                {"kernel_size": (3, 2), "stride": 2, "padding": 1, "count_include_pad": False},
            ),
            ("2d_no_images", F.avg_pool2d, {"kernel_size": 2}),
            ("1d", F.avg_pool1d, {"kernel_size": 3}),
            (
                "1d_options",
                F.avg_pool1d,
                {"kernel_size": 4, "stride": 2, "padding": 2, "count_include_pad": False},
            ),
        )
    },
    **{
        name: (
            lambda axis, how: lambda a, b, c: torch.scatter_reduce(
                a, axis, expanded(b, c), c, how, include_self=True
            )
        )(axis, how)
        for name, axis, how in (
            ("scatter_max", 1, "amax"),
            ("scatter_max_rows", 0, "amax"),
            ("scatter_min", 1, "amin"),
            ("scatter_mul", 1, "prod"),
            ("scatter_mul_rows", 0, "prod"),
        )
    },
    "scatter_max_ties": lambda a, b, c: torch.scatter_reduce(
        a.round(), 1, b, c.round(), "amax", include_self=True
    ),
    "scatter_mul_zeros": lambda a, b, c, d: torch.scatter_reduce(
        a, 1, b, c * d, "prod", include_self=True
    ),
    "scatter": lambda a, b, c: last(a, 1, b, c),
    "scatter_rows": lambda a, b, c: last(a, 0, expanded(b, c), c),
    "scatter_itself": lambda a, b: last(a, 1, b, a),
    "scatter_none": lambda a, b, c: a * 1,
    "scatter_ids": lambda a, b, c: last(a, 1, expanded(b, c), c),
    "index_copy": lambda a, b, c: last(a, 1, expanded(b, c), c),
    **{name: segment_softmax for name in ("segment_softmax", "segment_softmax_heads")},
    "segment_softmax_far": lambda a, b, c: segment_softmax(1e4 * a, b, c),
    # resized
    "resize_nearest": lambda a: resized(a, 1, 7, "nearest"),
    "resize_nearest_down": lambda a: resized(a, 1, 3, "nearest"),
    "resize_exact": lambda a: resized(a, 1, 3, "nearest-exact"),
    "resize_exact_up": lambda a: resized(a, 0, 9, "nearest-exact"),
    "resize_linear": lambda a: resized(a, 1, 7, "bilinear", False),
    "resize_linear_down": lambda a: resized(a, 0, 3, "bilinear", False),
    "resize_linear_corners": lambda a: resized(a, 1, 7, "bilinear", True),
    "resize_linear_one": lambda a: resized(a, 1, 1, "bilinear", True),
    "resize_linear_from_one": lambda a: resized(a, 1, 3, "bilinear", True),
    "resize_cubic": lambda a: resized(a, 1, 7, "bicubic", False),
    "resize_cubic_down": lambda a: resized(a, 1, 3, "bicubic", False),
    "resize_cubic_corners": lambda a: resized(a, 1, 9, "bicubic", True),
    "resize_cubic_same": lambda a: a * 1,
    "resize_like": lambda a, b: resized(a, 1, b.shape[1], "bilinear", False),
    "resize_by": lambda a: F.interpolate(a[None], scale_factor=2.3, mode="linear")[0],
    "resize_by_half": lambda a: F.interpolate(a[None], scale_factor=0.5, mode="nearest")[0],
    "interpolate": lambda a: F.interpolate(a, (5, 3), mode="bilinear"),
    "interpolate_cubic": lambda a: F.interpolate(a, (5, 6), mode="bicubic", align_corners=True),
    "interpolate_volume": lambda a: F.interpolate(
        a, (3, 3, 5), mode="trilinear", align_corners=True
    ),
    **{
        name: (lambda f, o: lambda a: f(a, ceil_mode=True, **o))(function, options)
        for name, function, options in (
            ("max_pool2d_ceil", F.max_pool2d, {"kernel_size": (2, 3), "stride": 2}),
            (
                "max_pool2d_ceil_padded",
                F.max_pool2d,
                {"kernel_size": 3, "stride": (2, 3), "padding": 1},
            ),
            (
                "max_pool2d_ceil_outside",
                F.max_pool2d,
                {"kernel_size": (1, 2), "stride": 3, "padding": (0, 1)},
            ),
            (
                "max_pool2d_ceil_dilated",
                F.max_pool2d,
                {"kernel_size": (2, 3), "stride": 2, "dilation": 2},
            ),
            ("max_pool1d_ceil", F.max_pool1d, {"kernel_size": 3, "stride": 2}),
            ("avg_pool2d_ceil", F.avg_pool2d, {"kernel_size": (2, 3), "stride": 2}),
            (
                "avg_pool2d_ceil_padded",
                F.avg_pool2d,
                {"kernel_size": 3, "stride": (2, 3), "padding": 1},
            ),
            (
                "avg_pool2d_ceil_exclude",
                F.avg_pool2d,
                {"kernel_size": 3, "stride": (2, 3), "padding": 1, "count_include_pad": False},
            ),
            ("avg_pool1d_ceil", F.avg_pool1d, {"kernel_size": 4, "stride": 3, "padding": 2}),
        )
    },
    # signals
    "pad_reflect": lambda a: F.pad(a.mT, (3, 2), mode="reflect").mT,
    "pad_reflect_after": lambda a: F.pad(a, (0, 1), mode="reflect"),
    "stft": lambda a: parts(stft(a, 8, 3, torch.hann_window(8, dtype=torch.double))),
    "stft_center": lambda a: parts(stft(a, 8, 2, torch.hann_window(8, dtype=torch.double), True)),
    "stft_hamming": lambda a: parts(stft(a, 9, 4, torch.hamming_window(5, dtype=torch.double), True)),
    "stft_plain": lambda a: parts(stft(a[0], 6, 6, torch.ones(6)))[None],
    "power_spectrum": lambda a: power(stft(a, 16, 4, torch.hann_window(16, dtype=torch.double), True)),
    "mel_filters": lambda a: mel_filters(16000, 128, 9) @ a,
    "mel_filters_htk": lambda a: mel_filters(8000, 64, 5, 100, 3800, True, True) @ a,
    "log_mel_spectrogram": lambda a: log_mel_spectrogram(a, 20),
    # bits: int64 here is i32 there
    "bitwise_and": lambda a, b: (a - 40) & b,
    "bitwise_or": lambda a, b: (a - 40) | b,
    "bitwise_xor": lambda a, b: (a - 40) ^ (b - 50),
    "bitwise_not": lambda a: ~(a - 40),
    "bitwise_left_shift": lambda a, b: (a - 40).int() << (b - 4).int(),
    "bitwise_right_shift": lambda a, b: (a - 400).int() >> (b - 4).int(),
    "bitwise_right_shift_logical": lambda a, b: shifted((a - 400), b - 4),
    "bitwise_and_itself": lambda a: a,
    # masks of integers
    "where_id_mask": lambda a, b, c: torch.where(a != 0, b, c),
    "where_id_mask_of_ids": lambda a, b, c: torch.where(a != 1, b, c),
    "masked_fill_id_mask": lambda a, b: a.masked_fill(b != 0, -3),
    "softmax_id_mask": lambda a, b: open_softmax(a, causal(a) & (b != 0)),
    "attention_id_mask": attend,
    "attention_weights_id_mask": lambda a, b, c: weights(a, b, (c != 0).unsqueeze(1)),
    "any_ids": lambda a: (a != 0).any(-1),
    "all_ids": lambda a: (a != 0).all(-1),
    # sizes
    "size_of": lambda a: torch.tensor(a.size(1)),
    "size_of_last": lambda a: torch.tensor(a.size(-1)),
    "count_of": lambda a: torch.tensor(a.size(0) * a.size(2)),
    "count_of_ids": lambda a: torch.tensor(a.numel()),
    "count_of_none": lambda a: torch.tensor(1),
    # training
    "cross_entropy": loss,
    "cross_entropy_nll": loss,
    "cross_entropy_one": loss,
    "cross_entropy_count": lambda a, b: (b != 2).sum(),
    "cross_entropy_smoothed": lambda a, b: loss(a, b, 0.1),
    "cross_entropy_batch": lambda a, b: loss(a, b, 0.2),
    "cross_entropy_ignored": lambda a, b: loss(a, b, 0.1, 1),
    "cross_entropy_none": lambda a, b: loss(a, b, 0.1, 0),
    "cross_entropy_over": lambda a, b: everything(a.movedim(1, -1), b),
    "cross_entropy_over_first": lambda a, b: F.cross_entropy(a.T, b, reduction="sum"),
    "cross_entropy_all": everything,
    "dropout_off": lambda a: F.dropout(a, 0.4, training=False),
    "cache": lambda a: a * 1,
    "check_finite": lambda a: a * 1,
    "assign": lambda a, b: (b,),
    "assign_computed": lambda a, b: (a + b,),
    "sgd_step": lambda a, b, c, d: sgd(a, None, b, c, d, 0, 0),
    "sgd_momentum": lambda a, b, c, d, e: sgd(a, b, c, d, e, 0.9, 0.1),
    # losses of nn
    "mse_loss": F.mse_loss,
    "mse_loss_sum": lambda a, b: F.mse_loss(a, b.expand_as(a), reduction="sum"),
    "mse_loss_none": lambda a, b: F.mse_loss(a, b, reduction="none"),
    "mse_loss_batch": lambda a, b: F.mse_loss(a, b, reduction="sum") / a.shape[0],
    "l1_loss": F.l1_loss,
    "l1_loss_none": lambda a, b: F.l1_loss(a, b, reduction="none"),
    "smooth_l1_loss": F.smooth_l1_loss,
    "smooth_l1_half": lambda a, b: F.smooth_l1_loss(a, b, reduction="none", beta=0.5),
    "smooth_l1_zero": lambda a, b: F.smooth_l1_loss(a, b, reduction="sum", beta=0.0),
    "huber_loss": lambda a, b: F.huber_loss(a, b, delta=0.65),
    "huber_loss_none": lambda a, b: F.huber_loss(a, b, reduction="none"),
    "kl_div": lambda a, b: F.kl_div(a, b, reduction="batchmean"),
    "kl_div_none": lambda a, b: F.kl_div(a, b, reduction="none"),
    "kl_div_log": lambda a, b: F.kl_div(a, b, reduction="mean", log_target=True),
    "bce_logits": binary,
    "bce_logits_none": lambda a, b: binary(a, b, "none"),
    "bce_logits_weights": lambda a, b, c, d: binary(a, b, "mean", c, d),
    "cosine_similarity": lambda a, b: F.cosine_similarity(a, b, -1),
    "cosine_similarity_first": lambda a, b: F.cosine_similarity(a, b, 0),
    "nll_loss": lambda a, b: classes(a, b, by=F.nll_loss),
    "nll_loss_weights": lambda a, b, c: classes(a, b, c, 0, 1, by=F.nll_loss),
    "nll_loss_none": lambda a, b, c: classes(a, b, c, 0, 1, "none", F.nll_loss),
    "cross_entropy_loss": classes,
    "cross_entropy_loss_smoothed": lambda a, b: classes(a, b, None, 0.1, 1),
    "cross_entropy_loss_sum": lambda a, b: classes(a, b, None, 0.1, 1, "sum"),
    "cross_entropy_loss_none": lambda a, b: classes(a, b, None, 0.1, 1, "none"),
    "cross_entropy_loss_weights": classes,
    "cross_entropy_loss_all": lambda a, b, c: classes(a, b, c, 0.2, 1),
    "cross_entropy_loss_each": lambda a, b, c: classes(a, b, c, 0.2, 1, "none"),
    "cross_entropy_loss_soft": lambda a, b, c: classes(a, b, c, 0.1),
    "cross_entropy_loss_soft_none": lambda a, b: classes(a, b, reduction="none"),
    "sgd_nesterov": lambda a, b, c, d, e: sgd(a, b, c, d, e, 0.9, 0.1, 0, True),
    # the second rate is a factor of the dampening
    "sgd_dampened": lambda a, b, c, d, e: sgd(a, b, c, d, e, 0.9, 0.1, 0.25 * e[1].item()),
    "rmsprop_step": lambda a, b, c, d: rmsprop(a, b, None, c, d, 0.9, 1e-8, 0.1),
    "rmsprop_momentum": lambda a, b, c, d, e: rmsprop(a, b, c, d, e, 0.9, 1e-8, 0.1, 0.8),
    "rmsprop_centered": lambda a, b, c, d, e: centered(a, b, c, None, d, e, 0.5, 0.1, 0, 0),
    "rmsprop_all": lambda *x: centered(*x, 0.9, 0.1, 0.1, 0.8),
    "adagrad_step": lambda *x: adagrad(*x, 1e-10, 0.1),
    "lion_step": lambda *x: lion(*x, 0.9, 0.98, 0.1),
    "lion_sign": lambda *x: lion(*x, 0.0, 0.0, 0.0),
    "adam_step": lambda *x: adam(*x, 0.9, 0.98, 1e-8, 0.1, False),
    "adamw_step": lambda *x: adam(*x, 0.9, 0.999, 1e-8, 0.1, True),
}


def record(name, formula, given):
    """The entries of one row."""
    operands, asked, i = [], [], 0
    while f"{name}/x{i}" in given:
        x = given[f"{name}/x{i}"]
        x = x.long() if x.dtype == torch.int32 else x.double()
        if f"{name}/d{i}" in given:
            asked.append(x.requires_grad_())
        operands.append(x)
        i += 1
    out = {f"{name}/x{k}": given[f"{name}/x{k}"] for k in range(i)}
    y = formula(*operands)
    if isinstance(y, tuple):
        return out | {f"{name}/d{k}": t.detach().contiguous() for k, t in enumerate(y)}
    out[f"{name}/y"] = y.detach().double().contiguous()
    if f"{name}/w" in given:
        w = out[f"{name}/w"] = given[f"{name}/w"]
        total = (w.double() * y).sum()
        grads = (
            torch.autograd.grad(total, asked, allow_unused=True)
            if total.requires_grad
            else [None] * len(asked)
        )
        for k, (x, g) in enumerate(zip(asked, grads)):
            out[f"{name}/d{k}"] = torch.zeros_like(x) if g is None else g.contiguous()
    return out


def main():
    given = load_file(sys.argv[1])
    rows = list(dict.fromkeys(key.split("/")[0] for key in given))
    out, left = {}, []
    for name in sorted(rows):
        if FORMULAS.get(name):
            out |= record(name, FORMULAS[name], given)
        else:
            left.append(name)
    save_file({key: t.detach().clone() for key, t in out.items()}, sys.argv[2])
    print(f"{len(rows) - len(left)} rows recorded; without a formula: {' '.join(left)}")
    unknown = [name for name in FORMULAS if FORMULAS[name] and name not in rows]
    print(f"formulas without a row: {' '.join(unknown) or 'none'}")


if __name__ == "__main__":
    main()
