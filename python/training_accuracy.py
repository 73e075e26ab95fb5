"""Small networks trained in PyTorch on the embedded data sets: the accuracies that haversack's trainings are held against.

    cargo run -q --release -p haversack-workloads --example export_data -- glyphs data/glyphs
    cargo run -q --release -p haversack-workloads --example export_data -- phrases data/phrases
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
# The name, its data, batch, epochs, the largest rate and the optimiser; half a cosine after an epoch of warm-up.
SETTINGS = [
    ("lenet5", "glyphs", 64, 8, 0.03, "momentum"),
    ("resnet8-cifar", "glyphs", 128, 6, 0.1, "momentum"),
    ("transformer2-lora", "phrases", 64, 4, 0.002, "adam"),
]


class Drawn(networks.Net):
    """Parameters as PyTorch's layers and Hugging Face's transformers draw them."""

    def __init__(self):
        super().__init__(torch.float32, drops=True)
        self.trains = True

    def p(self, name, *dims, trained=True):
        if name in self.parameters:
            return self.parameters[name]
        values = torch.zeros(dims)
        if len(dims) > 1:
            if "transformer" in name and "lora" not in name or name.startswith("classifier.") and self.is_transformer:
                values.normal_(0, 0.02 if "embeddings" in name else DEVIATION)
            elif "lora_B" not in name:
                values.uniform_(-1, 1).div_(math.sqrt(math.prod(dims[1:])))
        elif name.endswith("weight"):
            values.fill_(1)
        elif not self.is_transformer and "bn" not in name and "downsample.1" not in name:
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


# Of a transformer's linear layers, as the built-in stand-ins have it.
DEVIATION = 0.07


def load(folder, data, part, moments=None):
    if data == "phrases":
        rows = [line.split(",") for line in (folder / f"{part}.csv").read_text().splitlines()[1:]]
        return torch.tensor([[int(id) for id in text.split()] for _, text in rows]), torch.tensor([int(l) for l, _ in rows])
    records = np.fromfile(folder / f"{part}.bin", np.uint8).reshape(-1, 3073)
    images = torch.tensor(records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32))
    mean, deviation = moments or (images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True, correction=0))
    return (images - mean) / deviation, torch.tensor(records[:, 0].astype(np.int64)), (mean, deviation)


def train(setting, parts, seed):
    name, _, batch, epochs, rate, optimiser = setting
    torch.manual_seed(seed)
    build = networks.NETWORKS[name][0]
    n = Drawn()
    n.is_transformer = "transformer" in name
    (x, y), (tx, ty) = parts
    build(n, x[:2])
    # What the first samples moved is not to be.
    for mean, variance in n.statistics.values():
        mean.zero_(), variance.fill_(1)
    trained = [values for values in n.parameters.values() if values.requires_grad]
    rule = torch.optim.SGD(trained, rate, momentum=0.9) if optimiser == "momentum" else torch.optim.Adam(trained, rate)
    steps, step = len(x) // batch, 0
    for _ in range(epochs):
        for indices in torch.randperm(len(x))[: steps * batch].split(batch):
            epoch = step / steps
            factor = (step + 1) / steps if epoch < 1 else 0.5 * (1 + math.cos(math.pi * (epoch - 1) / (epochs - 1)))
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
        x, y, *moments = load(folder / data, data, "train")
        tx, ty = load(folder / data, data, "test", *moments)[:2]
        start = time.process_time()
        found[name] = [round(train(setting, ((x, y), (tx, ty)), seed), 2) for seed in SEEDS]
        print(name, found[name], f"{time.process_time() - start:.0f} CPU s", flush=True)
    about = "python/training_accuracy.py, torch " + torch.__version__
    path = networks.ROOT / "experiments/tests/data/pytorch_accuracy.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"source": about, "test_accuracy_percent": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
