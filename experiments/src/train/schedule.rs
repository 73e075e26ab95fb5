//! How the learning rate changes while a network learns.

use std::str::FromStr;

/// What a text of a schedule may be.
const EXPECTED: &str = "expected constant, cosine or step at=EPOCH,EPOCH by=FACTOR, with warm-up=EPOCHS or without";

/// The shape of a schedule after its warm-up.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// The same rate throughout.
    Constant,
    /// Half a cosine, from the whole rate down to none at the end (Loshchilov, Hutter, ICLR 2017).
    Cosine,
    /// `by` times the rate after each of the epochs `at`.
    Step { at: Vec<f64>, by: f64 },
}

/// A schedule: a shape, and the epochs in which the rate first rises from nothing, evenly.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Schedule {
    shape: Shape,
    warm_up: f64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { shape: Shape::Constant, warm_up: 0.0 }
    }
}

impl Schedule {
    /// The factor of the learning rate at step `step`, of `steps` an epoch, in a training of `epochs` epochs.
    pub(super) fn factor(&self, step: u64, steps: u64, epochs: u32) -> f64 {
        let per_epoch = steps.max(1) as f64;
        let epoch = step as f64 / per_epoch;
        if epoch < self.warm_up {
            return (step + 1) as f64 / (self.warm_up * per_epoch).max(1.0);
        }
        match &self.shape {
            Shape::Constant => 1.0,
            Shape::Cosine => {
                let left = (f64::from(epochs) - self.warm_up).max(f64::MIN_POSITIVE);
                0.5 * (1.0 + (std::f64::consts::PI * (epoch - self.warm_up) / left).cos())
            }
            Shape::Step { at, by } => at.iter().filter(|&&at| epoch >= at).fold(1.0, |factor, _| factor * by),
        }
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |found: &str| format!("found '{found}'; {EXPECTED}");
        let mut words = text.split_whitespace();
        let mut shape = match words.next() {
            Some("constant") => Shape::Constant,
            Some("cosine") => Shape::Cosine,
            Some("step") => Shape::Step { at: Vec::new(), by: 0.1 },
            other => return Err(wrong(other.unwrap_or_default())),
        };
        let mut warm_up = 0.0;
        for word in words {
            let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
            let (name, value) = word.split_once('=').ok_or_else(|| wrong(word))?;
            let numbers: Vec<f64> = value.split(',').map(number).collect::<Option<_>>().ok_or_else(|| wrong(word))?;
            match (name, &mut shape, numbers.as_slice()) {
                ("warm-up", _, &[epochs]) => warm_up = epochs,
                ("by", Shape::Step { by, .. }, &[factor]) => *by = factor,
                ("at", Shape::Step { at, .. }, epochs) => *at = epochs.to_vec(),
                _ => return Err(wrong(word)),
            }
        }
        match &shape {
            Shape::Step { at, .. } if at.is_empty() => Err(wrong(text)),
            _ => Ok(Self { shape, warm_up }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(text: &str, steps: &[u64]) -> Vec<f64> {
        // Ten epochs of four steps.
        let schedule: Schedule = text.parse().unwrap();
        steps.iter().map(|&step| (schedule.factor(step, 4, 10) * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn rates_follow_their_schedule() {
        assert_eq!(factors("constant", &[0, 39]), [1.0, 1.0]);
        // Half of the way the cosine is at a half, a quarter of the way at (1 + √½) / 2 = 0.853553.
        assert_eq!(factors("cosine", &[0, 10, 20]), [1.0, 0.853_553, 0.5]);
        // Epoch 6 begins at step 24, epoch 8 at step 32.
        assert_eq!(factors("step at=6,8 by=0.5", &[23, 24, 32]), [1.0, 0.5, 0.25]);
        // One epoch of four steps: a quarter more at each. The cosine then has nine epochs: half of them end at step 22.
        assert_eq!(factors("cosine warm-up=1", &[0, 3, 4, 22]), [0.25, 1.0, 1.0, 0.5]);
    }

    #[test]
    fn a_schedule_that_is_none_says_what_is_expected() {
        for text in
            ["", "cosin", "step", "step at=", "constant by=2", "cosine warm-up=-1", "step at=1 by=NaN", "cosine 3"]
        {
            assert!(text.parse::<Schedule>().unwrap_err().contains("expected constant, cosine or step"), "{text}");
        }
    }
}
