//! Those that are measured: kernels, limits and peers alike are a way to pass over the same tensors.

use std::rc::Rc;

use super::buffer::Buffer;
use super::clock::Clock;
use super::race::{Pass, Runner};
use super::random::Random;
use haversack_kernels::KernelError;

/// The tensors of one size that everybody passes over.
#[derive(Debug)]
pub(super) struct Tensors {
    /// What is read.
    pub(super) values: Buffer<f32>,
    /// What floats are written to.
    pub(super) output: Buffer<f32>,
    /// What integers are written to or read from; of the size of the tensor too.
    pub(super) integers: Buffer<u32>,
}

impl Tensors {
    /// Tensors of so many bytes; the values scatter around zero, the integers are below 256.
    pub(super) fn new(bytes: usize) -> Self {
        let elements = bytes / size_of::<f32>();
        let mut tensors = Self {
            values: Buffer::zeroed(elements),
            output: Buffer::zeroed(elements),
            integers: Buffer::zeroed(elements),
        };
        let mut random = Random::default();
        tensors.values.iter_mut().for_each(|value| *value = random.next_float());
        tensors.integers.iter_mut().for_each(|integer| *integer = (random.next() & 0xff) as u32);
        tensors
    }
}

/// How a pass is made ready: what it owns is allocated here, and not measured.
type Make = dyn Fn(&Tensors) -> Result<Pass<Tensors>, KernelError>;

/// A named way to pass over the tensors.
#[derive(Clone)]
pub(super) struct Contender {
    /// Its name; two of one name are the same and are measured once.
    pub(super) id: String,
    clock: Clock,
    make: Rc<Make>,
}

impl Contender {
    /// One whose pass owns things.
    pub(super) fn owning(
        id: impl Into<String>,
        make: impl Fn(&Tensors) -> Result<Pass<Tensors>, KernelError> + 'static,
    ) -> Self {
        Self { id: id.into(), clock: Clock::Thread, make: Rc::new(make) }
    }

    /// One whose pass works with what it owns and the tensors.
    pub(super) fn with<B: 'static>(
        id: impl Into<String>,
        own: impl Fn(&Tensors) -> Result<B, KernelError> + 'static,
        pass: impl Fn(&mut B, &mut Tensors) -> Result<(), KernelError> + Clone + 'static,
    ) -> Self {
        Self::owning(id, move |tensors| {
            let (mut owned, pass) = (own(tensors)?, pass.clone());
            Ok(Box::new(move |tensors| pass(&mut owned, tensors)))
        })
    }

    /// One that needs nothing but the tensors, and may fail.
    pub(super) fn fallible(
        id: impl Into<String>,
        pass: impl Fn(&mut Tensors) -> Result<(), KernelError> + Clone + 'static,
    ) -> Self {
        Self::owning(id, move |_| Ok(Box::new(pass.clone())))
    }

    /// One that needs nothing but the tensors.
    pub(super) fn simple(id: impl Into<String>, pass: impl Fn(&mut Tensors) + Clone + 'static) -> Self {
        Self::fallible(id, move |tensors| {
            pass(tensors);
            Ok(())
        })
    }

    /// With the clock on the wall, for what several threads do.
    pub(super) fn on_the_wall(mut self) -> Self {
        self.clock = Clock::Wall;
        self
    }

    /// Makes it ready to run.
    pub(super) fn runner(&self, tensors: &Tensors) -> Result<Runner<Tensors>, KernelError> {
        Ok(Runner { clock: self.clock, pass: (self.make)(tensors)? })
    }
}
