//! FedHybrid (SenSys 2024): its tables and figures on one device. What needs a federation of them says so.

mod federation;
mod figure11;
mod figure12;
mod figure18;
mod figure19;
mod figure1c;
pub(crate) mod figure2;
mod figure20;
mod figure21;
mod figure4;
mod figure5;
mod figure7;
mod section5_5;
pub(crate) mod setting;
pub(crate) mod table1;

use crate::reproduce::Artefact;

const S22: &[&str] = &["galaxy-s22"];
const OP10: &[&str] = &["oneplus-10-pro"];
const NOTE10: &[&str] = &["redmi-note10"];
const TWO: &[&str] = &["galaxy-s22", "oneplus-10-pro"];
/// A phone, and a server that makes its plans.
const PLANNERS: &[&str] = &["galaxy-s22", "server-core"];
/// The system of the testbed: ZRAM and a swap partition.
const SYSTEM: &str = "android-testbed";
const TESTBED: &[&str] = &[SYSTEM];
const MNN_2: &[&str] = &["mnn-2"];

/// An artefact that only a federation can answer.
const fn of_a_federation(id: &'static str, about: &'static str) -> Artefact {
    Artefact {
        paper: "fedhybrid",
        id,
        about,
        devices: &[],
        stacks: &[],
        systems: &[],
        users: false,
        run: federation::run,
    }
}

/// All artefacts of the paper, in its order.
pub(super) static ARTEFACTS: &[Artefact] = &[
    Artefact {
        paper: "fedhybrid",
        id: "table1",
        about: "share of layout transformations in what is computed again",
        devices: S22,
        stacks: MNN_2,
        systems: &[],
        users: false,
        run: table1::run,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure1c",
        about: "memory in use on a phone that trains",
        devices: TWO,
        stacks: MNN_2,
        systems: TESTBED,
        users: false,
        run: figure1c::run,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure2a",
        about: "time of an iteration on two phones of one chip and different memory",
        devices: TWO,
        stacks: MNN_2,
        systems: TESTBED,
        users: false,
        run: figure2::times,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure2b",
        about: "where the time of a thread goes while pages are reclaimed",
        devices: TWO,
        stacks: MNN_2,
        systems: TESTBED,
        users: false,
        run: figure2::states,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure2c",
        about: "pages that are evicted and read again",
        devices: TWO,
        stacks: MNN_2,
        systems: TESTBED,
        users: false,
        run: figure2::pages,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure4a",
        about: "latency of a file of 128 MB by the core that reads or writes it",
        devices: S22,
        stacks: &[],
        systems: TESTBED,
        users: false,
        run: figure4::cores,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure4b",
        about: "the same by the apps in the background",
        devices: S22,
        stacks: &[],
        systems: TESTBED,
        users: false,
        run: figure4::apps,
    },
    Artefact {
        paper: "fedhybrid",
        id: "section4.3",
        about: "rates of the flash storage",
        devices: S22,
        stacks: &[],
        systems: TESTBED,
        users: false,
        run: figure4::rates,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure5a",
        about: "time under Melon by its memory budget, Galaxy S22",
        devices: S22,
        stacks: MNN_2,
        systems: &[],
        users: false,
        run: figure5::s22,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure5b",
        about: "the same on the Redmi Note 10",
        devices: NOTE10,
        stacks: MNN_2,
        systems: &[],
        users: false,
        run: figure5::note10,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure7",
        about: "memory saved per second by technique, twelve tensors of MobileNetV2",
        devices: S22,
        stacks: MNN_2,
        systems: &[],
        users: false,
        run: figure7::run,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure11a",
        about: "lengths of sessions, user by user",
        devices: &[],
        stacks: &[],
        systems: &[],
        users: true,
        run: figure11::sessions,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure11b",
        about: "apps of a session",
        devices: &[],
        stacks: &[],
        systems: &[],
        users: true,
        run: figure11::apps,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure12",
        about: "memory in use as apps are launched and switched",
        devices: S22,
        stacks: &[],
        systems: TESTBED,
        users: true,
        run: figure12::run,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure18",
        about: "the local training engine, part by part",
        devices: S22,
        stacks: MNN_2,
        systems: TESTBED,
        users: true,
        run: figure18::run,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure19a",
        about: "available memory and the predicted budget over a trace",
        devices: S22,
        stacks: MNN_2,
        systems: TESTBED,
        users: true,
        run: figure19::budgets,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure19b",
        about: "time and page faults under three rules for the budget, thirty traces",
        devices: S22,
        stacks: MNN_2,
        systems: TESTBED,
        users: true,
        run: figure19::rules,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure20a",
        about: "time over the memory budget, six policies",
        devices: S22,
        stacks: MNN_2,
        systems: TESTBED,
        users: true,
        run: figure20::budgets,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure20c",
        about: "what new plans cost",
        devices: PLANNERS,
        stacks: MNN_2,
        systems: &[],
        users: false,
        run: figure20::regeneration,
    },
    Artefact {
        paper: "fedhybrid",
        id: "figure21",
        about: "energy over the memory budget against training without any",
        devices: OP10,
        stacks: MNN_2,
        systems: &[],
        users: false,
        run: figure21::run,
    },
    Artefact {
        paper: "fedhybrid",
        id: "section5.5",
        about: "what the budget predictor takes of the CPU",
        devices: &[],
        stacks: &[],
        systems: &[],
        users: false,
        run: section5_5::run,
    },
    of_a_federation("figure1", "accuracy lost where phones without enough memory are left out"),
    of_a_federation("section2.1", "clients left out, and the length of a round"),
    of_a_federation("figure3", "accuracy and time with memory saving in a federation"),
    of_a_federation("table3", "time to accuracy against other federations"),
    of_a_federation("table4", "time to accuracy against other memory saving"),
    of_a_federation("figure17", "a federation without one of the designs"),
    of_a_federation("figure20b", "plans for many clients at once"),
];
