//! Whole training steps against PyTorch's, from the same weights, samples and labels.

use std::collections::BTreeMap;

use haversack_numerics::batch::{MiniBatch, Samples};
use haversack_numerics::memory::Contents;
use haversack_numerics::optimiser::Rule;
use haversack_numerics::plain::Plain;
use haversack_numerics::program::{Loss, Pass, Statistics};
use haversack_numerics::state::State;
use haversack_numerics::{Meter, Program};
use haversack_testing::formula;
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::{Network, Op, Role, TrainingGraph, models};
use serde_json::Value;

const FIXTURE: &str = include_str!("../data/steps.json");

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The network of a fixture without dropout.
fn network(id: &str, fixture: &Value) -> Network {
    let input: Vec<u64> = fixture["input"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap()).collect();
    let mut network = models::build_for(id, Some(&input), fixture["classes"].as_u64()).unwrap();
    for node in &mut network.nodes {
        if let Op::Dropout(probability) = &mut node.op {
            *probability = 0.0;
        }
    }
    network
}

/// Weights by the formula.
fn state(program: &Program, graph: &TrainingGraph, meter: &Meter) -> State {
    let mut state = program.initial_state(graph, 1, meter).unwrap();
    let network = program.network();
    let parameters: BTreeMap<u32, _> =
        network.parameters.iter().map(|parameter| (parameter.storage, parameter)).collect();
    for (tensor, contents) in state.tensors_mut() {
        if let Some(parameter) = parameters.get(tensor) {
            *contents = Contents::Floats(meter.copy(&formula::weight(&parameter.name, &parameter.dims)));
        }
    }
    state
}

fn batch(fixture: &Value, graph: &TrainingGraph, samples: usize) -> MiniBatch {
    let input = graph.tensors.iter().find(|tensor| tensor.role == Role::Input).unwrap();
    let is_tokens = fixture["input"].as_array().unwrap().len() == 1;
    let count = input.bytes.at(samples as u64) as usize / if is_tokens { 8 } else { 4 };
    let held = if is_tokens {
        Samples::Ids(formula::below("input", count, 64))
    } else {
        Samples::Values(formula::even("input", count))
    };
    let labels = formula::below("target", samples, fixture["classes"].as_u64().unwrap() as u32);
    MiniBatch { len: samples, samples: held, labels }
}

#[test]
fn three_steps_are_pytorchs() {
    let all: Value = serde_json::from_str(FIXTURE).unwrap();
    let samples = all["batch"].as_u64().unwrap() as usize;
    let rate = number(&all["learning_rate"]) as f32;
    let mut seen = 0;
    for (id, fixture) in all["networks"].as_object().unwrap() {
        let network = network(id, fixture);
        let graph = differentiate(&network, EagerRules::default()).unwrap();
        let program = Program::new(&network, &graph).unwrap();
        let meter = Meter::default();
        let mut state = state(&program, &graph, &meter);
        let before = values_by_name(&network, &state);
        let batch = batch(fixture, &graph, samples);
        let rule = Rule { optimiser: Optimiser::Sgd, rate, decay: 0.0 };
        // The difference between PyTorch in fp32 and PyTorch in double precision: in MobileNetV2, normalisations over
        // four samples at one position each amplify rounding.
        let loose = number(&fixture["fp32_gradient_error"]);
        let losses = fixture["losses"].as_array().unwrap().iter().zip(fixture["fp32_losses"].as_array().unwrap());
        for (update, (expected, single)) in (0..).zip(losses) {
            let pass = Pass { samples, batch: samples, first: 0, update, seed: 1, statistics: Statistics::Own, rule };
            let loss = Plain { program: &program, graph: &graph, batch: &batch, pass: &pass, meter: &meter }
                .train(&mut state)
                .unwrap();
            let expected = number(expected);
            let off = 2e-5 * expected + 2.0 * (number(single) - expected).abs();
            assert!((loss.mean - expected).abs() < off, "{id}, step {update}: {} for {expected}", loss.mean);
            if update == 0 {
                check_gradients(id, fixture, &network, &state, &before, f64::from(rate));
            }
        }
        for (name, values) in values_by_name(&network, &state) {
            let Some(expected) = fixture["parameters"].get(&name) else { continue };
            let (sum, scale) = (values.iter().map(|&value| f64::from(value)).sum::<f64>(), absolute(&values));
            assert!(
                (sum - number(&expected["after"])).abs() < (1e-4 + 10.0 * loose) * scale.max(1.0),
                "{id}, {name}: {sum}"
            );
            seen += 1;
        }
    }
    // All trained weights of the eight networks.
    assert!(seen > 150, "{seen}");
}

/// Calls `f` with the state of each network of the fixture after three steps of Adam.
pub(crate) fn trained(mut f: impl FnMut(&State, Loss)) {
    let all: Value = serde_json::from_str(FIXTURE).unwrap();
    for (id, fixture) in all["networks"].as_object().unwrap() {
        let (network, meter, samples) = (network(id, fixture), Meter::default(), 4);
        let optimiser = Optimiser::Adam;
        let graph = differentiate(&network, EagerRules { optimiser, ..EagerRules::default() }).unwrap();
        let program = Program::new(&network, &graph).unwrap();
        let (mut state, batch) = (state(&program, &graph, &meter), batch(fixture, &graph, samples));
        let rule = Rule { optimiser, rate: 1e-3, decay: 1e-4 };
        let mut step = |update| {
            let pass = Pass { samples, batch: samples, first: 0, update, seed: 1, statistics: Statistics::Own, rule };
            Plain { program: &program, graph: &graph, batch: &batch, pass: &pass, meter: &meter }.train(&mut state)
        };
        let loss = (0..3).map(|update| step(update).unwrap()).last().unwrap();
        f(&state, loss);
    }
}

fn values_by_name(network: &Network, state: &State) -> BTreeMap<String, Vec<f32>> {
    let held = |parameter: &haversack_workloads::network::Parameter| {
        (parameter.name.clone(), state.values(parameter.storage).unwrap().to_vec())
    };
    network.parameters.iter().map(held).collect()
}

fn absolute(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value.abs())).sum()
}

/// After a step of plain SGD the weights differ by the gradient times the learning rate.
fn check_gradients(
    id: &str,
    fixture: &Value,
    network: &Network,
    state: &State,
    before: &BTreeMap<String, Vec<f32>>,
    rate: f64,
) {
    for (name, after) in values_by_name(network, state) {
        let Some(expected) = fixture["parameters"].get(&name) else { continue };
        let pairs = before[&name].iter().zip(&after);
        let gradient: Vec<f64> = pairs.map(|(&old, &new)| (f64::from(old) - f64::from(new)) / rate).collect();
        let found: f64 = gradient.iter().map(|value| value.abs()).sum();
        // A weight near one is known to 6e-8, and its gradient, from the step, to a hundred times that.
        let rounding = 1e-5 * gradient.len() as f64;
        let wanted = number(&expected["absolute"]);
        let share = 1e-3 + 10.0 * number(&fixture["fp32_gradient_error"]);
        assert!((found - wanted).abs() < share * wanted + rounding, "{id}, {name}: {found} for {wanted}");
        for (value, first) in gradient.iter().zip(expected["first"].as_array().unwrap()) {
            assert!(
                (value - number(first)).abs() < share * (number(first).abs() + wanted / gradient.len() as f64) + 3e-5,
                "{id}, {name}: {value} for {first}"
            );
        }
    }
}
