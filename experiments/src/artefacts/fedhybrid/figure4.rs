//! Figure 4, and the rates of section 4.3: how long a file takes on flash, by the core that asks and by the apps beside.

use std::ops::RangeInclusive;

use haversack_devices::storage::Direction;
use haversack_devices::{CoreSelection, CpuCores, Device, Flash, Frequency, ScalarSpeed, System};

use super::setting::{S22, on_testbed};
use crate::artefacts::prelude::*;

pub(super) static FIGURE4A: Artefact =
    of_flash("figure4a", "latency of a file of 128 MB by the core that reads or writes it", cores);
pub(super) static FIGURE4B: Artefact = of_flash("figure4b", "the same by the apps in the background", apps);
pub(super) static SECTION4_3: Artefact = of_flash("section4.3", "rates of the flash storage", rates);

/// An artefact of flash and its system, without an engine.
const fn of_flash(id: &'static str, about: &'static str, run: Run) -> Artefact {
    Artefact { stacks: &[], ..on_testbed(id, about, run) }
}

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
struct Point {
    core: String,
    gigahertz: f64,
    /// CoreMark iterations a second.
    coremark: f64,
    speed: ScalarSpeed,
}

impl Storage {
    fn new(context: &Context<'_>) -> Result<Self, ArtefactError> {
        let device = context.device(S22)?;
        let flash = device.flash().ok_or_else(|| anyhow::anyhow!("{S22} has no storage"))?;
        Ok(Self { device, flash, system: context.system(context.reading_text("system")?)? })
    }

    fn time(&self, direction: Direction, file: Bytes, speed: ScalarSpeed, apps: usize) -> Nanos {
        match direction {
            Direction::Read => self.system.read_file(&self.flash, file, speed, apps),
            Direction::Write => self.system.write_file(&self.flash, file, speed, apps),
        }
    }

    /// One core of every class at each of its operating points, from the slowest to the fastest.
    fn points(&self) -> Result<Vec<Point>, ArtefactError> {
        let cpu = self.device.cpu().ok_or_else(|| anyhow::anyhow!("{S22} has no CPU"))?;
        let mut points = Vec::new();
        for cluster in &self.device.constants.cpu {
            let one = CoreSelection::Some { class: cluster.class, count: 1 };
            let highest = cpu.choose(one, Frequency::Highest)?;
            for share in highest.operating_shares() {
                points.push(Point::new(&cluster.core, &highest.limited(share))?);
            }
        }
        points.sort_by(|a, b| a.coremark.total_cmp(&b.coremark));
        Ok(points)
    }

    fn fastest(&self) -> Result<Point, ArtefactError> {
        self.points()?.pop().ok_or_else(|| anyhow::anyhow!("{S22} has no cores"))
    }
}

impl Point {
    fn new(core: &str, cores: &CpuCores) -> Result<Self, ArtefactError> {
        const ITERATIONS: f64 = 1e6;
        let unknown = || anyhow::anyhow!("the CoreMark of {core} is not known");
        let coremark = ITERATIONS / cores.scalar_time(ITERATIONS).ok_or_else(unknown)?.seconds();
        let gigahertz = cores.cores().first().map_or(0.0, |core| core.frequency.0 / 1e9);
        let speed = ScalarSpeed::per_second(coremark).ok_or_else(unknown)?;
        Ok(Self { core: core.to_owned(), gigahertz, coremark: coremark.round(), speed })
    }

    fn name(&self) -> String {
        format!("{} {}\u{a0}GHz", self.core, self.gigahertz)
    }
}

fn milliseconds(time: Nanos) -> f64 {
    time.seconds() * 1e3
}

/// The file of the reading.
fn file(context: &Context<'_>) -> Result<Bytes, ArtefactError> {
    Ok(Bytes((context.reading_number("file")? * 1e6) as u64))
}

fn cores(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let row = "fedhybrid/figure4a/ufs-3.1-128-mb/faster-core,-lower-latency/io-latency";
    let (storage, file) = (Storage::new(context)?, file(context)?);
    let points = storage.points()?;
    let mut table = Table::new(["core", "frequency_ghz", "coremark_per_s", "direction", "latency_ms", "rate_mb_s"]);
    let mut bars = Bars::new(points.iter().map(Point::name)).show_values();
    let mut outcome = Outcome::default();
    let mut ends = Vec::new();
    for (direction, name) in DIRECTIONS {
        let times: Vec<Nanos> = points.iter().map(|point| storage.time(direction, file, point.speed, 0)).collect();
        outcome.quantity(&format!("latency of {name}s by core"), "s", times.iter().map(|time| time.seconds()));
        bars = bars.series(BarSeries::new(name, times.iter().map(|time| milliseconds(*time)).collect::<Vec<_>>()));
        for (point, time) in points.iter().zip(&times) {
            let core = [point.core.as_str().into(), point.gigahertz.into(), point.coremark.into(), name.into()];
            let rate = file.megabytes() / time.seconds();
            table.push(core.into_iter().chain([milliseconds(*time).into(), rate.into()]))?;
        }
        if let (Some(slowest), Some(fastest)) = (times.first(), times.last()) {
            let [from, to] = [slowest, fastest].map(|time| milliseconds(*time));
            ends.push(format!("{name}s from {from:.0} ms down to {to:.0} ms"));
        }
    }
    context.judge(&mut outcome, row)?;
    outcome.remark(row, ends.join("; "));
    let figure = Figure::new(format!(
        "FedHybrid, figure 4a: a file of {} MB by the core, Galaxy S22",
        file.megabytes()
    ))
    .note(
        "Cores at their operating points, the slowest first; nothing else uses the flash. The paper prints no number.",
    )
    .panel_size(640, 320)
    .panel(Panel::new(bars).x(Axis::new("core")).y(Axis::new("latency").unit("ms").from_zero()));
    Ok(outcome.drawn(figure, table))
}

