//! Data to train on: samples and labels in three parts, drawn into mini-batches.
//!
//! [`glyphs`] (images), [`linear`] and [`tails`] (values) and [`phrases`] (sequences of tokens) are made by code, always the same bytes;
//! nothing is downloaded. [`load`] finds them by name and reads other sets from the disc. A [`DataSet`] says what a sample looks like ([`SampleForm`]) and holds the parts train, validation and test; the
//! order of an epoch follows from the seed and the number of the epoch alone ([`epoch_order`]).

mod augmentation;
mod files;
pub mod glyphs;
pub mod linear;
pub mod phrases;
mod set;
pub mod tails;

pub use augmentation::Augmentation;
pub(crate) use augmentation::Draws;
pub use files::{DataError, LoadOptions, Place, VALIDATION_SHARE, load};
pub use set::{Content, DataSet, ImageForm, Inputs, MiniBatch, Part, SampleForm, Samples, epoch_order, split_off};
