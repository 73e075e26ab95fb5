//! The replay of operator logs: compared with the results of the published simulator, rule by rule, and
//! the errors of faulty logs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod log_errors;
mod reference;
mod residual;
mod rules;
mod script;
