//! Figure 4, and the rates of section 4.3: how long a file takes on flash, by the core that asks and by the apps beside.

use std::ops::RangeInclusive;

use haversack_devices::storage::Direction;
use haversack_devices::{CoreSelection, CpuCores, Device, Flash, Frequency, ScalarSpeed, System};

use super::setting::S22;
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
    /// CoreMark iterations a second.
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
    let row = "fedhybrid/figure4a/ufs-3.1-128-mb/faster-core,-lower-latency/io-latency";
    let (storage, file) = (Storage::new(context)?, file(context)?);
    let points = storage.points()?;
    let mut outcome = Outcome::of("core,frequency_ghz,coremark_per_s,direction,latency_ms,rate_mb_s");
    let (mut grid, mut ends) = (Grid::default(), Vec::new());
    for (direction, name) in DIRECTIONS {
        let times: Vec<Nanos> = points.iter().map(|point| storage.time(direction, file, point.speed, 0)).collect();
        outcome.quantity(&format!("latency of {name}s by core"), "s", times.iter().map(|time| time.seconds()));
        for (point, time) in points.iter().zip(&times) {
            let latency = (milliseconds(*time), file.megabytes() / time.seconds());
            outcome.row((point.core.as_str(), [point.gigahertz, point.coremark], name, latency))?;
            grid.put([&point.name(), name, "latency"], Some(latency.0), None);
        }
        if let (Some(slowest), Some(fastest)) = (times.first(), times.last()) {
            let [from, to] = [slowest, fastest].map(|time| milliseconds(*time));
            ends.push(format!("{name}s from {from:.0} ms down to {to:.0} ms"));
        }
    }
    context.judge(&mut outcome, row)?;
    outcome.remark(row, ends.join("; "));
    outcome.panel("", grid.bars("latency").show_values(), Axis::new("core"), from_zero("latency", "ms"));
    Ok(outcome)
}

pub(super) fn apps(context: &Context<'_>) -> Result<Outcome> {
    let row = "fedhybrid/figure4b/ufs-3.1-128-mb/background-apps-raise-latency/io-latency";
    let (storage, file) = (Storage::new(context)?, file(context)?);
    let fastest = storage.fastest()?;
    let mut outcome = Outcome::of("background_apps,direction,latency_ms,rate_mb_s");
    let (mut points, mut more) = (Vec::new(), Vec::new());
    for (direction, name) in DIRECTIONS {
        let times: Vec<Nanos> = APPS.map(|apps| storage.time(direction, file, fastest.speed, apps)).collect();
        outcome.quantity(&format!("latency of {name}s by apps"), "s", times.iter().map(|time| time.seconds()));
        for (apps, time) in APPS.zip(&times) {
            outcome.row((apps as u64, name, milliseconds(*time), file.megabytes() / time.seconds()))?;
            points.push((name, apps as f64, milliseconds(*time)));
        }
        if let (Some(alone), Some(beside)) = (times.first(), times.last()) {
            let percent = (beside.seconds() / alone.seconds() - 1.0) * 100.0;
            more.push(format!("{name}s {percent:.1} % longer beside {} apps", APPS.end()));
        }
    }
    context.judge(&mut outcome, row)?;
    outcome.remark(row, more.join("; "));
    let streams = &storage.system.constants.background;
    outcome.quantity("what an app writes", "MB/s", [streams.rate.value.0 / 1e6]);
    outcome.quantity("pieces of what an app writes", "KiB", [streams.command.value.0 as f64 / 1024.0]);
    outcome.words("fastest core", fastest.name());
    let lines = curves(&points, |point| point.0, |point| Some((point.1, point.2)));
    let apps = Axis::new("apps in the background").ticks_at(APPS.map(|apps| apps as f64).collect::<Vec<_>>());
    outcome.panel("", lines, apps, from_zero("latency", "ms"));
    Ok(outcome)
}

pub(super) fn rates(context: &Context<'_>) -> Result<Outcome> {
    let storage = Storage::new(context)?;
    let fastest = storage.fastest()?;
    let constants = storage.device.constants.storage.as_ref();
    let constants = constants.with_context(|| format!("{S22} has no storage"))?;
    let sheet = [&constants.datasheet_read, &constants.datasheet_write];
    let mut outcome = Outcome::of("direction,rate,mb_s");
    let mut grid = Grid::default();
    for ((direction, name), sheet) in DIRECTIONS.into_iter().zip(sheet) {
        let sheet = sheet.as_ref().with_context(|| format!("{S22} has no rate of a data sheet"))?;
        let sheet = sheet.value.0 / 1e6;
        let many = storage.flash.sequential(direction).0 / 1e6;
        let one = FILE.megabytes() / storage.time(direction, FILE, fastest.speed, 0).seconds();
        let row = format!("fedhybrid/section4.3/ufs-3.1/{name}/throughput");
        let paper = context.paper(&row)?;
        for (rate, value, paper) in
            [("data sheet", sheet, paper), ("all commands together", many, None), ("one file", one, None)]
        {
            outcome.row((name, rate, value))?;
            grid.put([name, rate, "rate"], Some(value), paper);
        }
        outcome.answer(row.clone(), Answer::Input(sheet));
        let through = if direction == Direction::Read { "read through" } else { "written through" };
        outcome.remark(
            row,
            format!(
                "the vendor's figure, at which the bytes of a command move here; all commands together reach {many:.0} MB/s, a file of {} MB {through} the page cache from the fastest core {one:.0} MB/s",
                FILE.megabytes()
            ),
        );
    }
    outcome.words("fastest core", fastest.name());
    outcome.bars("", grid.bars("rate"), from_zero("rate", "MB/s"));
    Ok(outcome)
}
