import math
import torch
from torch import nn

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))


def solution(x):
    return x * (math.pi - x) * net(x)


def derivative(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


x = torch.linspace(0, math.pi, 64).unsqueeze(1).requires_grad_()
adam = torch.optim.Adam(net.parameters(), lr=0.01)
falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 4000)
for step in range(1, 4001):
    loss = (derivative(derivative(solution(x), x), x) + x.sin()).square().mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    falling.step()
    if step % 800 == 0:
        print(f"step {step}: residual {loss.sqrt():.2e}")
with torch.no_grad():
    x = torch.linspace(0, math.pi, 1000).unsqueeze(1)
    error = (solution(x) - x.sin()).abs().max().item()
print(f"largest error against sin x at 1000 points: {error:.1e}")
assert error < 1e-3
