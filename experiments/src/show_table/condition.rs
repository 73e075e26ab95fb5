//! A condition on a row: `status=ok`, `iteration_time_s<2`, `peak_memory_bytes<=2GB`.

use crate::scenario::{parse_size, parse_time};

use super::column::{Cell, Cells};

/// How a cell is compared; the longer signs first, as they begin like the shorter ones.
const SIGNS: [(&str, Comparison); 6] = [
    ("!=", Comparison::IsNot),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("=", Comparison::Is),
    ("<", Comparison::Below),
    (">", Comparison::Above),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Comparison {
    fn of_numbers(self, a: f64, b: f64) -> bool {
        match self {
            Self::Is => a == b,
            Self::IsNot => a != b,
            Self::Below => a < b,
            Self::AtMost => a <= b,
            Self::Above => a > b,
            Self::AtLeast => a >= b,
        }
    }
}

/// A column, a comparison and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) column: String,
    comparison: Comparison,
    value: String,
}

/// Whether the row of that number is meant.
pub(super) type Test<'t> = Box<dyn Fn(usize) -> bool + 't>;

impl Condition {
    /// Reads a condition.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let sign = (0..text.len()).filter(|at| text.is_char_boundary(*at)).find_map(|at| {
            let rest = &text[at..];
            SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)).map(|found| (at, *found))
        });
        let Some((at, (sign, comparison))) = sign.filter(|(at, _)| !text[..*at].trim().is_empty()) else {
            let expected = "expected a column, one of =, !=, <, <=, >, >=, and a value, such as status=ok";
            return Err(format!("{expected}; found '{}'", text.trim()));
        };
        let value = text[at + sign.len()..].trim_start_matches(if sign == "=" { "=" } else { "" });
        Ok(Self { column: text[..at].trim().to_owned(), comparison, value: value.trim().to_owned() })
    }

    /// What tells whether a row of `cells` is meant; what is missing is only ever unequal to a value.
    pub(super) fn test<'t>(&self, cells: &'t Cells) -> Result<Test<'t>, String> {
        let (comparison, column) = (self.comparison, &self.column);
        let is_equality = matches!(comparison, Comparison::Is | Comparison::IsNot);
        if self.value.is_empty() {
            if !is_equality {
                return Err(format!("expected a value behind {column}"));
            }
            return Ok(Box::new(move |row| (cells.get(row) == Cell::Missing) == (comparison == Comparison::Is)));
        }
        if cells.is_numbers() {
            let value = number(column, &self.value)?;
            return Ok(Box::new(move |row| match cells.get(row).number() {
                Some(found) => comparison.of_numbers(found, value),
                None => comparison == Comparison::IsNot,
            }));
        }
        if !is_equality {
            return Err(format!("{column} holds text; expected {column}=VALUE or {column}!=VALUE"));
        }
        let value = self.value.clone();
        Ok(Box::new(move |row| (cells.get(row).words() == Some(value.as_str())) == (comparison == Comparison::Is)))
    }
}

/// A number, or a size or time for a column in bytes or seconds.
fn number(column: &str, text: &str) -> Result<f64, String> {
    let plain = text.parse::<f64>().ok().filter(|number| !number.is_nan());
    let with_unit = || match column {
        _ if column.ends_with("_bytes") => parse_size(text).ok().map(|bytes| bytes.0 as f64),
        _ if column.ends_with("_s") => parse_time(text).ok().map(|time| time.0 as f64 / 1e9),
        _ => None,
    };
    let expected = match column {
        _ if column.ends_with("_bytes") => "a number of bytes or a size, such as 2GB",
        _ if column.ends_with("_s") => "a number of seconds or a time, such as 200ms",
        _ => "a number",
    };
    plain.or_else(with_unit).ok_or_else(|| format!("{column}: expected {expected}, found '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, cells: &Cells) -> Vec<usize> {
        let condition = Condition::parse(text).unwrap();
        let test = condition.test(cells).unwrap();
        (0..4).filter(|row| test(*row)).collect()
    }

    #[test]
    fn numbers_are_compared_and_what_is_missing_is_only_unequal() {
        let cells = Cells::Wholes(vec![Some(1_000_000), None, Some(2_000_000), Some(3_000_000)]);
        assert_eq!(rows("peak_memory_bytes<2e6", &cells), [0]);
        assert_eq!(rows("peak_memory_bytes <= 2MB", &cells), [0, 2]);
        assert_eq!(rows("peak_memory_bytes>2000000", &cells), [3]);
        assert_eq!(rows("peak_memory_bytes>=2MB", &cells), [2, 3]);
        assert_eq!(rows("peak_memory_bytes==2MB", &cells), [2]);
        assert_eq!(rows("peak_memory_bytes!=2MB", &cells), [0, 1, 3]);
        assert_eq!((rows("peak_memory_bytes=", &cells), rows("peak_memory_bytes!=", &cells)), (vec![1], vec![0, 2, 3]));
        let cells = Cells::Reals(vec![Some(0.1), Some(0.2), Some(0.3), None]);
        assert_eq!(rows("forward_s<200ms", &cells), [0]);
    }

    #[test]
    fn texts_are_equal_or_not() {
        let cells = Cells::Texts(["a", "order=half", "b"].map(|text| Some(text.to_owned())).to_vec());
        assert_eq!(rows("set=order=half", &cells), [1]);
        assert_eq!(rows("set!=a", &cells), [1, 2, 3]);
        let wrong =
            |text: &str| Condition::parse(text).and_then(|condition| condition.test(&cells).map(|_| ())).unwrap_err();
        assert!(wrong("set<b").contains("set holds text"));
        assert!(wrong("status").contains("such as status=ok") && wrong("=ok").contains("expected a column"));
        assert!(wrong("").contains("found ''"));
        let numbers = Cells::Reals(vec![]);
        let wrong =
            |text: &str| Condition::parse(text).and_then(|condition| condition.test(&numbers).map(|_| ())).unwrap_err();
        assert!(wrong("forward_s<soon").contains("such as 200ms") && wrong("energy_j<nan").contains("a number"));
        assert!(wrong("energy_j<").contains("expected a value"));
    }
}
