//! Training in integers: a whole step of a small network against code that does not use graphs.

use haversack_numerics::batch::{MiniBatch, Samples};
use haversack_numerics::memory::Contents;
use haversack_numerics::optimiser::Rule;
use haversack_numerics::program::{Pass, Statistics};
use haversack_numerics::state::State;
use haversack_numerics::{Meter, Program, plain::Plain};
use haversack_workloads::autograd::Optimiser;
use haversack_workloads::mixed::{self, Rewritten};
use haversack_workloads::operator::Window;
use haversack_workloads::{Network, ValueId, models};

use crate::common::assert_same_on_any_threads;

const SAMPLES: usize = 5;

/// 1 × 4 × 4 samples, two filters of 3 × 3, ReLU, maxima of 2 × 2, three classes.
fn network() -> Network {
    let mut network = Network::new("small");
    let samples = network.input(&[1, 4, 4]);
    let x = network.convolution("conv", samples, 2, Window::square(3, 1, 1), 1, true).unwrap();
    classified(network, x)
}

/// Continues a network from `x`: ReLU, maxima of 2 × 2, three classes.
fn classified(mut network: Network, x: ValueId) -> Network {
    let x = network.unary("relu", x, haversack_workloads::operator::Unary::Relu);
    let x = network.max_pool("pool", x, Window::square(2, 2, 0), false).unwrap();
    let x = network.flatten("flatten", x).unwrap();
    let scores = network.linear("fc", x, 3, true).unwrap();
    let target = network.target(1);
    network.cross_entropy("loss", scores, target).unwrap();
    network
}

fn rewritten(network: &Network) -> Rewritten {
    mixed::rewritten(network, mixed::algorithm("niti").unwrap(), Optimiser::Sgd).unwrap()
}

fn batch(elements: usize, classes: i64, samples: usize) -> MiniBatch {
    let values = (0..samples * elements).map(|place| (place as f64 * 0.37).sin() as f32).collect();
    let labels = (0..samples as i64).map(|place| place % classes).collect();
    MiniBatch { len: samples, samples: Samples::Values(values), labels }
}

/// The learning rate of a quarter leaves five bits of a gradient: 32 of 128.
fn pass(samples: usize, update: u64) -> Pass {
    let rule = Rule { optimiser: Optimiser::Sgd, rate: 0.25, decay: 0.0 };
    Pass { samples, batch: samples, first: 0, update, seed: 3, statistics: Statistics::Own, rule }
}

fn held(state: &State) -> Vec<(Vec<i32>, f32)> {
    let of = |(_, contents): &(u32, Contents)| match contents {
        Contents::Eight(held) => (held.codes.iter().map(|&code| code.into()).collect(), held.step),
        other => panic!("{other:?} is not held in eight bits"),
    };
    state.tensors().iter().map(of).collect()
}

/// Codes and the exponent of their step, by independent code.
#[derive(Clone, Debug, PartialEq)]
struct Codes(Vec<i32>, i32);

impl Codes {
    /// The nearest codes at the least power of two that fits all values.
    fn of(values: &[f64]) -> Self {
        let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let exponent = (largest / 127.0).log2().ceil() as i32;
        Self(values.iter().map(|value| (value / 2_f64.powi(exponent)).round() as i32).collect(), exponent)
    }

    /// Sums of 32 bits shifted so that the largest has `bits` bits; rounded up if the upper half of the lost bits
    /// exceeds the lower, or at a half.
    fn shifted(sums: &[i64], exponent: i32, bits: u32, pseudo: bool) -> Self {
        let largest = sums.iter().map(|sum| sum.unsigned_abs()).max().unwrap();
        let shift = (64 - largest.leading_zeros()).saturating_sub(bits);
        let one = |&sum: &i64| {
            let (magnitude, half) = (sum.unsigned_abs(), shift / 2);
            let (kept, lost) = (magnitude >> shift, magnitude % (1 << shift));
            let (upper, lower) = (lost >> half, (lost % (1 << half)) << (shift % 2));
            let up = if pseudo && shift > 1 { upper > lower } else { shift > 0 && lost >= 1 << (shift - 1) };
            ((kept + u64::from(up)).min(127) as i64 * sum.signum()) as i32
        };
        Self(sums.iter().map(one).collect(), exponent + shift.cast_signed())
    }

    fn value(&self, place: usize) -> f64 {
        f64::from(self.0[place]) * 2_f64.powi(self.1)
    }
}

/// A bias in units of sums.
fn aligned(bias: &Codes, place: usize, exponent: i32) -> i64 {
    (bias.value(place) / 2_f64.powi(exponent)).round() as i64
}

