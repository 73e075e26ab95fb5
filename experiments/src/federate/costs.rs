//! The cost of a phone's work in a round: the device simulator's results, by device and budget.
//!
//! An iteration is simulated once for each device and each of a few budgets ([`super::on_device`]); the time of a phone
//! that is faster or slower than its device is scaled accordingly. The memory that a phone leaves changes from minute
//! to minute: while it is less than the process needs, the kernel reclaims ([`super::reclaim`]).

mod planning;

use haversack_devices::units::Bytes;
use haversack_federation::population::{DeviceKind, Phone};
use haversack_federation::work::{Job, LeftOut, Why, Work};
use rayon::prelude::*;

use super::budgets::{Budgets, LOOK_S};
use super::iteration::{Cost, cost, scenario, with_memory_to_spare};
use super::on_device::OnDevice;
use super::plans::{Clustered, Plans, Reports};
use super::reclaim::{Curve, Pace, Trial};
use super::specification::{Phones, Specification};
use crate::progress::{Amount, Progress};
use crate::run::Plan;
use crate::{Cache, CommandError, Result, quantities};
pub(crate) use planning::Planning;

/// The number of minutes of a round that are simulated: a day.
const LOOKS: usize = 24 * 60;

/// A plan of the network: its number, the index of its device kind, and the fraction of evictable memory that
/// its budget leaves.
pub(super) struct Share {
    pub(super) plan: u32,
    pub(super) kind: usize,
    pub(super) share: f64,
}

/// The costs of all phones.
pub(super) struct Costs<'a> {
    asked: &'a Specification,
    phones: &'a [Phone],
    budgets: &'a Budgets,
    /// By device kind; the error is the reason why a device cannot run the policy.
    devices: Vec<Result<OnDevice, String>>,
    /// The budgets of the server's clusters, if it makes plans for clusters.
    clustered: Option<Clustered>,
    /// The time until the server has made the plans of all clusters, in seconds.
    server_s: f64,
    /// By device kind, the reason why phones like it cannot take part.
    left_out: Vec<Option<String>>,
    /// By memory class.
    curves: Vec<Curve>,
    /// The bytes sent each way.
    bytes: u64,
}

/// Simulates an iteration without a budget on each kind of device; the error is the reason why one cannot run the policy.
///
/// # Errors
/// An unknown network, stack or policy, a policy that no device can run, or a run that fails.
pub(super) fn of_each_kind(
    asked: &Specification,
    kinds: &[DeviceKind],
    cache: &Cache,
) -> Result<Vec<Result<OnDevice, String>>> {
    let unbounded = kinds
        .par_iter()
        .map(|kind| Ok(cost(&with_memory_to_spare(scenario(asked, kind, None)), cache)?.map(OnDevice::new)));
    let devices = unbounded.collect::<Result<Vec<_>>>()?;
    match devices.first() {
        Some(Err(why)) if devices.iter().all(Result::is_err) => {
            Err(CommandError::input(format!("no device of the population can train this: {why}")))
        }
        _ => Ok(devices),
    }
}

impl<'a> Costs<'a> {
    /// Simulates an iteration for each device and budget, once for all federations that share `cache`.
    ///
    /// # Errors
    /// As [`of_each_kind`].
    pub(super) fn new(
        asked: &'a Specification,
        Phones { kinds, population }: &'a Phones,
        budgets: &'a Budgets,
        cache: &Cache,
    ) -> Result<Self> {
        let devices = of_each_kind(asked, kinds, cache)?;
        let first = devices.iter().position(Result::is_ok).unwrap_or_default();
        let plan = Plan::new(&scenario(asked, &kinds[first], None), cache)?;
        let parameters = plan.resolved.network.parameters.iter().filter(|weight| weight.trainable);
        let weights: u64 = parameters.map(|weight| weight.elements).sum();
        let mut costs = Self {
            asked,
            phones: population.phones(),
            budgets,
            devices,
            clustered: None,
            server_s: 0.0,
            left_out: vec![None; kinds.len()],
            curves: vec![Curve::default(); asked.setting.memory.len()],
            bytes: weights * plan.arithmetic().bytes().0,
        };
        if asked.gives_way && !asked.rules.oracle {
            costs.plan(kinds, cache)?;
        }
        let all = costs.devices.iter_mut().flatten().flat_map(OnDevice::costs);
        (0..).zip(all).for_each(|(number, cost)| cost.plan = number);
        if !asked.rules.oracle {
            costs.left_out = costs.try_at_rest(kinds, cache)?;
            costs.press(kinds, cache)?;
        }
        Ok(costs)
    }

