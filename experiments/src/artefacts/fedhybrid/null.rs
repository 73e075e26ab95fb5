//! The null baseline of table 1 and figure 5: one number a method.

use crate::artefacts::prelude::*;
use crate::papers::reference::{Reference, Role};

/// One number a method whatever the network, the batch and the phone: the median of the method's `fit` rows of the same
/// metric; figure 5's two parts are one.
///
/// `None` if the row itself is the only such row, and for all other artefacts: figures 1c and 2 have no two rows of one
/// method and metric of which one is `fit` and another is not. Figure 1c's and 2a's rows are all `fit`, and the memory in
/// use of figure 2b and the counts of figure 2c are all `check`.
pub(super) fn null(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    let together: &[&str] = match row.artefact.as_str() {
        "table1" => &["table1"],
        "figure5a" | "figure5b" => &["figure5a", "figure5b"],
        _ => return None,
    };
    let alike =
        |other: &&ReferenceRow| other.method == row.method && other.metric == row.metric && other.role() == Role::Fit;
    let known = together.iter().flat_map(|artefact| reference.of(row.paper, artefact)).filter(alike);
    let known: Vec<&ReferenceRow> = known.collect();
    if known.iter().all(|other| other.id == row.id) {
        return None;
    }
    median(known.into_iter().filter_map(ReferenceRow::number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::parse;

    #[test]
    fn a_row_is_no_baseline_of_its_own() {
        let column = "id,artefact,subject,method,metric,unit,kind,value,lo,hi,role,conditions\n";
        let row = |subject: &str, value: &str, role: &str| {
            let cells = format!("table1,{subject},recomputation,share,percent,value,{value},,,{role},");
            format!("fedhybrid/table1/{subject}/recomputation/share,{cells}\n")
        };
        let null_of_a = |rows: &[String]| {
            let text = format!("{column}{}", rows.concat());
            let reference = Reference::of_rows(parse("fedhybrid", "f.csv", &text).unwrap());
            null(&reference, reference.row("fedhybrid/table1/a/recomputation/share").unwrap())
        };
        // The only fit row says nothing of itself, and a check row is no source; a row of another role has the source.
        assert_eq!(null_of_a(&[row("a", "20", "fit")]), None);
        assert_eq!(null_of_a(&[row("a", "20", "fit"), row("b", "30", "check")]), None);
        assert_eq!(null_of_a(&[row("a", "20", "check"), row("b", "30", "fit")]), Some(30.0));
        // Beside another the median of both: (20 + 30) / 2 = 25.
        assert_eq!(null_of_a(&[row("a", "20", "fit"), row("b", "30", "fit")]), Some(25.0));
    }

    #[test]
    fn a_method_of_fedhybrids_has_one_number() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| null(&reference, reference.row(id)?);
        // The fit rows of table 1 are 19.7, 14.2 and 57.8 %: the middle one stands for all, a withheld row too.
        for subject in ["resnet34", "bert", "swin-finetune"] {
            let id = format!("fedhybrid/table1/{subject}/recomputation/layout-transformation-share");
            assert_eq!(null(&id), Some(19.7), "{id}");
        }
        // Figure 5 has two fit rows, 2.3 and 4.8, whose mean stands for all four.
        let overhead = |place: &str| null(&format!("fedhybrid/{place}/melon/latency-overhead"));
        for place in ["figure5a/s22-bert-batch-8", "figure5b/redmi-note10-mobilenetv2-batch-32"] {
            assert_eq!(overhead(place), Some(3.55), "{place}");
        }
        assert_eq!(null("fedhybrid/figure2b/s22-batch-32/system/memory-used"), None);
    }
}
