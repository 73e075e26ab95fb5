//! DAF's page store (Liu et al., "DAF: An Efficient End-to-End Dynamic Activation Framework for On-Device DNN
//! Training", MobiSys 2025, section 3.4): one arena of pages for the activations of a training step, and two orders
//! of the activations that say which of them goes first when memory or time runs out.
//!
//! [`PageStore`] is the whole of it. It decides nothing: a policy reads [`PageStore::select_max`] and says what is
//! requantised or evicted, and whoever runs the step charges time for the [`Effects`] that each operation returns.
//!
//! Three readings of the paper:
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
//! - **Planned before placed.** The estimate before an iteration enters activations into the trees that have no pages
//!   yet (*unallocated*); the forward pass places them.

mod arena;
pub mod red_black;
mod store;
mod tournament;
pub mod upkeep;

use std::ops::AddAssign;

use haversack_devices::units::{Bytes, Nanos};
use thiserror::Error;

pub use store::PageStore;
pub use tournament::{Rank, Tournament};

/// How a [`PageStore`] is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of a page. Small pages lose less (half a page for each activation), large ones have fewer links and give
    /// a kernel longer stretches between two look-ups.
    pub page: Bytes,
    /// Bytes by which the arena grows and shrinks, rounded down to whole pages.
    pub step: Bytes,
    /// What the arena may reserve, rounded down to whole pages.
    pub budget: Bytes,
}

impl Config {
    /// 16 KiB: a multiple of every system page in use (4 and 16 KiB), and 65,536 values of two bits for one look-up.
    /// Over the 60 activations of ResNet-18 half a page each is 0.5 MB, under 1% of the 52 MB that the paper stores.
    pub const PAGE: Bytes = Bytes(16 * 1024);
    /// The step that section 4.3.3 finds right.
    pub const STEP: Bytes = Bytes(100_000_000);

    /// Default pages and steps under `budget`.
    #[must_use]
    pub const fn new(budget: Bytes) -> Self {
        Self { page: Self::PAGE, step: Self::STEP, budget }
    }
}

/// What an activation is ranked by, beside its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keys {
    /// What keeping it is worth, in any one unit; larger is worth more. Not NaN.
    pub importance: f64,
    /// What keeping it costs of the time budget.
    pub time: Nanos,
}

/// The constraint that is closer to being exhausted, hence the order in which victims are picked (section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tighter {
    /// Memory: the order by importance / size.
    Memory,
    /// Time: the order by importance / time.
    Time,
}

impl Tighter {
    /// The constraint with the smaller remaining proportion; memory where they are equal.
    ///
    /// Exact in integers: the remaining proportion is smaller where used / budget is larger.
    #[must_use]
    pub fn of((used, budget): (Bytes, Bytes), (spent, allowed): (Nanos, Nanos)) -> Self {
        let memory = u128::from(used.0) * u128::from(allowed.0);
        let time = u128::from(spent.0) * u128::from(budget.0);
        if time > memory { Self::Time } else { Self::Memory }
    }
}

/// What an operation did to the system's memory, for whoever charges time for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Calls that asked the system for a block.
    pub allocations: u32,
    /// The bytes that they got.
    pub allocated: Bytes,
    /// Calls that gave a block back.
    pub releases: u32,
    /// The bytes that they gave back.
    pub released: Bytes,
    /// Bytes of activations copied from one page to another: each is read once and written once.
    pub copied: Bytes,
}

impl AddAssign for Effects {
    fn add_assign(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.allocated += other.allocated;
        self.releases += other.releases;
        self.released += other.released;
        self.copied += other.copied;
    }
}

/// How well the arena is filled. `reserved = stored + internal + free`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Bytes held from the system.
    pub reserved: Bytes,
    /// Bytes of the activations themselves.
    pub stored: Bytes,
    /// Bytes lost in the last page of each activation.
    pub internal: Bytes,
    /// Bytes of free pages. Any activation may use them, so they are idle rather than lost.
    pub free: Bytes,
    /// Bytes of the longest stretch of free pages, what an arena without pages could still serve.
    pub longest_free: Bytes,
    /// Activations that have at least one page.
    pub placed: u32,
    /// Stretches of neighbouring pages in list order, over all activations.
    pub runs: u32,
    /// Stretches of the activation that has most.
    pub most_runs: u32,
}

/// Why the store refuses an operation; it is then unchanged.
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
    /// Ids index tables, so they stay below [`PageStore::IDS`].
    #[error("activation {id}: ids end at {}", PageStore::IDS - 1)]
    IdTooLarge {
        /// The id.
        id: u32,
    },
    /// No activation has this id.
    #[error("activation {id} is not in the store")]
    UnknownId {
        /// The id.
        id: u32,
    },
    /// The id is taken.
    #[error("activation {id} is in the store already")]
    KnownId {
        /// The id.
        id: u32,
    },
    /// NaN has no place in an order.
    #[error("activation {id}: its importance is not a number")]
    NotANumber {
        /// The id.
        id: u32,
    },
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
    /// It has no pages yet.
    #[error("activation {id} is planned, not placed")]
    NotPlaced {
        /// The id.
        id: u32,
    },
    /// It has its pages already.
    #[error("activation {id} is placed already")]
    Placed {
        /// The id.
        id: u32,
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
    /// The store keeps sizes alone; see [`PageStore::with_data`].
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

/// A smaller budget does not hold what is placed; the store is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{bytes} of pages must be given back before the arena fits into {budget}")]
pub struct Over {
    /// Bytes of pages to give back, by evicting or requantising.
    pub bytes: Bytes,
    /// The budget wanted.
    pub budget: Bytes,
}
