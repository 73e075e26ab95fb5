//! Those that are measured: kernels, limits and peers alike are a way to pass over the same tensors.

use std::rc::Rc;

use crate::bench::buffer::Buffer;
use crate::bench::race::Pass;
use crate::bench::random::Random;
use haversack_kernels::KernelError;

/// The tensors of one size that everybody passes over.
#[derive(Debug)]
pub(crate) struct Tensors {
    /// What is read.
    pub(crate) values: Buffer<f32>,
    /// What floats are written to.
    pub(crate) output: Buffer<f32>,
}

impl Tensors {
    /// Tensors of so many bytes; the values scatter around zero.
    pub(crate) fn new(bytes: usize) -> Self {
        let elements = bytes / size_of::<f32>();
        let mut tensors = Self { values: Buffer::zeroed(elements), output: Buffer::zeroed(elements) };
        let mut random = Random::default();
        tensors.values.iter_mut().for_each(|value| *value = random.next_float());
        tensors
    }
}

/// How a pass is made ready: what it owns is allocated here, and not measured.
type Make = dyn Fn(&Tensors) -> Result<Pass<Tensors>, KernelError>;

/// A named way to pass over the tensors.
#[derive(Clone)]
pub(crate) struct Contender {
    /// Its name; two of one name are the same and are measured once.
    pub(crate) id: String,
    make: Rc<Make>,
}

impl Contender {
    /// One whose pass owns things.
    pub(crate) fn owning(
        id: impl Into<String>,
        make: impl Fn(&Tensors) -> Result<Pass<Tensors>, KernelError> + 'static,
    ) -> Self {
        Self { id: id.into(), make: Rc::new(make) }
    }

    /// One whose pass works with what it owns and the tensors.
    pub(crate) fn with<B: 'static>(
        id: impl Into<String>,
        own: impl Fn(&Tensors) -> Result<B, KernelError> + 'static,
        pass: impl Fn(&mut B, &mut Tensors) -> Result<(), KernelError> + Clone + 'static,
    ) -> Self {
        Self::owning(id, move |tensors| {
            let (mut owned, pass) = (own(tensors)?, pass.clone());
            Ok(Box::new(move |tensors| pass(&mut owned, tensors)))
        })
    }

    /// One that needs nothing but the tensors.
    pub(crate) fn simple(id: impl Into<String>, pass: impl Fn(&mut Tensors) + Clone + 'static) -> Self {
        Self::owning(id, move |_| {
            let pass = pass.clone();
            Ok(Box::new(move |tensors| {
                pass(tensors);
                Ok(())
            }))
        })
    }

    /// Makes it ready to run.
    pub(crate) fn ready(&self, tensors: &Tensors) -> Result<Pass<Tensors>, KernelError> {
        (self.make)(tensors)
    }
}
