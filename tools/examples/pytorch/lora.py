"""Needs a translator: trains one first, as ../lora.c does."""
import math
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

torch.manual_seed(1)
LENGTH, START, END, FIRST, WORDS, RANK, TESTS, DIALECT = 6, 0, 1, 2, 12, 4, 200, 3


def sentences(n, dialect):
    words = torch.randint(FIRST, WORDS, (n, LENGTH))
    return words, FIRST + (words.flip(1) - FIRST + dialect) % (WORDS - FIRST)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(WORDS, 32), nn.Embedding(WORDS, 32)
        self.transformer = nn.Transformer(32, 4, 1, 1, 64, 0, batch_first=True)
        self.output = nn.Linear(32, WORDS)
        for table in (self.src, self.tgt):
            nn.init.normal_(table.weight, std=32 ** -0.5)
        angle = torch.arange(LENGTH + 2)[:, None] / 10000 ** (torch.arange(0, 32, 2) / 32)
        self.register_buffer("position", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))

    def forward(self, src, tgt):
        x = self.src(src) * math.sqrt(32) + self.position[:src.shape[1]]
        y = self.tgt(tgt) * math.sqrt(32) + self.position[:tgt.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        return self.output(self.transformer(x, y, tgt_mask=mask, tgt_is_causal=True))


def train(m, params, steps, rate, dialect):
    adam = torch.optim.Adam(params, lr=rate)
    for _ in range(steps):
        src, out = sentences(32, dialect)
        tgt = F.pad(out, (1, 0), value=START)
        labels = F.pad(out, (0, 1), value=END)
        loss = F.cross_entropy(m(src, tgt).flatten(0, 1), labels.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()


@torch.no_grad()
def right_answers(m, dialect):
    src, out = sentences(TESTS, dialect)
    tgt = torch.full((TESTS, 1), START)
    for _ in range(LENGTH):
        tgt = torch.cat([tgt, m(src, tgt)[:, -1:].argmax(-1)], 1)
    return (tgt[:, 1:] == out).all(1).sum().item()


class LoRA(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.a = nn.Parameter(0.2 * torch.randn(RANK, w.shape[1]))
        self.b = nn.Parameter(torch.zeros(w.shape[0], RANK))

    def forward(self, w):
        return w + self.b @ self.a


base = Translator()
train(base, base.parameters(), 400, 0.003, 0)
torch.save(base.state_dict(), "translator.pt")

m = Translator()
m.load_state_dict(torch.load("translator.pt"))
m.requires_grad_(False)
for name, module in list(m.named_modules()):
    for which, w in list(module.named_parameters(recurse=False)):
        if w.ndim == 2 and not isinstance(module, nn.Embedding):
            parametrize.register_parametrization(module, which, LoRA(w))
before, at_first = right_answers(m, 0), right_answers(m, DIALECT)
adapters = {n: p for n, p in m.named_parameters() if p.requires_grad}
train(m, adapters.values(), 600, 0.01, DIALECT)
after = right_answers(m, DIALECT)
torch.save(adapters, "dialect.pt")
print(f"as loaded: {before} of {TESTS} right, {at_first} in the dialect")
print(f"with adapters of rank {RANK}: {after} in the dialect")
assert before >= TESTS * 0.9 and after >= TESTS * 0.9
