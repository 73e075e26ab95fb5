//! The time of one operation of making a plan on this machine's core: the constant `planning.operation` of a stack.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/it/chains.rs"]
mod chains;

use std::time::Instant;

use chains::BATCH;
use haversack_devices::units::Bytes;
use haversack_policies::fedhybrid::Parameters;
use haversack_policies::fedhybrid::profile::Profile;
use haversack_policies::original::Original;
use haversack_policies::planning::Room;
use haversack_training::{Job, Tries, simulate, with_setting};
use haversack_workloads::TrainingGraph;
use haversack_workloads::autograd::Optimiser;
use haversack_workloads::express::{Version, express};
use haversack_workloads::models;

/// Number of times that each plan is made; the fastest counts.
const TIMES: usize = 20;

fn main() {
    let model = |id: &str| express(&models::build(id, None).unwrap(), Optimiser::Sgd, Version::V2).unwrap();
    let graphs: [(&str, TrainingGraph); 6] = [
        ("chain of 500", chains::network(500, 4)),
        ("chain of 5000", chains::network(5_000, 4)),
        ("mobilenetv2", model("mobilenetv2")),
        ("resnet34", model("resnet34")),
        ("resnet50", model("resnet50")),
        ("bert-base", model("bert-base")),
    ];
    let mut each = Vec::new();
    for (name, graph) in &graphs {
        let machine = chains::phone();
        let whole = simulate(&machine, &Job::plain(graph, BATCH), &mut Original).unwrap().peak_memory;
        let job = Job::plain(graph, BATCH);
        let profile = with_setting(&machine, &job, |setting| Profile::new(setting, Parameters::default()));
        for percent in [90, 75, 60] {
            let room = Room { memory: Some(Bytes(whole.0 / 100 * percent)), activations: None };
            let oracle = Tries::exact(&machine, &job);
            let Ok(plan) = profile.plan(graph, room, &oracle) else { continue };
            let time = |_| {
                let start = Instant::now();
                let made = profile.plan(graph, room, &oracle);
                let taken = start.elapsed().as_nanos() as f64;
                drop(std::hint::black_box(made));
                taken
            };
            let taken = (0..TIMES).map(time).fold(f64::INFINITY, f64::min);
            let operations = plan.operations();
            each.push(taken / operations.total() as f64);
            println!(
                "{name:>14} {percent} %: {:8.3} ms, {operations:?}, {}, {:?}",
                taken / 1e6,
                plan.bytes(),
                plan.treatments(graph)
            );
        }
    }
    each.sort_by(f64::total_cmp);
    println!("{:.0} ns an operation, of {:.0} to {:.0}", each[each.len() / 2], each[0], each[each.len() - 1]);
}
