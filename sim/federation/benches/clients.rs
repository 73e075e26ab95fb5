//! A client's round compared with the bare kernel loop: LeNet-5, 60 samples, one epoch, batches of 20.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::borrow::Cow;

use divan::Bencher;
use divan::counter::ItemsCount;
use haversack_federation::learning::{Holding, LocalSgd, Source, StandIn, Trainee, train_all};
use haversack_numerics::batch::{MiniBatch, Samples};
use haversack_numerics::optimiser::Rule;
use haversack_numerics::program::{Pass, Statistics};
use haversack_numerics::{Meter, Program, plain::Plain};
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::data::glyphs;
use haversack_workloads::models::build_for;

const INPUT: [u64; 3] = [3, 32, 32];
const CLASSES: u64 = 10;
const HOW: LocalSgd =
    LocalSgd { epochs: 1, steps: None, batch: 20, rate: 0.01, proximal: 0.0, momentum: 0.0, decay: 0.0 };
const COHORT: u32 = 16;

fn main() {
    divan::main();
}

/// One thread, on which clients train one after the other.
fn one_thread() -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread")
}

#[divan::bench]
fn kernels(bencher: Bencher<'_, '_>) {
    let network = build_for("lenet5", Some(&INPUT), Some(CLASSES)).expect("LeNet-5");
    let graph = differentiate(&network, EagerRules::default()).expect("its graph");
    let (program, meter) = (Program::new(&network, &graph).expect("its arithmetic"), Meter::default());
    let mut state = program.initial_state(&graph, 1, &meter).expect("its weights");
    let values = (0..20 * 3072).map(|place| (place % 251) as f32 / 251.0 - 0.5).collect();
    let batch =
        MiniBatch { len: 20, samples: Samples::Values(values), labels: (0..20).map(|place| place % 10).collect() };
    let rule = Rule { optimiser: Optimiser::Sgd, rate: HOW.rate, decay: 0.0 };
    let pass = Pass { samples: 20, batch: 20, first: 0, update: 0, seed: 1, statistics: Statistics::Own, rule };
    let pool = one_thread();
    bencher.counter(ItemsCount::new(COHORT)).bench_local(|| {
        pool.install(|| {
            for _ in 0..3 * COHORT {
                Plain { program: &program, graph: &graph, batch: &batch, pass: &pass, meter: &meter }
                    .train(&mut state)
                    .expect("a step");
            }
        });
    });
}

#[divan::bench]
fn clients(bencher: Bencher<'_, '_>) {
    let stand_in = StandIn::new("lenet5", Some(&INPUT), Some(CLASSES)).expect("LeNet-5");
    let source = Source::of_set(glyphs::data_set());
    let weights = stand_in.initial(1).expect("its weights");
    let holding = Holding(vec![6; CLASSES as usize]);
    let trainee = |client| Trainee {
        client,
        holding: holding.clone(),
        network: &stand_in,
        weights: Cow::Borrowed(&weights),
        store: None,
        round: 0,
    };
    let cohort: Vec<Trainee<'_>> = (0..COHORT).map(trainee).collect();
    let pool = one_thread();
    bencher
        .counter(ItemsCount::new(COHORT))
        .bench_local(|| pool.install(|| train_all(&source, &cohort, &HOW, 1).expect("a round")));
}
