//! Figures, tables, frames, files and the page, from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod browser;
mod data;
mod figures;
mod page;
