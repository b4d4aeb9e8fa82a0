#!/usr/bin/env python3
"""Record 20 steps of each optimizer of PyTorch: prints tests/nn/optimizer_steps.inc.

    tests/nn/record_optimizers.py > tests/nn/optimizer_steps.inc

Needs torch; the test (test_optimizers.c) does not. The problem is the same there: a regression of
sin from sin, in f64, whose loss is a mean. Lion is not in PyTorch: the formula of the paper.
"""

import torch

STEPS = 20


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. (2023)."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = torch.sign(beta1 * m + (1 - beta1) * p.grad)
                p -= group["lr"] * (update + group["weight_decay"] * p)
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def wave(n, phase):
    return torch.sin(torch.arange(n, dtype=torch.float64) * 1.7 + phase)


def train(make, clip=0.0):
    """The weight [2,3] and the bias [3] after the steps."""
    w = wave(6, 0.3).reshape(2, 3).requires_grad_()
    b = wave(3, 0.9).requires_grad_()
    x, y = wave(8, 0.1).reshape(4, 2), wave(12, 2.0).reshape(4, 3)
    optimizer = make(w, b)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = group.setdefault("factor", 1.0) * 0.05 * (step + 1) / STEPS
        optimizer.zero_grad()
        ((x @ w + b - y) ** 2).mean().backward()
        if clip:
            torch.nn.utils.clip_grad_norm_([w, b], clip)
        optimizer.step()
    return torch.cat([w.detach().flatten(), b.detach()]).tolist()


def all_of(kind, **options):
    return lambda w, b: kind([w, b], lr=0.05, **options)


def groups(kind, decays, factors=(1.0, 1.0), **options):
    return lambda w, b: kind(
        [
            dict(params=[p], weight_decay=decay, factor=factor)
            for p, decay, factor in zip((w, b), decays, factors)
        ],
        lr=0.05,
        **options,
    )


O = torch.optim
RUNS = {
    "sgd": train(all_of(O.SGD)),
    "momentum": train(all_of(O.SGD, momentum=0.9, weight_decay=0.1)),
    "dampening": train(all_of(O.SGD, momentum=0.9, dampening=0.5)),
    "nesterov": train(all_of(O.SGD, momentum=0.9, weight_decay=0.1, nesterov=True)),
    "adam": train(all_of(O.Adam, weight_decay=0.1)),
    "adam_beta1": train(all_of(O.Adam, betas=(0.0, 0.9))),
    "adam_clipped": train(all_of(O.Adam, eps=0.1), clip=0.05),
    "adamw": train(groups(O.AdamW, (0.1, 0.0))),
    "adamw_all": train(all_of(O.AdamW, weight_decay=0.1)),
    "adamw_groups": train(groups(O.AdamW, (0.2, 0.3), (1.0, 0.25))),
    "rmsprop": train(all_of(O.RMSprop, weight_decay=0.1)),
    "rmsprop_momentum": train(all_of(O.RMSprop, alpha=0.9, momentum=0.5)),
    "rmsprop_centered": train(all_of(O.RMSprop, eps=1e-3, centered=True)),
    "rmsprop_both": train(all_of(O.RMSprop, eps=1e-2, centered=True, momentum=0.5)),
    "adagrad": train(all_of(O.Adagrad, weight_decay=0.1)),
    "lion": train(groups(Lion, (0.1, 0.0))),
    "lion_all": train(all_of(Lion, betas=(0.95, 0.98), weight_decay=0.3)),
}

print("/* tests/nn/optimizer_steps.inc - printed by record_optimizers.py: weight and bias after the steps. */")
for name, values in RUNS.items():
    print("STEPS(" + name + ",")
    for i in range(0, len(values), 3):
        end = ")" if i + 3 >= len(values) else ","
        print("      " + ", ".join(f"{value:.17g}" for value in values[i : i + 3]) + end)
