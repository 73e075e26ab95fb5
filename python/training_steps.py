"""Runs whole training steps of small networks in PyTorch and counts them: the fixtures that haversack is compared with.

    python python/training_steps.py

writes `sim/numerics/tests/data/steps.json` (losses, gradients and weights over three steps of SGD at batch 4, without
dropout, in double precision) and `workloads/tests/data/small_counts.csv` (weights, operations and saved bytes, with dropout).
Needs torch (2.x, CPU) and numpy. The networks are written with the names that haversack gives their parameters; weights,
samples and labels follow from a formula of integers, which `haversack_testing::formula` repeats.
"""

import csv
import json
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

ROOT = Path(__file__).resolve().parent.parent
BATCH = 4
LEARNING_RATE = 0.01
STEPS = 3
MASK = 0xFFFFFFFF


def mixed(name: str, count: int) -> np.ndarray:
    """32-bit integers of (name, place): a multiplicative hash of the place, from an offset that is the sum of the name's bytes
    weighted by their places."""
    start = sum((place + 1) * byte for place, byte in enumerate(name.encode()))
    x = (np.arange(count, dtype=np.uint64) + np.uint64(1 + 65537 * start)) & np.uint64(MASK)
    for multiplier, shift in [(2654435761, 15), (2246822519, 13)]:
        x = (x * np.uint64(multiplier)) & np.uint64(MASK)
        x ^= x >> np.uint64(shift)
    return x


def even(name: str, count: int) -> np.ndarray:
    """fp32 numbers from -1 (included) to 1 (excluded)."""
    return (mixed(name, count) >> np.uint64(8)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)


def weight(name: str, dims: tuple[int, ...]) -> np.ndarray:
    """A weight of several dimensions has the variance 1 / fan_in; others are near one (norms) or near zero (biases)."""
    values = even(name, math.prod(dims))
    if len(dims) > 1:
        fan_in = math.prod(dims[1:])
        values = values * np.sqrt(np.float32(3) / np.float32(fan_in))
    elif name.endswith("weight"):
        values = np.float32(1) + np.float32(0.1) * values
    else:
        values = np.float32(0.1) * values
    return values.reshape(dims)


