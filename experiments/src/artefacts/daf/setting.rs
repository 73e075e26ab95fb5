//! Shared by DAF's artefacts: the declared networks, the methods, and how to run one.

use haversack_training::AllocatorKind;

use super::bits;
use crate::artefacts::prelude::*;
use crate::scenario::{Key, Literal, Origin};

/// The kinds of stand-ins.
pub(super) const KINDS: [&str; 2] = ["images", "tokens"];
/// The board that most of the paper's numbers were taken on.
pub(super) const BOARD: &str = "jetson-agx-xavier";
/// The platforms of section 4.1.
pub(super) const PLATFORMS: &[&str] = &["jetson-agx-orin", BOARD, "iqoo-neo3", "redmagic-7"];
/// A network of the paper.
#[derive(Clone, Copy, Debug)]
pub(super) struct DafNetwork {
    /// Its display name.
    pub(super) name: &'static str,
    /// Its model.
    pub(super) model: &'static str,
    /// The readings of its input, if it is not the model's own, and of its batch.
    input: Option<&'static str>,
    batch: &'static str,
}

/// All networks: ResNet-18 on images of 32 by 32 and of 224 by 224, the others with low-rank adapters.
pub(super) const NETWORKS: [DafNetwork; 4] = [RESNET_CIFAR, RESNET_IMAGENET, ROBERTA, GPT2];
pub(super) const RESNET_CIFAR: DafNetwork =
    DafNetwork { name: "ResNet-18", model: "resnet18-cifar", input: None, batch: "resnet-batch" };
pub(super) const RESNET_IMAGENET: DafNetwork =
    DafNetwork { name: "ResNet-18, ImageNet", model: "resnet18", ..RESNET_CIFAR };
pub(super) const ROBERTA: DafNetwork = DafNetwork {
    name: "RoBERTa-base",
    model: "roberta-base-lora",
    input: Some("roberta-tokens"),
    batch: "roberta-batch",
};
pub(super) const GPT2: DafNetwork =
    DafNetwork { name: "GPT-2 medium", model: "gpt2-medium-lora", input: Some("gpt2-tokens"), batch: "gpt2-batch" };

/// The methods: the name in the reference and of the policy, and the display name.
pub(super) const METHODS: [(&str, &str); 5] = [
    ("original", "Original"),
    ("fixed8", "Fixed 8 Bits"),
    ("elastictrainer", "ElasticTrainer"),
    ("actnn", "ActNN"),
    ("daf", "DAF"),
];

/// Sets how a network of texts computes attention, by its reading.
pub(super) fn declare_attention(context: &Context<'_>, network: DafNetwork, scenario: &mut Scenario) -> Result<()> {
    if network.input.is_some() {
        let attention = Literal::text(context.reading_text("attention")?);
        scenario.set(Key::Attention, &attention, Origin::default())?;
    }
    Ok(())
}

/// A scenario of `network` on `device` under PyTorch's caching allocator, with the batch and the input that the
/// readings declare for the artefact.
pub(super) fn scenario(context: &Context<'_>, device: &str, network: DafNetwork) -> Result<Scenario> {
    let mut scenario = Scenario::new(device, network.model);
    scenario.allocator = Some(AllocatorKind::Caching);
    declare_attention(context, network, &mut scenario)?;
    if let Some(input) = network.input {
        scenario.input = Some(context.reading_text(input)?.parse()?);
    }
    scenario.batch = context.reading_number(network.batch)? as u64;
    Ok(scenario)
}

/// The criterion by which DAF distributes bits where nothing was measured: the number of a tensor's values, which is
/// roughly proportional to the measured sensitivities (`experiments/measured/comparison-sensitivity.toml`). By depth, a
/// budget would take bits from the maps of early layers, which are the largest and whose errors matter just as much.
pub(super) const IMPORTANCE: (&str, &str) = ("importance", "stored");

/// `scenario` under `method`; DAF with the bits that were measured on stand-ins of `kind`.
pub(super) fn of_method(context: &Context<'_>, kind: &str, scenario: &Scenario, method: &str) -> Result<Scenario> {
    let bits = if method == "daf" { bits::parameters(context, kind)? } else { Vec::new() };
    let mut set: Vec<(&str, &str)> = bits.iter().map(|(name, bits)| (name.as_str(), bits.as_str())).collect();
    if method == "daf" {
        set.push(IMPORTANCE);
    }
    Ok(under(scenario, method, &set))
}

/// The peak of pages in use in DAF's store.
pub(super) fn store(record: &Record) -> Bytes {
    record.arena.map_or(Bytes::ZERO, |arena| arena.stored + arena.internal)
}

/// The memory that the paper reports for a method: the whole footprint, but for DAF only its store.
pub(super) fn reported(record: &Record) -> Bytes {
    if record.arena.is_some() { store(record) } else { record.reserved }
}
