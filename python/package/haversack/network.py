"""A PyTorch module as a network that haversack simulates."""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import shutil
import tempfile
import traceback
import warnings
import weakref
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .errors import InputError


class Network:
    """An ONNX file for `model=`, in its own temporary folder that is deleted with this object."""

    def __init__(self, path: Path, batch: Optional[int]) -> None:
        weakref.finalize(self, shutil.rmtree, path.parent, ignore_errors=True)
        #: The path of the file.
        self.path = path
        #: Samples of the mini-batch that it was exported with.
        self.batch = batch

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Network({str(self.path)!r})"


def _signature(module: Any, parameter: Any, is_exported: Callable[[str], bool], exported: bytes) -> bytes:
    """The trained weights that are in the file, in the format of `torch.export`: metadata to append to an ONNX file."""
    tensors = {**dict(module.named_buffers()), **module.state_dict(keep_vars=True)}
    # Of the names of a tied weight, the one in the file.
    names: Dict[int, str] = {}
    for name, tensor in tensors.items():
        if id(tensor) not in names or is_exported(name):
            names[id(tensor)] = name
    lines = []
    for name, tensor in tensors.items():
        kind = "BUFFER" if not isinstance(tensor, parameter) else "PARAMETER" if tensor.requires_grad else "FROZEN"
        if names[id(tensor)] == name and name.encode() in exported:
            lines.append(f"{name}: {kind} target='{name}'")
    key = b"pkg.torch.export.ExportedProgram.graph_signature"
    # ModelProto.metadata_props, whose entries have a key and a value.
    return _field(14, _field(1, key) + _field(2, "\n".join(lines).encode()))


def _field(tag: int, content: bytes) -> bytes:
    """A length-delimited field of a protocol buffer."""
    length, head = len(content), bytearray([tag << 3 | 2])
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + content


def _scores(given: Any) -> Any:
    """The scores that a module returns: `logits` of an object, or the first tensor that is not a loss."""
    if not isinstance(given, Mapping) and not hasattr(given, "logits"):
        return given
    if getattr(given, "logits", None) is not None:
        return given.logits
    return next(value for name, value in given.items() if name != "loss" and hasattr(value, "shape"))


@contextmanager
def _giving_scores(module: Any) -> Iterator[None]:
    """`module` gives scores instead of an object that has them, and keeps no keys and values for the next token."""
    forward, config = module.forward, module.config
    cached = config.use_cache if hasattr(config, "use_cache") else None

    @functools.wraps(forward)
    def scores(*samples: Any, **named: Any) -> Any:
        return _scores(forward(*samples, **named))

    module.forward = scores
    if cached:
        config.use_cache = False
    try:
        yield
    finally:
        del module.forward
        if cached:
            config.use_cache = cached


def _traced(torch: Any, module: Any, samples: Dict[str, Any], path: Path, opset_version: Optional[int]) -> Callable[[str], bool]:
    """Exports what running `module` once shows; whether a weight of a name is in the file."""
    options: Dict[str, Any] = {
        "training": torch.onnx.TrainingMode.TRAINING,
        "do_constant_folding": False,
        "opset_version": opset_version or 17,
        "input_names": list(samples),
        "dynamic_axes": {own: {0: "batch"} for own in samples},
    }
    # From 2.5 on there are two exporters; this one writes what training runs.
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    # A dict at the end goes by names.
    positions = tuple(samples.values()) if "input0" in samples else (samples,)
    torch.onnx.export(module, positions, str(path), **options)
    exported = path.read_bytes()
    return lambda name: name.encode() in exported


def _captured(torch: Any, module: Any, samples: Dict[str, Any], path: Path, opset_version: Optional[int]) -> Callable[[str], bool]:
    """Exports the program of a module of Hugging Face's by `torch.export`, with a batch of any size; as `_traced`."""
    from onnxscript import optimizer

    batch = torch.export.Dim("batch")
    # A size of one would be taken for a constant.
    samples = {name: torch.cat([own, own]) if len(own) == 1 else own for name, own in samples.items()}
    with _giving_scores(module):
        program = torch.onnx.export(
            module, (), kwargs=samples, dynamic_shapes={name: {0: batch} for name in samples},
            opset_version=opset_version, dynamo=True, optimize=False, verbose=False,
        )  # fmt: skip
    # Numbers and shapes are computed beforehand; what is made of a weight, such as its first rows, is left as it is.
    program.model = optimizer.optimize(program.model, input_size_limit=64)
    program.save(str(path))
    return set(program.model.graph.initializers).__contains__


