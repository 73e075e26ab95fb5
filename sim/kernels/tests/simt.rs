//! The SIMT machine: its numbers against plain loops, its counts against hand arithmetic and closed forms.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "simt/common.rs"]
mod common;
#[path = "simt/contention.rs"]
mod contention;
#[path = "simt/machine.rs"]
mod machine;
#[path = "simt/packing.rs"]
mod packing;
#[path = "simt/profile.rs"]
mod profile;
#[path = "simt/reductions.rs"]
mod reductions;
