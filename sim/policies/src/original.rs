//! `original`: no memory management. Everything is kept; a run that does not fit fails.

use crate::Policy;

/// Its name.
pub const ID: &str = "original";

/// No memory management.
#[derive(Clone, Copy, Debug, Default)]
pub struct Original;

impl Policy for Original {}
