//! Importers, the usage model, footprints and timelines, from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod import;
mod import_android;
mod import_carat;
mod import_fuzz;
mod import_support;
mod usage;
mod usage_fit;
mod usage_footprint;
mod usage_timeline;
