"""The functions and classes written in Rust. Programs call the functions of `haversack`; policies receive the classes."""

import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .policy import Written
from .types import Simulation

_Path = Union[str, "os.PathLike[str]"]
# The folder, whether to resume in it, whether to overwrite the files that it lists, and the number of parallel runs.
_Work = Tuple[_Path, bool, bool, Optional[int]]

__version__: str

def main(words: Sequence[str]) -> int: ...
def simulate(
    file: Optional[_Path],
    given: str,
    policy: Optional[Written],
    files: Tuple[Optional[_Path], Optional[_Path]],
    explain: bool,
    least_memory: bool,
) -> Simulation: ...
def sweep(
    file: Optional[_Path],
    given: str,
    policies: Sequence[Written],
    work: _Work,
    shard_text: Optional[str],
) -> str: ...
def federate(
    file: Optional[_Path],
    given: str,
    work: _Work,
    shard_text: Optional[str],
) -> str: ...
def train(
    file: Optional[_Path],
    given: str,
    work: _Work,
) -> str: ...
def reproduce(
    selectors: Sequence[str],
    work: _Work,
    shard_text: Optional[str],
    seed: int,
    trace: Optional[_Path],
    again: Tuple[bool, bool],
) -> str: ...

class Tensor:
    """One tensor as a policy sees it."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def operator(self) -> Optional[str]:
        """The kind of the operator that makes it; None for inputs and weights."""
    @property
    def form(self) -> str:
        """absent, dropped, whole, in flight, quantised, compressed or on flash."""
    @property
    def bytes(self) -> int:
        """Its size when it is whole."""
    @property
    def cost_s(self) -> float:
        """The time of the operator that makes it; after a recomputation, of all that had to be computed for it."""
    @property
    def last_use_s(self) -> float:
        """When it was last read or written."""
    @property
    def next_use(self) -> Optional[int]:
        """The next node that reads or writes it, or None."""

class Memory:
    """The state of memory when a policy is called."""

    @property
    def candidates(self) -> List[Tensor]:
        """The tensors that may give way, by id: whole in memory, not in use, possible to compute again."""
    def tensor(self, id: int) -> Tensor: ...
    def __len__(self) -> int: ...
    @property
    def at(self) -> int:
        """The current node."""
    @property
    def micro_batch(self) -> int:
        """Samples of the current micro-batch."""
    @property
    def budget_bytes(self) -> Optional[int]:
        """Bytes that may be in memory; None if memory is not bounded."""
    @property
    def needed_bytes(self) -> int:
        """The bytes that are whole in memory, plus those that the next node needs."""
    @property
    def now_s(self) -> float: ...
    @property
    def phase(self) -> str:
        """forward, backward or update."""
