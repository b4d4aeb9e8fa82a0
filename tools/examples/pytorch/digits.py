"""digits.py - the same digits as those of ../digits.h, more or less: seven strokes between six corners that move."""
import torch

FROM, TO = torch.tensor([0, 0, 1, 2, 2, 3, 4]), torch.tensor([1, 2, 3, 3, 4, 5, 5])
STROKES = [0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f]
SIDE = 16


def draw_digits(n):
    labels = torch.arange(n) % 10
    corner = torch.tensor([[4.5 + 6 * (i % 2), 3 + 4.5 * (i // 2)] for i in range(6)])
    corner = corner + 3 * torch.rand(n, 1, 2) - 1.5 + 2.4 * (torch.rand(n, 6, 2) - 0.5)
    on = torch.tensor([[s >> k & 1 for k in range(7)] for s in STROKES])[labels].bool()
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    p = torch.stack([x, y], -1).reshape(-1, 1, 2).float()                       # [PIXELS, 1, 2]
    a, b = corner[:, None, FROM], corner[:, None, TO]                           # [n, 1, 7, 2]
    d = b - a
    at = (((p - a) * d).sum(-1) / ((d * d).sum(-1) + 1e-9)).clamp(0, 1)         # [n, PIXELS, 7]
    far = (p - a - at[..., None] * d).norm(dim=-1)
    near = far.masked_fill(~on[:, None], 9).amin(-1)
    return (1.5 - near).clamp(0, 1), labels
