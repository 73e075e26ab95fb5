//! What an artefact computes beside the answers to its rows: predicates compare it, and notes quote it.

use super::summary::range;

/// Named quantities of one run of an artefact.
#[derive(Clone, Debug, Default)]
pub struct Quantities {
    all: Vec<(String, OfferedQuantity)>,
}

/// A quantity.
#[derive(Clone, Debug)]
enum OfferedQuantity {
    /// Values of one unit, in an order that the artefact gives them.
    Values(&'static str, Vec<f64>),
    /// Words.
    Words(String),
}

impl Quantities {
    /// Offers `values` of `unit`; later ones of a name go before earlier ones.
    pub(super) fn offer(&mut self, name: &str, unit: &'static str, values: Vec<f64>) {
        self.all.push((name.to_owned(), OfferedQuantity::Values(unit, values)));
    }

    /// Offers words.
    pub(super) fn offer_words(&mut self, name: &str, words: String) {
        self.all.push((name.to_owned(), OfferedQuantity::Words(words)));
    }

    fn called(&self, name: &str) -> Option<&OfferedQuantity> {
        self.all.iter().rev().find(|(known, _)| known == name).map(|(_, quantity)| quantity)
    }

    /// The values of a quantity.
    pub(super) fn values(&self, name: &str) -> Option<&[f64]> {
        match self.called(name)? {
            OfferedQuantity::Values(_, values) => Some(values),
            OfferedQuantity::Words(_) => None,
        }
    }

    /// A quantity as a sentence quotes it: its words, its value, or its least and its largest, with the unit.
    pub(super) fn quoted(&self, name: &str) -> Option<String> {
        match self.called(name)? {
            OfferedQuantity::Words(words) => Some(words.clone()),
            OfferedQuantity::Values(unit, values) => span(values.iter().copied()).map(|span| with_unit(&span, unit)),
        }
    }

    /// Whether a quantity is offered.
    pub(super) fn has(&self, name: &str) -> bool {
        self.called(name).is_some()
    }
}

/// The least and the largest of `values`, or the one that they all are.
pub(super) fn span(values: impl Iterator<Item = f64>) -> Option<String> {
    let (least, largest) = range(values)?;
    let (least, largest) = (to_three_digits(least), to_three_digits(largest));
    Some(if least == largest { least } else { format!("{least} to {largest}") })
}

/// A number with its unit, if it has one.
pub(super) fn with_unit(number: &str, unit: &str) -> String {
    let unit = if unit == "percent" { "%" } else { unit };
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

/// A number to three significant digits, whole ones whole.
pub(super) fn to_three_digits(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1000.0 {
        return format!("{value:.0}");
    }
    let before_the_point = value.abs().log10().floor().clamp(-6.0, 2.0);
    let text = format!("{value:.*}", (2.0 - before_the_point) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_three_digits() {
        let cases = [
            (0.0, "0"),
            (12.0, "12"),
            (1234.5, "1234"),
            (100.4, "100"),
            (123.4, "123"),
            (12.345, "12.3"),
            (1.5, "1.5"),
        ];
        for (value, text) in cases.into_iter().chain([(0.123_45, "0.123"), (-0.04567, "-0.0457"), (99.99, "100")]) {
            assert_eq!(to_three_digits(value), text);
        }
    }

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
