//! FedHybrid (SenSys 2024): its tables and figures, on one device and in federations of them.

pub(super) mod federations;
mod figure11;
mod figure12;
mod figure14;
mod figure17;
mod figure18;
mod figure18b;
mod figure19;
mod figure1c;
pub(crate) mod figure2;
mod figure20;
mod figure20b;
mod figure21;
mod figure4;
mod figure5;
mod figure7;
mod figure9;
mod memory_wall;
mod null;
mod real_users;
mod section4_4_1;
mod section5_2;
mod section5_5;
pub(crate) mod setting;
mod table1;
mod table3;

use crate::reproduce::Artefact;

/// All artefacts of the paper, in its order.
pub(super) static ARTEFACTS: &[&Artefact] = &[
    &table1::ARTEFACT,
    &figure1c::ARTEFACT,
    &figure2::FIGURE2A,
    &figure2::FIGURE2B,
    &figure2::FIGURE2C,
    &figure4::FIGURE4A,
    &figure4::FIGURE4B,
    &figure4::SECTION4_3,
    &figure5::FIGURE5A,
    &figure5::FIGURE5B,
    &figure7::ARTEFACT,
    &figure9::ARTEFACT,
    &figure11::FIGURE11A,
    &figure11::FIGURE11B,
    &figure12::ARTEFACT,
    &section4_4_1::ARTEFACT,
    &section5_2::ARTEFACT,
    &figure18::ARTEFACT,
    &figure18b::ARTEFACT,
    &figure19::FIGURE19A,
    &figure19::FIGURE19B,
    &figure20::FIGURE20A,
    &figure20::FIGURE20C,
    &figure21::ARTEFACT,
    &section5_5::ARTEFACT,
    &memory_wall::FIGURE1,
    &memory_wall::SECTION2_1,
    &memory_wall::FIGURE3,
    &table3::TABLE3,
    &table3::TABLE4,
    &figure14::ARTEFACT,
    &table3::FIGURE15,
    &table3::FIGURE16,
    &figure17::ARTEFACT,
    &figure20b::ARTEFACT,
];
