//! Local training: against plain loops, against numbers by hand, and its errors.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use haversack_engine::Stream;
use haversack_federation::learning::{
    Contribution, Groups, Holding, Labels, LocalSgd, Narrowing, Source, StandIn, Synthetic, Trainee, Turn, mean_change,
    train_all,
};
use haversack_numerics::batch::{MiniBatch, Samples};
use haversack_numerics::memory::Contents;
use haversack_numerics::optimiser::Rule;
use haversack_numerics::program::{Pass, Statistics};
use haversack_numerics::{Meter, Program, plain::Plain};
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::data::phrases;
use haversack_workloads::mixed;
use haversack_workloads::models::{Width, build_for};
use rand::seq::SliceRandom;

const SYNTHETIC_INPUT: [u64; 3] = [1, 1, 60];
const HOW: LocalSgd =
    LocalSgd { epochs: 1, steps: None, batch: 20, rate: 0.05, proximal: 0.0, momentum: 0.0, decay: 0.0 };

fn synthetic() -> Source {
    Source::Synthetic(Synthetic::new(1.0, 1.0).unwrap())
}

fn logistic() -> StandIn {
    StandIn::new("logistic", Some(&SYNTHETIC_INPUT), Some(10)).unwrap()
}

const fn turn(seed: u64, round: u32, client: u32) -> Turn {
    Turn { seed, round, client }
}

#[test]
fn a_client_is_a_plain_loop_over_its_samples() {
    let (stand_in, source) = (StandIn::new("mlp", Some(&SYNTHETIC_INPUT), Some(10)).unwrap(), synthetic());
    let samples = source.samples(3, 7, &Holding(vec![50]));
    let weights = stand_in.initial(3).unwrap();
    let update = stand_in.train(&weights, &samples, &LocalSgd { epochs: 2, ..HOW }, turn(3, 5, 7), None).unwrap();

    let network = build_for("mlp", Some(&SYNTHETIC_INPUT), Some(10)).unwrap();
    let graph = differentiate(&network, EagerRules::default()).unwrap();
    let (program, meter) = (Program::new(&network, &graph).unwrap(), Meter::default());
    let mut state = program.initial_state(&graph, 3, &meter).unwrap();
    let mut order: Vec<usize> = (0..50).collect();
    let mut stream = Stream::new(3, "client 7", "order in round 5");
    let rule = Rule { optimiser: Optimiser::Sgd, rate: 0.05, decay: 0.0 };
    for _ in 0..2 {
        order.shuffle(&mut stream);
        for indices in order.chunks(20) {
            let batch = samples.chosen(indices);
            let statistics = Statistics::Own;
            let pass = Pass { samples: batch.len, batch: batch.len, first: 0, update: 0, seed: 3, statistics, rule };
            Plain { program: &program, graph: &graph, batch: &batch, pass: &pass, meter: &meter }
                .train(&mut state)
                .unwrap();
        }
    }
    let values = network.parameters.iter().flat_map(|parameter| state.values(parameter.storage).unwrap());
    let changes: Vec<f32> = values.zip(&weights).map(|(after, before)| after - before).collect();
    assert_eq!(update.change, changes);
    assert_eq!((update.samples, update.steps), (50, 6));
}

#[test]
fn the_proximal_term_pulls_back_by_the_way_from_the_servers_weights() {
    let (stand_in, samples) = (logistic(), synthetic().samples(1, 0, &Holding(vec![1])));
    let server = stand_in.initial(1).unwrap();
    let train = |weights: &[f32], epochs, proximal| {
        stand_in
            .train(weights, &samples, &LocalSgd { epochs, batch: 1, rate: 0.1, proximal, ..HOW }, turn(1, 0, 0), None)
            .unwrap()
            .change
    };
    let first = train(&server, 1, 2.0);
    // The first step begins at the server's weights, so nothing pulls it back.
    assert_eq!(first, train(&server, 1, 0.0));
    let after: Vec<f32> = server.iter().zip(&first).map(|(weight, change)| weight + change).collect();
    let second = train(&after, 1, 0.0);
    // The second goes back by rate · μ = 0.1 · 2 of the way of the first.
    let both = train(&server, 2, 2.0);
    for ((both, first), second) in both.iter().zip(&first).zip(&second) {
        assert!((both - (0.8 * first + second)).abs() < 1e-6, "{both} for 0.8 × {first} + {second}");
    }
}

