//! Operators against hand arithmetic, slow twins, finite differences and PyTorch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bytes;
mod common;
mod convolution;
mod integers;
mod meter;
mod operators;
mod pytorch;
mod steps;
