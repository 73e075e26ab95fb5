//! A data set: what its samples look like, its three parts, and mini-batches of them.

use haversack_devices::calibration::fnv1a;
use serde::{Deserialize, Serialize};

use super::augmentation::Augmentation;
use super::augmentation::Draws;

/// The form of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageForm {
    /// The number of channels.
    pub channels: usize,
    /// The number of rows.
    pub height: usize,
    /// The number of columns.
    pub width: usize,
    /// The mean of each channel's bytes over the train part, which is subtracted.
    pub means: Vec<f32>,
    /// The standard deviation of each channel's bytes over the train part, by which the difference is divided.
    pub deviations: Vec<f32>,
}

/// The form of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleForm {
    /// An image: `channels` × `height` × `width` bytes, one plane per channel.
    Image(ImageForm),
    /// A sequence of tokens.
    Tokens {
        /// The number of tokens of every sequence.
        length: usize,
        /// The number of different tokens: ids lie below it.
        vocabulary: usize,
    },
}

impl SampleForm {
    /// The number of bytes or tokens of a sample.
    pub fn elements(&self) -> usize {
        match self {
            Self::Image(form) => form.channels * form.height * form.width,
            Self::Tokens { length, .. } => *length,
        }
    }
}

/// The samples of one part, one after another.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Content {
    /// Bytes of images, one plane per channel, row by row.
    Images(Vec<u8>),
    /// Ids of tokens.
    Tokens(Vec<u16>),
}

/// Samples with their labels.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Samples {
    /// The samples.
    pub content: Content,
    /// The class of each, counted from 0.
    pub labels: Vec<u16>,
}

impl Samples {
    /// The number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The bytes of images; nothing of tokens.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Images(bytes) => bytes,
            Content::Tokens(_) => &[],
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The samples at `indices`, each of `elements` bytes or tokens.
    pub(super) fn select(&self, indices: &[usize], elements: usize) -> Self {
        let content = match &self.content {
            Content::Images(bytes) => Content::Images(chosen(bytes, indices, elements).copied().collect()),
            Content::Tokens(ids) => Content::Tokens(chosen(ids, indices, elements).copied().collect()),
        };
        Self { content, labels: indices.iter().map(|&index| self.labels[index]).collect() }
    }
}

fn chosen<'a, T>(items: &'a [T], indices: &'a [usize], elements: usize) -> impl Iterator<Item = &'a T> {
    indices.iter().flat_map(move |&index| &items[index * elements..(index + 1) * elements])
}

/// Which part of a data set.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Part {
    /// To train the network.
    Train,
    /// To choose bits, batches and learning rates.
    Validation,
    /// To report, never to choose.
    Test,
}

/// Samples and labels, in three parts.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// The name of the set in a specification and under a figure.
    pub id: String,
    /// A description, in a sentence.
    pub description: String,
    /// The number of classes; labels lie below it.
    pub number_of_classes: usize,
    /// The form of a sample.
    pub form: SampleForm,
    /// The samples to train on.
    pub train: Samples,
    /// The samples to choose on.
    pub validation: Samples,
    /// The samples to report on.
    pub test: Samples,
}

/// The inputs of a mini-batch, samples first.
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    /// Normalised images, N × C × H × W.
    Images(Vec<f32>),
    /// Ids of tokens, N × length.
    Tokens(Vec<i64>),
}

/// A mini-batch as a network takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct MiniBatch {
    /// The inputs.
    pub inputs: Inputs,
    /// The class of each sample.
    pub labels: Vec<i64>,
}

impl DataSet {
    /// The samples of a part.
    pub fn part(&self, part: Part) -> &Samples {
        match part {
            Part::Train => &self.train,
            Part::Validation => &self.validation,
            Part::Test => &self.test,
        }
    }

    /// The set with a validation part cut from the train part: the share `share` of every class, drawn under `seed`.
    #[must_use]
    pub(crate) fn with_validation(mut self, share: f64, seed: u64) -> Self {
        let (kept, aside) = split_off(&self.train.labels, share, seed);
        let elements = self.form.elements();
        self.validation = self.train.select(&aside, elements);
        self.train = self.train.select(&kept, elements);
        self
    }

    /// The samples of `part` at `indices`, normalised, as a mini-batch in that order.
    ///
    /// # Panics
    ///
    /// Where an index is not below the number of samples of the part.
    pub fn mini_batch(&self, part: Part, indices: &[usize], augmentation: Option<&Augmentation>) -> MiniBatch {
        let samples = self.part(part);
        let elements = self.form.elements();
        let inputs = match (&samples.content, &self.form) {
            (Content::Images(bytes), SampleForm::Image(form)) => {
                Inputs::Images(images(bytes, form, indices, augmentation))
            }
            (Content::Images(bytes), SampleForm::Tokens { .. }) => {
                Inputs::Tokens(chosen(bytes, indices, elements).map(|&byte| i64::from(byte)).collect())
            }
            (Content::Tokens(ids), _) => {
                Inputs::Tokens(chosen(ids, indices, elements).map(|&id| i64::from(id)).collect())
            }
        };
        MiniBatch { inputs, labels: indices.iter().map(|&index| i64::from(samples.labels[index])).collect() }
    }

