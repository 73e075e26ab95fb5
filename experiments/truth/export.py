#!/usr/bin/env python3
"""Writes the networks of the sets `mnn-phones` and `jetson-tx2`: graphs without weights, as the authors of the measurements built them.

    python3 -m pip install onnx
    python3 experiments/truth/export.py

The measurements state no licence, so the networks are rebuilt from their layers. Pruned networks have the channels that
remained after their authors pruned them at random.
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

HERE = Path(__file__).parent
RELU6 = (0.0, 6.0)
PICTURE = [3, 224, 224]


class Graph:
    """A network as it is put together, one operator after another; names of tensors are its values."""

    def __init__(self, name, sample=PICTURE):
        self.name, self.sample = name, sample
        self.nodes, self.weights = [], []

    def add(self, kind, inputs, **attributes):
        output = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def weight(self, name, shape):
        """A trained tensor, whose values are not needed."""
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{self.name}.weights")
        self.weights.append(tensor)
        return name

    def constant(self, value, kind=TensorProto.FLOAT):
        return self.add("Constant", [], value=helper.make_tensor("value", kind, [], [value]))

    def convolution(self, x, inputs, outputs, size, stride=1, pads=None, groups=1, bias=False):
        name = f"convolution_{len(self.nodes)}"
        parts = [x, self.weight(f"{name}.weight", [outputs, inputs // groups, size, size])]
        if bias:
            parts.append(self.weight(f"{name}.bias", [outputs]))
        pads = [size // 2] * 4 if pads is None else pads
        return self.add("Conv", parts, kernel_shape=[size] * 2, strides=[stride] * 2, pads=pads, group=groups)

    def batch_norm(self, x, channels):
        name = f"norm_{len(self.nodes)}"
        parts = [self.weight(f"{name}.{part}", [channels]) for part in ("weight", "bias", "running_mean", "running_var")]
        output = name
        node = helper.make_node("BatchNormalization", [x, *parts], [output, f"{output}_mean", f"{output}_var"], name=output, training_mode=1)
        self.nodes.append(node)
        return output

    def clip(self, x):
        return self.add("Clip", [x, *(self.constant(bound) for bound in RELU6)])

    def pool(self, x, size, stride, pads=(0, 0, 0, 0), ceil=0):
        return self.add("MaxPool", [x], kernel_shape=[size] * 2, strides=[stride] * 2, pads=list(pads), ceil_mode=ceil)

    def average(self, x):
        return self.add("Flatten", [self.add("GlobalAveragePool", [x])], axis=1)

    def dropout(self, x, share):
        return self.add("Dropout", [x, self.constant(share), self.constant(True, TensorProto.BOOL)])

    def linear(self, x, inputs, outputs):
        name = f"linear_{len(self.nodes)}"
        parts = [x, self.weight(f"{name}.weight", [outputs, inputs]), self.weight(f"{name}.bias", [outputs])]
        return self.add("Gemm", parts, transB=1)

    def write(self, folder, result, classes):
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
        body = helper.make_graph(self.nodes, self.name, [value("input", self.sample)], [value(result, [classes])], self.weights)
        model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="haversack")
        (HERE / folder / "networks").mkdir(exist_ok=True)
        (HERE / folder / "networks" / f"{self.name}.onnx").write_bytes(model.SerializeToString())


def same_pads(size, extent, stride):
    """TensorFlow's SAME: what is odd goes below and to the right."""
    whole = max((-(-extent // stride) - 1) * stride + size - extent, 0)
    return [whole // 2, whole // 2, whole - whole // 2, whole - whole // 2]


# -- MNN's training demos ---------------------------------------------------------------------------------------------------


def lenet_mnn():
    """Two convolutions, of which the demo does not register the second: it is not trained there."""
    graph = Graph("lenet_mnn", [1, 28, 28])
    x = graph.convolution("input", 1, 20, 5, pads=[0] * 4, bias=True)
    x = graph.convolution(graph.pool(x, 2, 2), 20, 50, 5, pads=[0] * 4, bias=True)
    x = graph.linear(graph.add("Flatten", [graph.pool(x, 2, 2)], axis=1), 800, 400)
    x = graph.dropout(graph.add("Relu", [x]), 0.5)
    graph.write("mnn-phones", graph.linear(x, 400, 10), 10)


# Of a fire module: what it squeezes to, and expands to on either side. Behind the third and the seventh comes a pooling.
FIRES = [(16, 64, 64)] * 2 + [(32, 128, 128)] * 2 + [(48, 192, 192)] * 2 + [(64, 256, 256)] * 2
POOLED = (2, 6)


def squeezenet_mnn():
    """Without activations, and its classifier with the stride that an option kept from before."""
    graph, extent, inputs = Graph("squeezenet_mnn"), 112, 96
    x = graph.convolution("input", 3, inputs, 7, 2, same_pads(7, 224, 2), bias=True)
    x, extent = graph.pool(x, 3, 2, same_pads(3, extent, 2)), extent // 2
    for number, (squeezed, *expanded) in enumerate(FIRES):
        x = graph.convolution(x, inputs, squeezed, 1, bias=True)
        sides = [graph.convolution(x, squeezed, wide, size, bias=True) for wide, size in zip(expanded, (1, 3))]
        x, inputs = graph.add("Concat", sides, axis=1), sum(expanded)
        if number in POOLED:
            x, extent = graph.pool(x, 3, 2, same_pads(3, extent, 2)), extent // 2
    x = graph.convolution(x, inputs, 10, 1, 2, bias=True)
    graph.write("mnn-phones", graph.average(x), 10)


# Of MobileNetV2's stages: how much a block widens, its channels, how many there are, the stride of the first.
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def mobilenetv2_mnn():
    graph, extent, inputs = Graph("mobilenetv2_mnn"), 224, 32

    def block(x, inputs, outputs, size, stride=1, groups=1, activated=True):
        pads = same_pads(size, extent, stride)
        x = graph.batch_norm(graph.convolution(x, inputs, outputs, size, stride, pads, groups), outputs)
        return graph.clip(x) if activated else x

    x = block("input", 3, 32, 3, 2)
    extent = 112
    for factor, channels, times, first in STAGES:
        for time in range(times):
            stride, before, wide = first if time == 0 else 1, x, inputs * factor
            if factor > 1:
                x = block(x, inputs, wide, 1)
            x = block(x, wide, wide, 3, stride, wide)
            extent //= stride
            x = block(x, wide, channels, 1, activated=False)
            x = graph.add("Add", [before, x]) if stride == 1 and inputs == channels else x
            inputs = channels
    x = graph.dropout(graph.average(block(x, 320, 1280, 1)), 0.1)
    graph.write("mnn-phones", graph.linear(x, 1280, 1001), 1001)


# -- perf4sight's networks on the TX2 -----------------------------------------------------------------------------------------


def resnet18(percent, first, stages):
    """`stages`: of each, the channels that its blocks add to, and those within each block."""
    graph, inputs = Graph(f"resnet18_{percent}"), first

    def block(x, inputs, outputs, size, stride=1):
        return graph.batch_norm(graph.convolution(x, inputs, outputs, size, stride), outputs)

    x = graph.add("Relu", [block("input", 3, first, 7, 2)])
    x = graph.pool(x, 3, 2, [1] * 4)
    for number, (channels, within) in enumerate(stages):
        for place, width in enumerate(within):
            stride = 2 if number > 0 and place == 0 else 1
            y = graph.add("Relu", [block(x, inputs, width, 3, stride)])
            y = block(y, width, channels, 3)
            beside = block(x, inputs, channels, 1, stride) if stride == 2 else x
            x, inputs = graph.add("Relu", [graph.add("Add", [y, beside])]), channels
    graph.write("jetson-tx2", graph.linear(graph.average(x), inputs, 1000), 1000)


def squeezenet(percent, first, fires):
    """SqueezeNet 1.0 with poolings rounded up and without dropout; `fires` lists the channels that each squeezes and expands to."""
    graph, inputs = Graph(f"squeezenet_{percent}"), first

    def block(x, inputs, outputs, size, **options):
        return graph.convolution(x, inputs, outputs, size, bias=True, **options)

    x = graph.pool(graph.add("Relu", [block("input", 3, first, 7, stride=2, pads=[0] * 4)]), 3, 2, ceil=1)
    for number, (squeezed, *expanded) in enumerate(fires):
        x = graph.add("Relu", [block(x, inputs, squeezed, 1)])
        sides = [block(x, squeezed, wide, size) for wide, size in zip(expanded, (1, 3))]
        x, inputs = graph.add("Relu", [graph.add("Concat", sides, axis=1)]), sum(expanded)
        if number in POOLED:
            x = graph.pool(x, 3, 2, ceil=1)
    graph.write("jetson-tx2", graph.average(graph.add("Relu", [block(x, inputs, 1000, 1)])), 1000)


def mobilenetv2(percent, first, blocks, last):
    """`blocks`: of each, how wide it is within, its channels, and its stride. The first widens, too, if to no more."""
    graph, inputs = Graph(f"mobilenetv2_{percent}"), first

    def block(x, inputs, outputs, size, stride=1, groups=1, activated=True):
        x = graph.batch_norm(graph.convolution(x, inputs, outputs, size, stride, groups=groups), outputs)
        return graph.clip(x) if activated else x

    x = block("input", 3, first, 3, 2)
    for wide, channels, stride in blocks:
        before = x
        x = block(block(x, inputs, wide, 1), wide, wide, 3, stride, wide)
        x = block(x, wide, channels, 1, activated=False)
        x = graph.add("Add", [x, before]) if stride == 1 and inputs == channels else x
        inputs = channels
    x = graph.average(block(x, inputs, last, 1))
    graph.write("jetson-tx2", graph.linear(x, last, 1000), 1000)


def blocks():
    """Of MobileNetV2 as it is, unpruned."""
    inputs = 32
    for factor, channels, times, first in STAGES:
        for time in range(times):
            yield inputs * factor, channels, first if time == 0 else 1
            inputs = channels


if __name__ == "__main__":
    lenet_mnn()
    squeezenet_mnn()
    mobilenetv2_mnn()
    resnet18(0, 64, [(64, [64] * 2), (128, [128] * 2), (256, [256] * 2), (512, [512] * 2)])
    resnet18(50, 32, [(32, [50, 54]), (84, [99, 93]), (166, [203, 198]), (308, [407, 418])])
    squeezenet(0, 96, FIRES)
    pruned = [(10, 43, 34), (9, 42, 41), (17, 82, 77), (26, 80, 79), (26, 123, 126), (33, 118, 120), (43, 165, 167)]
    squeezenet(50, 59, [*pruned, (36, 161, 165)])
    mobilenetv2(0, 32, blocks(), 1280)
    pruned = [(24, 11, 1), (57, 12, 2), (81, 12, 1), (84, 19, 2), (103, 19, 1), (117, 19, 1), (106, 32, 2), (224, 32, 1)]
    pruned += [(220, 32, 1), (216, 32, 1), (212, 48, 1), (328, 48, 1), (344, 48, 1), (330, 80, 2), (566, 80, 1)]
    mobilenetv2(50, 22, [*pruned, (519, 80, 1), (544, 244, 1)], 942)
