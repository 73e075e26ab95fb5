//! How well an artefact came out, in a few words and in a sentence.

use crate::papers::summary::Total;
use crate::papers::{Claim, ComparedCell, Verdict};
use crate::quantities::{counted, median};

/// The verdicts on rows, counted, and the errors of those that are numbers.
pub(super) struct Glance {
    total: Total,
    /// The absolute errors of the numbers that are judged, as fractions.
    errors: Vec<f64>,
}

impl Glance {
    /// Of these rows.
    pub(super) fn of<'c>(cells: impl Iterator<Item = &'c ComparedCell> + Clone) -> Self {
        let is_judged = |cell: &&ComparedCell| {
            matches!(cell.claim, Claim::Value(_)) && matches!(cell.verdict, Verdict::Ok | Verdict::Off) && cell.counts()
        };
        // Accuracies are judged by points, not by their errors.
        let numbers = cells.clone().filter(is_judged).filter(|cell| cell.points.is_none());
        Self { total: Total::of(cells.clone()), errors: numbers.filter_map(|cell| cell.error.map(f64::abs)).collect() }
    }

    /// "3 of 4 rows match, median error 8%"; `None` where nothing is judged.
    pub(super) fn corner(&self) -> Option<String> {
        let Total { matched, missed, predicted, .. } = self.total;
        let judged = matched + missed;
        if judged == 0 {
            return (predicted > 0).then(|| "predicted".to_owned());
        }
        let rows = if judged == 1 { "row" } else { "rows" };
        let verb = if matched == 1 { "matches" } else { "match" };
        let error = median(self.errors.clone()).map(|error| format!(", median error {:.0}%", error * 100.0));
        Some(format!("{} of {judged} {rows} {verb}{}", matched, error.unwrap_or_default()))
    }

    /// The same as a sentence, with what is not judged; empty where the paper has no row.
    pub(super) fn sentence(&self) -> String {
        let Total { rows, matched, missed, in_view, contradicted, predicted, not_modelled, inputs } = self.total;
        let mut parts = Vec::new();
        let judged = matched + missed;
        if judged > 0 {
            let verb = if matched == 1 { "matches" } else { "match" };
            parts.push(format!(
                "{} of {} that can be judged {verb} the paper",
                matched,
                counted(judged, "row", "rows")
            ));
        }
        let largest = self.errors.iter().copied().max_by(f64::total_cmp);
        match (self.errors.len(), median(self.errors.clone()), largest) {
            (1, Some(error), _) => parts.push(format!("the number is {:.1}% off", error * 100.0)),
            (numbers, Some(median), Some(largest)) => parts.push(format!(
                "the median error of {numbers} numbers is {:.1}%, the largest {:.1}%",
                median * 100.0,
                largest * 100.0
            )),
            _ => {}
        }
        for (count, one, many) in [
            (in_view, "matches in view of a choice", "match in view of a choice"),
            (contradicted, "contradicts others of its paper", "contradict others of their paper"),
            (predicted, "is predicted", "are predicted"),
            (inputs, "was put in", "were put in"),
            (not_modelled, "has no answer", "have no answer"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {}", if count == 1 { one } else { many }));
            }
        }
        if rows == 0 || parts.is_empty() { String::new() } else { format!("{}.", parts.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::answer::Answer;
    use crate::papers::reference::{Role, example};

    #[test]
    fn what_is_judged_comes_first_and_what_is_not_is_said() {
        let cell = |claim, role, answer| ComparedCell::new(&example("time", claim, role), answer).unwrap();
        let value = |answer| cell(Claim::Value(Some(100.0)), Role::Check, Answer::Number(answer));
        let cells = [
            value(110.0),
            value(80.0),
            value(190.0),
            cell(Claim::Min(5.0), Role::Check, Answer::Number(6.0)),
            cell(Claim::Value(None), Role::Withheld, Answer::Number(3.0)),
        ];
        // Errors of 10, 20 and 90%: the median is 20%. 110 and the bound match.
        let glance = Glance::of(cells.iter());
        assert_eq!(glance.corner().unwrap(), "2 of 4 rows match, median error 20%");
        assert_eq!(
            glance.sentence(),
            "2 of 4 rows that can be judged match the paper; the median error of 3 numbers is 20.0%, the largest 90.0%; \
             1 is predicted."
        );
        assert_eq!(Glance::of(cells[4..].iter()).corner().as_deref(), Some("predicted"));
        assert_eq!((Glance::of([].iter()).corner(), Glance::of([].iter()).sentence().as_str()), (None, ""));
        let one = Glance::of(cells[..1].iter());
        assert_eq!(one.sentence(), "1 of 1 row that can be judged matches the paper; the number is 10.0% off.");
    }
}
