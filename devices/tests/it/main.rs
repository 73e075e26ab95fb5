//! Tests of the crate from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod base;
mod common;
mod cpu;
mod dsp;
mod energy;
mod errors;
mod frequency;
mod governor;
mod gpu;
mod gpu_library;
mod gpu_time;
mod shipped;
mod storage;
mod storage_lock_step;
mod storage_shipped;
mod strict_toml;
mod system;
mod thermal;
