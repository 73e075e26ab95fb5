//! Mandheling (Xu et al., MobiCom 2022): its tables, its figures and the numbers of its sections.

mod accuracy;
mod batches;
mod federated;
pub(crate) mod figure10;
mod figure4;
mod figure8;
mod figure9;
mod rescaling;
mod roofline;
pub(crate) mod section3_3;
mod section3_5;
pub(crate) mod section3_6;
pub(crate) mod setting;
pub(crate) mod table3;
pub(crate) mod table4;
mod table6;
pub(crate) mod table7;
pub(crate) mod table8;

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("section1", batches::section1),
    ("figure1a", batches::figure1a),
    ("figure1b", batches::figure1b),
    ("section2.3", batches::section2_3),
    ("table3", table3::run),
    ("section3.3", section3_3::run),
    ("figure4a", figure4::of_a_layer),
    ("figure4b", figure4::run),
    ("section3.4", batches::section3_4),
    ("rescaling", rescaling::run),
    ("table4", table4::run),
    ("section3.5", section3_5::run),
    ("section3.6", section3_6::run),
    ("table6", table6::run),
    ("figure5", batches::costs),
    ("figure6", batches::costs),
    ("figure7", batches::costs),
    ("table7", table7::run),
    ("table8", table8::run),
    ("figure8a", figure8::run),
    ("figure8b", figure8::run),
    ("figure8c", |context| federated::figure(context, federated::SUBJECTS[0].0)),
    ("figure8d", |context| federated::figure(context, federated::SUBJECTS[1].0)),
    ("figure9", figure9::run),
    ("figure10", figure10::run),
    ("figure11", batches::costs),
    ("section5", batches::section5),
];
