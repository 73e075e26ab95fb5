//! What Mandheling's artefacts share: phones, networks, methods, and what a batch of one takes.

use haversack_devices::Frequency;
use haversack_devices::units::Joules;

use crate::artefacts::prelude::*;

/// The phone of tables 7 and 8, and that of tables 3 and 4.
pub(crate) const XIAOMI_11_PRO: &str = "xiaomi-11-pro";
pub(crate) const XIAOMI_10: &str = "xiaomi-10";

/// The phones of table 5, and for people.
pub(crate) const PHONES: [(&str, &str); 3] =
    [(XIAOMI_11_PRO, "Xiaomi 11 Pro"), (XIAOMI_10, "Xiaomi 10"), ("redmi-note9-pro", "Redmi Note9 Pro")];

/// The methods of section 4.1 as the policies name them, and for people.
pub(crate) const METHODS: [(&str, &str); 5] = [
    ("tflite-fp32", "TFLite-FP32"),
    ("mnn-fp32", "MNN-FP32"),
    ("mnn-int8", "MNN-INT8"),
    ("mnn-fp32-gpu", "MNN-FP32-GPU"),
    ("mandheling", "Mandheling"),
];

/// A network of table 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MandhelingNetwork {
    /// As the reference's table 6 names it: network and data set.
    pub(crate) id: (&'static str, &'static str),
    /// For people.
    pub(crate) name: &'static str,
    /// Its model.
    pub(crate) model: &'static str,
}

/// The networks of table 6.
pub(crate) const NETWORKS: [MandhelingNetwork; 6] = [
    MandhelingNetwork { id: ("vgg11", "cifar10"), name: "VGG-11", model: "vgg11-cifar" },
    MandhelingNetwork { id: ("vgg16", "cifar10"), name: "VGG-16", model: "vgg16-cifar" },
    MandhelingNetwork { id: ("vgg19", "imagenet"), name: "VGG-19", model: "vgg19" },
    MandhelingNetwork { id: ("resnet34", "cifar10"), name: "ResNet-34", model: "resnet34-cifar" },
    MandhelingNetwork { id: ("resnet18", "imagenet"), name: "ResNet-18", model: "resnet18" },
    MandhelingNetwork { id: ("inceptionv3", "cifar10"), name: "InceptionV3", model: "inceptionv3" },
];

impl MandhelingNetwork {
    /// The network of table 6 called `id`, e.g. `vgg16`.
    pub(crate) fn called(id: &str) -> Result<Self> {
        let found = NETWORKS.iter().find(|network| network.id.0 == id);
        found.copied().with_context(|| format!("table 6 has no network `{id}`"))
    }
}

/// A scenario of `network` on `phone` under `method`: the batch, the input and the frequency that the readings declare
/// for the artefact.
pub(crate) fn scenario(
    context: &Context<'_>,
    phone: &str,
    network: MandhelingNetwork,
    method: &str,
) -> Result<Scenario> {
    scenario_of(context, phone, network, method, context.reading_number("batch")? as u64)
}

/// The same with a batch of `samples`.
pub(crate) fn scenario_of(
    context: &Context<'_>,
    phone: &str,
    network: MandhelingNetwork,
    method: &str,
    samples: u64,
) -> Result<Scenario> {
    let mut scenario = trained(phone, network.model, method, samples);
    scenario.frequency = context.reading_text("frequency")?.parse()?;
    if network.model == "inceptionv3" {
        scenario.input = Some(context.reading_text("inception-input")?.parse()?);
    }
    Ok(scenario)
}

/// What a batch takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BatchCost {
    pub(crate) time: Nanos,
    pub(crate) energy: Joules,
}

impl BatchCost {
    /// How many times as fast as `other` it is.
    pub(crate) fn speed_up(self, other: Self) -> f64 {
        other.time.seconds() / self.time.seconds()
    }

    /// How many times as much energy as it `other` takes.
    pub(crate) fn energy_reduction(self, other: Self) -> f64 {
        other.energy.0 / self.energy.0
    }
}

