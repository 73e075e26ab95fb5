"""Outputs and gradients of operators in PyTorch, on the CPU: `python operators.py > operators.json`.

Operands come from a formula, `values`, that the tests repeat; what is kept here is only what PyTorch answers. The gradient
of every output is `values(len, 9)`. Made with PyTorch 2.15.0.
"""

import json
import math

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
cases = {}


def values(*shape, k):
    count = math.prod(shape)
    return torch.tensor([math.sin(0.37 * i + 1.3 * k) for i in range(count)], dtype=torch.float32).reshape(shape)


def listed(tensor):
    if tensor.dtype == torch.int64:
        return tensor.flatten().tolist()
    return [float(f"{x:.8g}") for x in tensor.detach().flatten().tolist()]


def case(name, function, *operands, **more):
    """Keeps the output, the gradients of the operands in their order, and what else is named."""
    operands = [operand.clone().requires_grad_() for operand in operands]
    output = function(*operands)
    output.backward(values(*output.shape, k=9))
    kept = {"output": output, "gradients": [operand.grad for operand in operands]} | more
    cases[name] = {
        key: [listed(x) for x in kept] if isinstance(kept, list) else listed(kept) for key, kept in kept.items()
    }


def convolution(name, x, w, **settings):
    bias = values(w[0], k=3)
    case(name, lambda x, w, b: F.conv2d(x, w, b, **settings), values(*x, k=1), values(*w, k=2), bias)


convolution("convolution", (2, 3, 5, 6), (4, 3, 3, 3), padding=1)
convolution("convolution_stride", (2, 3, 7, 6), (5, 3, 3, 3), padding=1, stride=2)
convolution("convolution_pointwise", (2, 4, 5, 5), (3, 4, 1, 1), stride=2)
convolution("convolution_grouped", (2, 4, 5, 4), (6, 2, 3, 2), padding=(1, 0), groups=2)
convolution("convolution_depthwise", (2, 4, 5, 5), (4, 1, 3, 3), padding=1, groups=4)

case("linear", F.linear, values(5, 7, k=1), values(4, 7, k=2), values(4, k=3))
case("matmul", torch.matmul, values(3, 4, 5, k=1), values(3, 5, 2, k=2))

mean, variance = values(3, k=4), values(3, k=5) + 2
case(
    "batch_norm",
    lambda x, w, b: F.batch_norm(x, mean, variance, w, b, training=True, momentum=0.3, eps=1e-3),
    values(4, 3, 2, 3, k=1),
    values(3, k=2),
    values(3, k=3),
    running_mean=mean,
    running_variance=variance,
)
case(
    "batch_norm_evaluated",
    lambda x: F.batch_norm(x, values(3, k=4), values(3, k=5) + 2, values(3, k=2), values(3, k=3), training=False, eps=1e-3),
    values(4, 3, 2, 3, k=1),
)
case(
    "layer_norm",
    lambda x, w, b: F.layer_norm(x, (7,), w, b, eps=1e-2),
    values(5, 7, k=1),
    values(7, k=2),
    values(7, k=3),
)

for name, function in {
    "relu": F.relu,
    "relu6": F.relu6,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "clip": lambda x: torch.clamp(x, -1, 5),
    "power": lambda x: x.pow(2),
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "cube": lambda x: x.pow(3),
}.items():
    case(name, function, 8 * values(40, k=1))
case("softmax", lambda x: F.softmax(x, -1), 5 * values(4, 9, k=1))
case("add", torch.add, values(4, 6, k=1), values(6, k=2))
case("subtract", torch.sub, values(4, 6, k=1), values(6, k=2))
case("roll", lambda x: torch.roll(x, (1, 2), (1, 2)), values(2, 3, 5, k=1))
case("multiply", torch.mul, values(4, 6, k=1), values(6, k=2))
case("concatenate", lambda a, b: torch.cat([a, b], 1), values(2, 3, 4, k=1), values(2, 5, 4, k=2))

_, indices = F.max_pool2d(values(2, 3, 7, 6, k=1), 3, 2, 1, return_indices=True)
case("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), values(2, 3, 7, 6, k=1), indices=indices)
case("max_pool_up", lambda x: F.max_pool2d(x, 3, 2, 0, ceil_mode=True), values(1, 2, 6, 8, k=1))
case("average_pool", lambda x: F.avg_pool2d(x, 3, 2, 1), values(1, 2, 7, 6, k=1))
case("average_pool_up", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), values(1, 2, 6, 8, k=1))
case(
    "average_pool_without_padding",
    lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    values(1, 2, 7, 6, k=1),
)
case("adaptive_pool", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), values(1, 2, 7, 6, k=1))
case("global_pool", lambda x: F.adaptive_avg_pool2d(x, 1), values(2, 3, 5, 4, k=1))
case("mean", lambda x: x.mean(1), values(2, 5, 3, k=1))

tokens = torch.tensor([3, 0, 3, 5, 1, 3])
case("embedding", lambda table: F.embedding(tokens, table), values(6, 4, k=1))

labels = torch.tensor([2, 0, 3, 1, 2])
logits = (4 * values(5, 4, k=1)).requires_grad_()
loss = F.cross_entropy(logits, labels)
loss.backward()
cases["cross_entropy"] = {
    "output": listed(loss.reshape(1)),
    "gradients": [listed(logits.grad)],
    "correct": [int((logits.argmax(1) == labels).sum())],
}


def optimised(name, optimiser, steps=3):
    """The weight after each of a few steps."""
    weight = values(11, k=1).requires_grad_()
    optimiser = optimiser([weight])
    after = []
    for step in range(steps):
        weight.grad = values(11, k=step + 2)
        optimiser.step()
        after.append(listed(weight))
    cases[name] = {"output": after[-1], "gradients": after}


optimised("sgd", lambda weights: torch.optim.SGD(weights, lr=0.1, weight_decay=0.01))
optimised("momentum", lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9, weight_decay=0.01))
optimised("adam", lambda weights: torch.optim.Adam(weights, lr=0.01, weight_decay=0.01))

print("{")
print(",\n".join(f'  "{name}": {json.dumps(kept)}' for name, kept in cases.items()))
print("}")
