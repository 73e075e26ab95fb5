//! The known names and words of traces.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use haversack_devices::text::read_toml;
use serde::Deserialize;

/// The contents of `words.toml`, which explains each.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Words {
    pub(crate) not_opened: Vec<String>,
    pub(crate) lmkd: Vec<(String, String, u32)>,
    pub(crate) carat_processes: Vec<(String, i16)>,
    pub(crate) carat_events: Vec<String>,
    pub(crate) archives: Vec<(Vec<u8>, String, String)>,
    pub(crate) findings: BTreeMap<String, String>,
}

/// The words; empty if the file cannot be parsed, which a test would find.
pub(crate) static WORDS: LazyLock<Words> =
    LazyLock::new(|| read_toml("words.toml", include_str!("../words.toml")).unwrap_or_default());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read() {
        let words: Words = read_toml("words.toml", include_str!("../words.toml")).unwrap();
        assert_eq!((words.not_opened.len(), words.lmkd.len(), words.archives.len()), (12, 35, 4));
        assert_eq!((words.carat_processes.len(), words.carat_events.len()), (7, 5));
    }
}
