//! The null baseline of table 1: what its mechanisms must beat on `check` rows to have earned their place.

use crate::artefacts::prelude::*;
use crate::papers::reference::Reference;

/// The model whose ratios the others are given.
const DONOR: &str = "resnet50";
/// The method that every ratio is relative to.
const ORIGINAL: &str = "original";

/// The model's own *Original* row times ResNet-50's ratio of this row to its Original.
///
/// `None` for ResNet-50 itself and for Original rows, which would be their own baseline, and if a number that is needed
/// is withheld.
pub(super) fn null(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    if row.subject == DONOR || row.method == ORIGINAL {
        return None;
    }
    let given = |subject: &str, method: &str| {
        let same =
            |other: &&ReferenceRow| other.subject == subject && other.method == method && other.metric == row.metric;
        reference.of(row.paper, &row.artefact).find(same).and_then(ReferenceRow::number)
    };
    let ratio = given(DONOR, &row.method)? / given(DONOR, ORIGINAL)?;
    Some(given(&row.subject, ORIGINAL)? * ratio).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_models_ratio_is_applied_to_the_models_own_original() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| null(&reference, reference.row(id)?);
        // 290 ms of MobileNet-v2's Original times ResNet-50's 1240 / 1161 = 309.73 ms.
        let direct = null("sage/table1/mobilenetv2/direct/latency").unwrap();
        assert!((direct - 309.73).abs() < 0.01, "{direct}");
        // A withheld row has a baseline too: 5120 nodes of DenseNet-121 times 650 / 1762 = 1888.76.
        let withheld = null("sage/table1/densenet121/direct+of+sr/co-nodes").unwrap();
        assert!((withheld - 1888.76).abs() < 0.01, "{withheld}");
        assert_eq!(null("sage/table1/mobilenetv2/original/latency"), None);
        assert_eq!(null("sage/table1/resnet50/direct/latency"), None);
        assert_eq!(null("sage/table1/nosuch/direct/latency"), None);
    }
}
