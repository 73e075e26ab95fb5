//! DAF (Liu et al., MobiSys 2025): its tables, its figures and the numbers of its sections.

mod bits;
mod kernels;
mod methods;
mod setting;
pub(crate) mod store;

use crate::reproduce::Run;

/// The simulation of each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("abstract", methods::headlines),
    ("figure1a", methods::figure1a),
    ("figure1b", methods::figure1b),
    ("figure2a", kernels::figure2a),
    ("section3.2", kernels::section3_2),
    ("table1", methods::table1),
    ("bits", bits::run),
    ("table2", store::table2),
    ("table3", store::table3),
    ("figure8", methods::figure8),
    ("figure9", methods::figure9),
    ("figure10", methods::figure10),
    ("figure11", methods::figure11),
    ("figure12", kernels::figure12),
    ("figure13", store::figure13),
    ("figure14", methods::figure14),
];
