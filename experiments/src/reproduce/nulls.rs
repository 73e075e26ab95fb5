//! Null baselines: what a mechanism must beat on `check` rows to have earned its place.

use haversack_devices::CpuCores;
use haversack_devices::work::Precision;

use super::reference::{Reference, Role, Row};
use super::summary::median;
use crate::artefacts::mandheling::table4;

/// The model whose ratios the others are given.
const DONOR: &str = "resnet50";
/// The row that every ratio is relative to.
const ORIGINAL: &str = "original";

/// Sage, table 1: the model's own *Original* row times ResNet-50's ratio of this row to its Original.
///
/// `None` for ResNet-50 itself and for Original rows, which would be their own baseline, for ids of other artefacts,
/// and where a number that is needed is withheld.
#[must_use]
pub fn sage_table1_null(reference: &Reference, id: &str) -> Option<f64> {
    let row = reference.row(id).filter(|row| row.place() == "sage/table1")?;
    if row.subject == DONOR || row.method == ORIGINAL {
        return None;
    }
    let given = |subject: &str, method: &str| {
        let same = |other: &&Row| other.subject == subject && other.method == method && other.metric == row.metric;
        reference.of("sage", "table1").find(same).and_then(Row::number)
    };
    let ratio = given(DONOR, &row.method)? / given(DONOR, ORIGINAL)?;
    Some(given(&row.subject, ORIGINAL)? * ratio).filter(|value| value.is_finite())
}

/// DAF, table 1: the subject's own *Original* row times one ratio a method, the median over the method's `fit` rows.
///
/// `None` for Original rows and ids of other artefacts.
#[must_use]
pub fn daf_table1_null(reference: &Reference, id: &str) -> Option<f64> {
    let row = reference.row(id).filter(|row| row.place() == "daf/table1" && row.metric == "memory")?;
    if row.method == ORIGINAL {
        return None;
    }
    let original = |subject: &str| {
        let same = |other: &&Row| other.subject == subject && other.method == ORIGINAL && other.metric == row.metric;
        reference.of("daf", "table1").find(same).and_then(Row::number)
    };
    let known = |other: &&Row| other.role == Role::Fit && other.method == row.method && other.metric == row.metric;
    let ratios = reference.of("daf", "table1").filter(known);
    let ratios = ratios.filter_map(|other| Some(other.number()? / original(&other.subject)?)).collect();
    Some(original(&row.subject)? * median(ratios)?)
}

/// The CPU cores of a row, by the reference's name for them (`big-4`) and for their frequency (`high`).
pub type Cores<'a> = dyn Fn(&str, &str) -> Option<CpuCores> + 'a;

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
            let rows = reference.of("mandheling", "table7").filter(|row| row.role == Role::Fit && row.method == method);
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

/// Mandheling, table 7: a roofline over the sum of the chosen cores' fp32 peaks with one efficiency a method, and the
/// sum of their powers times one factor a method, both the medians over the method's `fit` rows.
///
/// `None` for ids of other artefacts, and for cores that there are not.
#[must_use]
pub fn mandheling_table7_null(reference: &Reference, id: &str, cores: &Cores<'_>) -> Option<f64> {
    let row = reference.row(id).filter(|row| row.place() == "mandheling/table7")?;
    let (quantity, frequency) = row.metric.split_once('-')?;
    let roofline = Roofline::of(reference, &row.method, cores)?;
    let chosen = cores(&row.subject, frequency)?;
    Some(if quantity == "time" { roofline.time(1.0, &chosen) } else { roofline.energy(1.0, &chosen) })
}

