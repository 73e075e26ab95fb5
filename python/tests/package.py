"""Tests the package `haversack` as a user sees it."""

import importlib.util
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
import unittest
from pathlib import Path
from unittest import mock

import haversack
import haversack.types

# Tests that are started in the background ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = {"device": "galaxy-s10", "model": "lenet5", "batch": 8}
DEEP = {"device": "galaxy-s10", "model": "resnet20-cifar", "batch": 8}


class FarthestFirst(haversack.Policy):
    """Drops the tensor with the latest next use; it is computed again then."""

    def relieve(self, wanted, memory):
        for tensor in sorted(memory.candidates, key=lambda tensor: -(tensor.next_use or sys.maxsize)):
            if wanted <= 0:
                return
            wanted -= tensor.bytes
            yield "rematerialise", tensor


class Answers(unittest.TestCase):
    def test_lists_have_the_ids_of_the_command_line(self):
        ids = [device.id for device in haversack.devices()]
        self.assertIn("galaxy-s10", ids)
        self.assertEqual(len(ids), len(set(ids)))
        self.assertIn("lenet5", [model["id"] for model in haversack.models()])
        self.assertIn("sage", [policy.id for policy in haversack.policies()])
        self.assertIn("<th>id</th>", haversack.stacks()._repr_html_())

    def test_advice_agrees_with_single_runs(self):
        advice = haversack.advise(**SMALL, memory_budget="100%")
        fitting = [row for row in advice.candidates if row.status == "ok"]
        self.assertEqual(fitting, sorted(fitting, key=lambda row: row.iteration_time_s))
        run = haversack.simulate(**SMALL, policy=fitting[0].policy, stack=fitting[0].stack, memory_budget="100%")
        self.assertEqual(run.iteration_time_s, fitting[0].iteration_time_s)
        self.assertIn("<svg", advice.plot()._repr_svg_())
        self.assertIn(fitting[0].policy, advice._repr_html_())

    def test_messages_name_keywords(self):
        with self.assertRaisesRegex(haversack.InputError, "galaxy-s11.*galaxy-s10"):
            haversack.advise(device="galaxy-s11", model="lenet5")
        with self.assertRaises(haversack.NoPlanError) as caught:
            haversack.advise(**SMALL, memory_budget="1KB")
        self.assertNotIn("--", str(caught.exception))
        with self.assertRaisesRegex(haversack.InputError, "rtx-3090"):
            haversack.validate("rtx-309")

    def test_a_run_has_attributes_and_a_line(self):
        run = haversack.simulate(**SMALL, explain=True)
        self.assertEqual((run.iteration_time_s, run.peak.node), (run["iteration_time_s"], run["peak"]["node"]))
        self.assertRegex(repr(run), r"^<Run lenet5, batch 8, on galaxy-s10, original: .* s, .* J, peak .* MB>$")
        self.assertIn("<th>energy_j</th>", run._repr_html_())
        with self.assertRaisesRegex(AttributeError, "iteration_time_s"):
            run.iteration_time
        # Without a policy nothing waits: the operators of all modules are the iteration.
        self.assertIn("conv2", [module["module"] for module in run.modules])
        self.assertAlmostEqual(sum(module["time_s"] for module in run.modules), run.iteration_time_s, places=9)

    def test_signatures_show_every_key(self):
        shown = inspect.signature(haversack.simulate).parameters
        self.assertLessEqual(set(haversack.types.RunKeys.__annotations__), set(shown))
        self.assertIn("memory_budget", inspect.signature(haversack.advise).parameters)
        self.assertEqual(dir(haversack), sorted(haversack.__all__))


