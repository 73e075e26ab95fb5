//! `glyphs`: small coloured images of drawn signs, made by code.
//!
//! Each image shows one of ten signs of a few strokes, turned, sheared, scaled, moved and drawn with a pen of some width
//! in some colour, before a background that changes from place to place, with loose strokes and a patch that hides a part, under
//! noise. The sign is the class.
//!
//! Every pixel is worked out in integers (places in 1/64 of a pixel, turns as rational points of the circle), so that the
//! bytes are the same on every machine.

mod picture;
mod strokes;

use super::set::DataSet;

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
    DataSet::made("glyphs", description, CLASSES, [CHANNELS, SIDE, SIDE], |index, bytes| {
        picture::draw(SEED, index, bytes)
    })
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
