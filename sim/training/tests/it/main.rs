//! Runs of the executor from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod by_hand;
mod common;
mod daf_store;
mod fidelity;
mod invariants;
mod learning;
mod least_time;
mod mincut;
mod offloading;
mod phone;
mod planned;
mod pressure;
mod quantised;
mod restoring;
mod sage_memory;
mod support;