class Simulate(unittest.TestCase):
    def test_a_run_is_a_dictionary_of_the_declared_keys(self):
        run = haversack.simulate(**SMALL, explain=True, least_memory=True)
        declared = set(haversack.types.Simulation.__annotations__)
        # Only a phone in use and a killed run have these keys.
        self.assertEqual(declared - set(run), {"phone", "reason"})
        self.assertEqual(set(run) - declared, set())
        self.assertEqual(set(run["breakdown"]), set(haversack.types.Breakdown.__annotations__))
        self.assertEqual(set(run["bound_by"]), set(haversack.types.BoundBy.__annotations__))
        self.assertAlmostEqual(sum(run["breakdown"].values()), run["iteration_time_s"], places=9)
        self.assertLessEqual(run["least_memory_bytes"], run["peak_memory_bytes"])
        self.assertEqual((run["status"], run["scenario"]["batch"], run["scenario"]["policy"]), ("ok", 8, "original"))

    def test_a_file_a_dictionary_and_keywords_say_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "scenario.toml"
            file.write_text('device = "galaxy-s10"\nmodel = "lenet5"\nbatch = 16\n')
            one = haversack.simulate(file, batch=8)
            self.assertEqual(one, haversack.simulate(str(file), batch=8))
        self.assertEqual(one, haversack.simulate(SMALL))
        self.assertEqual(one, haversack.simulate({**SMALL, "batch": 32}, batch=8))
        self.assertEqual(one, haversack.simulate(**SMALL, policy="original", memory_budget=None))

    def test_parameters_of_a_policy_are_a_dictionary(self):
        run = haversack.simulate(**SMALL, policy="sage", memory_budget="80%", set={"order": "half"})
        self.assertEqual(run["scenario"]["set"], {"order": "half"})

    def test_what_is_wrong_is_said_in_the_words_of_the_command_line(self):
        with self.assertRaisesRegex(haversack.InputError, "<keywords>:3: batsch: unknown key; did you mean 'batch'"):
            haversack.simulate(device="galaxy-s10", model="lenet5", batsch=8)
        with self.assertRaisesRegex(haversack.InputError, "galaxy-s11.*did you mean `galaxy-s10`"):
            haversack.simulate(device="galaxy-s11", model="lenet5")
        with self.assertRaisesRegex(haversack.InputError, "batch: expected text, a path, .* found a object"):
            haversack.simulate(device="galaxy-s10", model="lenet5", batch=object())
        with self.assertRaisesRegex(ValueError, "nowhere.toml: cannot be read"):
            haversack.simulate("nowhere.toml")
        with self.assertRaisesRegex(haversack.InputError, "did you mean 'sage'"):
            haversack.simulate(**SMALL, policy="saga")

    def test_no_plan_comes_with_the_least_budget_that_works(self):
        budget = {**SMALL, "policy": "sage"}
        with self.assertRaisesRegex(haversack.NoPlanError, "the least memory budget that works is") as caught:
            haversack.simulate(**budget, memory_budget="1KB")
        least = caught.exception.least_memory_bytes
        run = haversack.simulate(**budget, memory_budget=least)
        self.assertLessEqual(run["peak_memory_bytes"], least)

    def test_a_missed_time_budget_keeps_the_result(self):
        with self.assertRaisesRegex(haversack.NoPlanError, "more than the time budget of") as caught:
            haversack.simulate(**SMALL, time_budget="1us")
        self.assertGreater(caught.exception.result["iteration_time_s"], 1e-6)

    def test_the_declared_keys_are_those_that_there_are(self):
        with self.assertRaises(haversack.InputError) as caught:
            haversack.simulate(nothing=1)
        valid = re.search("valid keys are (.*)", str(caught.exception)).group(1).split(", ")
        self.assertEqual(set(haversack.types.ScenarioKeys.__annotations__), set(valid))
        with self.assertRaises(haversack.InputError) as caught:
            haversack.sweep(nothing=1)
        valid = re.search("valid keys are (.*)", str(caught.exception)).group(1).split(", ")
        self.assertEqual(set(haversack.types.SweepKeys.__annotations__), set(valid))
        with self.assertRaises(haversack.InputError) as caught:
            haversack.federate(nothing=1)
        valid = re.search("valid keys: (.*)", str(caught.exception)).group(1).split(", ")
        self.assertEqual(set(haversack.types.FederationKeys.__annotations__), set(valid))

    def test_others_go_on_while_it_simulates(self):
        counted, ended = [], threading.Event()

        def count():
            while not ended.is_set():
                counted.append(0)
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        before, begun = len(counted), time.monotonic()
        haversack.simulate(device="galaxy-s10", model="resnet50", policy="sage", memory_budget="40%", least_memory=True)
        during, took = len(counted) - before, time.monotonic() - begun
        ended.set()
        thread.join()
        # A sleep of a millisecond takes a little more than one; blocked by the call, the thread would not count at all.
        self.assertGreater(during, took * 100)

    def test_a_fault_within_is_an_exception(self):
        if not hasattr(haversack._native, "fault"):
            self.skipTest("built without debug assertions")
        with self.assertRaisesRegex(haversack.RunError, "a fault of haversack itself: on purpose"):
            haversack._native.fault()
        self.assertEqual(haversack.simulate(**SMALL)["status"], "ok")


