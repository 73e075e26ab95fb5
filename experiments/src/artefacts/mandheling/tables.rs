//! Tables 7 and 8: time and energy of the engines, by cores and to convergence; and the null baseline of both.

use haversack_devices::{CoreSelection, CpuCores, Device, Flops, Frequency, Precision};

use super::learning;
use super::setting::{BatchCost, XIAOMI_11_PRO, batch};
use crate::artefacts::learning::stand_in_words;
use crate::artefacts::prelude::*;
use crate::papers::reference::{Reference, Role};

/// The methods of the table.
pub(crate) const METHODS: [(&str, &str); 3] =
    [("mnn-fp32", "MNN-FP32"), ("mnn-int8", "MNN-INT8"), ("mandheling", "Mandheling")];
/// The cores that the reference names `cores`: `big-4`, or all eight.
fn selection(cores: &str) -> Option<CoreSelection> {
    if cores == "hybrid-8" { Some(CoreSelection::All) } else { cores.replace('-', ":").parse().ok() }
}

/// The frequency that a metric ends in.
fn frequency(metric: &str) -> Option<Frequency> {
    [("high", Frequency::Highest), ("low", Frequency::Lowest)]
        .into_iter()
        .find(|(end, _)| metric.ends_with(end))
        .map(|found| found.1)
}

/// The scenario of a row: its cores, its method, and the frequency that its metric ends in.
pub(crate) fn of_cores(cores: &str, method: &str, metric: &str, batch: u64) -> Option<Scenario> {
    let scenario = trained(XIAOMI_11_PRO, "vgg16-cifar", method, batch);
    Some(Scenario { cores: Some(selection(cores)?), frequency: frequency(metric)?, ..scenario })
}

/// The cores that the reference calls `cores`, at the frequency that its metrics end in.
pub(super) fn chosen(device: &Device, cores: &str, metric: &str) -> Option<CpuCores> {
    device.cpu()?.choose(selection(cores)?, frequency(metric)?).ok()
}

pub(super) fn table7(context: &Context<'_>) -> Result<Outcome> {
    let samples = context.reading_number("batch")? as u64;
    let device = context.device(XIAOMI_11_PRO)?;
    let records = records(context, "time_s,energy_j", |_, ids| {
        let scenario = of_cores(&ids[1], &ids[0], &ids[2], samples);
        let BatchCost { time, energy } = batch(context, &scenario.context("no such cores or frequency")?)?;
        Ok([time.seconds(), energy.0])
    })?;
    let cores_of = |cores: &str, frequency: &str| chosen(&device, cores, frequency);
    let mut outcome = Outcome::default();
    outcome.nulls_of(&context.rows, |row| of_table7(context.reference, row, &cores_of));
    show(context, records, outcome)
}

/// The trainings on one phone: the name in the reference, and the label.
const CENTRALISED: [(&str, &str); 2] = [("vgg11-cifar10", "VGG-11"), ("resnet18-cifar10", "ResNet-18")];
/// The quantities: the name in the reference, the display name, and the unit.
const QUANTITIES: [(&str, &str, &str); 2] = [("clock-hours", "time to convergence", "h"), ("energy", "energy", "Wh")];

/// The scenario of a batch of a row's training; `None` for federated ones.
pub(crate) fn of_training(subject: &str, method: &str, batch: u64) -> Option<Scenario> {
    let model = match subject {
        "vgg11-cifar10" => "vgg11-cifar",
        "resnet18-cifar10" => "resnet18-cifar",
        _ => return None,
    };
    Some(Scenario { frequency: Frequency::Highest, ..trained(XIAOMI_11_PRO, model, method, batch) })
}

/// The rounds of the row's training, an input.
pub(crate) fn rounds(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    let same =
        |other: &&ReferenceRow| other.metric == "rounds" && other.subject == row.subject && other.method == row.method;
    reference.of(row.paper, &row.artefact).find(same)?.number()
}

/// The rounds of a training, an input.
pub(super) fn rounds_of(context: &Context<'_>, subject: &str, method: &str) -> Result<f64> {
    let id = format!("mandheling/table8/{subject}/{method}/rounds");
    context.paper(&id)?.with_context(|| format!("{id} has no number"))
}

