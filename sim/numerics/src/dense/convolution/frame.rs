//! Planes with their padding, in which every position of a window is one distance away.
//!
//! With a stride, the positions that a tap of the window reads are a stride apart. They are stored next to each other:
//! a plane is split into one plane for each remainder of the position, a *phase*.

/// Elements after the last plane that vectors may read.
pub(super) const SLACK: usize = 16;

/// How a sample's planes are stored in a frame: row q of phase r is row `step · q + r − before` of the plane, or zeros
/// if the plane has no such row; columns likewise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Planes of a sample.
    pub(super) planes: usize,
    /// Height and width of a plane.
    pub(super) size: [usize; 2],
    /// Positions from one row, or column, of a phase to the next.
    pub(super) step: [usize; 2],
    /// Number of phases, down and across.
    pub(super) phases: [usize; 2],
    /// Positions before the plane's first.
    pub(super) before: [usize; 2],
    /// Rows of a phase, and elements of a row.
    pub(super) framed: [usize; 2],
}

impl Frame {
    /// Elements of a sample's planes in their frame, including those after them that vectors may read.
    pub(super) const fn len(&self) -> usize {
        self.planes * self.plane_len() + SLACK
    }

    /// Elements from one plane to the next.
    pub(super) const fn plane_len(&self) -> usize {
        self.phases[0] * self.phases[1] * self.phase_len()
    }

    const fn phase_len(&self) -> usize {
        self.framed[0] * self.framed[1]
    }

    /// The index of an element of a plane's phase.
    pub(super) const fn place(&self, plane: usize, phase: [usize; 2], [row, column]: [usize; 2]) -> usize {
        plane * self.plane_len()
            + (phase[0] * self.phases[1] + phase[1]) * self.phase_len()
            + row * self.framed[1]
            + column
    }

    /// Writes a sample into its frame, which contains zeros or an earlier sample.
    pub(super) fn write(&self, sample: &[f32], frame: &mut [f32]) {
        let [height, width] = self.size;
        for (plane, from) in sample.chunks_exact((height * width).max(1)).enumerate() {
            for down in 0..self.phases[0] {
                for across in 0..self.phases[1] {
                    let at = self.place(plane, [down, across], [0, 0]);
                    self.write_phase([down, across], from, &mut frame[at..][..self.phase_len()]);
                }
            }
        }
    }

    fn write_phase(&self, phase: [usize; 2], plane: &[f32], into: &mut [f32]) {
        let [(row, first, rows), (column, left, columns)] = [self.part(0, phase[0]), self.part(1, phase[1])];
        let (width, pitch) = (self.size[1], self.framed[1]);
        if columns == 0 {
            return;
        }
        for i in 0..rows {
            let from = &plane[(first + i * self.step[0]) * width + left..(first + i * self.step[0] + 1) * width];
            let into = &mut into[(row + i) * pitch + column..][..columns];
            match self.step[1] {
                1 => into.copy_from_slice(&from[..columns]),
                2 => every_second(from, into),
                step => into.iter_mut().zip(from.iter().step_by(step)).for_each(|(y, x)| *y = *x),
            }
        }
    }

    /// Along an axis: the first row of the phase that is in the plane, its row in the plane, and the
    /// number of rows from there on.
    fn part(&self, axis: usize, phase: usize) -> (usize, usize, usize) {
        let (step, before) = (self.step[axis], self.before[axis]);
        let row = before.saturating_sub(phase).div_ceil(step);
        let first = row * step + phase - before;
        let rows = self.size[axis].saturating_sub(first).div_ceil(step).min(self.framed[axis].saturating_sub(row));
        (row, first, rows)
    }
}

/// Copies every second element, from the first on, by pairs, which the compiler vectorises.
fn every_second(from: &[f32], into: &mut [f32]) {
    let (pairs, last) = from.as_chunks::<2>();
    let paired = pairs.len().min(into.len());
    into[..paired].iter_mut().zip(pairs).for_each(|(y, [x, _])| *y = *x);
    into[paired..].iter_mut().zip(last).for_each(|(y, x)| *y = *x);
}