class Policies(unittest.TestCase):
    def test_a_policy_in_python_keeps_to_a_budget(self):
        plain = haversack.simulate(**DEEP)
        run = haversack.simulate(**DEEP, policy=FarthestFirst, memory_budget="70%")
        self.assertLess(run["peak_memory_bytes"], plain["peak_memory_bytes"])
        self.assertGreater(run["recompute_share"], 0)
        self.assertEqual(run["scenario"]["policy"], "FarthestFirst")
        self.assertEqual(run, haversack.simulate(**DEEP, policy=FarthestFirst(), memory_budget="70%"))

    def test_each_hook_is_asked(self):
        seen = []

        class Curious(haversack.Policy):
            name = "curious"

            def prepare(self, setting):
                seen.append(("prepare", setting["batch"], len(setting["nodes"]) > 10, len(setting["saved"]) > 3))
                return 4

            def budget_changed(self, budgets):
                seen.append(("budget_changed", budgets["memory_bytes"]))

            def begin_iteration(self, micro_batch):
                seen.append(("begin_iteration", micro_batch))

            def hold(self, tensor, memory):
                assert memory.tensor(tensor.id).name == tensor.name and tensor.form == "whole", tensor
                assert memory.phase == "forward" and memory.budget_bytes is None and len(memory) > tensor.id
                return "rematerialise" if any(tensor.id == other.id for other in memory.candidates) else "keep"

            def end_iteration(self, measured):
                seen.append(("end_iteration", measured["micro_batches"]))

        run = haversack.simulate(**DEEP, policy=Curious(), iterations=2)
        iteration = [("begin_iteration", 4), ("end_iteration", [4, 4])]
        self.assertEqual(seen, [("prepare", 8, True, True), ("budget_changed", None), *iteration, *iteration])
        self.assertGreater(run["recompute_share"], 0)
        self.assertEqual((run["micro_batches"], run["scenario"]["policy"]), ([4, 4], "curious"))

    def test_what_a_hook_raises_comes_out_with_its_traceback(self):
        class Broken(haversack.Policy):
            def relieve(self, wanted, memory):
                return self.table[wanted]

        for hook in ("prepare", "begin_iteration", "hold", "budget_changed", "end_iteration"):

            def raises(self, *question):
                raise ZeroDivisionError("in a hook")

            policy = type("Raises", (haversack.Policy,), {hook: raises})
            with self.assertRaisesRegex(ZeroDivisionError, "in a hook"):
                haversack.simulate(**DEEP, policy=policy())
        told = ""
        try:
            haversack.simulate(**DEEP, policy=Broken(), memory_budget="70%")
        except AttributeError:
            told = traceback.format_exc()
        self.assertIn("return self.table[wanted]", told)
        # The failed run leaves nothing behind.
        self.assertEqual(haversack.simulate(**DEEP)["status"], "ok")

    def test_answers_that_are_none_say_what_was_expected(self):
        class Mumbles(haversack.Policy):
            def hold(self, tensor, memory):
                return "quantise"

        with self.assertRaisesRegex(TypeError, 'hold: expected "keep", .* found quantise'):
            haversack.simulate(**DEEP, policy=Mumbles())

        class Greedy(haversack.Policy):
            def relieve(self, wanted, memory):
                return [("swap", 0)]

        with self.assertRaisesRegex(haversack.RunError, "the policy tried to .* which is not possible"):
            haversack.simulate(**DEEP, policy=Greedy(), memory_budget="70%")

    def test_a_hook_that_is_misspelt_is_told(self):
        class Misspelt(haversack.Policy):
            def relive(self, wanted, memory):
                return []

        with self.assertRaisesRegex(haversack.InputError, "Misspelt.relive is not a hook; did you mean 'relieve'"):
            haversack.simulate(**DEEP, policy=Misspelt())

    def test_a_sweep_runs_one_as_simulate_does(self):
        budgets = ["60%", "80%"]
        rows = haversack.sweep(**DEEP, policy=["dtr", FarthestFirst()], memory_budget=budgets).rows()
        own = [row for row in rows if row["policy"] == "FarthestFirst"]
        self.assertEqual([row["policy"] for row in rows], ["dtr", "dtr", "FarthestFirst", "FarthestFirst"])
        for row, budget in zip(own, budgets):
            alone = haversack.simulate(**DEEP, policy=FarthestFirst, memory_budget=budget)
            self.assertEqual(row["status"], "ok")
            self.assertEqual(row.iteration_time_s, alone.iteration_time_s)

    def test_each_run_of_a_sweep_has_its_own_object(self):
        class Counts(haversack.Policy):
            runs = 0

            def prepare(self, setting):
                self.runs += 1
                if self.runs > 1:
                    raise AssertionError("a second run of one object")

        rows = haversack.sweep(**DEEP, policy=Counts(), seed=[1, 2, 3, 4]).rows()
        self.assertEqual([row["status"] for row in rows], ["ok"] * 4)

    def test_a_sweep_ends_with_the_exception_of_a_hook(self):
        class Raises(haversack.Policy):
            def prepare(self, setting):
                raise ZeroDivisionError("in a hook")

        with self.assertRaisesRegex(ZeroDivisionError, "in a hook"):
            haversack.sweep(**DEEP, policy=["dtr", Raises], memory_budget=["60%", "100%"])

    def test_what_is_no_policy_is_refused(self):
        for call in (haversack.simulate, haversack.sweep):
            with self.assertRaisesRegex(haversack.InputError, "policy: expected a name, or an object .* found a int"):
                call(**DEEP, policy=3)
        with self.assertRaisesRegex(haversack.InputError, "found a int"):
            haversack.sweep(**DEEP, policy=["dtr", 3])

    def test_a_sweep_refuses_a_name_that_is_taken_and_to_resume(self):
        class Sage(FarthestFirst):
            name = "sage"

        for taken in ([Sage], ["dtr", FarthestFirst, FarthestFirst()]):
            with self.assertRaisesRegex(haversack.InputError, "is already the name of a policy"):
                haversack.sweep(**DEEP, policy=taken)
        with self.assertRaisesRegex(haversack.InputError, "resume: a policy written in Python may have changed"):
            haversack.sweep(**DEEP, policy=FarthestFirst, out="unused", resume=True)

    def test_other_commands_refuse_one_and_say_what_takes_it(self):
        for policy in (FarthestFirst(), FarthestFirst, ["dtr", FarthestFirst()]):
            with self.assertRaisesRegex(haversack.InputError, r"is written in Python, and only simulate\(...\) and sweep"):
                haversack.train(model="lenet5", policy=policy)

    def test_one_that_gives_nothing_is_told_the_least_budget(self):
        class Idle(haversack.Policy):
            pass

        with self.assertRaises(haversack.NoPlanError) as caught:
            haversack.simulate(**DEEP, policy=Idle, memory_budget="50%")
        self.assertGreater(caught.exception.least_memory_bytes, 0)


