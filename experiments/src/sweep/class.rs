//! Words that stand for several values: every policy, and the devices of one form.

use std::sync::Arc;

use haversack_devices::{CalibrationError, Form, list, load};
use haversack_policies::registry::POLICIES;

use crate::scenario::{Document, Item, Key, Literal, Origin, ScenarioError};

/// Every policy.
const ALL: &str = "all";
/// The devices of a form.
const FORMS: [(&str, Form); 3] = [("phones", Form::Phone), ("boards", Form::Board), ("gpus", Form::Gpu)];

/// Values that such a word brought and nobody named: that one of them fits nowhere is no mistake.
pub(super) type Members = Vec<(Key, String)>;

/// Puts in the place of every such word of `document` what it stands for, each value once.
///
/// # Errors
/// A built-in device that does not load.
pub(super) fn expand(document: &mut Document) -> Result<Members, ScenarioError> {
    let mut all = Members::new();
    let Document { file, fields } = document;
    for (key, field) in fields {
        let values = match &field.item {
            Item::One(value) => vec![(value.clone(), field.line)],
            Item::Many(values) => values.clone(),
            Item::Span { .. } | Item::Table(_) => continue,
        };
        let (mut expanded, mut brought): (Vec<(Literal, usize)>, Vec<String>) = (Vec::new(), Vec::new());
        let mut has_words = false;
        for (value, line) in values {
            let members = members(*key, &value.text).map_err(|error| {
                let origin = Origin::File { file: Arc::clone(file), line };
                ScenarioError::new(origin, key.name(), Box::new(error))
            })?;
            let Some(members) = members else {
                brought.retain(|member| *member != value.text);
                expanded.retain(|(other, _)| !has_words || other.text != value.text);
                expanded.push((value, line));
                continue;
            };
            has_words = true;
            for member in members {
                if !expanded.iter().any(|(other, _)| other.text == member) {
                    brought.push(member.clone());
                    expanded.push((Literal::text(member), line));
                }
            }
        }
        if has_words {
            field.item = Item::Many(expanded);
            all.extend(brought.into_iter().map(|member| (*key, member)));
        }
    }
    Ok(all)
}

/// What `word` stands for as a value of `key`, in the order in which it is listed; `None` if it stands for itself.
///
/// # Errors
/// A built-in device that does not load.
fn members(key: Key, word: &str) -> Result<Option<Vec<String>>, CalibrationError> {
    match key {
        Key::Policy if word == ALL => Ok(Some(POLICIES.iter().map(|entry| entry.id.to_owned()).collect())),
        Key::Device => {
            let Some((_, form)) = FORMS.into_iter().find(|(name, _)| *name == word) else { return Ok(None) };
            let mut members = Vec::new();
            for listing in list()? {
                if load(listing.id)?.constants.form == Some(form) {
                    members.push(listing.id.to_owned());
                }
            }
            Ok(Some(members))
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
        let mut document = Document::parse("s.toml", text).unwrap();
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
}
