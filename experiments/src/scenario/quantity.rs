//! Sizes, times, fractions and shapes as users write them: `800MB`, `800MiB`, `30%`, `1.5s`, `3x96x96`.

use std::fmt;
use std::str::FromStr;

use haversack_devices::text::{nearest, question};
use haversack_devices::{Bytes, Nanos, ensure};
use thiserror::Error;

/// Text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected {expected}, found '{found}'{hint}")]
pub struct QuantityError {
    pub(super) expected: &'static str,
    pub(super) found: String,
    pub(super) hint: String,
}

impl QuantityError {
    pub(super) fn new(expected: &'static str, found: &str) -> Self {
        Self { expected, found: found.to_owned(), hint: String::new() }
    }
}

/// Decimal and binary units of size.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];
/// Units of time, in nanoseconds.
const TIMES: [(&str, u64); 6] =
    [("min", 60_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("µs", 1_000), ("ns", 1), ("s", 1_000_000_000)];

/// Longer units, for intervals of days; case distinguishes minutes from megabytes.
const LONG_TIMES: [(&str, u64); 3] = [("m", 60_000_000_000), ("h", 3_600_000_000_000), ("d", 86_400_000_000_000)];

const SIZE: &str = "a size above zero, such as 800MB (decimal) or 800MiB (binary)";
const BUDGET: &str = "a size above zero, such as 800MB (decimal), 800MiB (binary) or 30%";
const TIME: &str = "a time above zero with its unit, such as 1.5s or 200ms";
const SHAPE: &str = "a shape, such as 3x96x96 for images or 256 for tokens";

/// The number at the start of `text`, and the unit behind it. Signs, exponents, `inf` and `nan` are not
/// accepted as numbers.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    // A point without digits, or several points, is refused when the number is parsed.
    (!number.is_empty()).then(|| (number, unit.trim_start()))
}

/// `number` units of `unit`, rounded to the nearest whole.
fn scale(number: &str, unit: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let scaled = (number.parse::<f64>().ok()? * unit as f64).round();
    // 2^64 is a float, and the first number that does not fit.
    (scaled < u64::MAX as f64).then_some(scaled as u64)
}

