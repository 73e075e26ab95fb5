//! What a phone's part of a round takes: the device simulator's answers, by device and budget.
//!
//! An iteration is simulated once for each device and each budget, rounded down by less than a twentieth; a phone
//! that is faster or slower than its device takes that much less or more of it.

use std::collections::{BTreeMap, BTreeSet};

use haversack_devices::calibration::Settings;
use haversack_devices::processor::{Frequency, SelectionError};
use haversack_devices::units::Bytes;
use haversack_devices::{CoreSelection, load};
use haversack_federation::population::{DeviceKind, Phone};
use haversack_federation::work::{Job, Work};
use haversack_training::RunError;
use rayon::prelude::*;

use super::budgets::{Budgets, WINDOW, memory};
use super::rounds::Phones;
use super::specification::Specification;
use crate::cache::Cache;
use crate::error::CommandError;
use crate::progress::{Amount, Progress};
use crate::quantities;
use crate::run::{Plan, PlanError};
use crate::scenario::{Budget, Key, Scenario};

/// A budget's step: its neighbour is so much more.
const STEP: f64 = 1.05;
/// How many moments of a round are looked at for memory that has become too little.
const LOOKS: u32 = 144;

/// An iteration on a device within a budget, or with as much memory as it asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    plan: u32,
    seconds: f64,
    joules: f64,
    peak: Bytes,
}

/// A device as if it had all the memory that is asked for, and within budgets.
struct OnDevice {
    unbounded: Cost,
    /// What training needs where nothing is done about memory.
    need: Bytes,
    /// By step; `None` where no plan fits.
    within: BTreeMap<i32, Option<Cost>>,
}

/// The costs of all phones.
pub(super) struct Costs<'a> {
    asked: &'a Specification,
    phones: &'a [Phone],
    budgets: &'a Budgets,
    /// By device kind; in words why a device cannot run the policy.
    devices: Vec<Result<OnDevice, String>>,
    /// What travels each way.
    bytes: u64,
}

impl<'a> Costs<'a> {
    /// Simulates an iteration for each device and budget, once for all federations that share `cache`.
    ///
    /// # Errors
    /// A network or a policy that nobody has, a policy that no device can run, or a run that fails.
    pub(super) fn new(
        asked: &'a Specification,
        Phones { kinds, population }: &'a Phones,
        budgets: &'a Budgets,
        cache: &Cache,
    ) -> Result<Self, CommandError> {
        let bar = Progress::new(Amount::Number("devices simulated"), kinds.len() as u64, 0);
        let devices = kinds.par_iter().map(|kind| {
            let found = OnDevice::new(asked, kind, budgets, cache);
            bar.inc(1);
            found
        });
        let mut devices = devices.collect::<Result<Vec<_>, CommandError>>()?;
        bar.finish();
        if devices.iter().all(Result::is_err) {
            let why = devices.swap_remove(0).err().unwrap_or_default();
            return Err(CommandError::input(format!("no device of the population can train this: {why}")));
        }
        for (number, cost) in (0..).zip(devices.iter_mut().flatten().flat_map(OnDevice::costs)) {
            cost.plan = number;
        }
        let kind = &kinds[devices.iter().position(Result::is_ok).unwrap_or(0)];
        let plan = Plan::new(&scenario(asked, kind, None), cache)?;
        let weights: u64 = plan
            .resolved
            .network
            .parameters
            .iter()
            .filter(|weight| weight.trainable)
            .map(|weight| weight.elements)
            .sum();
        let phones = population.phones();
        Ok(Self { asked, phones, budgets, devices, bytes: weights * plan.arithmetic().bytes().0 })
    }

    fn phone(&self, phone: u32) -> (Phone, Result<&OnDevice, &String>) {
        let phone = self.phones[phone as usize];
        (phone, self.devices[usize::from(phone.device)].as_ref())
    }

    /// Batches of a part.
    fn batches(&self, phone: Phone) -> f64 {
        self.asked.batches(phone.samples)
    }

