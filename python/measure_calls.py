"""Measures the time of a simulation called from Python (median of many), and the cost of a policy written in Python.

    cargo run --release -p haversack-python --example rust_call    # the same calls from Rust
    python python/measure_calls.py
"""

import statistics
import time

import haversack

CALLS = 200


def measure(calls=CALLS, **scenario):
    """The median and the minimum time of a call, in milliseconds."""
    times = []
    for _ in range(calls):
        begun = time.perf_counter()
        haversack.simulate(device="galaxy-s10", batch=32, **scenario)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times), min(times)


class Counting(haversack.Policy):
    """DTR's heuristic: drops the tensor with the least cost of recomputation per byte and time since its last use."""

    asked = 0

    def relieve(self, wanted, memory):
        Counting.asked += 1
        score = lambda tensor: tensor.cost_s / max(tensor.bytes * (memory.now_s - tensor.last_use_s + 1e-9), 1e-12)  # noqa: E731
        for tensor in sorted(memory.candidates, key=score):
            if wanted <= 0:
                return
            wanted -= tensor.bytes
            yield "rematerialise", tensor


class Keeping(haversack.Policy):
    """Keeps everything like the policy original, but with a call for every tensor."""

    asked = 0

    def hold(self, tensor, memory):
        Keeping.asked += 1
        return "keep"


for model, policy, budget in [
    ("lenet5", "original", "100%"),
    ("resnet18-cifar", "sage", "60%"),
    ("resnet50", "sage", "30%"),
]:
    median, least = measure(model=model, policy=policy, memory_budget=budget)
    print(f"{model:16} {policy:9} {budget:>5}  median {median:.3f} ms, least {least:.3f} ms")

for model in ("resnet18-cifar", "resnet50"):
    for policy, budget in (("original", None), (Keeping, None), ("dtr", "70%"), (Counting, "70%")):
        if isinstance(policy, type):
            policy.asked = 0
        median, least = measure(20, model=model, policy=policy, memory_budget=budget)
        name = policy if isinstance(policy, str) else policy.__name__
        asked = "" if isinstance(policy, str) else f", {policy.asked // 20} questions a call"
        print(f"{model:16} {name:9} {budget or '-':>5}  median {median:.2f} ms, least {least:.2f} ms{asked}")
