//! The terminal's output at the end of a sweep.
//!
//! Also the pictures: memory against throughput and against energy, with the Pareto fronts of a device and a model,
//! one cloud per policy.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

use haversack_reports::pareto::{fair_front, front};
use haversack_reports::table::three_digits;
use haversack_reports::{Axis, Figure, FigureError, Front, Panel, Rendered, Sense, Senses};
use haversack_training::FidelityClass;
use indexmap::IndexSet;
use indicatif::HumanCount;
use rayon::prelude::*;
use strum::VariantArray;

use super::found::{Cloud, Found, Reached, SETTINGS};
use super::{CSV, RESULTS, Specification, SweepOptions};
use crate::Key;
use crate::progress::word;
use crate::quantities::{cut, more, range};
use crate::run::Status;
use crate::texts::headed;
use crate::work::RECORD;

/// The most rows of the table.
const ROWS: usize = 14;
/// The most pictures whose fronts are described in words, and the most fronts.
const TOLD: usize = 3;
const FRONTS: usize = 6;

/// The summary; the last line names `files`.
pub(super) fn text(found: &Found, files: &str) -> String {
    let mut text = format!("{}\n", statuses(found));
    let clouds: Vec<(&Cloud, Vec<(&Reached, usize)>)> =
        found.clouds.iter().map(|cloud| (cloud, ranked(cloud))).collect();
    if clouds.iter().any(|(_, ranked)| !ranked.is_empty()) {
        table(&mut text, &clouds);
        fronts(&mut text, &clouds);
    }
    // Writing to a text cannot fail.
    let _ = writeln!(text, "\nwrote {files}");
    text
}

/// "320 runs: 236 ok, 84 infeasible".
pub(super) fn statuses(found: &Found) -> String {
    let runs: u64 = found.statuses.iter().sum();
    let by_status = Status::VARIANTS.iter().zip(found.statuses).filter(|(_, number)| *number > 0);
    let by_status: Vec<String> =
        by_status.map(|(status, number)| format!("{} {}", HumanCount(number), status.word())).collect();
    let runs = format!("{} {}", HumanCount(runs), if runs == 1 { "run" } else { "runs" });
    if by_status.is_empty() { runs } else { format!("{runs}: {}", by_status.join(", ")) }
}

/// The policies of a picture with the number of their runs on its front, the fastest first; then the policies without a
/// run that fits, by the memory they would need.
fn ranked(cloud: &Cloud) -> Vec<(&Reached, usize)> {
    let of_points = |reached: &Reached| reached.points.len();
    let points: Vec<(f64, f64)> = cloud.policies.iter().flat_map(|reached| reached.points.iter().copied()).collect();
    let fidelities = cloud.policies.iter().flat_map(|reached| &reached.fidelities);
    let losses: Vec<[u64; 4]> = fidelities.map(|(_, losses)| *losses).collect();
    let mut on_front = fair_front(&points, &losses, SENSES);
    on_front.sort_unstable();
    let mut start = 0;
    let mut ranked = Vec::new();
    for reached in &cloud.policies {
        let end = start + of_points(reached);
        let place = |limit: usize| on_front.partition_point(|index| *index < limit);
        ranked.push((reached, place(end) - place(start)));
        start = end;
    }
    let rate = |reached: &Reached| reached.fastest.as_ref().map_or(0.0, |fastest| fastest.samples_per_s);
    let need = |reached: &Reached| reached.least.map_or(u64::MAX, |bytes| bytes.0);
    ranked.sort_by(|(a, _), (b, _)| rate(b).total_cmp(&rate(a)).then(need(a).cmp(&need(b))));
    ranked
}

/// One row per policy, as many of each picture as there is space for.
fn table(text: &mut String, clouds: &[(&Cloud, Vec<(&Reached, usize)>)]) {
    let mut table =
        headed("device¦model¦policy¦>ok¦>samples/s¦>iteration (s)¦>memory (MB)¦>least memory (MB)¦>on the front");
    let rows: usize = clouds.iter().map(|(_, ranked)| ranked.len()).sum();
    let each = if rows > ROWS { (ROWS / clouds.len().max(1)).max(1) } else { rows };
    let mut shown = 0;
    for (cloud, ranked) in clouds.iter().take(ROWS) {
        for (reached, on_front) in ranked.iter().take(each) {
            shown += 1;
            let fastest = reached.fastest.as_ref();
            let figure = |number: Option<f64>| number.map_or_else(|| "–".to_owned(), three_digits);
            table.row([
                cloud.device.clone(),
                cloud.called().to_owned(),
                reached.policy.clone(),
                format!("{} of {}", reached.points.len(), reached.runs),
                figure(fastest.map(|fastest| fastest.samples_per_s)),
                figure(fastest.map(|fastest| fastest.iteration_time_s)),
                figure(fastest.map(|fastest| fastest.memory.megabytes())),
                figure(reached.least.map(|bytes| bytes.megabytes())),
                on_front.to_string(),
            ]);
        }
    }
    let _ = write!(text, "\nthe fastest run of each policy, and the least memory with which it runs\n{table}");
    *text += &more("… ", rows, shown, "");
}

