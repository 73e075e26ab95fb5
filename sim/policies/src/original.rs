//! `original`: no memory management. Everything is kept, and what does not fit does not run.

use crate::{Entry, Policy};

/// How scenarios name it, and what they can set.
pub static ENTRY: Entry = Entry {
    id: "original",
    about: "no memory management: everything is kept",
    description: "Every tensor that backward needs is kept from forward on, and nothing gives way: a run that does not fit its budget does not run. It is what percentages of budgets, and slow-downs, are relative to.",
    citation: "Gim and Ko, MobiSys 2022, section 4",
    ..Entry::built_by(|_| Ok(Box::new(Original)))
};

/// No memory management.
#[derive(Clone, Copy, Debug, Default)]
pub struct Original;

impl Policy for Original {}
