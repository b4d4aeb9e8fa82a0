#!/usr/bin/env python3
"""Record what PyTorch computes for layers of nn: tests/data/nn.safetensors.

    tests/nn/record_nn.py tests/data/nn.safetensors

Needs torch and safetensors; the tests need neither, they read the file. Everything is f64. Entries
begin with the name of a case: NAME/p/PARAMETER its parameters, NAME/x its input, NAME/w the
cotangent, NAME/y the output, NAME/d/PARAMETER and NAME/d/x the gradients.

Recurrent layers run on packed sequences. The Llama block is Hugging Face's LlamaDecoderLayer,
written out: RMSNorm, rotary positions, grouped-query attention and SwiGLU, with the names of nn.
"""

import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

B, T, I, H = 3, 5, 4, 3  # batch, steps, inputs, hidden units
LENGTHS = torch.tensor([5, 2, 4], dtype=torch.int32)
file = {}


def keep(name, values):
    file.update({f"{name}/{key}": t.detach().clone().contiguous() for key, t in values.items()})


def differentiate(name, parameters, x, y):
    w = torch.rand_like(y) * 2 - 1
    (w * y).sum().backward()
    keep(name, {"x": x, "y": y, "w": w, "d/x": x.grad})
    keep(name, {f"p/{key}": p for key, p in parameters.items()})
    keep(name, {f"d/{key}": p.grad for key, p in parameters.items()})


def recurrent(name, kind, layers, bidirectional, bias):
    net = kind(I, H, layers, bias=bias, batch_first=True, bidirectional=bidirectional)
    x = torch.randn(B, T, I).requires_grad_()
    first = [torch.randn(layers * (1 + bidirectional), B, H) for _ in range(1 + (kind is torch.nn.LSTM))]
    packed = pack_padded_sequence(x, LENGTHS.long(), batch_first=True, enforce_sorted=False)
    output, last = net(packed, tuple(first) if len(first) == 2 else first[0])
    output, _ = pad_packed_sequence(output, batch_first=True, total_length=T)
    last = last if isinstance(last, tuple) else (last,)
    # one tensor, so that one cotangent sees all: output, then the last states
    y = torch.cat([output.flatten()] + [s.flatten() for s in last])
    differentiate(name, dict(net.named_parameters()), x, y)
    keep(name, {key: s for key, s in zip(("h", "c"), first)})


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)


def llama(name, D=12, heads=6, groups=2, width=10, eps=1e-5, base=10000.0, window=3):
    d = D // heads
    shapes = {
        "self_attn.in_proj_weight": ((heads + 2 * groups) * d, D),
        "self_attn.out_proj.weight": (D, D),
        "linear1.weight": (width, D),
        "linear2.weight": (D, width),
        "linear3.weight": (width, D),
        "norm1.weight": (D,),
        "norm2.weight": (D,),
    }
    p = {key: (torch.randn(shape) / 2).requires_grad_() for key, shape in shapes.items()}
    x = torch.randn(2, T, D).requires_grad_()
    angle = torch.arange(T)[:, None] / base ** (torch.arange(0, d, 2) / d)
    cos, sin = torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()
    seen = torch.ones(T, T, dtype=torch.bool).tril().triu(1 - window)

    def split(y, n):
        return y.unflatten(-1, (n, d)).transpose(1, 2)

    h = F.rms_norm(x, (D,), p["norm1.weight"], eps)
    q, k, v = (h @ p["self_attn.in_proj_weight"].T).split((heads * d, groups * d, groups * d), -1)
    q, k, v = split(q, heads), split(k, groups), split(v, groups)
    q, k = (t * cos + rotate_half(t) * sin for t in (q, k))
    a = F.scaled_dot_product_attention(q, k, v, seen, enable_gqa=True)
    y = x + a.transpose(1, 2).flatten(2) @ p["self_attn.out_proj.weight"].T
    h = F.rms_norm(y, (D,), p["norm2.weight"], eps)
    gated = F.silu(h @ p["linear1.weight"].T) * (h @ p["linear3.weight"].T)
    differentiate(name, p, x, y + gated @ p["linear2.weight"].T)


def batch_norm(name, steps=3, channels=3):
    """Steps of training with batches of 2, 3, 4 images, the running statistics after each, then an
    evaluation: y of each, the gradients by x and the parameters."""
    net = torch.nn.BatchNorm2d(channels, momentum=0.3)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(channels))
    keep(name, {f"p/{key}": p for key, p in net.named_parameters()})
    for step in range(steps + 1):
        net.train(step < steps)
        x = (torch.randn(2 + step, channels, 2, 5) * 3 + 1).requires_grad_()
        net.zero_grad()
        y = net(x)
        w = torch.rand_like(y)
        (w * y).sum().backward()
        keep(f"{name}/{step}", {"x": x, "w": w, "y": y, "d/x": x.grad})
        keep(f"{name}/{step}", {f"d/{key}": p.grad for key, p in net.named_parameters()})
        keep(f"{name}/{step}", {"mean": net.running_mean, "var": net.running_var})


torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
recurrent("gru", torch.nn.GRU, 1, False, True)
recurrent("gru_deep", torch.nn.GRU, 2, True, True)
recurrent("gru_plain", torch.nn.GRU, 1, False, False)
recurrent("lstm", torch.nn.LSTM, 1, False, True)
recurrent("lstm_deep", torch.nn.LSTM, 3, True, True)
recurrent("lstm_plain", torch.nn.LSTM, 2, False, False)
llama("llama")
batch_norm("batch_norm")
save_file(file, sys.argv[1])
