//! What an artefact computes beside the answers to its rows: predicates compare it, and notes quote it.

use haversack_reports::table::three_digits;

use crate::quantities::range;

/// Named quantities of one run of an artefact.
#[derive(Clone, Debug, Default)]
pub struct Quantities {
    all: Vec<(String, OfferedQuantity)>,
}

/// A quantity.
#[derive(Clone, Debug)]
enum OfferedQuantity {
    /// Values of one unit, in an order that the artefact gives them.
    Values(String, Vec<f64>),
    /// Words.
    Words(String),
}

impl Quantities {
    /// Offers `values` of `unit`; later ones of a name go before earlier ones.
    pub(crate) fn offer(&mut self, name: &str, unit: &str, values: Vec<f64>) {
        self.all.push((name.to_owned(), OfferedQuantity::Values(unit.to_owned(), values)));
    }

    /// Offers words.
    pub(crate) fn offer_words(&mut self, name: &str, words: String) {
        self.all.push((name.to_owned(), OfferedQuantity::Words(words)));
    }

    fn called(&self, name: &str) -> Option<&OfferedQuantity> {
        self.all.iter().rev().find(|(known, _)| known == name).map(|(_, quantity)| quantity)
    }

    /// The values of a quantity.
    pub(crate) fn values(&self, name: &str) -> Option<&[f64]> {
        match self.called(name)? {
            OfferedQuantity::Values(_, values) => Some(values),
            OfferedQuantity::Words(_) => None,
        }
    }

    /// A quantity as a sentence quotes it: its words, its value, or its least and its largest, with the unit.
    pub(crate) fn quoted(&self, name: &str) -> Option<String> {
        match self.called(name)? {
            OfferedQuantity::Words(words) => Some(words.clone()),
            OfferedQuantity::Values(unit, values) => span(values.iter().copied()).map(|span| with_unit(&span, unit)),
        }
    }

    /// Whether a quantity is offered.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.called(name).is_some()
    }
}

/// The least and the largest of `values`, or the one that they all are.
pub(crate) fn span(values: impl Iterator<Item = f64>) -> Option<String> {
    let (least, largest) = range(values)?;
    let (least, largest) = (three_digits(least), three_digits(largest));
    Some(if least == largest { least } else { format!("{least} to {largest}") })
}

/// A number with its unit, if it has one.
pub(crate) fn with_unit(number: &str, unit: &str) -> String {
    let unit = if unit == "percent" { "%" } else { unit };
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_quoted_with_its_unit() {
        let mut quantities = Quantities::default();
        quantities.offer("share", "%", vec![12.34]);
        quantities.offer("speed-ups", "x", vec![3.0, 1.5, 2.0]);
        quantities.offer("nothing", "x", Vec::new());
        quantities.offer_words("absent", "DAF, Sage".to_owned());
        let quoted = |name: &str| quantities.quoted(name);
        assert_eq!(quoted("share").as_deref(), Some("12.3 %"));
        assert_eq!(quoted("speed-ups").as_deref(), Some("1.5 to 3 x"));
        assert_eq!((quoted("absent").as_deref(), quoted("nothing"), quoted("none")), (Some("DAF, Sage"), None, None));
        assert_eq!(quantities.values("absent"), None);
        assert!(quantities.has("nothing") && !quantities.has("none"));
    }
}
