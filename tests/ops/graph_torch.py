"""The constructors of graph_ops.inc in PyTorch, and where each is not smooth.

T[name](x, i, r): operands, integers, reals, as in a line of a program. K[name](x, i, r): how far the
operands are from where the op or its gradient jumps, so that rounding cannot decide it.
"""

import math

import torch
import torch.nn.functional as F

FORMULAS = [
    "ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "ij->ji", "ij->i", "i,j->ij", "ii->i", "bij,bkj->bik",
    "...i,...i->...", "ij,ij->", "abc,cd->abd", "ij,ik,il->jkl",
]


def dims(bits, ndim):
    return [k for k in range(ndim) if bits >> k & 1]


def reduce(by):
    def call(x, i, r):
        d = dims(i[0], x[0].dim())
        return by(x[0], d, bool(i[1])) if d else by(x[0].unsqueeze(0), [0], False)

    return call


def product(x, d, keep):
    for k in sorted(d, reverse=True):
        x = x.prod(k, keepdim=keep)
    return x


def root(x):
    at_zero = x == 0
    return torch.where(at_zero, torch.zeros_like(x), torch.where(at_zero, 1.0, x).sqrt())


def real(condition, like):
    return condition.to(like.dtype)


def reversed_if(x, axis, back):
    return x.flip(axis) if back else x


def linear_scan(x, i, r):
    a, b = (reversed_if(t, i[0], i[1]) for t in x)
    y, out = None, []
    for p, q in zip(a.unbind(i[0]), b.unbind(i[0])):
        y = q if y is None else p * y + q
        out.append(y)
    return reversed_if(torch.stack(out, i[0]), i[0], i[1])


def gemm(x, i, r):
    a = x[0].mT if i[0] & 1 else x[0]
    b = x[1].mT if i[0] & 2 else x[1]
    y = a @ b
    return y + x[2] if len(x) > 2 else y


def layer_norm(x, d, eps):
    c = x - x.mean(d, keepdim=True)
    return c / (c.square().mean(d, keepdim=True) + eps).sqrt()


def layer_norm_of(x, i, r):
    y = layer_norm(x[0], [-1], r[0])
    if len(x) > 1:
        y = y * x[1]
    return y + x[2] if len(x) > 2 else y


def rms_norm(x, i, r):
    y = x[0] / (x[0].square().mean(-1, keepdim=True) + r[0]).sqrt()
    return y * x[1] if len(x) > 1 else y


def open_softmax(s, opened):
    p = s.masked_fill(~opened, -1e30)
    p = (p - p.amax(-1, keepdim=True).detach()).exp() * opened
    total = p.sum(-1, keepdim=True)
    return p / torch.where(total == 0, 1.0, total)


def opened(s, mask, causal, window):
    m = torch.ones(s.shape[-2:], dtype=torch.bool)
    if causal:
        m = m.tril(s.shape[-1] - s.shape[-2])
    if window:
        m = m.triu(s.shape[-1] - s.shape[-2] - window + 1)
    if mask is not None:
        m = m & (mask != 0)
    return m.expand(s.shape)


def weights(q, k, mask, i, r):
    s = q @ k.mT * (r[0] if r[0] else q.shape[-1] ** -0.5)
    return open_softmax(s, opened(s, mask, i[0], i[1]))


