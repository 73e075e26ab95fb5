//! The tensors that backward gets back from the policy's store while phones learn.
//!
//! The policy runs an iteration of the stand-in on each device, under the graph of an eager framework and with the
//! fraction of evictable memory that a plan of the network leaves (weights cannot be evicted). Clients that run this
//! plan store the tensors saved for backward in the same way as that iteration.

use std::sync::Arc;

use haversack_devices::units::Bytes;
use haversack_federation::population::DeviceKind;
use haversack_federation::work::Job;
use haversack_policies::registry;
use haversack_training::{GivesBack, Record};
use rayon::prelude::*;

use super::costs::Share;
use super::iteration::{scenario, with_memory_to_spare};
use super::specification::Specification;
use super::widths::Widths;
use crate::run::{Plan, PlanError};
use crate::scenario::{Budget, Fault, InputShape, Key, Scenario};
use crate::{Cache, CommandError, Result};

/// The stack whose graph can compute real values, with the kernels and the codec of MNN.
const STACK: &str = "mnn-2-eager";
/// Fractions are rounded to this many steps.
const STEPS: u64 = 20;

/// The learning network, the shape of its samples and the number of classes.
pub(super) struct Subject<'a> {
    pub(super) stand_in: &'a str,
    pub(super) input: Option<&'a [u64]>,
    pub(super) classes: u64,
}

/// The stores, by the width of the network and the number of the plan; an unknown plan returns every tensor unchanged.
pub(super) struct Stores(Vec<Vec<Option<Arc<GivesBack>>>>);

impl Stores {
    /// The stores of all plans of `work`.
    ///
    /// # Errors
    /// A policy that does not run under that graph, or a run that fails for another reason than memory.
    pub(super) fn new(
        asked: &Specification,
        kinds: &[DeviceKind],
        work: &Widths<'_>,
        subject: &Subject<'_>,
        cache: &Cache,
    ) -> Result<Self> {
        let entry = registry::find(&asked.trained.policy).map_err(CommandError::input)?;
        // An engine sets the number format, but has no store.
        if entry.engine.is_some() || asked.learning.as_ref().is_none_or(|learning| learning.keeps_whole) {
            return Ok(Self(Vec::new()));
        }
        let of_width = |shares: Vec<Share>| {
            let found = shares.par_iter().map(|share| of_plan(asked, &kinds[share.kind], subject, share.share, cache));
            let found = found.collect::<Result<Vec<_>>>()?;
            let most = shares.iter().map(|share| share.plan as usize + 1).max().unwrap_or(0);
            let mut by_plan = vec![None; most];
            shares.iter().zip(found).for_each(|(share, found)| by_plan[share.plan as usize] = found);
            Ok(by_plan)
        };
        Ok(Self(work.shares().into_iter().map(of_width).collect::<Result<_>>()?))
    }

    /// Whether every plan returns all tensors unchanged.
    pub(super) fn are_whole(&self) -> bool {
        self.0.iter().flatten().all(Option::is_none)
    }

    /// The store of a phone that does this job; `None` if it returns every tensor unchanged.
    pub(super) fn of(&self, job: &Job) -> Option<&GivesBack> {
        self.0.get(usize::from(job.width))?.get(job.plan as usize)?.as_deref()
    }
}

fn of_plan(
    asked: &Specification,
    kind: &DeviceKind,
    subject: &Subject<'_>,
    share: f64,
    cache: &Cache,
) -> Result<Option<Arc<GivesBack>>> {
    let steps = ((share * STEPS as f64) as u64).min(STEPS);
    let whole = Scenario {
        model: subject.stand_in.to_owned(),
        input: subject.input.map(|sizes| InputShape(sizes.to_vec())),
        classes: Some(subject.classes),
        stack: Some(STACK.to_owned()),
        ..with_memory_to_spare(scenario(asked, kind, None))
    };
    let key = format!("store in a federation, {steps} of {STEPS}, {}", whole.fingerprint(Key::ALL));
    let found = cache.get(key, || {
        let Some(unbounded) = run(&whole, cache)? else { return Ok(None) };
        for left in steps..STEPS {
            let budget = unbounded.peak_memory.0 - unbounded.peak_growth.0 * (STEPS - left) / STEPS;
            let within = Scenario { memory_budget: Some(Budget::Bytes(Bytes(budget))), ..whole.clone() };
            if let Some(record) = run(&within, cache)? {
                return Ok(record.stored.and_then(GivesBack::of).map(Arc::new));
            }
        }
        Ok::<_, CommandError>(unbounded.stored.and_then(GivesBack::of).map(Arc::new))
    })?;
    Ok(found.as_ref().clone())
}

/// An iteration; `None` if no plan fits, or the device cannot run it.
fn run(scenario: &Scenario, cache: &Cache) -> Result<Option<Record>> {
    let mut plan = match Plan::new(scenario, cache) {
        Ok(plan) => plan,
        Err(PlanError::Scenario(error)) if matches!(*error.fault, Fault::Machine { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    plan.observe.stored = true;
    match plan.run() {
        Ok(record) => Ok(Some(record)),
        Err(error) if error.is_infeasible() => Ok(None),
        Err(error) => Err(PlanError::Run(error).into()),
    }
}
