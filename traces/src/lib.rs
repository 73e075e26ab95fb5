//! App-usage and memory traces: importers, the usage model, and synthetic users.

pub mod import;
pub mod usage;