def partners(x, interleaved):
    if interleaved:
        return x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    return x.roll(x.shape[-1] // 2, -1)


def rotate(x, i, r):
    c, s = x[1].unbind(-2)
    return x[0] * c + partners(x[0], i[0]) * s


def rotary(x, i, r):
    d = x[0].shape[-1]
    a = x[1].double().unsqueeze(-1) / r[0] ** (torch.arange(0, d, 2).double() / d)
    c, s = a.cos(), a.sin()
    if i[0]:
        c, s = c.repeat_interleave(2, -1), torch.stack((-s, s), -1).flatten(-2)
    else:
        c, s = torch.cat((c, c), -1), torch.cat((-s, s), -1)
    return rotate([x[0], torch.stack((c, s), -2).to(x[0].dtype)], i, r)


def fold(x, i, r):
    like = x[1].detach() * 0
    at = torch.arange(like.shape[i[0]]).unfold(0, (i[1] - 1) * i[3] + 1, i[2])[:, :: i[3]]
    windows = x[0].movedim(-1, i[0] + 1).flatten(i[0], i[0] + 1)
    return like.index_add(i[0], at.reshape(-1), windows)


def smoothed(x, labels, smoothing, ignore):
    p = F.log_softmax(x, -1)
    counted = real(labels != ignore, p)
    at = torch.where(labels != ignore, labels, 0).long()
    nll = -p.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    return (((1 - smoothing) * nll - smoothing * p.mean(-1)) * counted), counted


def loss_mean(losses, counted, how):
    if how == 0:
        return losses.sum() / counted.sum()
    return losses.sum() if how == 1 else losses


def reduced(losses, how):
    return [losses.mean, losses.sum, lambda: losses][how]()


def pick(p, labels, ignore):
    counted = real(labels != ignore, p)
    at = torch.where(labels != ignore, labels, 0).long()
    return -p.gather(-1, at.unsqueeze(-1)).squeeze(-1) * counted, counted


def pool(f, of, x, i):
    two = of == 2
    o = {"kernel_size": i[0:2] if two else i[0], "stride": i[2:4] if two else i[2],
         "padding": i[4:6] if two else i[4]}
    if f is F.avg_pool1d or f is F.avg_pool2d:
        o["count_include_pad"] = not i[6]
    return f(x[0], **o)


def conv(f, of, x, i, transposed=False):
    cut = (lambda v: v) if of == 2 else (lambda v: v[0])
    o = {"stride": cut(i[0:2]), "padding": cut(i[2:4]), "dilation": cut(i[4:6]), "groups": i[6]}
    if transposed:
        o["output_padding"] = cut(i[7:9])
    return f(x[0], x[1], x[2] if len(x) > 2 else None, **o)


def written(x, i):
    """Of scatter: x, ids and src with the axis last, and which step k is written to which step of x."""
    axis = i[0] % x[0].dim()
    ids = x[1].expand(x[2].shape)
    base, ids, src = (t.movedim(axis, -1) for t in (x[0], ids, x[2]))
    return axis, base, src, ids.unsqueeze(-1) == torch.arange(base.shape[-1])  # [..., K, N]


def scatter(x, i, r):
    axis, base, src, to = written(x, i)
    last = (to * torch.arange(1, src.shape[-1] + 1).unsqueeze(-1)).amax(-2)  # 0: not written
    return torch.where(last > 0, src.gather(-1, (last - 1).clamp(min=0)), base).movedim(-1, axis)


def scatter_top(x, i, sign):
    axis, base, src, to = written(x, i)
    rows = torch.where(to, sign * src.unsqueeze(-1), -math.inf)
    return sign * torch.cat([sign * base.unsqueeze(-2), rows], -2).amax(-2).movedim(-1, axis)


def scatter_mul(x, i, r):
    axis, base, src, to = written(x, i)
    return (base * torch.where(to, src.unsqueeze(-1), 1.0).prod(-2)).movedim(-1, axis)


def across(x, axis):
    """One id for each step of the axis, as scatter takes it."""
    shape = [1] * x[0].dim()
    shape[axis] = -1
    return [x[0], x[1].reshape(shape), x[2]]


def segment_softmax(x, i, r):
    same = (x[1].unsqueeze(0) == x[1].unsqueeze(1)).to(x[0].dtype)
    rows = x[0].flatten(1) if x[0].dim() > 1 else x[0].unsqueeze(-1)
    top = torch.where(same.bool().unsqueeze(-1), rows.detach().unsqueeze(0), -math.inf).amax(1)
    e = (rows - top).exp()
    return (e / (same @ e)).reshape(x[0].shape)


MODES = ["nearest", "nearest-exact", "linear", "cubic"]


def resized(x, axis, mode, align, **how):
    """By F.interpolate of the axis alone; cubic is for images, here of one column."""
    t = x.movedim(axis, -1)
    shape = t.shape
    t = t.reshape(1, -1, shape[-1])
    o = {"align_corners": bool(align)} if mode > 1 else {}
    if mode == 3:
        if "size" in how:
            how["size"] = (how["size"], 1)
        else:
            how["scale_factor"] = (how["scale_factor"], 1.0)
        y = F.interpolate(t.unsqueeze(-1), mode="bicubic", **how, **o).squeeze(-1)
    else:
        y = F.interpolate(t, mode=MODES[mode], **how, **o)
    return y.reshape(shape[:-1] + y.shape[-1:]).movedim(-1, axis)


def interpolate(x, i, r):
    sizes = [n or d for n, d in zip(i[2:], x[0].shape[2:])]
    name = {2: ["linear", "bilinear", "trilinear"][len(sizes) - 1], 3: "bicubic"}.get(
        i[0], MODES[i[0]])
    if i[0] == 3 and len(sizes) != 2:
        return resized(x[0], 2, 3, i[1], size=sizes[0])
    o = {"align_corners": bool(i[1])} if i[0] > 1 else {}
    return F.interpolate(x[0], size=sizes, mode=name, **o)


def pad_reflect(x, i, r):
    t = x[0].movedim(i[0], -1)
    y = F.pad(t.reshape(1, -1, t.shape[-1]), [i[1], i[2]], mode="reflect")
    return y.reshape(t.shape[:-1] + y.shape[-1:]).movedim(-1, i[0])


def stft(x, i):
    n, hop, length, kind, center = i
    length = length or n
    window = [torch.hann_window, torch.hamming_window, torch.ones][kind](
        length, dtype=x.dtype)
    y = torch.stft(x.reshape(-1, x.shape[-1]), n, hop or n // 4, length, window, bool(center),
                   "reflect", False, True, True)
    return y.reshape(x.shape[:-1] + y.shape[-2:])


def power(x, i):
    y = stft(x, i)
    return y.real.square() + y.imag.square()


def mel_filters(count, points, rate):
    """As librosa.filters.mel makes them."""
    step = math.log(6.4) / 27
    mel = lambda f: f * 3 / 200 if f < 1000 else 15 + math.log(f / 1000) / step
    hertz = lambda m: m * 200 / 3 if m < 15 else 1000 * math.exp((m - 15) * step)
    f = [hertz(mel(rate / 2) * k / (count + 1)) for k in range(count + 2)]
    bins = torch.arange(points // 2 + 1).double() * rate / points
    rows = [torch.minimum((bins - a) / (b - a), (c - bins) / (c - b)).clamp(min=0) * 2 / (c - a)
            for a, b, c in zip(f, f[1:], f[2:])]
    return torch.stack(rows)


def mel_powers(x, i):
    p = power(x, [400, 160, 0, 0, 1])[..., :-1]
    return mel_filters(i[0], 400, 16000).to(x.dtype) @ p


def log_mel(x, i, r):
    y = mel_powers(x[0], i).clamp(min=1e-10).log10()
    return torch.maximum(y, y.amax((-2, -1), keepdim=True) - 8) / 4 + 1


def log_mel_margin(x, i, r):
    p = mel_powers(x[0], i)
    y = p.clamp(min=1e-10).log10()
    far = (y - y.amax((-2, -1), keepdim=True) + 8).abs()
    return torch.cat([far.reshape(-1), ((p - 1e-10) * 1e10).abs().reshape(-1),
                      gaps(y, [y.dim() - 2, y.dim() - 1]).reshape(-1)])


def logical_shift(a, b):
    y = (a & 0xFFFFFFFF) >> b
    return torch.where(y >= 1 << 31, y - (1 << 32), y)


def left_shift(a, b):
    y = (a << b) & 0xFFFFFFFF
    return torch.where(y >= 1 << 31, y - (1 << 32), y)


def norm_of(y, x, shape):
    if len(x) > 1:
        y = y * x[1].reshape(shape)
    return y + x[2].reshape(shape) if len(x) > 2 else y


def by_channel(x):
    return [1, -1] + [1] * (x.dim() - 2)


def batch_norm(x, i, r):
    d = [k for k in range(x[0].dim()) if k != 1]
    return norm_of(layer_norm(x[0], d, r[0]), x, by_channel(x[0]))


def batch_norm_running(x, i, r):
    """F.batch_norm gives wrong gradients of weights that are expanded, and of inputs transposed."""
    shape = by_channel(x[0])
    y = (x[0] - x[1].reshape(shape)) / (x[2].reshape(shape) + r[0]).sqrt()
    return norm_of(y, [x[0], x[3], x[4]], shape)


def group_norm(x, i, r):
    if x[0][0].numel() == i[0]:  # PyTorch refuses a group of one element
        y = layer_norm(x[0].reshape(x[0].shape[0], i[0], -1), [2], r[0]).reshape(x[0].shape)
        return norm_of(y, x, by_channel(x[0]))
    return F.group_norm(x[0], i[0], x[1] if len(x) > 1 else None, x[2] if len(x) > 2 else None,
                        r[0])


def elu(x, alpha):
    return torch.where(x > 0, x, alpha * torch.expm1(torch.where(x > 0, 0.0, x)))


def shift_of(axis, x):
    return axis % x.dim()


UNARY = {
    "neg": torch.neg, "abs": torch.abs, "square": torch.square, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "exp": torch.exp, "exp2": torch.exp2,
    "expm1": torch.expm1, "log": torch.log, "log2": torch.log2, "log10": torch.log10,
    "log1p": torch.log1p, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin,
    "acos": torch.acos, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh,
    "tanh": torch.tanh, "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh,
    "erf": torch.erf, "erfc": torch.erfc, "floor": torch.floor, "ceil": torch.ceil,
    "round": torch.round, "trunc": torch.trunc, "sign": torch.sign, "sigmoid": torch.sigmoid,
    "log_sigmoid": F.logsigmoid, "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "softsign": F.softsign, "relu": F.relu, "relu6": F.relu6,
    "selu": lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772), "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish,
    "hardsigmoid": lambda x: F.relu6(x + 3) / 6, "detach": torch.Tensor.detach,
    "logical_not": lambda x: real(x == 0, x), "isnan": lambda x: real(x.isnan(), x),
    "isinf": lambda x: real(x.isinf(), x), "isfinite": lambda x: real(x.isfinite(), x),
}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "maximum": torch.maximum, "minimum": torch.minimum, "pow": torch.pow, "atan2": torch.atan2,
    "logaddexp": torch.logaddexp, "xlogy": torch.xlogy, "fmod": torch.fmod,
    "remainder": torch.remainder,
    "floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le,
    "greater": torch.gt, "greater_equal": torch.ge, "logical_and": torch.logical_and,
    "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
}
TRUTHS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
          "logical_or", "logical_xor"}