/// Batches by what they are of: three labels each, as tables show them.
#[derive(Default)]
pub(super) struct Batches(Vec<([String; 3], Option<BatchCost>)>);

impl Batches {
    /// Keeps a batch; `None` if it is out of memory.
    pub(super) fn put(&mut self, labels: [&str; 3], batch: Option<BatchCost>) {
        self.0.push((labels.map(str::to_owned), batch));
    }

    /// The batch of these labels, if it fits.
    pub(super) fn of(&self, labels: [&str; 3]) -> Option<BatchCost> {
        self.0.iter().find(|(known, _)| *known == labels)?.1
    }

    /// Labels and batches, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = ([&str; 3], Option<BatchCost>)> {
        self.0.iter().map(|(labels, batch)| (labels.each_ref().map(String::as_str), *batch))
    }

    /// An outcome with the data: three columns under the header `labels`, the time and the energy.
    pub(super) fn data(&self, labels: &str) -> Result<Outcome> {
        let mut outcome = Outcome::of(&format!("{labels},time_s,energy_j"));
        for (labels, batch) in self.iter() {
            outcome.row((labels, QUANTITIES.map(|(.., value)| batch.map(value))))?;
        }
        Ok(outcome)
    }
}

/// What of a batch is shown: for people, the unit, and its value.
pub(crate) type BatchQuantity = (&'static str, &'static str, fn(BatchCost) -> f64);

/// What is shown of every batch.
pub(crate) const QUANTITIES: [BatchQuantity; 2] =
    [("time", "s", |batch| batch.time.seconds()), ("energy", "J", |batch| batch.energy.0)];

/// Batches that a mean is of where they differ ...
const BATCHES: u64 = 8;
/// ... and how far they are apart: together they span the longest period of a scale factor and more, so that each
/// factor has about the turns that it has on average.
const APART: u64 = 4;
/// Batches from the second of which on a governor does the same in each: its memory is much shorter than a batch.
const GOVERNED: u32 = 2;

/// The runs whose last batches `scenario` is timed by, after `warm_up` batches of training. Batches of Mandheling
/// differ by the scale factors whose turn it is; all others are alike.
pub(crate) fn timed(scenario: &Scenario, warm_up: u64) -> Vec<Scenario> {
    if scenario.policy != "mandheling" {
        return vec![scenario.clone()];
    }
    let mut settled = scenario.clone();
    if scenario.frequency == Frequency::Governor {
        settled.iterations = scenario.iterations.max(GOVERNED);
    }
    let run = |batch: u64| with(&settled, &[("warm_up", &(warm_up + batch * APART).to_string())]);
    (0..BATCHES).map(run).collect()
}

/// What a batch takes, the mean over `runs`, and the most that the framework holds in one of them; `None` if one is out
/// of memory.
pub(crate) fn mean_batch(context: &Context<'_>, runs: &[Scenario]) -> Result<Option<(BatchCost, Bytes)>> {
    let (mut sum, mut most) = (BatchCost::default(), Bytes::ZERO);
    for run in runs {
        let Some(record) = context.run_if_it_ends(run)? else { return Ok(None) };
        sum.time += record.iteration;
        sum.energy += record.energy;
        most = most.max(record.reserved);
    }
    let count = runs.len().max(1);
    let mean = BatchCost { time: Nanos(sum.time.0 / count as u64), energy: sum.energy / count as f64 };
    Ok(Some((mean, most)))
}

/// What a batch of `scenario` takes once scales have settled: the mean over those that [`timed`] names; `None` if it is
/// out of memory.
pub(crate) fn batch_if_it_fits(context: &Context<'_>, scenario: &Scenario) -> Result<Option<BatchCost>> {
    let runs = timed(scenario, context.reading_number("settled")? as u64);
    Ok(mean_batch(context, &runs)?.map(|(mean, _)| mean))
}

/// As [`batch_if_it_fits`], where it does.
pub(crate) fn batch(context: &Context<'_>, scenario: &Scenario) -> Result<BatchCost> {
    let batch = batch_if_it_fits(context, scenario)?;
    batch.with_context(|| format!("{} is out of memory under {}", scenario.model, scenario.policy))
}