class Folders(unittest.TestCase):
    GRID = {**SMALL, "policy": ["original", "sage"], "memory_budget": {"from": "60%", "to": "100%", "steps": 3}}

    def setUp(self):
        own = tempfile.TemporaryDirectory()
        self.addCleanup(own.cleanup)
        self.folder = Path(own.name)

    def test_a_sweep_is_a_folder(self):
        runs = haversack.sweep(self.GRID)
        self.assertEqual(runs.run["runs"], 6)
        self.assertIn("6 runs", runs.report)
        self.assertTrue(runs.path.is_file())
        self.assertTrue(any("<svg" in picture._repr_svg_() for picture in runs.pictures))
        path = runs.folder
        del runs
        self.assertFalse(path.exists(), "a temporary folder goes with its object")

    @unittest.skipUnless(importlib.util.find_spec("polars"), "polars is not installed")
    def test_tables_are_frames(self):
        frame = haversack.sweep(self.GRID).frame()
        self.assertEqual(frame.height, 6)
        self.assertEqual(set(frame["status"]), {"ok", "infeasible"})
        same = frame.filter(policy="sage", status="ok").row(0, named=True)
        run = haversack.simulate(**SMALL, memory_budget=same["memory_budget"], policy="sage")
        self.assertEqual(same["iteration_time_s"], run["iteration_time_s"])

    def test_rows_need_no_polars(self):
        rows = haversack.sweep(self.GRID).rows()
        self.assertEqual(len(rows), 6)
        sage = next(row for row in rows if row.policy == "sage" and row.status == "ok")
        run = haversack.simulate(**SMALL, memory_budget=sage.memory_budget, policy="sage")
        self.assertEqual((sage.iteration_time_s, sage.batch, sage.exceeds_ram), (run.iteration_time_s, 8, False))
        self.assertIsNone(sage.trace)
        short = rows.select("policy", "energy_j")
        self.assertEqual([list(row) for row in short], [["policy", "energy_j"]] * 6)
        self.assertIn("<th>energy_j</th>", short._repr_html_())
        with self.assertRaisesRegex(haversack.InputError, "select: no column 'enery_j'; did you mean 'energy_j'"):
            rows.select("enery_j")

    def test_without_polars_the_table_s_path_is_said(self):
        runs = haversack.sweep(self.GRID)
        with mock.patch.dict(sys.modules, {"polars": None}), self.assertRaisesRegex(ImportError, "results.parquet"):
            runs.frame()

    def test_a_file_and_keywords_over_it(self):
        file = self.folder / "sweep.toml"
        file.write_text('device = "galaxy-s10"\nmodel = "lenet5"\nbatch = [8, 16]\npolicy = ["original", "sage"]\n')
        one = haversack.sweep(file, batch=8, out=self.folder / "one")
        other = haversack.sweep(device="galaxy-s10", model="lenet5", batch=8, policy=["original", "sage"])
        self.assertEqual(one.path.read_bytes(), other.path.read_bytes())
        with self.assertRaisesRegex(haversack.InputError, r"sweep.toml:3: batch: .*found the number 0"):
            file.write_text(file.read_text().replace("[8, 16]", "0"))
            haversack.sweep(file)
        with self.assertRaisesRegex(haversack.InputError, "holds the results of 'sweep' with another specification"):
            haversack.sweep(self.GRID, out=self.folder / "one")
        with self.assertRaisesRegex(haversack.InputError, "shard: expected I/N .* found '3/2'"):
            haversack.sweep(self.GRID, shard="3/2")
        with self.assertRaisesRegex(haversack.InputError, "resume: expected the folder"):
            haversack.sweep(self.GRID, resume=True)

    def test_ctrl_c_is_an_exception_and_it_goes_on(self):
        many = {**SMALL, "policy": ["sage", "dga"], "memory_budget": {"from": "60%", "to": "100%", "steps": 300}}
        whole, out = haversack.sweep(many, out=self.folder / "whole"), self.folder / "out"

        def press():
            part = out / "rows.part"
            while not (part.exists() and part.stat().st_size > 4000):
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=press).start()
        with self.assertRaisesRegex(KeyboardInterrupt, "stopped after .* of 600 runs; .*resume=True"):
            haversack.sweep(many, out=out, jobs=1)
        again = haversack.sweep(many, out=out, resume=True)
        self.assertEqual(again.path.read_bytes(), whole.path.read_bytes())

    def test_ctrl_c_does_not_wait_for_a_run(self):
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                haversack.simulate(device="galaxy-s10", model="resnet50", policy="dtr", memory_budget="40%")

    def test_federations_trainings_and_reproductions(self):
        phones = {"population": 3, "selector": "random", "cohort": 1, "rounds": 1, "network": "lenet5", "mode": "timing"}
        rounds = haversack.federate(phones, seed=[1, 2], memory_mix={8: 1.0})
        self.assertEqual(rounds.run["runs"], 2)
        self.assertTrue(rounds.path.is_file())
        learned = haversack.train(
            data="glyphs", device="jetson-agx-xavier", model="logistic", batch=64, epochs=1, policy="original"
        )
        self.assertIn("epochs.parquet", learned.run["outputs"])
        with self.assertRaisesRegex(haversack.InputError, "epoch"):
            haversack.train(data="glyphs", device="jetson-agx-xavier", model="logistic", epoch=1)
        page = haversack.reproduce("sage/section5", out=self.folder / "page")
        self.assertIn("section5", page.page.read_text())
        self.assertTrue(page.path.is_file())
        with self.assertRaisesRegex(haversack.InputError, "nothing is called `saga`"):
            haversack.reproduce("saga")


