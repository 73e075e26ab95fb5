"""The dictionaries that functions take and return; docs/columns.md has the meaning and unit of each key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import Literal

    from ._native import Tensor
    from .policy import Policy

    #: The hold of a tensor.
    Holding = Literal["keep", "rematerialise", "skip", "compress", "swap"]
    #: An action that frees memory: a tensor, or its id; with "shrink", the samples of the smaller micro-batch.
    Relief = Tuple[Literal["rematerialise", "skip", "compress", "swap", "shrink"], Union[Tensor, int]]

#: An id, or a file.
Path = Union[str, "os.PathLike[str]"]
#: A number, or a text with a number and its unit: "30%", "1.2GB", "200ms", "3x96x96".
Quantity = Union[str, int, float]
#: Names and values.
Settings = Mapping[str, Any]


class RunKeys(TypedDict, total=False):
    """The keys of a scenario without its policy."""

    device: Path
    device_set: Settings
    stack: Path
    model: Path
    input: Quantity
    trainable: str
    frozen: str
    outputs: str
    batch: int
    set: Settings
    precision: str
    optimizer: str
    graph: str
    gradients: str
    allocator: str
    memory_format: str
    attention: str
    inference: bool
    ignore_ram: bool
    system: Path
    system_set: Settings
    trainer_adj: int
    apps: Path
    cores: str
    frequency: str
    ambient_c: float
    memory_budget: Quantity
    activation_budget: Quantity
    budget_reference: str
    budget_walls: str
    time_budget: Quantity
    trace: Path
    trace_from: Quantity
    trace_window: Quantity
    footprints: Path
    usage: Path
    iterations: int
    seed: int


class ScenarioKeys(RunKeys, total=False):
    """The keys of a scenario."""

    policy: str


#: A number of values from one to another, both included: `{"from": "20%", "to": "100%", "steps": 5}`.
Span = Mapping[str, Quantity]


class SweepKeys(TypedDict, total=False):
    """The keys of a sweep: one value, a list, or a span."""

    device: Union[Path, Sequence[Path], Span]
    device_set: Settings
    stack: Union[Path, Sequence[Path], Span]
    model: Union[Path, Sequence[Path], Span]
    input: Union[Quantity, Sequence[Quantity], Span]
    trainable: Union[str, Sequence[str], Span]
    frozen: Union[str, Sequence[str], Span]
    outputs: Union[str, Sequence[str], Span]
    batch: Union[int, Sequence[int], Span]
    policy: Union[str, Policy, Type[Policy], Sequence[Union[str, Policy, Type[Policy]]]]
    set: Settings
    precision: Union[str, Sequence[str], Span]
    optimizer: Union[str, Sequence[str], Span]
    graph: Union[str, Sequence[str], Span]
    gradients: Union[str, Sequence[str], Span]
    allocator: Union[str, Sequence[str], Span]
    memory_format: Union[str, Sequence[str], Span]
    attention: Union[str, Sequence[str], Span]
    inference: Union[bool, Sequence[bool], Span]
    ignore_ram: Union[bool, Sequence[bool], Span]
    system: Union[Path, Sequence[Path], Span]
    system_set: Settings
    trainer_adj: Union[int, Sequence[int], Span]
    apps: Union[Path, Sequence[Path], Span]
    cores: Union[str, Sequence[str], Span]
    frequency: Union[str, Sequence[str], Span]
    ambient_c: Union[float, Sequence[float], Span]
    memory_budget: Union[Quantity, Sequence[Quantity], Span]
    activation_budget: Union[Quantity, Sequence[Quantity], Span]
    budget_reference: Union[str, Sequence[str], Span]
    budget_walls: Union[str, Sequence[str], Span]
    time_budget: Union[Quantity, Sequence[Quantity], Span]
    trace: Union[Path, Sequence[Path], Span]
    trace_from: Union[Quantity, Sequence[Quantity], Span]
    trace_window: Union[Quantity, Sequence[Quantity], Span]
    footprints: Union[Path, Sequence[Path], Span]
    usage: Union[Path, Sequence[Path], Span]
    iterations: Union[int, Sequence[int], Span]
    seed: Union[int, Sequence[int], Span]
    users: Union[str, Sequence[str]]
    sample: int


class TrainingKeys(SweepKeys, total=False):
    """The keys of a training: those of a sweep, and the settings of learning."""

    augment: str
    data: Path
    epochs: int
    learning_rate: float
    schedule: str
    seeds: Sequence[int]
    validation_share: float


class FederationKeys(TypedDict, total=False):
    """The keys of a federation; a list runs one federation for each of its values."""

    population: Union[int, Sequence[int]]
    memory_mix: Settings
    alpha: Union[float, Sequence[float]]
    split: Union[str, Sequence[str]]
    data_by_memory: Union[float, Sequence[float]]
    dealt: Union[bool, Sequence[bool]]
    selector: Union[str, Sequence[str]]
    aggregator: Union[str, Sequence[str]]
    mode: Union[str, Sequence[str]]
    cohort: Union[int, Sequence[int]]
    over_commit: Union[float, Sequence[float]]
    deadline_s: Union[float, Sequence[float]]
    oracle: Union[bool, Sequence[bool]]
    rounds: Union[int, Sequence[int]]
    horizon: Union[str, Sequence[str]]
    local_epochs: Union[int, Sequence[int]]
    local_steps: Union[int, Sequence[int]]
    batch: Union[int, Sequence[int]]
    learning_rate: Union[float, Sequence[float]]
    proximal: Union[float, Sequence[float]]
    momentum: Union[float, Sequence[float]]
    weight_decay: Union[float, Sequence[float]]
    server_learning_rate: Union[float, Sequence[float]]
    samples: Union[int, Sequence[int]]
    total_samples: Union[int, Sequence[int]]
    size_alpha: Union[float, Sequence[float]]
    policy: Union[str, Sequence[str]]
    cores: Union[str, Sequence[str]]
    ready: Union[str, Sequence[str]]
    set: Settings
    stack: Union[Path, Sequence[Path]]
    precision: Union[str, Sequence[str]]
    budget: Union[str, Sequence[str]]
    plans: Union[str, Sequence[str]]
    clusters: Union[int, Sequence[int]]
    network: Union[Path, Sequence[Path]]
    device: Union[Path, Sequence[Path]]
    input: Union[str, Sequence[str]]
    link_mbit_per_s: Union[float, Sequence[float]]
    stand_in: Union[str, Sequence[str]]
    store: Union[str, Sequence[str]]
    data: Union[Path, Sequence[Path]]
    target_accuracy: Union[float, Sequence[float]]
    evaluate_every: Union[int, Sequence[int]]
    traces: Union[Path, Sequence[Path]]
    system: Union[Path, Sequence[Path]]
    trainer_adj: Union[int, Sequence[int]]
    seed: Union[int, Sequence[int]]


class Longest(TypedDict):
    """An operator that takes long."""

    name: str
    kind: str
    phase: str
    times: int
    time_s: float
    share: float
    bound_by: str


class Held(TypedDict):
    """A tensor at the peak."""

    name: str
    bytes: int
    hold: str


class Peak(TypedDict):
    """Memory at the peak."""

    node: str
    micro_batch: int
    largest: List[Held]


class Breakdown(TypedDict):
    """Seconds of an iteration by part; they sum to the iteration."""

    convolution: float
    depthwise_convolution: float
    gemm: float
    element_wise: float
    reduction: float
    layout: float
    gather: float
    optimiser: float
    launch: float
    recompute: float
    discarded: float
    control: float
    packing: float
    paging: float
    crossing: float
    preparation: float
    host: float
    planning: float
    compression: float
    swapping: float
    reclaim: float
    refault: float
    runnable: float


BoundBy = TypedDict(
    "BoundBy",
    {
        "arithmetic": float,
        "index-arithmetic": float,
        "dram": float,
        "caches": float,
        "launches": float,
        "preparation": float,
        "host": float,
        "waiting": float,
    },
)
"""Shares of an iteration by what bounds them; they sum to one."""


class Module(TypedDict):
    """The time of a module's operators."""

    module: str
    time_s: float
    share: float