#[test]
fn momentum_and_decay_are_those_of_torch() {
    let (stand_in, samples) = (logistic(), synthetic().samples(1, 0, &Holding(vec![1])));
    let server = stand_in.initial(1).unwrap();
    let train = |weights: &[f32], epochs, momentum, decay| {
        let how = LocalSgd { epochs, rate: 0.1, momentum, decay, ..HOW };
        stand_in.train(weights, &samples, &how, turn(1, 0, 0), None).unwrap().change
    };
    let sum = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f32>>();
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    // Velocities begin at zero, and the second step is its own plus three quarters of the first.
    let first = train(&server, 1, 0.0, 0.0);
    assert!(near(&train(&server, 1, 0.75, 0.0), &first));
    let second = train(&sum(&server, &first), 1, 0.0, 0.0);
    let expected: Vec<f32> = first.iter().zip(&second).map(|(first, second)| 1.75 * first + second).collect();
    assert!(near(&train(&server, 2, 0.75, 0.0), &expected));
    // Decay takes rate · 0.5 of each weight.
    let decayed: Vec<f32> = first.iter().zip(&server).map(|(first, weight)| first - 0.05 * weight).collect();
    assert!(near(&train(&server, 1, 0.0, 0.5), &decayed));
}

#[test]
fn a_sum_of_clients_learns_what_none_of_them_knows() {
    let (stand_in, source) = (logistic(), synthetic());
    let clients = 30;
    let test = source.test(1, clients);
    let mut weights = stand_in.initial(1).unwrap();
    let before = stand_in.score(&weights, &test).unwrap();
    for round in 0..30 {
        let mut sum = vec![0.0; stand_in.len()];
        for client in 0..clients {
            let samples = source.samples(1, client, &Holding(vec![60]));
            let update = stand_in.train(&weights, &samples, &HOW, turn(1, round, client), None).unwrap();
            sum.iter_mut().zip(&update.change).for_each(|(sum, change)| *sum += change / clients as f32);
        }
        weights.iter_mut().zip(&sum).for_each(|(weight, change)| *weight += change);
    }
    let after = stand_in.score(&weights, &test).unwrap();
    assert!(before.accuracy < 0.3 && after.accuracy > 0.68, "{before:?}, {after:?}");
}

#[test]
fn updates_are_the_same_for_any_number_of_threads() {
    let (stand_in, source) = (logistic(), synthetic());
    let weights = stand_in.initial(1).unwrap();
    let trainee = |client| {
        let (holding, weights) = (Holding(vec![10 + 3 * client]), Cow::Borrowed(&weights[..]));
        Trainee { client, holding, network: &stand_in, weights, store: None, round: 4 }
    };
    let cohort: Vec<Trainee<'_>> = (0..9).map(trainee).collect();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| train_all(&source, &cohort, &HOW, 1)).unwrap()
    };
    let one = with(1);
    assert_eq!(one, with(3));
    let alone = stand_in.train(&weights, &source.samples(1, 5, &Holding(vec![25])), &HOW, turn(1, 4, 5), None).unwrap();
    assert_eq!(one[5].as_ref(), Some(&alone));
    // A single client that diverges is left out; if all do, that is an error.
    let mut poisoned = cohort.clone();
    poisoned[3].weights = Cow::Owned(vec![f32::MAX; weights.len()]);
    let updates = train_all(&source, &poisoned, &HOW, 1).unwrap();
    let expected = one.iter().enumerate().map(|(client, update)| update.clone().filter(|_| client != 3));
    assert!(updates.iter().cloned().eq(expected), "{updates:?}");
    let wrong = train_all(&source, &cohort, &LocalSgd { rate: 1e38, epochs: 50, ..HOW }, 1);
    assert!(wrong.unwrap_err().to_string().contains("client 0"));
}

