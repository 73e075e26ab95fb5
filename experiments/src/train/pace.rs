//! The duration and the rate of learning.

use std::str::FromStr;

use haversack_devices::ensure;
use haversack_devices::text::hint;
use haversack_workloads::data::{Augmentation, SampleForm};

/// The default epochs and learning rate of a training: those with which LeNet-5 learns `glyphs`.
pub(super) const EPOCHS: u32 = 8;
pub(super) const LEARNING_RATE: f64 = 0.03;

/// The duration and the rate of learning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pace {
    /// The number of passes over all samples.
    pub(crate) epochs: u32,
    /// The highest learning rate.
    pub(crate) learning_rate: f64,
    /// The change of the rate over time.
    schedule: Schedule,
    /// The schedule as it was written.
    pub(super) schedule_text: String,
}

/// An invalid value of a pace: its key, what was expected, and what was found.
#[derive(Debug)]
pub(crate) struct WrongPace(pub(crate) &'static str, pub(crate) &'static str, pub(crate) String);

impl Pace {
    /// The pace of these keys; `None` is replaced by the default.
    ///
    /// # Errors
    /// No epochs, a rate that is not a positive number, a text that is not a schedule.
    pub(crate) fn new(
        epochs: Option<u32>,
        learning_rate: Option<f64>,
        schedule: Option<String>,
    ) -> Result<Self, WrongPace> {
        let epochs = epochs.unwrap_or(EPOCHS);
        ensure!(epochs != 0, WrongPace("epochs", "at least 1", "0".to_owned()));
        let learning_rate = learning_rate.unwrap_or(LEARNING_RATE);
        if !(learning_rate.is_finite() && learning_rate > 0.0) {
            return Err(WrongPace("learning_rate", "a number above 0", learning_rate.to_string()));
        }
        let schedule_text = schedule.unwrap_or_else(|| "constant".to_owned());
        let wrong = |error| WrongPace("schedule", "a schedule", format!("another text: {error}"));
        let schedule: Schedule = schedule_text.parse().map_err(wrong)?;
        if let Shape::Step { at, .. } = &schedule.shape {
            let late = at.iter().find(|at| **at >= f64::from(epochs));
            let wrong = |at| {
                WrongPace("schedule", "steps before the last epoch ends", format!("one at epoch {at} of {epochs}"))
            };
            late.map_or(Ok(()), |at| Err(wrong(at)))?;
        }
        Ok(Self { epochs, learning_rate, schedule, schedule_text })
    }

    /// The learning rate at step `step`, with `steps` per epoch.
    pub(super) fn rate(&self, step: u64, steps: u64) -> f64 {
        self.learning_rate * self.schedule.factor(step, steps, self.epochs)
    }
}

/// The valid texts of a schedule.
const EXPECTED: &str = "expected constant, cosine or step at=EPOCH,EPOCH by=FACTOR, with warm-up=EPOCHS or without";

/// The shape of a schedule after its warm-up.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// A constant rate.
    Constant,
    /// Half a cosine, from the full rate down to zero at the end (Loshchilov, Hutter, ICLR 2017).
    Cosine,
    /// The rate is multiplied by `by` after each of the epochs `at`.
    Step { at: Vec<f64>, by: f64 },
}

/// A schedule: a shape, and the warm-up epochs in which the rate rises linearly from zero.
#[derive(Clone, Debug, PartialEq)]
struct Schedule {
    shape: Shape,
    warm_up: f64,
}