class FromTorch(unittest.TestCase):
    def stub(self, export):
        torch = types.ModuleType("torch")
        torch.onnx = types.SimpleNamespace(export=export, TrainingMode=types.SimpleNamespace(TRAINING="training"))
        torch.nn = types.SimpleNamespace(Parameter=types.SimpleNamespace)
        return mock.patch.dict(sys.modules, {"torch": torch})

    def module(self):
        module = mock.Mock(spec=["train", "training", "named_buffers", "state_dict"], training=False)
        module.named_buffers.return_value = []
        module.state_dict.return_value = {}
        return module

    def test_what_is_frozen_and_what_is_no_parameter_is_in_the_file(self):
        def export(module, samples, path, **options):
            Path(path).write_bytes((EXAMPLES / "network.onnx").read_bytes())

        def states(trains):
            module = self.module()
            names = ["w1", "b1", "w2", "b2", "w3", "b3"]
            module.state_dict.return_value = {
                name: types.SimpleNamespace(requires_grad=name in trains) for name in names
            }
            with self.stub(export):
                network = haversack.from_torch(module, types.SimpleNamespace(shape=(8, 3, 32, 32)))
            return haversack.simulate(device="pixel-6", model=network, batch=8)

        whole, head = states(["w1", "w2", "w3"]), states(["w3"])
        self.assertLess(head["peak_memory_bytes"], whole["peak_memory_bytes"])
        self.assertLess(head["backward_s"], whole["backward_s"])

    def test_what_pytorch_exports_is_simulated(self):
        asked = {}

        def export(module, samples, path, *, dynamo=True, **options):
            asked.update(options, dynamo=dynamo, samples=samples)
            Path(path).write_bytes((EXAMPLES / "network.onnx").read_bytes())

        sample, module = types.SimpleNamespace(shape=(8, 3, 32, 32)), self.module()
        with self.stub(export):
            network = haversack.from_torch(module, sample, name="small")
        self.assertEqual((asked["dynamo"], asked["training"], asked["samples"]), (False, "training", (sample,)))
        self.assertEqual(asked["dynamic_axes"], {"input0": {0: "batch"}})
        self.assertEqual([call.args for call in module.train.call_args_list], [(), (False,)])
        self.assertEqual(network.batch, 8)
        run = haversack.simulate(device="pixel-6", model=network, batch=network.batch)
        same = haversack.simulate(device="pixel-6", model=EXAMPLES / "network.onnx", batch=8)
        self.assertEqual(run["iteration_time_s"], same["iteration_time_s"])
        path = network.path
        del network
        self.assertFalse(path.exists())

    def test_a_module_that_gives_objects_is_exported_by_its_scores(self):
        class Ids:
            shape = (1, 16)

            def __len__(self):
                return 1

        class Module:
            training, config = False, types.SimpleNamespace(use_cache=True, to_dict=dict)
            named_buffers, state_dict = (lambda self: []), (lambda self, keep_vars: {"w1": weight, "tied": weight})

            def train(self, mode=True):
                self.training = mode

            def forward(self, input_ids=None, labels=None):
                return types.SimpleNamespace(loss=None, logits=f"scores of {input_ids}")

        def export(module, positions, *, kwargs, **options):
            asked.update(options, given=module.forward(**kwargs), cached=module.config.use_cache, positions=positions)
            write = lambda path: Path(path).write_bytes((EXAMPLES / "network.onnx").read_bytes())  # noqa: E731
            return types.SimpleNamespace(model=types.SimpleNamespace(graph=types.SimpleNamespace(initializers={"w1": 0})), save=write)

        asked, weight, module = {}, types.SimpleNamespace(requires_grad=True), Module()
        for sample in (Ids(), {"input_ids": Ids(), "labels": Ids()}):
            onnxscript = types.ModuleType("onnxscript")
            onnxscript.optimizer = types.SimpleNamespace(optimize=lambda model, input_size_limit: model)
            with self.stub(export), mock.patch.dict(sys.modules, {"onnxscript": onnxscript}):
                sys.modules["torch"].export = types.SimpleNamespace(Dim=str)
                # A batch of one is doubled, since its size would be taken for a constant.
                sys.modules["torch"].cat = lambda parts: f"{len(parts)} samples"
                network = haversack.from_torch(module, sample)
            self.assertEqual((asked["given"], asked["cached"], asked["dynamo"]), ("scores of 2 samples", False, True))
            self.assertEqual((asked["dynamic_shapes"], network.batch), ({"input_ids": {0: "batch"}}, 1))
            self.assertTrue(module.config.use_cache)
            self.assertNotIn("forward", vars(module))
            # Of the two names of a weight, that of the file.
            self.assertIn(b"w1: PARAMETER target='w1'", network.path.read_bytes())
            self.assertNotIn(b"tied", network.path.read_bytes())

    def test_an_operator_that_has_no_form_is_named_with_its_line(self):
        def export(module, samples, path, **options):
            raise RuntimeError("Exporting the operator 'aten::fft_fft' to ONNX opset version 17 is not supported.")

        with self.stub(export), self.assertRaisesRegex(
            haversack.InputError, r"operator aten::fft_fft has no form in ONNX \(package.py, line \d+: `raise Run.*; to go on, write it"
        ):
            haversack.from_torch(self.module(), None)

    def test_what_cannot_be_exported_says_why(self):
        def export(module, samples, path, **options):
            raise RuntimeError("no such operator")

        with self.stub(export), self.assertRaisesRegex(haversack.InputError, "cannot export Mock: no such operator"):
            haversack.from_torch(self.module(), None)
        with mock.patch.dict(sys.modules, {"torch": None}), self.assertRaisesRegex(haversack.InputError, "pip install torch"):
            haversack.from_torch(self.module(), None)


