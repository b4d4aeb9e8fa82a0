import torch
from torch import nn
from torch.nn import functional as F
from digits import SIDE, draw_digits

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, 10))
adam = torch.optim.Adam(net.parameters(), lr=0.005)
for step in range(1, 601):
    images, labels = draw_digits(100)
    loss = F.cross_entropy(net(images), labels)
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 200 == 0:
        print(f"step {step}: loss {loss:.3f}")
with torch.no_grad():
    images, labels = draw_digits(1000)
    right = (net(images).argmax(-1) == labels).sum().item()
print(f"{right} of 1000 new digits are read rightly")
assert right >= 950
