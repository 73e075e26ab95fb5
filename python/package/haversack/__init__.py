"""haversack simulates how a phone or an embedded board trains a neural network within memory and time budgets.

    import haversack

    run = haversack.simulate(device="galaxy-s10", model="resnet50", policy="sage", memory_budget="30%")
    print(run["iteration_time_s"], run["peak_memory_bytes"])

Each call takes what the command of its name takes, by the same names, and gives what that writes: docs/python.md.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _native
from ._native import __version__
from .errors import HaversackError, InputError, NoPlanError, RunError
from .network import Network, from_torch
from .policy import Policy, refuse, written
from .results import Federation, Folder, Picture, Reproduction, Sweep, Training

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._native import Memory, Tensor
    from .torch import Plan
    from .types import FederationKeys, RunKeys, Simulation, SweepKeys, TrainingKeys

__all__ = [
    "Federation",
    "HaversackError",
    "InputError",
    "Network",
    "NoPlanError",
    "Picture",
    "Policy",
    "Reproduction",
    "RunError",
    "Sweep",
    "Training",
    "__version__",
    "federate",
    "from_torch",
    "plan",
    "reproduce",
    "simulate",
    "sweep",
    "train",
]

#: A file in TOML, or its keys as a dictionary.
Specification = Union[str, "os.PathLike[str]", Mapping[str, Any], None]
Results = TypeVar("Results", bound=Folder)


def _asked(specification: Specification, keys: Mapping[str, Any]) -> Tuple[Optional[str], Dict[str, Any]]:
    """The file, if there is one, and the keys over it."""
    if isinstance(specification, Mapping):
        specification, keys = None, {**specification, **keys}
    refuse(keys.get("policy"))
    return None if specification is None else os.fspath(specification), dict(keys)


def simulate(
    scenario: Specification = None,
    *,
    policy: Any = None,
    timeline: Optional[Union[str, "os.PathLike[str]"]] = None,
    plan: Optional[Union[str, "os.PathLike[str]"]] = None,
    explain: bool = False,
    least_memory: bool = False,
    **keys: Unpack[RunKeys],
) -> Simulation:
    """Simulates one run: what `haversack simulate --format json` prints, and under `notes` what it says beside.

    `scenario` is a file or a dictionary; keywords win over it. `policy` is the name of a policy or one of one's own
    (`Policy`); `timeline` a file for Perfetto, `plan` one for what the policy did; `explain` adds `peak`, `least_memory` adds
    `least_memory_bytes`.

    Raises InputError, NoPlanError (with the least budget that works) or RunError, what a hook of the policy raises, and
    KeyboardInterrupt.
    """
    file, given = _asked(scenario, keys)
    own = None
    if policy is not None and not isinstance(policy, str):
        own = written(policy)
        # What is planned is what the stack executes anyway; the hooks decide within it.
        given["policy"] = "original"
    elif policy is not None:
        given["policy"] = policy
    return _native.simulate(file, given, own, (timeline, plan), explain, least_memory)


def plan(module: Any, sample: Any, *, device: Any, policy: Any, memory_budget: Any = None, **keys: Any) -> Plan:
    """Plans what becomes of the saved tensors of a PyTorch module within a budget; the plan's `apply` carries it out.

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
    """What `call` writes into the folder, or into a temporary one."""
    if out is not None:
        return kind(Path(out), call(Path(out)))
    if resume:
        raise InputError("resume: expected the folder to go on in as out=")
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

    `specification` is a file or a dictionary; keywords win over it. Without `out` the folder is a temporary one, which goes
    with the result. `shard="1/4"` runs a part, for `haversack merge`.

    Raises InputError or RunError; KeyboardInterrupt, after which `resume=True` goes on. A point that fits no plan is a row.
    """
    file, given = _asked(specification, keys)
    call = lambda folder: _native.sweep(file, given, (folder, resume, overwrite, jobs), shard)  # noqa: E731
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
    """Trains one network on a population of phones together: the keys of `haversack federate`, as `sweep` takes its own.

    Raises InputError or RunError; KeyboardInterrupt, after which `resume=True` goes on.
    """
    file, given = _asked(specification, keys)
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
    """Trains networks for real under each policy: the keys of `haversack train`, as `sweep` takes its own.

    Raises InputError, NoPlanError or RunError; KeyboardInterrupt, after which `resume=True` goes on.
    """
    file, given = _asked(specification, keys)
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
    """Reproduces the papers' figures and tables that are selected, such as "sage" or "daf/table1"; without a selector all.

    Accuracies are drawn from committed trainings; `learn` trains them again with one seed, `full` everything with all.

    Raises InputError, or RunError where an artefact failed; KeyboardInterrupt, after which `resume=True` goes on.
    """
    chosen: Sequence[str] = list(selectors)
    call = lambda folder: _native.reproduce(  # noqa: E731
        chosen, (folder, resume, overwrite, jobs), shard, seed, trace, (learn, full)
    )
    return _into(out, resume, Reproduction, call)
