//! One image: background, sign, loose strokes, a patch in front, noise.

use super::SIGNS;
use super::strokes::{FINE, Place, Placement, Stroke, WHOLE};
use super::{CHANNELS, CLASSES, SIDE};
use crate::data::draws::Draws;

/// Half the width of the pen, in 1/64 of a pixel.
const PEN: (i32, i32) = (40, 90);

/// The least distance between the colours of pen and ground, added up over the channels.
const CONTRAST: i32 = 135;

/// How far the ground's colour strays from its mean in a channel.
const STRAY: i32 = 40;

/// The greatest noise of a pixel.
const NOISE: i32 = 34;

/// The greatest number of loose strokes.
const LOOSE: i32 = 2;

/// The sides of the patch, in pixels.
const PATCH: (i32, i32) = (4, 9);

/// The knots of the ground in each direction, and the pixels from one to the next.
const KNOTS: usize = 5;
const STEP: usize = 8;

/// Appends image number `index`, a plane a channel, and gives its class.
pub(super) fn draw(seed: u64, index: u64, bytes: &mut Vec<u8>) -> u16 {
    let mut draws = Draws::new(seed, "glyphs", index);
    let class = draws.below(CLASSES as u32) as usize;
    let covered = sign(&mut draws, class);
    let (ground, pen) = colours(&mut draws);
    let patch = Patch::drawn(&mut draws);
    let mut noise = Noise(u64::from(draws.below(u32::MAX)) << 32 | 1);
    for channel in 0..CHANNELS {
        let knots: [[i32; KNOTS]; KNOTS] =
            std::array::from_fn(|_| std::array::from_fn(|_| ground[channel] + draws.between(-STRAY, STRAY)));
        for row in 0..SIDE {
            for column in 0..SIDE {
                let behind = ground_at(&knots, row, column);
                let share = covered[row * SIDE + column];
                let drawn = behind + (pen[channel] - behind) * share / WHOLE;
                let seen = if patch.hides(row, column) { patch.colour[channel] } else { drawn };
                bytes.push((seen + noise.next()).clamp(0, 255) as u8);
            }
        }
    }
    class as u16
}

/// What the pen covers of each pixel.
fn sign(draws: &mut Draws, class: usize) -> [i32; SIDE * SIDE] {
    let mut covered = [0; SIDE * SIDE];
    let placement = Placement::drawn(draws);
    let pen = draws.between(PEN.0, PEN.1);
    for line in SIGNS[class] {
        for ends in line.windows(2) {
            // No hand meets the grid.
            let [from, to] = [ends[0], ends[1]].map(|(column, row)| placement.place(column, row));
            Stroke { from, to }.cover(pen, &mut covered);
        }
    }
    for _ in 0..draws.between(0, LOOSE) {
        loose(draws).cover(pen, &mut covered);
    }
    covered
}

/// A short stroke that belongs to no sign.
fn loose(draws: &mut Draws) -> Stroke {
    let from = Place { x: draws.between(0, SIDE as i32 * FINE), y: draws.between(0, SIDE as i32 * FINE) };
    let to = Place { x: from.x + draws.between(-6 * FINE, 6 * FINE), y: from.y + draws.between(-6 * FINE, 6 * FINE) };
    Stroke { from, to }
}

/// The colours of the ground and of the pen.
fn colours(draws: &mut Draws) -> ([i32; CHANNELS], [i32; CHANNELS]) {
    loop {
        let ground: [i32; CHANNELS] = std::array::from_fn(|_| draws.between(30, 225));
        let pen: [i32; CHANNELS] = std::array::from_fn(|_| draws.between(30, 225));
        if ground.iter().zip(&pen).map(|(ground, pen)| (ground - pen).abs()).sum::<i32>() >= CONTRAST {
            return (ground, pen);
        }
    }
}

/// The ground between its knots, by two linear interpolations.
fn ground_at(knots: &[[i32; KNOTS]; KNOTS], row: usize, column: usize) -> i32 {
    let (above, left) = (row / STEP, column / STEP);
    let (down, right) = ((row % STEP) as i32, (column % STEP) as i32);
    let step = STEP as i32;
    let on = |line: &[i32; KNOTS]| line[left] * (step - right) + line[left + 1] * right;
    (on(&knots[above]) * (step - down) + on(&knots[above + 1]) * down) / (step * step)
}

/// A rectangle of one colour in front of everything.
struct Patch {
    top: i32,
    left: i32,
    height: i32,
    width: i32,
    colour: [i32; CHANNELS],
}

impl Patch {
    fn drawn(draws: &mut Draws) -> Self {
        let (height, width) = (draws.between(PATCH.0, PATCH.1), draws.between(PATCH.0, PATCH.1));
        let (top, left) = (draws.between(0, SIDE as i32 - height), draws.between(0, SIDE as i32 - width));
        Self { top, left, height, width, colour: std::array::from_fn(|_| draws.between(0, 255)) }
    }

    fn hides(&self, row: usize, column: usize) -> bool {
        let inside = |place: usize, start: i32, size: i32| (start..start + size).contains(&(place as i32));
        inside(row, self.top, self.height) && inside(column, self.left, self.width)
    }
}

/// Noise of the pixels by xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators,
/// scrambled", 2016): a tenth of the cost of `ChaCha`, whose quality noise does not need.
struct Noise(u64);

impl Noise {
    /// The next value: the mean of two uniform ones, from −`NOISE` to `NOISE`.
    fn next(&mut self) -> i32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let sum = (bits >> 56) as i32 + (bits >> 48 & 255) as i32;
        sum * NOISE / 255 - NOISE
    }
}
