//! Framework memory and the phone's memory against hand arithmetic and slow twins.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod allocators;
mod pages;
mod pages_twin;
mod phone;
