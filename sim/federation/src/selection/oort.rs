use haversack_engine::Stream;

use super::turns::Turns;
use super::weighted::{Weighed, sample};
use super::{Feedback, Pool, Selector};

/// What tells Oort's paper from the code that FedScale ships.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OortRules {
    /// The share of a cohort that explores at first, what it is multiplied by in each round, and the least.
    pub exploration: [f64; 3],
    /// The quantile at which utilities are clipped.
    pub clip: f64,
    /// Of the lowest score that would be exploited, the share from which phones are drawn.
    pub cut_off: f64,
    /// Phones that are drawn from, as a multiple of those drawn, of those below the lowest score; `None` if all above the cut-off.
    pub exploited_window: Option<usize>,
    /// The same of phones that have not trained yet, those of highest reward first; `None` if all.
    pub explored_window: Option<usize>,
    /// The quantile of expected times that is preferred at first, and the steps in which it moves.
    pub pace: [f64; 2],
    /// When the pace moves.
    pub pacer: Pacer,
    /// Whether a phone whose work did not count is taken for an average one.
    pub failures_are_average: bool,
}

/// When the preferred time of a round moves, by the sums of utilities over two windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacer {
    /// It is longer once the sum falls.
    Falls,
    /// It is longer where the sum changes by this share at most, and shorter where by this multiple at least.
    Flat {
        /// The share.
        flat: f64,
        /// The multiple.
        sharp: f64,
    },
}

impl OortRules {
    /// Lai et al., "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI 2021, algorithm 1 and section 4.
    pub const PAPER: Self = Self {
        exploration: [0.9, 0.98, 0.2],
        clip: 0.95,
        cut_off: 0.95,
        exploited_window: None,
        explored_window: None,
        pace: [0.3, 0.05],
        pacer: Pacer::Falls,
        failures_are_average: false,
    };
    /// FedScale's code at 7ec441c2, without its faults: quotas are met once no phone is left to explore, and no offline phone is
    /// taken.
    pub const FEDSCALE: Self = Self {
        exploration: [0.9, 0.98, 0.3],
        clip: 0.9,
        cut_off: 0.05,
        exploited_window: Some(10),
        explored_window: Some(5),
        pace: [0.3, 0.05],
        pacer: Pacer::Flat { flat: 0.1, sharp: 5.0 },
        failures_are_average: true,
    };
}

/// Rounds of a window of the pacer.
const WINDOW: u32 = 20;
/// How hard phones are held to the preferred time: the exponent α.
const PENALTY: i32 = 2;
/// Weighs how long ago a phone took part.
const UNCERTAINTY: f64 = 0.1;
/// The least range of rewards, below which all count the same.
const LEAST_RANGE: f64 = 1e-4;

/// Oort's selector: statistical utility, held to a preferred time of a round that a pacer moves, and a share of the cohort that
/// explores.
#[derive(Clone, Debug)]
pub struct Oort {
    turns: Turns,
    rules: OortRules,
    known: Vec<Known>,
    /// The quantile of expected times that is preferred.
    pace: f64,
    /// The round in which it was looked at last.
    paced: u32,
    /// The time at that quantile; `None` until it is sought.
    preferred_s: Option<f64>,
    /// The sum of rewards of each round so far, the last two windows.
    sums: Vec<f64>,
}

/// What is known of a phone: samples × the root of the mean square of its losses, its last round (zero if it has had none), and
/// the time that its round took.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    reward: f32,
    round: u32,
    took_s: f32,
}

impl Oort {
    /// A selector that has seen nothing of `phones` phones.
    pub fn new(seed: u64, phones: u32, rules: OortRules) -> Self {
        let known = vec![Known::default(); phones as usize];
        Self {
            turns: Turns::new(seed, "oort selection"),
            rules,
            known,
            pace: rules.pace[0],
            paced: 0,
            preferred_s: None,
            sums: Vec::new(),
        }
    }

    /// The share of the cohort of a round that explores.
    fn exploration(&self, round: u32) -> f64 {
        let [first, decay, least] = self.rules.exploration;
        (first * decay.powi(round.min(10_000).cast_signed())).max(least)
    }

    /// The time at the pace's quantile of all phones' expected times; no limit where that is all of them.
    fn preferred(&mut self, pool: &dyn Pool) -> f64 {
        let pace = self.pace;
        *self.preferred_s.get_or_insert_with(|| {
            let mut times: Vec<f64> = (0..pool.number()).map(|phone| pool.expected_s(phone)).collect();
            if pace >= 1.0 || times.is_empty() {
                return f64::INFINITY;
            }
            let place = ((pace * times.len() as f64) as usize).min(times.len() - 1);
            *times.select_nth_unstable_by(place, f64::total_cmp).1
        })
    }

    /// What a time costs: nothing up to the preferred one.
    fn penalty(preferred: f64, took: f64) -> f64 {
        if took > preferred { (preferred / took).powi(PENALTY) } else { 1.0 }
    }

