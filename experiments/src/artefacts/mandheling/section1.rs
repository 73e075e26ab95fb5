//! Section 1: memory and time of a batch of ResNet-50 on the Xiaomi 10.

use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Look, Panel};
use haversack_reports::table::Table;

use super::setting::run as simulate;
use crate::reproduce::{ArtefactError, Context, Outcome};
use crate::scenario::Scenario;

/// As the section has it.
const BATCH: u64 = 32;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut scenario = Scenario::new("xiaomi-10", "resnet50");
    context.reading_text("libraries")?.clone_into(&mut scenario.policy);
    scenario.batch = BATCH;
    scenario.frequency = context.reading_text("frequency")?.parse()?;
    let record = simulate(context, &scenario)?;
    let (memory, time) = (record.peak_memory.megabytes() / 1e3, record.iteration.seconds());
    let mut outcome = Outcome::default();
    let mut table = Table::new(["quantity", "part", "value", "unit"]);
    table.push(["memory".into(), "peak".into(), memory.into(), "GB".into()])?;
    table.push(["time".into(), "all".into(), time.into(), "s".into()])?;
    for (part, of_part) in record.breakdown.parts().into_iter().filter(|(_, time)| time.0 > 0) {
        table.push(["time".into(), part.into(), of_part.seconds().into(), "s".into()])?;
    }
    let mut figure =
        Figure::new("Mandheling, section 1: a batch of 32 of ResNet-50 on the Xiaomi 10").panel_size(260, 280);
    for (metric, value, unit) in [("memory", memory, "GB"), ("time", time, "s")] {
        let row = format!("mandheling/section1/resnet50-batch-32-on-xiaomi-10/cpu-libraries/{metric}");
        let bars = Bars::new([metric])
            .series(BarSeries::new("simulated", [value]))
            .series(BarSeries::new("paper", [context.row(&row)?.number()]).look(Look::Hatched))
            .show_values();
        figure = figure.panel(Panel::new(bars).y(Axis::new(metric).unit(unit).from_zero()));
        outcome.number(row, value);
    }
    outcome.remark(
        "mandheling/section1/resnet50-batch-32-on-xiaomi-10/cpu-libraries/memory",
        "the peak of all tensors, in 10⁹ bytes",
    );
    outcome.figure = Some(figure);
    outcome.table = Some(table);
    let notes = &mut outcome.notes;
    notes.calibrated.push("The CPU's constants under MNN, on other networks and another phone (tables 7 and 8); nothing on these two numbers.".into());
    notes.predicted.push(
        "Both: the peak of what MNN's decomposed graph keeps, and the time of one batch on four big cores.".into(),
    );
    notes.left_out.push("The equivalents in minutes of video, which contradict each other, and what the library and the system hold beside tensors.".into());
    notes.misses.push("Memory: every temporary of the decomposed graph goes with its last reader here, so that the peak is little more than what PyTorch saves for backward, and the library holds half as much again. Which of its intermediate results and packed copies stay is not known; a factor on all tensors would be fitted to this number alone.".into());
    Ok(outcome)
}