impl Schedule {
    /// The factor on the learning rate at step `step`, with `steps` per epoch, in a training of `epochs` epochs.
    fn factor(&self, step: u64, steps: u64, epochs: u32) -> f64 {
        let per_epoch = steps.max(1) as f64;
        let epoch = step as f64 / per_epoch;
        if epoch < self.warm_up {
            return (step + 1) as f64 / (self.warm_up * per_epoch).max(1.0);
        }
        match &self.shape {
            Shape::Constant => 1.0,
            Shape::Cosine => {
                let left = (f64::from(epochs) - self.warm_up).max(f64::MIN_POSITIVE);
                0.5 * (1.0 + libm::cos(std::f64::consts::PI * (epoch - self.warm_up) / left))
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
        let (mut warm_up, mut seen) = (0.0, Vec::new());
        for word in words {
            let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
            let (name, value) = word.split_once('=').ok_or_else(|| wrong(word))?;
            ensure!(!seen.contains(&name), format!("found `{name}` twice; {EXPECTED}"));
            seen.push(name);
            let numbers: Vec<f64> = value.split(',').map(number).collect::<Option<_>>().ok_or_else(|| wrong(word))?;
            match (name, &mut shape, numbers.as_slice()) {
                ("warm-up", _, &[epochs]) => warm_up = epochs,
                ("by", Shape::Step { by, .. }, &[factor]) => *by = factor,
                ("at", Shape::Step { at, .. }, epochs) if epochs.is_sorted_by(|a, b| a < b) => *at = epochs.to_vec(),
                ("at", Shape::Step { .. }, _) => {
                    return Err(format!("found '{word}', whose epochs do not rise; {EXPECTED}"));
                }
                _ => return Err(wrong(word)),
            }
        }
        match &shape {
            Shape::Step { at, .. } if at.is_empty() => Err(wrong(text)),
            _ => Ok(Self { shape, warm_up }),
        }
    }
}

/// The valid texts of an augmentation.
const AUGMENT: &str = "`shift=PIXELS`, `flip` or both";
/// Its words.
const WORDS: [&str; 2] = ["shift", "flip"];

/// The augmentation of the images in every epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Augment {
    shift: u8,
    flip: bool,
    /// The text in the specification.
    pub(super) text: String,
    /// Its position, as shown in errors.
    place: String,
}

impl Augment {
    /// Parses the augmentation `text` at `place`.
    ///
    /// # Errors
    /// An invalid text: what was expected, what was found, and the nearest word.
    pub(super) fn parse(place: String, text: &str) -> Result<Self, String> {
        let (mut shift, mut flip) = (0, false);
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let pixels = || value.and_then(|value| value.parse().ok()).filter(|&pixels: &u8| pixels > 0);
            match (name, value) {
                ("flip", None) if !flip => flip = true,
                ("shift", _) if shift == 0 => {
                    shift = pixels().ok_or_else(|| found(&place, word, " (PIXELS is 1 to 255)"))?
                }
                _ => return Err(found(&place, word, &hint(name, WORDS))),
            }
        }
        ensure!(shift != 0 || flip, found(&place, text, ""));
        Ok(Self { shift, flip, text: text.to_owned(), place })
    }

    /// Checks that samples of `form` can be augmented.
    ///
    /// # Errors
    /// Samples that are not images, and images that a shift could empty.
    pub(super) fn check(&self, form: &SampleForm) -> Result<(), String> {
        let Self { shift, place, .. } = self;
        match form {
            SampleForm::Tokens { .. } => Err(format!("{place}: `augment`: expected data of images, found tokens")),
            SampleForm::Image(form) if self.flip && form.width == 1 => {
                Err(format!("{place}: `augment`: expected images to flip, found data of one pixel a row"))
            }
            SampleForm::Image(form) if usize::from(*shift) >= form.height.min(form.width) => Err(format!(
                "{place}: `augment`: expected a shift of less than the {}×{} pixels of an image, found {shift}",
                form.height, form.width
            )),
            SampleForm::Image(_) => Ok(()),
        }
    }

    /// The augmentation of epoch number `epoch` with `seed`.
    pub(super) const fn of(&self, seed: u64, epoch: u64) -> Augmentation {
        Augmentation { shift: self.shift, mirror: self.flip, seed, epoch }
    }
}

fn found(place: &str, word: &str, hint: &str) -> String {
    format!("{place}: `augment`: expected {AUGMENT}, found '{word}'{hint}")
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
        // One epoch of four steps: a quarter more at each. The cosine then has nine epochs: half of
        // them end at step 22.
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

    fn parsed(text: &str) -> Result<Augment, String> {
        Augment::parse("s.toml:8".to_owned(), text)
    }

    #[test]
    fn an_augmentation_shifts_flips_or_both() {
        let both = parsed("shift=4  flip").unwrap().of(3, 7);
        assert_eq!(both, Augmentation { shift: 4, mirror: true, seed: 3, epoch: 7 });
        assert!(!parsed("shift=1").unwrap().of(0, 0).mirror);
        assert_eq!(parsed("flip").unwrap().of(0, 0).shift, 0);
    }

    #[test]
    fn what_is_none_says_what_is_expected() {
        let expected = "s.toml:8: `augment`: expected `shift=PIXELS`, `flip` or both, found";
        for text in ["", "shift", "shift=", "shift=0", "shift=256", "shift=-1", "flip=1", "crop"] {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        assert!(parsed("flipp").unwrap_err().ends_with("found 'flipp'; did you mean 'flip'?"));
    }

    #[test]
    fn tokens_and_images_of_few_pixels_are_refused() {
        let tokens = SampleForm::Tokens { length: 32, vocabulary: 64 };
        let error = parsed("flip").unwrap().check(&tokens).unwrap_err();
        assert_eq!(error, "s.toml:8: `augment`: expected data of images, found tokens");
        let form = haversack_workloads::data::glyphs::data_set().form;
        assert_eq!(parsed("shift=31 flip").unwrap().check(&form), Ok(()));
        assert!(parsed("shift=32").unwrap().check(&form).unwrap_err().contains("less than the 32×32 pixels"));
    }
}
