import torch
from torch import nn
from torch.nn import functional as F
from digits import SIDE, draw_digits

torch.manual_seed(1)
PIXELS, HIDDEN, CODE = SIDE * SIDE, 96, 6


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.SiLU())
        self.to_mean, self.to_log_var = nn.Linear(HIDDEN, CODE), nn.Linear(HIDDEN, CODE)
        self.decoder = nn.Sequential(nn.Linear(CODE, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, PIXELS))

    def loss(self, images):
        h = self.encoder(images)
        mean, log_var = self.to_mean(h), self.to_log_var(h)
        code = mean + (0.5 * log_var).exp() * torch.randn_like(mean)
        ink = F.binary_cross_entropy_with_logits(self.decoder(code), images, reduction="sum")
        return (ink + 0.5 * (mean.square() + log_var.exp() - log_var - 1).sum()) / len(images)


vae = VAE()
adam = torch.optim.Adam(vae.parameters(), lr=0.005)
rate = torch.optim.lr_scheduler.OneCycleLR(adam, 0.005, 600, pct_start=20 / 600)
for step in range(1, 601):
    loss = vae.loss(draw_digits(64)[0])
    adam.zero_grad()
    loss.backward()
    adam.step()
    rate.step()
    if step == 1:
        first = loss.item()
    if step % 200 == 0:
        print(f"step {step}: -ELBO {loss:.2f} nats an image")
with torch.no_grad():
    made = vae.decoder(torch.randn(4, CODE)).sigmoid().view(4, SIDE, SIDE)
for row in torch.cat(list(made), 1):
    print("".join(" .:+#"[int(4.99 * v)] for v in row))
assert loss.item() < first / 2