/// The ends of the fronts.
fn fronts(text: &mut String, clouds: &[(&Cloud, Vec<(&Reached, usize)>)]) {
    let mut told = 0;
    for (cloud, _) in clouds.iter().take(TOLD) {
        let points = cloud.runs();
        let classes: BTreeSet<FidelityClass> = points.iter().map(|(_, class, _)| *class).collect();
        for class in &classes {
            let own: Vec<_> = points.iter().filter(|(_, of, _)| of == class).collect();
            let plain: Vec<(f64, f64)> = own.iter().map(|(point, ..)| *point).collect();
            let on_front = front(&plain, SENSES);
            let end = |index: Option<&usize>| {
                let ((memory, rate), _, policy) = own.get(*index?)?;
                Some(format!("{} MB and {} samples/s ({policy})", three_digits(*memory), three_digits(*rate)))
            };
            let (Some(least), Some(most)) = (end(on_front.first()), end(on_front.last())) else { continue };
            if told == FRONTS {
                return;
            }
            let before = if told == 0 { "\n" } else { "" };
            told += 1;
            let runs = if least == most { least } else { format!("{} runs from {least} to {most}", on_front.len()) };
            let of_class = if classes.len() > 1 { format!(", {}", class.word()) } else { String::new() };
            let _ = writeln!(text, "{before}the front of {}{of_class}: {runs}", cloud.title());
        }
    }
}

/// Points of a policy, each with the class of its run.
fn of_classes<'a>(
    points: &'a [(f64, f64)],
    reached: &'a Reached,
) -> impl Iterator<Item = ((f64, f64), FidelityClass)> + 'a {
    points.iter().copied().zip(reached.fidelities.iter().map(|(class, _)| *class))
}

/// The name of a policy's runs of one class in a picture.
fn called(policy: &str, class: FidelityClass) -> String {
    if class == FidelityClass::Exact { policy.to_owned() } else { format!("{policy}, {}", class.word()) }
}

/// The most values of a key that are listed.
const WRITTEN_OUT: usize = 6;
/// The most file names that are listed.
const NAMES: usize = 8;

/// The text of `sweep --dry-run`; the values of `unsupported` runs are known not to fit together.
pub(super) fn dry_run(options: &SweepOptions, specification: &Specification, unsupported: u64) -> String {
    let axes = specification.axes();
    let mut text = format!("{} runs\n\n", HumanCount(specification.runs()));
    let mut table = headed("¦>¦");
    for (key, values) in &axes {
        table.row([key.name().to_owned(), HumanCount(values.len() as u64).to_string(), values_in_words(values)]);
    }
    // Writing to a text cannot fail.
    let _ = write!(
        text,
        "{table}\n{} are known to be unsupported: their values do not go together\n",
        HumanCount(unsupported)
    );
    if let Some(shard) = options.shard {
        let runs = shard.of(specification.runs());
        let number = HumanCount(runs.end - runs.start);
        let _ = writeln!(text, "shard {shard} runs {number} of them, from run {} on", runs.start);
    }
    let mut files = vec![RESULTS.to_owned(), CSV.to_owned(), RECORD.to_owned()];
    if options.shard.is_none() {
        files.extend(pictures(&axes).into_iter().map(|name| format!("{name}.{{svg,png}}")));
    }
    let _ = writeln!(text, "would write to {}: {}", word(&options.work.out), cut(&files, NAMES, files.len()));
    text
}

/// The names of the pictures, in the order of the sweep.
fn pictures(axes: &[(Key, Vec<String>)]) -> Vec<String> {
    let values = |key: Key| axes.iter().find(|(found, _)| *found == key).map(|(_, values)| values.as_slice());
    let (devices, models) = (values(Key::Device).unwrap_or_default(), values(Key::Model).unwrap_or_default());
    let mut found = Found::default();
    devices
        .iter()
        .flat_map(|device| models.iter().map(move |model| (device, model)))
        .map(|(device, model)| found.cloud(device, model).name.clone())
        .collect()
}

/// The values, or the first of them and the last.
fn values_in_words(values: &[String]) -> String {
    match values {
        [first @ .., last] if values.len() > WRITTEN_OUT => {
            format!("{}, …, {last}", first.iter().take(WRITTEN_OUT - 2).cloned().collect::<Vec<_>>().join(", "))
        }
        _ => values.join(", "),
    }
}

