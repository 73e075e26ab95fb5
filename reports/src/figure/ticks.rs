//! Positions of ticks, and the format of numbers on a figure.

use super::axis::Span;

/// A tick: its value and its label; an empty label is a minor tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Tick {
    pub(super) fn is_minor(&self) -> bool {
        self.label.is_empty()
    }
}

/// More ticks than this on one axis are a bug.
const MOST: usize = 60;

/// About `target` ticks over the span, at round numbers.
pub(super) fn ticks(span: Span, target: usize) -> Vec<Tick> {
    if span.log { logarithmic(span, target) } else { linear(span, target) }
}

/// Ticks at the values given.
pub(super) fn at_values(span: Span, values: &[f64]) -> Vec<Tick> {
    let shown: Vec<f64> = values.iter().copied().filter(|v| span.holds(*v)).collect();
    if span.log {
        return shown.iter().map(|&value| Tick { value, label: number(value) }).collect();
    }
    let most = shown.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    let unit = Unit::for_axis(most);
    // As many decimals as are needed to distinguish the values and read them back, at most four.
    let exact = |places: usize| {
        shown.iter().all(|v| {
            let scaled = v / unit.size;
            (scaled - round_to(scaled, places)).abs() <= 1e-9 * scaled.abs().max(1.0)
        })
    };
    let places = (0..4).find(|p| exact(*p)).unwrap_or(4);
    shown.iter().map(|&value| Tick { value, label: unit.write(value, places) }).collect()
}

/// The round step (1, 2, 2.5 or 5 times a power of ten) that cuts `length` into at most `target` pieces.
pub(super) fn step(length: f64, target: usize) -> f64 {
    let raw = length / target.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 2.5, 5.0].iter().map(|m| m * power).find(|s| *s >= raw * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

fn linear(span: Span, target: usize) -> Vec<Tick> {
    let step = step(span.hi - span.lo, target);
    let (first, last) = ((span.lo / step - 1e-9).ceil(), (span.hi / step + 1e-9).floor());
    if !(step.is_finite() && step > 0.0 && last - first < MOST as f64) {
        return Vec::new();
    }
    let count = (last - first) as usize + 1;
    let values: Vec<f64> = (0..count).map(|i| (first + i as f64) * step).collect();
    let unit = Unit::for_axis(values.iter().fold(0.0, |a, b| a.max(b.abs())));
    let scaled = step / unit.size;
    let places = (0..6).find(|p| (scaled - round_to(scaled, *p)).abs() < scaled * 1e-6).unwrap_or(6);
    values.into_iter().map(|value| Tick { value, label: unit.write(value, places) }).collect()
}

fn logarithmic(span: Span, target: usize) -> Vec<Tick> {
    let (low, high) = (span.lo.log10(), span.hi.log10());
    let decades = high - low;
    let stride = (decades / target.max(1) as f64).ceil().max(1.0);
    let leads: &[f64] = if decades < 1.2 && target >= 4 {
        &[1.0, 2.0, 3.0, 5.0]
    } else if decades < 1.8 && target >= 6 {
        &[1.0, 2.0, 5.0]
    } else if decades < 2.2 && target >= 4 {
        &[1.0, 3.0]
    } else {
        &[1.0]
    };
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    let mut ticks = Vec::new();
    for power in first..=last {
        let decade = 10f64.powi(power);
        for lead in 1..10 {
            let lead = f64::from(lead);
            let value = lead * decade;
            if !span.holds(value) {
                continue;
            }
            let major = leads.contains(&lead) && f64::from(power).rem_euclid(stride) == 0.0;
            // If labelled powers are more than one apart, only the powers themselves are marked.
            if major || stride <= 1.0 || lead == 1.0 {
                ticks.push(Tick { value, label: if major { number(value) } else { String::new() } });
            }
        }
    }
    if ticks.iter().filter(|t| !t.is_minor()).count() < 2 && decades > 0.0 {
        // Too short a span for powers of ten: use round numbers instead.
        return linear(span, target);
    }
    ticks
}

/// A number as labels show it: three or four digits, with k, M, G, or a power of ten far from one.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".into();
    }
    let unit = if (0.01..1e4).contains(&magnitude) { Unit::plain() } else { Unit::scaled(magnitude) };
    let scaled = magnitude / unit.size;
    // Three significant digits; whole numbers below 10 000 whole.
    let digits = (2 - scaled.log10().floor() as i32).clamp(0, 5) as usize;
    let text = unit.write(value, digits);
    // 1.50 k reads as a measurement to three digits; 1.5 k as a number.
    trim_zeros(&text)
}

