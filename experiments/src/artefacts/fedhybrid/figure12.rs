//! figure12.

use crate::reproduce::{ArtefactError, Context, Outcome};

pub(super) fn run(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}
