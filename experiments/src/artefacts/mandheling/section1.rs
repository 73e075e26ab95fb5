//! Section 1: memory and time of a batch of ResNet-50 on the Xiaomi 10.

use super::setting::{XIAOMI_10, on_xiaomi_10};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = Artefact {
    stacks: &["mnn"],
    ..on_xiaomi_10("section1", "memory and time of a batch of ResNet-50 under a library for CPUs", run)
};

/// As the section has it.
const BATCH: u64 = 32;

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut scenario = Scenario::new(XIAOMI_10, "resnet50");
    context.reading_text("libraries")?.clone_into(&mut scenario.policy);
    scenario.batch = BATCH;
    scenario.frequency = context.reading_text("frequency")?.parse()?;
    let record = context.run(&scenario)?;
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
        let bars = beside(Bars::new([metric]), SIMULATED, [value], [context.row(&row)?.number()]).show_values();
        figure = figure.panel(Panel::new(bars).y(Axis::new(metric).unit(unit).from_zero()));
        outcome.number(row, value);
    }
    outcome.remark(
        "mandheling/section1/resnet50-batch-32-on-xiaomi-10/cpu-libraries/memory",
        "the peak of all tensors, in 10⁹ bytes",
    );
    Ok(outcome.drawn(figure, table))
}