T = {name: (lambda f: lambda x, i, r: f(x[0]))(f) for name, f in UNARY.items()}
T |= {
    name: (lambda f, truth: lambda x, i, r: f(x[0], x[1]).to(torch.get_default_dtype()) if truth
           else f(x[0], x[1]))(f, name in TRUTHS)
    for name, f in BINARY.items()
}
T |= {
    "leaky_relu": lambda x, i, r: F.leaky_relu(x[0], r[0]),
    "elu": lambda x, i, r: elu(x[0], r[0]),
    "affine": lambda x, i, r: x[0] * r[0] + r[1],
    "scale": lambda x, i, r: x[0] * r[0],
    "clamp": lambda x, i, r: x[0].clamp(r[0], r[1]),
    "pow_scalar": lambda x, i, r: x[0] ** r[0],
    "fill": lambda x, i, r: torch.full_like(x[0], r[0]),
    "check_finite": lambda x, i, r: x[0] * 1,
    "dropout": lambda x, i, r: x[0] * 1,
    "cast_real": lambda x, i, r: x[0].to(torch.get_default_dtype()),
    "cast_i32": lambda x, i, r: x[0].trunc().long(),
    "matmul": lambda x, i, r: x[0] @ x[1],
    "outer": lambda x, i, r: x[0].unsqueeze(-1) * x[1].unsqueeze(-2),
    "vecdot": lambda x, i, r: (x[0] * x[1]).sum(-1),
    "sum_to": lambda x, i, r: x[0].sum_to_size(x[1].shape),
    "broadcast_to": lambda x, i, r: x[0].expand(x[1].shape),
    "reshape_like": lambda x, i, r: x[0].reshape(x[1].shape),
    "embedding": lambda x, i, r: F.embedding(x[1], x[0]),
    "lerp": lambda x, i, r: x[0] + x[2] * (x[1] - x[0]),
    "clamp_tensors": lambda x, i, r: torch.minimum(torch.maximum(x[0], x[1]), x[2]),
    "where": lambda x, i, r: torch.where(x[0] != 0, x[1], x[2]),
    "masked_fill": lambda x, i, r: x[0].masked_fill(x[1] != 0, r[0]),
    "sum": reduce(lambda x, d, k: x.sum(d, keepdim=k)),
    "mean": reduce(lambda x, d, k: x.mean(d, keepdim=k)),
    "max": reduce(lambda x, d, k: x.amax(d, keepdim=k)),
    "min": reduce(lambda x, d, k: x.amin(d, keepdim=k)),
    "prod": reduce(product),
    "logsumexp": reduce(lambda x, d, k: x.logsumexp(d, keepdim=k)),
    "any": reduce(lambda x, d, k: real((x != 0).sum(d, keepdim=k) > 0, x)),
    "all": reduce(lambda x, d, k: real((x == 0).sum(d, keepdim=k) == 0, x)),
    "var": lambda x, i, r: x[0].var(dims(i[0], x[0].dim()), correction=r[0], keepdim=bool(i[1])),
    "std": lambda x, i, r: x[0].std(dims(i[0], x[0].dim()), correction=r[0], keepdim=bool(i[1])),
    "vector_norm": lambda x, i, r: torch.linalg.vector_norm(
        x[0], r[0], dims(i[0], x[0].dim()), keepdim=bool(i[1])),
    "square_sum": lambda x, i, r: x[0].square().sum(),
    "square_sums": lambda x, i, r: x[0].square().sum().reshape(-1)[: min(1, x[0].numel())].detach(),
    "inverse_count": lambda x, i, r: torch.tensor(
        1 / math.prod(x[0].shape[k] for k in dims(i[0], x[0].dim()))),
    "argmax": lambda x, i, r: x[0].argmax(i[0]),
    "argmin": lambda x, i, r: x[0].argmin(i[0]),
    "cumsum": lambda x, i, r: reversed_if(
        reversed_if(x[0], i[0], i[1]).cumsum(i[0]), i[0], i[1]),
    "cumprod": lambda x, i, r: reversed_if(
        reversed_if(x[0], i[0], i[1]).cumprod(i[0]), i[0], i[1]),
    "linear_scan": linear_scan,
    "sort": lambda x, i, r: x[0].sort(dim=i[0], descending=bool(i[1]), stable=True)[0],
    "argsort": lambda x, i, r: x[0].argsort(dim=i[0], descending=bool(i[1]), stable=True),
    "topk": lambda x, i, r: x[0].topk(i[0], i[1], bool(i[2]))[0],
    "topk_indices": lambda x, i, r: x[0].topk(i[0], i[1], bool(i[2]))[1],
    "gemm": gemm,
    "einsum": lambda x, i, r: torch.einsum(FORMULAS[i[0]], *x),
    "reshape": lambda x, i, r: x[0].reshape(
        [x[0].shape[k] if d == 0 else d for k, d in enumerate(i[1:])]),
    "permute": lambda x, i, r: x[0].permute(i),
    "transpose": lambda x, i, r: x[0].transpose(i[0], i[1]),
    "squeeze": lambda x, i, r: x[0].squeeze(dims(i[0], x[0].dim())),
    "unsqueeze": lambda x, i, r: unsqueezed(x[0], i[0]),
    "slice": lambda x, i, r: x[0].narrow(i[0], i[1], i[2] - i[1]),
    "slice_step": lambda x, i, r: x[0].narrow(i[0], i[1], i[2] - i[1])[
        (slice(None),) * i[0] + (slice(None, None, i[3]),)],
    "flip": lambda x, i, r: x[0].flip(dims(i[0], x[0].dim())),
    "diagonal": lambda x, i, r: x[0].diagonal(i[0], i[1], i[2]),
    "expand": lambda x, i, r: x[0].expand(i[1:]),
    "pad": lambda x, i, r: F.pad(
        x[0], [0, 0] * (x[0].dim() - 1 - i[0]) + [i[1], i[2]], value=r[0]),
    "concat": lambda x, i, r: torch.cat(x, i[0]),
    "stack": lambda x, i, r: torch.stack(x, i[0]),
    "chunk": lambda x, i, r: x[0].chunk(i[1], i[0])[i[2]],
    "flatten": lambda x, i, r: x[0].flatten(i[0], i[1]),
    "tile": lambda x, i, r: x[0].repeat(i),
    "repeat_interleave": lambda x, i, r: x[0].repeat_interleave(i[0], i[1]),
    "roll": lambda x, i, r: x[0].roll(i[0], i[1]),
    "tril": lambda x, i, r: x[0].tril(i[0]),
    "triu": lambda x, i, r: x[0].triu(i[0]),
    "gather": lambda x, i, r: torch.take_along_dim(x[0], x[1], i[0]),
    "scatter_add": lambda x, i, r: x[0].scatter_add(i[0], x[1].expand(x[2].shape), x[2]),
    "scatter": scatter,
    "scatter_max": lambda x, i, r: scatter_top(x, i, 1),
    "scatter_min": lambda x, i, r: scatter_top(x, i, -1),
    "scatter_mul": scatter_mul,
    "index_copy": lambda x, i, r: scatter(across(x, i[0]), i, r),
    "bitwise_and": lambda x, i, r: x[0] & x[1],
    "bitwise_or": lambda x, i, r: x[0] | x[1],
    "bitwise_xor": lambda x, i, r: x[0] ^ x[1],
    "bitwise_not": lambda x, i, r: ~x[0],
    "bitwise_left_shift": lambda x, i, r: left_shift(x[0], x[1]),
    "bitwise_right_shift": lambda x, i, r: x[0] >> x[1],
    "bitwise_right_shift_logical": lambda x, i, r: logical_shift(x[0], x[1]),
    "resize": lambda x, i, r: resized(x[0], i[0], i[1], i[2], size=i[3]),
    "resize_like": lambda x, i, r: resized(x[0], i[0], i[1], i[2], size=x[1].shape[i[0]]),
    "resize_by": lambda x, i, r: resized(x[0], i[0], i[1], i[2], scale_factor=r[0]),
    "interpolate": interpolate,
    "pad_reflect": pad_reflect,
    "stft_real": lambda x, i, r: stft(x[0], i).real,
    "stft_imag": lambda x, i, r: stft(x[0], i).imag,
    "power_spectrum": lambda x, i, r: power(x[0], i),
    "log_mel_spectrogram": log_mel,
    "index_select": lambda x, i, r: x[0].index_select(i[0], x[1]),
    "index_add": lambda x, i, r: x[0].index_add(i[0], x[1], x[2]),
    "one_hot": lambda x, i, r: real(x[0].unsqueeze(-1) == torch.arange(i[0]), torch.ones(())),
    "arange": lambda x, i, r: torch.arange(x[0].shape[i[0]]),
    "unfold": lambda x, i, r: x[0].unfold(i[0], (i[1] - 1) * i[3] + 1, i[2])[..., :: i[3]],
    "fold": fold,
    "conv1d": lambda x, i, r: conv(F.conv1d, 1, x, i),
    "conv2d": lambda x, i, r: conv(F.conv2d, 2, x, i),
    "conv_transpose1d": lambda x, i, r: conv(F.conv_transpose1d, 1, x, i, True),
    "conv_transpose2d": lambda x, i, r: conv(F.conv_transpose2d, 2, x, i, True),
    "max_pool1d": lambda x, i, r: pool(F.max_pool1d, 1, x, i),
    "max_pool2d": lambda x, i, r: pool(F.max_pool2d, 2, x, i),
    "avg_pool1d": lambda x, i, r: pool(F.avg_pool1d, 1, x, i),
    "avg_pool2d": lambda x, i, r: pool(F.avg_pool2d, 2, x, i),
    "softmax": lambda x, i, r: F.softmax(x[0], i[0]),
    "log_softmax": lambda x, i, r: F.log_softmax(x[0], i[0]),
    "masked_softmax": lambda x, i, r: open_softmax(
        x[0], opened(x[0], x[1] if len(x) > 1 else None, i[0], 0)),
    "layer_norm": layer_norm_of,
    "layer_norm_over": lambda x, i, r: layer_norm(x[0], dims(i[0], x[0].dim()), r[0]),
    "rms_norm": rms_norm,
    "segment_softmax": segment_softmax,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
    "batch_norm_mean": lambda x, i, r: x[0].mean([k for k in range(x[0].dim()) if k != 1]),
    "batch_norm_variance": lambda x, i, r: x[0].var(
        [k for k in range(x[0].dim()) if k != 1], correction=0),
    "batch_norm_running": batch_norm_running,
    "rotary": rotary,
    "rotate": rotate,
    "attention": lambda x, i, r: weights(x[0], x[1], x[3] if len(x) > 3 else None, i, r) @ x[2],
    "attention_weights": lambda x, i, r: weights(x[0], x[1], x[2] if len(x) > 2 else None, i, r),
    "cross_entropy": lambda x, i, r: smoothed(x[0], x[1], r[0], i[0])[0].sum(),
    "cross_entropy_over": lambda x, i, r: smoothed(x[0].movedim(i[1], -1), x[1], 0, i[0])[0].sum(),
    "mse_loss": lambda x, i, r: reduced((x[0] - x[1]).square(), i[0]),
    "l1_loss": lambda x, i, r: reduced((x[0] - x[1]).abs(), i[0]),
    "smooth_l1_loss": lambda x, i, r: F.smooth_l1_loss(
        x[0], x[1], reduction=("mean", "sum", "none")[i[0]], beta=r[0]),
    "huber_loss": lambda x, i, r: F.huber_loss(
        x[0], x[1], reduction=("mean", "sum", "none")[i[0]], delta=r[0]),
    "kl_div": lambda x, i, r: reduced(
        x[1].exp() * (x[1] - x[0]) if i[1] else torch.xlogy(x[1], x[1]) - x[1] * x[0], i[0]),
    "bce_logits": lambda x, i, r: reduced(
        (1 - x[1]) * x[0] - F.logsigmoid(x[0]), i[0]),
    "cosine_similarity": lambda x, i, r: F.cosine_similarity(x[0], x[1], i[0]),
    "nll_loss": lambda x, i, r: loss_mean(*pick(x[0], x[1], i[1]), i[0]),
    "cross_entropy_loss": lambda x, i, r: loss_mean(*smoothed(x[0], x[1], r[0], i[1]), i[0]),
}