/// The direction of improvement for memory, and for throughput.
pub(super) const SENSES: Senses = [Sense::Minimise, Sense::Maximise];

/// The most values of a setting that a picture lists.
const FEW: usize = 6;
/// The most points of a policy that are all drawn; of more, one for each cell of a grid that is finer than the picture.
const ALL_DRAWN: usize = 1 << 10;
const RASTER: f64 = 700.0;

/// The pictures, each with the name of its files.
pub(super) fn draw(found: &Found) -> Result<Vec<(String, Rendered)>, FigureError> {
    // Colours are assigned to names in one order, so that a policy has the same colour in every picture.
    let policies = found.clouds.iter().flat_map(|cloud| &cloud.policies);
    let names =
        policies.flat_map(|reached| reached.fidelities.iter().map(|(class, _)| called(&reached.policy, *class)));
    let order: IndexSet<String> = names.collect();
    let draw = |cloud: &Cloud| Ok((cloud.name.clone(), figure(cloud, &order).render()?));
    found.clouds.par_iter().map(draw).collect()
}

fn figure(cloud: &Cloud, order: &IndexSet<String>) -> Figure {
    // The sweep may change the device's memory.
    let ram = haversack_devices::load(&cloud.device).ok().map(|device| device.ram().megabytes());
    let panel = |points: fn(&Reached) -> &[(f64, f64)], start: Front, axis| {
        let all = || cloud.policies.iter().flat_map(points);
        let (memory, value) = (span(all().map(|point| point.0)), span(all().map(|point| point.1)));
        let start = ram.into_iter().fold(start.overall(), |front, ram| front.wall(ram, "the device's RAM"));
        let add = |front: Front, reached: &Reached| {
            let classes: BTreeSet<FidelityClass> = reached.fidelities.iter().map(|(class, _)| *class).collect();
            classes.into_iter().fold(front, |front, class| {
                let own = of_classes(points(reached), reached).filter(|(_, of)| *of == class);
                let own: Vec<(f64, f64)> = own.map(|(point, _)| point).collect();
                front.cloud_of(class.word(), called(&reached.policy, class), drawn(&own, memory, value))
            })
        };
        Panel::new(cloud.policies.iter().fold(start, add)).x(Axis::new("peak memory").unit("MB")).y(axis)
    };
    let bounded = |front: Front| cloud.bounds.values().fold(front, |front, kind| front.bound(kind.as_slice()));
    let throughput = panel(
        |reached| &reached.points,
        bounded(Front::new().senses(SENSES)),
        Axis::new("throughput").unit("samples/s"),
    );
    let energy = panel(|reached| &reached.energies, Front::new(), Axis::new("energy of a sample").unit("J"));
    let figure = Figure::new(cloud.finding()).order(order.iter().map(String::as_str));
    let figure = Figure { note: Some(settings(cloud)), ..figure }.panel(throughput);
    if cloud.policies.iter().any(|reached| !reached.energies.is_empty()) { figure.panel(energy) } else { figure }
}

/// "batch 8; stack pytorch-cuda; precision fp32 and fp16".
fn settings(cloud: &Cloud) -> String {
    let known = SETTINGS.iter().zip(&cloud.settings).filter(|(_, values)| !values.is_empty());
    let words = known.map(|(name, values)| {
        let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
        values.sort_by_key(|value| value.parse::<u64>().ok());
        if values.len() > FEW {
            format!("{name} of {} kinds", values.len())
        } else {
            format!("{name} {}", values.join(", "))
        }
    });
    words.collect::<Vec<_>>().join("; ")
}

/// The least of the values, and the distance from it to the largest.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, largest) = range(values).unwrap_or((0.0, 1.0));
    (least, if largest > least { largest - least } else { 1.0 })
}

