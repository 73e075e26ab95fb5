//! The claims of `order` rows: relations between quantities that an artefact computes, evaluated only here.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Quantities;

/// The claim of an `order` row, written before its first run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// The row.
    pub id: String,
    /// The cases in which the relations must be true, in words: networks, devices, budgets.
    pub cases: String,
    /// The relations, all of which must be true.
    pub relations: Vec<Relation>,
    /// The reason for this formulation.
    pub reason: String,
}

/// A relation between two quantities, or among the values of one.
///
/// Two quantities of several values are compared value by value; a single value is compared with each
/// value of the other.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// The quantity, as the artefact offers it.
    pub left: String,
    /// The comparison.
    pub is: Comparison,
    /// The other quantity; `None` if the values of one are compared with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<Operand>,
    /// The permitted violation, as a fraction of the right-hand side, or of the preceding value.
    #[serde(default)]
    pub tolerance: f64,
}

/// The right-hand side of a relation.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected the name of a quantity, a number, or a list of numbers")]
pub enum Operand {
    /// Another quantity of the artefact.
    Quantity(String),
    /// A number.
    Number(f64),
    /// Numbers, one for each value.
    Numbers(Vec<f64>),
}

/// A comparison of two quantities, or of the values of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Comparison {
    /// Less than.
    #[serde(rename = "<")]
    Below,
    /// Less or equal.
    #[serde(rename = "<=")]
    AtMost,
    /// More than.
    #[serde(rename = ">")]
    Above,
    /// More or equal.
    #[serde(rename = ">=")]
    AtLeast,
    /// Equal, value by value.
    #[serde(rename = "=")]
    Equal,
    /// No value is below the one before, and the last is above the first.
    #[serde(rename = "rises")]
    Rises,
    /// No value is above the one before, and the last is below the first.
    #[serde(rename = "falls")]
    Falls,
    /// No value is below the one before.
    #[serde(rename = "does not fall")]
    DoesNotFall,
}

impl Predicate {
    /// Whether all relations are true. A relation with an empty quantity, or with a NaN value, is false.
    ///
    /// # Errors
    /// The name of a quantity that the artefact does not offer.
    pub(crate) fn holds(&self, quantities: &Quantities) -> Result<bool, String> {
        let values = |name: &str| {
            let found = quantities.values(name);
            found.ok_or_else(|| format!("`{}` compares `{name}`, which the artefact does not offer", self.id))
        };
        let mut holds = true;
        for relation in &self.relations {
            let number;
            let right: &[f64] = match &relation.right {
                None => &[],
                Some(Operand::Quantity(name)) => values(name)?,
                Some(Operand::Numbers(numbers)) => numbers,
                Some(Operand::Number(value)) => {
                    number = [*value];
                    &number
                }
            };
            holds &= relation.holds(values(&relation.left)?, right);
        }
        Ok(holds)
    }

    /// A mistake that the schema cannot exclude, if any.
    pub(crate) fn contradiction(&self) -> Option<&'static str> {
        let Self { cases, relations, reason, .. } = self;
        if [cases, reason].iter().any(|text| text.trim().is_empty()) || relations.is_empty() {
            return Some("cases, relations and reason must say something");
        }
        if relations.iter().any(|relation| !(0.0..=1.0).contains(&relation.tolerance)) {
            return Some("the tolerance is a fraction from 0 to 1");
        }
        let is_of_one = |is| matches!(is, Comparison::Rises | Comparison::Falls | Comparison::DoesNotFall);
        let is_wrong = relations.iter().any(|relation| is_of_one(relation.is) == relation.right.is_some());
        is_wrong.then_some("a comparison of two needs a `right`, one of the values of one has none")
    }
}

impl Relation {
    fn holds(&self, left: &[f64], right: &[f64]) -> bool {
        let (more, less) = (1.0 + self.tolerance, 1.0 - self.tolerance);
        let steps =
            |keeps: &dyn Fn(f64, f64) -> bool| !left.is_empty() && left.windows(2).all(|pair| keeps(pair[0], pair[1]));
        match self.is {
            Comparison::Below => each(left, right, |left, right| left < right * more),
            Comparison::AtMost => each(left, right, |left, right| left <= right * more),
            Comparison::Above => each(left, right, |left, right| left > right * less),
            Comparison::AtLeast => each(left, right, |left, right| left >= right * less),
            Comparison::Equal => {
                let near = |left: f64, right: f64| (left - right).abs() <= right.abs() * self.tolerance;
                left.len() == right.len() && each(left, right, near)
            }
            Comparison::Rises => steps(&|before, after| after >= before * less) && left.last() > left.first(),
            Comparison::Falls => steps(&|before, after| after <= before * more) && left.last() < left.first(),
            Comparison::DoesNotFall => steps(&|before, after| after >= before * less),
        }
    }
}

/// Whether `holds` is true of every pair; a single value on one side is paired with each of the other. False without a
/// pair, and if the sides differ in length.
fn each(left: &[f64], right: &[f64], holds: impl Fn(f64, f64) -> bool) -> bool {
    match (left, right) {
        ([], _) | (_, []) => false,
        (&[left], right) => right.iter().all(|&right| holds(left, right)),
        (left, &[right]) => left.iter().all(|&left| holds(left, right)),
        (left, right) => left.len() == right.len() && left.iter().zip(right).all(|(&left, &right)| holds(left, right)),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.left, self.is)?;
        match &self.right {
            Some(Operand::Quantity(name)) => write!(f, " {name}")?,
            Some(Operand::Number(number)) => write!(f, " {number}")?,
            Some(Operand::Numbers(numbers)) => {
                let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
                write!(f, " {}", numbers.join(" + "))?;
            }
            None => (),
        }
        if self.tolerance > 0.0 { write!(f, " (tolerance {})", self.tolerance) } else { Ok(()) }
    }
}

