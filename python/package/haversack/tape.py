"""Records which operator computed each value of forward and from which inputs, so that a plan can drop a value and backward
can compute it again."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import InputError, RunError
from .packing import Codes, Marks, Places

#: Operators that save their own result; the first saving of that result is theirs.
SAVES_ITS_RESULT = {
    "relu", "relu_", "sigmoid", "sigmoid_", "tanh", "tanh_", "exp", "sqrt", "rsqrt", "_softmax", "_log_softmax", "leaky_relu_",
    "elu_", "max_pool2d_with_indices", "native_batch_norm", "native_layer_norm", "cudnn_batch_norm", "native_dropout",
}  # fmt: skip
#: Operators for which backward needs only the shape of the input.
READS_THE_SHAPE = {"max_pool2d_with_indices", "avg_pool2d"}

#: Size, stride, offset and type: the layout of a tensor in its storage.
Geometry = Tuple[Tuple[int, ...], Tuple[int, ...], int, torch.dtype]


def name_of(operator: Any) -> str:
    """The short name: relu_ for `aten.relu_.default`."""
    return operator._overloadpacket.__name__


def _geometry(tensor: torch.Tensor) -> Geometry:
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), tensor.dtype


def _over(storage: Any, geometry: Geometry) -> torch.Tensor:
    size, stride, offset, dtype = geometry
    return torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, size, stride)


def _is_dense(geometry: Geometry) -> bool:
    """Whether it is contiguous."""
    step = 1
    for size, stride in zip(reversed(geometry[0]), reversed(geometry[1])):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def _state(device: torch.device) -> torch.Tensor:
    """The state of the device's generator of random numbers."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _draw_from(device: torch.device, state: torch.Tensor) -> None:
    torch.cuda.set_rng_state(state, device) if device.type == "cuda" else torch.set_rng_state(state)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """All values of its storage as one dimension."""
    storage = tensor.untyped_storage()
    return _over(storage, ((storage.nbytes() // tensor.element_size(),), (1,), 0, tensor.dtype))


class File:
    """A tensor in a file or, for a GPU, in host memory."""

    def __init__(self, flat: torch.Tensor, to_file: bool) -> None:
        self.device, self.dtype, self.values = flat.device, flat.dtype, flat.numel()
        self.host: Optional[torch.Tensor] = None
        if flat.is_cuda and not to_file:
            self.host = torch.empty(self.values, dtype=self.dtype, pin_memory=True).copy_(flat)
            return
        descriptor, self.path = tempfile.mkstemp(prefix="haversack-")
        weakref.finalize(self, os.unlink, self.path)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for first in range(0, self.values, 1 << 20):
                file.write(memoryview(flat[first : first + (1 << 20)].cpu().view(torch.uint8).numpy()))

    def whole(self) -> torch.Tensor:
        """The values as one dimension."""
        if self.host is not None:
            return self.host.to(self.device)
        flat = torch.empty(self.values, dtype=self.dtype)
        with open(self.path, "rb", buffering=0) as file:
            for first in range(0, self.values, 1 << 20):
                file.readinto(memoryview(flat[first : first + (1 << 20)].view(torch.uint8).numpy()))
        return flat.to(self.device)


class Operation:
    """A call of an operator, with its inputs as places instead of tensors."""

    __slots__ = ("operator", "name", "args", "kwargs", "reads", "writes", "random", "node", "scope", "beside")

    def __init__(self, operator: Any, scope: str) -> None:
        self.operator, self.name, self.scope = operator, name_of(operator), scope
        self.args: Any = ()
        self.kwargs: Any = {}
        #: Each value that it reads, with its version at that time.
        self.reads: List[Tuple["Value", int]] = []
        #: Each value that it makes or changes, with its new version, by the index of the returned tensor.
        self.writes: List[Tuple[int, "Value", int]] = []
        #: The state of the generator before it, if it draws random numbers.
        self.random: Optional[Tuple[torch.device, torch.Tensor]] = None
        #: The node of the simulated graph, if it was found.
        self.node: Optional[int] = None
        #: Autograd's copy of a tensor that an operator changes in place, or that operator: together they are one node.
        self.beside: Optional["Operation"] = None


class Value:
    """A storage, which any number of tensors may view."""

    def __init__(self, tensor: torch.Tensor, given: bool) -> None:
        storage = tensor.untyped_storage()
        self.weak = StorageWeakRef(storage)
        self.bytes, self.device = storage.nbytes(), tensor.device
        #: The operations that wrote it, in order; their number is its version.
        self.writers: List[Operation] = []
        #: The tensor of the simulated graph, by version.
        self.planned: Dict[int, int] = {}
        #: Whether it existed before forward (weights, samples, buffers). Such a value stays.
        self.given = given
        self.kept: Optional[torch.Tensor] = tensor if given else None
        #: Its values in another form, and the bits of it that backward's masks need.
        self.stored: Any = None
        self.marks: Any = None
        #: The number of savings that backward has not used yet.
        self.pending = 0
        self.is_mask = False

    @property
    def version(self) -> int:
        return len(self.writers)

    def storage(self) -> Any:
        """The storage, if it still exists."""
        if self.kept is not None:
            return self.kept.untyped_storage()
        return None if self.weak.expired() else torch.UntypedStorage._new_with_weak_ptr(self.weak.cdata)

    def forget(self) -> None:
        """Frees it when it is not needed any more."""
        self.kept = self.kept if self.given else None
        self.stored = self.marks = None


class Place:
    """A tensor that an operation read: its value, the version of it, and the layout."""

    __slots__ = ("value", "version", "geometry", "count")

    def __init__(self, value: Value, geometry: Geometry, count: int) -> None:
        self.value, self.version, self.geometry, self.count = value, value.version, geometry, count


class Saving:
    """The object that autograd stores instead of a tensor."""

    def __init__(self, tape: "Tape", tensor: torch.Tensor, value: Value) -> None:
        self.tape, self.value, self.version, self.geometry = tape, value, value.version, _geometry(tensor)
        #: Set until the operation that saved it is known, and afterwards if the tensor is always kept.
        self.tensor: Optional[torch.Tensor] = tensor
        self.by: Optional[Operation] = None
        value.pending += 1
        tape.pending += 1

    def __del__(self) -> None:
        self.value.pending -= 1
        if not self.value.pending:
            self.value.forget()
        self.tape.pending -= 1
        if not self.tape.pending and self.tape.has_ended:
            self.tape.forget()


class Carried:
    """The part of a plan that a tape uses: the treatment of tensors."""

    #: The hold of each tensor once forward has used it: `keep`, `rematerialise`, `swap`, `skip`, or a number of bits.
    holds: Dict[int, Any]
    #: The tensors that give way in backward: the node before which, the tensor, and its hold from then on.
    steps: List[Tuple[int, int, Any]]
    #: The tensors of these steps.
    given_way: Set[int]
    #: The first node of backward that comes from each node of forward.
    backward_of: Dict[int, int]
    stochastic: bool
    to_file: bool

    def matcher(self) -> Callable[[Operation], None]:
        """Returns a function that finds the node of each operation, called in the order in which operations run."""
        raise NotImplementedError


class Tape(TorchDispatchMode):
    """One forward pass: records which operation writes which value, stores saved tensors as the plan says, and recomputes those
    that are missing in backward."""

    def __init__(self, plan: Carried) -> None:
        super().__init__()
        self.plan, self.match = plan, plan.matcher()
        self.values: Dict[int, Value] = {}
        self.of_tensor: Dict[int, Value] = {}
        self.scope: List[str] = [""]
        self.waiting: List[Saving] = []
        self.last: Optional[Operation] = None
        self.busy = False
        self.next_step = 0
        #: The values that give way at the current node of backward, once the recomputations of that node have used them.
        self.due: Set[Value] = set()
        self.at: Optional[int] = None
        #: Saved bytes of tensors that the plan does not name, by the operator that made them.
        self.not_found: Dict[str, int] = {}
        self.recomputed = 0
        #: The number of savings that backward has not used yet, and whether forward has ended.
        self.pending, self.has_ended = 0, False
        self.given: List[Value] = []
        self.hooks: Any = torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)

    def begin(self) -> None:
        """Starts the recording of operators."""
        self.hooks.__enter__()
        self.__enter__()

    def end(self) -> None:
        """Ends the recording."""
        self.__exit__(None, None, None)
        self.hooks.__exit__(None, None, None)
        self._settle_all(None)
        # Values without a saving can be freed; savings refer to their values.
        self.values.clear()
        self.hooks, self.last, self.has_ended = None, None, True
        if not self.pending:
            self.forget()

    def forget(self) -> None:
        """Frees everything once backward has used all savings."""
        for value in self.given:
            value.kept = None
        self.given, self.of_tensor = [], {}

    # Forward.

    def value_of(self, tensor: torch.Tensor) -> Value:
        key = tensor.untyped_storage()._cdata
        value = self.values.get(key)
        if value is None:
            value = self.values[key] = Value(tensor, given=True)
            self.given.append(value)
        return value

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.busy:
            return operator(*args, **kwargs)
        operation = Operation(operator, self.scope[-1])
        written: List[Value] = []
        self._note(operation, args, kwargs)
        for argument, value in zip(operator._schema.arguments, args):
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, torch.Tensor):
                target = self.value_of(value)
                written.append(target)
                if not target.given and value.numel() * value.element_size() != target.bytes:
                    raise InputError(
                        f"{operation.scope or 'the module'}: {operation.name} changes a part of a tensor in place; "
                        "expected operators that make tensors of their own (x = f(x) for f_(x[...]))"
                    )
        if torch.Tag.nondeterministic_seeded in operator.tags:
            device = next((value.device for value in args if isinstance(value, torch.Tensor)), torch.device("cpu"))
            operation.random = (device, _state(device))
        made = operator(*args, **kwargs)
        self._settle_all(operation)
        for place, tensor in enumerate(made if isinstance(made, (tuple, list)) else (made,)):
            if not isinstance(tensor, torch.Tensor):
                continue
            value = self.values.get(tensor.untyped_storage()._cdata)
            if value is None:
                value = self.values[tensor.untyped_storage()._cdata] = Value(tensor, given=False)
            elif value.given or value not in written:
                # A view, or a value that is not recomputed.
                continue
            value.writers.append(operation)
            operation.writes.append((place, value, value.version))
        if operation.writes:
            last, self.last = self.last, operation
            self.match(operation)
            if last and last.name == "clone" and written and last.reads[0] in operation.reads:
                last.beside, operation.beside = operation, last
        return made

    def _note(self, operation: Operation, args: Any, kwargs: Any) -> None:
        """Records the inputs of an operation."""
        if operation.name == "empty_like":
            # It reads only the shape of its input.
            like = torch.empty_like(args[0], **{**kwargs, "device": "meta", "pin_memory": False})
            operation.operator = torch.ops.aten.empty_strided.default
            args, kwargs = (like.shape, like.stride()), {"dtype": like.dtype, "device": args[0].device}
        elif "batch_norm" in operation.name and len(args) > 5 and args[5] is True:
            # When it runs again, the running statistics have already seen this batch.
            args = (*args[:3], None, None, *args[5:])
        operation.args = tuple(self._place(operation, value) for value in args)
        operation.kwargs = {name: self._place(operation, value) for name, value in kwargs.items()}

    def _place(self, operation: Operation, argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            value = self.value_of(argument)
            operation.reads.append((value, value.version))
            return Place(value, _geometry(argument), value.kept._version if value.given and value.kept is not None else 0)
        if isinstance(argument, (tuple, list)):
            return type(argument)(self._place(operation, part) for part in argument)
        return argument

    def pack(self, tensor: torch.Tensor) -> Any:
        if self.busy:
            return tensor
        value = self.value_of(tensor)
        tensor = self._alone(tensor.detach)
        if value.given:
            return tensor
        saving = Saving(self, tensor, value)
        self.waiting.append(saving)
        return saving

    def _settle_all(self, by: Optional[Operation]) -> None:
        """Assigns the waiting savings to the operator that saved them: the one that has just run, or the one before."""
        waiting, self.waiting = self.waiting, []
        last = self.last
        own = {id(value) for _, value, _ in last.writes} if last and last.name in SAVES_ITS_RESULT else set()
        for saving in waiting:
            saving.by = by or last
            if id(saving.value) in own:
                saving.by = last
                own.discard(id(saving.value))
            self._settle(saving)

    def _settle(self, saving: Saving) -> None:
        value, tensor, saving.tensor = saving.value, saving.tensor, None
        planned = value.planned.get(saving.version)
        if planned is None:
            maker = value.writers[saving.version - 1]
            self.not_found[f"{maker.scope or 'the module'}: {maker.name}"] = value.bytes
            value.kept = tensor
            return
        self.of_tensor[planned] = value
        hold = self.plan.holds.get(planned, "keep")
        if hold == "keep" and planned not in self.plan.given_way:
            # It is always kept.
            value.kept = saving.tensor = tensor
            return
        self._hold(value, tensor, saving.by, hold)

    def _hold(self, value: Value, tensor: torch.Tensor, by: Optional[Operation], hold: Any) -> None:
        if hold == "keep":
            value.kept = tensor
        elif hold == "swap":
            if value.stored is None:
                value.stored = self._alone(lambda: File(_flat(tensor), self.plan.to_file))
        elif hold != "rematerialise":
            bits = 0 if hold == "skip" else int(hold)
            self._alone(lambda: self._quantise(value, tensor, by, bits))

    def _alone(self, work: Callable[[], Any]) -> Any:
        """Does `work` without recording it."""
        before, self.busy = self.busy, True
        try:
            with torch.no_grad():
                return work()
        finally:
            self.busy = before

    def _quantise(self, value: Value, tensor: torch.Tensor, by: Optional[Operation], bits: int) -> None:
        maker, name = value.writers[-1], by.name if by else ""
        first = next(place for place, made, _ in maker.writes if made is value)
        if name in READS_THE_SHAPE and maker is not by:
            return
        if bits == 32 or (first and "norm" in maker.name):
            # Means and deviations are small.
            value.kept = tensor
        elif name in ("relu", "relu_") and maker is by:
            value.marks = value.marks or Marks(_flat(tensor), lambda piece: piece > 0, 0.0, 1.0)
        elif name == "hardtanh_":
            low, high = (*by.args[1:], *(-1.0, 1.0)[len(by.args) - 1 :])
            inside = lambda piece: (piece > low) & (piece < high)  # noqa: E731
            value.marks = value.marks or Marks(_flat(tensor), inside, float(low), (low + high) / 2)
        elif value.is_mask:
            value.marks = value.marks or Marks(_flat(tensor), lambda piece: piece != 0, 0.0, float(tensor.max()))
        elif maker.name == "max_pool2d_with_indices" and tensor.dtype == torch.int64:
            kernel, *further = [tuple(part) * (2 // len(part)) for part in maker.args[1:] if isinstance(part, (list, tuple))]
            stride, padding = (further + [kernel, (0, 0)][len(further) :])[:2]
            width = maker.args[0].geometry[0][-1]
            if max(kernel) > 15 or not tensor.is_contiguous():
                value.kept = tensor
            else:
                value.stored = value.stored or Places(_flat(tensor), tensor.shape, width, stride or kernel, padding)
        elif not tensor.is_floating_point():
            value.kept = tensor
        elif bits and value.stored is None:
            value.stored = Codes(_flat(tensor), bits, self.plan.stochastic)

    # Backward.

    def unpack(self, held: Any) -> torch.Tensor:
        if isinstance(held, torch.Tensor):
            return held
        if held.tensor is not None:
            self._come_to(self.plan.backward_of.get(held.by.node) if held.by else None)
            self._give_way({held.value})
            return held.tensor
        return self._alone(lambda: self._bring_back(held))

    def _bring_back(self, saving: Saving) -> torch.Tensor:
        value, by = saving.value, saving.by
        at = self.plan.backward_of.get(by.node) if by and by.node is not None else None
        self._come_to(at)
        storage = value.storage()
        if storage is not None and value.version == saving.version:
            tensor = _over(storage, saving.geometry)
            self._give_way({value})
            return tensor
        maker = value.writers[saving.version - 1]
        if by and by is not maker and by.name in READS_THE_SHAPE and _is_dense(saving.geometry):
            # Only its shape is read.
            return torch.empty((), dtype=saving.geometry[3], device=value.device).expand(saving.geometry[0])
        if value.marks is not None and (value.is_mask or by is maker or (by and by.name == "hardtanh_")):
            return _over(value.marks.whole().untyped_storage(), saving.geometry)
        self._give_way(self._sources(value, saving.version))
        tensor = self._materialise(value, saving.version)
        self._give_way(set())
        if isinstance(value.stored, File):
            value.stored = None
        if value.stored is None and value.version == saving.version:
            value.kept = tensor
        return _over(tensor.untyped_storage(), saving.geometry)

    def _come_to(self, at: Optional[int]) -> None:
        """Backward has reached node `at`: the tensors that the plan drops up to there are due."""
        steps = self.plan.steps
        if at != self.at:
            self.at = at
            self.due.clear()
        while at is not None and self.next_step < len(steps) and steps[self.next_step][0] <= at:
            _, planned, hold = steps[self.next_step]
            self.next_step += 1
            value = self.of_tensor.get(planned)
            if value is None or value.given or not value.writers:
                continue
            if hold == "rematerialise":
                self.due.add(value)
            elif value.kept is not None:
                tensor, value.kept = value.kept, None
                self._hold(value, tensor, None, hold)

    def _give_way(self, needed: Set[Value]) -> None:
        """Drops the values that are due and not needed."""
        for value in self.due - needed if self.due else ():
            value.kept = None

    def _sources(self, value: Value, version: int) -> Set[Value]:
        """The available values from which a value can be computed again."""
        found, seen, asked = set(), set(), [(value, version)]
        while asked:
            place = asked.pop()
            if place in seen:
                continue
            seen.add(place)
            if self._has(place, {}):
                found.add(place[0])
            elif 0 < place[1] <= place[0].version:
                asked.extend(place[0].writers[place[1] - 1].reads)
        return found

    def _materialise(self, value: Value, version: int) -> torch.Tensor:
        """A tensor over all of the value at `version`."""
        target = (value, version)
        made: Dict[Tuple[Value, int], torch.Tensor] = {}
        #: How many of the waiting operations read each value.
        wanted: Dict[Tuple[Value, int], int] = {}
        frames: List[Tuple[Tuple[Value, int], Operation]] = []
        missing: Optional[Tuple[Value, int]] = target
        while missing or frames:
            if missing:
                own, at = missing
                if own.given or not 0 < at <= len(own.writers):
                    raise RunError("a tensor that is computed again was changed since; expected it as forward left it")
                frames.append((missing, own.writers[at - 1]))
                for read in self._reads(frames[-1][1]):
                    wanted[read] = wanted.get(read, 0) + 1
            place, operation = frames[-1]
            is_there = self._has(place, made)
            missing = next((read for read in self._reads(operation) if not (is_there or self._has(read, made))), None)
            if missing:
                continue
            frames.pop()
            if not is_there:
                self._run_node(operation, made)
            for read in self._reads(operation):
                wanted[read] -= 1
            # Values that only this computation needed are not kept.
            for other in [other for other in made if other != target and not wanted.get(other)]:
                del made[other]
                if other[0] in self.due:
                    other[0].kept = None
        return self._get(target, made)

    @staticmethod
    def _reads(operation: Operation) -> List[Tuple[Value, int]]:
        return list(dict.fromkeys(operation.reads))

    def _has(self, place: Tuple[Value, int], made: Dict[Tuple[Value, int], torch.Tensor]) -> bool:
        value, version = place
        if place in made:
            return True
        if version != value.version and not value.given:
            return False
        return value.storage() is not None or value.stored is not None

    def _get(self, place: Tuple[Value, int], made: Dict[Tuple[Value, int], torch.Tensor]) -> torch.Tensor:
        if place not in made:
            value = place[0]
            storage = value.storage()
            if storage is None:
                storage = value.stored.whole().untyped_storage()
            made[place] = _over(storage, ((storage.nbytes(),), (1,), 0, torch.uint8))
        return made[place]

    def _run_node(self, operation: Operation, made: Dict[Tuple[Value, int], torch.Tensor]) -> None:
        """Runs an operation again, and with a change in place also the copy that autograd took before it, and vice versa."""
        beside = operation.beside
        lacks = beside is not None and any(
            value.pending and value.stored is None and value.storage() is None for _, value, _ in beside.writes
        )
        both = [operation, beside] if lacks and beside else [operation]
        for own in sorted(both, key=lambda own: own.name != "clone"):
            self._run(own, made)

    def _run(self, operation: Operation, made: Dict[Tuple[Value, int], torch.Tensor]) -> None:
        """Runs an operation again."""
        fill = lambda argument: self._fill(argument, made)  # noqa: E731
        args, kwargs = [fill(argument) for argument in operation.args], dict(operation.kwargs)
        kwargs = {name: fill(argument) for name, argument in kwargs.items()}
        before = None
        if operation.random is not None:
            device, state = operation.random
            before = _state(device)
            _draw_from(device, state)
        changed = [place for place in operation.reads if any(place[0] is value for _, value, _ in operation.writes)]
        try:
            result = operation.operator(*args, **kwargs)
        finally:
            if before is not None:
                _draw_from(device, before)
        self.recomputed += 1
        for place in changed:
            made.pop(place, None)
        results = result if isinstance(result, (tuple, list)) else (result,)
        for place, value, version in operation.writes:
            tensor = results[place]
            made[value, version] = tensor
            # Values that later nodes need stay, unless they are stored in another form.
            is_last = value.pending and version == value.version
            if is_last and value.stored is None and value.storage() is None and value not in self.due:
                value.kept = tensor

    def _fill(self, argument: Any, made: Dict[Tuple[Value, int], torch.Tensor]) -> Any:
        if isinstance(argument, Place):
            value = argument.value
            if value.given and value.kept is not None and value.kept._version != argument.count:
                raise RunError("a weight or a sample was changed between forward and backward; expected it as it was")
            whole = self._get((value, argument.version), made)
            return _over(whole.untyped_storage(), argument.geometry)
        if isinstance(argument, (tuple, list)):
            return type(argument)(self._fill(part, made) for part in argument)
        return argument