/// Adds both quantities of a training of `rounds` rounds, each with `parts` parts that take `each`; `of` are the panel,
/// the subject and its name, the method and its name.
pub(super) fn add(
    context: &Context<'_>,
    records: &mut Records,
    of: [&str; 5],
    rounds: f64,
    each: [f64; 2],
    parts: f64,
    null: &dyn Fn(&ReferenceRow) -> Option<f64>,
) -> Result<()> {
    for ((metric, words, unit), part) in QUANTITIES.into_iter().zip(each) {
        let row = context.row(&format!("mandheling/table8/{}/{}/{metric}", of[1], of[3]))?;
        records.row((of, rounds, each, [metric, words, unit], part * rounds * parts / 3600.0, null(row)))?;
    }
    Ok(())
}

/// The operations of a batch in fp32, forward and backward, as the engines on the CPU compute them.
fn operations(context: &Context<'_>, scenario: &Scenario) -> Result<Flops> {
    let in_floats = Scenario { policy: "mnn-fp32".to_owned(), ..scenario.clone() };
    let plan = context.plan(&in_floats)?;
    Ok(plan.graph.nodes.iter().map(|node| Flops(node.work.flops.at(scenario.batch) as f64)).sum())
}

pub(super) fn table8(context: &Context<'_>) -> Result<Outcome> {
    let samples = context.reading_number("batch")? as u64;
    let batches = context.reading_number("batches-per-round")?;
    let device = context.device(XIAOMI_11_PRO)?;
    let cores_of = |cores: &str, frequency: &str| chosen(&device, cores, frequency);
    let of_table7 = Scenario { batch: samples, ..Scenario::new(XIAOMI_11_PRO, "vgg16-cifar") };
    let of_table7 = operations(context, &of_table7)?;
    let mut records =
        Records::of("panel,subject,name,method,method_name,rounds,batch_s,batch_j,quantity,words,unit,simulated,null");
    for (subject, name) in CENTRALISED {
        for (method, method_name) in METHODS {
            let Some(scenario) = of_training(subject, method, samples) else { continue };
            let (rounds, batch) = (rounds_of(context, subject, method)?, batch(context, &scenario)?);
            let share = operations(context, &scenario)?.0 / of_table7.0;
            let null = |row: &ReferenceRow| of_table8(context.reference, row, share, rounds * batches, &cores_of);
            let (of, each) = (["", subject, name, method, method_name], [batch.time.seconds(), batch.energy.0]);
            add(context, &mut records, of, rounds, each, batches, &null)?;
        }
    }
    let mut outcome = Outcome::default();
    let learned = learning::of_methods(context)?;
    learning::answer(&mut outcome, &CENTRALISED.map(|(subject, _)| subject), &learned);
    let named: Vec<String> = learned.iter().take(2).map(|one| stand_in_words(&one.stand_in)).collect();
    outcome.words("stand-ins", named.join(" in fp32; in integers "));
    learning::answer_federated(context, &mut records, &mut outcome)?;
    show(context, records, outcome)
}

/// The CPU cores of a row, by the reference's name for them (`big-4`) and for their frequency (`high`).
pub(super) type Cores<'a> = dyn Fn(&str, &str) -> Option<CpuCores> + 'a;

/// A method of Mandheling's table 7 as a roofline: one efficiency for all cores, one factor on their power.
struct Roofline {
    /// The operations of a batch divided by the efficiency.
    operations: f64,
    power_factor: f64,
}

impl Roofline {
    /// Both are medians over the method's `fit` rows.
    fn of(reference: &Reference, method: &str, cores: &Cores<'_>) -> Option<Self> {
        let fitted = |quantity: &str| {
            let rows =
                reference.of("mandheling", "table7").filter(|row| row.role() == Role::Fit && row.method == method);
            let rows = rows.filter_map(|row| Some((row, row.metric.strip_prefix(quantity)?.strip_prefix('-')?)));
            let rows = rows.filter_map(|(row, frequency)| Some((row.number()?, cores(&row.subject, frequency)?)));
            rows.collect::<Vec<_>>()
        };
        let operations = fitted("time").into_iter().map(|(time, cores)| time * peak(&cores)).collect();
        let operations = median(operations)?;
        let factor = |(energy, cores): (f64, CpuCores)| energy / (operations / peak(&cores) * cores.power().0);
        Some(Self { operations, power_factor: median(fitted("energy").into_iter().map(factor).collect())? })
    }

    /// Seconds of a batch with `share` of the operations of table 7's network.
    fn time(&self, share: f64, cores: &CpuCores) -> f64 {
        share * self.operations / peak(cores)
    }

