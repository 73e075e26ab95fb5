"""A plan for saved tensors, carried out in PyTorch by hooks; the module stays as it is.

    plan = haversack.plan(module, sample, device="server-core", memory_budget="50%", policy="dgc")
    with plan.apply(module):
        criterion(module(inputs), labels).backward()
    plan.check()

See docs/run-a-plan-in-pytorch.md. Needs torch and onnx.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from .errors import InputError
from .network import from_torch
from .policy import Policy
from .tape import Carried, Operation, Tape, Value

#: The supported version of plan files.
VERSION = 1

#: The names that PyTorch's exporter gives each operator.
_EXPORTED = {
    "convolution": {"Conv", "ConvTranspose"},
    "addmm": {"Gemm", "MatMul"},
    "mm": {"Gemm", "MatMul"},
    "bmm": {"Gemm", "MatMul"},
    "baddbmm": {"Gemm", "MatMul"},
    "add": {"Add"},
    "sub": {"Sub"},
    "mul": {"Mul"},
    "div": {"Div", "Mul"},
    "relu": {"Relu"},
    "hardtanh": {"Clip"},
    "clamp": {"Clip"},
    "gelu": {"Gelu", "Erf"},
    "tanh": {"Tanh"},
    "sigmoid": {"Sigmoid"},
    "exp": {"Exp"},
    "_softmax": {"Softmax"},
    "_log_softmax": {"LogSoftmax"},
    "embedding": {"Gather"},
    "cat": {"Concat"},
    "mean": {"ReduceMean", "GlobalAveragePool"},
    "_adaptive_avg_pool2d": {"AveragePool", "GlobalAveragePool"},
    "avg_pool2d": {"AveragePool"},
    "max_pool2d_with_indices": {"MaxPool"},
    "native_batch_norm": {"BatchNormalization"},
    "cudnn_batch_norm": {"BatchNormalization"},
    "native_layer_norm": {"LayerNormalization"},
    "native_group_norm": {"GroupNormalization", "InstanceNormalization"},
    "native_dropout": {"Dropout"},
    "bernoulli": {"Dropout"},
}
#: Operators without a node: other operators fill their results.
_WITHOUT_NODE = {"empty", "empty_like", "empty_strided", "zeros", "ones", "full", "arange", "scalar_tensor"}


class _Node(NamedTuple):
    """An operator of forward in the simulated graph."""

    id: int
    #: The exporter's name for its kind.
    kind: str
    is_layout: bool
    outputs: Sequence[int]


class _Graph:
    """The simulated graph, by the names of modules."""

    def __init__(self, module: torch.nn.Module, setting: Dict[str, Any], names: Sequence[str], sizes: Dict[int, int]) -> None:
        self.nodes, self.names, self.sizes = setting["nodes"], names, sizes
        self.batch: int = setting["batch"]
        phases = [node["phase"] for node in self.nodes]
        self.first_backward = phases.index("backward")
        self.by_module: Dict[str, List[_Node]] = {}
        self.last_use: Dict[int, int] = {}
        modules = {name for name, _ in module.named_modules()}
        for id, node in enumerate(self.nodes[: self.first_backward]):
            path, kind = _module_path(node["name"], modules)
            found = _Node(id, kind, node["operator"] == "layout", node["outputs"])
            self.by_module.setdefault(path, []).append(found)
            self.last_use.update((tensor, id) for tensor in (*node["inputs"], *node["outputs"]))
        first: Dict[str, int] = {}
        for id, node in enumerate(self.nodes[self.first_backward :], self.first_backward):
            if node["phase"] == "backward":
                first.setdefault(re.sub(r"\.(weight|input)_gradient$", "", node["name"]), id)
        self.writers: Dict[int, List[int]] = {}
        self.last_reader: Dict[int, int] = {}
        for id, node in enumerate(self.nodes):
            self.last_reader.update((tensor, id) for tensor in node["inputs"])
            for tensor in node["outputs"] if id < self.first_backward else ():
                self.writers.setdefault(tensor, []).append(id)
        forward = enumerate(self.nodes[: self.first_backward])
        self.backward_of = {id: first[node["name"]] for id, node in forward if node["name"] in first}

    def after_forward(self, treatments: Dict[int, Any], steps: Sequence[Tuple[int, int, Any]]) -> Dict[int, Any]:
        """The hold of each tensor at the end of forward; tensors that gave way too early were computed again before."""
        held: Dict[int, Any] = {}
        for id, node in enumerate(self.nodes[: self.first_backward]):
            given_way = {tensor: hold for before, tensor, hold in steps if before == id}
            held.update(given_way)
            again: Set[int] = set()
            asked = list(node["inputs"])
            while asked:
                tensor = asked.pop()
                if held.get(tensor) != "rematerialise":
                    continue
                for writer in self.writers[tensor]:
                    if writer < id and writer not in again:
                        again.add(writer)
                        asked.extend(self.nodes[writer]["inputs"])
            for tensor in (tensor for writer in again for tensor in self.nodes[writer]["outputs"]):
                if tensor in node["inputs"] or tensor not in given_way:
                    held[tensor] = "keep" if self.last_reader.get(tensor, 0) >= id else "rematerialise"
            held.update((tensor, "keep") for tensor in node["outputs"])
            for tensor in (*node["inputs"], *node["outputs"]):
                if self.last_use[tensor] == id and tensor in self.writers:
                    # Tensors that later nodes do not need are gone.
                    needed = self.last_reader.get(tensor, 0) > id
                    held[tensor] = treatments.get(tensor, "keep") if needed else "rematerialise"
        return {tensor: hold for tensor, hold in held.items() if tensor in self.sizes}

    def weights_for(self, tensor: int) -> Set[str]:
        """The weights whose gradients need a tensor."""
        backward = [node for node in self.nodes[self.first_backward :] if node["phase"] == "backward"]
        made = {output for node in backward if tensor in node["inputs"] for output in node["outputs"]}
        return {name for name in map(self.weight, made) if name}

    def weight(self, gradient: int) -> str:
        """The weight of a gradient: fc.weight for `fc.weight.gradient`."""
        name = self.names[gradient]
        return name[: -len(".gradient")] if name.endswith(".gradient") and not name.startswith("/") else ""


def _module_path(name: str, modules: Set[str]) -> Tuple[str, str]:
    """The module and the kind of an exported node: layer1.0.relu and Relu for `/layer1/layer1.0/relu_1/Relu`."""
    *scopes, kind = name.strip("/").split("/")
    path, before = "", ""
    for scope in scopes:
        if before and scope.startswith(before + "."):
            tried = path[: len(path) - len(before)] + scope
        else:
            tried = f"{path}.{scope}" if path else scope
        # A module that is called more than once has a number.
        path = tried if tried in modules else re.sub(r"_\d+$", "", tried)
        before = scope
    return path, re.sub(r"_\d+$", "", kind)


class _Probe(Policy):
    """Records the graph, and keeps everything."""

    def __init__(self) -> None:
        self.setting: Dict[str, Any] = {}
        self.names: List[str] = []
        self.sizes: Dict[int, int] = {}

    def prepare(self, setting: Any) -> None:
        self.setting = setting

    def hold(self, tensor: Any, memory: Any) -> str:
        if not self.names:
            self.names = [memory.tensor(id).name for id in range(len(memory))]
        self.sizes[tensor.id] = tensor.bytes
        return "keep"


def _hold(planned: Any) -> Any:
    """The hold of a tensor in a plan's file: a word, or a number of bits."""
    return planned["quantise"] if isinstance(planned, dict) else planned


