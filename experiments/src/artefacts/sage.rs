//! Sage (Gim and Ko, MobiSys 2022): its table, its figures and the numbers of its sections.

mod figure10;
mod figure11;
mod figure12;
mod figure13;
mod figure2;
mod figure8;
mod figure9;
mod null;
mod sections;
mod setting;
mod table1;
mod throughput;

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("introduction", sections::introduction),
    ("figure2", figure2::run),
    ("section3.2.3", sections::section3_2_3),
    ("section3.4.3", sections::section3_4_3),
    ("table1", table1::run),
    ("figure8", figure8::run),
    ("figure9", figure9::both),
    ("figure9a", |context| figure9::one(context, "single-core", "sage/figure9a/single-core/dga>dgc/throughput")),
    ("figure9b", |context| figure9::one(context, "infinite-cores", "sage/figure9b/infinite-cores/dgc>dga/throughput")),
    ("figure10", figure10::run),
    ("figure11", figure11::run),
    ("figure12", figure12::run),
    ("figure13", figure13::run),
    ("section5", sections::section5),
];
