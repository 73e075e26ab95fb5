//! Shards as separate processes: one is killed in the middle and run again, and all are merged to the bytes of one run.
#![cfg(unix)]

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::docs::markdown::root;
use crate::reproduce::tree;
use crate::support::{call_in, command, refusal, stderr, stdout};
use crate::sweep::folder;

/// Starts a shard, which writes to the folder of its number and resumes its earlier run.
fn start(within: &Path, line: &str, shard: &str, number: &str) -> Child {
    let line = format!("{line} --shard {shard} --out {number} --resume --jobs 1");
    let mut child = command(within, &line.split(' ').collect::<Vec<_>>());
    child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs two shards in parallel, kills the second once `is_under_way`, checks that it cannot be merged,
/// runs it again and merges.
fn killed_and_merged(within: &Path, line: &str, is_under_way: impl Fn(&Path) -> bool) {
    let mut first = start(within, line, "1/2", "first");
    let mut second = start(within, line, "2/2", "second");
    let begun = Instant::now();
    while !is_under_way(&within.join("second")) && second.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the second shard never began");
        std::thread::yield_now();
    }
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(first.wait().unwrap().success());
    let merge = ["merge", "first", "second", "--out", "whole"];
    let message = refusal(&call_in(within, &merge), 2);
    assert!(
        message.contains("second: this shard is not finished; its command with --resume continues it"),
        "{message}"
    );
    assert!(!within.join("whole").exists());
    assert!(start(within, line, "2/2", "second").wait().unwrap().success());
    let merged = call_in(within, &merge);
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    let whole = format!("{line} --out one");
    let one = call_in(within, &whole.split(' ').collect::<Vec<_>>());
    assert_eq!(one.status.code(), Some(0), "{}", stderr(&one));
    assert_eq!(tree(&within.join("one")), tree(&within.join("whole")));
}

#[test]
fn a_sweep_s_shard_is_killed_and_run_again() {
    let folder = folder();
    let under_way = |shard: &Path| fs::read(shard.join("rows.part")).is_ok_and(|bytes| bytes.len() > 4000);
    killed_and_merged(folder.path(), "sweep spec.toml", under_way);
    // For a shard of another specification, the message names the difference.
    let text = fs::read_to_string(folder.path().join("spec.toml")).unwrap();
    fs::write(folder.path().join("spec.toml"), text.replace("[8]", "[16]")).unwrap();
    assert!(start(folder.path(), "sweep spec.toml", "2/2", "other").wait().unwrap().success());
    let message = refusal(&call_in(folder.path(), &["merge", "first", "other", "--out", "m"]), 2);
    let expected =
        "first and other are of different sweeps or versions: `batch` of the specification differs; expected";
    assert!(message.contains(expected) && message.contains("run those that differ again"), "{message}");
}

