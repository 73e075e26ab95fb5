//! What people call what ids name: `resnet50` is ResNet-50.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use haversack_devices::text::read_toml;

const FILE: &str = "experiments/readings/names.toml";
const TEXT: &str = include_str!("../../readings/names.toml");

/// Words of ids, alone or joined by hyphens, each with what people call it.
static NAMES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| read_toml(FILE, TEXT).unwrap_or_default());

/// `id` in words: names as people write them, all else as it is, with spaces for hyphens.
pub(crate) fn spelled(id: &str) -> String {
    let mut words = String::new();
    let mut left = id;
    while !left.is_empty() {
        let known = NAMES.iter().filter(|(word, _)| {
            left.strip_prefix(word.as_str()).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        });
        // Of two that fit, the longer one.
        if let Some((word, name)) = known.max_by_key(|(word, _)| word.len()) {
            words += name;
            left = &left[word.len()..];
        } else {
            let end = left.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(left.len());
            words += &left[..end];
            left = &left[end..];
        }
        let end = left.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(left.len());
        words += &left[..end].replace('-', " ");
        left = &left[end..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins_and_words_are_whole() {
        assert_eq!(spelled("resnet50-on-galaxy-s10"), "ResNet-50 on Galaxy S10");
        assert_eq!(spelled("bert-small-sage"), "BERT-small Sage");
        assert_eq!(spelled("bertha-cpus"), "bertha cpus");
        assert_eq!(spelled("bert,oort+capuchin"), "BERT,Oort+Capuchin");
        assert_eq!(spelled("rtx-3090-vs-phones"), "RTX 3090 vs phones");
        assert_eq!(spelled("émile"), "émile");
    }
}
