//! The kinds of plans for phones: one per phone, made by the server or on the phone, or one per cluster of phones.
//!
//! The server clusters phones by the memory they report and their speed (FedHybrid, section 4.3.2). A cluster has one
//! plan per device, for the least budget in it, so that every member fits; a phone that reports more memory than
//! training needs gets no plan.

use haversack_devices::units::Bytes;
use haversack_federation::clusters::{Capability, Clusters};
use serde::{Deserialize, Serialize};

/// Who makes plans, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Plans {
    /// The server makes a plan per cluster and keeps it.
    Server,
    /// The server makes a plan per phone.
    Each,
    /// The phone makes its own plan, in every round.
    Phone,
}

/// The default number of clusters.
pub(super) const CLUSTERS: u32 = 16;

/// A device and the memory reports of phones like it.
pub(super) struct Reports<'r> {
    /// The time of an iteration with enough memory, in seconds.
    pub(super) seconds: f64,
    /// The memory that training needs.
    pub(super) need: Bytes,
    /// The reports, by the number of the moment.
    pub(super) left: &'r [Bytes],
}

/// The budget of a cluster's plans by device and by the moment of the report.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clustered {
    /// `None` if training has all the memory it needs.
    budgets: Vec<Vec<Option<Bytes>>>,
    /// Visits of a report during clustering; each counts as one operation of the server, like a visit of an operator.
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
            // Lossless: budgets came from whole bytes.
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