fn apps(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let row = "fedhybrid/figure4b/ufs-3.1-128-mb/background-apps-raise-latency/io-latency";
    let (storage, file) = (Storage::new(context)?, file(context)?);
    let fastest = storage.fastest()?;
    let mut table = Table::new(["background_apps", "direction", "latency_ms", "rate_mb_s"]);
    let mut lines = Lines::new();
    let mut outcome = Outcome::default();
    let mut more = Vec::new();
    for (direction, name) in DIRECTIONS {
        let times: Vec<Nanos> = APPS.map(|apps| storage.time(direction, file, fastest.speed, apps)).collect();
        outcome.quantity(&format!("latency of {name}s by apps"), "s", times.iter().map(|time| time.seconds()));
        for (apps, time) in APPS.zip(&times) {
            let rate = file.megabytes() / time.seconds();
            table.push([(apps as u64).into(), name.into(), milliseconds(*time).into(), rate.into()])?;
        }
        if let (Some(alone), Some(beside)) = (times.first(), times.last()) {
            let percent = (beside.seconds() / alone.seconds() - 1.0) * 100.0;
            more.push(format!("{name}s {percent:.1} % longer beside {} apps", APPS.end()));
        }
        let points: Vec<_> = APPS.zip(&times).map(|(apps, time)| (apps as f64, milliseconds(*time))).collect();
        lines = lines.series(Series::new(name, points));
    }
    let Point { core, gigahertz, .. } = &fastest;
    let streams = &storage.system.constants.background;
    context.judge(&mut outcome, row)?;
    outcome.remark(row, more.join("; "));
    let figure = Figure::new(format!(
        "FedHybrid, figure 4b: a file of {} MB beside apps, Galaxy S22",
        file.megabytes()
    ))
    .note(format!(
        "From a {core} at {gigahertz} GHz; an app writes {} MB/s in pieces of {} KiB. The paper prints no number.",
        streams.rate.value.0 / 1e6,
        streams.command.value.0 / 1024
    ))
    .panel_size(520, 320)
    .panel(
        Panel::new(lines)
            .x(Axis::new("apps in the background").ticks_at(APPS.map(|apps| apps as f64).collect::<Vec<_>>()))
            .y(Axis::new("latency").unit("ms").from_zero()),
    );
    Ok(outcome.drawn(figure, table))
}

fn rates(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let storage = Storage::new(context)?;
    let fastest = storage.fastest()?;
    let constants = storage.device.constants.storage.as_ref();
    let constants = constants.ok_or_else(|| anyhow::anyhow!("{S22} has no storage"))?;
    let sheet = [&constants.datasheet_read, &constants.datasheet_write];
    let mut outcome = Outcome::default();
    let mut table = Table::new(["direction", "rate", "mb_s"]);
    let (mut stated, mut paper, mut reached, mut of_files) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for ((direction, name), sheet) in DIRECTIONS.into_iter().zip(sheet) {
        let sheet = sheet.as_ref().ok_or_else(|| anyhow::anyhow!("{S22} has no rate of a data sheet"))?;
        let sheet = sheet.value.0 / 1e6;
        let many = storage.flash.sequential(direction).0 / 1e6;
        let one = FILE.megabytes() / storage.time(direction, FILE, fastest.speed, 0).seconds();
        let row = format!("fedhybrid/section4.3/ufs-3.1/{name}/throughput");
        paper.push(context.row(&row)?.number());
        for (rate, value) in [("data sheet", sheet), ("all commands together", many), ("one file", one)] {
            table.push([name.into(), rate.into(), value.into()])?;
        }
        stated.push(sheet);
        reached.push(many);
        of_files.push(one);
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
    let bars = Bars::new(DIRECTIONS.map(|(_, name)| name))
        .series(BarSeries::new("data sheet", stated))
        .series(BarSeries::new("data sheet", paper).look(Look::Hatched))
        .series(BarSeries::new("all commands together", reached))
        .series(BarSeries::new(format!("one file of {} MB", FILE.megabytes()), of_files))
        .show_values();
    let figure = Figure::new("FedHybrid, section 4.3: rates of UFS 3.1, Galaxy S22")
        .note(format!("Files from a {} at {} GHz, nothing else under way.", fastest.core, fastest.gigahertz))
        .panel_size(560, 320)
        .panel(Panel::new(bars).y(Axis::new("rate").unit("MB/s").from_zero()));
    Ok(outcome.drawn(figure, table))
}