/// The points of a picture that are drawn: if there are many, the first of each cell.
fn drawn(points: &[(f64, f64)], memory: (f64, f64), throughput: (f64, f64)) -> Vec<(f64, f64)> {
    if points.len() <= ALL_DRAWN {
        return points.to_vec();
    }
    let cell = |value: f64, (least, width): (f64, f64)| ((value - least) / width * RASTER) as u32;
    let mut taken = HashSet::new();
    let is_first = |point: &&(f64, f64)| taken.insert((cell(point.0, memory), cell(point.1, throughput)));
    points.iter().filter(is_first).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::found::Fastest;
    use super::*;
    use haversack_devices::units::Bytes;

    fn reached(policy: &str, points: &[(f64, f64)], runs: u64, least: u64) -> Reached {
        let best = points.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let fastest = best.map(|(memory, rate)| Fastest {
            samples_per_s: *rate,
            iteration_time_s: 8.0 / rate,
            memory: Bytes((memory * 1e6) as u64),
        });
        let fidelities = vec![(FidelityClass::Exact, [0; 4]); points.len()];
        let (points, energies) = (points.to_vec(), Vec::new());
        Reached { policy: policy.into(), runs, points, energies, fidelities, fastest, least: Some(Bytes(least)) }
    }

    fn cloud(model: &str, policies: Vec<Reached>) -> Cloud {
        Cloud {
            device: "phone".into(),
            model: model.into(),
            name: String::new(),
            settings: Default::default(),
            policies,
            bounds: Default::default(),
        }
    }

    #[test]
    fn the_fastest_comes_first_and_the_front_is_counted() {
        // Of the five points (300, 40) and (100, 20) of b and (50, 10) of a are on the front: (200, 20) needs more than
        // (100, 20), and (300, 30) than (300, 40).
        let policies = vec![
            reached("a", &[(50.0, 10.0), (200.0, 20.0), (300.0, 30.0)], 4, 50_000_000),
            reached("none", &[], 4, 1_234_000_000),
            reached("b", &[(100.0, 20.0), (300.0, 40.0)], 4, 100_000_000),
        ];
        let found = Found { statuses: [5, 6, 0, 0, 1], clouds: vec![cloud("net", policies)], ..Found::default() };
        let expected = "\
12 runs: 5 ok, 6 infeasible, 1 error

the fastest run of each policy, and the least memory with which it runs
device  model  policy      ok  samples/s  iteration (s)  memory (MB)  least memory (MB)  on the front
phone   net    b       2 of 4         40            0.2          300                100             2
phone   net    a       3 of 4         30          0.267          300                 50             1
phone   net    none    0 of 4          –              –            –               1234             0

the front of net on phone: 3 runs from 50 MB and 10 samples/s (a) to 300 MB and 40 samples/s (b)

wrote out/results.parquet
";
        assert_eq!(text(&found, "out/results.parquet"), expected);
    }

    #[test]
    fn a_run_that_gives_something_up_stands_in_nobodys_way() {
        // With four-bit storage, b is faster in less memory than a, which stays on its own front; c loses more than b.
        let [a, mut b, mut c] = [("a", 100.0, 10.0), ("b", 50.0, 20.0), ("c", 60.0, 15.0)]
            .map(|(policy, memory, rate)| reached(policy, &[(memory, rate)], 1, 1));
        b.fidelities = vec![(FidelityClass::Stored, [0, 0, 28, 0])];
        c.fidelities = vec![(FidelityClass::Stored, [0, 0, 30, 0])];
        let found = cloud("net", vec![a, b, c]);
        assert_eq!(ranked(&found).iter().map(|(_, on_front)| *on_front).collect::<Vec<_>>(), [1, 0, 1]);
        let text = text(&Found { clouds: vec![found], ..Found::default() }, "it");
        assert!(text.contains("net on phone, exact: 100 MB and 10 samples/s (a)\n"), "{text}");
        assert!(text.contains("net on phone, stored: 50 MB and 20 samples/s (b)\n"), "{text}");
    }

    #[test]
    fn however_many_pictures_there_are_the_text_is_short() {
        let policies = || (0..9).map(|n| reached(&n.to_string(), &[(1.0, f64::from(n))], 1, 1)).collect();
        let clouds = (0..60).map(|n| cloud(&n.to_string(), policies())).collect();
        let text = text(&Found { statuses: [540, 0, 0, 0, 0], clouds, ..Found::default() }, "it");
        // 14 of the 540 rows are shown.
        assert!(text.contains("… and 526 more") && text.lines().count() <= 26, "{text}");
    }

    #[test]
    fn many_points_are_drawn_once_a_cell_and_few_all() {
        // Ten thousand points along a line of 10 by 5: a cell is 10 / 700 wide, so 701 cells are hit, the last
        // one only by the end.
        let line: Vec<(f64, f64)> = (0..10_000).map(|n| f64::from(n) / 999.9).map(|x| (x, x / 2.0)).collect();
        let (memory, throughput) = (span(line.iter().map(|p| p.0)), span(line.iter().map(|p| p.1)));
        let shown = drawn(&line, memory, throughput);
        assert_eq!((shown.len(), shown[0]), (701, line[0]));
        assert_eq!(drawn(&line[..ALL_DRAWN], memory, throughput), line[..ALL_DRAWN]);
        // Equal values have no extent, and are drawn.
        let same = vec![(1.0, 2.0); ALL_DRAWN + 1];
        assert_eq!(drawn(&same, span([1.0].into_iter()), span([2.0].into_iter())), [(1.0, 2.0)]);
    }
}
