//! How much was chosen: per paper, the constants that were fitted to its rows, and the readings.
//!
//! A constant counts once however many files hold it: a device's that was carried over to other devices by its name, a
//! stack's by its name and value.

use std::collections::BTreeSet;

use haversack_devices::ConstantEntry;
use serde::Serialize;

use super::readings::Reading;
use super::reference::Reference;
use crate::quantities::counted;

/// What was chosen for one paper, or for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Account {
    /// The paper, or `all`.
    pub(crate) paper: &'static str,
    /// Constants that were fitted to its rows; of all, to those of measured sets as well.
    pub(crate) constants: usize,
    /// Readings: choices that the paper leaves open.
    pub(crate) readings: usize,
    /// Those of them that were chosen by the values of rows: fits by hand.
    pub(crate) readings_chosen_on_rows: usize,
    /// Settings that the paper states, which are declared beside the readings.
    pub(crate) stated: usize,
    /// How networks are trained that stand in for the paper's.
    pub(crate) stand_ins: usize,
}

/// Where a paper's constant is, in so far as two of them are one.
type Place<'e> = (&'e str, Option<(u64, &'e str)>);

/// What stands for all papers, and for the measured sets.
const ALL: &str = "all";

/// Of each paper for which anything was fitted or declared, and of all together with the measured sets.
pub(crate) fn accounts(fitted: &[ConstantEntry], declared: &[(&'static str, &Reading)]) -> Vec<Account> {
    let papers = Reference::papers().chain([ALL]).map(|paper| account(paper, fitted, declared));
    papers.filter(|account| !account.is_empty()).collect()
}

fn account(paper: &'static str, fitted: &[ConstantEntry], declared: &[(&'static str, &Reading)]) -> Account {
    let is_of = |name: &str| paper == ALL || name == paper;
    let of_rows = fitted.iter().filter(|entry| is_of(entry.source.split('-').next().unwrap_or_default()));
    let constants: BTreeSet<Place<'_>> = of_rows.map(place).collect();
    let readings = || declared.iter().filter(|(of, _)| is_of(of)).map(|(_, reading)| *reading);
    let open = || readings().filter(|reading| !reading.stated && !reading.is_stand_in());
    Account {
        paper,
        constants: constants.len(),
        readings: open().count(),
        readings_chosen_on_rows: open().filter(|reading| !reading.chosen_on.is_empty()).count(),
        stated: readings().filter(|reading| reading.stated).count(),
        stand_ins: readings().filter(|reading| reading.is_stand_in()).count(),
    }
}

fn place(entry: &ConstantEntry) -> Place<'_> {
    let of_stack = entry.file.contains("/stacks/");
    (&entry.name, of_stack.then(|| (entry.value.to_bits(), entry.unit)))
}

impl Account {
    const fn is_empty(&self) -> bool {
        self.constants + self.readings + self.stated + self.stand_ins == 0
    }

    /// In a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { paper, constants, readings, readings_chosen_on_rows, stated, stand_ins } = *self;
        let constants = counted(constants, "constant was fitted", "constants were fitted");
        let readings = counted(readings, "reading", "readings");
        format!(
            "{paper}: {constants} to rows; {readings}, of which {readings_chosen_on_rows} by the values of rows; beside \
             them {stated} that are stated, {stand_ins} of stand-ins."
        )
    }
}

#[cfg(test)]
mod tests {
    use haversack_devices::Kind;

    use super::*;
    use crate::papers::readings::Value;

    #[test]
    fn a_constant_that_was_carried_over_counts_once() {
        let entry = |file: &str, name: &str, value, source: &str| ConstantEntry {
            name: name.to_owned(),
            value,
            unit: "MHz",
            kind: Kind::Fitted,
            source: source.to_owned(),
            file: format!("devices/calibrations/{file}.toml"),
        };
        let fitted = [
            // One device's, carried over to another by the nearest that it has.
            entry("a", "cpu.0.floor", 900.0, "sage-table7"),
            entry("b", "cpu.0.floor", 883.0, "sage-table7-cpu"),
            entry("a", "cpu.1.floor", 900.0, "sage-table7"),
            // Two stacks' own, and one that a third took over.
            entry("stacks/a", "cpu.work", 1.0, "sage-table8"),
            entry("stacks/b", "cpu.work", 2.0, "sage-table8"),
            entry("stacks/c", "cpu.work", 2.0, "sage-table8"),
            entry("a", "gpu.rate", 1.0, "daf-table2"),
        ];
        let reading = |key: &str, chosen_on: &[&str], stated| Reading {
            id: key.to_owned(),
            artefacts: vec!["table1".to_owned()],
            key: key.to_owned(),
            value: Value::Number(1.0),
            unit: None,
            metric: None,
            reason: "why".to_owned(),
            source: "where".to_owned(),
            chosen_on: chosen_on.iter().map(|row| (*row).to_owned()).collect(),
            stated,
        };
        let readings = [
            reading("batch", &[], true),
            reading("tokens", &["sage/table1/*"], false),
            reading("budgets", &[], false),
            reading("stand-in, quick", &[], false),
        ];
        let declared: Vec<_> = readings.iter().map(|reading| ("sage", reading)).collect();
        let sage =
            Account { paper: "sage", constants: 4, readings: 2, readings_chosen_on_rows: 1, stated: 1, stand_ins: 1 };
        let found = accounts(&fitted, &declared);
        assert_eq!(found.iter().map(|account| account.paper).collect::<Vec<_>>(), ["daf", "sage", "all"]);
        assert_eq!((found[2].constants, found[2].readings), (5, 2));
        assert_eq!((&found[1], found[0].constants), (&sage, 1));
        let words = "sage: 4 constants were fitted to rows; 2 readings, of which 1 by the values of rows; beside them 1 that \
                     are stated, 1 of stand-ins.";
        assert_eq!(sage.sentence(), words);
    }
}
