//! Figure 4, and the rates of section 4.3: the time to read a file from flash, by the requesting core and the
//! number of other apps.

use std::ops::RangeInclusive;

use haversack_devices::storage::Direction;
use haversack_devices::units::Factor;
use haversack_devices::{CoreSelection, CpuCores, Device, Flash, Frequency, ScalarSpeed, System};
use haversack_policies::fedhybrid::predictor::Parameters;

use super::setting::{S22, system};
use crate::artefacts::prelude::*;

/// The file of figure 4, for section 4.3.
const FILE: Bytes = Bytes(128_000_000);
/// Apps in the background.
const APPS: RangeInclusive<usize> = 0..=5;
const DIRECTIONS: [(Direction, &str); 2] = [(Direction::Read, "read"), (Direction::Write, "write")];

/// The phone's flash, the system in front of it, and the phone's cores.
struct Storage {
    device: Device,
    flash: Flash,
    system: System,
}

/// A core at one of its operating points.
#[derive(Clone, Debug)]
struct OperatingCore {
    core: String,
    gigahertz: f64,
    /// CoreMark iterations per second.
    coremark: f64,
    speed: ScalarSpeed,
}

impl Storage {
    fn new(context: &Context<'_>) -> Result<Self> {
        let device = context.device(S22)?;
        let flash = device.flash().with_context(|| format!("{S22} has no storage"))?;
        Ok(Self { device, flash, system: context.system(context.reading_text("system")?)? })
    }

    fn time(&self, direction: Direction, file: Bytes, speed: ScalarSpeed, apps: usize) -> Nanos {
        match direction {
            Direction::Read => self.system.read_file(&self.flash, file, speed, apps),
            Direction::Write => self.system.write_file(&self.flash, file, speed, apps),
        }
    }

    /// One core of every class at each of its operating points, from the slowest to the fastest.
    fn points(&self) -> Result<Vec<OperatingCore>> {
        let cpu = self.device.cpu().with_context(|| format!("{S22} has no CPU"))?;
        let mut points = Vec::new();
        for cluster in &self.device.constants.cpu {
            let one = CoreSelection::Some { class: cluster.class, count: 1 };
            let highest = cpu.choose(one, Frequency::Highest)?;
            for share in highest.operating_shares() {
                points.push(OperatingCore::new(&cluster.core, &highest.limited(share))?);
            }
        }
        points.sort_by(|a, b| a.coremark.total_cmp(&b.coremark));
        Ok(points)
    }

    fn fastest(&self) -> Result<OperatingCore> {
        self.points()?.pop().with_context(|| format!("{S22} has no cores"))
    }
}

impl OperatingCore {
    fn new(core: &str, cores: &CpuCores) -> Result<Self> {
        const ITERATIONS: f64 = 1e6;
        let unknown = || anyhow!("the CoreMark of {core} is not known");
        let coremark = ITERATIONS / cores.scalar_time(ITERATIONS).ok_or_else(unknown)?.seconds();
        let gigahertz = cores.cores().first().map_or(0.0, |core| core.frequency.0 / 1e9);
        let speed = ScalarSpeed::per_second(coremark).ok_or_else(unknown)?;
        Ok(Self { core: core.to_owned(), gigahertz, coremark: coremark.round(), speed })
    }

    fn name(&self) -> String {
        format!("{} {}\u{a0}GHz", self.core, self.gigahertz)
    }
}

/// The file of the reading.
fn file(context: &Context<'_>) -> Result<Bytes> {
    Ok(Bytes((context.reading_number("file")? * 1e6) as u64))
}

pub(super) fn cores(context: &Context<'_>) -> Result<Outcome> {
    let (storage, file) = (Storage::new(context)?, file(context)?);
    let points = storage.points()?;
    let mut records = Records::of("core,name,frequency_ghz,coremark_per_s,direction,latency_ms,rate_mb_s,latency_s");
    for (direction, name) in DIRECTIONS {
        for point in &points {
            let time = storage.time(direction, file, point.speed, 0);
            let found = [milliseconds(time), file.megabytes() / time.seconds(), time.seconds()];
            records.row((point.core.as_str(), point.name(), [point.gigahertz, point.coremark], name, found))?;
        }
    }
    show(context, records, Outcome::default())
}

pub(super) fn apps(context: &Context<'_>) -> Result<Outcome> {
    let (storage, file) = (Storage::new(context)?, file(context)?);
    let fastest = storage.fastest()?;
    let mut records = Records::of("background_apps,direction,latency_ms,rate_mb_s,latency_s");
    for (direction, name) in DIRECTIONS {
        for apps in APPS {
            let time = storage.time(direction, file, fastest.speed, apps);
            let found = [milliseconds(time), file.megabytes() / time.seconds(), time.seconds()];
            records.row((apps as u64, name, found))?;
        }
    }
    let streams = &storage.system.constants.background;
    let mut outcome = Outcome::default();
    outcome.quantity("what an app writes", "MB/s", [streams.rate.value.0 / 1e6]);
    outcome.quantity("pieces of what an app writes", "KiB", [streams.command.value.0 as f64 / 1024.0]);
    outcome.words("fastest core", fastest.name());
    show(context, records, outcome)
}

pub(super) fn rates(context: &Context<'_>) -> Result<Outcome> {
    let storage = Storage::new(context)?;
    let fastest = storage.fastest()?;
    let constants = storage.device.constants.storage.as_ref();
    let constants = constants.with_context(|| format!("{S22} has no storage"))?;
    let sheet = [&constants.datasheet_read, &constants.datasheet_write];
    let mut records = Records::of("direction,rate,mb_s,many_mb_s,one_mb_s,through");
    for ((direction, name), sheet) in DIRECTIONS.into_iter().zip(sheet) {
        let sheet = sheet.as_ref().with_context(|| format!("{S22} has no rate of a data sheet"))?;
        let many = storage.flash.sequential(direction).0 / 1e6;
        let one = FILE.megabytes() / storage.time(direction, FILE, fastest.speed, 0).seconds();
        let through = if direction == Direction::Read { "read through" } else { "written through" };
        for (rate, value) in [("data sheet", sheet.value.0 / 1e6), ("all commands together", many), ("one file", one)] {
            records.row((name, rate, [value, many, one], through))?;
        }
    }
    let mut outcome = Outcome::default();
    outcome.words("fastest core", fastest.name());
    show(context, records, outcome)
}

const SHARE: &str = "fedhybrid/section5.5/s22/predictor/cpu-share";
/// The core of background services.
const LITTLE: &str = "little:1";

/// The time of one sample of memory on the core of background services: a reading of `/proc/meminfo`, and a call of
/// ActivityManager for the adjustments of all apps.
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
    // Samples per second that use a hundredth of a core.
    outcome.quantity("looks for a hundredth", "", [0.01 / look.time().seconds()]);
    show(context, records, outcome)
}
