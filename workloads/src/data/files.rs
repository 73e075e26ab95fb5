//! Data sets on the disc, in common formats: CIFAR's binaries, MNIST's IDX, tables of texts.
//!
//! Also the faults of a data set on the disc, or of its name.

mod idx;
mod text;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use haversack_devices::text::{nearest, question};
use thiserror::Error;

use super::set::{Content, DataSet, ImageForm, SampleForm, Samples};
use super::{glyphs, linear, phrases, tails};

/// The kinds of paths, in a sentence.
pub(super) const KINDS: &str = "a folder with CIFAR's .bin files, a folder with IDX files (MNIST, FEMNIST; plain or .gz), \
    or a .csv or .tsv table of the columns text and label (or a folder with train.csv and test.csv)";

/// The share of the train part that is set aside for validation unless a specification gives another.
pub const VALIDATION_SHARE: f64 = 0.1;

/// Choices that a set on the disc leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadOptions {
    /// The share of the train part that becomes the validation part, if the set has none; for a table in one file the
    /// same share becomes the test part. [`VALIDATION_SHARE`] if it is not given.
    pub validation_share: Option<f64>,
    /// The seed of that cut.
    pub seed: u64,
    /// The number of tokens of a text: longer ones are cut, shorter ones padded.
    pub length: usize,
    /// The number of different tokens of a text, padding and unknown words included.
    pub vocabulary: usize,
}

impl Default for LoadOptions {
    /// A tenth, seed 0, and texts in the shape of [`phrases`].
    fn default() -> Self {
        let (length, vocabulary) = (phrases::LENGTH, phrases::VOCABULARY);
        Self { validation_share: None, seed: 0, length, vocabulary }
    }
}

/// The set `name`: `glyphs`, `linear`, `phrases`, `more-phrases`, those of [`tails`], a path, or a path after its kind
/// (`cifar10:`, `cifar100:`, `idx:`, `csv:`).
///
/// # Errors
/// A name that is neither; a file or folder that cannot be read, is of no known kind or of a wrong size, is empty, or
/// has labels that are out of range.
pub fn load(name: &str, options: &LoadOptions) -> Result<DataSet, DataError> {
    let has_validation = || match options.validation_share {
        Some(_) => {
            Err(DataError(format!("{name} brings a validation part of its own; expected no `validation_share`")))
        }
        None => Ok(()),
    };
    let made: Option<fn() -> DataSet> = match name {
        "glyphs" => Some(glyphs::data_set),
        "linear" => Some(linear::data_set),
        "phrases" => Some(phrases::data_set),
        "more-phrases" => Some(phrases::more),
        _ => None,
    };
    if let Some(set) = made.map(|made| has_validation().map(|()| made())) {
        return set;
    }
    if let Some(set) = tails::data_set(name) {
        return has_validation().map(|()| set);
    }
    let (kind, path) = match name.split_once(':').and_then(|(kind, path)| Some((Kind::named(kind)?, path))) {
        Some((kind, path)) => (Some(kind), Path::new(path)),
        None => (None, Path::new(name)),
    };
    if !path.exists() {
        if kind.is_some() || name.contains(['/', '\\', '.']) {
            return Err(DataError::read(path)(std::io::ErrorKind::NotFound.into()));
        }
        let nearest = nearest(name, ["glyphs", "linear", "tails", "phrases", "more-phrases"]);
        return Err(DataError::unknown(name, nearest));
    }
    let set = match kind.map_or_else(|| Kind::of(path), Ok)? {
        Kind::Cifar(cifar) => cifar.read(path)?,
        Kind::Idx => idx::read(path)?,
        Kind::Text => text::read(path, options)?,
    };
    let set = DataSet { id: name.to_owned(), ..set };
    if set.validation.is_empty() {
        return Ok(set.with_validation(options.validation_share.unwrap_or(VALIDATION_SHARE), options.seed));
    }
    has_validation().map(|()| set)
}

/// A kind of files.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Cifar(Cifar),
    Idx,
    Text,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "cifar10" => Some(Self::Cifar(Cifar::TEN)),
            "cifar100" => Some(Self::Cifar(Cifar::HUNDRED)),
            "idx" => Some(Self::Idx),
            "csv" | "tsv" => Some(Self::Text),
            _ => None,
        }
    }

    /// The kind of the file or folder at `path`.
    fn of(path: &Path) -> Result<Self, DataError> {
        if path.is_file() {
            return match path.extension().and_then(|extension| extension.to_str()) {
                Some("csv" | "tsv") => Ok(Self::Text),
                _ => Err(DataError::unrecognised(path, "a file whose name ends in neither .csv nor .tsv")),
            };
        }
        let files = files_of(path)?;
        let has = |name: &str| files.iter().any(|file| file.file_name().is_some_and(|found| found == name));
        if has("data_batch_1.bin") {
            Ok(Self::Cifar(Cifar::TEN))
        } else if has("train.bin") {
            Ok(Self::Cifar(Cifar::HUNDRED))
        } else if has("train.csv") || has("train.tsv") {
            Ok(Self::Text)
        } else if idx::find(&files, "train", "images").is_some() {
            Ok(Self::Idx)
        } else {
            let found = format!("a folder with none of their files among its {}", files.len());
            Err(DataError::unrecognised(path, found))
        }
    }
}

