//! The built-in models: their names, the shapes that they take, and how their networks are built.
//!
//! `networks/models.toml` lists them; the templates in the same folder define their networks, one macro per family.

mod text;
mod width;

use std::sync::LazyLock;

use haversack_devices::ensure;
use haversack_devices::text::{nearest, question_or, read_toml};
use serde::{Deserialize, Deserializer};

use crate::{Network, WorkloadError};

pub use self::width::Width;

/// The largest side of an image, so that no count overflows.
const LARGEST_SIDE: u64 = 8192;
/// The most channels of an image.
const MOST_CHANNELS: u64 = 1024;

/// The form of a model's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sample {
    /// An image.
    Image {
        /// The model's own channels, height and width.
        own: [u64; 3],
    },
    /// A sequence of token ids.
    Tokens {
        /// The model's own length.
        own: [u64; 1],
        /// The fewest tokens that it takes.
        least: u64,
        /// The most tokens: the positions that it has.
        most: u64,
    },
}

impl Sample {
    /// The model's own shape.
    pub const fn own(&self) -> &[u64] {
        match self {
            Self::Image { own } => own,
            Self::Tokens { own, .. } => own,
        }
    }

    fn accepts(&self, shape: &[u64]) -> bool {
        match (self, shape) {
            (Self::Image { .. }, &[channels, height, width]) => {
                let side = 1..=LARGEST_SIDE;
                (1..=MOST_CHANNELS).contains(&channels) && side.contains(&height) && side.contains(&width)
            }
            (Self::Tokens { least, most, .. }, &[tokens]) => (*least..=*most).contains(&tokens),
            _ => false,
        }
    }

    /// The shapes that it takes, as text.
    fn takes(&self) -> String {
        let own = dimensions(self.own());
        match self {
            Self::Image { .. } => {
                format!("channels x height x width, such as its own {own}, with sides up to {LARGEST_SIDE}")
            }
            Self::Tokens { least, most, .. } => format!("a number of tokens from {least} to {most}; its own is {own}"),
        }
    }
}

/// A built-in model.
#[derive(Deserialize)]
pub struct Model {
    /// Its id on the command line.
    #[serde(deserialize_with = "kept")]
    pub id: Words,
    /// One line of description, with the source of its definition.
    #[serde(deserialize_with = "kept")]
    pub about: Words,
    /// The form of its samples.
    pub sample: Sample,
    /// The default number of classes; `None` if it predicts tokens.
    pub classes: Option<u64>,
    /// Whether its hidden layers can be narrower.
    #[serde(default)]
    narrows: bool,
    /// The macro that writes its network, with the arguments that distinguish it within its family.
    network: String,
}

impl Model {
    /// Its network, called `name`, with hidden layers of `width`.
    fn build(
        &self,
        name: &str,
        width: Width,
        input: Option<&[u64]>,
        classes: Option<u64>,
    ) -> Result<Network, WorkloadError> {
        let shape = input.unwrap_or(self.sample.own());
        let refuse = |reason: &str| WorkloadError::Input {
            model: name.to_owned(),
            message: format!("an input of {} {reason}; it takes {}", dimensions(shape), self.sample.takes()),
        };
        ensure!(self.sample.accepts(shape), refuse("does not fit"));
        let classes = self.classes_of(classes)?;
        let message = "it has no narrower form".to_owned();
        ensure!(self.narrows || width == Width::FULL, WorkloadError::Input { model: name.to_owned(), message });
        let mut network = Network::new(name);
        match text::build(&mut network, &self.network, shape, classes, width) {
            Ok(()) => Ok(network),
            // With the right rank, the only possible fault is a window larger than the rest of the map.
            Err(WorkloadError::Shape { module, .. }) => Err(refuse(&format!("is too small for {module}"))),
            Err(other) => Err(other),
        }
    }

    /// Its number of classes, `asked` if it allows that number; zero for a model without classes.
    fn classes_of(&self, asked: Option<u64>) -> Result<u64, WorkloadError> {
        let refuse = |message| Err(WorkloadError::Input { model: self.id.to_owned(), message });
        match (asked, self.classes) {
            (None, own) => Ok(own.unwrap_or(0)),
            (Some(classes), None) => refuse(format!("{classes} classes do not fit; it predicts tokens and has none")),
            (Some(classes), Some(own)) if !(1..=MOST_CLASSES).contains(&classes) => {
                refuse(format!("{classes} classes do not fit; it takes from 1 to {MOST_CLASSES}; its own are {own}"))
            }
            (Some(classes), _) => Ok(classes),
        }
    }
}

/// The largest number of classes that can be chosen.
const MOST_CLASSES: u64 = 1 << 20;

/// The file of the built-in models.
#[derive(Deserialize)]
struct Models {
    model: Vec<Model>,
}

/// All built-in models, in the order in which they are listed.
pub static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let read = read_toml::<Models>("models.toml", include_str!("../networks/models.toml"));
    read.map(|models| models.model).unwrap_or_default()
});

/// Words of that file, which are kept for the whole run of the program.
type Words = &'static str;

fn kept<'de, D: Deserializer<'de>>(words: D) -> Result<Words, D::Error> {
    String::deserialize(words).map(|words| &*words.leak())
}

/// Builds the model `id` for samples of shape `input`, or of the model's default shape if none is given.
///
/// The first layer takes as many channels as the input has; a layer after a flattening takes as many
/// features as remain.
///
/// # Errors
/// An unknown name, or an input that the model cannot take.
pub fn build(id: &str, input: Option<&[u64]>) -> Result<Network, WorkloadError> {
    build_for(id, input, None)
}

/// As [`build`], for samples of `classes` classes, or of the model's default number if none is given.
///
/// # Errors
/// As [`build`]; zero classes, or a number of classes for a model that predicts tokens.
pub fn build_for(id: &str, input: Option<&[u64]>, classes: Option<u64>) -> Result<Network, WorkloadError> {
    let (model, width) = named(id)?;
    model.build(id, width, input, classes)
}

/// As [`build_for`], a network with narrower hidden layers. `logistic` has none and stays as it is.
///
/// # Errors
/// As [`build_for`]; a model that has no narrower form.
pub fn build_narrow(
    id: &str,
    input: Option<&[u64]>,
    classes: Option<u64>,
    width: Width,
) -> Result<Network, WorkloadError> {
    named(id)?.0.build(id, width, input, classes)
}

/// The model of a name, such as `mobilenetv2`, and its width: `mobilenetv2@0.5` has half of the channels.
///
/// # Errors
/// A name of no model, or a width that the model cannot have.
pub fn named(name: &str) -> Result<(&'static Model, Width), WorkloadError> {
    let (id, width) = match name.split_once('@') {
        Some((id, width)) => {
            let wrong = |message| WorkloadError::Input { model: name.to_owned(), message };
            (id, width.parse().map_err(wrong)?)
        }
        None => (name, Width::FULL),
    };
    let model = MODELS.iter().find(|model| model.id == id).ok_or_else(|| {
        let nearest = nearest(id, MODELS.iter().map(|model| model.id));
        let guess = question_or(nearest, "expected an .onnx file, or an id of `haversack list models`");
        WorkloadError::Refused(format!("unknown model '{id}'{guess}"))
    })?;
    Ok((model, width))
}

fn dimensions(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}
