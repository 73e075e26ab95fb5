//! Sage (Gim and Ko, MobiSys 2022): its table, its figures and the numbers of its sections.

mod figure12;
mod memory;
mod setting;
mod throughput;

use crate::reproduce::Run;

/// The simulation of each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("introduction", setting::introduction),
    ("figure2", memory::figure2),
    ("section3.2.3", setting::section3_2_3),
    ("section3.4.3", setting::section3_4_3),
    ("table1", memory::table1),
    ("figure8", memory::figure8),
    ("figure9", throughput::figure9),
    ("figure9a", throughput::on_extreme),
    ("figure9b", throughput::on_extreme),
    ("figure10", throughput::figure10),
    ("figure11", throughput::figure11),
    ("figure12", figure12::run),
    ("figure13", throughput::figure13),
    ("section5", setting::section5),
];
