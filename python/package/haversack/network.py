"""A PyTorch module as a network that haversack simulates."""

from __future__ import annotations

import inspect
import shutil
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any, Dict, Optional

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


def _signature(module: Any, parameter: Any, exported: bytes) -> bytes:
    """The trained weights of the file in the format of `torch.export`: metadata to append to an ONNX file."""
    tensors = {**dict(module.named_buffers()), **module.state_dict(keep_vars=True)}
    lines = []
    for name, tensor in tensors.items():
        kind = "BUFFER" if not isinstance(tensor, parameter) else "PARAMETER" if tensor.requires_grad else "FROZEN"
        if name.encode() in exported:
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


def from_torch(module: Any, sample: Any, *, name: Optional[str] = None, opset_version: int = 17) -> Network:
    """Exports a `torch.nn.Module` as an ONNX file, in training mode; `simulate(model=...)` and the other calls take it.

    `sample` is a mini-batch of any size (a tensor, or a tuple of them): its first dimension is the batch. The module's
    mode is restored afterwards. Needs torch, which is imported here, and the package onnx if torch requires it.

    The file records which of its weights the module trains (`requires_grad`), and which are buffers.

    Raises InputError if torch is not installed, or if PyTorch cannot export the module.
    """
    try:
        import torch
    except ImportError as missing:
        raise InputError(f"from_torch needs PyTorch: pip install torch onnx ({missing})") from missing
    samples = sample if isinstance(sample, tuple) else (sample,)
    name = name or type(module).__name__
    path = Path(tempfile.mkdtemp(prefix="haversack-")) / f"{name}.onnx"
    inputs = [f"input{place}" for place in range(len(samples))]
    options: Dict[str, Any] = {
        "training": torch.onnx.TrainingMode.TRAINING,
        "do_constant_folding": False,
        "opset_version": opset_version,
        "input_names": inputs,
        "dynamic_axes": {own: {0: "batch"} for own in inputs},
    }
    # PyTorch 2.5 and later have two exporters; this one writes the training graph.
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    was_training = getattr(module, "training", True)
    try:
        module.train()
        with warnings.catch_warnings():
            # It is the older of the two exporters.
            warnings.simplefilter("ignore", DeprecationWarning)
            # Training does not use a batch normalisation's count of batches.
            warnings.filterwarnings("ignore", message="ONNX Preprocess - Removing mutation .*num_batches_tracked")
            torch.onnx.export(module, samples, str(path), **options)
        with path.open("r+b") as file:
            exported = file.read()
            file.write(_signature(module, torch.nn.Parameter, exported))
    except Exception as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise InputError(f"PyTorch cannot export {name}: {error}") from error
    finally:
        module.train(was_training)
    shape = getattr(samples[0], "shape", None)
    return Network(path, int(shape[0]) if shape else None)
