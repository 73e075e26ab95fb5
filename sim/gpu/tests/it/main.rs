//! A SIMT machine: its numbers against plain loops, its counts against hand arithmetic, and the
//! closed forms against both.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod contention;
mod machine;
mod profile;
mod reductions;
mod simt;
