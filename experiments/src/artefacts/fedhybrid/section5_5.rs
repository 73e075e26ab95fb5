//! Section 5.5: what the budget predictor takes of the CPU, by what it asks the system.

use haversack_devices::units::Factor;
use haversack_devices::{CoreSelection, Frequency, ScalarSpeed};
use haversack_policies::fedhybrid::predictor::Parameters;

use super::setting::{S22, system};
use crate::artefacts::prelude::*;

const SHARE: &str = "fedhybrid/section5.5/s22/predictor/cpu-share";
/// Where services in the background run.
const LITTLE: &str = "little:1";

/// The time of one look at memory on the core of services: a reading of `/proc/meminfo`, and a call of ActivityManager
/// for the adjustments of all apps.
struct Look {
    reading: Nanos,
    call: Nanos,
}

impl Look {
    fn new(context: &Context<'_>) -> Result<Self> {
        let device = context.device(S22)?;
        let cpu = device.cpu().with_context(|| format!("{} has no CPU", device.id))?;
        let cores: CoreSelection = LITTLE.parse()?;
        let speed =
            ScalarSpeed::of(&cpu.choose(cores, Frequency::Highest)?).context("no CoreMark of the little core")?;
        let services = system(context)?.constants.services;
        let work = Factor(services.meminfo_read.value.0);
        Ok(Self { reading: speed.time(work), call: services.binder_call.value })
    }

    fn time(&self) -> Nanos {
        self.reading + self.call
    }
}

pub(super) fn share(context: &Context<'_>) -> Result<Outcome> {
    let look = Look::new(context)?;
    let every = Parameters::for_epoch(Nanos::ZERO).period;
    let share = |every: Nanos| look.time().seconds() / every.seconds() * 100.0;
    let mut outcome = Outcome::default();
    let mut records = Records::of("every_ms,looks_a_second,reading_us,call_us,share_percent");
    let micros = |time: Nanos| time.seconds() * 1e6;

    for millis in [1_000_u64, 300, 100, 30, 10, 3, 1] {
        let every = Nanos(millis * 1_000_000);
        let numbers = [1.0 / every.seconds(), micros(look.reading), micros(look.call), share(every)];
        records.row((millis, numbers))?;
    }
    let reading = look.reading.seconds() / every.seconds() * 100.0;
    outcome.answer(SHARE, Answer::Range(reading, share(every)));
    outcome.remark(
        SHARE,
        format!(
            "of one core, for one look a second: {:.0} µs for /proc/meminfo, and with {:.0} µs for a call over binder",
            micros(look.reading),
            micros(look.call)
        ),
    );
    outcome.quantity("a look at memory", "µs", [micros(look.time())]);
    // Looks a second at which a hundredth of a core is taken.
    outcome.quantity("looks for a hundredth", "", [0.01 / look.time().seconds()]);
    show(context, records, outcome)
}
