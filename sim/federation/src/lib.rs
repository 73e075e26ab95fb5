//! Federations.
pub mod learning;
