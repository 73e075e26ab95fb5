//! `glyphs`: small generated colour images of drawn signs.
//!
//! Each image shows one of ten signs of a few strokes, rotated, sheared, scaled, shifted and drawn with a pen of some
//! width and colour, on a background that changes from place to place, with loose strokes, a patch that hides a part,
//! and noise. The sign is the class.
//!
//! Every pixel is computed in integers (places in 1/64 of a pixel, rotations as rational points of the circle), so that
//! the bytes are the same on every machine.
//!
//! One image: background, sign, loose strokes, a patch in front, noise.
//!
//! Strokes of a pen, and how much of a pixel they cover.

use super::augmentation::Draws;
use super::set::{DataSet, MADE};

/// The number of channels of an image: red, green, blue.
pub const CHANNELS: usize = 3;

/// The number of rows and of columns of an image.
pub const SIDE: usize = 32;

/// The number of classes.
pub const CLASSES: usize = 10;

/// Another seed would be another set.
const SEED: u64 = 20;

/// The set.
pub fn data_set() -> DataSet {
    let description = "coloured images of 32 × 32 pixels made by code: ten drawn signs";
    DataSet::made("glyphs", description, CLASSES, [CHANNELS, SIDE, SIDE], MADE, |index, bytes| draw(SEED, index, bytes))
}

// The ten signs: strokes from point to point on a grid from −8 to 8, rows downwards.

/// Points joined by straight strokes.
type Line = &'static [(i32, i32)];

/// The lines of each sign. Some differ by one stroke only.
const SIGNS: [&[Line]; CLASSES] = [
    // A ring.
    &[&[(-3, -8), (3, -8), (8, -3), (8, 3), (3, 8), (-3, 8), (-8, 3), (-8, -3), (-3, -8)]],
    // A ring with a tail.
    &[&[(-3, -8), (3, -8), (8, -3), (8, 3), (3, 8), (-3, 8), (-8, 3), (-8, -3), (-3, -8)], &[(2, 2), (8, 8)]],
    // A triangle.
    &[&[(0, -8), (8, 7), (-8, 7), (0, -8)]],
    // The triangle without its ground, and a bar.
    &[&[(-8, 8), (0, -8), (8, 8)], &[(-4, 2), (4, 2)]],
    // A cross.
    &[&[(0, -8), (0, 8)], &[(-8, 0), (8, 0)]],
    // A bar on a pole.
    &[&[(0, -8), (0, 8)], &[(-8, -8), (8, -8)]],
    // Two poles and a bar.
    &[&[(-7, -8), (-7, 8)], &[(7, -8), (7, 8)], &[(-7, 0), (7, 0)]],
    // Two poles and a slope.
    &[&[(-7, 8), (-7, -8), (7, 8), (7, -8)]],
    // A comb of three teeth.
    &[&[(7, -8), (-7, -8), (-7, 8), (7, 8)], &[(-7, 0), (5, 0)]],
    // A snake.
    &[&[(7, -8), (-7, -8), (-7, 0), (7, 0), (7, 8), (-7, 8)]],
];

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

