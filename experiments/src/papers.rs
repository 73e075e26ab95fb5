//! The papers as data, and how ours stands beside them: artefacts, rows of the reference with their status, readings, notes
//! and predicates; answers, verdicts and what they come to.
//!
//! Nothing here simulates: [`crate::reproduce`] runs artefacts and hands their answers in.

mod accounting;
pub mod answer;
pub mod catalogue;
pub mod cells;
pub mod committed;
pub(crate) mod frame;
pub mod left_out;
pub(crate) mod names;
pub mod notes;
pub mod predicate;
pub(crate) mod quantity;
pub mod readings;
pub mod reference;
mod rows_panel;
pub(crate) mod scoring;
pub(crate) mod shown;
pub mod status;
pub mod summary;

pub(crate) use accounting::{Account, accounts};
pub use answer::Answer;
pub(crate) use names::spelled;
