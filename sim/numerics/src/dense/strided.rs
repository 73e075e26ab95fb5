//! Copies between a view of a storage (permuted, sliced, expanded) and a contiguous tensor.
//!
//! An operand that is broadcast along any axis is a [`Strided::gather`] with a stride of zero, and its gradient a
//! [`Strided::scatter_add`].

use crate::error::{NumericsError, Result, expect_length};

/// A view: element (i, j, …) is at `offset + i · strides[0] + j · strides[1] + …` of its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided<'a> {
    /// Index of the first element.
    pub offset: usize,
    /// Size of each dimension.
    pub dims: &'a [usize],
    /// Elements of the storage from one index to the next; 0 repeats.
    pub strides: &'a [usize],
}

impl Strided<'_> {
    /// Copies the view into a contiguous tensor.
    ///
    /// # Errors
    /// A view that reaches beyond the storage, or a tensor of another size.
    pub fn gather<T: Copy>(&self, storage: &[T], tensor: &mut [T]) -> Result {
        self.check(storage.len(), tensor.len())?;
        self.each_run(|from, step, to, run| {
            let tensor = &mut tensor[to..to + run];
            if step == 1 {
                tensor.copy_from_slice(&storage[from..from + run]);
            } else {
                tensor.iter_mut().enumerate().for_each(|(i, x)| *x = storage[from + i * step]);
            }
        });
        Ok(())
    }

    /// Adds a contiguous tensor to the view: the gradient of [`gather`](Self::gather), also for repeated elements.
    ///
    /// # Errors
    /// A view that reaches beyond the storage, or a tensor of another size.
    pub fn scatter_add(&self, tensor: &[f32], storage: &mut [f32]) -> Result {
        self.check(storage.len(), tensor.len())?;
        self.each_run(|to, step, from, run| {
            tensor[from..from + run].iter().enumerate().for_each(|(i, x)| storage[to + i * step] += x);
        });
        Ok(())
    }

    /// Calls `f(index in the storage, step, index in the tensor, elements)` for each run along the
    /// last dimension, in order.
    fn each_run(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        let (&run, dims) = self.dims.split_last().unwrap_or((&1, &[]));
        let step = self.strides.last().copied().unwrap_or(1);
        let mut index = vec![0; dims.len()];
        let (mut place, mut done) = (self.offset, 0);
        for _ in 0..dims.iter().product::<usize>() {
            f(place, step, done, run);
            done += run;
            for d in (0..dims.len()).rev() {
                index[d] += 1;
                place += self.strides[d];
                if index[d] < dims[d] {
                    break;
                }
                place -= self.strides[d] * index[d];
                index[d] = 0;
            }
        }
    }

    fn check(&self, storage: usize, tensor: usize) -> Result {
        expect_length("the strides of a view", self.strides.len(), self.dims.len())?;
        expect_length("a contiguous copy of a view", tensor, self.dims.iter().product())?;
        let last: usize = self.dims.iter().zip(self.strides).map(|(dim, stride)| dim.saturating_sub(1) * stride).sum();
        if tensor == 0 || self.offset + last < storage {
            return Ok(());
        }
        let Self { dims, strides, offset, .. } = self;
        Err(NumericsError::Refused(format!(
            "a view of {dims:?} with strides {strides:?} from {offset} reaches beyond {storage} elements"
        )))
    }
}
