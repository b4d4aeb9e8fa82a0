import torch
from torch import nn
from torch.nn import functional as F
from digits import SIDE, draw_digits

torch.manual_seed(1)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
adam = torch.optim.Adam(net.parameters(), lr=0.01)
rate = torch.optim.lr_scheduler.OneCycleLR(adam, 0.01, 400, pct_start=20 / 400)
for step in range(1, 401):
    images, labels = draw_digits(50)
    loss = F.cross_entropy(net(images.view(-1, 1, SIDE, SIDE)), labels)
    adam.zero_grad()
    loss.backward()
    adam.step()
    rate.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss:.3f}")
with torch.no_grad():
    images, labels = draw_digits(500)
    right = (net(images.view(-1, 1, SIDE, SIDE)).argmax(-1) == labels).sum().item()
print(f"{right} of 500 new digits are read rightly")
assert right >= 475
