//! DAF's pages (Liu et al., "DAF: An Efficient End-to-End Dynamic Activation Framework for On-Device DNN Training", MobiSys
//! 2025, section 3.4): where the activations of a training step lie, and which of them goes first.
//!
//! - [`PageArena`] keeps activations in pages, with or without their bytes. Whoever runs the step charges time for the
//!   [`Effects`] of each operation.
//! - [`PageTable`] keeps their order: a policy enters what it plans to keep, reads [`PageTable::first`] and decides what
//!   is requantised or evicted.
//! - [`order_cost`] counts what keeping an order costs, by a sort and by [red-black trees](red_black).
//!
//! Two readings of the paper:
//!
//! - **The maximum is the first to go.** Algorithm 3 gives the trees the keys importance / size and importance / time
//!   and picks `SelectMax` as the victim; section 3.4.1 keeps what is worth most for its size. Both hold only if the
//!   trees are ordered from the most to the least valuable. So the maximum here is the activation with the *smallest*
//!   quotient; ties go to the smaller quotient of the other constraint, then to the smaller id.
//! - **Steps are blocks.** Section 3.4.4 grows the storage by 100 MB "up to the upper limit of the budget" and
//!   section 4.3.3 frees memory "in units of entire allocated blocks". So growing allocates a block and copies
//!   nothing; the last block is cut to what the budget leaves, which is what a step larger than the budget comes to;
//!   a smaller budget gives whole blocks back from the end, and pages in use beyond the new end are copied into free
//!   pages before it.

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

/// The first id that is too large: ids index tables.
pub const IDS: u32 = 1 << 22;

/// Why an arena or a table refuses an operation; it is then unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PageError {
    /// A page must hold something.
    #[error("a page of 0 bytes")]
    EmptyPage,
    /// The first budget must hold a page.
    #[error("a budget of {budget} is smaller than a page of {page}")]
    BudgetBelowPage {
        /// The budget.
        budget: Bytes,
        /// The page.
        page: Bytes,
    },
    /// A step must hold a page.
    #[error("a step of {step} is smaller than a page of {page}")]
    StepBelowPage {
        /// The step.
        step: Bytes,
        /// The page.
        page: Bytes,
    },
    /// An id that is too large: they stay below [`IDS`].
    #[error("activation {0}: ids end at {last}", last = IDS - 1)]
    IdTooLarge(u32),
    /// No activation has the id.
    #[error("activation {0} is not in the store")]
    UnknownId(u32),
    /// The id is taken.
    #[error("activation {0} is in the store already")]
    KnownId(u32),
    /// The importance of the activation of this id: NaN has no place in an order.
    #[error("activation {0}: its importance is not a number")]
    NotANumber(u32),
    /// The budget has no pages left for it.
    #[error("activation {id}: {missing} of pages are missing under a budget of {budget}")]
    Full {
        /// The id.
        id: u32,
        /// Bytes of pages that must be given back first.
        missing: Bytes,
        /// The budget.
        budget: Bytes,
    },
    /// Requantising in place only makes smaller.
    #[error("activation {id} is placed with {held} and cannot grow to {wanted}")]
    Grows {
        /// The id.
        id: u32,
        /// Its size.
        held: Bytes,
        /// The size wanted.
        wanted: Bytes,
    },
    /// The arena keeps sizes alone; see [`PageArena::with_data`].
    #[error("the store keeps sizes, not data")]
    NoData,
    /// An activation is read and written whole.
    #[error("activation {id} has {size}, not {given}")]
    WrongLength {
        /// The id.
        id: u32,
        /// Its size.
        size: Bytes,
        /// The length given.
        given: Bytes,
    },
}
