//! DAF (Liu et al., MobiSys 2025): its tables, its figures and the numbers of its sections.

mod accuracy;
mod bits;
mod equal_time;
mod figure10;
mod figure12;
mod figure13;
mod figure1b;
mod figure2a;
mod methods;
mod null;
mod reductions;
mod section3_2;
mod setting;
pub(crate) mod table2;
mod table3;

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("abstract", methods::headlines),
    ("figure1a", methods::figure1a),
    ("figure1b", figure1b::run),
    ("figure2a", figure2a::run),
    ("section3.2", section3_2::run),
    ("table1", methods::table1),
    ("bits", bits::run),
    ("table2", table2::run),
    ("table3", table3::run),
    ("figure8", methods::figure8),
    ("figure9", methods::figure9),
    ("figure10", figure10::run),
    ("figure11", methods::figure11),
    ("figure12", figure12::run),
    ("figure13", figure13::run),
    ("figure14", methods::figure14),
];
