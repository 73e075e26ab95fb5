use super::turns::Turns;
use super::weighted::{Weighed, largest, sample};
use super::{Feedback, Pool, Selector};

/// The share of a cohort that is exploited (section 5.2).
const EPSILON: f64 = 0.9;
/// When phones are sampled: the cut-off, as a share of the lowest utility that would be exploited, and the weight of
/// the time since a phone last took part. Both are Oort's.
const CUT_OFF: f64 = 0.95;
const UNCERTAINTY: f64 = 0.1;

/// FedHybrid's selector (section 4.2): most of a cohort are the phones of highest utility, the rest are phones that were not
/// selected before, by their resources.
///
/// A phone's utility is equation 4: the root of the mean square of its losses, its memory utility and its computing
/// utility. Equation 4 prints the exponent of equation 1 with its sign reversed; the text that goes with equation 1 (a
/// phone with enough memory has utility 1, one with less has less) decides. The paper does not define the loss of a
/// phone whose work did not count: here it is the mean loss of its round, as in FedScale's Oort, and every further such
/// round in a row halves its assumed speed.
///
/// As printed, the best by utility are selected again and again. The sampled variant draws them by utility from those
/// near the best, and lets losses grow with the rounds since the phone last took part, as Oort does.
#[derive(Clone, Debug)]
pub struct FedHybrid {
    turns: Turns,
    /// The root of the mean square of each phone's losses; negative if its work did not count, NaN
    /// if it has not trained yet.
    losses: Vec<f32>,
    /// Their mean in the last round in which work counted.
    mean: f32,
    /// The last round of each phone; empty if the best are selected without sampling.
    seen: Vec<u32>,
}

impl FedHybrid {
    /// A selector for `phones` phones that has not learned anything.
    pub fn new(seed: u64, phones: u32) -> Self {
        let losses = vec![f32::NAN; phones as usize];
        Self { turns: Turns::new(seed, "fedhybrid selection"), losses, mean: 1.0, seen: Vec::new() }
    }

    /// The same, with sampled exploitation.
    pub fn sampled(seed: u64, phones: u32) -> Self {
        Self { seen: vec![0; phones as usize], ..Self::new(seed, phones) }
    }

    /// The factor by which a phone's loss may have grown by `round`.
    fn aged(&self, phone: u32, round: u32) -> f64 {
        let uncertain = |seen: &u32| (UNCERTAINTY * libm::log(round.into()) / f64::from(*seen).max(1.0)).sqrt();
        1.0 + self.seen.get(phone as usize).map_or(0.0, uncertain)
    }

    /// Memory and computing utility (equations 1 and 3).
    fn resources(phone: u32, pool: &dyn Pool) -> f64 {
        let computing = 1.0 / pool.batch_s(phone).max(f64::MIN_POSITIVE);
        pool.memory(phone).clamp(0.0, 1.0) * computing
    }

    /// The utility of a phone that has trained (equation 4); `None` if it has not.
    pub fn utility(&self, phone: u32, pool: &dyn Pool) -> Option<f64> {
        let loss = self.losses.get(phone as usize).copied().filter(|loss| !loss.is_nan())?;
        Some(f64::from(loss.abs()) * Self::resources(phone, pool))
    }
}

impl Selector for FedHybrid {
    fn select(&mut self, round: u32, number: usize, pool: &mut dyn Pool) -> Vec<u32> {
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for phone in 0..pool.number() {
            if !pool.is_free(phone) {
                continue;
            }
            match self.utility(phone, pool) {
                Some(utility) => known.push(Weighed { phone, weight: utility * self.aged(phone, round) }),
                None => new.push(Weighed { phone, weight: Self::resources(phone, pool) }),
            }
        }
        // If there are too few of one kind, the other fills up.
        let exploited = (EPSILON * number as f64).round() as usize;
        let exploited = exploited.max(number.saturating_sub(new.len())).min(known.len());
        let mut stream = self.turns.next(round);
        let mut best = known.clone();
        largest(&mut best, exploited);
        if let Some(lowest) = best.last().filter(|_| !self.seen.is_empty()) {
            known.retain(|known| known.weight >= CUT_OFF * lowest.weight);
            let phones = sample(&known, exploited, &mut stream);
            best.iter_mut().zip(phones).for_each(|(best, phone)| best.phone = phone);
        }
        let explored = sample(&new, number - exploited, &mut stream);
        best.iter().map(|best| best.phone).chain(explored).collect()
    }

    fn learn(&mut self, round: u32, feedback: &[Feedback], _: &dyn Pool) {
        let losses: Vec<f64> = feedback.iter().filter_map(|found| found.root_mean_square_loss).collect();
        if !losses.is_empty() {
            self.mean = (losses.iter().sum::<f64>() / losses.len() as f64) as f32;
        }
        for Feedback { phone, root_mean_square_loss, .. } in feedback {
            let Some(held) = self.losses.get_mut(*phone as usize) else { continue };
            self.seen.get_mut(*phone as usize).into_iter().for_each(|seen| *seen = round);
            *held = match root_mean_square_loss {
                Some(loss) => *loss as f32,
                None if *held < 0.0 => (*held / 2.0).min(-f32::MIN_POSITIVE),
                None => -self.mean,
            };
        }
    }
}
