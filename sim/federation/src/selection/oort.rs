use haversack_engine::Stream;

use super::turns::Turns;
use super::weighted::{Weighed, largest, sample};
use super::{Feedback, Pool, Selector};

/// The differences between Oort's paper and the code that FedScale ships.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OortRules {
    /// The share of a cohort that explores in the first round, its factor after each round, and its least value.
    pub exploration: [f64; 3],
    /// The quantile at which utilities are clipped.
    pub clip: f64,
    /// The cut-off, as a share of the lowest score that would be exploited: phones above it are drawn.
    pub cut_off: f64,
    /// The best phones, this multiple of the number drawn, are also drawn from if they are below the cut-off.
    pub exploited_window: usize,
    /// Phones that have not trained yet are drawn by their expected reward from the best, this multiple of the number
    /// drawn; `None` if they are drawn from all, by speed.
    pub explored_window: Option<usize>,
    /// When the pace changes.
    pub pacer: Pacer,
    /// Whether phones that have not trained yet count for the range of rewards, with a loss of one.
    pub expected_range: bool,
}

/// When the preferred time of a round changes, by the sums of utilities over two windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacer {
    /// It becomes longer when the sum of all rewards falls.
    Falls,
    /// It becomes longer if the sum of the mean rewards of exploited phones changes by at most a tenth, and shorter if
    /// it changes by at least five times its value.
    Flat,
}

impl OortRules {
    /// Lai et al., "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI 2021, algorithm 1 and
    /// section 4. Explored phones are sampled by speed (line 16).
    pub const PAPER: Self = Self {
        exploration: [0.9, 0.98, 0.2],
        clip: 0.95,
        cut_off: 0.95,
        exploited_window: 0,
        explored_window: None,
        pacer: Pacer::Falls,
        expected_range: false,
    };
    /// FedScale's code at 7ec441c2, without its faults: quotas are met even if no phone is left to explore, no offline
    /// phone is selected, and a phone that never finishes is not selected for ever.
    pub const FEDSCALE: Self = Self {
        exploration: [0.9, 0.98, 0.3],
        clip: 0.9,
        cut_off: 0.05,
        exploited_window: 10,
        explored_window: Some(5),
        pacer: Pacer::Flat,
        expected_range: true,
    };
}

/// The first preferred quantile of expected times, and the steps in which it changes.
const PACE: [f64; 2] = [0.3, 0.05];
/// Rounds of a window of the pacer.
const WINDOW: u32 = 20;
/// How strongly phones beyond the preferred time are penalised: the exponent α.
const PENALTY: i32 = 2;
/// The weight of the time since a phone last took part.
const UNCERTAINTY: f64 = 0.1;
/// The least range of rewards, below which all count the same.
const LEAST_RANGE: f64 = 1e-4;

/// Oort's selector: statistical utility, penalised beyond a preferred time of a round that a pacer adjusts, and a share
/// of the cohort that explores.
#[derive(Clone, Debug)]
pub struct Oort {
    turns: Turns,
    rules: OortRules,
    known: Vec<Known>,
    /// The preferred quantile of expected times.
    pace: f64,
    /// The time at that quantile; `None` until it is computed.
    preferred_s: Option<f64>,
    /// The pacer's sums of each round so far, the last two windows.
    sums: Vec<f64>,
}

/// The results of a phone: samples × the root of the mean square of its losses, its last round (zero if it has had
/// none), and the time of that round, negative if its work did not count.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    reward: f32,
    round: u32,
    took_s: f32,
}

impl Oort {
    /// A selector for `phones` phones that has not learned anything.
    pub fn new(seed: u64, phones: u32, rules: OortRules) -> Self {
        let known = vec![Known::default(); phones as usize];
        let turns = Turns::new(seed, "oort selection");
        Self { turns, rules, known, pace: PACE[0], preferred_s: None, sums: Vec::new() }
    }

    /// The share of the cohort of a round that explores.
    fn exploration(&self, round: u32) -> f64 {
        let [first, decay, least] = self.rules.exploration;
        (first * decay.powi(round.saturating_sub(1).min(10_000).cast_signed())).max(least)
    }

    /// The time at the pace's quantile of the expected times of phones that some plan fits; infinite if there are none.
    fn preferred(&mut self, pool: &dyn Pool) -> f64 {
        let pace = self.pace;
        *self.preferred_s.get_or_insert_with(|| {
            let eligible = (0..pool.number()).filter(|&phone| pool.is_eligible(phone));
            let mut times: Vec<f64> = eligible.map(|phone| pool.expected_s(phone)).collect();
            if times.is_empty() {
                return f64::INFINITY;
            }
            let place = ((pace * times.len() as f64) as usize).min(times.len() - 1);
            *times.select_nth_unstable_by(place, f64::total_cmp).1
        })
    }

    /// The factor for a time: one up to the preferred one.
    fn penalty(preferred: f64, took: f64) -> f64 {
        if took > preferred { (preferred / took).powi(PENALTY) } else { 1.0 }
    }