#[test]
fn dirichlet_shares_are_few_for_a_small_concentration() {
    let largest = |alpha| {
        let share = |client| {
            let Holding(counts) = Holding::draw(1, client, 200, 10, Labels::Dirichlet { alpha }, &[]);
            assert_eq!(counts.iter().sum::<u32>(), 200);
            f64::from(counts.into_iter().max().unwrap()) / 200.0
        };
        (0..200).map(share).sum::<f64>() / 200.0
    };
    // The largest of ten shares: nearly all of a client's samples, or little more than a tenth.
    let [few, some, even] = [0.01, 0.5, 1000.0].map(largest);
    assert!(few > 0.9 && (0.3..0.6).contains(&some) && even < 0.17, "{few}, {some}, {even}");
    assert_eq!(Holding::draw(1, 5, 9, 4, Labels::Even, &[]), Holding::draw(1, 5, 9, 4, Labels::Even, &[]));
    assert_eq!(Holding::draw(1, 5, 9, 0, Labels::Even, &[]), Holding(vec![]));
}

#[test]
fn groups_hold_classes_of_their_own_as_far_as_they_are_apart() {
    let sizes = [0.15, 0.25, 0.6];
    // For classes that belong to one group only: the share of a group's samples that are of such classes, and
    // the mean over all clients.
    let held = |apart: f64| {
        let groups = Groups::new(3, 10, &sizes, apart);
        let of = |group: u8| -> Vec<f64> {
            let Holding(counts) = Holding::draw(1, u32::from(group), 100_000, 10, Labels::Even, groups.of(group));
            counts.iter().map(|&count| f64::from(count) / 1e5).collect()
        };
        [of(0), of(1), of(2)]
    };
    let all =
        |of: &[Vec<f64>; 3], class: usize| -> f64 { of.iter().zip(sizes).map(|(of, size)| of[class] * size).sum() };
    for apart in [0.0, 0.5, 1.0] {
        let found = held(apart);
        assert!((0..10).all(|class| (all(&found, class) - 0.1).abs() < 0.01), "{apart}: {found:?}");
        // The smallest group owns one class and half of another: halfway, its clients have half of a
        // tenth less of all others.
        let least = found[0].iter().filter(|share| **share < 0.1 * (1.0 - apart) + 0.005).count();
        assert_eq!(least, if apart > 0.0 { 8 } else { 10 }, "{apart}: {found:?}");
    }
    assert_eq!(Groups::default().of(1), [0.0; 0]);
}

#[test]
fn a_client_holds_the_classes_that_were_drawn_for_it() {
    let source = Source::of_set(phrases::data_set());
    let holding = Holding(vec![3, 0, 5, 2100]);
    let samples = source.samples(2, 9, &holding);
    let count = |class| samples.labels.iter().filter(|&&label| label == class).count();
    assert_eq!([0, 1, 2, 3].map(count), [3, 0, 5, 2100]);
    assert_eq!(samples, source.samples(2, 9, &holding));
    assert_ne!(samples, source.samples(2, 10, &holding));
    assert_eq!(source.test(2, 1).len, 2000);
}

#[test]
fn a_narrower_network_has_leading_slices_of_the_full_ones_weights() {
    let full = StandIn::new("mlp", Some(&[1, 1, 3]), Some(2)).unwrap();
    let narrow = StandIn::of_width("mlp", Some(&[1, 1, 3]), Some(2), Width::new(0.03).unwrap()).unwrap();
    let narrowing = Narrowing::new(&full, &narrow).unwrap();
    // 0.03 of 64 hidden features are 2: weights of 2 × 3, 2 biases, then the first 2 of 64 columns in each of 2 rows, 2 biases.
    let second = 64 * 3 + 64;
    let rows = [0, 1, 2, 3, 4, 5, 192, 193, second, second + 1, second + 64, second + 65, second + 128, second + 129];
    assert_eq!(narrowing.places(), rows);
    let weights: Vec<f32> = (0..full.len()).map(|place| place as f32).collect();
    assert_eq!(narrowing.narrowed(&weights).unwrap(), rows.map(|place| place as f32));
    assert!(Narrowing::new(&narrow, &full).is_err() && narrowing.narrowed(&weights[1..]).is_err());
}