def _relieved(relief: Dict[str, Any]) -> Optional[Tuple[int, Any]]:
    """The tensor that gives way and its hold from then on; None if the micro-batch shrinks instead."""
    ((action, of),) = relief.items()
    if action == "shrink-micro-batch":
        return None
    return (of[0], of[1]) if isinstance(of, list) else (of, action)


class Checked(NamedTuple):
    """Measured and simulated values: bytes, and times in seconds of one step forward and backward."""

    simulated_peak_bytes: int
    measured_peak_bytes: int
    plain_simulated_peak_bytes: int
    plain_measured_peak_bytes: int
    simulated_time_ratio: float
    measured_time_ratio: float
    measured_s: float
    plain_measured_s: float
    #: The length of the difference of all gradients over the length of those without the plan.
    gradient_error: float
    bit_equal: bool

    def __str__(self) -> str:
        mega = lambda bytes: f"{bytes / 1e6:.1f} MB"  # noqa: E731
        apart = self.measured_peak_bytes / self.simulated_peak_bytes - 1
        error = "0 (equal to the last bit)" if self.bit_equal else f"{self.gradient_error:.3g}"
        return "\n".join(
            [
                f"{'':<24}{'simulated':>12}{'measured':>12}",
                f"{'peak with the plan':<24}{mega(self.simulated_peak_bytes):>12}{mega(self.measured_peak_bytes):>12}"
                f"  ({apart:+.1%})",
                f"{'peak without':<24}{mega(self.plain_simulated_peak_bytes):>12}{mega(self.plain_measured_peak_bytes):>12}",
                f"{'time with / without':<24}{self.simulated_time_ratio:>12.3f}{self.measured_time_ratio:>12.3f}",
                f"{'error of the gradient':<24}{'':>12}  {error}",
            ]
        )


