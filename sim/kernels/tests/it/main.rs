//! The kernels under every instruction set that this machine has, against their definitions one element at a time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod compress;
mod int8;
mod layouts;
mod quantise;
mod reduce;
