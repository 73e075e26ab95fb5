//! The null baseline of table 1: one ratio a method.

use crate::artefacts::prelude::*;
use crate::papers::reference::{Reference, Role};

/// The method that every ratio is relative to.
const ORIGINAL: &str = "original";

/// The subject's own *Original* row times one ratio a method, the median over the method's `fit` rows.
///
/// `None` for Original rows and for accuracies.
pub(super) fn null(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    if row.method == ORIGINAL || row.metric != "memory" {
        return None;
    }
    let rows = || reference.of(row.paper, &row.artefact).filter(|other| other.metric == row.metric);
    let original = |subject: &str| {
        let same = |other: &&ReferenceRow| other.subject == subject && other.method == ORIGINAL;
        rows().find(same).and_then(ReferenceRow::number)
    };
    let ratios = rows().filter(|other| other.role() == Role::Fit && other.method == row.method);
    let ratios = ratios.filter_map(|other| Some(other.number()? / original(&other.subject)?)).collect();
    Some(original(&row.subject)? * median(ratios)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_has_one_ratio() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| null(&reference, reference.row(id)?);
        // Fixed 8 Bits over Original on its fit rows: 670 / 1196 = 0.5602, 457 / 917 = 0.4984, 2390 / 3470 = 0.6888,
        // 5928 / 8385 = 0.7070; their median is (0.5602 + 0.6888) / 2 = 0.6245, and 3472 times that 2168.2.
        let fixed = null("daf/table1/roberta-base-mrpc/fixed8/memory").unwrap();
        assert!((fixed - 2168.2).abs() < 0.5, "{fixed}");
        assert_eq!(null("daf/table1/roberta-base-mrpc/original/memory"), None);
        assert_eq!(null("daf/table1/roberta-base-mrpc/fixed8/accuracy"), None);
    }
}
