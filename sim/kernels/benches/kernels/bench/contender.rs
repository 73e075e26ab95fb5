//! The contenders of a measurement: kernels, limits and peers are all ways to pass over the same tensors.

use std::rc::Rc;

use crate::bench::buffer::Buffer;
use crate::bench::race::Pass;
use crate::bench::random::Random;
use haversack_kernels::KernelError;

/// The tensors of one size that all contenders pass over.
#[derive(Debug)]
pub(crate) struct Tensors {
    /// The input.
    pub(crate) values: Buffer<f32>,
    /// The output in f32.
    pub(crate) output: Buffer<f32>,
}

impl Tensors {
    /// Tensors of `bytes` bytes; the values scatter around zero.
    pub(crate) fn new(bytes: usize) -> Self {
        let elements = bytes / size_of::<f32>();
        let mut tensors = Self { values: Buffer::zeroed(elements), output: Buffer::zeroed(elements) };
        let mut random = Random::default();
        tensors.values.iter_mut().for_each(|value| *value = random.next_float());
        tensors
    }
}

/// Prepares a pass: the buffers that it owns are allocated here, outside the measured time.
type Make = dyn Fn(&Tensors) -> Result<Pass<Tensors>, KernelError>;

/// A named way to pass over the tensors.
#[derive(Clone)]
pub(crate) struct Contender {
    /// Its name; contenders with the same name are the same and are measured once.
    pub(crate) id: String,
    make: Rc<Make>,
}

impl Contender {
    /// A contender whose pass owns data.
    pub(crate) fn owning(
        id: impl Into<String>,
        make: impl Fn(&Tensors) -> Result<Pass<Tensors>, KernelError> + 'static,
    ) -> Self {
        Self { id: id.into(), make: Rc::new(make) }
    }

    /// A contender whose pass uses its own data and the tensors.
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

    /// A contender that needs only the tensors.
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
