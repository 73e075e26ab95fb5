//! What DAF's artefacts share: the networks as the readings declare them, the methods, and how one is run.

use haversack_training::{AllocatorKind, Record};

use crate::artefacts::prelude::*;

/// The board that most of the paper's numbers were taken on.
pub(super) const BOARD: &str = "jetson-agx-xavier";
/// The platforms of section 4.1.
pub(super) const PLATFORMS: &[&str] = &["jetson-agx-orin", BOARD, "iqoo-neo3", "redmagic-7"];
/// The stacks of the platforms.
pub(super) const STACKS: &[&str] = &["pytorch-cuda", "sage-opencl"];

/// What accuracy rows answer.
pub(super) const ACCURACY: &str = "accuracy: measured once training runs on data";

/// An artefact on the board.
pub(super) const fn artefact(id: &'static str, about: &'static str, run: Run) -> Artefact {
    Artefact { devices: &[BOARD], stacks: &["pytorch-cuda"], ..Artefact::new("daf", id, about, run) }
}

/// An artefact on several platforms.
pub(super) const fn on_platforms(id: &'static str, about: &'static str, run: Run) -> Artefact {
    Artefact { devices: PLATFORMS, stacks: STACKS, ..artefact(id, about, run) }
}

/// A network of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// ResNet-18 on images of 32 by 32.
    ResNetCifar,
    /// ResNet-18 on images of 224 by 224.
    ResNetImageNet,
    /// RoBERTa-base with low-rank adapters.
    Roberta,
    /// GPT-2 medium with low-rank adapters.
    Gpt2,
}

impl Network {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::ResNetCifar, Self::ResNetImageNet, Self::Roberta, Self::Gpt2];

    /// Its name for people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ResNetCifar => "ResNet-18",
            Self::ResNetImageNet => "ResNet-18, ImageNet",
            Self::Roberta => "RoBERTa-base",
            Self::Gpt2 => "GPT-2 medium",
        }
    }

    /// Its model.
    pub(super) const fn model(self) -> &'static str {
        match self {
            Self::ResNetCifar => "resnet18-cifar",
            Self::ResNetImageNet => "resnet18",
            Self::Roberta => "roberta-base-lora",
            Self::Gpt2 => "gpt2-medium-lora",
        }
    }
}

/// The data sets of table 1, as the reference names them, for people, and what is trained on them.
pub(super) const SUBJECTS: [(&str, &str, Network); 8] = [
    ("resnet18-cifar10", "CIFAR-10", Network::ResNetCifar),
    ("resnet18-cifar100", "CIFAR-100", Network::ResNetCifar),
    ("resnet18-imagenet", "ImageNet", Network::ResNetImageNet),
    ("roberta-base-stsb", "STSB", Network::Roberta),
    ("roberta-base-mrpc", "MRPC", Network::Roberta),
    ("roberta-base-sst2", "SST2", Network::Roberta),
    ("gpt2-medium-e2e", "E2E", Network::Gpt2),
    ("gpt2-medium-webnlg", "WebNLG", Network::Gpt2),
];

/// The methods, as the reference and the policies name them, and for people.
pub(super) const METHODS: [(&str, &str); 5] = [
    ("original", "Original"),
    ("fixed8", "Fixed 8 Bits"),
    ("elastictrainer", "ElasticTrainer"),
    ("actnn", "ActNN"),
    ("daf", "DAF"),
];

/// A scenario of `network` on `device` under PyTorch's caching allocator, with the batch and the input that the
/// readings declare for the artefact.
pub(super) fn scenario(context: &Context<'_>, device: &str, network: Network) -> Result<Scenario, ArtefactError> {
    let (input, batch) = match network {
        Network::ResNetCifar | Network::ResNetImageNet => (None, "resnet-batch"),
        Network::Roberta => (Some("roberta-tokens"), "roberta-batch"),
        Network::Gpt2 => (Some("gpt2-tokens"), "gpt2-batch"),
    };
    let mut scenario = Scenario::new(device, network.model());
    scenario.allocator = Some(AllocatorKind::Caching);
    if let Some(input) = input {
        scenario.input = Some(context.reading_text(input)?.parse()?);
    }
    scenario.batch = context.reading_number(batch)? as u64;
    Ok(scenario)
}

/// `scenario` under `method`; DAF with the bits that the readings declare.
pub(super) fn of_method(context: &Context<'_>, scenario: &Scenario, method: &str) -> Result<Scenario, ArtefactError> {
    let bits = context.reading_number("bits")?.to_string();
    let set = [("bits", bits.as_str())];
    Ok(under(scenario, method, if method == "daf" { &set } else { &[] }))
}

/// The pages of DAF's store that were in use at most.
pub(super) fn store(record: &Record) -> Bytes {
    record.arena.map_or(Bytes::ZERO, |arena| arena.stored + arena.internal)
}

/// What the paper reports as a method's memory: the whole footprint, of DAF its store alone.
pub(super) fn reported(record: &Record) -> Bytes {
    if record.arena.is_some() { store(record) } else { record.reserved }
}
