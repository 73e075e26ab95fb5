//! Mandheling (Xu et al., MobiCom 2022): its tables, its figures and the numbers of its sections.

mod accuracy;
mod batches;
mod federated;
pub(crate) mod figure10;
mod figure4;
mod figure8;
mod figure9;
pub(crate) mod operators;
mod published;
mod rescaling;
mod roofline;
mod section3_5;
pub(crate) mod setting;
pub(crate) mod table4;
pub(crate) mod table7;
pub(crate) mod table8;

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("section1", batches::section1),
    ("figure1a", batches::figure1a),
    ("figure1b", batches::figure1b),
    ("section2.3", batches::section2_3),
    ("table3", operators::table3),
    ("section3.3", operators::section3_3),
    ("figure4a", figure4::of_a_layer),
    ("figure4b", figure4::run),
    ("section3.4", batches::section3_4),
    ("rescaling", rescaling::run),
    ("table4", table4::run),
    ("section3.5", section3_5::run),
    ("section3.6", operators::section3_6),
    ("table6", operators::table6),
    ("figure5", batches::costs),
    ("figure6", batches::costs),
    ("figure7", batches::costs),
    ("table7", table7::run),
    ("table8", table8::run),
    ("figure8a", |context| figure8::of(context, "VGG-11", true)),
    ("figure8b", |context| figure8::of(context, "ResNet-18", false)),
    ("figure8c", |context| federated::figure(context, federated::SUBJECTS[0].0)),
    ("figure8d", |context| federated::figure(context, federated::SUBJECTS[1].0)),
    ("figure9", figure9::run),
    ("figure10", figure10::run),
    ("figure11", batches::costs),
    ("section5", batches::section5),
];
