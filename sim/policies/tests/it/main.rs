//! Policies: each by hand and against brute force, the list, and the cost of calls on large networks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chains;
mod daf;
mod example;
mod fedhybrid;
mod growth;
mod lock_step;
mod mandheling;
mod policies;
mod quantised;
mod setting;
