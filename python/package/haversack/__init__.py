"""haversack simulates how a phone or an embedded board trains a neural network within memory and time budgets.

    import haversack

    run = haversack.simulate(device="galaxy-s10", model="resnet50", policy="sage", memory_budget="30%")
    print(run["iteration_time_s"], run["peak_memory_bytes"])

Each function has the inputs and outputs of the command with its name: see docs/python.md.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sysconfig
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

try:
    from . import _native
except ImportError as missing:
    raise ImportError(
        f"the compiled part of haversack does not load on this machine ({sysconfig.get_platform()}): {missing}; build it here: "
        "python3 -m pip install ./python, in a checkout"
    ) from None
from ._native import __version__
from .answers import (
    Answer,
    Record,
    Rows,
    Run,
    advise,
    compare,
    devices,
    models,
    policies,
    sensitivity,
    stacks,
    validate,
)
from .errors import HaversackError, InputError, NoPlanError, RunError
from .keywords import toml
from .network import Network, from_torch
from .policy import Policy, named, refuse, written
from .results import Federation, Folder, Picture, Reproduction, Sweep, Training

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._native import Memory, Tensor
    from .torch import Plan
    from .types import FederationKeys, RunKeys, SweepKeys, TrainingKeys

__all__ = [
    "Answer",
    "Federation",
    "HaversackError",
    "InputError",
    "Network",
    "NoPlanError",
    "Picture",
    "Policy",
    "Record",
    "Reproduction",
    "Rows",
    "Run",
    "RunError",
    "Sweep",
    "Training",
    "__version__",
    "advise",
    "compare",
    "devices",
    "federate",
    "from_torch",
    "models",
    "plan",
    "policies",
    "reproduce",
    "sensitivity",
    "simulate",
    "stacks",
    "sweep",
    "train",
    "validate",
]

#: A file in TOML, or its keys as a dictionary.
Specification = Union[str, "os.PathLike[str]", Mapping[str, Any], None]
Results = TypeVar("Results", bound=Folder)


def _asked(specification: Specification, keys: Mapping[str, Any]) -> Tuple[Optional[str], Dict[str, Any]]:
    """The file, if any, and the keys that override it."""
    if isinstance(specification, Mapping):
        specification, keys = None, {**specification, **keys}
    return None if specification is None else os.fspath(specification), dict(keys)


def _without_objects(specification: Specification, keys: Mapping[str, Any]) -> Tuple[Optional[str], str]:
    """The same for a command that takes no policy written in Python, with the keys as TOML."""
    file, given = _asked(specification, keys)
    refuse(given.get("policy"))
    return file, toml(given)


def simulate(
    scenario: Specification = None,
    *,
    policy: Any = None,
    timeline: Optional[Union[str, "os.PathLike[str]"]] = None,
    plan: Optional[Union[str, "os.PathLike[str]"]] = None,
    explain: bool = False,
    least_memory: bool = False,
    **keys: Unpack[RunKeys],
) -> Run:
    """Simulates one run. Returns the output of `haversack simulate --format json`, with notes and warnings in `notes`.

    `scenario` is a file or a dictionary; keywords override it. `policy` is the name of a policy or your own `Policy`;
    `timeline` is a file for Perfetto, `plan` a file for the decisions of the policy; `explain` adds `peak`, `least_memory` adds
    `least_memory_bytes`.

    Raises InputError, NoPlanError (with the least budget that works), RunError, KeyboardInterrupt, or any exception of a
    hook of the policy.
    """
    file, given = _asked(scenario, keys)
    policy = given.pop("policy", None) if policy is None else policy
    own = None
    if policy is not None and not isinstance(policy, str):
        own = written(policy)
        # `original` gives the stack's own graph; the hooks decide within it.
        given["policy"] = "original"
    elif policy is not None:
        given["policy"] = policy
    try:
        return Run(_native.simulate(file, toml(given), own, (timeline, plan), explain, least_memory))
    except NoPlanError as error:
        error.result = error.result and Run(error.result)
        raise


def plan(module: Any, sample: Any, *, device: Any, policy: Any, memory_budget: Any = None, **keys: Any) -> Plan:
    """Plans the treatment of the saved tensors of a PyTorch module within a budget; the plan's `apply` carries it out.

    See `haversack.torch.plan`, and docs/run-a-plan-in-pytorch.md.
    """
    try:
        from .torch import plan as planned
    except ModuleNotFoundError as missing:
        raise InputError(f"plan needs PyTorch: pip install torch onnx ({missing})") from missing
    return planned(module, sample, device=device, policy=policy, memory_budget=memory_budget, **keys)


def _into(
    out: Optional[Union[str, "os.PathLike[str]"]], resume: bool, kind: Type[Results], call: Callable[[Path], str]
) -> Results:
    """The results that `call` writes into the folder, or into a temporary one."""
    if out is not None:
        return kind(Path(out), call(Path(out)))
    if resume:
        raise InputError("resume: expected the folder to continue in as out=")
    folder = Path(tempfile.mkdtemp(prefix="haversack-"))
    try:
        results = kind(folder, call(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(results, shutil.rmtree, folder, ignore_errors=True)
    return results


def sweep(
    specification: Specification = None,
    *,
    out: Optional[Union[str, "os.PathLike[str]"]] = None,
    resume: bool = False,
    overwrite: bool = False,
    shard: Optional[str] = None,
    jobs: Optional[int] = None,
    **keys: Unpack[SweepKeys],
) -> Sweep:
    """Runs the product of all keys: each may have one value, a list, or a span such as
    `{"from": "20%", "to": "100%", "steps": 5}`.

    `specification` is a file or a dictionary; keywords override it. Without `out` the folder is a temporary one that is
    deleted with the result. `shard="1/4"` runs a part, for `haversack merge`. A point that fits no plan is a row. `policy`
    may have your own `Policy`s among the names.

    Raises InputError or RunError, or any exception of a hook of a policy; after KeyboardInterrupt, `resume=True` continues.
    """
    file, given = _asked(specification, keys)
    given["policy"], own = named(given.get("policy"))
    if own and resume:
        raise InputError("resume: a policy written in Python may have changed since; write into a new folder")
    call = lambda folder: _native.sweep(file, toml(given), own, (folder, resume, overwrite, jobs), shard)  # noqa: E731
    return _into(out, resume, Sweep, call)


def federate(
    specification: Specification = None,
    *,
    out: Optional[Union[str, "os.PathLike[str]"]] = None,
    resume: bool = False,
    overwrite: bool = False,
    shard: Optional[str] = None,
    jobs: Optional[int] = None,
    **keys: Unpack[FederationKeys],
) -> Federation:
    """Trains one network on a population of phones together. Takes the keys of `haversack federate`, as `sweep` does.

    Raises InputError or RunError; after KeyboardInterrupt, `resume=True` continues.
    """
    file, given = _without_objects(specification, keys)
    call = lambda folder: _native.federate(file, given, (folder, resume, overwrite, jobs), shard)  # noqa: E731
    return _into(out, resume, Federation, call)


def train(
    specification: Specification = None,
    *,
    out: Optional[Union[str, "os.PathLike[str]"]] = None,
    resume: bool = False,
    overwrite: bool = False,
    jobs: Optional[int] = None,
    **keys: Unpack[TrainingKeys],
) -> Training:
    """Trains networks for real under each policy. Takes the keys of `haversack train`, as `sweep` does.

    Raises InputError, NoPlanError or RunError; after KeyboardInterrupt, `resume=True` continues.
    """
    file, given = _without_objects(specification, keys)
    call = lambda folder: _native.train(file, given, (folder, resume, overwrite, jobs))  # noqa: E731
    return _into(out, resume, Training, call)


def reproduce(
    *selectors: str,
    out: Optional[Union[str, "os.PathLike[str]"]] = None,
    resume: bool = False,
    overwrite: bool = False,
    shard: Optional[str] = None,
    jobs: Optional[int] = None,
    seed: int = 0,
    trace: Optional[Union[str, "os.PathLike[str]"]] = None,
    learn: bool = False,
    full: bool = False,
) -> Reproduction:
    """Reproduces the selected figures and tables of the papers, such as "sage" or "daf/table1"; all without a selector.

    Accuracies are drawn from committed trainings; `learn` trains them again with one seed, `full` everything with all.

    Raises InputError, or RunError if an artefact failed; after KeyboardInterrupt, `resume=True` continues.
    """
    chosen: Sequence[str] = list(selectors)
    call = lambda folder: _native.reproduce(  # noqa: E731
        chosen, (folder, resume, overwrite, jobs), shard, seed, trace, (learn, full)
    )
    return _into(out, resume, Reproduction, call)


def _name_the_keys() -> None:
    """Replaces `**keys` in the signatures by the keys of `haversack.types`, which help() and completion then show."""
    from . import types

    calls = {
        simulate: types.RunKeys,
        advise: types.ScenarioKeys,
        sensitivity: types.ScenarioKeys,
        sweep: types.SweepKeys,
        federate: types.FederationKeys,
        train: types.TrainingKeys,
    }
    for call, keys in calls.items():
        shown = inspect.signature(call)
        named = [given for given in shown.parameters.values() if given.kind is not inspect.Parameter.VAR_KEYWORD]
        known = {given.name for given in named}
        keyword = inspect.Parameter.KEYWORD_ONLY
        for key, kind in keys.__annotations__.items():
            if key not in known:
                annotation = kind.__forward_arg__ if hasattr(kind, "__forward_arg__") else kind
                named.append(inspect.Parameter(key, keyword, default=None, annotation=annotation))
        call.__signature__ = shown.replace(parameters=named)  # type: ignore[attr-defined]


_name_the_keys()


def __dir__() -> Sequence[str]:
    return __all__
