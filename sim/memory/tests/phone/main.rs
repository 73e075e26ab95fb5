//! The phone's memory: mechanisms against hand arithmetic, lmkd's decisions, and a slow twin in lock step.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lmkd;
mod mechanisms;
mod pressure;
mod support;
mod twin;
