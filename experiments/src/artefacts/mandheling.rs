//! Mandheling (Xu et al., MobiCom 2022): its tables, its figures and the numbers of its sections.

pub(crate) mod batches;
mod factors;
mod learning;
pub(crate) mod operators;
pub(crate) mod setting;
pub(crate) mod tables;

use crate::reproduce::Run;

/// The simulation of each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("section1", batches::section1),
    ("figure1a", batches::figure1a),
    ("figure1b", batches::figure1b),
    ("section2.3", batches::section2_3),
    ("table3", operators::table3),
    ("section3.3", operators::section3_3),
    ("figure4a", factors::figure4a),
    ("figure4b", factors::figure4b),
    ("section3.4", batches::section3_4),
    ("rescaling", learning::rescaling),
    ("table4", operators::table4),
    ("section3.5", factors::section3_5),
    ("section3.6", operators::section3_6),
    ("table6", operators::table6),
    ("figure5", batches::costs),
    ("figure6", batches::costs),
    ("figure7", batches::costs),
    ("table7", tables::table7),
    ("table8", tables::table8),
    ("figure8a", |context| learning::figure8(context, "VGG-11", true)),
    ("figure8b", |context| learning::figure8(context, "ResNet-18", false)),
    ("figure8c", |context| learning::figure(context, learning::SUBJECTS[0].0)),
    ("figure8d", |context| learning::figure(context, learning::SUBJECTS[1].0)),
    ("figure9", batches::figure9),
    ("figure10", batches::figure10),
    ("figure11", batches::costs),
    ("section5", batches::section5),
];