#[test]
fn a_mean_is_over_the_clients_that_have_a_weight() {
    let all = Contribution { share: 3.0, change: &[1.0, 2.0, 3.0], places: None };
    let narrow = Contribution { share: 1.0, change: &[5.0, -2.0], places: Some(&[0, 2]) };
    // (3 · 1 + 5) / 4, 2 alone, (3 · 3 − 2) / 4.
    assert_eq!(mean_change(3, &[all, narrow]).unwrap(), [2.0, 2.0, 1.75]);
    assert_eq!(mean_change(3, &[narrow]).unwrap(), [5.0, 0.0, -2.0]);
    assert_eq!(mean_change(2, &[]).unwrap(), [0.0, 0.0]);
    assert!(mean_change(4, &[all]).is_err() && mean_change(2, &[narrow]).is_err());
}

#[test]
fn every_stand_in_has_a_narrower_form_that_learns() {
    let tokens: &[u64] = &[32];
    let networks: [(&str, &[u64]); 5] = [
        ("logistic", &[3, 32, 32]),
        ("mlp", &[3, 32, 32]),
        ("lenet5", &[3, 32, 32]),
        ("bag-of-tokens", tokens),
        ("transformer1", tokens),
    ];
    for (id, input) in networks {
        let full = StandIn::new(id, Some(input), Some(4)).unwrap();
        let half = StandIn::of_width(id, Some(input), Some(4), Width::new(0.5).unwrap()).unwrap();
        let narrowing = Narrowing::new(&full, &half).unwrap();
        assert!(id == "logistic" || half.len() < full.len() * 3 / 4, "{id}: {} of {}", half.len(), full.len());
        let weights = narrowing.narrowed(&full.initial(1).unwrap()).unwrap();
        let values: usize = input.iter().product::<u64>() as usize;
        let samples = match input {
            [_] => Samples::Ids((0..8 * values).map(|place| (place * 7 % 64) as i64).collect()),
            _ => Samples::Values((0..8 * values).map(|place| (place % 13) as f32 / 13.0 - 0.5).collect()),
        };
        let batch = MiniBatch { len: 8, samples, labels: (0..8).map(|sample| sample % 4).collect() };
        let update =
            half.train(&weights, &batch, &LocalSgd { epochs: 20, batch: 8, ..HOW }, turn(1, 0, 0), None).unwrap();
        let after: Vec<f32> = weights.iter().zip(&update.change).map(|(before, change)| before + change).collect();
        let [before, after] = [&weights, &after].map(|weights| half.score(weights, &batch).unwrap().loss);
        assert!(after < before, "{id}: {before} to {after}");
    }
}

#[test]
fn what_nothing_can_be_trained_with_is_refused() {
    let (stand_in, source) = (logistic(), synthetic());
    let (samples, weights) = (source.samples(1, 0, &Holding(vec![10])), stand_in.initial(1).unwrap());
    let refused =
        |how: LocalSgd| stand_in.train(&weights, &samples, &how, turn(1, 0, 0), None).unwrap_err().to_string();
    assert_eq!(refused(LocalSgd { epochs: 0, ..HOW }), "`local_epochs` is 0, expected at least 1");
    assert_eq!(refused(LocalSgd { batch: 0, ..HOW }), "`batch` is 0, expected at least 1");
    assert_eq!(refused(LocalSgd { rate: f32::NAN, ..HOW }), "`learning_rate` is NaN, expected a number above 0");
    assert_eq!(refused(LocalSgd { proximal: -1.0, ..HOW }), "`proximal` is -1, expected a number from 0");
    assert_eq!(refused(LocalSgd { momentum: 1.0, ..HOW }), "`momentum` is 1, expected a number from 0 to below 1");
    assert_eq!(refused(LocalSgd { decay: -1.0, ..HOW }), "`weight_decay` is -1, expected a number from 0");
    let diverged = refused(LocalSgd { epochs: 50, rate: 1e38, ..HOW });
    assert!(diverged.starts_with("the loss of client 0 is not a finite number after"), "{diverged}");
    // The loss of the only step is finite, but the weights after it are not.
    let left = refused(LocalSgd { steps: Some(1), batch: 1, rate: f32::MAX, ..HOW });
    assert!(left.starts_with("the loss of client 0 is not a finite number after 1 steps"), "{left}");
    let fewer = stand_in.train(&weights[1..], &samples, &HOW, turn(1, 0, 0), None).unwrap_err().to_string();
    assert_eq!(fewer, "610 weights were expected, there are 609");
    assert!(Labels::Dirichlet { alpha: 0.0 }.check().is_err() && Synthetic::new(-1.0, 0.0).is_err());
    let others = Source::of_set(phrases::data_set()).check(&stand_in).unwrap_err().to_string();
    assert_eq!(others, "the network takes samples of 60 values, those of the data have 32");
    // A client without samples changes nothing.
    let nothing = stand_in.train(&weights, &MiniBatch::default(), &HOW, turn(1, 0, 0), None).unwrap();
    assert!(nothing.steps == 0 && nothing.change.iter().all(|&change| change == 0.0));
}