    /// Simulates an iteration for each device within each budget that needs a plan.
    pub(super) fn plan(&mut self, kinds: &[DeviceKind], cache: &Cache) -> Result<()> {
        let left: Vec<Vec<Bytes>> = kinds.iter().map(|kind| self.budgets.reports(kind.memory).collect()).collect();
        if self.asked.plans == Some(Plans::Server) {
            let reports = |(device, left): (&Result<OnDevice, String>, _)| {
                let unbounded = device.as_ref().map(|device| device.unbounded).ok();
                let (seconds, need) = unbounded.map_or((1.0, Bytes::ZERO), |cost| (cost.seconds, cost.peak));
                Reports { seconds, need, left }
            };
            let reports: Vec<Reports<'_>> =
                self.devices.iter().zip(left.iter().map(Vec::as_slice)).map(reports).collect();
            self.clustered = Some(Clustered::new(&reports, self.asked.clusters, self.asked.seed));
        }
        let clustered = self.clustered.as_ref();
        let number: usize = left.iter().map(Vec::len).sum();
        let bar = Progress::new(Amount::Number("budgets simulated"), number as u64, 0);
        let (asked, devices) = (self.asked, &mut self.devices);
        let within = devices.par_iter_mut().enumerate().map(|(place, device)| {
            let Ok(device) = device else { return Ok(()) };
            let (kind, own) = (&kinds[place], &left[place]);
            let simulate = |budget| Ok(cost(&scenario(asked, kind, Some(budget)), cache)?.ok());
            let of_cluster = |moment| clustered.and_then(|clustered| clustered.budget(place, moment));
            let mut wanted: Vec<_> = own.iter().enumerate().map(|(moment, &left)| (of_cluster(moment), left)).collect();
            // In ascending order, because an iteration within one budget is also used for slightly larger ones.
            wanted.sort_unstable();
            device.find_least(simulate)?;
            let mut planned = Vec::new();
            for (of_cluster, left) in wanted {
                // Where no plan fits the cluster's least budget, one may fit the budget of this member.
                for budget in of_cluster.into_iter().chain([left]) {
                    device.simulate(budget, simulate)?;
                    if device.within(budget).is_some() {
                        planned.push(budget);
                        break;
                    }
                }
            }
            planned.into_iter().try_for_each(|budget| device.refine(budget, simulate))?;
            bar.inc(own.len() as u64);
            Ok(())
        });
        within.collect::<Result<Vec<()>>>()?;
        bar.finish();
        self.server_s = self.server_s();
        Ok(())
    }

    /// An iteration on a phone that reported its memory at a moment; `None` if no plan fits.
    #[cfg(test)]
    pub(super) fn iteration(&self, number: u32, moment: usize) -> Option<Cost> {
        let (phone, device) = self.phone(number);
        self.planned(phone, device.ok()?, moment)
    }

    /// For each minute after a moment, whether the system would kill a phone's process in it.
    #[cfg(test)]
    pub(super) fn ends(&self, number: u32, moment: usize) -> Vec<bool> {
        let (phone, device) = self.phone(number);
        let cost = self.cost(phone, device.unwrap(), moment);
        let curve = &self.curves[usize::from(phone.memory)];
        let left = self.budgets.left(phone.memory, moment).take(LOOKS);
        left.map(|left| matches!(curve.at(cost.peak, left), Pace::Killed { .. })).collect()
    }