class Plan(Carried):
    """The treatment of each saved tensor of a module. Made by `plan`."""

    def __init__(self, module: torch.nn.Module, samples: Tuple[Any, ...], graph: _Graph, text: str) -> None:
        #: The plan as `haversack simulate --plan` writes it.
        self.text = text
        #: The results of `simulate`, under the plan and with everything kept.
        self.simulated: Dict[str, Any] = {}
        self.plain: Dict[str, Any] = {}
        #: Facts that a user may not expect, a sentence each.
        self.notes: List[str] = []
        #: Bytes of the saved tensors that the plan does not name, by the operator that makes them; they are kept.
        self.not_found: Dict[str, int] = {}
        #: Weights that get no gradient.
        self.given_up: Set[str] = set()
        self.to_file = True
        self._graph, self._samples, self._shape = graph, samples, _shape_of(module)
        self._read(json.loads(text))

    def __repr__(self) -> str:
        counts: Dict[str, int] = {}
        for hold in self.holds.values():
            kind = f"{hold} bits" if isinstance(hold, int) else str(hold)
            counts[kind] = counts.get(kind, 0) + 1
        return f"Plan({', '.join(f'{count} {kind}' for kind, count in sorted(counts.items())) or 'everything kept'})"

    def _read(self, plan: Dict[str, Any]) -> None:
        graph, found = self._graph, plan.get("version")
        if found != VERSION:
            raise InputError(f"the plan: version is {found}; expected {VERSION}")
        if plan["batch"] != graph.batch:
            raise InputError(f"the plan is for a batch of {plan['batch']}; the sample has one of {graph.batch}")
        own = [node["name"] for node in plan["nodes"]]
        for planned, node in zip(own, graph.nodes):
            if planned != node["name"]:
                raise InputError(f"the plan is for another network: where it has {planned}, this one has {node['name']}")
        if len(own) != len(graph.nodes):
            raise InputError(f"the plan is for another network: of {len(own)} nodes; this one has {len(graph.nodes)}")
        fixed, iteration = plan["fixed"], plan["iterations"][-1]
        if fixed["eight_bits"] or fixed["offload"]:
            raise InputError(f"the plan of {plan['policy']} computes in eight bits; expected one in floating point")
        if fixed["batch_statistics"] != "part":
            raise InputError("the plan takes the batch statistics of the whole mini-batch; expected --set batch_norm=part")
        self.micro_batch: int = iteration["micro_batch"]
        self.stochastic = bool(fixed["quantisation"]) and fixed["quantisation"]["rounding"] == "stochastic"
        self.backward_of = graph.backward_of
        treatments = {int(tensor): _hold(held["hold"]) for tensor, held in iteration["treatments"].items()}
        steps: List[Tuple[int, int, Any]] = []
        for step in iteration["steps"]:
            ((action, of),) = step["action"].items()
            pairs = [(of[0], _hold(of[1]))] if action == "hold" else [_relieved(relief) for relief in of]
            steps.extend((step["before"], *pair) for pair in pairs if pair and step["part"] == 0)
            if action == "hold" and step["part"] == 0:
                treatments[of[0]] = _hold(of[1])
        self.holds = graph.after_forward(treatments, [step for step in steps if step[0] < graph.first_backward])
        self.steps = [step for step in steps if step[0] >= graph.first_backward]
        self.given_way = {tensor for _, tensor, _ in self.steps}
        self.given_up = {graph.weight(gradient) for gradient in fixed["given_up"]}
        for tensor, hold in self.holds.items():
            if hold == "skip":
                self.given_up |= graph.weights_for(tensor)
        compressed = [tensor for tensor, hold in self.holds.items() if hold == "compress"]
        if compressed:
            self.notes.append(f"{len(compressed)} tensors that the plan compresses are kept: PyTorch has no such codec")
            self.holds.update((tensor, "keep") for tensor in compressed)
            self.steps = [step for step in self.steps if step[2] != "compress"]

    def matcher(self) -> Callable[[Operation], None]:
        graph = self._graph
        left = {path: list(nodes) for path, nodes in graph.by_module.items()}

        def find(operation: Operation) -> Optional[_Node]:
            name, nodes = operation.name.rstrip("_"), left.get(operation.scope, [])
            kinds = _EXPORTED.get(name)
            if name == "clone":
                fits = lambda node: node.is_layout  # noqa: E731
            elif kinds is not None:
                fits = lambda node: node.kind in kinds and not node.is_layout  # noqa: E731
            else:
                # A module that exports as one operator, of any name.
                fits = lambda node: len(nodes) == 1  # noqa: E731
            found = next((node for node in nodes if fits(node)), None)
            if found is not None:
                nodes.remove(found)
            return found

        def match(operation: Operation) -> None:
            value = operation.writes[0][1]
            before = value.planned.get(operation.writes[0][2] - 1)
            if operation.name in _WITHOUT_NODE:
                return
            masks = [read for read, _ in operation.reads if read.is_mask and read is not value]
            if masks and operation.name == "mul":
                # Dropout in two operators: its mask has already found the node.
                drawn = masks[0].writers[-1]
                operation.node = next(writer.node for writer in masks[0].writers if writer.node is not None)
                outputs: Sequence[int] = graph.nodes[operation.node]["outputs"] if drawn else ()
            else:
                node = find(operation)
                if operation.name == "clone" and node is None:
                    # The copy that autograd takes of a tensor that is changed in place next.
                    nodes = left.get(operation.scope, [])
                    node = next((node for node in nodes if len(node.outputs) == 2 and node.kind != "Dropout"), None)
                    node = node and node._replace(outputs=node.outputs[1:])
                operation.node, outputs = (None, ()) if node is None else (node.id, node.outputs)
                if operation.name == "bernoulli_" and node is not None:
                    value.is_mask, outputs = True, outputs[1:]
            for (place, made, version), planned in zip(operation.writes, outputs):
                if self._fits(planned, made):
                    made.planned[version] = planned
            if not outputs and before is not None:
                value.planned[operation.writes[0][2]] = before

        return match

    def _fits(self, planned: int, value: Value) -> bool:
        expected = self._graph.sizes.get(planned)
        return expected is None or value.bytes == expected or value.bytes * self._graph.batch == expected * self.micro_batch

    def parts(self, *tensors: torch.Tensor) -> Iterator[Tuple[Any, ...]]:
        """The micro-batches of a mini-batch, each with its share of the loss as the last item: the sum of the losses times
        their shares is the loss of the mini-batch."""
        batch = len(tensors[0])
        for first in range(0, batch, self.micro_batch):
            end = min(first + self.micro_batch, batch)
            yield (*(tensor[first:end] for tensor in tensors), (end - first) / batch)

    @contextmanager
    def apply(self, module: torch.nn.Module) -> Iterator["Plan"]:
        """Carries the plan out in every forward pass of `module` within the context.

        Raises InputError, before anything runs, if the module is not the one that was planned for, or gets another
        batch.
        """
        self._check_module(module)
        tapes: List[Tape] = []
        hooks = []

        def begin(_: Any, inputs: Any, keys: Any = None) -> None:
            self._check_inputs(inputs)
            tapes.append(Tape(self))
            tapes[-1].begin()

        def end(*_: Any) -> None:
            tape = tapes.pop()
            tape.end()
            self.not_found = dict(tape.not_found)

        def enter(path: str) -> Any:
            return lambda *_: tapes[-1].scope.append(path) if tapes else None

        def leave(*_: Any) -> None:
            if tapes:
                tapes[-1].scope.pop()

        frozen = [parameter for name, parameter in module.named_parameters() if name in self.given_up and parameter.requires_grad]
        try:
            hooks.append(module.register_forward_pre_hook(begin))
            for path, part in module.named_modules():
                if path:
                    hooks.append(part.register_forward_pre_hook(enter(path)))
                    hooks.append(part.register_forward_hook(leave, always_call=True))
            hooks.append(module.register_forward_hook(end, always_call=True))
            for parameter in frozen:
                parameter.requires_grad_(False)
            yield self
        finally:
            for hook in hooks:
                hook.remove()
            for parameter in frozen:
                parameter.requires_grad_(True)

    def _check_module(self, module: torch.nn.Module) -> None:
        shape = _shape_of(module)
        for (name, planned), (other, found) in zip(self._shape, shape):
            if (name, planned) != (other, found):
                raise InputError(f"the module has changed since it was planned for: {name} was {planned}; {other} is {found}")
        if len(shape) != len(self._shape):
            longer = max(shape, self._shape, key=len)[min(len(shape), len(self._shape))]
            raise InputError(f"the module has changed since it was planned for: {longer[0]} was added or taken away")

    def _check_inputs(self, inputs: Tuple[Any, ...]) -> None:
        for planned, found in zip(self._samples, inputs):
            if isinstance(planned, torch.Tensor) and isinstance(found, torch.Tensor):
                batch = {self._graph.batch, self.micro_batch, (self._graph.batch % self.micro_batch) or self.micro_batch}
                if len(found) not in batch or found.shape[1:] != planned.shape[1:]:
                    raise InputError(
                        f"the plan is for samples of {tuple(planned.shape)}, {self.micro_batch} at a time; found {tuple(found.shape)}"
                    )

    def look(self, module: torch.nn.Module) -> None:
        """Runs forward once, and notes the tensors that are not found. Changes nothing."""
        with undisturbed(module), self.apply(module):
            first = next(self.parts(*self._samples))
            module(*first[:-1])
        if self.not_found:
            bytes = sum(self.not_found.values())
            listed = ", ".join(sorted(self.not_found, key=lambda name: -self.not_found[name])[:5])
            more = ", …" if len(self.not_found) > 5 else ""
            self.notes.append(f"{bytes / 1e6:.2f} MB of saved tensors are not in the plan and are kept: {listed}{more}")

    def check(
        self, module: torch.nn.Module, loss: Optional[Callable[[Any], torch.Tensor]] = None, repeats: int = 3
    ) -> Checked:
        """Runs the sample with the plan and without, and prints measured and simulated peak and time, and the error of the
        gradient. Gradients, buffers and random numbers are restored afterwards.

        `loss` turns the module's output into a number; by default the cross-entropy to class 0, or the mean square. Times are
        CPU times, medians of `repeats` interleaved runs.
        """
        loss = loss or _loss

        def step(planned: bool) -> None:
            module.zero_grad(set_to_none=True)
            if not planned:
                loss(module(*self._samples)).backward()
                return
            for *part, share in self.parts(*self._samples):
                with self.apply(module):
                    (loss(module(*part)) * share).backward()

        def gradients() -> Dict[str, torch.Tensor]:
            return {n: p.grad.detach().clone() for n, p in module.named_parameters() if p.grad is not None}

        peaks, times, found = [0, 0], ([], []), []  # type: ignore[var-annotated]
        kept = {name: parameter.grad for name, parameter in module.named_parameters()}
        try:
            for planned in (False, True):
                with undisturbed(module):
                    peaks[planned] = peak_of(module, self._samples, lambda: step(planned))
                    found.append(gradients())
            for planned in [False, True] * repeats:
                with undisturbed(module):
                    times[planned].append(_time_of(lambda: step(planned), self._samples))
        finally:
            for name, parameter in module.named_parameters():
                parameter.grad = kept[name]
        plain, own = found
        apart = sum(float((own.get(n, torch.zeros_like(g)) - g).double().square().sum()) for n, g in plain.items())
        length = sum(float(g.double().square().sum()) for g in plain.values())
        with_it, without = (statistics.median(times[planned]) for planned in (True, False))
        checked = Checked(
            simulated_peak_bytes=self.simulated["peak_memory_bytes"],
            measured_peak_bytes=peaks[True],
            plain_simulated_peak_bytes=self.plain["peak_memory_bytes"],
            plain_measured_peak_bytes=peaks[False],
            simulated_time_ratio=self.simulated["iteration_time_s"] / self.plain["iteration_time_s"],
            measured_time_ratio=with_it / without,
            measured_s=with_it,
            plain_measured_s=without,
            gradient_error=(apart / length) ** 0.5 if length else 0.0,
            bit_equal=set(plain) == set(own) and all(torch.equal(own[n], g) for n, g in plain.items()),
        )
        print(checked, *self.notes, sep="\n")
        return checked