/// The files of a folder, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let entries = std::fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut files: Vec<PathBuf> =
        entries.map_err(DataError::read(folder))?.iter().map(std::fs::DirEntry::path).collect();
    files.sort();
    Ok(files)
}

/// No samples, of the kind of `like`.
fn none(like: &Samples) -> Samples {
    like.select(&[], 0)
}

// CIFAR-10 and CIFAR-100 in their binary version (Krizhevsky, "Learning multiple layers of features from tiny images",
// 2009): records of one label, or a coarse and a fine one, and an image of 3 × 32 × 32 bytes.

const SIDE: usize = 32;
const PIXELS: usize = 3 * SIDE * SIDE;

/// One of the two sets.
#[derive(Clone, Copy, Debug)]
struct Cifar {
    classes: usize,
    /// The bytes before an image; the last of them is the label.
    labels: usize,
    test: &'static str,
}

impl Cifar {
    const TEN: Self = Self { classes: 10, labels: 1, test: "test_batch.bin" };
    const HUNDRED: Self = Self { classes: 100, labels: 2, test: "test.bin" };

    /// The set in `folder`; nothing is set aside for validation.
    fn read(self, folder: &Path) -> Result<DataSet, DataError> {
        let train = self.part(&self.train_files(folder)?)?;
        let test = self.part(&[folder.join(self.test)])?;
        let form = ImageForm::measured(3, SIDE, SIDE, train.bytes());
        Ok(DataSet {
            id: String::new(),
            description: format!("CIFAR-{}: photographs of 32 × 32 pixels in {0} classes", self.classes),
            number_of_classes: self.classes,
            form: SampleForm::Image(form),
            validation: none(&train),
            train,
            test,
        })
    }

    fn train_files(self, folder: &Path) -> Result<Vec<PathBuf>, DataError> {
        if self.classes == 100 {
            return Ok(vec![folder.join("train.bin")]);
        }
        let is_batch = |file: &PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("data_batch_") && name.ends_with(".bin")
        };
        let files: Vec<PathBuf> = files_of(folder)?.into_iter().filter(is_batch).collect();
        let place = |number: usize| folder.join(format!("data_batch_{number}.bin"));
        match (1..=files.len().max(1)).map(place).find(|batch| !batch.exists()) {
            Some(missing) => Err(DataError::read(&missing)(std::io::ErrorKind::NotFound.into())),
            None => Ok(files),
        }
    }

    fn part(self, files: &[PathBuf]) -> Result<Samples, DataError> {
        let (mut images, mut labels) = (Vec::new(), Vec::new());
        for file in files {
            let bytes = std::fs::read(file).map_err(DataError::read(file))?;
            self.records(file, &bytes, &mut images, &mut labels)?;
        }
        Ok(Samples { content: Content::Images(images), labels })
    }

    fn records(self, file: &Path, bytes: &[u8], images: &mut Vec<u8>, labels: &mut Vec<u16>) -> Result<(), DataError> {
        let record = self.labels + PIXELS;
        let rest = bytes.len() % record;
        if rest != 0 || bytes.is_empty() {
            let found = if bytes.is_empty() { "an empty file".to_owned() } else { format!("a record of {rest} bytes") };
            let expected = format!("whole records of {record} bytes ({} of labels, {PIXELS} of pixels)", self.labels);
            return Err(DataError::wrong(file, Place::Byte(bytes.len() - rest), found, expected));
        }
        for (number, record_bytes) in bytes.chunks_exact(record).enumerate() {
            let label = record_bytes[self.labels - 1];
            if usize::from(label) >= self.classes {
                let place = Place::Byte(number * record + self.labels - 1);
                let expected = format!("a label from 0 to {}", self.classes - 1);
                return Err(DataError::wrong(file, place, format!("the label {label}"), expected));
            }
            labels.push(u16::from(label));
            images.extend_from_slice(&record_bytes[self.labels..]);
        }
        Ok(())
    }
}

/// Why a data set could not be loaded, as text: a file or folder that cannot be read or has the wrong content; a name
/// that is neither a generated set nor a path on the disc.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct DataError(String);

/// A position in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::Display)]
pub enum Place {
    /// A byte, counted from 0; in a compressed file, counted after decompression.
    #[strum(to_string = "byte {0}")]
    Byte(usize),
    /// A line, counted from 1.
    #[strum(to_string = "line {0}")]
    Line(u64),
}

impl DataError {
    pub(super) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self(format!("cannot read {}: {source}", path.display()))
    }

    pub(super) fn wrong(path: &Path, place: Place, found: impl Display, expected: impl Display) -> Self {
        Self(format!("{}, {place}: found {found}; expected {expected}", path.display()))
    }

    /// A file or folder of no known kind.
    pub(super) fn unrecognised(path: &Path, found: impl Display) -> Self {
        Self(format!("{}: found {found}; expected {KINDS}", path.display()))
    }

    pub(super) fn unknown(name: &str, nearest: Option<&str>) -> Self {
        let guess = question(nearest);
        Self(format!(
            "unknown data set '{name}'{guess}; expected glyphs, linear, tails, phrases, or the path of {KINDS}"
        ))
    }
}
