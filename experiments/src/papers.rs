//! The papers as data, compared with our results: artefacts, rows of the reference with their status, readings, notes
//! and predicates; answers, verdicts and summaries of them.
//!
//! Nothing is simulated here: [`crate::reproduce`] runs artefacts and passes their answers in.

pub mod catalogue;
pub mod cells;
pub mod committed;
pub(crate) mod frame;
pub mod left_out;
pub mod notes;
pub mod predicate;
pub mod readings;
pub mod reference;
pub(crate) mod scoring;
pub(crate) mod shown;
pub mod status;
pub mod summary;

use cells::COLUMNS;
pub use cells::{Answer, ComparedCell, Verdict};
use frame::FigureFrame;
pub(crate) use frame::spelled;
use notes::{Facts, Note, Quantities};
use predicate::Predicate;
pub(crate) use readings::{Account, accounts};
pub use readings::{Reading, Readings};
use reference::COMPARISON;
pub use reference::{Claim, Reference, ReferenceRow, Role};
use shown::{Shown, SweptCase};
use status::{SCORING, SCORING_TEXT, Status};