/// Mandheling, table 8: the rooflines of table 7 on the method's own cores at their highest frequency, for `batches`
/// batches with `share` of the operations of table 7's network; hours and watt-hours.
///
/// `None` for ids of other artefacts, and for rows that are neither.
#[must_use]
pub fn mandheling_table8_null(
    reference: &Reference,
    id: &str,
    (share, batches): (f64, f64),
    cores: &Cores<'_>,
) -> Option<f64> {
    let row = reference.row(id).filter(|row| row.place() == "mandheling/table8")?;
    let own = if row.method == "mandheling" { "big-2" } else { "big-4" };
    let (roofline, chosen) = (Roofline::of(reference, &row.method, cores)?, cores(own, "high")?);
    let each = match row.metric.as_str() {
        "clock-hours" => roofline.time(share, &chosen),
        "energy" => roofline.energy(share, &chosen),
        _ => return None,
    };
    Some(each * batches / 3600.0)
}

/// Mandheling, table 4: a roofline with one efficiency. The convolution's multiply-adds over one rate, the median over
/// the table's `fit` rows.
///
/// `None` for ids of other artefacts.
#[must_use]
pub fn mandheling_table4_null(reference: &Reference, id: &str) -> Option<f64> {
    // Channels and taps are alike in all rows, so that samples and pixels alone tell their multiply-adds apart.
    let work = |row: &Row| {
        let (size, batch) = table4::setting(&row.subject, &row.method)?;
        Some((size * size * batch) as f64)
    };
    let row = reference.row(id).filter(|row| row.place() == "mandheling/table4")?;
    let known = reference.of("mandheling", "table4").filter(|other| other.role == Role::Fit);
    let rates = known.filter_map(|other| Some(work(other)? / other.number()?)).collect();
    Some(work(row)? / median(rates)?)
}

impl Reference {
    /// FedHybrid, table 1 and figure 5: one number a method whatever the network, the batch and the phone, the median of
    /// the method's `fit` rows of the same metric; figure 5's two parts are one.
    ///
    /// `None` where the row itself is the only such row, and for all other artefacts: figures 1c and 2 have no two rows
    /// of one method and metric of which one is `fit` and another is not. Figure 1c's and 2a's rows are all `fit`, and
    /// the memory in use of figure 2b and the counts of figure 2c are all `check`.
    #[must_use]
    pub fn fedhybrid_null(&self, id: &str) -> Option<f64> {
        let row = self.row(id).filter(|row| row.paper == "fedhybrid")?;
        let together: &[&str] = match row.artefact.as_str() {
            "table1" => &["table1"],
            "figure5a" | "figure5b" => &["figure5a", "figure5b"],
            _ => return None,
        };
        let alike = |other: &&Row| other.method == row.method && other.metric == row.metric && other.role == Role::Fit;
        let known = together.iter().flat_map(|artefact| self.of(row.paper, artefact)).filter(alike);
        let known: Vec<&Row> = known.collect();
        if known.iter().all(|other| other.id == row.id) {
            return None;
        }
        median(known.into_iter().filter_map(Row::number).collect())
    }
}

#[cfg(test)]
mod tests {
    use haversack_devices::Frequency;

    use super::*;