    /// Joules of the same.
    fn energy(&self, share: f64, cores: &CpuCores) -> f64 {
        self.time(share, cores) * cores.power().0 * self.power_factor
    }
}

fn peak(cores: &CpuCores) -> f64 {
    cores.peak(Precision::Fp32).0
}

/// Table 7: a roofline over the sum of the chosen cores' fp32 peaks with one efficiency per method, and the sum of
/// their powers times one factor per method, both the medians over the method's `fit` rows.
///
/// `None` for unknown cores.
pub(super) fn of_table7(reference: &Reference, row: &ReferenceRow, cores: &Cores<'_>) -> Option<f64> {
    let (quantity, frequency) = row.metric.split_once('-')?;
    let roofline = Roofline::of(reference, &row.method, cores)?;
    let chosen = cores(&row.subject, frequency)?;
    Some(if quantity == "time" { roofline.time(1.0, &chosen) } else { roofline.energy(1.0, &chosen) })
}

/// Table 8: the rooflines of table 7 on the method's own cores at their highest frequency, for `batches`
/// batches with `share` of the operations of table 7's network; hours and watt-hours.
///
/// `None` for rows that are neither.
pub(super) fn of_table8(
    reference: &Reference,
    row: &ReferenceRow,
    share: f64,
    batches: f64,
    cores: &Cores<'_>,
) -> Option<f64> {
    let own = if row.method == "mandheling" { "big-2" } else { "big-4" };
    let (roofline, chosen) = (Roofline::of(reference, &row.method, cores)?, cores(own, "high")?);
    let each = match row.metric.as_str() {
        "clock-hours" => roofline.time(share, &chosen),
        "energy" => roofline.energy(share, &chosen),
        _ => return None,
    };
    Some(each * batches / 3600.0)
}

#[cfg(test)]
mod tests {
    use haversack_devices::Frequency;

    use super::*;

    #[test]
    fn a_method_is_one_roofline_over_the_peaks_of_its_cores() {
        let reference = Reference::load().unwrap();
        let cpu = haversack_devices::load("xiaomi-11-pro").unwrap().cpu().unwrap();
        // Always the highest frequency: it comes from data sheets, while the others are fitted.
        let cores = |cores: &str, _: &str| {
            let cores = cores.replace('-', ":").replace("hybrid:8", "all");
            cpu.choose(cores.parse().ok()?, Frequency::Highest).ok()
        };
        let null = |id: &str| of_table7(&reference, reference.row(id)?, &cores);
        // Peaks of one big core, four big and one little: 32 · 2.8416 = 90.93, 90.93 + 3 · 16 · 2.4192 = 207.05 and
        // 8 · 1.8048 = 14.44 GFLOP/s. Times of the fit rows times their peaks: 443.74, 982.97, 443.09, 799.22, 363.85
        // and 614.64; their median is (443.74 + 614.64) / 2 = 529.19. All eight have 207.05 + 4 · 14.44 = 264.81.
        let all = null("mandheling/table7/hybrid-8/mnn-fp32/time-high").unwrap();
        assert!((all - 529.193_472 / 264.806_4).abs() < 1e-6, "{all}");
        // Energy is time, power and one factor: it differs between cores as the product of the first two.
        let energy = |of: &str| null(&format!("mandheling/table7/{of}/mnn-fp32/energy-high")).unwrap();
        let product = |of: &str| {
            null(&format!("mandheling/table7/{of}/mnn-fp32/time-high")).unwrap() * cores(of, "high").unwrap().power().0
        };
        let factors = ["big-1", "little-4"].map(|of| energy(of) / product(of));
        assert!((factors[0] / factors[1] - 1.0).abs() < 1e-12 && factors[0] > 0.0, "{factors:?}");
        // Half of the operations on four big cores, a hundred times: 529.19 / 207.05 / 2 · 100 / 3600 h.
        let hours = "mandheling/table8/vgg11-cifar10/mnn-fp32/clock-hours";
        let of_table8 = |id: &str| of_table8(&reference, reference.row(id)?, 0.5, 100.0, &cores);
        let hours = of_table8(hours).unwrap();
        assert!((hours - 529.193_472 / 207.052_8 / 2.0 * 100.0 / 3600.0).abs() < 1e-6, "{hours}");
        let none = "mandheling/table8/vgg11-cifar10/mnn-fp32/rounds";
        assert_eq!(of_table8(none), None);
    }
}