/// Appends image number `index`, one plane per channel, and returns its class.
fn draw(seed: u64, index: u64, bytes: &mut Vec<u8>) -> u16 {
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

/// The coverage of each pixel by the pen.
fn sign(draws: &mut Draws, class: usize) -> [i32; SIDE * SIDE] {
    let mut covered = [0; SIDE * SIDE];
    let placement = Placement::drawn(draws);
    let pen = draws.between(PEN.0, PEN.1);
    for line in SIGNS[class] {
        for ends in line.windows(2) {
            // Hand-drawn strokes miss the grid.
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

/// The fractions of a pixel in which places are counted.
const FINE: i32 = 64;

/// The full coverage of a pixel by the pen; coverages start at 0.
const WHOLE: i32 = 256;

/// A place, in 1/64 of a pixel.
#[derive(Clone, Copy)]
struct Place {
    x: i32,
    y: i32,
}

/// A straight stroke.
#[derive(Clone, Copy)]
struct Stroke {
    from: Place,
    to: Place,
}

/// How the grid of a sign lies on the image: a turn, a shear, two scales and a shift.
struct Placement {
    /// The change of x and y by a step of the grid to the right, and by one down: in 1/4096 of 1/64 of a pixel.
    right: (i32, i32),
    down: (i32, i32),
    centre: Place,
}

impl Placement {
    fn drawn(draws: &mut Draws) -> Self {
        // t of the rational point ((1 − t²) / (1 + t²), 2t / (1 + t²)) of the circle, in 1/1024: up to 30 degrees.
        let turn = draws.between(-TURN, TURN);
        let (square, length) = (turn * turn, 1024 * 1024 + turn * turn);
        let cosine = (i64::from(1024 * 1024 - square) * 4096 / i64::from(length)) as i32;
        let sine = (i64::from(2 * 1024 * turn) * 4096 / i64::from(length)) as i32;
        let (width, height) = (draws.between(SCALE.0, SCALE.1), draws.between(SCALE.0, SCALE.1));
        let shear = draws.between(-SHEAR, SHEAR);
        let middle = SIDE as i32 * FINE / 2;
        let centre = Place { x: middle + draws.between(-SHIFT, SHIFT), y: middle + draws.between(-SHIFT, SHIFT) };
        // The grid is sheared (in 1/256), then scaled, then turned.
        let leaning = width * shear / 256;
        Self {
            right: (width * cosine, width * sine),
            down: (leaning * cosine - height * sine, leaning * sine + height * cosine),
            centre,
        }
    }

    fn place(&self, column: i32, row: i32) -> Place {
        Place {
            x: self.centre.x + (column * self.right.0 + row * self.down.0) / 4096,
            y: self.centre.y + (column * self.right.1 + row * self.down.1) / 4096,
        }
    }
}

/// The greatest turn, as t in 1/1024; the least and the greatest step of the grid, in 1/64 of a pixel; the greatest
/// shear, in 1/256; the greatest shift, in 1/64 of a pixel.
const TURN: i32 = 220;
const SCALE: (i32, i32) = (54, 92);
const SHEAR: i32 = 64;
const SHIFT: i32 = 4 * FINE;

impl Stroke {
    /// Raises the coverage of each pixel along this stroke by a pen of half-width `pen` (1/64 of a pixel).
    fn cover(&self, pen: i32, covered: &mut [i32; SIDE * SIDE]) {
        let (near, far) = ((pen - FINE / 2).max(0), pen + FINE / 2);
        let (inner, outer) = (i64::from(near * near), i64::from(far * far));
        for row in pixels(self.from.y, self.to.y, far) {
            for column in pixels(self.from.x, self.to.x, far) {
                let centre = Place { x: column as i32 * FINE + FINE / 2, y: row as i32 * FINE + FINE / 2 };
                let distance = self.squared_distance(centre);
                if distance < outer {
                    let share = ((outer - distance) * i64::from(WHOLE) / (outer - inner)).min(i64::from(WHOLE)) as i32;
                    let pixel = &mut covered[row * SIDE + column];
                    *pixel = share.max(*pixel);
                }
            }
        }
    }

    fn squared_distance(&self, place: Place) -> i64 {
        let along = between(self.from, self.to);
        let (start, end) = (between(self.from, place), between(self.to, place));
        let (length, reach) = (product(along, along), product(along, start));
        if reach <= 0 {
            product(start, start)
        } else if reach >= length {
            product(end, end)
        } else {
            let across = along.0 * start.1 - along.1 * start.0;
            across * across / length
        }
    }
}

fn between(from: Place, to: Place) -> (i64, i64) {
    (i64::from(to.x - from.x), i64::from(to.y - from.y))
}

fn product(a: (i64, i64), b: (i64, i64)) -> i64 {
    a.0 * b.0 + a.1 * b.1
}

/// The rows or columns between two places, extended by `far`.
fn pixels(a: i32, b: i32, far: i32) -> std::ops::Range<usize> {
    let pixel = |place: i32| (place / FINE).clamp(0, SIDE as i32) as usize;
    pixel(a.min(b) - far)..pixel(a.max(b) + far + FINE)
}
