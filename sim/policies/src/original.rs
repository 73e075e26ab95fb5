//! `original`: no memory management. Everything is kept, and what does not fit does not run.

use crate::Policy;

/// Its name.
pub const ID: &str = "original";

/// No memory management.
#[derive(Clone, Copy, Debug, Default)]
pub struct Original;

impl Policy for Original {}
