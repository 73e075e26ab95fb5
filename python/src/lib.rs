//! haversack for Python: the functions that the package `haversack` (`package/haversack`) calls.
//!
//! A function here takes the arguments of a command of the command line, calls the same function of the crate
//! `haversack`, and returns its answer; nothing is implemented twice.
//!
//! ```text
//! haversack.simulate(device="galaxy-s10", policy=MyPolicy())      package/haversack
//!        │ keys as TOML                    │ hooks
//!        ▼                                 ▼
//!   values ──► call::watched ──► haversack::simulate ◄── policy::Hooks (asks Python again)
//!                   │ a separate thread, the interpreter free; Ctrl-C, panics
//!                   ▼
//!          dictionary, or error ──► InputError · NoPlanError · RunError
//! ```

mod call;
mod commands;
mod error;
mod memory;
mod policy;
mod values;

use pyo3::prelude::*;

/// The calls of the package.
#[pymodule]
mod _native {
    #[cfg(debug_assertions)]
    #[pymodule_export]
    use super::commands::fault;
    #[pymodule_export]
    use super::commands::{federate, main, reproduce, simulate, sweep, train};
    #[pymodule_export]
    use super::memory::{Memory, Tensor};
    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