    /// FNV-1a, 64 bits, over every part's samples and labels, little-endian: the same set has the same digest on every
    /// machine.
    pub fn digest(&self) -> u64 {
        let parts = [&self.train, &self.validation, &self.test];
        fnv1a(parts.into_iter().flat_map(|samples| {
            let (bytes, ids): (&[u8], &[u16]) = match &samples.content {
                Content::Images(bytes) => (bytes, &[]),
                Content::Tokens(ids) => (&[], ids),
            };
            bytes.iter().copied().chain(ids.iter().chain(&samples.labels).flat_map(|word| word.to_le_bytes()))
        }))
    }
}

fn images(bytes: &[u8], form: &ImageForm, indices: &[usize], augmentation: Option<&Augmentation>) -> Vec<f32> {
    let plane = form.height * form.width;
    let elements = form.channels * plane;
    let tables: Vec<[f32; 256]> = (0..form.channels).map(|channel| normalised(form, channel)).collect();
    let mut values = Vec::with_capacity(indices.len() * elements);
    for &index in indices {
        let image = &bytes[index * elements..(index + 1) * elements];
        let change = augmentation.map(|augmentation| augmentation.of(index));
        for (pixels, table) in image.chunks_exact(plane).zip(&tables) {
            match &change {
                None => values.extend(pixels.iter().map(|&byte| table[usize::from(byte)])),
                Some(change) => values.extend((0..plane).map(|place| {
                    let source = change.source(form, place / form.width, place % form.width);
                    table[usize::from(pixels[source])]
                })),
            }
        }
    }
    values
}

/// The normalised value of each byte of a channel.
fn normalised(form: &ImageForm, channel: usize) -> [f32; 256] {
    std::array::from_fn(|byte| (byte as f32 - form.means[channel]) / form.deviations[channel])
}
/// The numbers of images to train on, to choose on and to report on, in a small generated set.
pub(super) const MADE: [usize; 3] = [10_000, 1000, 2000];

impl DataSet {
    /// Generated images: `sample` draws the image of a number, appends its bytes and returns its class.
    pub(super) fn made(
        id: &str,
        description: &str,
        number_of_classes: usize,
        [channels, height, width]: [usize; 3],
        numbers: [usize; 3],
        sample: impl Fn(u64, &mut Vec<u8>) -> u16,
    ) -> Self {
        let mut first = 0;
        let [train, validation, test] = numbers.map(|number| {
            let mut bytes = Vec::with_capacity(number * channels * height * width);
            let labels = (first..first + number as u64).map(|index| sample(index, &mut bytes)).collect();
            first += number as u64;
            Samples { content: Content::Images(bytes), labels }
        });
        let form = SampleForm::Image(ImageForm::measured(channels, height, width, train.bytes()));
        let (id, description) = (id.to_owned(), description.to_owned());
        Self { id, description, number_of_classes, form, train, validation, test }
    }
}

impl ImageForm {
    /// The form of images of this size whose means and deviations are those of `bytes`, the train part.
    pub(super) fn measured(channels: usize, height: usize, width: usize, bytes: &[u8]) -> Self {
        let plane = height * width;
        let (means, deviations) = (0..channels).map(|channel| moments(bytes, plane, channels, channel)).unzip();
        Self { channels, height, width, means, deviations }
    }
}

/// The mean and the standard deviation of a channel's bytes; 1 for a channel of one colour. Sums of integers are exact.
fn moments(bytes: &[u8], plane: usize, channels: usize, channel: usize) -> (f32, f32) {
    let (mut sum, mut squares, mut number) = (0_u64, 0_u64, 0_u64);
    for pixels in bytes.chunks_exact(plane).skip(channel).step_by(channels) {
        for &byte in pixels {
            sum += u64::from(byte);
            squares += u64::from(byte) * u64::from(byte);
        }
        number += plane as u64;
    }
    let number = number.max(1) as f64;
    let mean = sum as f64 / number;
    let deviation = (squares as f64 / number - mean * mean).max(0.0).sqrt();
    (mean as f32, if deviation > 0.0 { deviation as f32 } else { 1.0 })
}

/// The order in which epoch number `epoch` visits `samples` samples: a permutation of 0 to `samples` − 1.
///
/// It depends only on the seed and the epoch, so that policies are compared on the same mini-batches and a resumed run
/// continues as the uninterrupted one would.
pub fn epoch_order(samples: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..samples).collect();
    Draws::new(seed, "shuffle", epoch).shuffle(&mut order);
    order
}

/// The samples that stay for training and those set aside: the share `share` of every class, rounded to the nearest
/// sample, drawn under `seed`. Both keep the original order of the samples.
pub fn split_off(labels: &[u16], share: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let classes = labels.iter().max().map_or(0, |&label| usize::from(label) + 1);
    let mut by_class = vec![Vec::new(); classes];
    for (sample, &label) in labels.iter().enumerate() {
        by_class[usize::from(label)].push(sample);
    }
    let mut aside = vec![false; labels.len()];
    for (class, mut members) in by_class.into_iter().enumerate() {
        let number = (members.len() as f64 * share.clamp(0.0, 1.0)).round() as usize;
        Draws::new(seed, "validation", class as u64).shuffle(&mut members);
        members.into_iter().take(number).for_each(|sample| aside[sample] = true);
    }
    (0..labels.len()).partition(|&sample| !aside[sample])
}