#[test]
fn contents_of_a_state_are_floats() {
    // Aggregation works on one slice of f32, so the weights must be all that a stand-in trains.
    for id in ["mlp", "lenet5"] {
        let network = build_for(id, None, None).unwrap();
        let graph = differentiate(&network, EagerRules::default()).unwrap();
        let program = Program::new(&network, &graph).unwrap();
        let state = program.initial_state(&graph, 1, &Meter::default()).unwrap();
        assert!(state.tensors().iter().all(|(_, contents)| matches!(contents, Contents::Floats(_))), "{id}");
    }
}

#[test]
fn a_client_in_integers_begins_with_the_nearest_codes_and_changes_them_by_whole_ones() {
    let niti = mixed::algorithm("niti").unwrap();
    let stand_in = StandIn::in_integers("mlp", Some(&SYNTHETIC_INPUT), Some(10), niti).unwrap();
    let source = synthetic();
    let samples = source.samples(3, 7, &Holding(vec![50]));
    let weights = stand_in.initial(3).unwrap();
    let how = LocalSgd { epochs: 4, rate: 0.0625, ..HOW };
    let update = stand_in.train(&weights, &samples, &how, turn(3, 1, 7), None).unwrap();
    // A client's final weights are codes times a power of two, the same one for all codes of a
    // weight; at most 127 of them.
    let after: Vec<f32> = weights.iter().zip(&update.change).map(|(before, change)| before + change).collect();
    let first = &after[..60 * 64.min(after.len() / 60)];
    let largest = first.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let step = (largest / 127.0).log2().ceil().exp2();
    let off = first.iter().filter(|&&value| ((value / step).round() * step - value).abs() > 1e-6).count();
    assert_eq!(off, 0);
    assert!(update.change.iter().any(|change| change.abs() > step), "nothing was learned");
    // From the mean on, the loss of the same samples falls.
    let before = stand_in.score(&weights, &samples).unwrap();
    let later = stand_in.score(&after, &samples).unwrap();
    assert!(later.loss < before.loss, "{} {}", later.loss, before.loss);
    assert_eq!(stand_in.train(&weights, &samples, &how, turn(3, 1, 7), None).unwrap(), update);
    for (field, how) in
        [("proximal", LocalSgd { proximal: 0.1, ..how }), ("momentum", LocalSgd { momentum: 0.1, ..how })]
    {
        let refused = stand_in.train(&weights, &samples, &how, turn(3, 1, 7), None).unwrap_err().to_string();
        assert!(refused.contains(&format!("`{field}` is 0.1, expected 0")), "{refused}");
    }
}

#[test]
fn steps_take_the_place_of_epochs() {
    let (stand_in, source) = (logistic(), synthetic());
    let (samples, weights) = (source.samples(1, 0, &Holding(vec![50])), stand_in.initial(1).unwrap());
    let with = |epochs, steps| {
        let how = LocalSgd { epochs, steps, ..HOW };
        stand_in.train(&weights, &samples, &how, turn(1, 0, 0), None).unwrap()
    };
    // 50 samples are three batches of at most twenty.
    assert_eq!((with(1, None).steps, with(1, Some(1)).steps, with(1, Some(7)).steps), (3, 1, 7));
    assert_eq!(with(9, Some(6)), with(2, None));
    let none = source.samples(1, 0, &Holding(vec![0]));
    let how = LocalSgd { steps: Some(2), ..HOW };
    assert_eq!(stand_in.train(&weights, &none, &how, turn(1, 0, 0), None).unwrap().steps, 0);
}
