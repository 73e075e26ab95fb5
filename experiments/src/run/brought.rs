//! A policy that is no line of the registry: a program brings it for trying an idea.

use std::fmt;
use std::sync::Arc;

use haversack_policies::Policy;

/// A policy that a program brings.
#[derive(Clone)]
pub struct Brought {
    /// What results call it.
    pub(super) name: String,
    build: Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>,
}

impl Brought {
    /// What `build` makes, called `name`. It is asked once for each run, one run after the other: finding the least budget
    /// that works takes many.
    pub fn new(name: impl Into<String>, build: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), build: Arc::new(build) }
    }

    pub(super) fn build(&self) -> Box<dyn Policy> {
        (self.build)()
    }
}

impl fmt::Debug for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brought").field("name", &self.name).finish_non_exhaustive()
    }
}
