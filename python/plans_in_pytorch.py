"""Carries plans out in PyTorch, and prints measured and simulated values as CSV on the standard output.

    python3 python/plans_in_pytorch.py resnet18:dgc:90%,75% bert4:gact:40% bert4:checkpoint:- | grep , > plans.csv

Each argument is a network, a policy and budgets. Needs the package, torch, torchvision and onnx. Runs on one thread; times are
CPU times, medians of interleaved runs. The policy `checkpoint` is PyTorch's own: torch.utils.checkpoint in √n segments.
`experiments/measured/comparison-pytorch.csv` is the output on one core of an x86-64 server.
"""

import csv
import math
import statistics
import sys
import warnings

import torch
import torchvision
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

import haversack
import haversack.torch as planned


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        rows, length, width = x.shape
        query, key, value = (
            part(x).view(rows, length, self.heads, width // self.heads).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        weights = self.drop(torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(width // self.heads), -1))
        return (weights @ value).transpose(1, 2).reshape(rows, length, width)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.dense, self.norm1 = Attention(width, heads), nn.Linear(width, width), nn.LayerNorm(width)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.norm2, self.drop = nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(self, x):
        x = self.norm1(x + self.drop(self.dense(self.attention(x))))
        return self.norm2(x + self.drop(self.down(self.act(self.up(x)))))


class Words(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.words, self.places = nn.Embedding(1000, width), nn.Parameter(torch.randn(length, width) * 0.02)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.norm(self.words(x) + self.places))


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.pool, self.classes = nn.Linear(width, width), nn.Linear(width, 10)

    def forward(self, x):
        return self.classes(torch.tanh(self.pool(x[:, 0])))


def bert4(width=256, heads=4, length=128):
    return nn.Sequential(Words(width, length), *(Layer(width, heads) for _ in range(4)), Head(width))


def picture(batch, side):
    return torch.randn(batch, 3, side, side)


NETWORKS = {
    "resnet18": (torchvision.models.resnet18, lambda: picture(16, 128)),
    "resnet50": (torchvision.models.resnet50, lambda: picture(8, 128)),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, lambda: picture(16, 160)),
    "bert4": (bert4, lambda: torch.randint(1000, (8, 128))),
}


def blocks(module):
    """The network as a sequence of blocks, for checkpoints between them."""
    if isinstance(module, torchvision.models.ResNet):
        layers = [block for layer in (module.layer1, module.layer2, module.layer3, module.layer4) for block in layer]
        stem = [module.conv1, module.bn1, module.relu, module.maxpool]
        return nn.Sequential(*stem, *layers, module.avgpool, nn.Flatten(), module.fc)
    if isinstance(module, torchvision.models.MobileNetV2):
        return nn.Sequential(*module.features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), module.classifier)
    return module


def checkpointed(module, sample, repeats):
    """The peak of √n checkpoints, and their time relative to that without."""
    sequence = blocks(module)
    segments = round(math.sqrt(len(sequence)))

    def step(plain):
        module.zero_grad(set_to_none=True)
        output = module(sample) if plain else checkpoint_sequential(sequence, segments, sample, use_reentrant=False)
        planned._loss(output).backward()

    peak = planned.peak_of(module, (sample,), lambda: step(False))
    times = [[planned._time_of(lambda: step(plain), (sample,)) for plain in (False, True)] for _ in range(repeats)]
    return peak, statistics.median(own / plain for own, plain in times)


def main(asked, repeats=3):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    table = csv.writer(sys.stdout)
    fields = list(planned.Checked._fields)
    table.writerow(["torch", "network", "batch", "policy", "memory_budget", *fields, "not_found_bytes"])
    for word in asked:
        name, policy, budgets = word.split(":")
        torch.manual_seed(0)
        make, sampled = NETWORKS[name]
        module, sample = make(), sampled()
        for budget in budgets.split(","):
            row = [torch.__version__, name, len(sample), policy, budget]
            if policy == "checkpoint":
                peak, ratio = checkpointed(module, sample, repeats)
                row += [{"measured_peak_bytes": peak, "measured_time_ratio": ratio}.get(field, "") for field in fields]
                table.writerow([*row, ""])
                continue
            try:
                plan = haversack.plan(module, sample, device="server-core", policy=policy, memory_budget=budget)
            except haversack.NoPlanError as error:
                print(error, file=sys.stderr)
                continue
            print(f"{word}: {plan!r}", file=sys.stderr)
            table.writerow([*row, *plan.check(module, repeats=repeats), sum(plan.not_found.values())])
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