fn trim_zeros(text: &str) -> String {
    let end = text.find([' ', '×']).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    match rest.strip_prefix('×') {
        Some(power) if digits == "1" => power.to_owned(),
        Some(power) if digits == "−1" => format!("−{power}"),
        _ => format!("{digits}{rest}"),
    }
}

/// The divisor of a number before it is written, and the suffix.
#[derive(Clone, Debug)]
struct Unit {
    size: f64,
    suffix: String,
}

impl Unit {
    /// For all numbers of an axis whose largest is `most`.
    fn for_axis(most: f64) -> Self {
        if most == 0.0 || (1e-3..1e4).contains(&most) { Self::plain() } else { Self::scaled(most) }
    }

    fn plain() -> Self {
        Self { size: 1.0, suffix: String::new() }
    }

    fn scaled(magnitude: f64) -> Self {
        for (size, suffix) in [(1e9, " G"), (1e6, " M"), (1e3, " k")] {
            if magnitude >= size && magnitude < 1e12 {
                return Self { size, suffix: suffix.into() };
            }
        }
        let power = magnitude.log10().floor() as i32;
        Self { size: 10f64.powi(power), suffix: format!("×10{}", superscript(power)) }
    }

    fn write(&self, value: f64, places: usize) -> String {
        let scaled = round_to(value / self.size, places);
        if scaled == 0.0 {
            return "0".into();
        }
        let sign = if scaled < 0.0 { "−" } else { "" };
        format!("{sign}{:.places$}{}", scaled.abs(), self.suffix)
    }
}

fn superscript(power: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |c: char| match c.to_digit(10) {
        Some(digit) => DIGITS.get(digit as usize).copied().unwrap_or(c),
        None => '⁻',
    };
    power.to_string().chars().map(raised).collect()
}

fn round_to(value: f64, places: usize) -> f64 {
    let scale = 10f64.powi(places as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(lo: f64, hi: f64, log: bool, target: usize) -> Vec<String> {
        ticks(Span { lo, hi, log }, target).into_iter().map(|t| t.label).filter(|l| !l.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_share_one_unit_and_as_many_decimals_as_the_step_needs() {
        assert_eq!(labels(0.0, 1.0, false, 5), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.0, 20_000.0, false, 4), ["0", "5 k", "10 k", "15 k", "20 k"]);
        assert_eq!(labels(-1.0, 1.0, false, 4), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(0.0, 3e-6, false, 3), ["0", "1×10⁻⁶", "2×10⁻⁶", "3×10⁻⁶"]);
    }

    #[test]
    fn logarithmic_ticks_stand_at_powers_and_thin_out() {
        assert_eq!(labels(1e-4, 1e3, true, 8), ["10⁻⁴", "10⁻³", "0.01", "0.1", "1", "10", "100", "1000"]);
        assert_eq!(labels(1.0, 1e12, true, 4), ["1", "1000", "1 M", "1 G", "10¹²"]);
        // Less than a decade: a single power of ten would not show how long the axis is.
        assert_eq!(labels(2.0, 6.0, true, 5), ["2", "3", "5"]);
        assert_eq!(labels(3.2, 3.9, true, 3), ["3.25", "3.50", "3.75"]);
    }

    #[test]
    fn numbers_keep_three_digits() {
        let written: Vec<String> =
            [0.0, 1161.0, 12_345.0, 1500.5, 0.123_45, 0.001, 3.2e-5, -4.0, 2.5e6].iter().map(|v| number(*v)).collect();
        assert_eq!(written, ["0", "1161", "12.3 k", "1501", "0.123", "10⁻³", "3.2×10⁻⁵", "−4", "2.5 M"]);
    }

    #[test]
    fn given_ticks_outside_the_span_are_left_out() {
        let span = Span { lo: 0.0, hi: 40.0, log: false };
        let labels: Vec<String> = at_values(span, &[8.0, 16.0, 32.0, 64.0]).into_iter().map(|t| t.label).collect();
        assert_eq!(labels, ["8", "16", "32"]);
    }
}