/// A step of the small network from `[conv.weight, conv.bias, fc.weight, fc.bias]`: the mean loss, and the new ones.
fn step_by_hand(weights: &[Codes; 4], samples: &[f64], labels: &[i64]) -> (f64, [Codes; 4]) {
    let [w, b, v, c] = weights;
    let x = Codes::of(samples);
    // For each product of the convolution: sample, filter, position, tap, and the index of its input.
    let taps = || {
        (0..SAMPLES * 2 * 16 * 9).filter_map(|n| {
            let (tap, position, filter, sample) = (n % 9, n / 9 % 16, n / 144 % 2, n / 288);
            let (row, column) = (position / 4 + tap / 3, position % 4 + tap % 3);
            let inside = (1..5).contains(&row) && (1..5).contains(&column);
            inside.then(|| (sample, filter, position, tap, sample * 16 + (row - 1) * 4 + column - 1))
        })
    };
    let mut sums: Vec<i64> = (0..SAMPLES * 32).map(|n| aligned(b, n / 16 % 2, x.1 + w.1)).collect();
    for (sample, filter, position, tap, from) in taps() {
        sums[sample * 32 + filter * 16 + position] += i64::from(x.0[from] * w.0[filter * 9 + tap]);
    }
    let a = Codes::shifted(&sums, x.1 + w.1, 7, false);
    // The index of the largest of four positive codes: the first of equals.
    let best: Vec<usize> = (0..SAMPLES * 8)
        .map(|n| {
            let corner = n / 4 * 16 + n / 2 % 2 * 8 + n % 2 * 2;
            let window = [corner, corner + 1, corner + 4, corner + 5];
            *window.iter().rev().max_by_key(|&&at| a.0[at].max(0)).unwrap()
        })
        .collect();
    let p: Vec<i32> = best.iter().map(|&at| a.0[at].max(0)).collect();
    let mut sums: Vec<i64> = (0..SAMPLES * 3).map(|n| aligned(c, n % 3, a.1 + v.1)).collect();
    for n in 0..SAMPLES * 3 * 8 {
        let (k, class, sample) = (n % 8, n / 8 % 3, n / 24);
        sums[sample * 3 + class] += i64::from(p[sample * 8 + k] * v.0[class * 8 + k]);
    }
    let scores = Codes::shifted(&sums, a.1 + v.1, 7, false);
    let (mut loss, mut gradient) = (0.0, Vec::new());
    for (sample, &label) in labels.iter().enumerate() {
        let exponentials = [0, 1, 2].map(|class| scores.value(sample * 3 + class).exp());
        let total: f64 = exponentials.iter().sum();
        loss -= (exponentials[label as usize] / total).ln() / SAMPLES as f64;
        let of = |class: usize| exponentials[class] / total - if class as i64 == label { 1.0 } else { 0.0 };
        gradient.extend([0, 1, 2].map(|class| of(class) / SAMPLES as f64));
    }
    let e = Codes::of(&gradient);
    let (mut dv, mut dc, mut dp) = ([0; 24], [0; 3], vec![0; SAMPLES * 8]);
    for n in 0..SAMPLES * 3 * 8 {
        let (k, class, sample) = (n % 8, n / 8 % 3, n / 24);
        dv[class * 8 + k] += i64::from(e.0[sample * 3 + class] * p[sample * 8 + k]);
        dp[sample * 8 + k] += i64::from(e.0[sample * 3 + class] * v.0[class * 8 + k]);
        dc[class] += if k == 0 { i64::from(e.0[sample * 3 + class]) } else { 0 };
    }
    let dp = Codes::shifted(&dp, e.1 + v.1, 7, true);
    let mut da = vec![0; SAMPLES * 32];
    for (n, &at) in best.iter().enumerate() {
        da[at] += if a.0[at] > 0 { dp.0[n] } else { 0 };
    }
    let (mut dw, mut db) = ([0; 18], [0; 2]);
    for (sample, filter, position, tap, from) in taps() {
        let e = da[sample * 32 + filter * 16 + position];
        dw[filter * 9 + tap] += i64::from(e * x.0[from]);
        db[filter] += if tap == 4 { i64::from(e) } else { 0 };
    }
    let update = |weight: &Codes, sums: &[i64]| {
        let less = Codes::shifted(sums, 0, 5, true);
        let new = weight.0.iter().zip(less.0).map(|(weight, less)| (weight - less).clamp(-127, 127));
        Codes(new.collect(), weight.1)
    };
    (loss, [update(w, &dw), update(b, &db), update(v, &dv), update(c, &dc)])
}

#[test]
fn three_steps_of_a_small_network_are_those_by_hand() {
    let network = network();
    let rewritten = rewritten(&network);
    let (graph, meter) = (rewritten.graph.clone(), Meter::default());
    let program = Program::of_integers(&network, rewritten).unwrap();
    let mut state = program.initial_state(&graph, 1, &meter).unwrap();
    let batch = batch(16, 3, SAMPLES);
    let Samples::Values(values) = &batch.samples else { panic!("no values") };
    let samples: Vec<f64> = values.iter().map(|&value| value.into()).collect();
    let codes = |state: &State| -> [Codes; 4] {
        let all = held(state).into_iter().map(|(codes, step)| Codes(codes, step.log2() as i32));
        all.collect::<Vec<_>>().try_into().unwrap()
    };
    let mut by_hand = codes(&state);
    assert!(by_hand.iter().all(|held| held.0.iter().any(|code| code.abs() > 63)), "the whole range is used");
    for update in 0..3 {
        let loss =
            Plain { program: &program, graph: &graph, batch: &batch, pass: &pass(SAMPLES, update), meter: &meter }
                .train(&mut state)
                .unwrap();
        let (expected, next) = step_by_hand(&by_hand, &samples, &batch.labels);
        assert!((loss.mean - expected).abs() < 1e-5, "step {update}: {} for {expected}", loss.mean);
        assert_ne!(next, by_hand);
        by_hand = next;
        assert_eq!(codes(&state), by_hand, "step {update}");
    }
    drop(state);
    assert_eq!(meter.live(), 0);
}

