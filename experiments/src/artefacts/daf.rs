//! DAF (Liu et al., MobiSys 2025): its tables, its figures and the numbers of its sections.

mod figure10;
mod figure11;
mod figure12;
mod figure13;
mod figure1a;
mod figure2a;
mod figure8;
mod figure9;
mod reductions;
mod section3_2;
mod setting;
mod table1;
pub(crate) mod table2;
mod table3;

use crate::reproduce::Artefact;

const CUDA: &[&str] = &["pytorch-cuda"];
const BOTH: &[&str] = &["pytorch-cuda", "sage-opencl"];
const XAVIER: &[&str] = &["jetson-agx-xavier"];
/// The platforms of section 4.1.
const PLATFORMS: &[&str] = &["jetson-agx-orin", "jetson-agx-xavier", "iqoo-neo3", "redmagic-7"];

/// All artefacts of the paper, in its order.
pub(super) static ARTEFACTS: &[Artefact] = &[
    Artefact {
        paper: "daf",
        id: "abstract",
        about: "the largest reduction of memory and the largest speed-up",
        devices: PLATFORMS,
        stacks: BOTH,
        systems: &[],
        users: false,
        run: figure8::headlines,
    },
    Artefact {
        paper: "daf",
        id: "figure1a",
        about: "what the memory of RoBERTa-base's fine-tuning consists of",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: figure1a::run,
    },
    Artefact {
        paper: "daf",
        id: "figure2a",
        about: "what dynamic quantisation adds to an operation without DAF's kernels",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: figure2a::run,
    },
    Artefact {
        paper: "daf",
        id: "section3.2",
        about: "where thread-level atomics win, and where block-level ones contend",
        devices: &["iqoo-neo3", "redmagic-7", "jetson-agx-xavier", "rtx-3090"],
        stacks: BOTH,
        systems: &[],
        users: false,
        run: section3_2::run,
    },
    Artefact {
        paper: "daf",
        id: "table1",
        about: "memory of five methods on eight data sets",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: table1::run,
    },
    Artefact {
        paper: "daf",
        id: "table2",
        about: "memory and time of packing by CPU, by GPU and by both",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: table2::run,
    },
    Artefact {
        paper: "daf",
        id: "table3",
        about: "time to keep the page table by sorting and by red-black trees",
        devices: &["jetson-agx-orin", "jetson-agx-xavier", "iqoo-neo3"],
        stacks: BOTH,
        systems: &[],
        users: false,
        run: table3::run,
    },
    Artefact {
        paper: "daf",
        id: "figure8",
        about: "reduction of memory where memory alone is short",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: figure8::run,
    },
    Artefact {
        paper: "daf",
        id: "figure9",
        about: "reduction of memory over batch sizes",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: figure9::run,
    },
    Artefact {
        paper: "daf",
        id: "figure10",
        about: "speed-up where time alone is short, four platforms",
        devices: PLATFORMS,
        stacks: BOTH,
        systems: &[],
        users: false,
        run: figure10::run,
    },
    Artefact {
        paper: "daf",
        id: "figure11",
        about: "footprint and time of all methods, and where both go",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: figure11::run,
    },
    Artefact {
        paper: "daf",
        id: "figure12",
        about: "speed-up of reductions, and the crossover of block atomics over units",
        devices: &["jetson-agx-orin", "jetson-agx-xavier", "iqoo-neo3", "redmagic-7", "rtx-3090"],
        stacks: BOTH,
        systems: &[],
        users: false,
        run: figure12::run,
    },
    Artefact {
        paper: "daf",
        id: "figure13",
        about: "the arena under a budget that falls within an iteration, by its step",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: figure13::run,
    },
    Artefact {
        paper: "daf",
        id: "figure14",
        about: "energy of an iteration under all methods",
        devices: XAVIER,
        stacks: CUDA,
        systems: &[],
        users: false,
        run: figure11::energy,
    },
];
