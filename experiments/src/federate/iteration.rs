//! The cost of an iteration on a device by the device simulator, computed once for all that share a cache.

use std::collections::BTreeMap;

use haversack_devices::calibration::Settings;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{CoreSelection, Frequency, ensure, load};
use haversack_federation::population::DeviceKind;
use haversack_policies::planning::{Planner, Planning};
use haversack_training::{Machine, PlanReport, RunError, with_setting};

use super::specification::Specification;
use crate::run::{Plan, PlanError};
use crate::scenario::{Budget, Fault, Key, Scenario};
use crate::{Cache, CommandError, Result, interrupt};

/// An iteration on a device within a budget, or with as much memory as it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    /// The number of its plan.
    pub(super) plan: u32,
    pub(super) seconds: f64,
    pub(super) joules: f64,
    pub(super) peak: Bytes,
    /// The part of `peak` that a policy can reduce: everything above weights, the optimiser's state and the samples.
    pub(super) growth: Bytes,
    /// The cost of making the plan; `None` if the policy makes none.
    pub(super) making: Option<Making>,
}

/// The cost of making and sending a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Making {
    /// Number of tensors scored and operators visited.
    pub(super) operations: u64,
    /// On a core of the server, in seconds.
    pub(super) server_s: f64,
    /// On the phone's core for background services, in seconds.
    pub(super) phone_s: f64,
    /// The profile and the budget, to the server.
    pub(super) up_bytes: u64,
    /// The plan, to the phone.
    pub(super) down_bytes: u64,
}

/// An iteration of the training in `asked` on a device, within a budget or without one; if `asked` requests more cores
/// of a class than the device has, on all of that class.
pub(super) fn scenario(asked: &Specification, kind: &DeviceKind, budget: Option<Bytes>) -> Scenario {
    let cpu = load(&kind.id).ok().and_then(|device| device.cpu());
    let of_cpu = |cores: CoreSelection| cpu.map(|cpu| cores.or_all_of_class(cpu.choose(cores, Frequency::Highest)));
    let cores = asked.trained.cores.map(|cores| of_cpu(cores).unwrap_or(cores));
    Scenario {
        device: kind.id.clone(),
        cores,
        device_set: super::budgets::memory(&asked.setting.memory[usize::from(kind.memory)]),
        memory_budget: budget.map(Budget::Bytes),
        ..asked.trained.clone()
    }
}

/// The same on a phone with more memory than any training here needs.
pub(super) fn with_memory_to_spare(scenario: Scenario) -> Scenario {
    Scenario { device_set: Settings::from([("ram".to_owned(), "256 GiB".to_owned())]), ..scenario }
}

/// Simulates `scenario`, or finds it in `cache`: its cost, or the reason why no plan fits or the device
/// cannot run the policy.
///
/// # Errors
/// A scenario that is wrong, or a run that fails for another reason than memory.
pub(super) fn cost(scenario: &Scenario, cache: &Cache) -> Result<Result<Cost, String>> {
    let key = format!("iteration in a federation, {}", scenario.fingerprint(Key::ALL));
    ensure!(!interrupt::came(), CommandError::Interrupted);
    let found = cache.get(key, || match Plan::new(scenario, cache) {
        Ok(plan) => run(&plan, &scenario.device),
        // Another device may have the processor that the policy needs.
        Err(PlanError::Scenario(error)) if matches!(*error.fault, Fault::Machine { .. }) => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    })?;
    Ok(found.as_ref().clone())
}

/// The training of `asked` with enough memory: under `original` if the policy then does nothing else, so that one
/// simulation serves both. `whole` is an iteration under the policy.
///
/// # Errors
/// As [`cost`].
pub(super) fn nothing_short(
    asked: &Specification,
    kind: &DeviceKind,
    whole: &Cost,
    cache: &Cache,
) -> Result<Specification> {
    let own = Plan::new(&scenario(asked, kind, None), cache)?;
    let schedule =
        with_setting(own.machine(), &own.job(), |setting| own.policy().and_then(|mut policy| policy.prepare(setting)));
    let mut original = asked.clone();
    (original.trained.policy, original.trained.set) = ("original".to_owned(), BTreeMap::new());
    if !schedule.is_ok_and(|schedule| schedule.is_plain(asked.trained.batch)) {
        return Ok(asked.clone());
    }
    let found = cost(&with_memory_to_spare(scenario(&original, kind, None)), cache)?.ok();
    let is_same = |other: &Cost| {
        (other.seconds.to_bits(), other.joules.to_bits(), other.peak)
            == (whole.seconds.to_bits(), whole.joules.to_bits(), whole.peak)
    };
    Ok(if found.as_ref().is_some_and(is_same) { original } else { asked.clone() })
}

fn run(plan: &Plan, device: &str) -> Result<Result<Cost, String>> {
    match plan.run() {
        Ok(record) => {
            let (seconds, joules, peak) = (record.iteration.seconds(), record.energy.0, record.peak_memory);
            let made = record.plans.last();
            let making = made.and_then(|&PlanReport { planning, .. }| Making::of(&planning, plan.machine()));
            Ok(Ok(Cost { plan: 0, seconds, joules, peak, growth: record.peak_growth, making }))
        }
        Err(error) if error.is_infeasible() => Ok(Err(format!("{device}: {error}"))),
        Err(RunError::Policy(error)) => Ok(Err(format!("{device}: {error}"))),
        Err(error) => Err(PlanError::Run(error).into()),
    }
}

impl Making {
    /// `None` if the stack does not define the cost of planning.
    fn of(planning: &Planning, machine: &Machine) -> Option<Self> {
        let seconds = |planner| machine.making_time(planner, planning.operations).map(Nanos::seconds);
        Some(Self {
            operations: planning.operations.total(),
            server_s: seconds(Planner::Server)?,
            phone_s: seconds(Planner::Phone)?,
            up_bytes: planning.sent.0,
            down_bytes: planning.received.0,
        })
    }
}