class CommandLine(unittest.TestCase):
    """`python -m haversack`; the command that is installed calls the same function."""

    LINE = ["simulate", "--device", "galaxy-s10", "--model", "lenet5", "--batch", "8", "--format", "json"]

    def start(self, *words, **options):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([sys.executable, "-m", "haversack", *words], text=True, **{**streams, **options})

    def call(self, *words):
        process = self.start(*words)
        out, said = process.communicate()
        return process.returncode, out, said

    def test_it_prints_the_answer_of_the_call(self):
        code, out, said = self.call(*self.LINE)
        run = haversack.simulate(**SMALL)
        notes = run.pop("notes")
        self.assertEqual((code, json.loads(out)), (0, run))
        self.assertEqual(said, "".join(f"note: {note}\n" for note in notes))

    def test_exit_codes_are_those_of_the_program(self):
        code, out, said = self.call("--version")
        self.assertEqual((code, out, said), (0, f"haversack {haversack.__version__}\n", ""))
        code, out, said = self.call("simulate", "--device", "galaxy-s11")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("did you mean `galaxy-s10`", said)
        code, out, said = self.call("simulat")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("Usage: haversack", said)
        code, out, said = self.call(*self.LINE, "--policy", "sage", "--memory-budget", "1KB")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("the least memory budget that works is", said)

    def test_a_closed_standard_output_is_no_error(self):
        reads, writes = os.pipe()
        os.close(reads)
        process = self.start("list", "models", stdout=writes)
        os.close(writes)
        self.assertEqual((process.wait(), process.stderr.read()), (0, ""))
        process.stderr.close()

    def test_ctrl_c_ends_a_sweep_which_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            file, part = Path(folder) / "sweep.toml", Path(folder) / "out" / "rows.part"
            file.write_text(
                'device = "galaxy-s10"\nmodel = "lenet5"\npolicy = ["sage", "dga"]\n'
                'memory_budget = { from = "60%", to = "100%", steps = 300 }\n'
            )
            process = self.start("sweep", "sweep.toml", "--out", "out", "--jobs", "1", cwd=folder)
            while process.poll() is None and not (part.exists() and part.stat().st_size > 4000):
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            out, said = process.communicate()
            self.assertEqual((process.returncode, out), (130, ""))
            self.assertRegex(said, "error: stopped after .* of 600 runs; `haversack sweep sweep.toml --out out --resume` continues\n$")
            self.assertNotIn("Traceback", said)


