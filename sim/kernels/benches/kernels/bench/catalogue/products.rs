//! Products of i8 matrices: squares whose operands take about as many bytes as the tensor.

use std::hint::black_box;

use haversack_devices::units::Bytes;

use super::{Entry, List};
use crate::bench::buffer::{Buffer, Plain};
use crate::bench::contender::{Contender, Tensors};
use crate::bench::peers::products::{COLUMNS, in_f32, triple_loop};
use crate::bench::random::Random;
use crate::bench::{Family, Limit, SIZES, edge};
use haversack_kernels::Isa;
use haversack_kernels::KernelError;
use haversack_kernels::int8::{Gemm, Matrix};

pub(super) fn add(list: &mut List) {
    // At 64 MiB, a triple loop would take minutes.
    list.largest = Some(SIZES[1]);
    let isa = list.chosen;
    let peer = Some(product("a triple loop", isa, Layer::triple_loop));
    let entry = |id, about, peer| Entry::new(id, about, (Family::Product, Limit::Multiply), peer);
    list.each(entry("int8-gemm", "i8 matrices multiplied into i32", peer), |id, isa| product(id, isa, Layer::multiply));
    let mut one = |id, about, peer, pass| list.one(entry(id, about, peer), |id, isa| product(id, isa, pass));
    one("int8-gemm-input-gradient", "the same, the right one transposed", None, Layer::input_gradient);
    one("int8-gemm-weight-gradient", "the same, the left one transposed", None, Layer::weight_gradient);
    // Not a kernel but a second baseline for the product.
    let about = "f32 matrices multiplied in blocks: what a product of i8 saves";
    list.one(entry("int8-gemm-in-f32", about, None), floats);
}

/// Two square matrices, the result and its rescaled form.
struct Layer {
    gemm: Gemm,
    edge: usize,
    left: Buffer<i8>,
    right: Buffer<i8>,
    wide: Buffer<i32>,
}

impl Layer {
    fn new(edge: usize, isa: Isa) -> Self {
        let [left, right] = noise(edge, |random| (random.next() & 0xff) as i8);
        Self { gemm: Gemm::new(isa), edge, left, right, wide: Buffer::zeroed(edge * edge) }
    }

    fn multiply(&mut self) -> Result<(), KernelError> {
        let Self { gemm, edge, left, right, wide, .. } = self;
        gemm.multiply(square(left, *edge)?, square(right, *edge)?, black_box(wide))
    }

    fn input_gradient(&mut self) -> Result<(), KernelError> {
        let Self { gemm, edge, left, right, wide, .. } = self;
        gemm.multiply(square(left, *edge)?, square(right, *edge)?.transposed(), black_box(wide))
    }

    fn weight_gradient(&mut self) -> Result<(), KernelError> {
        let Self { gemm, edge, left, right, wide, .. } = self;
        gemm.multiply(square(left, *edge)?.transposed(), square(right, *edge)?, black_box(wide))
    }

    fn triple_loop(&mut self) -> Result<(), KernelError> {
        triple_loop(black_box(&self.left), black_box(&self.right), self.edge, black_box(&mut self.wide));
        Ok(())
    }
}

/// Two square matrices of noise.
fn noise<T: Plain>(edge: usize, draw: impl Fn(&mut Random) -> T) -> [Buffer<T>; 2] {
    let mut random = Random::default();
    std::array::from_fn(|_| {
        let mut values = Buffer::zeroed(edge * edge);
        values.iter_mut().for_each(|value| *value = draw(&mut random));
        values
    })
}

fn square(values: &[i8], edge: usize) -> Result<Matrix<'_>, KernelError> {
    Matrix::new(black_box(values), edge, edge)
}

fn size(tensors: &Tensors) -> Bytes {
    Bytes(size_of_val(&*tensors.values) as u64)
}

/// A way to multiply the matrices of a layer.
fn product(id: impl Into<String>, isa: Isa, pass: fn(&mut Layer) -> Result<(), KernelError>) -> Contender {
    Contender::owning(id, move |tensors| {
        let mut layer = Layer::new(edge(size(tensors)), isa);
        Ok(Box::new(move |_| pass(&mut layer)))
    })
}

/// A product of as many values in f32.
fn floats(id: String, isa: Isa) -> Contender {
    Contender::owning(id, move |tensors| {
        let edge = edge(size(tensors));
        let [left, right] = noise(edge, Random::next_float);
        let (mut panel, mut out) = (vec![[0.0; COLUMNS]; edge], Buffer::zeroed(edge * edge));
        Ok(Box::new(move |_| {
            in_f32(black_box(&left), black_box(&right), &mut panel, black_box(&mut out), isa);
            Ok(())
        }))
    })
}
