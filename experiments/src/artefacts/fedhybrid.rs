//! FedHybrid (SenSys 2024): its tables and figures, on one device and in federations of them.

mod clients;
pub(super) mod federations;
mod figure18;
mod figure19;
pub(crate) mod figure2;
mod figure20;
mod figure4;
mod figure7;
mod maps;
mod memory_wall;
mod recomputation;
pub(crate) mod setting;
mod table3;
mod users;

use crate::reproduce::Run;

/// The simulation of each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("table1", recomputation::table1),
    ("figure1c", figure2::figure1c),
    ("figure2a", figure2::times),
    ("figure2b", figure2::states),
    ("figure2c", figure2::pages),
    ("figure4a", figure4::cores),
    ("figure4b", figure4::apps),
    ("section4.3", figure4::rates),
    ("figure5a", |context| recomputation::figure5(context, setting::S22)),
    ("figure5b", |context| recomputation::figure5(context, setting::NOTE10)),
    ("figure7", figure7::run),
    ("figure9", maps::figure9),
    ("figure11a", users::sessions),
    ("figure11b", users::apps),
    ("figure12", users::figure12),
    ("section4.4.1", maps::section4_4_1),
    ("section5.2", maps::section5_2),
    ("figure18", figure18::run),
    ("figure18b", maps::figure18b),
    ("figure19a", figure19::budgets),
    ("figure19b", figure19::rules),
    ("figure20a", figure20::budgets),
    ("figure20c", figure20::regeneration),
    ("figure21", figure20::figure21),
    ("section5.5", figure4::share),
    ("figure1", memory_wall::figure1),
    ("section2.1", federations::run),
    ("figure3", federations::run),
    ("table3", table3::table),
    ("table4", table3::table),
    ("figure14", clients::populations),
    ("figure15", federations::run),
    ("figure16", federations::run),
    ("figure17", federations::run),
    ("figure20b", figure20::plans),
    ("readings", table3::table),
];
