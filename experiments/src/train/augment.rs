//! Whether images are moved and mirrored anew in each epoch.

use haversack_devices::text::hint;
use haversack_workloads::data::{Augmentation, SampleForm};

/// What a text of an augmentation may be.
const EXPECTED: &str = "`shift=PIXELS`, `flip` or both";
/// Its words.
const WORDS: [&str; 2] = ["shift", "flip"];

/// How the images of every epoch are changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Augment {
    shift: u8,
    flip: bool,
    /// As it was written.
    pub(super) text: String,
    /// Where it stands, as errors name it.
    place: String,
}

impl Augment {
    /// The augmentation of `text`, which stands at `place`.
    ///
    /// # Errors
    /// A text that is none: what was expected, what was found, and the nearest word.
    pub(super) fn parse(place: String, text: &str) -> Result<Self, String> {
        let (mut shift, mut flip) = (0, false);
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let pixels = || value.and_then(|value| value.parse().ok()).filter(|&pixels: &u8| pixels > 0);
            match (name, value) {
                ("flip", None) => flip = true,
                ("shift", _) => shift = pixels().ok_or_else(|| found(&place, word, " (PIXELS is 1 to 255)"))?,
                _ => return Err(found(&place, word, &hint(name, WORDS))),
            }
        }
        if shift == 0 && !flip {
            return Err(found(&place, text, ""));
        }
        Ok(Self { shift, flip, text: text.to_owned(), place })
    }

    /// Whether samples of `form` can be changed so.
    ///
    /// # Errors
    /// Samples that are no images, and images that a shift may leave nothing of.
    pub(super) fn check(&self, form: &SampleForm) -> Result<(), String> {
        let Self { shift, place, .. } = self;
        match form {
            SampleForm::Tokens { .. } => Err(format!("{place}: `augment`: expected data of images, found tokens")),
            SampleForm::Image(form) if usize::from(*shift) >= form.height.min(form.width) => Err(format!(
                "{place}: `augment`: expected a shift of less than the {}×{} pixels of an image, found {shift}",
                form.height, form.width
            )),
            SampleForm::Image(_) => Ok(()),
        }
    }

    /// What happens to the images of epoch number `epoch` with `seed`.
    pub(super) const fn of(&self, seed: u64, epoch: u64) -> Augmentation {
        Augmentation { shift: self.shift, mirror: self.flip, seed, epoch }
    }
}

fn found(place: &str, word: &str, hint: &str) -> String {
    format!("{place}: `augment`: expected {EXPECTED}, found '{word}'{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
