//! What Mandheling's artefacts share: phones, networks, methods, and how a batch of one is run.

use haversack_devices::{CoreSelection, Frequency};
use haversack_training::Record;

use crate::reproduce::{ArtefactError, Context};
use crate::run::Plan;
use crate::scenario::Scenario;

/// The phones of table 5, and for people.
pub(crate) const PHONES: [(&str, &str); 3] =
    [("xiaomi-11-pro", "Xiaomi 11 Pro"), ("xiaomi-10", "Xiaomi 10"), ("redmi-note9-pro", "Redmi Note9 Pro")];

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
pub(crate) struct Network {
    /// As the reference's table 6 names it: network and data set.
    pub(crate) id: (&'static str, &'static str),
    /// For people.
    pub(crate) name: &'static str,
    /// Its model.
    pub(crate) model: &'static str,
}

/// The networks of table 6.
pub(crate) const NETWORKS: [Network; 6] = [
    Network { id: ("vgg11", "cifar10"), name: "VGG-11", model: "vgg11-cifar" },
    Network { id: ("vgg16", "cifar10"), name: "VGG-16", model: "vgg16-cifar" },
    Network { id: ("vgg19", "imagenet"), name: "VGG-19", model: "vgg19" },
    Network { id: ("resnet34", "cifar10"), name: "ResNet-34", model: "resnet34-cifar" },
    Network { id: ("resnet18", "imagenet"), name: "ResNet-18", model: "resnet18" },
    Network { id: ("inceptionv3", "cifar10"), name: "InceptionV3", model: "inceptionv3" },
];

impl Network {
    /// The network of table 6 called `id`, e.g. `vgg16`.
    pub(crate) fn called(id: &str) -> Result<Self, ArtefactError> {
        let found = NETWORKS.iter().find(|network| network.id.0 == id);
        found.copied().ok_or_else(|| anyhow::anyhow!("table 6 has no network `{id}`"))
    }
}

/// A scenario of `network` on `phone` under `method`: the batch, the input and the frequency that the readings declare
/// for the artefact.
pub(crate) fn scenario(
    context: &Context<'_>,
    phone: &str,
    network: Network,
    method: &str,
) -> Result<Scenario, ArtefactError> {
    let mut scenario = Scenario::new(phone, network.model);
    method.clone_into(&mut scenario.policy);
    scenario.batch = context.reading_number("batch")? as u64;
    scenario.frequency = context.reading_text("frequency")?.parse()?;
    if network.model == "inceptionv3" {
        scenario.input = Some(context.reading_text("inception-input")?.parse()?);
    }
    Ok(scenario)
}

/// `scenario` with parameters of its policy.
pub(crate) fn with(scenario: &Scenario, set: &[(&str, &str)]) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.set.extend(set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    scenario
}

/// `scenario` on `cores` at `frequency`.
pub(crate) fn on(scenario: &Scenario, cores: CoreSelection, frequency: Frequency) -> Scenario {
    Scenario { cores: Some(cores), frequency, ..scenario.clone() }
}

/// Runs `scenario`.
pub(crate) fn run(context: &Context<'_>, scenario: &Scenario) -> Result<Record, ArtefactError> {
    Ok(Plan::new(scenario, context.cache)?.run()?)
}
