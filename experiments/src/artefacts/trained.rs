//! Networks that are trained here for measurements, and the saved tensors of a mini-batch.

mod maps;
mod parts;

use std::collections::BTreeSet;

use haversack_numerics::{Memory, Meter, Pass, Plain, Program, ProgramError, Rule, State};
pub(super) use haversack_workloads::MapKind;
use haversack_workloads::data::{LoadOptions, Part, epoch_order, load};
use haversack_workloads::onnx::Reading;
use haversack_workloads::{Attention, DataSet, Node, Optimiser};
use indexmap::IndexMap;

pub(super) use self::maps::SavedMap;
pub(super) use self::parts::SplitGradient;
use crate::artefacts::prelude::*;
use crate::measured::Measured;
use crate::scenario::workload::network;
use crate::scenario::{Literal, Origin};
use crate::train::{input_of, mini_batch, program};
use crate::{Key, interrupt};

/// The device whose eager graph is trained, with the scores of attention in memory; nothing measured depends on its speed.
const DEVICE: &str = "jetson-agx-xavier";

/// The training of a network before measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    pub(super) model: &'static str,
    /// The network's display name.
    pub(super) name: &'static str,
    pub(super) data: &'static str,
    policy: &'static str,
    device: &'static str,
    optimiser: Optimiser,
    rate: f32,
    /// The mini-batch size.
    batch: usize,
    epochs: u64,
}

/// All of them, the fastest first.
pub(super) const RECIPES: [Recipe; 3] = [
    Recipe { epochs: 3, ..of("lenet5", "LeNet-5", "glyphs") },
    Recipe {
        optimiser: Optimiser::Adam,
        rate: 0.001,
        batch: 32,
        epochs: 12,
        ..of("transformer2-lora", "transformer", "phrases")
    },
    Recipe { epochs: 3, ..of("resnet8-cifar", "ResNet-8", "glyphs") },
];

/// LeNet-5 in integers, by NITI.
pub(super) const IN_INTEGERS: Recipe = Recipe {
    policy: "mnn-int8",
    device: "xiaomi-11-pro",
    optimiser: Optimiser::Sgd,
    rate: 0.0625,
    epochs: 2,
    ..of("lenet5", "LeNet-5", "glyphs")
};

const fn of(model: &'static str, name: &'static str, data: &'static str) -> Recipe {
    let (policy, device) = ("original", DEVICE);
    Recipe { model, name, data, policy, device, optimiser: Optimiser::Momentum, rate: 0.03, batch: 64, epochs: 0 }
}

/// A network that has been trained.
pub(super) struct Trained {
    pub(super) plan: Plan,
    pub(super) program: Program,
    pub(super) state: State,
    data: Arc<DataSet>,
    recipe: Recipe,
    /// The seed of masks and rounding.
    pub(super) seed: u64,
}

impl Trained {
    /// Trains by `recipe` with `seed`, once for all artefacts.
    ///
    /// # Errors
    /// Ctrl-C, and errors of training.
    pub(super) fn of(context: &Context<'_>, recipe: Recipe, seed: u64) -> Result<Arc<Self>> {
        let key = format!("trained {} {} {seed}", recipe.model, recipe.policy);
        context.once(key, || {
            let mut trained = Self::untrained(context, recipe, seed)?;
            for epoch in 0..recipe.epochs {
                trained.learn(epoch)?;
            }
            Ok(trained)
        })
    }

    /// The network with its initial weights.
    pub(super) fn untrained(context: &Context<'_>, recipe: Recipe, seed: u64) -> Result<Self> {
        let data = context.once(format!("data {}", recipe.data), || Ok(load(recipe.data, &LoadOptions::default())?))?;
        let mut scenario = Scenario {
            batch: recipe.batch as u64,
            optimizer: recipe.optimiser,
            classes: Some(data.number_of_classes as u64),
            policy: recipe.policy.to_owned(),
            attention: Some(Attention::Math),
            ..Scenario::new(recipe.device, recipe.model)
        };
        scenario.set(Key::Input, &Literal::text(input_of(&data.form)), Origin::Program)?;
        let plan = context.plan(&scenario)?;
        let network = network(recipe.model, &Reading { values: true, ..scenario.reading() }, scenario.classes)?;
        let program = program(&network, &plan).map_err(anyhow::Error::msg)?;
        let state = program.initial_state(&plan.graph, seed, &Meter::default())?;
        Ok(Self { plan, program, state, data, recipe, seed })
    }

    /// One epoch.
    fn learn(&mut self, epoch: u64) -> Result<()> {
        let meter = Meter::default();
        let batches = self.batches(epoch);
        let first = epoch * batches.len() as u64;
        for (update, indices) in (first..).zip(batches) {
            ensure!(!interrupt::came(), "stopped by Ctrl-C");
            let batch = mini_batch(&self.data, Part::Train, &indices);
            let pass = self.pass(update);
            let loss =
                Plain { program: &self.program, graph: &self.plan.graph, batch: &batch, pass: &pass, meter: &meter }
                    .train(&mut self.state)?;
            ensure!(loss.mean.is_finite(), "{}: the loss is not finite at update {update}", self.recipe.model);
        }
        Ok(())
    }

