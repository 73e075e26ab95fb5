//! App-usage and memory traces: importers, the usage model, and synthetic users.

pub mod footprint;
pub mod import;
pub mod row;
pub mod usage;
