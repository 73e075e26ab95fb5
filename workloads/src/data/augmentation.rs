//! Images moved and mirrored anew in every epoch, so that a network cannot learn them by heart.

use super::draws::Draws;
use super::set::ImageForm;

/// How the images of an epoch are changed; sequences of tokens are left as they are.
///
/// Each image is shifted by up to `shift` pixels in each direction (what comes in from outside repeats the edge) and, with
/// `mirror`, mirrored left to right half of the time. What happens to an image depends on the seed, the epoch and the
/// number of the image, not on the mini-batch that it is drawn into.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Augmentation {
    /// The largest shift, in pixels.
    pub shift: u8,
    /// Whether images may be mirrored: not where left and right tell classes apart.
    pub mirror: bool,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the epoch.
    pub epoch: u64,
}

/// Where the pixels of one changed image come from.
pub(super) struct Change {
    down: i32,
    right: i32,
    mirrored: bool,
}

impl Augmentation {
    /// What happens to image number `sample`.
    pub(super) fn of(&self, sample: usize) -> Change {
        // One epoch's purpose each, so that the sample can be the item.
        let mut draws = Draws::new(self.seed, &format!("augmentation of epoch {}", self.epoch), sample as u64);
        let shift = i32::from(self.shift);
        Change {
            down: draws.between(-shift, shift),
            right: draws.between(-shift, shift),
            mirrored: self.mirror && draws.chance(50),
        }
    }
}

impl Change {
    /// The place, within a plane of the image, of the pixel that is shown at (`row`, `column`).
    pub(super) fn source(&self, form: &ImageForm, row: usize, column: usize) -> usize {
        let column = if self.mirrored { form.width - 1 - column } else { column };
        inside(row, self.down, form.height) * form.width + inside(column, self.right, form.width)
    }
}

fn inside(place: usize, shift: i32, size: usize) -> usize {
    (place as i64 - i64::from(shift)).clamp(0, size as i64 - 1) as usize
}
