//! The null baselines of tables 7 and 8: rooflines with one efficiency.

use haversack_devices::{CpuCores, Precision};

use crate::artefacts::prelude::*;
use crate::papers::reference::{Reference, Role};

/// The CPU cores of a row, by the reference's name for them (`big-4`) and for their frequency (`high`).
pub(super) type Cores<'a> = dyn Fn(&str, &str) -> Option<CpuCores> + 'a;

/// A method of Mandheling's table 7 as a roofline: one efficiency whatever the cores, one factor on their power.
struct Roofline {
    /// Operations of a batch over the efficiency.
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

/// Table 7: a roofline over the sum of the chosen cores' fp32 peaks with one efficiency a method, and the
/// sum of their powers times one factor a method, both the medians over the method's `fit` rows.
///
/// `None` for cores that there are not.
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
        // All at the highest frequency, whatever the row: those are data sheets', the others are fitted.
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
