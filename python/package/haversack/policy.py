"""Policies written in Python, to try an idea. Write a permanent policy in Rust: docs/write-a-policy.md."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Iterable, List, NamedTuple, Optional, Tuple

from .errors import InputError

if TYPE_CHECKING:
    from ._native import Memory, Tensor
    from .types import Budgets, Holding, Iteration, Relief, Setting

#: The methods of a policy.
HOOKS = ("prepare", "begin_iteration", "hold", "relieve", "budget_changed", "end_iteration")


class Policy:
    """Every hook has a default; a hook that is not overridden is never called, and costs nothing.

    In `simulate` one object serves every run, one run after the other: each begins with `prepare`. In `sweep` runs are
    simulated at the same time, and each has a copy of the object.
    """

    #: Its name in results; by default the name of its class.
    name: str

    def prepare(self, setting: Setting) -> Optional[int]:
        """Called before the first iteration of a run. Returns the samples of the first micro-batch, or None for the whole
        mini-batch."""
        return None

    def budget_changed(self, budgets: Budgets) -> None:
        """Called before the first iteration, and before each one whose budgets differ from the previous one's. If a budget
        falls within an iteration, `relieve` is called instead."""

    def begin_iteration(self, micro_batch: int) -> Optional[int]:
        """Called before each iteration. Returns the samples of its first micro-batch, or None for those of `prepare`."""
        return None

    def hold(self, tensor: Tensor, memory: Memory) -> Optional[Holding]:
        """Called when forward has used a saved tensor for the last time. Returns its hold; None keeps it whole."""
        return None

    def relieve(self, wanted: int, memory: Memory) -> Optional[Iterable[Relief]]:
        """Called when `wanted` bytes are needed. Returns the tensors that give way. Called again while that is not enough;
        returning nothing means that the policy has nothing more to give."""
        return None

    def end_iteration(self, seen: Iteration) -> None:
        """Called after each iteration with its measurements."""


class Written(NamedTuple):
    """A policy as the native functions take it."""

    object: Any
    name: str
    hooks: List[str]


def written(policy: Any) -> Written:
    """The policy (instantiated if it is a class), with the hooks that it defines."""
    if isinstance(policy, type):
        policy = policy()
    own = [hook for hook in HOOKS if getattr(type(policy), hook, None) not in (None, getattr(Policy, hook))]
    for method in dir(type(policy)):
        # A misspelt hook would silently never be called.
        meant = [] if method in HOOKS or method.startswith("_") else difflib.get_close_matches(method, HOOKS, 1, 0.8)
        if meant and meant[0] not in own and callable(getattr(type(policy), method)):
            name, hooks = type(policy).__name__, ", ".join(HOOKS)
            raise InputError(f"policy: {name}.{method} is not a hook; did you mean '{meant[0]}'?; hooks are {hooks}")
    if not own and not isinstance(policy, Policy):
        kind, hooks = type(policy).__name__, ", ".join(HOOKS)
        raise InputError(f"policy: expected a name, or an object with one of {hooks}; found a {kind}")
    return Written(policy, str(getattr(policy, "name", type(policy).__name__)), own)


def refuse(policy: Any) -> None:
    """Raises InputError if `policy`, or one of a list, is written in Python."""
    for one in policy if isinstance(policy, (list, tuple)) else [policy]:
        kind = one if isinstance(one, type) else type(one)
        if issubclass(kind, Policy):
            raise InputError(
                f"policy: {kind.__name__} is written in Python, and only simulate(...) and sweep(...) take such a policy: "
                "write it in Rust (docs/write-a-policy.md)"
            )


def named(policies: Any) -> Tuple[Any, List[Written]]:
    """The values of a sweep's `policy`, each object or class replaced by its name, and those policies."""
    if policies is None or isinstance(policies, (str, dict)):
        return policies, []
    names: List[str] = []
    own: List[Written] = []
    for one in policies if hasattr(policies, "__iter__") else [policies]:
        if not isinstance(one, str):
            own.append(written(one))
        names.append(one if isinstance(one, str) else own[-1].name)
    return names, own