class Simulation(TypedDict, total=False):
    """The result of a run. If the low-memory killer has ended it, it has only `status`, `reason`, `scenario` and `notes`."""

    iteration_time_s: float
    forward_s: float
    backward_s: float
    update_s: float
    samples_per_s: float
    peak_memory_bytes: int
    peak_growth_bytes: int
    reserved_bytes: int
    exceeds_ram: bool
    saved_peak_bytes: int
    staging_bytes: int
    fragmentation_bytes: int
    mean_iteration_s: float
    iteration_spread: Optional[float]
    iterations_s: List[float]
    trace_held_s: float
    trace_assumed_share: Optional[float]
    uninterruptible_s: float
    runnable_s: float
    system_used_bytes: int
    evicted_bytes: int
    flash_read_bytes: int
    flash_written_bytes: int
    kills: int
    apps_killed: int
    phone: Dict[str, Any]
    energy_j: float
    mean_power_w: float
    process_bytes: int
    busy_cores: float
    kernel_share: float
    minor_faults: int
    recompute_share: float
    fidelity: str
    gradients_given_up: int
    least_bits: int
    batch_statistics: str
    lower_bound_s: Optional[float]
    optimality_gap: Optional[float]
    micro_batches: List[int]
    breakdown: Breakdown
    bound_by: BoundBy
    status: str
    reason: str
    scenario: Dict[str, Any]
    longest: List[Longest]
    least_memory_bytes: int
    peak: Peak
    modules: List[Module]
    notes: List[str]


class Node(TypedDict):
    """An operator of an iteration, in the order in which they run; tensors are ids."""

    name: str
    operator: str
    phase: str
    time_s: float
    inputs: List[int]
    outputs: List[int]


class Setting(TypedDict):
    """The information that a policy has before the first iteration."""

    batch: int
    filling_micro_batch: int
    activation_budget_bytes: Optional[int]
    time_budget_s: Optional[float]
    saved: List[int]
    nodes: List[Node]


class Budgets(TypedDict):
    """The memory budgets of an iteration; None means no limit."""

    memory_bytes: Optional[int]
    activation_bytes: Optional[int]


class Iteration(TypedDict):
    """The measurements of an iteration."""

    time_s: float
    micro_batches: List[int]