@contextmanager
def undisturbed(module: torch.nn.Module) -> Iterator[None]:
    """Restores the buffers of `module` and the generators of random numbers at the end of the context."""
    before = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            yield
    finally:
        with torch.no_grad():
            for buffer, was in before:
                buffer.copy_(was)


def _loss(given: Any) -> torch.Tensor:
    output = given[0] if isinstance(given, tuple) else given
    if output.dim() == 2:
        return torch.nn.functional.cross_entropy(output, output.new_zeros(len(output), dtype=torch.long))
    return output.square().mean()


def _shape_of(module: torch.nn.Module) -> List[Tuple[str, str]]:
    """The parts of a module: its modules by their representation, its weights by size."""
    parts = [(name, repr(part)) for name, part in module.named_modules() if not list(part.children())]
    return parts + [(name, f"{tuple(weight.shape)}") for name, weight in module.named_parameters()]


def _time_of(work: Callable[[], None], samples: Tuple[Any, ...]) -> float:
    """CPU time of this process in seconds, or wall-clock time with a GPU."""
    on_gpu = any(isinstance(sample, torch.Tensor) and sample.is_cuda for sample in samples)
    if on_gpu:
        torch.cuda.synchronize()
    clock = time.perf_counter if on_gpu else time.process_time
    begun = clock()
    work()
    if on_gpu:
        torch.cuda.synchronize()
    return clock() - begun


