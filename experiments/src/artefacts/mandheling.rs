//! Mandheling (Xu et al., MobiCom 2022): its tables, its figures and the numbers of its sections.

mod accuracy;
mod federated;
pub(crate) mod figure10;
mod figure11;
mod figure1a;
mod figure1b;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
mod rescaling;
mod roofline;
mod section1;
mod section2_3;
pub(crate) mod section3_3;
mod section3_4;
mod section3_5;
pub(crate) mod section3_6;
mod section5;
pub(crate) mod setting;
pub(crate) mod table3;
pub(crate) mod table4;
mod table6;
pub(crate) mod table7;
pub(crate) mod table8;

use crate::reproduce::Artefact;

/// All artefacts of the paper, in its order.
pub(super) static ARTEFACTS: &[&Artefact] = &[
    &section1::ARTEFACT,
    &figure1a::ARTEFACT,
    &figure1b::ARTEFACT,
    &section2_3::ARTEFACT,
    &table3::ARTEFACT,
    &section3_3::ARTEFACT,
    &figure4::FIGURE4A,
    &figure4::FIGURE4B,
    &section3_4::ARTEFACT,
    &rescaling::ARTEFACT,
    &table4::ARTEFACT,
    &section3_5::ARTEFACT,
    &section3_6::ARTEFACT,
    &table6::ARTEFACT,
    &figure5::ARTEFACT,
    &figure6::ARTEFACT,
    &figure7::ARTEFACT,
    &table7::ARTEFACT,
    &table8::ARTEFACT,
    &figure8::FIGURE8A,
    &figure8::FIGURE8B,
    &federated::FIGURE8C,
    &federated::FIGURE8D,
    &figure9::ARTEFACT,
    &figure10::ARTEFACT,
    &figure11::ARTEFACT,
    &section5::ARTEFACT,
];
