//! Products of i8 matrices: squares whose operands take about as many bytes as the tensor.

use std::hint::black_box;

use haversack_devices::units::Bytes;

use super::{Entry, List};
use crate::buffer::{Buffer, Plain};
use crate::contender::{Contender, Tensors};
use crate::peers::products::{COLUMNS, in_f32, triple_loop};
use crate::random::Random;
use crate::{Family, Limit, SIZES, edge};
use haversack_kernels::Isa;
use haversack_kernels::KernelError;
use haversack_kernels::int8::{Gemm, Matrix, round_shift, scale_of};

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
    let dynamic = Some(product("dynamic rescaling", isa, Layer::multiply_rescaled));
    let about = "i8 matrices multiplied into i8 by a known shift: static rescaling";
    one("int8-gemm-static", about, dynamic, Layer::multiply_shifted);
    let passes = Some(product("product, scale and shift one after the other", isa, Layer::multiply_in_passes));
    let about = "i8 matrices multiplied into i8 by the result's own scale: dynamic rescaling";
    one("int8-gemm-dynamic", about, passes, Layer::multiply_rescaled);
    // Not a kernel but a second thing to hold the product against.
    let about = "f32 matrices multiplied in blocks: what a product of i8 saves";
    list.one(entry("int8-gemm-in-f32", about, None), floats);
}

/// Two square matrices, and what becomes of them.
struct Layer {
    isa: Isa,
    gemm: Gemm,
    edge: usize,
    left: Buffer<i8>,
    right: Buffer<i8>,
    wide: Buffer<i32>,
    narrow: Buffer<i8>,
    shift: u32,
}

impl Layer {
    fn new(edge: usize, isa: Isa) -> Result<Self, KernelError> {
        let [left, right] = noise(edge, |random| (random.next() & 0xff) as i8);
        let gemm = Gemm::new(isa);
        let (wide, narrow) = (Buffer::zeroed(edge * edge), Buffer::zeroed(edge * edge));
        let mut layer = Self { isa, gemm, edge, left, right, wide, narrow, shift: 0 };
        layer.shift = layer.rescaled()?;
        Ok(layer)
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

    fn multiply_shifted(&mut self) -> Result<(), KernelError> {
        let Self { gemm, edge, left, right, narrow, shift, .. } = self;
        gemm.multiply_shifted(square(left, *edge)?, square(right, *edge)?, black_box(*shift), black_box(narrow))
    }

    fn multiply_rescaled(&mut self) -> Result<(), KernelError> {
        black_box(self.rescaled()?);
        Ok(())
    }

    fn rescaled(&mut self) -> Result<u32, KernelError> {
        let Self { gemm, edge, left, right, narrow, .. } = self;
        gemm.multiply_rescaled(square(left, *edge)?, square(right, *edge)?, black_box(narrow))
    }

    fn multiply_in_passes(&mut self) -> Result<(), KernelError> {
        self.multiply()?;
        round_shift(&self.wide, scale_of(&self.wide, self.isa), black_box(&mut self.narrow), self.isa)
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
        let mut layer = Layer::new(edge(size(tensors)), isa)?;
        Ok(Box::new(move |_| pass(&mut layer)))
    })
}

/// A product of as many floats.
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
