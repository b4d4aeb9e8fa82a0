import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
"""
LONGEST, PROMPT, STEPS = 128, 10, 250


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.position = nn.Embedding(128, 64), nn.Embedding(LONGEST, 64)
        nn.init.normal_(self.table.weight, std=0.125)
        layer = nn.TransformerEncoderLayer(64, 4, 256, 0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, nn.LayerNorm(64), enable_nested_tensor=False)
        self.output = nn.Linear(64, 128)

    def forward(self, ids):
        T = ids.shape[1]
        x = self.table(ids) * 8 + self.position(torch.arange(T))
        mask = nn.Transformer.generate_square_subsequent_mask(T)
        return self.output(self.layers(x, mask, is_causal=True))


text = torch.tensor([ord(c) for c in SONNET])
gpt = GPT()
adam = torch.optim.Adam(gpt.parameters(), lr=0.003)
rate = torch.optim.lr_scheduler.OneCycleLR(adam, 0.003, STEPS, pct_start=20 / STEPS)
for step in range(1, STEPS + 1):
    at = torch.tensor([(step * 31 + b * 43) % (len(text) - LONGEST) if b else 0 for b in range(4)])
    rows = text[at[:, None] + torch.arange(LONGEST + 1)]
    loss = F.cross_entropy(gpt(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    adam.zero_grad()
    loss.backward()
    adam.step()
    rate.step()
    if step % 50 == 0:
        print(f"step {step}: {loss:.3f} nats a character")
ids = text[None, :PROMPT]
with torch.no_grad():
    while ids.shape[1] < LONGEST:  # nn.Transformer has no cache: all is computed again for each character
        ids = torch.cat([ids, gpt(ids)[:, -1:].argmax(-1)], 1)
said = "".join(map(chr, ids[0]))
print(said)
assert said == SONNET[:LONGEST]
