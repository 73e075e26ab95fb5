"""Runs a sweep, federations or a reproduction by shards on HyperQueue, and merges them last.

    pip install hyperqueue
    python3 examples/engines/on_hyperqueue.py --shards 4 --out whole -- sweep examples/sweep.toml
    python3 examples/engines/on_hyperqueue.py --minutes 10 --plan --out whole -- sweep examples/thousand.toml
    python3 examples/engines/on_hyperqueue.py --shards 2 --out whole -- federate examples/selectors.toml
    python3 examples/engines/on_hyperqueue.py --shards 8 --out whole -- reproduce --full

Without --server a cluster of this machine is started, of two workers of one core each. With --server DIR the shards go to
the HyperQueue server of that folder, whose workers must see the same files (`hq server start --server-dir DIR`).

With --minutes the script chooses the number of shards so that none takes longer: it runs and times a 2% sample of the sweep here.
--plan stops there.

Each shard is `haversack COMMAND --shard I/N --out WHOLE.shards/I --resume`: one that was killed continues where it stopped. A
failed shard is submitted again, three times at most, except for wrong input (exit code 2). The last task is `haversack merge`:
its folder has the same bytes as one process would have written. To continue after an interruption, run the same command again.
"""

import argparse
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hyperqueue import Job, LocalCluster
from hyperqueue.client import Client
from hyperqueue.cluster import WorkerConfig

#: How often a shard is submitted.
ATTEMPTS = 3
#: How many parts of a thousand are timed for --minutes; they are drawn at random, since slow runs come at regular intervals.
TIMED = 20
#: How much longer than the slowest of them another part may take.
MARGIN = 1.5


def number_of_shards(arguments):
    """The number of shards for which none takes longer than --minutes, if runs within a thousandth of the sweep are similar."""
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for part in random.Random(0).sample(range(1, 1001), TIMED):
            begun = time.monotonic()
            own = ["--shard", f"{part}/1000", "--out", f"{folder}/{part}", "--jobs", str(arguments.jobs)]
            try:
                timed = subprocess.run([arguments.haversack, *arguments.command, *own], stdout=subprocess.DEVNULL)
            except OSError as error:
                sys.exit(f"{arguments.haversack}: {error.strerror}: --haversack names the program")
            if timed.returncode:
                sys.exit(timed.returncode)
            slowest = max(slowest, time.monotonic() - begun)
    shards = max(1, math.ceil(slowest * 1000 * MARGIN / (60 * arguments.minutes)))
    print(f"a thousandth takes up to {slowest:.2f} s; shards of at most {arguments.minutes:g} minutes: {shards}")
    return shards


def submitted(client, arguments, pending, said):
    """Submits the pending shards and then the merge; returns the errors by shard, and whether the merge is done."""
    shards = {part: folder(arguments.out, part) for part in range(1, arguments.shards + 1)}
    job = Job(max_fails=None, default_workdir=Path.cwd(), name=arguments.out.name)
    tasks = {}
    for part in pending:
        own = [*arguments.command, "--out", str(shards[part]), "--shard", f"{part}/{arguments.shards}", "--resume"]
        own += ["--jobs", str(arguments.jobs)]
        log = {"stdout": said / f"{part}.stdout", "stderr": said / f"{part}.stderr"}
        tasks[part] = job.program([arguments.haversack, *own], name=f"shard {part}", **log)
    merge = [arguments.haversack, "merge", *map(str, shards.values()), "--out", str(arguments.out)]
    log = {"stdout": said / "merge.stdout", "stderr": said / "merge.stderr"}
    last = job.program(merge, name="merge", deps=list(tasks.values()), **log)
    work = client.submit(job)
    if client.wait_for_jobs([work], raise_on_error=False):
        return {}, True
    failed = client.get_failed_tasks(work)
    shard_of = {task.task_id: part for part, task in tasks.items()}
    if last.task_id in failed:
        sys.exit(f"merge: {failed[last.task_id].error}\n{(said / 'merge.stderr').read_text()}")
    return {shard_of[task]: failure.error for task, failure in failed.items()}, False


def folder(out, part):
    return out.with_name(f"{out.name}.shards") / str(part)


def run(client, arguments):
    said = out = arguments.out.with_name(f"{arguments.out.name}.shards")
    out.mkdir(parents=True, exist_ok=True)
    pending = list(range(1, arguments.shards + 1))
    for attempt in range(1, ATTEMPTS + 1):
        begun = time.monotonic()
        failed, merged = submitted(client, arguments, pending, said)
        print(f"attempt {attempt}: {len(pending) - len(failed)} of {len(pending)} shards in {time.monotonic() - begun:.1f} s")
        if merged:
            print((said / "merge.stdout").read_text(), end="")
            return
        for part, error in sorted(failed.items()):
            words = (said / f"{part}.stderr").read_text().strip()
            print(f"shard {part} failed: {error}; {words or 'it said nothing'}", file=sys.stderr)
        if any("exit code 2" in error for error in failed.values()):
            sys.exit("the input is wrong: mend it, and run this again")
        pending = sorted(failed)
    sys.exit(f"shards {pending} failed {ATTEMPTS} times; what they said is in {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_mutually_exclusive_group(required=True)
    parts.add_argument("--shards", type=int, help="how many parts")
    parts.add_argument("--minutes", type=float, help="the most a part of a sweep may take")
    parser.add_argument("--plan", action="store_true", help="says how many parts there would be, and runs none")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the whole")
    parser.add_argument("--jobs", type=int, default=1, help="threads of a shard")
    parser.add_argument("--workers", type=int, default=2, help="workers of the cluster of this machine")
    parser.add_argument("--server", type=Path, help="the folder of a HyperQueue server that runs already")
    parser.add_argument("--haversack", default="haversack", help="the program")
    parser.add_argument("command", nargs="+", help="sweep SPEC.toml, federate SPEC.toml or reproduce SELECTORS, after --")
    arguments = parser.parse_args()
    arguments.out = arguments.out.resolve()
    if arguments.minutes is not None:
        if arguments.command[0] != "sweep" or not arguments.minutes > 0:
            parser.error("--minutes takes minutes above zero, and a sweep: other commands are given --shards")
        arguments.shards = number_of_shards(arguments)
    if arguments.plan:
        return print(f"{arguments.shards} shards, then a merge into {arguments.out}")
    if arguments.server:
        return run(Client(arguments.server), arguments)
    with LocalCluster() as cluster:
        for _ in range(arguments.workers):
            cluster.start_worker(WorkerConfig(cores=arguments.jobs))
        return run(cluster.client(), arguments)


if __name__ == "__main__":
    main()
