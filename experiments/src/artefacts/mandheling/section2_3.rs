//! Section 2.3: what one cycle of the DSP holds.

use super::setting::XIAOMI_10;
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let device = context.device(XIAOMI_10)?;
    let dsp = device.constants.dsp.as_ref().context("the Xiaomi 10 has no DSP")?;
    let mut outcome = Outcome::default();
    let id = "mandheling/section2.3/hexagon-698/int8-lanes-per-cycle/throughput";
    outcome.answer(id, Answer::Input(dsp.vector.value.as_f64()));
    outcome.remark(id, "bytes of a vector, from the data sheet");
    Ok(outcome)
}