    /// The scores of free phones that have trained: clipped rewards from 0 to 1, and more for those that took part long ago.
    fn scores(&self, round: u32, free: &[u32], preferred: f64) -> Vec<Weighed> {
        let mut rewards: Vec<f64> = free.iter().map(|&phone| f64::from(self.known[phone as usize].reward)).collect();
        if rewards.is_empty() {
            return Vec::new();
        }
        let place = ((self.rules.clip * rewards.len() as f64) as usize).min(rewards.len() - 1);
        let clip = *rewards.select_nth_unstable_by(place, f64::total_cmp).1;
        let least = rewards.iter().copied().fold(f64::INFINITY, f64::min) * 0.999;
        let range = (clip - least).max(LEAST_RANGE);
        let score = |&phone: &u32| {
            let known = self.known[phone as usize];
            let reward = (f64::from(known.reward).min(clip) - least) / range;
            let uncertain = (UNCERTAINTY * libm::log(round.into()).max(0.0) / f64::from(known.round.max(1))).sqrt();
            let weight = (reward + uncertain) * Self::penalty(preferred, f64::from(known.took_s));
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
        let place = number.min(scored.len()) - 1;
        let lowest = scored.select_nth_unstable_by(place, order).1.weight;
        scored.retain(|scored| scored.weight >= self.rules.cut_off * lowest);
        if let Some(window) = self.rules.exploited_window.filter(|window| window * number < scored.len()) {
            scored.select_nth_unstable_by(window * number - 1, order);
            scored.truncate(window * number);
        }
        // Draws are dealt in the order of phones, so that they do not depend on how the partial sort left them.
        scored.sort_unstable_by_key(|scored| scored.phone);
        sample(&scored, number, stream)
    }

    /// `number` of the phones that have not trained yet, drawn by what is expected of them.
    fn explore(&self, new: &[u32], number: usize, pool: &dyn Pool, preferred: f64, stream: &mut Stream) -> Vec<u32> {
        let weigh = |&phone: &u32| {
            let reward = f64::from(pool.samples(phone)).max(1.0);
            let speed = Self::penalty(preferred, pool.expected_s(phone));
            Weighed { phone, weight: reward * speed }
        };
        let mut weighed: Vec<Weighed> = new.iter().map(weigh).collect();
        if let Some(window) = self.rules.explored_window.filter(|window| window * number < weighed.len()) {
            super::weighted::largest(&mut weighed, window * number);
        }
        sample(&weighed, number, stream)
    }

    /// Moves the pace at the end of each window.
    fn keep_pace(&mut self, round: u32) {
        let window = WINDOW as usize;
        if std::mem::replace(&mut self.paced, round) == round {
            return;
        }
        if round < 2 * WINDOW || !round.is_multiple_of(WINDOW) || self.sums.len() < 2 * window {
            return;
        }
        let sum = |rounds: &[f64]| rounds.iter().sum::<f64>();
        let (before, last) = self.sums.split_at(self.sums.len() - window);
        let (before, last) = (sum(&before[before.len() - window..]), sum(last));
        let step = self.rules.pace[1];
        let moved = match self.rules.pacer {
            Pacer::Falls if last < before => step,
            Pacer::Flat { flat, .. } if (last - before).abs() <= flat * before => step,
            Pacer::Flat { sharp, .. } if (last - before).abs() >= sharp * before => -step,
            _ => return,
        };
        self.pace = (self.pace + moved).clamp(step, 1.0);
        self.preferred_s = None;
    }
}

impl Selector for Oort {
    fn select(&mut self, round: u32, number: usize, pool: &mut dyn Pool) -> Vec<u32> {
        self.keep_pace(round);
        let preferred = self.preferred(pool);
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for phone in 0..pool.number() {
            if pool.is_free(phone) {
                if self.known[phone as usize].round > 0 { known.push(phone) } else { new.push(phone) }
            }
        }
        // Where one kind is short, the other fills up.
        let explored = (self.exploration(round) * number as f64) as usize;
        let explored = explored.max(number.saturating_sub(known.len())).min(new.len());
        let mut stream = self.turns.next(round);
        let scored = self.scores(round, &known, preferred);
        let mut selected = self.exploit(scored, number - explored, &mut stream);
        selected.extend(self.explore(&new, explored, pool, preferred, &mut stream));
        selected
    }

    fn learn(&mut self, round: u32, feedback: &[Feedback], pool: &dyn Pool) {
        let reward = |of: &Feedback| of.root_mean_square_loss.map(|loss| loss * f64::from(pool.samples(of.phone)));
        let rewards: Vec<f64> = feedback.iter().filter_map(reward).collect();
        let sum: f64 = rewards.iter().sum();
        let average = if rewards.is_empty() { 0.0 } else { sum / rewards.len() as f64 };
        for found in feedback {
            let Some(known) = self.known.get_mut(found.phone as usize) else { continue };
            let reward = reward(found).or_else(|| self.rules.failures_are_average.then_some(average));
            if let Some(reward) = reward {
                *known = Known { reward: reward as f32, round, took_s: found.took_s as f32 };
            }
        }
        self.sums.push(sum);
        let most = 2 * WINDOW as usize;
        if self.sums.len() > most {
            self.sums.remove(0);
        }
    }
}