    /// All plans, each with the fraction of evictable memory that its budget leaves.
    pub(super) fn shares(&self) -> Vec<Share> {
        let devices = self.devices.iter().enumerate().filter_map(|(kind, device)| Some((kind, device.as_ref().ok()?)));
        let share = |kind: usize| move |(cost, share): (&Cost, f64)| Share { plan: cost.plan, kind, share };
        devices.flat_map(|(kind, device)| device.shares().map(share(kind))).collect()
    }

    /// The first device of a class that can run the policy; its memory is used for all the class's phones.
    fn first<'k>(&self, class: u8, kinds: &'k [DeviceKind]) -> Option<(&'k DeviceKind, &OnDevice)> {
        let mut of_class = kinds.iter().zip(&self.devices).filter(|(kind, _)| kind.memory == class);
        of_class.find_map(|(kind, device)| Some((kind, device.as_ref().ok()?)))
    }

    /// By device kind, the reason if the system kills training on a phone without any open app, even with the smallest
    /// plan; `None` if it does not, however slow training is.
    fn try_at_rest(&self, kinds: &[DeviceKind], cache: &Cache) -> Result<Vec<Option<String>>> {
        let left_out = kinds.par_iter().zip(&self.devices).map(|(DeviceKind { memory: class, .. }, device)| {
            let device = match device {
                Ok(device) => device,
                Err(why) => return Ok(Some(why.clone())),
            };
            let (least, at_rest) = (device.least_plan().peak, self.budgets.at_rest(*class));
            let missing = least.saturating_sub(at_rest).as_f64() / least.as_f64().max(1.0);
            let Some((kind, first)) = self.first(*class, kinds).filter(|_| missing > 0.0) else { return Ok(None) };
            let trial = Trial::new(self.asked, kind, &first.unbounded, &[], cache)?;
            let Pace::Killed { after_s } = trial.pace(missing)? else { return Ok(None) };
            let (size, policy) = (self.asked.setting.memory[usize::from(*class)].size_gb, &self.asked.trained.policy);
            let [least, at_rest] = [least, at_rest].map(quantities::size);
            Ok(Some(format!(
                "training with {policy} takes {least} at least, and a phone with {size} GB on which no app is open leaves {at_rest}: the system ends it after {after_s:.0} s"
            )))
        });
        left_out.collect()
    }

    /// Simulates memory shortage on phones of each class, where some leave less than training needs.
    fn press(&mut self, kinds: &[DeviceKind], cache: &Cache) -> Result<()> {
        let classes = self.asked.setting.memory.len() as u8;
        let bar = Progress::new(Amount::Number("memory classes under reclaim"), u64::from(classes), 0);
        let curve = |class: u8| {
            let mut left_out = kinds.iter().zip(&self.left_out).filter(|(kind, _)| kind.memory == class);
            let takes_part = left_out.any(|(_, left_out)| left_out.is_none());
            let Some((kind, device)) = self.first(class, kinds).filter(|_| takes_part) else {
                return Ok(Curve::default());
            };
            let trial = Trial::new(self.asked, kind, &device.unbounded, self.budgets.apps(class), cache)?;
            let curve = Curve::simulate(&trial, self.most_missing(class, device));
            bar.inc(1);
            curve
        };
        self.curves = (0..classes).into_par_iter().map(curve).collect::<Result<_>>()?;
        bar.finish();
        Ok(())
    }

    /// The largest fraction of its process's memory that a phone of the class lacks at any minute, on this device.
    fn most_missing(&self, class: u8, device: &OnDevice) -> f64 {
        let least = self.budgets.least(class);
        let plans = device.plans().map(|cost| cost.peak);
        let share = |peak: Bytes| peak.saturating_sub(least).as_f64() / peak.as_f64().max(1.0);
        std::iter::once(device.unbounded.peak).chain(plans).map(share).fold(0.0, f64::max)
    }

    fn phone(&self, phone: u32) -> (Phone, Result<&OnDevice, &String>) {
        let phone = self.phones[phone as usize];
        (phone, self.devices[usize::from(phone.device)].as_ref())
    }

    /// The batches of a phone's work in a round.
    fn batches(&self, phone: Phone) -> f64 {
        self.asked.batches(phone.samples)
    }

    fn transfers_s(&self, phone: Phone, [down, up]: [u64; 2]) -> f64 {
        down as f64 / f64::from(phone.down) + up as f64 / f64::from(phone.up)
    }

    /// An iteration with the plan of a phone that reported its memory at a moment; `None` if no plan fits the report.
    fn planned(&self, phone: Phone, device: &OnDevice, moment: usize) -> Option<Cost> {
        let own = self.budgets.report(phone.memory, moment);
        let of_cluster = self.clustered.as_ref().and_then(|all| all.budget(usize::from(phone.device), moment));
        of_cluster.and_then(|budget| device.within(budget)).or_else(|| device.within(own))
    }

    /// An iteration on a phone; if no plan fits its report, with the smallest plan.
    fn cost(&self, phone: Phone, device: &OnDevice, moment: usize) -> Cost {
        if !self.asked.gives_way || self.asked.rules.oracle {
            return device.unbounded;
        }
        self.planned(phone, device, moment).unwrap_or_else(|| device.least_plan())
    }

    /// An iteration at the moment of the phone's median report, and that moment.
    fn usual(&self, number: u32) -> Result<(Cost, usize), &str> {
        let (phone, device) = self.phone(number);
        let device = device.map_err(String::as_str)?;
        let moment = self.budgets.usual(phone.memory, number);
        match &self.left_out[usize::from(phone.device)] {
            Some(why) => Err(why),
            None => Ok((self.cost(phone, device, moment), moment)),
        }
    }

    /// Whether training, or a plan of it where the policy makes plans, fits a phone's report at a moment.
    fn has_room_at(&self, number: u32, moment: usize) -> bool {
        let (phone, device) = self.phone(number);
        device.is_ok_and(|device| self.asked.rules.oracle || self.planned(phone, device, moment).is_some())
    }

    /// The same at the moment of the phone's median report.
    pub(super) fn usually_has_room(&self, number: u32) -> bool {
        let (phone, _) = self.phone(number);
        self.has_room_at(number, self.budgets.usual(phone.memory, number))
    }

    /// The same at the beginning of a round.
    pub(super) fn has_room(&self, number: u32, round: u32) -> bool {
        let (phone, _) = self.phone(number);
        self.has_room_at(number, self.budgets.moment(phone.memory, number, round))
    }

    /// The duration of `compute_s` of training on a phone that begins at a moment, the factor on its energy, and when
    /// it is killed, in seconds after the beginning.
    fn trains(&self, phone: Phone, cost: &Cost, moment: usize, compute_s: f64) -> Training {
        let mut training = Training { seconds: 0.0, energy: 0.0, killed_after_s: None };
        if self.asked.rules.oracle || compute_s <= 0.0 {
            return Training { seconds: compute_s, energy: 1.0, ..training };
        }
        let (curve, mut to_do) = (&self.curves[usize::from(phone.memory)], compute_s);
        for (look, left) in (1..=LOOKS).zip(self.budgets.left(phone.memory, moment)) {
            match curve.at(cost.peak, left) {
                Pace::Killed { after_s } => {
                    let after_s = training.seconds + after_s;
                    return Training { seconds: after_s + to_do, killed_after_s: Some(after_s), ..training };
                }
                Pace::Slower { time, energy } => {
                    let done = if look == LOOKS { to_do } else { to_do.min(LOOK_S / time) };
                    training.seconds += done * time;
                    training.energy += done / compute_s * energy;
                    to_do -= done;
                }
            }
            if to_do <= 0.0 {
                break;
            }
        }
        training
    }

    /// The time until a phone has its plan, in seconds, and the bytes that the plan adds each way.
    fn plan_of(&self, phone: Phone, cost: &Cost, round: u32) -> (f64, [u64; 2]) {
        let (Some(plans), Some(making)) = (self.asked.plans, cost.making) else { return (0.0, [0; 2]) };
        let bytes = [making.down_bytes, making.up_bytes];
        match plans {
            // All plans are made before the first round, and kept.
            Plans::Server => (if round <= 1 { self.server_s } else { 0.0 }, bytes),
            // Plans are made one after the other for all phones that begin.
            Plans::Each => {
                let begin = (f64::from(self.asked.rules.cohort) * self.asked.rules.over_commit).round();
                (making.server_s * begin, bytes)
            }
            Plans::Phone => (making.phone_s / f64::from(phone.speed), [0; 2]),
        }
    }
}

