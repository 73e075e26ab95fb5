//! What training in integers by NITI reaches as its authors published it: cited beside what is trained here, never claimed.

use std::collections::BTreeMap;

use crate::artefacts::prelude::*;

/// Accuracies of yuanjinliang1/IntFL-TMC, commit d01857ca; of rows of role `withheld` none is known.
const CURVES: &str = include_str!("../../../reference/int8-curves.csv");

/// The rows of a kind, column by column.
fn rows(kind: &str) -> Result<Vec<BTreeMap<String, String>>> {
    let rows = csv::Reader::from_reader(CURVES.as_bytes()).into_deserialize();
    let rows: Vec<BTreeMap<String, String>> = rows.collect::<Result<_, _>>()?;
    Ok(rows.into_iter().filter(|row| row["kind"] == kind).collect())
}

/// Draws the curves of a kind, one a regime of gradients.
fn draw(outcome: &mut Outcome, kind: &str, clock: &str) -> Result<()> {
    let rows = rows(kind)?;
    let first = rows.first().context("nothing was published")?;
    let known = rows.iter().filter(|row| row["role"] != "withheld");
    let point = |row: &BTreeMap<String, String>| Some((row["at"].parse().ok()?, row["accuracy_percent"].parse().ok()?));
    let curves = curves(known, |row| format!("gradients of {}", row["gradient"]), point);
    let [network, data, batch] = ["network", "data", "batch"].map(|column| &first[column]);
    let title = format!("published, not ours: {network} on {data} by NITI, batch {batch}");
    outcome.panel(&title, curves, from_zero(clock, ""), test_accuracy());
    Ok(())
}

/// One phone's, by epochs.
pub(super) fn central(outcome: &mut Outcome) -> Result<()> {
    draw(outcome, "central", "epochs")
}

/// A federation's, by rounds.
pub(super) fn federated(outcome: &mut Outcome) -> Result<()> {
    draw(outcome, "federated", "rounds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::readings::{Readings, Value};
    use crate::papers::reference::Reference;

    #[test]
    fn what_trains_in_integers_here_does_so_as_the_rows_to_fit_do() {
        let readings = Readings::load(&Reference::load().unwrap()).unwrap();
        let keys = |id: &str| -> toml::Table {
            let Value::Text(text) = &readings.reading("mandheling", "table8", id).unwrap().value else {
                panic!("{id}")
            };
            text.parse().unwrap()
        };
        let fit = |kind: &str| rows(kind).unwrap().into_iter().find(|row| row["role"] == "fit").unwrap();
        let (central, federated) = (keys("int8-lenet5"), keys("federated-int8"));
        let row = fit("central");
        assert_eq!(central["batch"].to_string(), row["batch"]);
        // A weight's gradient of so many bits is one of seven, times a rate of 2 to the power of what it is short of them.
        let rate = |bits: i32| f64::from(bits - 7).exp2();
        assert!(row["gradient"].starts_with("gb 2 "));
        assert_eq!(central["learning_rate"].as_float(), Some(rate(2)));
        let row = fit("federated");
        assert_eq!((row["gradient"].as_str(), federated["learning_rate"].as_float()), ("1 bits", Some(rate(1))));
        for (own, column) in [("batch", "batch"), ("cohort", "clients_a_round"), ("local_epochs", "local_epochs")] {
            assert_eq!(federated[own].to_string(), row[column]);
        }
    }

    #[test]
    fn nothing_is_known_of_what_is_withheld() {
        for row in ["central", "federated"].into_iter().flat_map(|kind| rows(kind).unwrap()) {
            assert_eq!(row["role"] == "withheld", row["accuracy_percent"].is_empty());
        }
    }
}
