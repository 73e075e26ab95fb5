//! FedHybrid (SenSys 2024): its tables and figures, on one device and in federations of them.

pub(super) mod federations;
mod figure11;
mod figure12;
mod figure14;
mod figure17;
mod figure18;
mod figure18b;
mod figure19;
mod figure1c;
pub(crate) mod figure2;
mod figure20;
mod figure20b;
mod figure21;
mod figure4;
mod figure5;
mod figure7;
mod figure9;
mod memory_wall;
mod null;
mod real_users;
mod section4_4_1;
mod section5_2;
mod section5_5;
pub(crate) mod setting;
mod table1;
mod table3;

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("table1", table1::run),
    ("figure1c", figure1c::run),
    ("figure2a", figure2::times),
    ("figure2b", figure2::states),
    ("figure2c", figure2::pages),
    ("figure4a", figure4::cores),
    ("figure4b", figure4::apps),
    ("section4.3", figure4::rates),
    ("figure5a", |context| figure5::on(context, setting::S22)),
    ("figure5b", |context| figure5::on(context, setting::NOTE10)),
    ("figure7", figure7::run),
    ("figure9", figure9::run),
    ("figure11a", figure11::sessions),
    ("figure11b", figure11::apps),
    ("figure12", figure12::run),
    ("section4.4.1", section4_4_1::run),
    ("section5.2", section5_2::run),
    ("figure18", figure18::run),
    ("figure18b", figure18b::run),
    ("figure19a", figure19::budgets),
    ("figure19b", figure19::rules),
    ("figure20a", figure20::budgets),
    ("figure20c", figure20::regeneration::regeneration),
    ("figure21", figure21::run),
    ("section5.5", section5_5::share),
    ("figure1", memory_wall::figure1),
    ("section2.1", memory_wall::section2_1),
    ("figure3", memory_wall::figure3),
    ("table3", |context| table3::table(context, &table3::TABLE_3)),
    ("table4", |context| table3::table(context, &table3::TABLE_4)),
    ("figure14", figure14::populations),
    ("figure15", |context| table3::over_time(context, &table3::TABLE_3)),
    ("figure16", |context| table3::over_time(context, &table3::TABLE_4)),
    ("figure17", figure17::without),
    ("figure20b", figure20b::plans),
];
