//! What an artefact answers to a row of the reference, and whether the row can use it.

use anyhow::{Result, bail, ensure};

use super::{Claim, ReferenceRow};

/// What an artefact answers to a row of the reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// One number, in the row's unit or the unit that a reading declares.
    Number(f64),
    /// The lowest and the highest of a set.
    Range(f64, f64),
    /// The target is never reached.
    Never,
    /// Whether the row's predicate holds.
    Order(bool),
    /// A number that was put in, not predicted.
    Input(f64),
    /// No answer, and why.
    NotModelled(String),
}

/// `value` to six significant digits; whole numbers are kept, so that counts stay counts.
pub(crate) fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return value + 0.0; // −0 becomes 0.
    }
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// The answer, rounded.
///
/// # Errors
/// An answer that the row has no use for, a mistake of the artefact: one of another kind than the row's, a number that is
/// infinite or none, a range whose low end is above its high end.
pub(crate) fn checked(row: &ReferenceRow, answer: Answer) -> Result<Answer> {
    let id = &row.id;
    let finite = |value: f64| {
        ensure!(value.is_finite(), "{id}: {value} is not a finite number");
        Ok(rounded(value))
    };
    let one_number = matches!(row.claim, Claim::Value(_) | Claim::Never | Claim::Min(_) | Claim::Max(_));
    let found = match answer {
        Answer::Number(value) if one_number => return Ok(Answer::Number(finite(value)?)),
        Answer::Input(value) if one_number => return Ok(Answer::Input(finite(value)?)),
        Answer::Range(lo, hi) if matches!(row.claim, Claim::Range { .. }) => {
            let (lo, hi) = (finite(lo)?, finite(hi)?);
            ensure!(lo <= hi, "{id}: the range runs from {lo} down to {hi}");
            return Ok(Answer::Range(lo, hi));
        }
        Answer::Order(holds) if matches!(row.claim, Claim::Order(_)) => return Ok(Answer::Order(holds)),
        Answer::Never if one_number => return Ok(Answer::Never),
        Answer::NotModelled(reason) => return Ok(Answer::NotModelled(reason)),
        Answer::Number(_) | Answer::Input(_) => "one number",
        Answer::Range(..) => "a range",
        Answer::Order(_) => "true or false",
        Answer::Never => "never",
    };
    bail!("{id}: the row is {}, the answer is {found}", kind(&row.claim))
}

const fn kind(claim: &Claim) -> &'static str {
    match claim {
        Claim::Value(_) | Claim::Never => "a value",
        Claim::Min(_) | Claim::Max(_) => "a bound",
        Claim::Range { .. } => "a range",
        Claim::Order(_) => "an order",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::{Role, example};

    fn row(claim: Claim) -> ReferenceRow {
        example("time", claim, Role::Check)
    }

    #[test]
    fn numbers_keep_six_digits_and_counts_keep_all() {
        assert_eq!(rounded(1.234_567_8), 1.234_57);
        assert_eq!(rounded(-0.000_012_345_678), -0.000_012_345_7);
        assert_eq!(rounded(25_557_032.0), 25_557_032.0);
        assert_eq!(rounded(1_234_567.8), 1_234_570.0);
        assert!(rounded(-0.0).is_sign_positive());
        // Rounding twice is rounding once.
        assert_eq!(rounded(rounded(2.0 / 3.0)), rounded(2.0 / 3.0));
    }

    #[test]
    fn an_answer_of_another_kind_is_refused() {
        let refused = |claim, answer| checked(&row(claim), answer).unwrap_err().to_string();
        let value = || Claim::Value(Some(1.0));
        let range = || Claim::Range { lo: 1.0, hi: 2.0 };
        let order = || Claim::Order(String::new());
        assert_eq!(
            refused(value(), Answer::Order(true)),
            "sage/table1/net/method/time: the row is a value, the answer is true or false"
        );
        assert_eq!(
            refused(value(), Answer::Range(1.0, 2.0)),
            "sage/table1/net/method/time: the row is a value, the answer is a range"
        );
        assert_eq!(
            refused(range(), Answer::Number(1.0)),
            "sage/table1/net/method/time: the row is a range, the answer is one number"
        );
        assert_eq!(
            refused(order(), Answer::Never),
            "sage/table1/net/method/time: the row is an order, the answer is never"
        );
        assert_eq!(
            refused(value(), Answer::Number(f64::NAN)),
            "sage/table1/net/method/time: NaN is not a finite number"
        );
        assert_eq!(
            refused(range(), Answer::Range(2.0, 1.0)),
            "sage/table1/net/method/time: the range runs from 2 down to 1"
        );
        assert_eq!(checked(&row(order()), Answer::Order(false)).unwrap(), Answer::Order(false));
    }
}