def unsqueezed(x, bits):
    k = 0
    while bits >> k:
        if bits >> k & 1:
            x = x.unsqueeze(k)
        k += 1
    return x


# ---- where ops jump ------------------------------------------------------------------------------


def gap(x, axis):
    """Between neighbours in order: ties of maxima and of sorting."""
    if x.shape[axis] < 2:
        return torch.ones(1)
    return x.sort(axis)[0].diff(dim=axis)


def gaps(x, d):
    if not d:
        return torch.ones(1)
    kept = [k for k in range(x.dim()) if k not in d]
    return gap(x.permute(kept + d).flatten(len(kept)), -1)


def from_integer(x):
    return (x - x.round()).abs()


def from_half(x):
    return ((x - 0.5) - (x - 0.5).round()).abs()


def windows(x, i, two):
    """The elements under each step of a pooling, in the last axis; padding is below all."""
    pad = [i[5], i[5], i[4], i[4]] if two else [i[4], i[4]]
    low = x.min().item() - 1e3 if x.numel() else 0
    spread = torch.arange(x.shape[-1] + pad[0] + pad[1]).to(x.dtype) * 0  # ties of padding count not
    x = F.pad(x, pad, value=low)
    if two:
        w = x.unfold(-2, i[0], i[2]).unfold(-2, i[1], i[3]).flatten(-2)
    else:
        w = x.unfold(-1, i[0], i[2])
    top = w.topk(min(2, w.shape[-1]), -1)[0]
    return top[..., 0] - top[..., -1] if w.shape[-1] > 1 else torch.ones(1) + spread.sum()


