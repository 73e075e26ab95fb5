//! Measured sets and their networks, bundled with the program (`experiments/truth`).

include!(concat!(env!("OUT_DIR"), "/truth.rs"));

/// Their folder in the project.
pub(crate) const FOLDER: &str = "experiments/truth";

/// A measured set, as its files have it.
pub(crate) struct Embedded {
    pub(crate) name: &'static str,
    /// `set.toml`.
    pub(crate) about: &'static str,
    /// `rows.csv`.
    pub(crate) rows: &'static str,
}

/// The set whose rows are the file at this path in the project; `None` if no set has it.
pub(crate) fn embedded(rows: &str) -> Option<&'static Embedded> {
    SETS.iter().find(|set| rows == format!("{FOLDER}/{}/rows.csv", set.name))
}

/// The network of a set at this path in the project; `None` if no set has it.
pub(crate) fn network(path: &str) -> Option<&'static [u8]> {
    NETWORKS.iter().find(|(known, _)| *known == path).map(|(_, bytes)| *bytes)
}
