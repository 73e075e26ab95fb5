//! Section 1: memory and time of a batch of ResNet-50 on the Xiaomi 10.

use super::setting::XIAOMI_10;
use crate::artefacts::prelude::*;

/// As the section has it.
const BATCH: u64 = 32;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut scenario = trained(XIAOMI_10, "resnet50", context.reading_text("libraries")?, BATCH);
    scenario.frequency = context.reading_text("frequency")?.parse()?;
    let record = context.run(&scenario)?;
    let (memory, time) = (record.peak_memory.megabytes() / 1e3, record.iteration.seconds());
    let mut outcome = Outcome::of("quantity,part,value,unit");
    outcome.row(("memory", "peak", memory, "GB"))?;
    outcome.row(("time", "all", time, "s"))?;
    for (part, of_part) in record.breakdown.parts().into_iter().filter(|(_, time)| time.0 > 0) {
        outcome.row(("time", part, of_part.seconds(), "s"))?;
    }
    for (metric, value, unit) in [("memory", memory, "GB"), ("time", time, "s")] {
        let row = format!("mandheling/section1/resnet50-batch-32-on-xiaomi-10/cpu-libraries/{metric}");
        let bars = beside(Bars::new([metric]), SIMULATED, [value], [context.paper(&row)?]);
        outcome.bars("", bars, from_zero(metric, unit));
        outcome.number(row, value);
    }
    outcome.remark(
        "mandheling/section1/resnet50-batch-32-on-xiaomi-10/cpu-libraries/memory",
        "the peak of all tensors, in 10⁹ bytes",
    );
    Ok(outcome)
}