class Stubs(unittest.TestCase):
    def test_a_compiled_part_that_does_not_load_is_said_in_words(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(Path(haversack.__file__).parent, Path(folder) / "haversack", ignore=lambda _, names: [
                name for name in names if name.startswith("_native")
            ])
            ended = subprocess.run(
                [sys.executable, "-c", "import haversack"], cwd=folder, env={}, capture_output=True, text=True
            )
        self.assertRegex(ended.stderr, r"ImportError: the compiled part of haversack does not load on this machine \(.+\)")
        self.assertIn("python3 -m pip install ./python", ended.stderr)

    def test_the_stub_names_what_there_is(self):
        stub = (Path(haversack.__file__).parent / "_native.pyi").read_text()
        native = haversack._native
        for name in ("Tensor", "Memory"):
            own = {own for own in vars(getattr(native, name)) if not own.startswith("_")}
            declared = set(re.findall(r"    def (\w+)", stub.split(f"class {name}:")[1].split("\nclass ")[0])) - {"__len__"}
            self.assertEqual(own, declared)
        functions = {name for name in dir(native) if not name.startswith("_") and name.islower()} - {"fault"}
        self.assertEqual(functions, set(re.findall(r"^def (\w+)", stub, re.MULTILINE)))
        self.assertTrue((Path(haversack.__file__).parent / "py.typed").exists())

    def test_nothing_is_imported_before_it_is_used(self):
        asks = "import sys, haversack; sys.exit(bool({'polars', 'torch'} & set(sys.modules)))"
        self.assertEqual(subprocess.run([sys.executable, "-c", asks]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
