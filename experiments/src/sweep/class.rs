//! Group words, which stand for several values: every policy, or the devices of one form.
//!
//! Also the values between two ends: `{ from = "20%", to = "100%", steps = 40 }`.

use std::sync::Arc;

use haversack_devices::text::{nearest, question};
use haversack_devices::{Bytes, CalibrationError, Form, Nanos, list, load};
use haversack_policies::{POLICIES, registry};

use crate::scenario::{Document, Fault, Item, Kind, Literal, Origin, ScenarioError, parse_time, time_text};
use crate::{Budget, Key};

/// Every policy.
const ALL: &str = "all";
/// The devices of a form.
const FORMS: [(&str, Form); 3] = [("phones", Form::Phone), ("boards", Form::Board), ("gpus", Form::Gpu)];

/// Values that came from a group word and were not named: one of them that fits nowhere is not a mistake.
pub(super) type Members = Vec<(Key, String)>;

/// The values of a key while they are gathered, each with its line.
#[derive(Default)]
struct Values {
    all: Vec<(Literal, usize)>,
    /// The values that came from a group word.
    brought: Vec<String>,
    has_words: bool,
}

impl Values {
    /// Adds a named value; after a group word, it replaces an equal one.
    fn name(&mut self, value: Literal, line: usize) {
        self.brought.retain(|member| *member != value.text);
        self.all.retain(|(other, _)| !self.has_words || other.text != value.text);
        self.all.push((value, line));
    }

    /// Adds the values of a group word.
    fn bring(&mut self, members: Vec<String>, line: usize) {
        self.has_words = true;
        for member in members {
            if !self.all.iter().any(|(other, _)| other.text == member) {
                self.brought.push(member.clone());
                self.all.push((Literal::text(member), line));
            }
        }
    }
}

/// Replaces every group word of `document` by its values, each only once.
///
/// # Errors
/// A misspelt group word, or a built-in device that does not load.
pub(super) fn expand(document: &mut Document) -> Result<Members, ScenarioError> {
    let mut brought = Members::new();
    let Document { file, fields, .. } = document;
    for (key, field) in fields {
        let Some(named) = field.named() else { continue };
        let mut values = Values::default();
        for (value, line) in named {
            let origin = || Origin::File { file: Arc::clone(file), line };
            match members(*key, &value.text).map_err(|fault| ScenarioError::new(origin(), key.name(), fault))? {
                Some(members) => values.bring(members, line),
                None => values.name(value, line),
            }
        }
        if values.has_words {
            field.item = Item::Many(values.all);
            brought.extend(values.brought.into_iter().map(|member| (*key, member)));
        }
    }
    Ok(brought)
}

/// The values of the group word `word` for `key`, in the order of the lists; `None` if it is an ordinary value.
///
/// # Errors
/// As [`expand`].
fn members(key: Key, word: &str) -> Result<Option<Vec<String>>, Fault> {
    let calibration = |error: CalibrationError| Fault::from(Box::new(error));
    match key {
        Key::Policy if word == ALL => Ok(Some(POLICIES.iter().map(|entry| entry.id.to_owned()).collect())),
        Key::Policy => itself(word, &[ALL], || Ok(registry::all().map(|entry| entry.id).collect())),
        Key::Device => {
            let devices = || list().map_err(calibration);
            let Some((_, form)) = FORMS.into_iter().find(|(name, _)| *name == word) else {
                let ids = || Ok(devices()?.into_iter().map(|listing| listing.id).collect());
                return itself(word, &FORMS.map(|(name, _)| name), ids);
            };
            let mut members = Vec::new();
            for listing in devices()? {
                if load(listing.id).map_err(calibration)?.constants.form == Some(form) {
                    members.push(listing.id.to_owned());
                }
            }
            Ok(Some(members))
        }
        _ => Ok(None),
    }
}

/// `None` for an ordinary value, unless it is a misspelling of one of `words` and none of `names`.
fn itself(
    word: &str,
    words: &[&str],
    names: impl Fn() -> Result<Vec<&'static str>, Fault>,
) -> Result<Option<Vec<String>>, Fault> {
    if nearest(word, words.iter().copied()).is_none() {
        return Ok(None);
    }
    let names = names()?;
    let guess = nearest(word, names.iter().chain(words).copied()).filter(|guess| words.contains(guess));
    match guess {
        Some(_) if !names.contains(&word) => {
            Err(Fault::hinted(format!("an id, or {}", words.join(", ")), format!("'{word}'"), question(guess)))
        }
        _ => Ok(None),
    }
}

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

/// The ends of a span, parsed by `parse`; `expected` describes them in errors.
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
        // Values between two representable values are representable.
        (i128::from(from) + doubled.div_euclid(2 * last)) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_what_is_listed() {
        let of = |key, word| members(key, word).unwrap();
        assert_eq!(of(Key::Policy, "all").map(|policies| policies.len()), Some(POLICIES.len()));
        let boards = of(Key::Device, "boards").unwrap();
        assert!(boards.iter().all(|id| id.starts_with("jetson-")) && boards.len() >= 2, "{boards:?}");
        assert!(of(Key::Device, "gpus").unwrap().contains(&"rtx-3090".to_owned()));
        let phones = of(Key::Device, "phones").unwrap();
        assert!(phones.contains(&"pixel-6".to_owned()) && !phones.contains(&"single-core".to_owned()), "{phones:?}");
        assert_eq!((of(Key::Device, "all"), of(Key::Model, "all"), of(Key::Device, "pixel-6")), (None, None, None));
    }

    #[test]
    fn a_value_that_is_named_beside_its_word_is_there_once() {
        let text = "device = [\"pixel-6\", \"gpus\"]\nmodel = \"lenet5\"\npolicy = [\"all\", \"sage\"]\n";
        let mut document = Document::parse("s.toml", text, &[], &mut Default::default()).unwrap();
        let brought = expand(&mut document).unwrap();
        let values = |key: Key| match &document.fields.iter().find(|(found, _)| *found == key).unwrap().1.item {
            Item::Many(values) => values.iter().map(|(value, _)| value.text.clone()).collect(),
            _ => Vec::new(),
        };
        assert_eq!(values(Key::Device)[..2], ["pixel-6", "rtx-3090"]);
        // sage is last, where it was named, so it does not count as a value of the group word.
        let policies = values(Key::Policy);
        assert_eq!((policies.len(), policies.last().map(String::as_str)), (POLICIES.len(), Some("sage")));
        assert!(brought.contains(&(Key::Device, "rtx-3090".to_owned())));
        assert!(!brought.iter().any(|(_, name)| name == "sage" || name == "pixel-6"));
        assert_eq!(values(Key::Model), Vec::<String>::new(), "what holds no such word stays as it is");
    }

    #[test]
    fn a_word_that_is_mistyped_is_guessed_and_a_name_never_taken_for_one() {
        let wrong = |key, word| members(key, word).unwrap_err().to_string();
        assert!(wrong(Key::Device, "phone").ends_with("found 'phone'; did you mean 'phones'?"));
        assert!(wrong(Key::Device, "gpu").contains("did you mean 'gpus'?"));
        assert!(wrong(Key::Policy, "al").contains("did you mean 'all'?"));
        for entry in POLICIES.iter() {
            assert_eq!(members(Key::Policy, entry.id).unwrap(), None);
        }
        for listing in list().unwrap() {
            assert_eq!(members(Key::Device, listing.id).unwrap(), None);
        }
        assert_eq!(members(Key::Device, "my-phone.toml").unwrap(), None);
    }

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
