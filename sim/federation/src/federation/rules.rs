//! How rounds are held.

use serde::{Deserialize, Serialize};

use crate::selection::SelectorKind;

/// How rounds are held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Who takes part.
    pub selector: SelectorKind,
    /// Updates that a round waits for.
    pub cohort: u32,
    /// Phones that begin a round, as a multiple of the cohort.
    pub over_commit: f64,
    /// How long a round lasts at most, in seconds; `None` without a limit.
    pub deadline_s: Option<f64>,
    /// Whether memory is no matter: phones that can hold no plan take part all the same (the paper's *oracle*, section 2.1).
    pub oracle: bool,
}

/// Rules that contradict themselves or the population.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{field}` is {value}, expected {expected}")]
pub struct RulesError {
    /// The field.
    pub field: &'static str,
    /// What it is.
    pub value: String,
    /// What it may be.
    pub expected: String,
}

impl Rules {
    /// Synchronous rounds of 1.3 times the cohort, as FedScale over-commits, without a deadline.
    pub const fn new(selector: SelectorKind, cohort: u32) -> Self {
        Self { selector, cohort, over_commit: 1.3, deadline_s: None, oracle: false }
    }

    /// # Errors
    /// No cohort, one larger than the population, over-commitment below one, or a deadline that is no time.
    pub fn check(&self, phones: u32) -> Result<(), RulesError> {
        let wrong = |field, value: String, expected: String| Err(RulesError { field, value, expected });
        if self.cohort == 0 || self.cohort > phones {
            return wrong(
                "cohort",
                self.cohort.to_string(),
                format!("from 1 to the {phones} phones of the population"),
            );
        }
        if !(self.over_commit >= 1.0 && self.over_commit.is_finite()) {
            return wrong("over_commit", self.over_commit.to_string(), "a number from 1".to_owned());
        }
        match self.deadline_s {
            Some(deadline) if !(deadline > 0.0 && deadline.is_finite()) => {
                wrong("deadline_s", deadline.to_string(), "a time above 0 s".to_owned())
            }
            _ => Ok(()),
        }
    }
}
