import torch
from torch import nn
from torch.nn import functional as F
from digits import SIDE, draw_digits

HALF = 60


class Session:
    def __init__(self):
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(SIDE * SIDE, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
        self.adam = torch.optim.Adam(self.net.parameters(), lr=0.005)
        self.step = 0

    def train_until(self, last):
        while self.step < last:
            torch.manual_seed(self.step)
            self.step += 1
            images, labels = draw_digits(50)
            loss = F.cross_entropy(self.net(images), labels)
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()
        print(f"step {self.step}: loss {loss:.6f}")

    def save(self, path):
        torch.save({"net": self.net.state_dict(), "adam": self.adam.state_dict(), "step": self.step}, path)

    def load(self, path):
        saved = torch.load(path)
        self.net.load_state_dict(saved["net"])
        self.adam.load_state_dict(saved["adam"])
        self.step = saved["step"]


first, second = Session(), Session()
first.train_until(HALF)
first.save("resume.pt")
first.train_until(2 * HALF)
print("from the file:")
second.load("resume.pt")
second.train_until(2 * HALF)
same = all(torch.equal(a, b) for a, b in zip(first.net.parameters(), second.net.parameters()))
print(f"the weights are {'the same, to the bit' if same else 'not the same'}")
assert same
