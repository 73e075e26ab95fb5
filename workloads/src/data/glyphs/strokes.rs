//! Strokes of a pen, and how much of a pixel they cover.

use super::SIDE;
use crate::data::draws::Draws;

/// The parts of a pixel in which places are counted.
pub(super) const FINE: i32 = 64;

/// What the pen covers of a pixel, from 0 to this.
pub(super) const WHOLE: i32 = 256;

/// A place, in 1/64 of a pixel.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) x: i32,
    pub(super) y: i32,
}

/// A straight stroke.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    pub(super) from: Place,
    pub(super) to: Place,
}

/// How the grid of a sign lies on the image: a turn, a shear, two scales and a shift.
pub(super) struct Placement {
    /// What a step of the grid to the right, and one down, adds to x and y: in 1/4096 of 1/64 of a pixel.
    right: (i32, i32),
    down: (i32, i32),
    centre: Place,
}

impl Placement {
    pub(super) fn drawn(draws: &mut Draws) -> Self {
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

    pub(super) fn place(&self, column: i32, row: i32) -> Place {
        Place {
            x: self.centre.x + (column * self.right.0 + row * self.down.0) / 4096,
            y: self.centre.y + (column * self.right.1 + row * self.down.1) / 4096,
        }
    }
}

/// The greatest turn, as t in 1/1024; the least and the greatest step of the grid, in 1/64 of a pixel; the greatest shear, in 1/256; the greatest
/// shift, in 1/64 of a pixel.
const TURN: i32 = 220;
const SCALE: (i32, i32) = (54, 92);
const SHEAR: i32 = 64;
const SHIFT: i32 = 4 * FINE;

impl Stroke {
    /// Raises what a pen of half-width `pen` (1/64 of a pixel) covers of each pixel along this stroke.
    pub(super) fn cover(&self, pen: i32, covered: &mut [i32; SIDE * SIDE]) {
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

/// The rows or columns within `far` of what lies between two places.
fn pixels(a: i32, b: i32, far: i32) -> std::ops::Range<usize> {
    let pixel = |place: i32| (place / FINE).clamp(0, SIDE as i32) as usize;
    pixel(a.min(b) - far)..pixel(a.max(b) + far + FINE)
}
