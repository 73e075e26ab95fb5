//! Operands as a product reads them: lines in panels, widened to i16, two successive values side by side.

use super::lanes::{LANES, Pair};
use super::matrix::{Lines, Order};

/// A cache line of pairs: vectors that are loaded from panels never lie across two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Aligned([Pair; LANES]);

/// Memory for panels, kept from one product to the next.
#[derive(Default)]
pub(super) struct Panels(Vec<Aligned>);

impl Panels {
    /// Packs lines into panels of `WIDTH`, one after the other. Of a panel come the first two values of all its lines,
    /// then the next two; lines and values that there are not are 0.
    #[inline(always)]
    pub(super) fn pack<const WIDTH: usize>(&mut self, lines: Lines<'_>) -> &[[Pair; WIDTH]] {
        let pairs = lines.depth.div_ceil(2);
        let panels = self.slots::<WIDTH>(lines.count.div_ceil(WIDTH) * pairs);
        if pairs > 0 {
            for (panel, first) in panels.chunks_exact_mut(pairs).zip((0..).step_by(WIDTH)) {
                match lines.order {
                    Order::Along => pack_along(lines, first, panel),
                    Order::Across { lines: apart } => pack_across(lines, apart, first, panel),
                }
            }
        }
        panels
    }

    /// So many slots, with anything in them.
    fn slots<const WIDTH: usize>(&mut self, count: usize) -> &mut [[Pair; WIDTH]] {
        let needed = (count * WIDTH).div_ceil(LANES);
        if self.0.len() < needed {
            self.0.resize(needed, Aligned([[0; 2]; LANES]));
        }
        // SAFETY: `Aligned` is an array of pairs and, at 64 bytes, has no padding; the length is that of all of them.
        let pairs = unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<Pair>(), self.0.len() * LANES) };
        &mut pairs.as_chunks_mut().0[..count]
    }
}

/// A panel from line `first` on, of lines one after the other.
#[inline(always)]
fn pack_along<const WIDTH: usize>(lines: Lines<'_>, first: usize, panel: &mut [[Pair; WIDTH]]) {
    for place in 0..WIDTH {
        let line = first + place;
        if line >= lines.count {
            panel.iter_mut().for_each(|slot| slot[place] = [0; 2]);
            continue;
        }
        let (pairs, odd) = lines.values[line * lines.depth..][..lines.depth].as_chunks::<2>();
        for (slot, pair) in panel.iter_mut().zip(pairs) {
            slot[place] = pair.map(i16::from);
        }
        if let (Some(slot), Some(&last)) = (panel.last_mut(), odd.first()) {
            slot[place] = [i16::from(last), 0];
        }
    }
}

/// A panel from line `first` on, of lines whose values are `apart`.
#[inline(always)]
fn pack_across<const WIDTH: usize>(lines: Lines<'_>, apart: usize, first: usize, panel: &mut [[Pair; WIDTH]]) {
    let width = WIDTH.min(lines.count - first);
    for (slot, at) in panel.iter_mut().zip((0..).step_by(2)) {
        let values = |at: usize| &lines.values[at * apart + first..][..width];
        let top = padded::<WIDTH>(values(at));
        // Of an odd number of values the last has no second.
        let bottom = if at + 1 < lines.depth { padded(values(at + 1)) } else { [0; WIDTH] };
        for place in 0..WIDTH {
            slot[place] = [i16::from(top[place]), i16::from(bottom[place])];
        }
    }
}

/// The values, and zeros after them.
#[inline(always)]
fn padded<const WIDTH: usize>(values: &[i8]) -> [i8; WIDTH] {
    // Whole panels are most of them, and are read at once.
    if let Ok(values) = values.try_into() {
        return values;
    }
    let mut all = [0; WIDTH];
    all.iter_mut().zip(values).for_each(|(to, &value)| *to = value);
    all
}

#[cfg(test)]
mod tests {
    use super::super::matrix::Matrix;
    use super::*;

    #[test]
    fn panels_hold_pairs_of_all_lines_and_zeros_beyond() {
        // Rows 1 2 3 / 4 5 6 / 7 8 9, two rows a panel: pairs (1,2) (4,5), then (3,0) (6,0); then (7,8) and no row.
        let matrix = Matrix::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 3, 3).unwrap();
        let rows = [[[1, 2], [4, 5]], [[3, 0], [6, 0]], [[7, 8], [0, 0]], [[9, 0], [0, 0]]];
        // Columns 1 4 7 / 2 5 8 / 3 6 9.
        let columns = [[[1, 4], [2, 5]], [[7, 0], [8, 0]], [[3, 6], [0, 0]], [[9, 0], [0, 0]]];
        let mut panels = Panels::default();
        assert_eq!(panels.pack::<2>(matrix.by_rows()), rows);
        assert_eq!(panels.pack::<2>(matrix.by_columns()), columns);
        assert_eq!(panels.pack::<2>(matrix.transposed().by_rows()), columns);
        assert_eq!(panels.pack::<2>(matrix.transposed().by_columns()), rows);
        // Memory that was used before is no longer seen.
        assert_eq!(panels.pack::<2>(Matrix::new(&[5], 1, 1).unwrap().by_rows()), [[[5, 0], [0, 0]]]);
    }
}