def quotient(x):
    q = x[0] / x[1]
    return torch.minimum(from_integer(q), x[1].abs())


def written_gap(x, i, sign):
    axis, base, src, to = written(x, i)
    rows = torch.where(to, sign * src.unsqueeze(-1), -1e30)
    top = torch.cat([sign * base.unsqueeze(-2), rows], -2).topk(2, -2)[0]
    return top[..., 0, :] - top[..., 1, :]


K = {
    "log_mel_spectrogram": log_mel_margin,
    "scatter_mul": lambda x, i, r: torch.cat([x[0].abs().reshape(-1), x[2].abs().reshape(-1)]),
    "cosine_similarity": lambda x, i, r: torch.minimum(x[0].norm(dim=i[0]), x[1].norm(dim=i[0])),
    "scatter_max": lambda x, i, r: written_gap(x, i, 1),
    "scatter_min": lambda x, i, r: written_gap(x, i, -1),
    "abs": lambda x, i, r: x[0].abs(), "sign": lambda x, i, r: x[0].abs(),
    "floor": lambda x, i, r: from_integer(x[0]), "ceil": lambda x, i, r: from_integer(x[0]),
    "trunc": lambda x, i, r: from_integer(x[0]), "round": lambda x, i, r: from_half(x[0]),
    "cast_i32": lambda x, i, r: from_integer(x[0]),
    "relu": lambda x, i, r: x[0].abs(), "leaky_relu": lambda x, i, r: x[0].abs(),
    "elu": lambda x, i, r: x[0].abs(), "selu": lambda x, i, r: x[0].abs(),
    "softsign": lambda x, i, r: x[0].abs(),
    "relu6": lambda x, i, r: torch.minimum(x[0].abs(), (x[0] - 6).abs()),
    "hardsigmoid": lambda x, i, r: (x[0].abs() - 3).abs(),
    "clamp": lambda x, i, r: torch.minimum((x[0] - r[0]).abs(), (x[0] - r[1]).abs()),
    "clamp_tensors": lambda x, i, r: torch.minimum(
        torch.minimum((x[0] - x[1]).abs(), (x[0] - x[2]).abs()), (x[1] - x[2]).abs()),
    "fmod": lambda x, i, r: quotient(x), "remainder": lambda x, i, r: quotient(x),
    "floor_divide": lambda x, i, r: quotient(x),
    "xlogy": lambda x, i, r: x[0].abs(),
    "max": lambda x, i, r: gaps(x[0], dims(i[0], x[0].dim())),
    "min": lambda x, i, r: gaps(x[0], dims(i[0], x[0].dim())),
    "argmax": lambda x, i, r: gap(x[0], i[0]), "argmin": lambda x, i, r: gap(x[0], i[0]),
    "sort": lambda x, i, r: gap(x[0], i[0]), "argsort": lambda x, i, r: gap(x[0], i[0]),
    "topk": lambda x, i, r: gap(x[0], i[1]), "topk_indices": lambda x, i, r: gap(x[0], i[1]),
    "max_pool1d": lambda x, i, r: windows(x[0], i, False),
    "max_pool2d": lambda x, i, r: windows(x[0], i, True),
    "l1_loss": lambda x, i, r: (x[0] - x[1]).abs(),
    "smooth_l1_loss": lambda x, i, r: ((x[0] - x[1]).abs() - r[0]).abs(),
    "huber_loss": lambda x, i, r: ((x[0] - x[1]).abs() - r[0]).abs(),
    "std": lambda x, i, r: T["var"](x, i, r),
    "vector_norm": lambda x, i, r: x[0].abs() if r[0] == 1 else torch.cat((
        gaps(x[0].abs(), dims(i[0], x[0].dim())).flatten() if math.isinf(r[0]) else x[0].new_ones(1),
        T["vector_norm"](x, i, r).flatten())),
}
for name in ("maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater",
             "greater_equal"):
    K[name] = lambda x, i, r: (x[0] - x[1]).abs()