#: How an exporter's messages name an operator, by what stopped it.
_OPERATORS = (
    (r"No ONNX function found for <OpOverload\(op='([\w.]+)'|[Uu]nsupported[\w ]* operator:? '?([\w:.]+)|operator '([\w:.]+)'",
     "the operator {} has no form in ONNX", "write it by operators that have one, or leave it to what comes before the module"),
    (r"(?:[Dd]ata-?[Dd]ependent|GuardOnDataDependent|is_nonzero|aten\._local_scalar_dense)()",
     "its course depends on the values of samples", "let it depend on their shapes alone, as torch.where does"),
)  # fmt: skip


def _reason(error: BaseException) -> str:
    """The operator that stopped an export, the line that runs it, and what to try."""
    chain: List[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    said = "\n".join(str(one) for one in chain)
    lines = [(file, int(line)) for file, line in re.findall(r'File "([^"]+)", line (\d+)', said)]
    for one in chain:
        lines.extend((frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(one.__traceback__))
    own = Path(__file__).parent
    apart = [at for at in lines if not re.search(r"[/\\](torch|onnxscript|onnx_ir|onnx)[/\\]|^<", at[0]) and Path(at[0]).parent != own]
    place = ""
    if apart:
        file, line = apart[-1]
        place = f" ({Path(file).name}, line {line}: `{linecache.getline(file, line).strip()}`)"
    for pattern, what, advice in _OPERATORS:
        found = re.search(pattern, said)
        if found:
            operator = next((name for name in found.groups() if name), "")
            return f"{what.format(operator)}{place}; to go on, {advice}"
    first = next((line.strip() for line in str(chain[-1]).splitlines() if line.strip()), type(chain[-1]).__name__)
    return f"{first}{place}"


def from_torch(module: Any, sample: Any, *, name: Optional[str] = None, opset_version: Optional[int] = None) -> Network:
    """Exports a `torch.nn.Module` as an ONNX file, in training mode; `simulate(model=...)` and the other calls take it.

    `sample` is a mini-batch of any size (a tensor, a tuple of them, or a dict by name): its first dimension is the batch. A
    module of Hugging Face's transformers works unchanged, also with PEFT adapters: the network is its `logits`, and
    `labels` of the sample are left out. The module's mode is restored afterwards. Needs torch, which is imported here,
    and the packages onnx and onnxscript if torch requires them.

    The file records which of its weights the module trains (`requires_grad`), and which are buffers.

    Raises InputError if torch is not installed, or if PyTorch cannot export the module.
    """
    try:
        import torch
    except ImportError as missing:
        raise InputError(f"from_torch needs PyTorch: pip install torch onnx onnxscript ({missing})") from missing
    name = name or type(module).__name__
    # A configuration that can be written down is Hugging Face's.
    is_captured = hasattr(getattr(module, "config", None), "to_dict")
    samples = _named(module, sample, is_captured)
    export = _captured if is_captured else _traced
    path = Path(tempfile.mkdtemp(prefix="haversack-")) / f"{name}.onnx"
    was_training = getattr(module, "training", True)
    try:
        module.train()
        with warnings.catch_warnings():
            # It is the older of the two exporters.
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.filterwarnings("ignore", message="Exporting a model while it is in training mode")
            # Training does not use a batch normalisation's count of batches.
            warnings.filterwarnings("ignore", message="ONNX Preprocess - Removing mutation .*num_batches_tracked")
            is_exported = export(torch, module, samples, path, opset_version)
        with path.open("r+b") as file:
            exported = file.read()
            file.write(_signature(module, torch.nn.Parameter, is_exported, exported))
    except ImportError as missing:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise InputError(f"PyTorch's exporter needs more: pip install onnx onnxscript ({missing})") from missing
    except Exception as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise InputError(f"PyTorch cannot export {name}: {_reason(error)}") from error
    finally:
        module.train(was_training)
    shape = getattr(next(iter(samples.values()), None), "shape", None)
    return Network(path, int(shape[0]) if shape else None)


def _named(module: Any, sample: Any, is_captured: bool) -> Dict[str, Any]:
    """A mini-batch by the names of the module's inputs."""
    if isinstance(sample, Mapping):
        return {name: own for name, own in sample.items() if name != "labels"}
    samples = sample if isinstance(sample, tuple) else (sample,)
    names = inspect.signature(module.forward).parameters if is_captured else (f"input{place}" for place in range(len(samples)))
    return dict(zip(names, samples))