/// The case of a unit is ignored where the spelling is unambiguous; but `Mb` would be megabits, a unit that no
/// quantity here has.
fn unit_of(units: &[(&'static str, u64)], found: &str) -> Option<u64> {
    let is_bits = found.ends_with('b') && found.starts_with(|first: char| first.is_ascii_uppercase());
    units.iter().find(|(name, _)| name.eq_ignore_ascii_case(found) && !is_bits).map(|&(_, unit)| unit)
}

/// A suggestion for the intended value of `text` where a quantity in one of `units` is expected.
fn meant(text: &str, units: &[(&'static str, u64)]) -> String {
    let number = split(text).filter(|(number, _)| number.parse::<f64>().is_ok());
    let Some((number, unit)) = number.filter(|(_, unit)| unit_of(units, unit).is_none()) else { return String::new() };
    let kinds = [(&[("%", 1)][..], "a percentage"), (&SIZES[..], "a size"), (&TIMES[..], "a time")];
    if let Some((_, kind)) = kinds.iter().find(|(units, _)| unit_of(units, unit).is_some()) {
        return format!("; '{}' is {kind}", text.trim());
    }
    let names = || units.iter().map(|(name, _)| *name);
    let unit = match unit {
        "" => names().find(|name| *name == "s"),
        // `800M` for bytes.
        unit => names().find(|name| name.eq_ignore_ascii_case(&format!("{unit}B"))).or_else(|| nearest(unit, names())),
    };
    question(unit.map(|unit| format!("{number}{unit}")).as_deref())
}

/// Reads a size; a number without a unit is bytes.
///
/// # Errors
/// Text that is not a size, or a size of zero.
pub fn parse_size(text: &str) -> Result<Bytes, QuantityError> {
    let wrong = || QuantityError::new(SIZE, text);
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let unit = if unit.is_empty() { Some(1) } else { unit_of(&SIZES, unit) };
    let Some(unit) = unit else { return Err(QuantityError { hint: meant(text, &SIZES), ..wrong() }) };
    scale(number, unit).filter(|&bytes| bytes > 0).map(Bytes).ok_or_else(wrong)
}

/// Reads a time, which needs its unit.
///
/// # Errors
/// Text that is not a time, or a time of zero.
pub fn parse_time(text: &str) -> Result<Nanos, QuantityError> {
    let wrong = || QuantityError::new(TIME, text);
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let Some(scaled) = unit_of(&TIMES, unit) else {
        return Err(QuantityError { hint: meant(text, &TIMES), ..wrong() });
    };
    scale(number, scaled).filter(|&time| time > 0).map(Nanos).ok_or_else(wrong)
}

/// Reads an interval of a user's days: a time, which may also be in `m`, `h` or `d`.
///
/// # Errors
/// As [`parse_time`].
pub fn parse_span(text: &str) -> Result<Nanos, QuantityError> {
    let long = split(text).and_then(|(number, unit)| {
        let scaled = LONG_TIMES.iter().find(|(name, _)| *name == unit)?.1;
        scale(number, scaled).filter(|&time| time > 0).map(Nanos)
    });
    long.map_or_else(|| parse_time(text), Ok)
}

/// `amount` in the largest of `units` that divides it exactly.
fn in_whole_units(amount: u64, units: &[(&'static str, u64)]) -> String {
    let unit = units.iter().find(|(_, unit)| amount >= *unit && amount.is_multiple_of(*unit));
    unit.map_or_else(|| amount.to_string(), |(name, unit)| format!("{}{name}", amount / unit))
}

/// `time` as [`parse_time`] reads it, exactly.
pub fn time_text(time: Nanos) -> String {
    in_whole_units(time.0, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
}

/// `size` as [`parse_size`] reads it, exactly.
pub fn size_text(size: Bytes) -> String {
    // Decimal first: budgets are usually given in decimal units.
    let decimal = [("GB", 1_000_000_000), ("MB", 1_000_000)];
    let binary = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KB", 1_000), ("KiB", 1 << 10), ("B", 1)];
    in_whole_units(size.0, &[&decimal[..], &binary].concat())
}

/// A memory budget: bytes, or a percentage of the need of the policy `original`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// A number of bytes.
    Bytes(Bytes),
    /// A percentage of the need of `original` of the same kind.
    Percent(f64),
}

impl Budget {
    /// The bytes, if `original` needs `whole`.
    pub fn of(self, whole: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            // Rounded up, so that 100% is enough.
            Self::Percent(percent) => Bytes((whole.as_f64() * percent / 100.0).ceil() as u64),
        }
    }
}

/// The reference of budgets in percent: the need of the policy `original` for the same model, input,
/// batch and optimiser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BudgetReference {
    /// On the policy's own stack, in its own precision and graph.
    #[default]
    Own,
    /// In fp32 on the device's default stack: the same bytes for every policy.
    StackDefault,
}

impl BudgetReference {
    pub(super) const WORDS: [(&'static str, Self); 2] = [("own", Self::Own), ("stack-default", Self::StackDefault)];
}

impl FromStr for Budget {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = |error: QuantityError| QuantityError { expected: BUDGET, ..error };
        match split(text) {
            Some((number, "%")) => {
                let percent = number.parse::<f64>().ok().filter(|percent| percent.is_finite() && *percent > 0.0);
                percent.map(Self::Percent).ok_or_else(|| QuantityError::new(BUDGET, text))
            }
            _ => parse_size(text).map(Self::Bytes).map_err(wrong),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&size_text(*bytes)),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The shape of one sample.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InputShape(pub Vec<u64>);

impl FromStr for InputShape {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let sizes: Option<Vec<u64>> =
            text.trim().split(['x', 'X', '×']).map(|size| size.parse().ok().filter(|&size| size > 0)).collect();
        // A limit that no real sample exceeds.
        sizes.filter(|sizes| sizes.len() <= 8).map(Self).ok_or_else(|| QuantityError::new(SHAPE, text))
    }
}

impl fmt::Display for InputShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&sizes.join("x"))
    }
}

/// A budget that applies from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it begins, from the start of the iteration; of a trace, from the start of the run.
    pub at: Nanos,
    /// The limit on resident memory from then on.
    pub budget: Budget,
}

/// Budgets that replace the first ones at given times of every iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetWalls {
    /// Memory budgets of the framework, in order of time.
    pub memory: Vec<Step>,
    /// Budgets of saved tensors, in order of time.
    pub activations: Vec<Step>,
}

const WALLS: &str =
    "times with their budgets, each kind in order of time, such as 200ms=60%,1.5s=800MB,1.5s=activations:20%";
/// The prefix of a budget of saved tensors.
const OF_ACTIVATIONS: &str = "activations:";

impl BudgetWalls {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.activations.is_empty()
    }
}

impl FromStr for BudgetWalls {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::new(WALLS, text);
        let mut walls = Self::default();
        for wall in text.split(',') {
            let (at, budget) = wall.split_once('=').ok_or_else(wrong)?;
            let budget = budget.trim();
            let (kind, budget) = match budget.strip_prefix(OF_ACTIVATIONS) {
                Some(budget) => (&mut walls.activations, budget),
                None => (&mut walls.memory, budget),
            };
            let step = Step { at: parse_time(at.trim())?, budget: budget.parse()? };
            ensure!(kind.last().is_none_or(|last| last.at < step.at), wrong());
            kind.push(step);
        }
        Ok(walls)
    }
}

