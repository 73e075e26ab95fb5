"""Tests plans carried out in PyTorch as a user sees them; skipped without PyTorch."""

import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

MISSING = [name for name in ("torch", "onnx") if importlib.util.find_spec(name) is None]
if MISSING:
    print(f"skipped: no {' and no '.join(MISSING)}; plans were not carried out", file=sys.stderr)
    sys.exit()

import torch
from torch import nn

import haversack
import haversack.torch as planned
from haversack.packing import Codes, Marks, Places

PAGE = Path(__file__).resolve().parents[2] / "docs" / "run-a-plan-in-pytorch.md"
warnings.filterwarnings("ignore", category=DeprecationWarning)


def network():
    """Batch statistics, changes in place that autograd copies first, random masks, indices."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
        nn.ReLU6(True), nn.Conv2d(8, 8, 1), nn.Dropout(0.3), nn.Flatten(), nn.Linear(8 * 13 * 13, 10),
    )  # fmt: skip


SAMPLE = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(2))


def graph(module, sample):
    exported, probe = haversack.from_torch(module, sample), planned._Probe()
    run = haversack.simulate(device="server-core", model=exported, batch=exported.batch, policy=probe, iterations=1)
    return planned._Graph(module, probe.setting, probe.names, probe.sizes), run


def by_hand(module, sample, choose, steps=(), **changed):
    """A plan in which `choose` decides how each saved tensor is kept."""
    found, run = graph(module, sample)
    treatments = {str(tensor): {"name": found.names[tensor], "hold": choose(tensor)} for tensor in found.sizes}
    iteration = {"micro_batch": found.batch, "treatments": treatments, "steps": list(steps)}
    fixed = {"given_up": [], "eight_bits": False, "quantisation": None, "offload": None, "batch_statistics": "part"}
    text = {"version": 1, "policy": "by-hand", "batch": found.batch, "nodes": [{"name": node["name"]} for node in found.nodes]}
    text.update(fixed=fixed, iterations=[iteration])
    text.update(changed)
    made = planned.Plan(module, (sample,), found, json.dumps(text))
    made.simulated = made.plain = run
    return made


def step(module, sample, plan=None):
    """Gradients, buffers and the next random number after one step from the same state."""
    torch.manual_seed(3)
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    module.zero_grad()
    with plan.apply(module) if plan else contextlib.nullcontext():
        planned._loss(module(sample)).backward()
    seen = {name: parameter.grad.clone() for name, parameter in module.named_parameters() if parameter.grad is not None}
    seen.update((name, buffer.clone()) for name, buffer in module.named_buffers())
    seen["random"] = torch.rand(4)
    for name, buffer in module.named_buffers():
        buffer.copy_(buffers[name])
    return seen


class Exact(unittest.TestCase):
    def same(self, module, sample, plan):
        one, other = step(module, sample), step(module, sample, plan)
        self.assertEqual(set(one), set(other))
        different = [name for name, value in one.items() if not torch.equal(value, other[name])]
        self.assertEqual(different, [])

    def test_what_is_computed_again_or_lies_in_a_file_gives_the_same_bits(self):
        module = network()
        for holds in (["rematerialise"], ["swap"], ["keep", "rematerialise"], ["rematerialise", "swap", "keep"]):
            plan = by_hand(module, SAMPLE, lambda tensor: holds[tensor % len(holds)])
            self.same(module, SAMPLE, plan)
            self.assertEqual(plan.not_found, {})

    def test_what_gives_way_in_backward_is_computed_again(self):
        module = network()
        found, _ = graph(module, SAMPLE)
        relieved = [{"relieve": [{"rematerialise": tensor} for tensor in found.sizes]}]
        steps = [{"part": 0, "before": found.first_backward + 4, "action": action} for action in relieved]
        plan = by_hand(module, SAMPLE, lambda tensor: "keep", steps)
        runs = []
        end = planned.Tape.end
        with mock.patch.object(planned.Tape, "end", lambda tape: (runs.append(tape), end(tape))[1]):
            self.same(module, SAMPLE, plan)
        self.assertGreater(runs[0].recomputed, 5)

    def test_tensors_leave_memory_as_the_plan_says(self):
        module = nn.Sequential(*(part for _ in range(6) for part in (nn.Conv2d(4, 4, 3, padding=1), nn.Tanh())))
        sample, before = torch.randn(8, 4, 64, 64), None
        for hold in ("keep", {"quantise": 8}, {"quantise": 2}, "swap"):
            plan = by_hand(module, sample, lambda tensor: hold)
            peak = planned.peak_of(module, (sample,), lambda: step(module, sample, plan))
            self.assertLess(peak, before or peak + 1, hold)
            before = peak

    def test_a_policy_is_recorded_carried_out_and_checked(self):
        module = nn.Sequential(*(part for _ in range(8) for part in (nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(True))))
        sample = torch.randn(32, 3, 96, 96)
        budget = {"device": "server-core", "policy": "dgc", "memory_budget": "70%"}
        plan = haversack.plan(module, sample, **budget)
        self.assertIn("rematerialise", repr(plan))
        weights = {name: weight.clone() for name, weight in module.state_dict().items()}
        found = plan.check(module)
        self.assertTrue(found.bit_equal)
        self.assertEqual(found.gradient_error, 0)
        self.assertLess(found.measured_peak_bytes, 0.85 * found.plain_measured_peak_bytes)
        self.assertLess(abs(found.measured_peak_bytes / found.simulated_peak_bytes - 1), 0.15)
        self.assertTrue(all(torch.equal(weights[name], weight) for name, weight in module.state_dict().items()))
        self.assertIn("peak with the plan", str(found))
        # The same from a file.
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plan.json"
            file.write_text(plan.text)
            again = haversack.plan(module, sample, **{**budget, "policy": "planned", "set": {"plan": str(file)}})
            self.assertEqual((again.holds, again.steps), (plan.holds, plan.steps))
            other = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 3, 3))
            with self.assertRaisesRegex(haversack.InputError, "is for another network: where it has .*, this"):
                haversack.plan(other, sample, **{**budget, "policy": "planned", "set": {"plan": str(file)}})

    def test_parts_of_a_mini_batch_add_up_to_its_gradient(self):
        module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 30 * 30, 10))
        plan = by_hand(module, SAMPLE, lambda tensor: "keep")
        plan.micro_batch = 3
        self.assertEqual([(len(part), share) for part, share in plan.parts(SAMPLE)], [(3, 0.75), (1, 0.25)])
        self.assertLess(plan.check(module, repeats=1).gradient_error, 1e-6)


class Lossy(unittest.TestCase):
    def test_fewer_bits_cost_more_of_the_gradient(self):
        module = network()
        errors = [by_hand(module, SAMPLE, lambda _: {"quantise": bits}).check(module, repeats=1).gradient_error for bits in (8, 4, 2)]
        self.assertEqual(errors, sorted(errors))
        self.assertLess(errors[0], 0.01)
        self.assertGreater(errors[1], 0.005)

    def test_codes_come_back_within_half_a_step(self):
        values = torch.randn(70_001, generator=torch.Generator().manual_seed(4))
        for bits in range(1, 9):
            packed = Codes(values, bits)
            self.assertEqual(packed.codes.numel(), -(-len(values) // 256) * 32 * bits)
            step = packed.scales[0].repeat_interleave(256)[: len(values)]
            self.assertTrue(bool(((packed.whole() - values).abs() <= step * 0.5001 + 1e-6).all()), bits)

    def test_signs_and_places_lose_nothing(self):
        values = torch.randn(70_001)
        marks = Marks(values, lambda piece: piece > 0, 0.0, 1.0)
        self.assertTrue(torch.equal(marks.whole() > 0, values > 0))
        self.assertEqual(marks.bits.numel(), -(-len(values) // 8))
        _, found = torch.nn.functional.max_pool2d(torch.randn(2, 3, 17, 19), 3, 2, 1, return_indices=True)
        places = Places(found.view(-1), found.shape, 19, (2, 2), (1, 1))
        self.assertTrue(torch.equal(places.whole(), found.view(-1)))

    def test_weights_that_are_given_up_get_no_gradient(self):
        module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(4 * 28 * 28, 10))
        found, _ = graph(module, SAMPLE)
        tensor = next(tensor for tensor in found.sizes if "2.weight" in found.weights_for(tensor))
        seen = step(module, SAMPLE, by_hand(module, SAMPLE, lambda own: "skip" if own == tensor else "keep"))
        self.assertNotIn("2.weight", seen)
        self.assertIn("0.weight", seen)
        self.assertTrue(all(weight.requires_grad for weight in module.parameters()))


class Refused(unittest.TestCase):
    def refused(self, words):
        return self.assertRaisesRegex(haversack.InputError, words)

    def test_a_plan_for_something_else_names_what_differs(self):
        module = network()
        keep = lambda tensor: "keep"  # noqa: E731
        with self.refused("version is 2; expected 1"):
            by_hand(module, SAMPLE, keep, version=2)
        with self.refused("for a batch of 8; the sample has one of 4"):
            by_hand(module, SAMPLE, keep, batch=8)
        nodes = [{"name": node["name"]} for node in graph(module, SAMPLE)[0].nodes]
        with self.refused("where it has /9/Other, this one has /1/BatchNormalization"):
            by_hand(module, SAMPLE, keep, nodes=[nodes[0], {"name": "/9/Other"}, *nodes[2:]])
        with self.refused("another network: of 3 nodes"):
            by_hand(module, SAMPLE, keep, nodes=nodes[:3])

    def test_a_changed_module_or_batch_is_told_before_it_runs(self):
        module = network()
        plan = by_hand(module, SAMPLE, lambda tensor: "keep")
        with self.refused(r"found \(2, 3, 32, 32\)"), plan.apply(module):
            module(SAMPLE[:2])
        module[8] = nn.Dropout(0.5)
        with self.refused(r"8 was Dropout\(p=0.3.*8 is Dropout\(p=0.5"), plan.apply(module):
            self.fail("it ran")
        self.assertEqual(step(network(), SAMPLE).keys(), step(module, SAMPLE).keys())

    def test_changes_of_a_part_in_place_are_told(self):
        class InPlace(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = nn.Conv2d(3, 4, 3), nn.Linear(4 * 30 * 30, 10)

            def forward(self, x):
                x = self.one(x)
                x[:, :2].relu_()
                return self.two(x.flatten(1))

        module = InPlace()
        plan = by_hand(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 30 * 30, 10)), SAMPLE, lambda tensor: "keep")
        plan._shape = planned._shape_of(module)
        with self.refused("the module: relu_ changes a part of a tensor in place"), plan.apply(module):
            module(SAMPLE)

    def test_a_budget_below_what_fits_runs_nothing(self):
        with self.assertRaisesRegex(haversack.NoPlanError, "the least memory budget that works is"):
            haversack.plan(network(), SAMPLE, device="server-core", policy="dgc", memory_budget="10KB")

    def test_weights_that_were_changed_before_backward_are_told(self):
        module = network()
        plan = by_hand(module, SAMPLE, lambda tensor: "rematerialise")
        with plan.apply(module):
            loss = planned._loss(module(SAMPLE))
            with torch.no_grad():
                module[0].weight.add_(1)
            with self.assertRaisesRegex(haversack.RunError, "changed between forward and backward"):
                loss.backward()


class Names(unittest.TestCase):
    def test_exported_names_are_modules(self):
        modules = {"", "layer1", "layer1.0", "layer1.0.relu", "h.0.mlp", "h.0", "h", "conv_1"}
        for name, expected in {
            "/layer1/layer1.0/relu_1/Relu": ("layer1.0.relu", "Relu"),
            "/h.0/mlp/MatMul_2": ("h.0.mlp", "MatMul"),
            "/Add_1": ("", "Add"),
            "/conv_1/Conv": ("conv_1", "Conv"),
        }.items():
            self.assertEqual(planned._module_path(name, modules), expected)

    def test_what_the_plan_does_not_name_is_kept_and_said(self):
        module = network()
        plan = by_hand(module, SAMPLE, lambda tensor: "rematerialise")
        del plan._graph.by_module["4"]
        plan.look(module)
        self.assertEqual(list(plan.not_found), ["4: convolution"])
        self.assertIn("are not in the plan and are kept: 4: convolution", plan.notes[0])
        self.assertTrue(torch.equal(step(module, SAMPLE)["0.weight"], step(module, SAMPLE, plan)["0.weight"]))


class Page(unittest.TestCase):
    def test_what_the_page_shows_runs(self):
        cells = Path(__file__).with_name("cells.py")
        ran = subprocess.run([sys.executable, str(cells), str(PAGE)], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertNotIn("skipped", ran.stderr)


if __name__ == "__main__":
    unittest.main()
