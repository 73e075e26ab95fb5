//! The values between two ends: `{ from = "20%", to = "100%", steps = 40 }`.

use haversack_devices::units::{Bytes, Nanos};

use crate::scenario::{Budget, Fault, Key, Kind, Literal, parse_time, time_text};

/// The values of a span of `key`, both ends included, in equal steps.
pub(super) fn values(key: Key, from: &Literal, to: &Literal, steps: u64) -> Result<Vec<Literal>, Fault> {
    match key {
        Key::MemoryBudget | Key::ActivationBudget => budgets(from, to, steps),
        Key::TimeBudget => {
            let (from, to) = (parse_time(&from.text)?, parse_time(&to.text)?);
            Ok(rounded(from.0, to.0, steps).map(|time| Literal::text(time_text(Nanos(time)))).collect())
        }
        Key::AmbientC => reals(from, to, steps),
        Key::Batch | Key::Iterations | Key::Seed => wholes(from, to, steps),
        key if key.is_table() && from.kind == Kind::Integer && to.kind == Kind::Integer => wholes(from, to, steps),
        key if key.is_table() => reals(from, to, steps),
        _ => Err(Fault::Refused(format!("there is nothing between two values of {}; list them", key.name()))),
    }
}

fn budgets(from: &Literal, to: &Literal, steps: u64) -> Result<Vec<Literal>, Fault> {
    let budgets: Vec<Budget> = match (from.text.parse()?, to.text.parse()?) {
        (Budget::Percent(from), Budget::Percent(to)) => lerp(from, to, steps).map(Budget::Percent).collect(),
        (Budget::Bytes(from), Budget::Bytes(to)) => {
            rounded(from.0, to.0, steps).map(|bytes| Budget::Bytes(Bytes(bytes))).collect()
        }
        _ => {
            let message = format!("from {} to {}: both ends are percentages, or both are sizes", from.text, to.text);
            return Err(Fault::Refused(message));
        }
    };
    Ok(budgets.into_iter().map(|budget| Literal::text(budget.to_string())).collect())
}

fn reals(from: &Literal, to: &Literal, steps: u64) -> Result<Vec<Literal>, Fault> {
    let (from, to) = ends(from, to, "a number", |text| text.parse().ok().filter(|number: &f64| number.is_finite()))?;
    let literal = |number: f64| Literal { text: number.to_string(), kind: Kind::Real };
    Ok(lerp(from, to, steps).map(literal).collect())
}

fn wholes(from: &Literal, to: &Literal, steps: u64) -> Result<Vec<Literal>, Fault> {
    let (from, to) = ends(from, to, "a whole number", |text| text.replace('_', "").parse::<u64>().ok())?;
    let last = steps - 1;
    if last > 0 && from.abs_diff(to) % last != 0 {
        let message = format!("from {from} to {to} in {steps} steps are not all whole numbers");
        return Err(Fault::Refused(message));
    }
    let literal = |number: u64| Literal { text: number.to_string(), kind: Kind::Integer };
    Ok(rounded(from, to, steps).map(literal).collect())
}

/// The ends of a span as what `parse` makes of them, which is `expected`.
fn ends<T>(from: &Literal, to: &Literal, expected: &str, parse: fn(&str) -> Option<T>) -> Result<(T, T), Fault> {
    let refused =
        |end: &Literal| Fault::Refused(format!("expected {expected} at each end of the span, found {}", end.found()));
    let number = |end: &Literal| parse(end.text.trim()).ok_or_else(|| refused(end));
    Ok((number(from)?, number(to)?))
}

/// Equal steps, the ends exact.
fn lerp(from: f64, to: f64, steps: u64) -> impl Iterator<Item = f64> {
    let last = steps - 1;
    (0..steps).map(move |step| match step {
        0 => from,
        step if step == last => to,
        step => from + (to - from) * step as f64 / last as f64,
    })
}

/// Equal steps, rounded to the nearest whole.
fn rounded(from: u64, to: u64, steps: u64) -> impl Iterator<Item = u64> {
    let last = i128::from(steps - 1).max(1);
    (0..steps).map(move |step| {
        let doubled = 2 * (i128::from(to) - i128::from(from)) * i128::from(step) + last;
        // Between two values that fit, every value fits.
        (i128::from(from) + doubled.div_euclid(2 * last)) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(key: Key, from: &str, to: &str, steps: u64) -> Vec<String> {
        let found = values(key, &Literal::text(from), &Literal::text(to), steps).unwrap();
        found.into_iter().map(|literal| literal.text).collect()
    }

    #[test]
    fn steps_are_equal_and_the_ends_exact() {
        // 20 + 80 × {0, 1/4, 1/2, 3/4, 1}
        assert_eq!(texts(Key::MemoryBudget, "20%", "100%", 5), ["20%", "40%", "60%", "80%", "100%"]);
        assert_eq!(texts(Key::MemoryBudget, "1MB", "2MB", 3), ["1MB", "1500KB", "2MB"]);
        assert_eq!(texts(Key::TimeBudget, "1s", "500ms", 2), ["1s", "500ms"]);
        assert_eq!(texts(Key::Batch, "8", "32", 4), ["8", "16", "24", "32"]);
        assert_eq!(texts(Key::Seed, "7", "9", 1), ["7"]);
    }

    #[test]
    fn what_cannot_be_spanned_says_why() {
        let error = |key, from: &str, to: &str| {
            values(key, &Literal::text(from), &Literal::text(to), 4).unwrap_err().to_string()
        };
        assert!(error(Key::Model, "lenet5", "resnet50").contains("list them"));
        assert!(error(Key::MemoryBudget, "20%", "1GB").contains("both"));
        assert!(error(Key::Batch, "1", "32").contains("not all whole"));
    }
}
