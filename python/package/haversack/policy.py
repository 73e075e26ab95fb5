"""A policy written in Python, for trying an idea. One that stays is written in Rust: docs/write-a-policy.md."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Iterable, List, NamedTuple, Optional

from .errors import InputError

if TYPE_CHECKING:
    from ._native import Memory, Tensor
    from .types import Budgets, Holding, Iteration, Relief, Setting

#: The questions that a policy answers.
HOOKS = ("prepare", "begin_iteration", "hold", "relieve", "budget_changed", "end_iteration")


class Policy:
    """Every hook has a default; one that is not overridden is never called, and costs nothing.

    One object answers for every run of a call, one run after the other: `prepare` begins each of them.
    """

    #: What results call it; by default the name of its class.
    name: str

    def prepare(self, setting: Setting) -> Optional[int]:
        """Before the first iteration of a run: the samples of the first micro-batch, or None for the whole mini-batch."""
        return None

    def budget_changed(self, budgets: Budgets) -> None:
        """Before the first iteration, and before each one whose budgets are not those of the one before. Within an
        iteration a budget that falls is a question to `relieve`."""

    def begin_iteration(self, micro_batch: int) -> Optional[int]:
        """Before each iteration: the samples of its first micro-batch, or None for those that were prepared."""
        return None

    def hold(self, tensor: Tensor, memory: Memory) -> Optional[Holding]:
        """Forward has used a tensor for the last time that backward reads: how is it held? None keeps it whole."""
        return None

    def relieve(self, wanted: int, memory: Memory) -> Optional[Iterable[Relief]]:
        """So many bytes are wanted: what gives way? Asked again while it is not enough; nothing says that all has."""
        return None

    def end_iteration(self, seen: Iteration) -> None:
        """After each iteration: what was measured."""


class Written(NamedTuple):
    """A policy as a call takes it."""

    object: Any
    name: str
    hooks: List[str]


def written(policy: Any) -> Written:
    """The policy, or an object of it if it is a class, with the hooks that it has."""
    if isinstance(policy, type):
        policy = policy()
    own = [hook for hook in HOOKS if getattr(type(policy), hook, None) not in (None, getattr(Policy, hook))]
    for method in dir(type(policy)):
        # A hook by another name would never be called, and nothing would say so.
        meant = [] if method in HOOKS or method.startswith("_") else difflib.get_close_matches(method, HOOKS, 1, 0.8)
        if meant and meant[0] not in own and callable(getattr(type(policy), method)):
            name, hooks = type(policy).__name__, ", ".join(HOOKS)
            raise InputError(f"policy: {name}.{method} is no hook; did you mean '{meant[0]}'?; hooks are {hooks}")
    return Written(policy, str(getattr(policy, "name", type(policy).__name__)), own)


def refuse(policy: Any) -> None:
    """Raises InputError where `policy`, or one of a list, is written in Python: only `simulate` takes such a one."""
    for one in policy if isinstance(policy, (list, tuple)) else [policy]:
        kind = one if isinstance(one, type) else type(one)
        if issubclass(kind, Policy):
            raise InputError(
                f"policy: {kind.__name__} is written in Python, and only simulate(...) takes such a policy: call it in a "
                "loop, or write the policy in Rust (docs/write-a-policy.md)"
            )
