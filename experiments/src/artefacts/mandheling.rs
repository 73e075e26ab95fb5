//! Mandheling (Xu et al., MobiCom 2022): its tables, its figures and the numbers of its sections.

pub(crate) mod figure10;
mod figure11;
mod figure1a;
mod figure4b;
mod figure5;
mod figure7;
mod figure9;
mod section1;
mod section2_3;
pub(crate) mod section3;
pub(crate) mod setting;
pub(crate) mod table3;
pub(crate) mod table4;
mod table6;
pub(crate) mod table7;
pub(crate) mod table8;

use crate::reproduce::Artefact;

const XIAOMI_10: &[&str] = &["xiaomi-10"];
const MNN: &[&str] = &["mnn"];
const MANDHELING: &[&str] = &["mandheling"];
const XIAOMI_11_PRO: &[&str] = &["xiaomi-11-pro"];
/// The phones of table 5.
const PHONES: &[&str] = &["xiaomi-11-pro", "xiaomi-10", "redmi-note9-pro"];
const ENGINES: &[&str] = &["mnn", "mandheling"];
const ALL_ENGINES: &[&str] = &["tflite", "mnn", "mandheling"];

/// All artefacts of the paper, in its order.
pub(super) static ARTEFACTS: &[Artefact] = &[
    Artefact {
        paper: "mandheling",
        id: "section1",
        about: "memory and time of a batch of ResNet-50 under a library for CPUs",
        devices: XIAOMI_10,
        stacks: MNN,
        systems: &[],
        users: false,
        run: section1::run,
    },
    Artefact {
        paper: "mandheling",
        id: "figure1a",
        about: "how much longer training takes than inference",
        devices: XIAOMI_10,
        stacks: MNN,
        systems: &[],
        users: false,
        run: figure1a::run,
    },
    Artefact {
        paper: "mandheling",
        id: "section2.3",
        about: "operations of eight bits that one cycle of the DSP holds",
        devices: XIAOMI_10,
        stacks: &[],
        systems: &[],
        users: false,
        run: section2_3::run,
    },
    Artefact {
        paper: "mandheling",
        id: "table3",
        about: "latency of operators that do not suit the DSP",
        devices: XIAOMI_10,
        stacks: MANDHELING,
        systems: &[],
        users: false,
        run: table3::run,
    },
    Artefact {
        paper: "mandheling",
        id: "section3.3",
        about: "a crossing between the CPU and the DSP",
        devices: XIAOMI_10,
        stacks: &["mandheling"],
        systems: &[],
        users: false,
        run: section3::switching,
    },
    Artefact {
        paper: "mandheling",
        id: "figure4b",
        about: "how a scale factor changes while VGG-11 trains",
        devices: &[],
        stacks: &[],
        systems: &[],
        users: false,
        run: figure4b::run,
    },
    Artefact {
        paper: "mandheling",
        id: "section3.4",
        about: "rescaling in every batch against rescaling when it is due",
        devices: XIAOMI_10,
        stacks: MANDHELING,
        systems: &[],
        users: false,
        run: section3::rescaling,
    },
    Artefact {
        paper: "mandheling",
        id: "table4",
        about: "latency of a convolution on the DSP over batches and sizes of its map",
        devices: XIAOMI_10,
        stacks: MANDHELING,
        systems: &[],
        users: false,
        run: table4::run,
    },
    Artefact {
        paper: "mandheling",
        id: "section3.6",
        about: "what engines spend on preparing a graph for every batch",
        devices: &["xiaomi-11-pro"],
        stacks: &["mnn", "tflite"],
        systems: &[],
        users: false,
        run: section3::preparations,
    },
    Artefact {
        paper: "mandheling",
        id: "table6",
        about: "operations and convolutions of the six networks",
        devices: &[],
        stacks: &[],
        systems: &[],
        users: false,
        run: table6::run,
    },
    Artefact {
        paper: "mandheling",
        id: "figure5",
        about: "time of a batch: six networks, three phones, five methods",
        devices: PHONES,
        stacks: ALL_ENGINES,
        systems: &[],
        users: false,
        run: figure5::run,
    },
    Artefact {
        paper: "mandheling",
        id: "figure6",
        about: "energy of a batch: six networks, three phones, five methods",
        devices: PHONES,
        stacks: ALL_ENGINES,
        systems: &[],
        users: false,
        run: figure5::energy,
    },
    Artefact {
        paper: "mandheling",
        id: "figure7",
        about: "time and energy of a batch over batch sizes",
        devices: XIAOMI_11_PRO,
        stacks: ALL_ENGINES,
        systems: &[],
        users: false,
        run: figure7::run,
    },
    Artefact {
        paper: "mandheling",
        id: "table7",
        about: "time and energy of a batch, by cores and frequency",
        devices: XIAOMI_11_PRO,
        stacks: ENGINES,
        systems: &[],
        users: false,
        run: table7::run,
    },
    Artefact {
        paper: "mandheling",
        id: "table8",
        about: "time and energy of training to convergence",
        devices: XIAOMI_11_PRO,
        stacks: ENGINES,
        systems: &[],
        users: false,
        run: table8::run,
    },
    Artefact {
        paper: "mandheling",
        id: "figure9",
        about: "temperature and frequency while a phone trains",
        devices: XIAOMI_10,
        stacks: ENGINES,
        systems: &[],
        users: false,
        run: figure9::run,
    },
    Artefact {
        paper: "mandheling",
        id: "figure10",
        about: "time of a batch as the four techniques are added",
        devices: XIAOMI_10,
        stacks: MANDHELING,
        systems: &[],
        users: false,
        run: figure10::run,
    },
    Artefact {
        paper: "mandheling",
        id: "figure11",
        about: "time and energy of a batch under three algorithms of mixed precision",
        devices: XIAOMI_11_PRO,
        stacks: ENGINES,
        systems: &[],
        users: false,
        run: figure11::run,
    },
];
