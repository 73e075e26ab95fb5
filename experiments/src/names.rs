//! Guessing which name was meant, and naming the alternatives.

pub use haversack_devices::text::{alternatives, hint, nearest};
