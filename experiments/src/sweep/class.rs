//! Words that stand for several values: every policy, and the devices of one form.

use std::sync::Arc;

use haversack_devices::text::{nearest, question};
use haversack_devices::{CalibrationError, Form, list, load};
use haversack_policies::registry::POLICIES;

use crate::scenario::{Document, Fault, Item, Key, Literal, Origin, ScenarioError};

/// Every policy.
const ALL: &str = "all";
/// The devices of a form.
const FORMS: [(&str, Form); 3] = [("phones", Form::Phone), ("boards", Form::Board), ("gpus", Form::Gpu)];

/// Values that such a word brought and nobody named: that one of them fits nowhere is no mistake.
pub(super) type Members = Vec<(Key, String)>;

/// The values of a key as they are gathered, each with its line.
#[derive(Default)]
struct Values {
    all: Vec<(Literal, usize)>,
    /// What a word brought.
    brought: Vec<String>,
    has_words: bool,
}

impl Values {
    /// A value that is named; once a word stands beside it, it is there once.
    fn name(&mut self, value: Literal, line: usize) {
        self.brought.retain(|member| *member != value.text);
        self.all.retain(|(other, _)| !self.has_words || other.text != value.text);
        self.all.push((value, line));
    }

    /// What a word stands for.
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

/// Puts in the place of every such word of `document` what it stands for, each value once.
///
/// # Errors
/// A word that is mistyped, or a built-in device that does not load.
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

/// What `word` stands for as a value of `key`, in the order in which it is listed; `None` if it stands for itself.
///
/// # Errors
/// As [`expand`].
fn members(key: Key, word: &str) -> Result<Option<Vec<String>>, Fault> {
    let calibration = |error: CalibrationError| Fault::from(Box::new(error));
    match key {
        Key::Policy if word == ALL => Ok(Some(POLICIES.iter().map(|entry| entry.id.to_owned()).collect())),
        Key::Policy => itself(word, &[ALL], || Ok(POLICIES.iter().map(|entry| entry.id).collect())),
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

/// A value that stands for itself, unless it is one of `words` mistyped and none of `names`.
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
        // sage stands last, where it was named, and was not brought.
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
        for entry in POLICIES {
            assert_eq!(members(Key::Policy, entry.id).unwrap(), None);
        }
        for listing in list().unwrap() {
            assert_eq!(members(Key::Device, listing.id).unwrap(), None);
        }
        assert_eq!(members(Key::Device, "my-phone.toml").unwrap(), None);
    }
}
