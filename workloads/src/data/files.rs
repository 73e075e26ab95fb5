//! Data sets on the disc, of the kinds that are handed round: CIFAR's binaries, MNIST's IDX, tables of texts.

mod cifar;
mod idx;
mod text;

use std::path::{Path, PathBuf};

use haversack_devices::text::nearest;

use super::error::DataError;
use super::set::{DataSet, Samples};
use super::{glyphs, linear, phrases};
use cifar::Cifar;

/// What a path may be, in a sentence.
pub(super) const KINDS: &str = "a folder with CIFAR's .bin files, a folder with IDX files (MNIST, FEMNIST; plain or .gz), \
    or a .csv or .tsv table of the columns text and label (or a folder with train.csv and test.csv)";

/// The share of the train part that is set aside for validation unless a specification says another.
pub const VALIDATION_SHARE: f64 = 0.1;

/// What a set on the disc leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadOptions {
    /// The share of the train part that becomes the validation part, where the set brings none; of a table in one file
    /// as much becomes the test part.
    pub validation_share: f64,
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
        Self { validation_share: VALIDATION_SHARE, seed: 0, length, vocabulary }
    }
}

/// The set `name`: `glyphs`, `linear`, `phrases`, `more-phrases`, a path, or a path behind its kind (`cifar10:`, `cifar100:`, `idx:`, `csv:`).
///
/// # Errors
/// A name that is neither; a file or folder that cannot be read, of no known kind, of a wrong size, empty, or with labels
/// that are out of range.
pub fn load(name: &str, options: &LoadOptions) -> Result<DataSet, DataError> {
    match name {
        "glyphs" => return Ok(glyphs::data_set()),
        "linear" => return Ok(linear::data_set()),
        "phrases" => return Ok(phrases::data_set()),
        "more-phrases" => return Ok(phrases::more()),
        _ => {}
    }
    let (kind, path) = match name.split_once(':').and_then(|(kind, path)| Some((Kind::named(kind)?, path))) {
        Some((kind, path)) => (Some(kind), Path::new(path)),
        None => (None, Path::new(name)),
    };
    if !path.exists() {
        if kind.is_some() || name.contains(['/', '\\', '.']) {
            return Err(DataError::read(path)(std::io::ErrorKind::NotFound.into()));
        }
        let nearest = nearest(name, ["glyphs", "linear", "phrases", "more-phrases"]).map(str::to_owned);
        return Err(DataError::Unknown { name: name.to_owned(), nearest });
    }
    let set = match kind.map_or_else(|| Kind::of(path), Ok)? {
        Kind::Cifar(cifar) => cifar.read(path)?,
        Kind::Idx => idx::read(path)?,
        Kind::Text => text::read(path, options)?,
    };
    let set = DataSet { id: name.to_owned(), ..set };
    Ok(if set.validation.is_empty() { set.with_validation(options.validation_share, options.seed) } else { set })
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

    /// The kind of what lies at `path`.
    fn of(path: &Path) -> Result<Self, DataError> {
        if path.is_file() {
            let found = "a file whose name ends in neither .csv nor .tsv".to_owned();
            return match path.extension().and_then(|extension| extension.to_str()) {
                Some("csv" | "tsv") => Ok(Self::Text),
                _ => Err(DataError::Unrecognised { path: path.to_path_buf(), found }),
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
            Err(DataError::Unrecognised { path: path.to_path_buf(), found })
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
