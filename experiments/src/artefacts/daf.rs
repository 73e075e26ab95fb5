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

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("abstract", headlines::run),
    ("figure1a", figure1a::run),
    ("figure1b", figure1b::run),
    ("figure2a", figure2a::run),
    ("section3.2", section3_2::run),
    ("table1", table1::run),
    ("bits", bits::run),
    ("table2", table2::run),
    ("table3", table3::run),
    ("figure8", figure8::run),
    ("figure9", figure9::run),
    ("figure10", figure10::run),
    ("figure11", figure11::run),
    ("figure12", figure12::run),
    ("figure13", figure13::run),
    ("figure14", figure14::run),
];
