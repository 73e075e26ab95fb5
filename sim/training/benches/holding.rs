//! Cost of storing saved tensors in fewer bits, measured on real training steps: `resnet8-cifar` with a batch of 128
//! under the policies that quantise, compared with `original`. `RAYON_NUM_THREADS=2 cargo bench -p haversack-training`.
//!
//! The policies take turns, so that a machine that is busy for a while slows all of them. Reported are the CPU time of
//! all threads and its ratio to `original`, each as the median over the turns.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

#[path = "../tests/it/learning/classroom.rs"]
mod classroom;

use std::fs;

use classroom::Classroom;
use haversack_devices::{Frequency, load, load_stack};
use haversack_policies::registry;
use haversack_training::{Job, Machine, Trains};

const BATCH: u64 = 128;
/// Updates per turn, and number of turns.
const UPDATES: u64 = 5;
const TURNS: usize = 7;
/// A clock tick of `/proc`, in milliseconds.
const TICK: f64 = 10.0;

/// DAF with the eight bits that it begins with and with four, and the others with their own four.
const POLICIES: [(&str, &[(&str, &str)]); 5] =
    [("original", &[]), ("actnn", &[]), ("gact", &[]), ("daf", &[("bits", "8")]), ("daf", &[("bits", "4")])];

/// The CPU time of this process so far, in milliseconds (proc(5): user and system time, after the name in brackets).
fn cpu_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("a Linux with /proc");
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap().split_whitespace().skip(1).map(|field| field.parse().unwrap()).collect();
    (fields[10] + fields[11]) * TICK
}

fn main() {
    let class = Classroom::new("resnet8-cifar", BATCH);
    let (device, stack) = (load("server-core").unwrap(), load_stack("pytorch-cpu").unwrap());
    let machine = Machine::new(device, stack, Trains::Either, None, Frequency::default()).unwrap();
    let job = Job::plain(&class.graph, BATCH);
    let turn = |&(id, set): &(&str, &[(&str, &str)])| {
        let set: Vec<_> = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let mut policy = registry::build(id, &set).unwrap();
        let begun = cpu_time();
        class.train(&machine, &job, policy.as_mut(), UPDATES).unwrap();
        (cpu_time() - begun) / UPDATES as f64
    };
    // The first turn warms caches and the pool of threads.
    POLICIES.iter().for_each(|policy| _ = turn(policy));
    let turns: Vec<Vec<f64>> = (0..TURNS).map(|_| POLICIES.iter().map(turn).collect()).collect();
    for (place, (id, set)) in POLICIES.into_iter().enumerate() {
        let middle = |of: &dyn Fn(&Vec<f64>) -> f64| {
            let mut all: Vec<f64> = turns.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (each, over) = (middle(&|turn| turn[place]), middle(&|turn| turn[place] / turn[0]));
        let name = set.iter().fold(id.to_owned(), |name, (key, value)| format!("{name} {key}={value}"));
        println!("{name:>12}: {each:6.0} ms of CPU time a step, {over:.3} of original");
    }
}