#[test]
fn threads_change_no_code() {
    let network = models::build("lenet5", None).unwrap();
    let rewritten = rewritten(&network);
    let graph = rewritten.graph.clone();
    let program = Program::of_integers(&network, rewritten).unwrap();
    assert_same_on_any_threads(|| {
        let meter = Meter::default();
        let mut state = program.initial_state(&graph, 1, &meter).unwrap();
        for update in 0..2 {
            Plain {
                program: &program,
                graph: &graph,
                batch: &batch(784, 62, 20),
                pass: &pass(20, update),
                meter: &meter,
            }
            .train(&mut state)
            .unwrap();
        }
        held(&state)
            .into_iter()
            .flat_map(|(codes, step)| codes.into_iter().map(move |code| code as f32 * step))
            .collect()
    });
}

/// The same with a normalisation, whose running averages are written, too.
fn normalised() -> Network {
    let mut network = Network::new("normalised");
    let samples = network.input(&[2, 6, 6]);
    let x = network.convolution("conv1", samples, 4, Window::square(3, 1, 1), 1, true).unwrap();
    let x = network.batch_norm("norm", x).unwrap();
    classified(network, x)
}

#[test]
fn niti_learns_on_any_number_of_threads() {
    let network = normalised();
    // A third of each sample is brighter, which shows its class.
    let mut samples = batch(72, 3, 12);
    if let Samples::Values(values) = &mut samples.samples {
        for (place, value) in values.iter_mut().enumerate() {
            *value += if place % 72 / 24 == place / 72 % 3 { 1.5 } else { 0.0 };
        }
    }
    for (optimiser, rate) in [(Optimiser::Sgd, 0.125), (Optimiser::Momentum, 0.03125)] {
        let rewritten = mixed::rewritten(&network, mixed::algorithm("niti").unwrap(), optimiser).unwrap();
        let graph = rewritten.graph.clone();
        let program = Program::of_integers(&network, rewritten).unwrap();
        let rule = Rule { optimiser, rate, decay: 0.0 };
        let losses = || -> Vec<f32> {
            let meter = Meter::default();
            let mut state = program.initial_state(&graph, 1, &meter).unwrap();
            let step = |update| {
                let pass = Pass { rule, ..pass(12, update) };
                let loss = Plain { program: &program, graph: &graph, batch: &samples, pass: &pass, meter: &meter }
                    .train(&mut state)
                    .unwrap();
                loss.mean as f32
            };
            (0..24).map(step).collect()
        };
        let found = losses();
        let last = found[20..].iter().sum::<f32>() / 4.0;
        assert!(last < 0.7 * found[0], "{optimiser:?}: {found:?}");
        assert_same_on_any_threads(losses);
    }
}

/// Calls `f` with the state of the normalised network after three steps.
pub(crate) fn trained(f: impl FnOnce(&State)) {
    let (network, meter) = (normalised(), Meter::default());
    let rewritten = rewritten(&network);
    let graph = rewritten.graph.clone();
    let program = Program::of_integers(&network, rewritten).unwrap();
    let (mut state, batch) = (program.initial_state(&graph, 1, &meter).unwrap(), batch(72, 3, 12));
    for update in 0..3 {
        Plain { program: &program, graph: &graph, batch: &batch, pass: &pass(12, update), meter: &meter }
            .train(&mut state)
            .unwrap();
    }
    f(&state);
}

#[test]
fn what_is_not_carried_out_on_data_is_refused_in_words() {
    let network = network();
    let refusal = |algorithm: &str, optimiser: Optimiser| {
        let rewritten = mixed::rewritten(&network, mixed::algorithm(algorithm).unwrap(), optimiser).unwrap();
        Program::of_integers(&network, rewritten).unwrap_err().to_string()
    };
    let state =
        "its weights are integers, whose update has no place for such a state; expected the optimizer sgd or momentum";
    assert_eq!(refusal("niti", Optimiser::Adam), format!("NITI: {state}"));
    for (id, name) in [
        ("octo", "Octo"),
        ("adaptive-fixed-point", "Adaptive Fixed-Point"),
        ("wageubn", "WAGEUBN"),
        ("mls", "MLS Format"),
    ] {
        let expected = format!("{name}: this algorithm is not carried out on data; expected niti");
        assert_eq!(refusal(id, Optimiser::Sgd), expected);
    }
}
