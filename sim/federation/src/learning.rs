//! Local training for real: what clients learn is measured, on stand-ins small enough to train here.
//!
//! A [`StandIn`] is a network with its arithmetic. A client trains it from the server's weights on its own samples
//! ([`LocalSgd`]), which a [`Source`] draws for it, and sends its change back ([`Update`]). Weights travel as one flat slice
//! of f32 in the order of the network's parameters, which is what aggregation works on; narrower copies of a network are
//! leading slices of it ([`Narrowing`]).

mod deal;
mod error;
mod local;
mod narrowing;
mod server;
mod source;
mod stand_in;
mod synthetic;

pub use deal::Deal;
pub use error::LearningError;
pub use local::{LocalSgd, Trainee, Turn, Update, train_all};
pub use narrowing::Narrowing;
pub use server::{Contribution, Server, ServerRule, Yogi, mean_change};
pub use source::{Holding, Labels, Source};
pub use stand_in::{Score, StandIn};
pub use synthetic::Synthetic;
