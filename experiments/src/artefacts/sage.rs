//! Sage (Gim and Ko, MobiSys 2022): its table, its figures and the numbers of its sections.

mod figure10;
mod figure11;
mod figure12;
mod figure13;
mod figure2;
mod figure8;
mod figure9;
mod introduction;
mod section3_2_3;
mod section3_4_3;
mod section5;
mod setting;
mod table1;
mod throughput;

use crate::reproduce::Artefact;

const STACKS: &[&str] = &["sage-opencl"];
const S10: &[&str] = &["galaxy-s10"];
const PHONES: &[&str] = &["galaxy-s10", "galaxy-note20"];
const MACHINES: &[&str] = &["galaxy-s10", "galaxy-note20", "rtx-3090"];

/// All artefacts of the paper, in its order.
pub(super) static ARTEFACTS: &[Artefact] = &[
    Artefact {
        paper: "sage",
        id: "introduction",
        about: "the memory that training BERT-small takes",
        devices: S10,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: introduction::run,
    },
    Artefact {
        paper: "sage",
        id: "figure2",
        about: "memory of inference and of training at several batches, four networks",
        devices: S10,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure2::run,
    },
    Artefact {
        paper: "sage",
        id: "section3.2.3",
        about: "the time to compile ResNet-50's kernels",
        devices: &["galaxy-note20"],
        stacks: STACKS,
        systems: &[],
        users: false,
        run: section3_2_3::run,
    },
    Artefact {
        paper: "sage",
        id: "section3.4.3",
        about: "the micro-batch below which a phone's GPU is under-used",
        devices: S10,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: section3_4_3::run,
    },
    Artefact {
        paper: "sage",
        id: "table1",
        about: "nodes, memory and latency under each graph and operator optimisation",
        devices: S10,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: table1::run,
    },
    Artefact {
        paper: "sage",
        id: "figure8",
        about: "the least memory that each scheme needs, four networks",
        devices: S10,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure8::run,
    },
    Artefact {
        paper: "sage",
        id: "figure9",
        about: "whether dynamic schemes reach lower than static ones on the two extremes",
        devices: &["single-core", "infinite-cores"],
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure9::both,
    },
    Artefact {
        paper: "sage",
        id: "figure9a",
        about: "throughput against memory on a single core",
        devices: &["single-core"],
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure9::single_core,
    },
    Artefact {
        paper: "sage",
        id: "figure9b",
        about: "throughput against memory on infinitely many cores",
        devices: &["infinite-cores"],
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure9::infinite_cores,
    },
    Artefact {
        paper: "sage",
        id: "figure10",
        about: "throughput against memory on three machines, four networks",
        devices: MACHINES,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure10::run,
    },
    Artefact {
        paper: "sage",
        id: "figure11",
        about: "mean throughput of six ways to combine accumulation and checkpointing",
        devices: MACHINES,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure11::run,
    },
    Artefact {
        paper: "sage",
        id: "figure12",
        about: "memory over one iteration while the budget falls",
        devices: S10,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure12::run,
    },
    Artefact {
        paper: "sage",
        id: "figure13",
        about: "energy of an iteration against the memory budget, four networks on two phones",
        devices: PHONES,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: figure13::run,
    },
    Artefact {
        paper: "sage",
        id: "section5",
        about: "memory that half precision saves",
        devices: S10,
        stacks: STACKS,
        systems: &[],
        users: false,
        run: section5::run,
    },
];