    fn transfers_s(&self, phone: Phone) -> f64 {
        self.bytes as f64 / f64::from(phone.down) + self.bytes as f64 / f64::from(phone.up)
    }

    /// An iteration as a phone usually has it.
    fn usual(&self, number: u32) -> Result<Cost, String> {
        let (phone, device) = self.phone(number);
        let device = device.map_err(Clone::clone)?;
        let left = self.budgets.usual(phone.memory, number);
        device.within(left).ok_or_else(|| {
            let size = self.asked.setting.memory[usize::from(phone.memory)].size_gb;
            let (need, policy) = (quantities::size(device.need), &self.asked.policy);
            format!(
                "no plan of {policy} fits what a phone with {size} GB usually leaves; without one training takes {need}"
            )
        })
    }

    /// When memory becomes less than what even the plan for it takes, in seconds after training has begun.
    fn killed_after_s(&self, number: u32, round: u32, compute_s: f64) -> Option<f64> {
        let (phone, device) = self.phone(number);
        let device = device.ok()?;
        let window = WINDOW.0 as f64 / 1e9;
        let looks = (1..=LOOKS).take_while(|&look| f64::from(look) * window < compute_s);
        let is_too_little = |look: &u32| {
            let left = self.budgets.moment(phone.memory, number, round, *look).available;
            device.within(left).is_none_or(|cost| cost.peak > left)
        };
        looks.into_iter().find(is_too_little).map(|look| f64::from(look) * window)
    }
}

impl Work for Costs<'_> {
    fn holds(&self, phone: u32) -> Result<(), String> {
        self.usual(phone).map(|_| ())
    }

    fn job(&self, number: u32, round: u32, _: f64) -> Job {
        let (phone, device) = self.phone(number);
        let left = self.budgets.moment(phone.memory, number, round, 0).predicted;
        let (down_bytes, up_bytes) = (self.bytes, self.bytes);
        let none = Job {
            budget_bytes: left.0,
            plan: 0,
            width: 0,
            down_bytes,
            up_bytes,
            compute_s: 0.0,
            energy_j: 0.0,
            killed_after_s: Some(0.0),
        };
        let Ok(device) = device else { return none };
        let cost = if self.asked.rules.oracle { Some(device.unbounded) } else { device.within(left) };
        let Some(Cost { plan, seconds, joules, .. }) = cost else { return none };
        let batches = self.batches(phone);
        let compute_s = seconds * batches / f64::from(phone.speed);
        let radio_j = self.asked.setting.radio_w * self.transfers_s(phone);
        let killed_after_s = if self.asked.rules.oracle { None } else { self.killed_after_s(number, round, compute_s) };
        Job { plan, compute_s, energy_j: joules * batches + radio_j, killed_after_s, ..none }
    }

    fn expected_s(&self, number: u32) -> f64 {
        let (phone, device) = self.phone(number);
        let Ok(device) = device else { return f64::INFINITY };
        let seconds = self.usual(number).map_or(device.unbounded.seconds, |cost| cost.seconds);
        seconds * self.batches(phone) / f64::from(phone.speed) + self.transfers_s(phone)
    }

    fn batch_s(&self, number: u32) -> f64 {
        let (phone, device) = self.phone(number);
        device.map_or(f64::INFINITY, |device| device.unbounded.seconds / f64::from(phone.speed))
    }

    fn memory(&self, number: u32) -> f64 {
        let (phone, device) = self.phone(number);
        let left = self.budgets.usual(phone.memory, number).as_f64();
        device.map_or(0.0, |device| left / device.need.as_f64().max(1.0))
    }
}

