//! Plans executed by PyTorch, as measured by `python/plans_in_pytorch.py`.

use haversack_reports::Cell;

use crate::artefacts::prelude::*;

/// One line per plan: peaks in bytes, times as fractions of those without a plan.
const MEASURED: &str = include_str!("../../../measured/comparison-pytorch.csv");

/// The permitted relative difference between a measured and the simulated peak.
const NEAR: f64 = 0.1;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut lines = MEASURED.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let mut records = Records::of(&(names.join(",") + ",plan,simulated_mb,measured_mb"));
    let (mut equal, mut near, mut exact) = (0, 0, 0);
    for fields in lines {
        let field = |name: &str| {
            let place = names.iter().position(|known| *known == name);
            place.and_then(|place| fields.get(place).copied()).unwrap_or_default()
        };
        let peaks = ["simulated_peak_bytes", "measured_peak_bytes"].map(|name| field(name).parse::<f64>().ok());
        if field("bit_equal") == "True" {
            equal += 1;
            near += usize::from(
                matches!(peaks, [Some(simulated), Some(measured)] if (measured / simulated - 1.0).abs() <= NEAR),
            );
        }
        exact += usize::from(field("policy") == "dgc");
        let plan = match field("policy") {
            "checkpoint" => "√n segments".to_owned(),
            policy => format!("{policy} {}", field("memory_budget")),
        };
        let number = |text: &&str| text.parse::<f64>().map_or_else(|_| (*text).into(), Cell::Number);
        let own = peaks.map(|peak| peak.map_or(Cell::Empty, |bytes| Cell::Number(bytes / 1e6)));
        records.row(fields.iter().map(number).chain([plan.into()]).chain(own).collect::<Vec<Cell>>())?;
    }
    let mut outcome = Outcome::default();
    let finding = format!(
        "{equal} of {exact} exact plans gave gradients equal to the last bit; {near} of them had a peak within 10% of the simulated"
    );
    outcome.words("finding", &finding);
    outcome.summary.push(finding);
    show(context, records, outcome)
}