    #[test]
    fn a_method_has_one_ratio() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| daf_table1_null(&reference, id);
        // Fixed 8 Bits over Original on its fit rows: 670 / 1196 = 0.5602, 457 / 917 = 0.4984, 2390 / 3470 = 0.6888,
        // 5928 / 8385 = 0.7070; their median is (0.5602 + 0.6888) / 2 = 0.6245, and 3472 times that 2168.2.
        let fixed = null("daf/table1/roberta-base-mrpc/fixed8/memory").unwrap();
        assert!((fixed - 2168.2).abs() < 0.5, "{fixed}");
        assert_eq!(null("daf/table1/roberta-base-mrpc/original/memory"), None);
        assert_eq!(null("daf/table1/roberta-base-mrpc/fixed8/accuracy"), None);
        assert_eq!(null("daf/table2/resnet18-cifar10/cpu-only/time"), None);
    }

    #[test]
    fn another_models_ratio_is_applied_to_the_models_own_original() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| sage_table1_null(&reference, id);
        // 290 ms of MobileNet-v2's Original times ResNet-50's 1240 / 1161 = 309.73 ms.
        let direct = null("sage/table1/mobilenetv2/direct/latency").unwrap();
        assert!((direct - 309.73).abs() < 0.01, "{direct}");
        // A withheld row has a baseline too: 5120 nodes of DenseNet-121 times 650 / 1762 = 1888.76.
        let withheld = null("sage/table1/densenet121/direct+of+sr/co-nodes").unwrap();
        assert!((withheld - 1888.76).abs() < 0.01, "{withheld}");
        assert_eq!(null("sage/table1/mobilenetv2/original/latency"), None);
        assert_eq!(null("sage/table1/resnet50/direct/latency"), None);
        assert_eq!(null("sage/figure2/mobilenetv2/training/memory"), None);
        assert_eq!(null("sage/table1/nosuch/direct/latency"), None);
    }

    #[test]
    fn one_rate_for_every_convolution() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| mandheling_table4_null(&reference, id);
        // Pixels of all samples a millisecond on the ten fit rows: 8×8 at 2, 8, 16 and 64 samples 203.2, 602.4, 994.2
        // and 2226.1; 16×16 at 2, 4 and 8 609.5, 1150.6 and 484.2; 32×32 at 2, 4 and 32 1211.8, 1638.4 and 481.0.
        // The middle two are 609.5 and 994.2, their mean is 801.8: 32 · 32 · 8 / 801.8 = 10.216 ms.
        for id in [
            "mandheling/table4/conv-64x64-32x32/batch-8/latency",
            "mandheling/table4/conv-64x64-16x16/batch-32/latency",
        ] {
            let value = null(id).unwrap();
            assert!((value - 10.216).abs() < 1e-3, "{id}: {value}");
        }
        assert_eq!(null("mandheling/table3/slice/dsp/latency"), None);
    }

    #[test]
    fn a_method_is_one_roofline_over_the_peaks_of_its_cores() {
        let reference = Reference::load().unwrap();
        let cpu = haversack_devices::load("xiaomi-11-pro").unwrap().cpu().unwrap();
        // All at the highest frequency, whatever the row: those are data sheets', the others are fitted.
        let cores = |cores: &str, _: &str| {
            let cores = cores.replace('-', ":").replace("hybrid:8", "all");
            cpu.choose(cores.parse().ok()?, Frequency::Highest).ok()
        };
        let null = |id: &str| mandheling_table7_null(&reference, id, &cores);
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
        let hours = mandheling_table8_null(&reference, hours, (0.5, 100.0), &cores).unwrap();
        assert!((hours - 529.193_472 / 207.052_8 / 2.0 * 100.0 / 3600.0).abs() < 1e-6, "{hours}");
        let none = "mandheling/table8/vgg11-cifar10/mnn-fp32/rounds";
        assert_eq!(mandheling_table8_null(&reference, none, (0.5, 100.0), &cores), None);
        assert_eq!(null("mandheling/table4/conv-64x64-8x8/batch-4/latency"), None);
    }

    #[test]
    fn a_method_of_fedhybrids_has_one_number() {
        let reference = Reference::load().unwrap();
        // The fit rows of table 1 are 19.7, 14.2 and 57.8 %: the middle one stands for all, a withheld row too.
        for subject in ["resnet34", "bert", "swin-finetune"] {
            let id = format!("fedhybrid/table1/{subject}/recomputation/layout-transformation-share");
            assert_eq!(reference.fedhybrid_null(&id), Some(19.7), "{id}");
        }
        // Figure 5 has one fit row, which is no baseline of itself and that of the other three.
        let overhead = |place: &str| reference.fedhybrid_null(&format!("fedhybrid/{place}/melon/latency-overhead"));
        assert_eq!(overhead("figure5a/s22-mobilenetv2-batch-32"), None);
        assert_eq!(overhead("figure5a/s22-bert-batch-8"), Some(2.3));
        assert_eq!(overhead("figure5b/redmi-note10-mobilenetv2-batch-32"), Some(2.3));
        assert_eq!(reference.fedhybrid_null("fedhybrid/figure2b/s22-batch-32/system/memory-used"), None);
    }
}
