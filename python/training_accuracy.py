"""Trains small networks in PyTorch on the embedded data sets, for the accuracies that haversack's trainings are compared with.

    cargo run -q --release -p haversack-workloads --example export_data -- glyphs data/glyphs
    python python/training_accuracy.py data

writes `experiments/tests/data/pytorch_accuracy.json`: test accuracies by seed after the last epoch, in percent. Needs torch
(2.x, CPU) and numpy. Networks are those of `training_steps.py` with PyTorch's own initial values; the settings are those of
`examples/accuracy/pytorch-*.toml`.
"""

import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import training_steps as networks

SEEDS = range(5)
# The name, its data, batch, epochs, epochs of warm-up and the largest rate; half a cosine after the warm-up.
SETTINGS = [
    ("lenet5", "glyphs", 64, 8, 1, 0.03),
    ("resnet8-cifar", "glyphs", 64, 4, 0.5, 0.03),
]


class Drawn(networks.Net):
    """Parameters with the initial values of PyTorch's layers."""

    def __init__(self):
        super().__init__(torch.float32, drops=True)
        self.trains = True

    def p(self, name, *dims, trained=True):
        if name in self.parameters:
            return self.parameters[name]
        values = torch.zeros(dims)
        if len(dims) > 1:
            values.uniform_(-1, 1).div_(math.sqrt(math.prod(dims[1:])))
        elif name.endswith("weight"):
            values.fill_(1)
        elif "bn" not in name and "downsample.1" not in name:
            fan_in = math.prod(self.parameters[name.replace("bias", "weight")].shape[1:])
            values.uniform_(-1, 1).div_(math.sqrt(fan_in))
        self.parameters[name] = values.requires_grad_(trained)
        return self.parameters[name]

    def norm(self, name, x):
        w, b = self.p(f"{name}.weight", x.shape[1]), self.p(f"{name}.bias", x.shape[1])
        if name not in self.statistics:
            self.statistics[name] = (torch.zeros(x.shape[1]), torch.ones(x.shape[1]))
        return F.batch_norm(x, *self.statistics[name], w, b, training=self.trains)

    def dropout(self, x, probability):
        return F.dropout(x, probability, training=self.trains)


def load(folder, data, part, moments=None):
    records = np.fromfile(folder / data / f"{part}.bin", np.uint8).reshape(-1, 3073)
    images = torch.tensor(records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32))
    mean, deviation = moments or (images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True, correction=0))
    labels = torch.tensor(records[:, 0].astype(np.int64))
    return (images - mean) / deviation, labels, (mean, deviation)


def train(setting, parts, seed):
    name, _, batch, epochs, warm_up, rate = setting
    torch.manual_seed(seed)
    build = networks.NETWORKS[name][0]
    n = Drawn()
    (x, y), (tx, ty) = parts
    build(n, x[:2])
    # Undo the effect of the first samples.
    for mean, variance in n.statistics.values():
        mean.zero_(), variance.fill_(1)
    trained = [values for values in n.parameters.values() if values.requires_grad]
    rule = torch.optim.SGD(trained, rate, momentum=0.9)
    steps, step = len(x) // batch, 0
    for _ in range(epochs):
        for indices in torch.randperm(len(x))[: steps * batch].split(batch):
            epoch = step / steps
            rise = (step + 1) / (steps * warm_up)
            factor = rise if epoch < warm_up else (1 + math.cos(math.pi * (epoch - warm_up) / (epochs - warm_up))) / 2
            for group in rule.param_groups:
                group["lr"] = rate * factor
            rule.zero_grad()
            F.cross_entropy(build(n, x[indices]), y[indices]).backward()
            rule.step()
            step += 1
    n.trains = False
    with torch.no_grad():
        right = sum((build(n, a).argmax(1) == b).sum().item() for a, b in zip(tx.split(250), ty.split(250)))
    return 100 * right / len(tx)


def main():
    folder, found = Path(sys.argv[1]), {}
    for setting in SETTINGS:
        name, data = setting[:2]
        x, y, moments = load(folder, data, "train")
        tx, ty, _ = load(folder, data, "test", moments)
        start = time.process_time()
        found[name] = [round(train(setting, ((x, y), (tx, ty)), seed), 2) for seed in SEEDS]
        print(name, found[name], f"{time.process_time() - start:.0f} CPU s", flush=True)
    about = "python/training_accuracy.py, torch " + torch.__version__
    path = networks.ROOT / "experiments/tests/data/pytorch_accuracy.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"source": about, "test_accuracy_percent": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
