//! figure2.

use crate::reproduce::{ArtefactError, Context, Outcome};

pub(super) fn times(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}

pub(super) fn states(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}

pub(super) fn pages(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}
