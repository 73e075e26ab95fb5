//! The description of each artefact and the calibrations it loads: `readings/artefacts.toml`, embedded.
//!
//! ```toml
//! [[group]]                       # artefacts that load the same
//! paper = "sage"                  # or `comparison`
//! devices = ["galaxy-s10"]        # likewise `stacks`, `systems`: calibrations whose digests and fitted constants are recorded
//! measured = ["daf/bits"]         # what was measured in training, by the `paper/artefact` that measures it
//! users = true                    # synthetic users are drawn; `takes_trace`: a table of traces can take their place
//! of_many = true                  # rows of many phones of several devices, which check none of them by itself
//! artefacts = [
//!   # In addition to what it shows, what was `measured` for it alone.
//!   { id = "figure8", about = "the least memory that each scheme needs, four networks" },
//! ]
//! ```

use std::sync::LazyLock;

use haversack_devices::text::read_toml;
use serde::Deserialize;

const FILE: &str = "experiments/readings/artefacts.toml";
const TEXT: &str = include_str!("../../readings/artefacts.toml");

/// An artefact: a table, a figure or a claim of a section.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The paper, as the reference spells it, or `comparison`.
    pub paper: &'static str,
    /// The `artefact` of the reference, e.g. `figure9a`.
    pub id: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The devices that it loads; their digests and fitted constants are recorded.
    pub devices: &'static [&'static str],
    /// The software stacks that it loads, recorded in the same way.
    pub stacks: &'static [&'static str],
    /// The operating systems that it loads, recorded in the same way.
    pub systems: &'static [&'static str],
    /// Whether its rows combine many phones of several devices, so that they do not check a single device.
    pub of_many: bool,
    /// Whether it draws synthetic users and the memory of their apps, whose models have fitted numbers, too.
    pub users: bool,
    /// Whether it can show the users of a table of traces instead.
    pub takes_trace: bool,
    /// Its inputs that were measured in training, each as the `paper/artefact` that measures it.
    pub measured: &'static [&'static str],
}

impl Entry {
    /// An artefact without a name and without calibrations.
    pub const EMPTY: Self = Self {
        paper: "",
        id: "",
        about: "",
        devices: &[],
        stacks: &[],
        systems: &[],
        of_many: false,
        users: false,
        takes_trace: false,
        measured: &[],
    };

    /// `paper/artefact`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.paper, self.id)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    #[serde(rename = "group")]
    groups: Vec<Group>,
}

/// Artefacts that load the same calibrations.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Group {
    paper: String,
    devices: Vec<String>,
    stacks: Vec<String>,
    systems: Vec<String>,
    of_many: bool,
    users: bool,
    takes_trace: bool,
    measured: Vec<String>,
    artefacts: Vec<Named>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    id: String,
    about: String,
    #[serde(default)]
    measured: Vec<String>,
}

/// The embedded file is parsed once, and stays for the lifetime of the program.
static ENTRIES: LazyLock<Vec<Entry>> =
    LazyLock::new(|| read_toml::<Catalogue>(FILE, TEXT).map(Catalogue::entries).unwrap_or_default());

impl Catalogue {
    fn entries(self) -> Vec<Entry> {
        let names = |names: Vec<String>| -> &'static [&'static str] {
            names.into_iter().map(|name| &*name.leak()).collect::<Vec<_>>().leak()
        };
        let of = |group: Group| {
            let Group { of_many, users, takes_trace, measured, .. } = group;
            let shared = Entry {
                paper: group.paper.leak(),
                devices: names(group.devices),
                stacks: names(group.stacks),
                systems: names(group.systems),
                of_many,
                users,
                takes_trace,
                ..Entry::EMPTY
            };
            let one = move |named: Named| {
                let measured = names(measured.iter().cloned().chain(named.measured).collect());
                Entry { id: named.id.leak(), about: named.about.leak(), measured, ..shared }
            };
            group.artefacts.into_iter().map(one)
        };
        self.groups.into_iter().flat_map(of).collect()
    }
}

/// Every artefact, group by group; empty if the embedded file does not follow its schema, which a test excludes.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The artefact named `paper/id`.
pub fn entry(paper: &str, id: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.paper == paper && entry.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_artefact_stands_in_it_once() {
        read_toml::<Catalogue>(FILE, TEXT).unwrap();
        let mut places: Vec<String> = entries().iter().map(Entry::place).collect();
        let all = places.len();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), all);
    }
}