/// The progress of training on a phone.
#[derive(Clone, Copy, Debug)]
struct Training {
    seconds: f64,
    /// Relative to training without memory shortage.
    energy: f64,
    killed_after_s: Option<f64>,
}

impl Work for Costs<'_> {
    fn holds(&self, phone: u32) -> Result<(), LeftOut> {
        if let Some(reason) = self.budgets.ends_early(phone) {
            return Err(LeftOut { why: Why::NoTrace, reason: reason.to_owned() });
        }
        self.usual(phone).map(|_| ()).map_err(|reason| LeftOut { why: Why::NoPlan, reason: reason.to_owned() })
    }

    fn job(&self, number: u32, round: u32, _: f64) -> Job {
        let (phone, device) = self.phone(number);
        let moment = self.budgets.moment(phone.memory, number, round);
        let none = Job {
            budget_bytes: self.budgets.report(phone.memory, moment).0,
            plan: 0,
            width: 0,
            down_bytes: self.bytes,
            up_bytes: self.bytes,
            compute_s: 0.0,
            energy_j: 0.0,
            killed_after_s: Some(0.0),
        };
        let Ok(device) = device else { return none };
        let cost = self.cost(phone, device, moment);
        let batches = self.batches(phone);
        let training = self.trains(phone, &cost, moment, cost.seconds * batches / f64::from(phone.speed));
        let (plan_s, [down, up]) = self.plan_of(phone, &cost, round);
        let (down_bytes, up_bytes) = (self.bytes + down, self.bytes + up);
        let radio_j = self.asked.setting.radio_w * self.transfers_s(phone, [down_bytes, up_bytes]);
        Job {
            plan: cost.plan,
            down_bytes,
            up_bytes,
            compute_s: plan_s + training.seconds,
            energy_j: cost.joules * batches * training.energy + radio_j,
            killed_after_s: training.killed_after_s.map(|after| plan_s + after),
            ..none
        }
    }

    /// The server's estimate from the device's model, which does not reveal its memory; it learns the effect of
    /// reclaim from experience.
    fn expected_s(&self, number: u32) -> f64 {
        let (phone, _) = self.phone(number);
        self.batch_s(number) * self.batches(phone) + self.transfers_s(phone, [self.bytes; 2])
    }

    fn batch_s(&self, number: u32) -> f64 {
        let (phone, device) = self.phone(number);
        device.map_or(f64::INFINITY, |device| device.unbounded.seconds / f64::from(phone.speed))
    }

    fn memory(&self, number: u32) -> f64 {
        let (phone, device) = self.phone(number);
        let left = self.budgets.report(phone.memory, self.budgets.usual(phone.memory, number)).as_f64();
        device.map_or(0.0, |device| left / device.unbounded.peak.as_f64().max(1.0))
    }
}
