//! What was measured on real machines beside what is simulated: all sets that come along.

use crate::artefacts::prelude::*;
use crate::validate;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (table, panels) = validate::overview(context.cache)?;
    Ok(Outcome { table: Some(table), panels, ..Outcome::default() })
}
