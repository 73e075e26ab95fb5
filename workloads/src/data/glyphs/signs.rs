//! The ten signs: strokes from point to point on a grid from −8 to 8, rows downwards.

/// Points joined by straight strokes.
type Line = &'static [(i32, i32)];

/// The lines of each sign. Some differ by one stroke only.
pub(super) const SIGNS: [&[Line]; super::CLASSES] = [
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
