//! Null baselines: what a mechanism must beat on `check` rows to have earned its place.

use super::reference::{Reference, Role, Row};
use super::summary::median;

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

#[cfg(test)]
mod tests {
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
}
