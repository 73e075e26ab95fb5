//! All policies, by the names that scenarios use. A policy's entry stands in its own file; here is a line for each.

use std::collections::BTreeMap;

use haversack_devices::text::nearest;

use crate::entry::Parameter;
use crate::{
    Entry, Plan, Policy, PolicyError, actnn, capuchin, daf, dtr, elastictrainer, engines, fedhybrid, fixed8, gact,
    mandheling, melon, mincut, original, planned, sage, sga, sgc,
};

/// All policies that decide by themselves, in the order in which they are listed.
pub static POLICIES: [&Entry; 21] = [
    &original::ENTRY,
    &sgc::ENTRY,
    &sga::ENTRY,
    &sage::DGC,
    &sage::DGA,
    &sage::SAGE,
    &dtr::ENTRY,
    &fixed8::ENTRY,
    &elastictrainer::ENTRY,
    &actnn::ENTRY,
    &daf::ENTRY,
    &gact::ENTRY,
    &capuchin::ENTRY,
    &melon::ENTRY,
    &fedhybrid::ENTRY,
    &engines::TFLITE_FP32,
    &engines::MNN_FP32,
    &engines::MNN_INT8,
    &engines::MNN_FP32_GPU,
    &mandheling::ENTRY,
    &mincut::policy::ENTRY,
];

/// The same, and that which carries out what was decided before.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    POLICIES.into_iter().chain([&planned::ENTRY])
}

/// The entry of the policy `id`.
///
/// # Errors
/// An unknown policy, with the nearest name.
pub fn find(id: &str) -> Result<&'static Entry, PolicyError> {
    all().find(|entry| entry.id == id).ok_or_else(|| PolicyError::Unknown {
        found: id.to_owned(),
        nearest: nearest(id, all().map(|entry| entry.id)).map(str::to_owned),
    })
}

/// Builds the policy `id` with parameters set by name.
///
/// # Errors
/// An unknown policy or parameter, with the nearest name, or a value that the parameter cannot have.
pub fn build(id: &str, set: &[(String, String)]) -> Result<Box<dyn Policy>, PolicyError> {
    find(id)?.build(set)
}

/// The policy that a run under `entry` with the parameters `set` stands for, and its own: of `planned` the one whose plan it
/// carries out.
///
/// # Errors
/// As [`Plan::read`], and a plan of a policy that there is not.
pub fn origin(
    entry: &'static Entry,
    set: &BTreeMap<String, String>,
) -> Result<(&'static Entry, BTreeMap<String, String>), PolicyError> {
    match set.get(planned::PLAN.name()).filter(|_| entry.id == planned::ENTRY.id) {
        None => Ok((entry, set.clone())),
        Some(file) => {
            let plan = Plan::read(file)?;
            Ok((find(&plan.policy)?, plan.set))
        }
    }
}
