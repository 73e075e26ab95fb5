//! All policies, by the names that scenarios use.

use std::str::FromStr;

use crate::dtr::Dtr;
use crate::original::Original;
use crate::policy::{Policy, PolicyError};
use crate::replay::Heuristic;
use crate::sage::{Dynamic, Order};
use crate::sga::StaticAccumulation;
use crate::sgc::StaticCheckpointing;

/// A parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it does, its values and its default.
    pub about: &'static str,
}

/// A policy as it is listed.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its id.
    pub id: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Where it is from.
    pub citation: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    build: fn(&Settings<'_>) -> Result<Box<dyn Policy>, PolicyError>,
}

const SAGE: &str = "Gim and Ko, MobiSys 2022";
const MTP: Parameter =
    Parameter { name: "mtp", about: "samples below which accumulation stops (default: what fills the device)" };
const ORDER: Parameter =
    Parameter { name: "order", about: "dga-first (default), dgc-first, half or alternate: the hybrids of figure 11" };
const HEURISTIC: Parameter =
    Parameter { name: "heuristic", about: "dtr (default), dtr-eq, dtr-local, msps, lru or size" };

/// All policies, in the order in which they are listed.
pub const POLICIES: &[Entry] = &[
    Entry {
        id: "original",
        about: "no memory management: everything is kept",
        citation: SAGE,
        parameters: &[],
        build: |_| Ok(Box::new(Original)),
    },
    Entry {
        id: "sgc",
        about: "static gradient checkpointing: every √n-th saved tensor is kept",
        citation: "Chen et al., 2016",
        parameters: &[],
        build: |_| Ok(Box::new(StaticCheckpointing::default())),
    },
    Entry {
        id: "sga",
        about: "static gradient accumulation: two micro-batches",
        citation: SAGE,
        parameters: &[],
        build: |_| Ok(Box::new(StaticAccumulation)),
    },
    Entry {
        id: "dgc",
        about: "dynamic gradient checkpointing: the lowest latency per byte gives way",
        citation: SAGE,
        parameters: &[],
        build: |_| Ok(Box::new(Dynamic::new(Order::CheckpointingOnly, None))),
    },
    Entry {
        id: "dga",
        about: "dynamic gradient accumulation: the micro-batch gives way",
        citation: SAGE,
        parameters: &[],
        build: |_| Ok(Box::new(Dynamic::new(Order::AccumulationOnly, None))),
    },
    Entry {
        id: "sage",
        about: "accumulation until the processor is under-used, then checkpointing",
        citation: SAGE,
        parameters: &[ORDER, MTP],
        build: |settings| {
            let order = match settings.get("order") {
                None | Some("dga-first") => Order::AccumulationFirst,
                Some("dgc-first") => Order::CheckpointingFirst,
                Some("half") => Order::Half,
                Some("alternate") => Order::Alternate,
                Some(found) => return Err(settings.bad("order", found, "dga-first, dgc-first, half or alternate")),
            };
            let mtp = match settings.get("mtp") {
                None => None,
                Some(found) => match found.parse::<u64>() {
                    Ok(samples) if samples > 0 => Some(samples),
                    _ => return Err(settings.bad("mtp", found, "a whole number of samples above zero")),
                },
            };
            Ok(Box::new(Dynamic::new(order, mtp)))
        },
    },
    Entry {
        id: "dtr",
        about: "dynamic tensor rematerialisation: the lowest heuristic score gives way",
        citation: "Kirisame et al., ICLR 2021",
        parameters: &[HEURISTIC],
        build: |settings| {
            let heuristic = match settings.get("heuristic") {
                None => Heuristic::Dtr,
                Some(found) => Heuristic::from_str(found)
                    .map_err(|_| settings.bad("heuristic", found, "dtr, dtr-eq, dtr-local, msps, lru or size"))?,
            };
            Ok(Box::new(Dtr::new(heuristic)))
        },
    },
];

struct Settings<'a> {
    policy: &'static str,
    values: &'a [(String, String)],
}

impl Settings<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn bad(&self, parameter: &'static str, found: &str, expected: &str) -> PolicyError {
        PolicyError::BadValue { policy: self.policy, parameter, found: found.to_owned(), expected: expected.to_owned() }
    }
}

/// Builds the policy `id` with parameters set by name.
///
/// # Errors
/// An unknown policy or parameter, with the nearest name, or a value that the parameter cannot have.
pub fn build(id: &str, set: &[(String, String)]) -> Result<Box<dyn Policy>, PolicyError> {
    let entry = find(id)?;
    for (key, _) in set {
        if !entry.parameters.iter().any(|parameter| parameter.name == key) {
            let nearest = nearest(key, entry.parameters.iter().map(|parameter| parameter.name));
            return Err(PolicyError::UnknownParameter { policy: entry.id, found: key.clone(), nearest });
        }
    }
    (entry.build)(&Settings { policy: entry.id, values: set })
}

/// The entry of the policy `id`.
///
/// # Errors
/// An unknown policy, with the nearest name.
pub fn find(id: &str) -> Result<&'static Entry, PolicyError> {
    POLICIES.iter().find(|entry| entry.id == id).ok_or_else(|| PolicyError::Unknown {
        found: id.to_owned(),
        nearest: nearest(id, POLICIES.iter().map(|entry| entry.id)),
    })
}

fn nearest<'a>(found: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let scored = names.map(|name| (strsim::jaro_winkler(found, name), name));
    scored.filter(|(score, _)| *score > 0.6).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name.to_owned())
}