/// Files of programs and modules that replace an engine; the template finds them first.
fn stand_in(within: &Path, name: &str, text: &str) {
    let path = within.join("engine").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a template of `examples/engines` on a small sweep of two shards; returns its output.
fn run_template(within: &Path, words: &[&str]) -> Option<Output> {
    let engines = root().join("examples/engines");
    let mut template = Command::new(words[0]);
    template.arg(engines.join(words[1])).args(&words[2..]).current_dir(within).stdin(Stdio::null());
    let path = env::join_paths([within.join("engine")].into_iter().chain(env::split_paths(&env::var("PATH").unwrap())));
    template.env("PATH", path.unwrap()).env("PYTHONPATH", within.join("engine"));
    template.env("HAVERSACK", env!("CARGO_BIN_EXE_haversack")).output().ok()
}

/// A small sweep, and its folder as a single process writes it.
fn small() -> TempDir {
    let folder = folder();
    let text = "device = \"galaxy-s10\"\nmodel = \"lenet5\"\npolicy = [\"original\", \"sage\"]\nbatch = [8, 16, 32]\n";
    fs::write(folder.path().join("small.toml"), text).unwrap();
    assert!(call_in(folder.path(), &["sweep", "small.toml", "--out", "one"]).status.success());
    folder
}

/// As much of `sbatch` as the template needs: tasks run immediately, one after the other.
const SBATCH: &str = r#"#!/bin/sh
array=""
while [ "${1#--}" != "$1" ]; do
    case $1 in --array=*) array=${1#--array=1-} ;; esac
    shift
done
export SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=7
if [ -n "$array" ]; then
    i=0
    while [ $i -lt "$array" ]; do
        i=$((i + 1))
        SLURM_ARRAY_TASK_ID=$i sh "$@" >>said 2>&1 || exit 1
    done
else
    sh "$@" >>said 2>&1 || exit 1
fi
echo 7
"#;

#[test]
fn the_template_for_slurm_merges_its_shards() {
    let folder = small();
    stand_in(folder.path(), "sbatch", SBATCH);
    let output = run_template(folder.path(), &["sh", "on_slurm.sh", "2", "whole", "sweep", "small.toml"]).unwrap();
    let said = fs::read_to_string(folder.path().join("said")).unwrap_or_default();
    assert!(output.status.success(), "{}{said}", stderr(&output));
    assert_eq!(stdout(&output), "array 7 of 2 shards, merge 7: squeue -j 7,7\n");
    assert_eq!(tree(&folder.path().join("one")), tree(&folder.path().join("whole")));
}

/// As much of HyperQueue as the template needs. A task that it should kill fails once.
const HYPERQUEUE: &str = r#"
import contextlib, pathlib, subprocess, types

class Job:
    def __init__(self, **asked):
        self.tasks = []
    def program(self, args, *, name, stdout, stderr, deps=()):
        self.tasks.append(types.SimpleNamespace(task_id=len(self.tasks), **locals()))
        return self.tasks[-1]

class Client:
    def submit(self, job):
        self.failed = {}
        for task in job.tasks:
            kill = pathlib.Path(f"kill {task.name}")
            if any(dep.task_id in self.failed for dep in task.deps):
                continue
            with open(task.stdout, "w") as out, open(task.stderr, "w") as err:
                code = -9 if kill.exists() else subprocess.run(task.args, stdout=out, stderr=err).returncode
            kill.unlink(missing_ok=True)
            if code:
                self.failed[task.task_id] = types.SimpleNamespace(error=f"Program terminated with exit code {code}.")
    def wait_for_jobs(self, jobs, raise_on_error):
        return not self.failed
    def get_failed_tasks(self, job):
        return self.failed

class LocalCluster(contextlib.nullcontext):
    def __enter__(self):
        return self
    def start_worker(self, config):
        pass
    def client(self):
        return Client()
"#;

#[test]
fn the_template_for_hyperqueue_runs_what_failed_again_and_merges() {
    let folder = small();
    stand_in(folder.path(), "hyperqueue/__init__.py", HYPERQUEUE);
    stand_in(folder.path(), "hyperqueue/client.py", "from . import Client\n");
    stand_in(folder.path(), "hyperqueue/cluster.py", "def WorkerConfig(cores):\n    return cores\n");
    let program = env!("CARGO_BIN_EXE_haversack");
    let plan = ["python3", "on_hyperqueue.py", "--minutes", "10", "--plan", "--out", "whole", "--haversack", program];
    let Some(planned) = run_template(folder.path(), &[&plan[..], &["--", "sweep", "small.toml"]].concat()) else {
        eprintln!("skipped: python3 is not there");
        return;
    };
    let said = stdout(&planned);
    assert!(planned.status.success() && said.contains("shards of at most 10 minutes: 1"), "{said}{}", stderr(&planned));
    assert!(!folder.path().join("whole.shards").exists());
    // A thousand times the seconds of the slowest thousandth, and half as much again, in parts of a
    // 16,667th of a minute, 3.6 ms.
    let short =
        ["--minutes", "0.00006", "--haversack", program, "--plan", "--out", "whole", "--", "sweep", "small.toml"];
    let planned = stdout(&run_template(folder.path(), &[&plan[..2], &short].concat()).unwrap());
    let number =
        |after: &str| planned.split(after).nth(1).unwrap().split([' ', '\n']).next().unwrap().parse::<f64>().unwrap();
    let (seconds, shards) = (number("takes up to "), number("minutes: "));
    let bounds = [seconds - 0.005, seconds + 0.005].map(|seconds| seconds * 1500.0 / 0.0036);
    assert!(shards >= bounds[0] && shards <= bounds[1] + 1.0, "{planned}");
    let wrong = run_template(folder.path(), &[&plan[..], &["--", "reproduce", "sage/section5"]].concat()).unwrap();
    assert!(stderr(&wrong).contains("other commands are given --shards"), "{}", stderr(&wrong));

    fs::write(folder.path().join("kill shard 2"), "").unwrap();
    let line =
        ["python3", "on_hyperqueue.py", "--shards", "2", "--out", "whole", "--haversack", program, "--", "sweep"];
    let output = run_template(folder.path(), &[&line[..], &["small.toml"]].concat()).unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let (said, wrong) = (stdout(&output), stderr(&output));
    assert!(said.contains("attempt 1: 1 of 2 shards") && said.contains("attempt 2: 1 of 1 shards"), "{said}");
    assert!(wrong.contains("shard 2 failed: Program terminated with exit code -9.; it said nothing"), "{wrong}");
    assert_eq!(tree(&folder.path().join("one")), tree(&folder.path().join("whole")));

    let output = run_template(folder.path(), &[&line[..], &["nowhere.toml"]].concat()).unwrap();
    let wrong = stderr(&output);
    assert!(!output.status.success() && wrong.contains("nowhere.toml: cannot be read"), "{wrong}");
    assert!(wrong.contains("the input is wrong: mend it, and run this again"), "{wrong}");
}
