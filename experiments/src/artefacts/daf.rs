//! DAF (Liu et al., MobiSys 2025): its tables, its figures and the numbers of its sections.

mod accuracy;
mod bits;
mod equal_time;
mod figure10;
mod figure11;
mod figure12;
mod figure13;
mod figure14;
mod figure1a;
mod figure1b;
mod figure2a;
mod figure8;
mod figure9;
mod headlines;
mod null;
mod reductions;
mod section3_2;
mod setting;
mod table1;
pub(crate) mod table2;
mod table3;

use crate::reproduce::Artefact;

/// All artefacts of the paper, in its order.
pub(super) static ARTEFACTS: &[&Artefact] = &[
    &headlines::ARTEFACT,
    &figure1a::ARTEFACT,
    &figure1b::ARTEFACT,
    &figure2a::ARTEFACT,
    &section3_2::ARTEFACT,
    &table1::ARTEFACT,
    &bits::ARTEFACT,
    &table2::ARTEFACT,
    &table3::ARTEFACT,
    &figure8::ARTEFACT,
    &figure9::ARTEFACT,
    &figure10::ARTEFACT,
    &figure11::ARTEFACT,
    &figure12::ARTEFACT,
    &figure13::ARTEFACT,
    &figure14::ARTEFACT,
];
