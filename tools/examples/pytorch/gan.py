import math
import torch
from torch import nn

torch.manual_seed(1)


def net(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, outputs))


generator, critic = net(4, 2), net(2, 1)
g_adam = torch.optim.Adam(generator.parameters(), lr=0.003, betas=(0.5, 0.999))
c_adam = torch.optim.Adam(critic.parameters(), lr=0.003, betas=(0.5, 0.999))
for step in range(1, 4001):
    angle = 2 * math.pi * torch.rand(128)
    real, noise = torch.stack([angle.cos(), angle.sin()], 1), 2 * torch.rand(128, 4) - 1
    c_loss = (critic(real) - 1).square().mean() + critic(generator(noise).detach()).square().mean()
    c_adam.zero_grad()
    c_loss.backward()
    c_adam.step()
    g_loss = (critic(generator(noise)) - 1).square().mean()
    g_adam.zero_grad()
    g_loss.backward()
    g_adam.step()
    if step % 1000 == 0:
        with torch.no_grad():
            made = generator(noise)
        off = (made.norm(dim=1) - 1).abs().mean().item()
        eighths = ((torch.atan2(made[:, 1], made[:, 0]) / math.pi + 1) * 4).long().clamp(max=7)
        gaps = (eighths.bincount(minlength=8) < 4).any().item()
        print(f"step {step}: {off:.3f} from the ring{' (gaps)' if gaps else ''}")
assert off < 0.1 and not gaps