    /// The full mini-batches of an epoch, as indices in the train part.
    fn batches(&self, epoch: u64) -> Vec<Vec<usize>> {
        let order = epoch_order(self.data.train.len(), self.seed, epoch);
        order.chunks_exact(self.recipe.batch).map(<[usize]>::to_vec).collect()
    }

    fn pass(&self, update: u64) -> Pass {
        Pass::whole(self.recipe.batch, update, self.seed, self.rule())
    }

    /// The rule for updating weights.
    pub(super) const fn rule(&self) -> Rule {
        let Recipe { optimiser, rate, .. } = self.recipe;
        Rule { optimiser, rate, decay: 0.0 }
    }

    /// The number of updates so far.
    pub(super) fn updates(&self) -> u64 {
        self.recipe.epochs * self.batches(0).len() as u64
    }

    /// The next mini-batches: those of the epoch after the last, which it has not been trained on yet.
    pub(super) fn next_batches(&self) -> impl Iterator<Item = haversack_numerics::batch::MiniBatch> + '_ {
        let batches = self.batches(self.recipe.epochs).into_iter();
        batches.map(|indices| mini_batch(&self.data, Part::Train, &indices))
    }

    /// Runs forward and backward on each of the next `batches` without updating weights; `before` is called for every
    /// node before it is computed.
    fn watch(
        &self,
        batches: usize,
        mut before: impl FnMut(&Node, &mut dyn Memory) -> Result<(), ProgramError>,
    ) -> Result<()> {
        for batch in self.next_batches().take(batches) {
            let (mut state, pass, meter) = (self.state.clone(), self.pass(self.updates()), Meter::default());
            Plain { program: &self.program, graph: &self.plan.graph, batch: &batch, pass: &pass, meter: &meter }
                .train_watched(&mut state, &mut before)?;
        }
        Ok(())
    }
}

/// Measurements of a trained network: values by id, with units.
type Values = fn(&Trained) -> Result<Vec<(String, &'static str, f64)>>;

/// The measurements of these networks for the artefact, and an outcome that describes them.
///
/// # Errors
/// As [`measure`]; a network for which nothing is committed.
pub(super) fn measured(
    context: &Context<'_>,
    about: &str,
    recipes: &[Recipe],
    each: Values,
) -> Result<(Arc<Measured>, Outcome)> {
    let measured = context.measured(&context.artefact.place(), || measure(context, about, recipes, each))?;
    let mut outcome = Outcome::default();
    outcome.words("stand-ins", measured.trained_on());
    Ok((measured, outcome))
}

/// The values that `measure` finds for every recipe with each seed, by id, with their units.
///
/// # Errors
/// Errors of training or of `measure`; a set of ids that differs between seeds.
fn measure(context: &Context<'_>, about: &str, recipes: &[Recipe], measure: Values) -> Result<Measured> {
    let networks: Vec<&str> = recipes.iter().map(|recipe| recipe.model).collect();
    let data: BTreeSet<&str> = recipes.iter().map(|recipe| recipe.data).collect();
    let data: Vec<&str> = data.into_iter().collect();
    let mut measured = context.measuring(about, &data, &networks);
    for &recipe in recipes {
        let mut all: IndexMap<String, (&'static str, Vec<f64>)> = IndexMap::new();
        for seed in context.seeds() {
            for (id, unit, value) in measure(Trained::of(context, recipe, seed)?.as_ref())? {
                all.entry(id).or_insert((unit, Vec::new())).1.push(value);
            }
        }
        for (id, (unit, each)) in all {
            ensure!(each.len() == measured.seeds.len(), "{id} of {} has no value with some seed", recipe.model);
            measured.add(format!("{}/{id}", recipe.model), unit, &each);
        }
    }
    Ok(measured)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::papers::readings::Readings;
    use crate::papers::reference::Reference;

    /// The network that the artefact at `place` measures with `--full`, trained again with one seed.
    pub(in crate::artefacts) fn trained_again(place: &str, recipe: Recipe, seed: u64) -> Arc<Trained> {
        let artefact = crate::artefacts::ARTEFACTS.iter().find(|artefact| artefact.place() == place).unwrap();
        let (reference, readings, cache) = (Reference::load().unwrap(), Readings::default(), Cache::new());
        let context = Context {
            seed,
            learn: true,
            full: true,
            artefact,
            rows: Vec::new(),
            reference: &reference,
            readings: &readings,
            cache: &cache,
            trace: None,
            kept: &Default::default(),
            learned: &Default::default(),
        };
        Trained::of(&context, recipe, seed).unwrap()
    }
}