class Net:
    """Parameters and running statistics by name, made on first use."""

    def __init__(self, dtype, drops):
        self.dtype, self.drops = dtype, drops
        self.parameters, self.statistics, self.ids = {}, {}, []

    def p(self, name, *dims, trained=True):
        if name not in self.parameters:
            values = torch.tensor(weight(name, dims)).to(self.dtype)
            self.parameters[name] = values.requires_grad_(trained)
        return self.parameters[name]

    def conv(self, name, x, channels, kernel, stride=1, padding=0, groups=1, bias=False):
        w = self.p(f"{name}.weight", channels, x.shape[1] // groups, kernel, kernel)
        b = self.p(f"{name}.bias", channels) if bias else None
        return F.conv2d(x, w, b, stride, padding, groups=groups)

    def norm(self, name, x):
        channels = x.shape[1]
        w, b = self.p(f"{name}.weight", channels), self.p(f"{name}.bias", channels)
        if name not in self.statistics:
            self.statistics[name] = (torch.zeros(channels, dtype=self.dtype), torch.ones(channels, dtype=self.dtype))
        mean, variance = self.statistics[name]
        return F.batch_norm(x, mean, variance, w, b, training=True)

    def linear(self, name, x, features, bias=True, trained=True):
        w = self.p(f"{name}.weight", features, x.shape[-1], trained=trained)
        b = self.p(f"{name}.bias", features, trained=trained) if bias else None
        return F.linear(x, w, b)

    def layer_norm(self, name, x, epsilon):
        w, b = (self.p(f"{name}.{part}", x.shape[-1]) for part in ["weight", "bias"])
        return F.layer_norm(x, x.shape[-1:], w, b, epsilon)

    def dropout(self, x, probability):
        return F.dropout(x, probability) if self.drops else x


def lenet5(n, x):
    x = F.max_pool2d(F.relu(n.conv("conv1", x, 6, 5, padding=2, bias=True)), 2)
    x = F.max_pool2d(F.relu(n.conv("conv2", x, 16, 5, bias=True)), 2)
    x = F.relu(n.linear("fc1", x.flatten(1), 120))
    return n.linear("fc3", F.relu(n.linear("fc2", x, 84)), 10)


def resnet(n, x, blocks):
    relu = lambda x: F.relu(x, inplace=True)
    x = relu(n.norm("bn1", n.conv("conv1", x, 16, 3, padding=1)))
    for stage, width in enumerate([16, 32, 64]):
        for block in range(blocks):
            name, stride = f"layer{stage + 1}.{block}", 2 if stage > 0 and block == 0 else 1
            y = relu(n.norm(f"{name}.bn1", n.conv(f"{name}.conv1", x, width, 3, stride, 1)))
            y = n.norm(f"{name}.bn2", n.conv(f"{name}.conv2", y, width, 3, 1, 1))
            if stride != 1 or x.shape[1] != width:
                x = n.norm(f"{name}.downsample.1", n.conv(f"{name}.downsample.0", x, width, 1, stride))
            x = relu(y + x)
    return n.linear("fc", F.adaptive_avg_pool2d(x, 1).flatten(1), 10)


def mobilenetv2_slim(n, x):
    relu6 = lambda x: F.relu6(x, inplace=True)
    x = relu6(n.norm("features.0.1", n.conv("features.0.0", x, 8, 3, padding=1)))
    index = 1
    stages = [(1, 8, 1, 1), (6, 8, 1, 1), (6, 8, 2, 2), (6, 16, 2, 2), (6, 24, 2, 1), (6, 40, 2, 2), (6, 80, 1, 1)]
    for expansion, channels, blocks, first_stride in stages:
        for block in range(blocks):
            name, stride = f"features.{index}.conv", first_stride if block == 0 else 1
            y, narrow = x, x.shape[1]
            hidden, at = narrow * expansion, 0
            if expansion != 1:
                y, at = relu6(n.norm(f"{name}.0.1", n.conv(f"{name}.0.0", y, hidden, 1))), 1
            y = n.conv(f"{name}.{at}.0", y, hidden, 3, stride, 1, groups=hidden)
            y = relu6(n.norm(f"{name}.{at}.1", y))
            y = n.norm(f"{name}.{at + 2}", n.conv(f"{name}.{at + 1}", y, channels, 1))
            x = x + y if stride == 1 and narrow == channels else y
            index += 1
    x = relu6(n.norm(f"features.{index}.1", n.conv(f"features.{index}.0", x, 320, 1)))
    return n.linear("classifier.1", n.dropout(F.adaptive_avg_pool2d(x, 1).flatten(1), 0.2), 10)


def vgg_small(n, x):
    index = 0
    for channels in [32, 64, 128]:
        for _ in range(2):
            x = n.conv(f"features.{index}", x, channels, 3, padding=1, bias=True)
            x = F.relu(n.norm(f"features.{index + 1}", x), inplace=True)
            index += 3
        x = F.max_pool2d(x, 2)
        index += 1
    return n.linear("classifier", x.flatten(1), 10)


def encoder(n, ids, name, layers, width, heads, inner, adapter, epsilon):
    """A BERT of 256 tokens and 64 positions without dropout; layers with an adapter are frozen."""
    table = lambda part, rows: n.p(f"{name}.embeddings.{part}.weight", rows, width)
    x = F.embedding(ids, table("word_embeddings", 256))
    # As in Hugging Face: buffers of all positions, cut to the tokens.
    n.ids = [torch.zeros(1, 64, dtype=torch.int64), torch.arange(64)[None]]
    types, positions = (buffer[:, : ids.shape[1]] for buffer in n.ids)
    x = x + F.embedding(types.expand(ids.shape), table("token_type_embeddings", 1))
    x = x + F.embedding(positions, table("position_embeddings", 64))
    x = n.layer_norm(f"{name}.embeddings.LayerNorm", x, epsilon)
    for layer in range(layers):
        part = f"{name}.encoder.layer.{layer}"

        def dense(place, x, features, adapted=False):
            adapted = adapted and adapter is not None
            y = n.linear(f"{part}.{place}", x, features, trained=not adapted)
            if adapted:
                rank, alpha = adapter
                down = F.linear(x, n.p(f"{part}.{place}.lora_A.weight", rank, x.shape[-1]))
                y = y + F.linear(down, n.p(f"{part}.{place}.lora_B.weight", features, rank)) * (alpha / rank)
            return y.unflatten(2, (heads, width // heads)).transpose(1, 2) if "self" in place else y

        query = dense("attention.self.query", x, width, True)
        key, value = dense("attention.self.key", x, width), dense("attention.self.value", x, width, True)
        scores = query @ key.transpose(2, 3) * (1 / math.sqrt(width // heads)) + 0.0
        context = (F.softmax(scores, -1) @ value).transpose(1, 2).flatten(2)
        y = dense("attention.output.dense", context, width)
        x = n.layer_norm(f"{part}.attention.output.LayerNorm", y + x, epsilon)
        y = dense("output.dense", F.gelu(dense("intermediate.dense", x, inner)), width)
        x = n.layer_norm(f"{part}.output.LayerNorm", y + x, epsilon)
    return x[:, 0]


def transformer2_lora(n, ids):
    x = encoder(n, ids, "transformer", 2, 64, 4, 256, (4, 8.0), 1e-5)
    # peft keeps the head's original, unused.
    n.p("classifier.original_module.dense", 64 * 65, trained=False)
    n.p("classifier.original_module.out_proj", 4 * 65, trained=False)
    return n.linear("classifier.out_proj", torch.tanh(n.linear("classifier.dense", x, 64)), 4)


def transformer1(n, ids):
    x = encoder(n, ids, "transformer", 1, 32, 2, 64, None, 1e-5)
    return n.linear("classifier", torch.tanh(n.linear("transformer.pooler.dense", x, 32)), 4)


def bag_of_tokens(n, ids):
    x = F.embedding(ids, n.p("embedding.weight", 256, 32))
    return n.linear("classifier", x.mean(1), 4)


def logistic(n, x):
    return n.linear("classifier", x.flatten(1), 10)


def mlp(n, x):
    return n.linear("fc2", F.relu(n.linear("fc1", x.flatten(1), 64)), 10)


IMAGE, TOKENS = (3, 32, 32), (32,)
NETWORKS = {
    "lenet5": (lenet5, IMAGE, 10),
    "resnet8-cifar": (lambda n, x: resnet(n, x, 1), IMAGE, 10),
    "resnet20-cifar": (lambda n, x: resnet(n, x, 3), IMAGE, 10),
    "mobilenetv2-slim": (mobilenetv2_slim, IMAGE, 10),
    "vgg-small": (vgg_small, IMAGE, 10),
    "transformer2-lora": (transformer2_lora, TOKENS, 4),
    "logistic": (logistic, IMAGE, 10),
    "mlp": (mlp, IMAGE, 10),
    "bag-of-tokens": (bag_of_tokens, TOKENS, 4),
    "transformer1": (transformer1, TOKENS, 4),
}
STEPPED = ["lenet5", "resnet8-cifar", "mobilenetv2-slim", "vgg-small", "transformer2-lora", "mlp", "bag-of-tokens", "transformer1"]


def batch_of(shape, classes, dtype, batch=BATCH):
    count = batch * math.prod(shape)
    if shape == TOKENS:
        samples = torch.tensor((mixed("input", count) % np.uint64(64)).astype(np.int64))
    else:
        samples = torch.tensor(even("input", count)).to(dtype)
    labels = torch.tensor((mixed("target", batch) % np.uint64(classes)).astype(np.int64))
    return samples.reshape(batch, *shape), labels


def steps(name, dtype):
    build, shape, classes = NETWORKS[name]
    n = Net(dtype, drops=False)
    x, labels = batch_of(shape, classes, dtype)
    losses, gradients = [], {}
    for step in range(STEPS):
        loss = F.cross_entropy(build(n, x), labels)
        losses.append(loss.item())
        loss.backward()
        for parameter, values in n.parameters.items():
            if values.grad is None:
                continue
            if step == 0:
                g = values.grad.flatten()
                gradients[parameter] = {"sum": g.sum().item(), "absolute": g.abs().sum().item(), "first": g[:3].tolist()}
            with torch.no_grad():
                values -= LEARNING_RATE * values.grad
            values.grad = None
    parameters = {
        parameter: gradient | {"after": n.parameters[parameter].sum().item()} for parameter, gradient in gradients.items()
    }
    statistics = {k: {"mean": mean.sum().item(), "variance": v.sum().item()} for k, (mean, v) in n.statistics.items()}
    return {"input": shape, "classes": classes, "losses": losses, "parameters": parameters, "statistics": statistics}


def count(name, batch):
    """The counts of PyTorch, and the tensors that it keeps for backward, in fp32 with dropout."""
    build, shape, classes = NETWORKS[name]
    n = Net(torch.float32, drops=True)
    x, labels = batch_of(shape, classes, torch.float32, batch)
    with torch.no_grad(), FlopCounterMode(display=False) as forward:
        build(n, x)
    saved = {}
    own = {values.untyped_storage().data_ptr() for values in n.parameters.values()}

    def keep(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = F.cross_entropy(build(n, x), labels)
    given = {tensor.untyped_storage().data_ptr() for tensor in [x, labels]}
    given |= {tensor.untyped_storage().data_ptr() for pair in [*n.statistics.values(), n.ids] for tensor in pair}
    kept = {place: storage.nbytes() for place, storage in saved.items() if place not in own}
    del loss
    return {
        "model": name,
        "batch": batch,
        "total_params": sum(values.numel() for values in n.parameters.values()),
        "trainable_params": sum(values.numel() for values in n.parameters.values() if values.requires_grad),
        "fwd_flops": forward.get_total_flops(),
        "saved_bytes": sum(kept.values()),
        "saved_act_bytes": sum(size for place, size in kept.items() if place not in given),
    }


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, (list, tuple)) else value


def difference(single, double):
    """The largest difference between the same steps in fp32 and in fp64, relative to each gradient's absolute sum."""
    pairs = [(single["parameters"][p], double["parameters"][p]) for p in double["parameters"]]
    return max(abs(a["absolute"] - b["absolute"]) / b["absolute"] for a, b in pairs if b["absolute"] > 1e-6)


def main():
    networks = {}
    for name in STEPPED:
        double, single = steps(name, torch.float64), steps(name, torch.float32)
        networks[name] = double | {"fp32_gradient_error": difference(single, double), "fp32_losses": single["losses"]}
        print(name, double["losses"], networks[name]["fp32_gradient_error"])
    about = "python/training_steps.py, torch " + torch.__version__
    fixture = {"source": about, "batch": BATCH, "learning_rate": LEARNING_RATE, "networks": rounded(networks)}
    path = ROOT / "sim/numerics/tests/data/steps.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(fixture, separators=(",", ":")).replace('"layer', '\n"layer').replace("},", "},\n") + "\n")
    with open(ROOT / "workloads/tests/data/small_counts.csv", "w", newline="") as file:
        rows = [count(name, batch) for name in NETWORKS for batch in [1, 8]]
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
