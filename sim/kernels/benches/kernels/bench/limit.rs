//! Upper limits on a kernel's speed, and the ways to measure each: the yardstick at its best on this machine.

use std::hint::black_box;

use haversack_devices::units::Bytes;
use haversack_kernels::Isa;
use strum::IntoStaticStr;

use crate::bench::contender::{Contender, Tensors};
use crate::bench::{edge, yardstick};

/// An operation that bounds a kernel's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Limit {
    /// Reading the tensor.
    Read,
    /// Writing the tensor.
    Write,
    /// Reading one tensor and writing another.
    Copy,
    /// Reading a tensor and writing it in place.
    Update,
    /// The multiply-adds of a product of i8 matrices, with all registers and the first-level cache to themselves.
    Multiply,
}

/// A way to measure a limit: the suffix of its name, and the function that runs it.
type Way = (&'static str, fn(&mut Tensors, Isa));

impl Limit {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// The ways to measure it, of which the fastest is the limit: in every instruction set of this processor
    /// except plain Rust, which is never the fastest if there is another; in one stream and in several; through
    /// the caches and past them.
    pub(crate) fn contenders(self) -> Vec<Contender> {
        let ways: &[Way] = match self {
            Self::Read => &[
                ("", |Tensors { values, .. }, isa| {
                    black_box(yardstick::read(black_box(values), false, isa));
                }),
                (" in streams", |Tensors { values, .. }, isa| {
                    black_box(yardstick::read(black_box(values), true, isa));
                }),
            ],
            Self::Write => &[
                ("", |Tensors { output, .. }, isa| yardstick::write(black_box(output), black_box(0.5), false, isa)),
                (" past the caches", |Tensors { output, .. }, isa| {
                    yardstick::write(black_box(output), black_box(0.5), true, isa);
                }),
            ],
            Self::Copy => &[
                ("", |Tensors { values, output, .. }, isa| {
                    yardstick::copy(black_box(values), black_box(output), false, isa);
                }),
                (" past the caches", |Tensors { values, output, .. }, isa| {
                    yardstick::copy(black_box(values), black_box(output), true, isa);
                }),
            ],
            Self::Update => &[("", |Tensors { output, .. }, isa| yardstick::update(black_box(output), isa))],
            Self::Multiply => &[("", |Tensors { values, .. }, isa| {
                let edge = edge(Bytes(size_of_val(&**values) as u64));
                black_box(yardstick::multiply_adds(edge.pow(3), isa));
            })],
        };
        let sets = Isa::available();
        let sets = &sets[usize::from(sets.len() > 1)..];
        let pairs = sets.iter().flat_map(|&isa| ways.iter().map(move |&(way, pass)| (isa, way, pass)));
        let contender = |(isa, way, pass): (Isa, &str, fn(&mut Tensors, Isa))| {
            Contender::simple(format!("limit: {}{way} by {isa}", self.name()), move |tensors| pass(tensors, isa))
        };
        pairs.map(contender).collect()
    }
}
