//! An iteration under pressure costs about as much for each operator of a large network as of a small one, counted in
//! scores that a policy computes.

use std::fmt::Debug;

use haversack_policies::Policy;
use haversack_policies::capuchin::Capuchin;
use haversack_policies::dtr::Dtr;
use haversack_policies::fedhybrid::{self, FedHybrid};
use haversack_policies::melon::Melon;
use haversack_policies::sage::{Dynamic, Order};
use haversack_replay::Heuristic;

use crate::chains::{self, Pressure};
use crate::setting::MELON;

/// The scores that a policy has computed, as counted by its rankings.
pub(crate) fn scored(policy: &impl Debug) -> u64 {
    let text = format!("{policy:?}");
    let counts = text.split(", scored: ").skip(1).map(|rest| rest.split_once(' ').unwrap().0);
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

/// The power with which the number of scores grows from 2,000 to 8,000 operators: log₄ of their ratio.
fn power<P: Policy + Debug>(policy: impl Fn() -> P) -> f64 {
    let machine = chains::phone();
    let [few, many] = [2_000, 8_000].map(|operators| {
        let graph = chains::network(operators, 4);
        let mut policy = policy();
        // Capuchin's first iteration is measured, and nothing is scored in it.
        let record = chains::run(&machine, &graph, Pressure::Sudden(50), 2, &mut policy).unwrap();
        println!("{operators} {} recomputed, {} scored", record.recomputed, scored(&policy));
        scored(&policy) as f64
    });
    assert!(few > 100.0, "{few}");
    (many / few).log(4.0)
}

#[test]
fn scores_grow_with_the_operators() {
    let powers = [
        ("dgc", power(|| Dynamic::new(Order::CheckpointingOnly, None))),
        ("dtr", power(|| Dtr::new(Heuristic::Dtr))),
        ("melon", power(|| Melon::new(MELON))),
        ("capuchin", power(Capuchin::default)),
        ("fedhybrid", power(|| FedHybrid::new(fedhybrid::Parameters::default()))),
    ];
    for (policy, power) in powers {
        assert!(power <= if policy == "dtr" { 1.5 } else { 1.2 }, "{powers:?}");
    }
}
