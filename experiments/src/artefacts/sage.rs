//! Sage (Gim and Ko, MobiSys 2022): its table, its figures and the numbers of its sections.

mod figure10;
mod figure11;
mod figure12;
mod figure13;
mod figure2;
mod figure8;
mod figure9;
mod introduction;
mod null;
mod section3_2_3;
mod section3_4_3;
mod section5;
mod setting;
mod table1;
mod throughput;

use crate::reproduce::Artefact;

/// All artefacts of the paper, in its order.
pub(super) static ARTEFACTS: &[&Artefact] = &[
    &introduction::ARTEFACT,
    &figure2::ARTEFACT,
    &section3_2_3::ARTEFACT,
    &section3_4_3::ARTEFACT,
    &table1::ARTEFACT,
    &figure8::ARTEFACT,
    &figure9::BOTH,
    &figure9::SINGLE_CORE,
    &figure9::INFINITE_CORES,
    &figure10::ARTEFACT,
    &figure11::ARTEFACT,
    &figure12::ARTEFACT,
    &figure13::ARTEFACT,
    &section5::ARTEFACT,
];
