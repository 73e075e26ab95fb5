//! Whose plans phones get: each its own, made by the server or on the phone, or that of a cluster of phones.
//!
//! The server clusters what phones report of their memory and how fast they compute (FedHybrid, section 4.3.2). A cluster's plans
//! are for the least budget in it, so that they fit every member, one for each device; a phone that reports more than training
//! takes needs none.

use haversack_devices::units::Bytes;
use haversack_federation::clusters::{Capability, Clusters};
use serde::{Deserialize, Serialize};

/// Who makes plans, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Plans {
    /// The server, for each cluster, and keeps them.
    Server,
    /// The server, for each phone one by one.
    Each,
    /// The phone for itself, in every round.
    Phone,
}

/// Clusters of server plans where a specification does not say how many.
pub(super) const CLUSTERS: u32 = 16;

/// A device and how phones like it report their memory.
pub(super) struct Reports<'r> {
    /// What an iteration takes where nothing is missing, in seconds.
    pub(super) seconds: f64,
    /// What training takes.
    pub(super) need: Bytes,
    /// By the number of the moment.
    pub(super) left: &'r [Bytes],
}

/// The budget of a cluster's plans by device and by the moment of the report.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clustered {
    /// `None` where training has all that it takes.
    budgets: Vec<Vec<Option<Bytes>>>,
    /// Visits of a report that clustering took: operations of the server, as visits of an operator are.
    pub(super) visits: u64,
}

impl Clustered {
    /// At most `number` clusters of all reports of all `devices`.
    pub(super) fn new(devices: &[Reports<'_>], number: u32, seed: u64) -> Self {
        let short = devices.iter().flat_map(|device| {
            let speed = 1.0 / device.seconds.max(f64::MIN_POSITIVE);
            device
                .left
                .iter()
                .filter(|left| **left < device.need)
                .map(move |left| Capability { budget: left.as_f64(), speed })
        });
        let short: Vec<Capability> = short.collect();
        let clusters = Clusters::new(&short, number as usize, seed);
        let mut of = clusters.of.iter();
        let mut budget = |device: &Reports<'_>, left: Bytes| {
            let cluster = if left < device.need { of.next() } else { None };
            // Budgets were whole bytes before.
            cluster.map(|&cluster| Bytes(clusters.weakest[cluster as usize].budget as u64))
        };
        let budgets = devices.iter().map(|device| device.left.iter().map(|&left| budget(device, left)).collect());
        Self { budgets: budgets.collect(), visits: clusters.visits }
    }

    /// The number of reports that were clustered.
    pub(super) fn reports(&self) -> usize {
        self.budgets.iter().flatten().flatten().count()
    }

    /// The budget of the plan for a device that reported at a moment.
    pub(super) fn budget(&self, device: usize, moment: usize) -> Option<Bytes> {
        self.budgets[device][moment]
    }
}