def peak_of(module: torch.nn.Module, samples: Tuple[Any, ...], work: Callable[[], None]) -> int:
    """The peak of allocated bytes while `work` runs: on a CPU the largest sum of allocations that `torch.profiler` reports,
    with weights, buffers and samples; on a GPU `torch.cuda.max_memory_allocated`."""
    module.zero_grad(set_to_none=True)
    if any(isinstance(sample, torch.Tensor) and sample.is_cuda for sample in samples):
        torch.cuda.reset_peak_memory_stats()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    there = [*module.parameters(), *module.buffers(), *(one for one in samples if isinstance(one, torch.Tensor))]
    return peak + sum(tensor.untyped_storage().nbytes() for tensor in there)


def plan(
    module: torch.nn.Module, sample: Any, *, device: Any, policy: Any, memory_budget: Any = None, **keys: Any
) -> Plan:
    """Plans the treatment of the saved tensors of `module` within a budget, as `simulate` decides it with these keys.

    `sample` is a mini-batch of the size of the training (a tensor, or a tuple of them). With `policy="planned",
    set={"plan": FILE}` the plan comes from a file. Tensors are found by the names of modules; tensors that are not found are
    kept, and `notes` and a warning say so.

    Raises InputError (the plan of a file is for another network or batch, or a part of a tensor is changed in place) or
    NoPlanError (the budget is too small); nothing runs then.
    """
    from . import simulate

    samples = sample if isinstance(sample, tuple) else (sample,)
    with undisturbed(module):
        network, probe = from_torch(module, sample), _Probe()
    # `check` measures allocated memory, without the unused memory of a caching allocator.
    keys = {"device": device, "model": network, "batch": network.batch, "allocator": "exact", **keys}
    # The probe must not get the policy's parameters.
    own = {"policy": policy, "memory_budget": memory_budget, "set": keys.pop("set", {})}
    if "stack" not in keys:
        # PyTorch executes the graph of an eager framework.
        default = simulate(**{**keys, "model": "lenet5"}, policy="original", iterations=1)["scenario"]["stack"]
        keys["stack"] = default if default.startswith("pytorch") else "pytorch-cpu"
    plain = simulate(**keys, policy=probe)
    graph = _Graph(module, probe.setting, probe.names, probe.sizes)
    with tempfile.TemporaryDirectory(prefix="haversack-") as folder:
        file = Path(folder) / "plan.json"
        simulated = simulate(**keys, **own, plan=file)
        text = file.read_text(encoding="utf-8")
    made = Plan(module, samples, graph, text)
    made.simulated, made.plain = simulated, plain
    made.look(module)
    for note in made.notes:
        warnings.warn(note, stacklevel=2)
    return made
