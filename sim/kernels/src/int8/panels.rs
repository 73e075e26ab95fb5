//! Operands as a product reads them: lines in panels, with as many successive values side by side in a slot of 32 bits as
//! an instruction multiplies: two, widened to i16, or four bytes.

use super::matrix::{Lines, Order};
use crate::simd::LANES;

/// A cache line of slots: vectors that are loaded from panels never lie across two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Aligned([u32; LANES]);

/// Memory for panels, kept from one product to the next.
#[derive(Default)]
pub(super) struct Panels(Vec<Aligned>);

impl Panels {
    /// Packs lines into panels of `WIDTH`, one after the other. A panel has the first `DEPTH` values of all its lines,
    /// then the next; missing lines and values are 0. Every slot is XORed with `flip`.
    #[inline(always)]
    pub(super) fn pack<const WIDTH: usize, const DEPTH: usize>(
        &mut self,
        lines: Lines<'_>,
        flip: u32,
    ) -> &[[u32; WIDTH]] {
        let slots = lines.depth.div_ceil(DEPTH);
        let panels = self.slots::<WIDTH>(lines.count.div_ceil(WIDTH) * slots);
        if slots > 0 {
            for (panel, first) in panels.chunks_exact_mut(slots).zip((0..).step_by(WIDTH)) {
                match lines.order {
                    Order::Along => pack_along::<WIDTH, DEPTH>(lines, first, flip, panel),
                    Order::Across { lines: apart } => {
                        pack_across::<WIDTH, DEPTH>(lines, apart, first, flip, panel);
                    }
                }
            }
        }
        panels
    }

    /// `count` rows of slots, with arbitrary contents.
    fn slots<const WIDTH: usize>(&mut self, count: usize) -> &mut [[u32; WIDTH]] {
        let needed = (count * WIDTH).div_ceil(LANES);
        if self.0.len() < needed {
            self.0.resize(needed, Aligned([0; LANES]));
        }
        // SAFETY: `Aligned` is an array of words and, at 64 bytes, has no padding; the length is that of all of them.
        let slots = unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<u32>(), self.0.len() * LANES) };
        &mut slots.as_chunks_mut().0[..count]
    }
}

/// Two values as i16, or four as they are, the first one lowest.
#[inline(always)]
fn slot<const DEPTH: usize>(values: [i8; DEPTH]) -> u32 {
    let (width, mask) = if DEPTH == 2 { (16, 0xFFFF) } else { (8, 0xFF) };
    let mut slot = 0;
    for (place, &value) in (0..).zip(&values) {
        slot |= (i32::from(value) as u32 & mask) << (width * place);
    }
    slot
}

/// A panel from line `first` on, of lines one after the other.
#[inline(always)]
fn pack_along<const WIDTH: usize, const DEPTH: usize>(
    lines: Lines<'_>,
    first: usize,
    flip: u32,
    panel: &mut [[u32; WIDTH]],
) {
    for place in 0..WIDTH {
        let line = first + place;
        if line >= lines.count {
            panel.iter_mut().for_each(|slots| slots[place] = 0);
            continue;
        }
        let (whole, rest) = lines.values[line * lines.depth..][..lines.depth].as_chunks::<DEPTH>();
        for (slots, &values) in panel.iter_mut().zip(whole) {
            slots[place] = slot(values) ^ flip;
        }
        if let (Some(slots), false) = (panel.last_mut(), rest.is_empty()) {
            slots[place] = slot::<DEPTH>(padded(rest)) ^ flip;
        }
    }
}

/// A panel from line `first` on, of lines whose values are `apart`.
#[inline(always)]
fn pack_across<const WIDTH: usize, const DEPTH: usize>(
    lines: Lines<'_>,
    apart: usize,
    first: usize,
    flip: u32,
    panel: &mut [[u32; WIDTH]],
) {
    let width = WIDTH.min(lines.count - first);
    for (slots, at) in panel.iter_mut().zip((0..).step_by(DEPTH)) {
        let mut rows = [[0; WIDTH]; DEPTH];
        // The last slot may have values to spare.
        for (i, row) in rows.iter_mut().enumerate().take(lines.depth - at) {
            *row = padded(&lines.values[(at + i) * apart + first..][..width]);
        }
        for place in 0..WIDTH {
            let mut values = [0; DEPTH];
            for i in 0..DEPTH {
                values[i] = rows[i][place];
            }
            slots[place] = slot(values) ^ flip;
        }
    }
}

/// The values, and zeros after them.
#[inline(always)]
fn padded<const WIDTH: usize>(values: &[i8]) -> [i8; WIDTH] {
    // Most panels are whole, and are read as one array.
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
        let pairs = |panels: [[[i8; 2]; 2]; 4]| panels.map(|lines| lines.map(slot));
        let rows = pairs([[[1, 2], [4, 5]], [[3, 0], [6, 0]], [[7, 8], [0, 0]], [[9, 0], [0, 0]]]);
        // Columns 1 4 7 / 2 5 8 / 3 6 9.
        let columns = pairs([[[1, 4], [2, 5]], [[7, 0], [8, 0]], [[3, 6], [0, 0]], [[9, 0], [0, 0]]]);
        let mut panels = Panels::default();
        assert_eq!(panels.pack::<2, 2>(matrix.by_rows(), 0), rows);
        assert_eq!(panels.pack::<2, 2>(matrix.by_columns(), 0), columns);
        assert_eq!(panels.pack::<2, 2>(matrix.transposed().by_rows(), 0), columns);
        assert_eq!(panels.pack::<2, 2>(matrix.transposed().by_columns(), 0), rows);
        // Contents from an earlier use do not show.
        assert_eq!(panels.pack::<2, 2>(Matrix::new(&[5], 1, 1).unwrap().by_rows(), 0), [[5, 0]]);
    }

    #[test]
    fn slots_hold_two_values_as_i16_or_four_as_bytes() {
        assert_eq!((slot([-2, 3]), slot([1, -1, 2, 3])), (0x0003_FFFE, 0x0302_FF01));
        let matrix = Matrix::new(&[1, 2, 3, 4, 5, 6], 2, 3).unwrap();
        let mut panels = Panels::default();
        // Rows 1 2 3 0 and 4 5 6 0, each byte moved up by 128: 0x81 is 1, 0x80 is 0.
        assert_eq!(panels.pack::<2, 4>(matrix.by_rows(), 0x8080_8080), [[0x8083_8281, 0x8086_8584]]);
        assert_eq!(panels.pack::<2, 4>(matrix.transposed().by_columns(), 0), [[0x0003_0201, 0x0006_0504]]);
    }
}
