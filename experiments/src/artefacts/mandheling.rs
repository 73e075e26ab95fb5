//! Mandheling (Xu et al., MobiCom 2022): its tables, its figures and the numbers of its sections.

mod accuracy;
mod federated;
pub(crate) mod figure10;
mod figure11;
mod figure1a;
mod figure1b;
mod figure4;
mod figure5;
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

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("section1", section1::run),
    ("figure1a", figure1a::run),
    ("figure1b", figure1b::run),
    ("section2.3", section2_3::run),
    ("table3", table3::run),
    ("section3.3", section3_3::run),
    ("figure4a", figure4::of_a_layer),
    ("figure4b", figure4::run),
    ("section3.4", section3_4::run),
    ("rescaling", rescaling::run),
    ("table4", table4::run),
    ("section3.5", section3_5::run),
    ("section3.6", section3_6::run),
    ("table6", table6::run),
    ("figure5", figure5::time),
    ("figure6", figure5::energy),
    ("figure7", figure7::run),
    ("table7", table7::run),
    ("table8", table8::run),
    ("figure8a", figure8::run),
    ("figure8b", figure8::run),
    ("figure8c", |context| federated::figure(context, federated::SUBJECTS[0].0)),
    ("figure8d", |context| federated::figure(context, federated::SUBJECTS[1].0)),
    ("figure9", figure9::run),
    ("figure10", figure10::run),
    ("figure11", figure11::run),
    ("section5", section5::run),
];