    /// The scores of free phones that have trained: clipped rewards, scaled between the least and the highest, plus a
    /// bonus for those that took part long ago.
    fn scores(&self, round: u32, free: &[u32], new: &[u32], pool: &dyn Pool, preferred: f64) -> Vec<Weighed> {
        let mut rewards: Vec<f64> = free.iter().map(|&phone| f64::from(self.known[phone as usize].reward)).collect();
        if rewards.is_empty() {
            return Vec::new();
        }
        if self.rules.expected_range {
            rewards.extend(new.iter().map(|&phone| f64::from(pool.samples(phone))));
        }
        let place = ((self.rules.clip * rewards.len() as f64) as usize).min(rewards.len() - 1);
        let clip = *rewards.select_nth_unstable_by(place, f64::total_cmp).1;
        let least = rewards.iter().copied().fold(f64::INFINITY, f64::min) * 0.999;
        let range = (rewards.iter().copied().fold(0.0, f64::max) - least).max(LEAST_RANGE);
        let score = |&phone: &u32| {
            let known = self.known[phone as usize];
            let reward = (f64::from(known.reward).min(clip) - least) / range;
            let uncertain = (UNCERTAINTY * libm::log(round.into()).max(0.0) / f64::from(known.round.max(1))).sqrt();
            let weight = (reward + uncertain) * Self::penalty(preferred, f64::from(known.took_s.abs()));
            Weighed { phone, weight }
        };
        free.iter().map(score).collect()
    }

    /// `number` of the scored phones, drawn by score from those that are near the best.
    fn exploit(&self, mut scored: Vec<Weighed>, number: usize, stream: &mut Stream) -> Vec<u32> {
        if number == 0 || scored.is_empty() {
            return Vec::new();
        }
        let order = |a: &Weighed, b: &Weighed| b.weight.total_cmp(&a.weight).then(a.phone.cmp(&b.phone));
        let (mut ordered, last) = (scored.clone(), scored.len() - 1);
        let mut at = |place: usize| *ordered.select_nth_unstable_by(place.min(last), order).1;
        let (lowest, window) = (at(number - 1).weight, at(self.rules.exploited_window * number));
        // The remaining ones stay in the order of phones, in which draws are assigned.
        scored.retain(|scored| scored.weight >= self.rules.cut_off * lowest || order(scored, &window).is_le());
        sample(&scored, number, stream)
    }

    /// `number` of the phones that have not trained yet, drawn by their expected reward.
    fn explore(&self, new: &[u32], number: usize, pool: &dyn Pool, preferred: f64, stream: &mut Stream) -> Vec<u32> {
        let weigh = |&phone: &u32| {
            let expected_s = pool.expected_s(phone);
            let reward = f64::from(pool.samples(phone)).max(1.0) * Self::penalty(preferred, expected_s);
            let speed = 1.0 / expected_s.max(f64::MIN_POSITIVE);
            Weighed { phone, weight: self.rules.explored_window.map_or(speed, |_| reward) }
        };
        let mut weighed: Vec<Weighed> = new.iter().map(weigh).collect();
        if let Some(window) = self.rules.explored_window.filter(|window| window * number < weighed.len()) {
            largest(&mut weighed, window * number);
        }
        sample(&weighed, number, stream)
    }

    /// Changes the pace at the end of each window.
    fn keep_pace(&mut self, round: u32) {
        if !round.is_multiple_of(WINDOW) || self.sums.len() < 2 * WINDOW as usize {
            return;
        }
        let sum = |rounds: &[f64]| rounds.iter().sum::<f64>();
        let (before, last) = self.sums.split_at(WINDOW as usize);
        let (before, last) = (sum(before), sum(last));
        let step = PACE[1];
        let moved = match self.rules.pacer {
            Pacer::Falls if last < before => step,
            Pacer::Flat if (last - before).abs() <= 0.1 * before => step,
            Pacer::Flat if (last - before).abs() >= 5.0 * before => -step,
            _ => return,
        };
        self.pace = (self.pace + moved).clamp(step, 1.0);
        self.preferred_s = None;
    }
}

impl Selector for Oort {
    fn select(&mut self, round: u32, number: usize, pool: &mut dyn Pool) -> Vec<u32> {
        let preferred = self.preferred(pool);
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for phone in 0..pool.number() {
            if pool.is_free(phone) {
                if self.known[phone as usize].round > 0 { known.push(phone) } else { new.push(phone) }
            }
        }
        // If there are too few of one kind, the other fills up.
        let explored = (self.exploration(round) * number as f64) as usize;
        let explored = explored.max(number.saturating_sub(known.len())).min(new.len());
        let mut stream = self.turns.next(round);
        let scored = self.scores(round, &known, &new, pool, preferred);
        let mut selected = self.exploit(scored, number - explored, &mut stream);
        selected.extend(self.explore(&new, explored, pool, preferred, &mut stream));
        selected
    }

    fn learn(&mut self, round: u32, feedback: &[Feedback], pool: &dyn Pool) {
        let reward = |of: &Feedback| of.root_mean_square_loss.map(|loss| loss * f64::from(pool.samples(of.phone)));
        let rewards: Vec<f64> = feedback.iter().filter_map(reward).collect();
        let mean = |rewards: &[f64]| rewards.iter().sum::<f64>() / rewards.len().max(1) as f64;
        let (average, mut exploited) = (mean(&rewards), Vec::new());
        for found in feedback {
            let Some(known) = self.known.get_mut(found.phone as usize) else { continue };
            // Failed: at least as long as the round and as was expected, and twice as long as assumed
            // after an earlier failure.
            let least_s = (-2.0 * f64::from(known.took_s)).max(found.took_s).max(pool.expected_s(found.phone));
            let (reward, took_s) = reward(found).map_or((average, -least_s), |reward| (reward, found.took_s));
            exploited.extend((known.round > 0).then_some(reward));
            *known = Known { reward: reward as f32, round, took_s: took_s as f32 };
        }
        if self.sums.len() == 2 * WINDOW as usize {
            self.sums.remove(0);
        }
        self.sums.push(if self.rules.pacer == Pacer::Falls { rewards.iter().sum() } else { mean(&exploited) });
        self.keep_pace(round);
    }
}