impl fmt::Display for Predicate {
    /// The predicate in a sentence, for the page.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relations: Vec<String> = self.relations.iter().map(Relation::to_string).collect();
        write!(f, "{} holds where {}, for {}: {}", self.id, relations.join("; "), self.cases, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates `left` against `right` by the relation in `words`, e.g. `is = "<", right = "right", tolerance = 0.1`.
    fn holds(words: &str, left: &[f64], right: &[f64]) -> bool {
        let text =
            format!("id = \"row\"\ncases = \"all\"\nreason = \"why\"\nrelations = [{{ left = \"left\", {words} }}]");
        let predicate: Predicate = toml::from_str(&text).unwrap();
        assert_eq!(predicate.contradiction(), None, "{words}");
        let mut quantities = Quantities::default();
        quantities.offer("left", "", left.to_vec());
        quantities.offer("right", "", right.to_vec());
        predicate.holds(&quantities).unwrap()
    }

    #[test]
    fn two_quantities_are_compared_value_by_value() {
        let below = r#"is = "<", right = "right""#;
        assert!(holds(below, &[1.0, 2.0], &[1.5, 2.5]));
        assert!(!holds(below, &[1.0, 2.0], &[1.5, 2.0]));
        // A single value is paired with each of the other's; unequal lengths and empty quantities are always false.
        assert!(holds(below, &[1.0], &[1.5, 2.0]) && holds(below, &[1.0, 2.0], &[2.5]));
        assert!(
            !holds(below, &[1.0, 2.0], &[3.0, 3.0, 3.0]) && !holds(below, &[], &[1.0]) && !holds(below, &[1.0], &[])
        );
        assert!(!holds(below, &[f64::NAN], &[1.0]));
        assert!(holds(r#"is = "<=", right = "right""#, &[2.0], &[2.0]));
        assert!(holds(r#"is = ">", right = 1"#, &[2.0, 3.0], &[]) && !holds(r#"is = ">", right = 2"#, &[2.0], &[]));
    }

    #[test]
    fn a_tolerance_is_a_share_of_the_right_hand_side() {
        // 115 ≤ 100 · 1.15 = 115 (slightly more in binary); 116 is above it. 85 ≥ 100 · 0.85 = 85.
        assert!(holds(r#"is = "<=", right = "right", tolerance = 0.15"#, &[114.9], &[100.0]));
        assert!(!holds(r#"is = "<=", right = "right", tolerance = 0.15"#, &[116.0], &[100.0]));
        assert!(holds(r#"is = ">=", right = "right", tolerance = 0.15"#, &[85.0], &[100.0]));
        assert!(!holds(r#"is = ">", right = "right", tolerance = 0.15"#, &[85.0], &[100.0]));
        assert!(holds(r#"is = "<", right = "right", tolerance = 0.5"#, &[1.4], &[1.0]));
    }

    #[test]
    fn lists_are_equal_in_length_and_value() {
        assert!(holds(r#"is = "=", right = [20, 12]"#, &[20.0, 12.0], &[]));
        assert!(!holds(r#"is = "=", right = [20, 12]"#, &[20.0, 12.0, 4.0], &[]));
        assert!(!holds(r#"is = "=", right = [20]"#, &[20.0, 20.0], &[]));
        assert!(holds(r#"is = "=", right = 0"#, &[0.0], &[]));
    }

    #[test]
    fn the_values_of_one_rise_fall_or_do_not_fall() {
        let rises = r#"is = "rises""#;
        assert!(
            holds(rises, &[1.0, 1.0, 2.0], &[])
                && !holds(rises, &[1.0, 1.0], &[])
                && !holds(rises, &[1.0, 3.0, 2.0], &[])
        );
        let falls = r#"is = "falls""#;
        assert!(holds(falls, &[2.0, 1.0, 1.0], &[]) && !holds(falls, &[2.0, 2.1, 1.0], &[]) && !holds(falls, &[], &[]));
        // 1.97 ≥ 2 · 0.98 = 1.96: within the tolerance; 1.95 is not.
        let holding = r#"is = "does not fall", tolerance = 0.02"#;
        assert!(holds(holding, &[2.0, 1.97], &[]) && !holds(holding, &[2.0, 1.95], &[]));
    }

    #[test]
    fn a_quantity_that_is_not_offered_is_named() {
        let text =
            "id = \"row\"\ncases = \"all\"\nreason = \"why\"\nrelations = [{ left = \"DGA\", is = \"<\", right = 1 }]";
        let predicate: Predicate = toml::from_str(text).unwrap();
        let error = predicate.holds(&Quantities::default()).unwrap_err();
        assert_eq!(error, "`row` compares `DGA`, which the artefact does not offer");
        assert_eq!(predicate.to_string(), "row holds where DGA < 1, for all: why");
        let alone =
            Predicate { relations: vec![Relation { right: None, ..predicate.relations[0].clone() }], ..predicate };
        assert!(alone.contradiction().unwrap().starts_with("a comparison of two needs a `right`"));
    }
}
