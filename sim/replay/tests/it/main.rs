//! The replay of operator logs: against the published simulator's answers, rule by rule, and what a faulty log is told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod log_errors;
mod reference;
mod residual;
mod rules;
mod script;
