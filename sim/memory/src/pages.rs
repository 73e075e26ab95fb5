//! DAF's pages (Liu et al., "DAF: An Efficient End-to-End Dynamic Activation Framework for On-Device DNN Training",
//! MobiSys 2025, section 3.4): the place of a training step's activations, and their order of eviction.
//!
//! - [`PageArena`] keeps activations in pages, with or without their bytes. Each operation returns its [`Effects`],
//!   from which the caller charges time.
//! - [`PageTable`] keeps their order: a policy inserts the activations that it plans to keep, reads
//!   [`PageTable::first`] and decides what is requantised or evicted.
//! - [`order_cost`] counts the operations that keep an order, for a sort and for [red-black trees](red_black).
//!
//! Two readings of the paper:
//!
//! - **The maximum is the first to go.** Algorithm 3 gives the trees the keys importance / size and importance /
//!   time and picks `SelectMax` as the victim; section 3.4.1 keeps the activations that are worth most for their
//!   size. The two agree only if the trees are ordered from the most to the least valuable. Therefore the maximum
//!   here is the activation with the *smallest* quotient; ties go to the smaller quotient of the other constraint,
//!   then to the smaller id.
//! - **Steps are blocks.** Section 3.4.4 grows the storage by 100 MB "up to the upper limit of the budget" and section
//!   4.3.3 frees memory "in units of entire allocated blocks". Growing therefore allocates a block and copies nothing.
//!   The last block is cut to the rest of the budget, also if a single step is larger than the budget. A smaller budget
//!   releases whole blocks from the end, after pages in use there are copied into free pages before it.

mod arena;
mod blocks;
pub mod order_cost;
pub mod red_black;
mod table;
mod tournament;

use haversack_devices::Bytes;
use thiserror::Error;

pub use arena::{ArenaConfig, Effects, Fragmentation, Over, PageArena};
pub use table::{Keys, PageTable, Tighter};
pub use tournament::{Rank, Tournament};

/// The smallest id that is too large: ids index tables.
pub const IDS: u32 = 1 << 22;

/// Why an arena or a table rejects an operation, which leaves it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PageError {
    /// A page must not be empty.
    #[error("a page of 0 bytes")]
    EmptyPage,
    /// The initial budget is smaller than a page.
    #[error("a budget of {budget} is smaller than a page of {page}")]
    BudgetBelowPage {
        /// The budget.
        budget: Bytes,
        /// The page.
        page: Bytes,
    },
    /// A step is smaller than a page.
    #[error("a step of {step} is smaller than a page of {page}")]
    StepBelowPage {
        /// The step.
        step: Bytes,
        /// The page.
        page: Bytes,
    },
    /// The id is too large; ids are below [`IDS`].
    #[error("activation {0}: ids end at {last}", last = IDS - 1)]
    IdTooLarge(u32),
    /// No activation has the id.
    #[error("activation {0} is not in the store")]
    UnknownId(u32),
    /// The id is already in use.
    #[error("activation {0} is in the store already")]
    KnownId(u32),
    /// The importance for this id is NaN, which has no place in an order.
    #[error("activation {0}: its importance is not a number")]
    NotANumber(u32),
    /// The budget has no room for the pages.
    #[error("activation {id}: {missing} of pages are missing under a budget of {budget}")]
    Full {
        /// The id.
        id: u32,
        /// Bytes of pages that must be freed first.
        missing: Bytes,
        /// The budget.
        budget: Bytes,
    },
    /// Requantising in place cannot increase the size.
    #[error("activation {id} is placed with {placed} and cannot grow to {wanted}")]
    Grows {
        /// The id.
        id: u32,
        /// Its size.
        placed: Bytes,
        /// The requested size.
        wanted: Bytes,
    },
    /// The arena keeps only sizes; see [`PageArena::with_data`].
    #[error("the store keeps sizes, not data")]
    NoData,
    /// The length differs: an activation is read and written as a whole.
    #[error("activation {id} has {size}, not {given}")]
    WrongLength {
        /// The id.
        id: u32,
        /// Its size.
        size: Bytes,
        /// The length in the call.
        given: Bytes,
    },
}