impl OnDevice {
    /// In words why the device cannot run the policy.
    fn new(
        asked: &Specification,
        kind: &DeviceKind,
        budgets: &Budgets,
        cache: &Cache,
    ) -> Result<Result<Self, String>, CommandError> {
        let usual = scenario(asked, kind, None);
        // An oracle's phones have all the memory that is asked for.
        let unbounded = if asked.rules.oracle { with_memory_to_spare(&usual) } else { usual.clone() };
        let unbounded = match cost(&unbounded, cache)? {
            Found::Cost(cost) => cost,
            Found::NoPlan(why) | Found::Unsupported(why) => return Ok(Err(why)),
        };
        let original = Scenario { policy: "original".to_owned(), set: BTreeMap::new(), ..usual };
        let need = match cost(&with_memory_to_spare(&original), cache)? {
            Found::Cost(cost) => cost.peak,
            Found::NoPlan(_) | Found::Unsupported(_) => unbounded.peak,
        };
        let moments = budgets.of_class(kind.memory).flat_map(|moment| [moment.predicted, moment.available]);
        let steps: BTreeSet<i32> = moments.filter(|&left| left < unbounded.peak).map(step).collect();
        let within = |at: i32| {
            let budget = Bytes(STEP.powi(at) as u64);
            let found = match cost(&scenario(asked, kind, Some(budget)), cache)? {
                Found::Cost(cost) => Some(cost),
                Found::NoPlan(_) | Found::Unsupported(_) => None,
            };
            Ok((at, found))
        };
        let within = steps.into_par_iter().map(within).collect::<Result<_, CommandError>>()?;
        Ok(Ok(Self { unbounded, need, within }))
    }

    /// An iteration within what is left; `None` where no plan fits.
    fn within(&self, left: Bytes) -> Option<Cost> {
        if left >= self.unbounded.peak { Some(self.unbounded) } else { self.within.get(&step(left)).copied().flatten() }
    }

    fn costs(&mut self) -> impl Iterator<Item = &mut Cost> {
        std::iter::once(&mut self.unbounded).chain(self.within.values_mut().flatten())
    }
}

/// The step below a budget.
fn step(budget: Bytes) -> i32 {
    budget.as_f64().max(1.0).log(STEP).floor() as i32
}

/// A scenario on a phone with more memory than any network here asks for.
fn with_memory_to_spare(scenario: &Scenario) -> Scenario {
    Scenario { device_set: Settings::from([("ram".to_owned(), "256 GiB".to_owned())]), ..scenario.clone() }
}

/// What a phone trains; where that is on more cores of a class than its device has, on those that there are.
fn scenario(asked: &Specification, kind: &DeviceKind, budget: Option<Bytes>) -> Scenario {
    let cpu = load(&kind.id).ok().and_then(|device| device.cpu());
    let cores = asked.cores.map(|cores| match (cores, cpu.map(|cpu| cpu.choose(cores, Frequency::Highest))) {
        (CoreSelection::Some { class, .. }, Some(Err(SelectionError::TooMany { available, .. }))) => {
            CoreSelection::Some { class, count: available }
        }
        _ => cores,
    });
    Scenario {
        batch: asked.batch,
        policy: asked.policy.clone(),
        stack: asked.stack.clone(),
        cores,
        device_set: memory(&asked.setting.memory[usize::from(kind.memory)]),
        memory_budget: budget.map(Budget::Bytes),
        seed: asked.seed,
        ..Scenario::new(&kind.id, &asked.network)
    }
}

/// What became of a run.
#[derive(Clone)]
enum Found {
    Cost(Cost),
    NoPlan(String),
    Unsupported(String),
}

fn cost(scenario: &Scenario, cache: &Cache) -> Result<Found, CommandError> {
    let key = format!("iteration in a federation, {}", scenario.fingerprint(Key::ALL));
    let found = cache.get(key, || run(&Plan::new(scenario, cache)?, &scenario.device))?;
    Ok(found.as_ref().clone())
}

fn run(plan: &Plan, device: &str) -> Result<Found, CommandError> {
    match plan.run() {
        Ok(record) => {
            let (seconds, joules, peak) = (record.iteration.seconds(), record.energy.0, record.peak_memory);
            Ok(Found::Cost(Cost { plan: 0, seconds, joules, peak }))
        }
        Err(error) if error.is_infeasible() => Ok(Found::NoPlan(format!("{device}: {error}"))),
        Err(RunError::Policy(error)) => Ok(Found::Unsupported(format!("{device}: {error}"))),
        Err(error) => Err(PlanError::Run(error).into()),
    }
}