impl fmt::Display for BudgetWalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory.iter().map(|step| (step, ""));
        let all = memory.chain(self.activations.iter().map(|step| (step, OF_ACTIVATIONS)));
        for (place, (Step { at, budget }, kind)) in all.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{}={kind}{budget}", time_text(*at))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!(parse_size("800MB").unwrap(), Bytes(800_000_000));
        // 800 × 2^20
        assert_eq!(parse_size("800 MiB").unwrap(), Bytes(838_860_800));
        assert_eq!(parse_size("1.5kb").unwrap(), Bytes(1_500));
        assert_eq!(parse_size("17").unwrap(), Bytes(17));
    }

    #[test]
    fn what_is_no_size_says_what_is() {
        for text in
            ["", "banana", "-5MB", "nan", "inf", "0", "0MB", "1.2.3MB", ".", "99999999999TB", "5 parsecs", "1e3"]
        {
            let error = parse_size(text).unwrap_err().to_string();
            assert!(error.contains("800MiB") && error.contains(&format!("'{text}'")), "{error}");
        }
    }

    #[test]
    fn a_hint_is_of_the_kind_that_is_wanted() {
        let size = |text: &str| parse_size(text).unwrap_err().to_string();
        let time = |text: &str| parse_time(text).unwrap_err().to_string();
        assert!(size("5MiBB").ends_with("did you mean '5MiB'?") && size("800M").ends_with("did you mean '800MB'?"));
        assert!(size("2s").ends_with("; '2s' is a time") && size("50%").ends_with("; '50%' is a percentage"));
        assert!(time("50%").ends_with("; '50%' is a percentage") && time("800MB").ends_with("; '800MB' is a size"));
        assert!(time("2").ends_with("did you mean '2s'?") && time("2mss").ends_with("did you mean '2ms'?"));
        let budget = "2s".parse::<Budget>().unwrap_err().to_string();
        assert!(budget.contains("or 30%") && budget.ends_with("; '2s' is a time"), "{budget}");
        // Without a likely guess, nothing is suggested.
        assert!(["5 parsecs", "banana", "0MB", "2h"].iter().all(|text| size(text).ends_with(&format!("'{text}'"))));
    }

    #[test]
    fn times_need_their_unit() {
        assert_eq!(parse_time("1.5s").unwrap(), Nanos(1_500_000_000));
        assert_eq!(parse_time("200ms").unwrap(), Nanos(200_000_000));
        assert_eq!(["10m", "2 h", "1d"].map(|text| parse_span(text).unwrap().seconds()), [600.0, 7_200.0, 86_400.0]);
        assert!(["2", "0h", "1 M", "h"].iter().all(|text| parse_span(text).is_err()));
        assert!(["2", "-1s", "0s", "s", "1 h"].iter().all(|text| parse_time(text).is_err()));
    }

    #[test]
    fn a_whole_is_never_less_than_everything() {
        // 30% of 11 bytes is 3.3, which takes 4.
        assert_eq!("30%".parse::<Budget>().unwrap().of(Bytes(11)), Bytes(4));
        assert_eq!("100%".parse::<Budget>().unwrap().of(Bytes(1_234_567)), Bytes(1_234_567));
        assert!(["-30%", "0%", "%", "nan%"].iter().all(|text| text.parse::<Budget>().is_err()));
    }

    #[test]
    fn shapes_are_written_with_crosses() {
        assert_eq!("3x96x96".parse::<InputShape>().unwrap(), InputShape(vec![3, 96, 96]));
        assert_eq!("256".parse::<InputShape>().unwrap().to_string(), "256");
        assert!(["", "x", "3x", "0", "3x-1", "a"].iter().all(|text| text.parse::<InputShape>().is_err()));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,24}") {
            let _ = (parse_size(&text), parse_time(&text), text.parse::<Budget>(), text.parse::<InputShape>());
        }

        #[test]
        fn what_is_printed_reads_back(bytes in 1_u64.., nanos in 1_u64.., percent in 1e-6_f64..1e6) {
            let (bytes, nanos) = (Bytes(bytes), Nanos(nanos));
            proptest::prop_assert_eq!(parse_size(&size_text(bytes)).unwrap(), bytes);
            proptest::prop_assert_eq!(parse_time(&time_text(nanos)).unwrap(), nanos);
            let budget = Budget::Percent(percent);
            proptest::prop_assert_eq!(budget.to_string().parse::<Budget>().unwrap(), budget);
        }
    }

    #[test]
    fn walls_are_times_with_budgets_and_print_as_they_are_read() {
        let text = "200ms=60%,1500ms=800MB,1s=activations:20%";
        let walls: BudgetWalls = text.parse().unwrap();
        // 1.5 s are 1.5e9 ns, 800 MB are 8e8 B.
        assert_eq!(walls.memory[1], Step { at: Nanos(1_500_000_000), budget: Budget::Bytes(Bytes(800_000_000)) });
        assert_eq!(walls.activations, [Step { at: Nanos(1_000_000_000), budget: Budget::Percent(20.0) }]);
        assert_eq!(walls.to_string(), text);
    }

    #[test]
    fn walls_without_order_time_or_budget_are_refused() {
        for text in ["", "60%", "0s=60%", "1s=60%,1s=50%", "2s=60%,1s=50%", "1s=", "1s=60%,"] {
            assert!(text.parse::<BudgetWalls>().is_err(), "{text}");
        }
        let error = "1=60%".parse::<BudgetWalls>().unwrap_err().to_string();
        assert!(error.contains("a time above zero with its unit"), "{error}");
    }
}
