//! Section 2.3: what one cycle of the DSP holds.

use crate::reproduce::{Answer, ArtefactError, Context, Outcome};

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let device = context.device("xiaomi-10")?;
    let dsp = device.constants.dsp.as_ref().ok_or_else(|| anyhow::anyhow!("the Xiaomi 10 has no DSP"))?;
    let mut outcome = Outcome::default();
    let id = "mandheling/section2.3/hexagon-698/int8-lanes-per-cycle/throughput";
    outcome.answer(id, Answer::Input(dsp.vector.value.as_f64()));
    outcome.remark(id, "bytes of a vector, from the data sheet");
    outcome.notes.left_out.push("The section's 500 MHz: 128 operations in each of that many cycles are less than table 4 shows, so that the device's file has four contexts and a faster clock.".into());
    outcome
        .notes
        .left_out
        .push("11.3 and 4.0 times less energy than a CPU and a GPU in inference: another paper's numbers.".into());
    Ok(outcome)
}
