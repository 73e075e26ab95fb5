//! CIFAR-10 and CIFAR-100 in their binary version (Krizhevsky, "Learning multiple layers of features from tiny images",
//! 2009): records of one label, or a coarse and a fine one, and an image of 3 × 32 × 32 bytes.

use std::path::{Path, PathBuf};

use super::{files_of, none};
use crate::data::error::{DataError, Place};
use crate::data::set::{Content, DataSet, ImageForm, SampleForm, Samples};

const SIDE: usize = 32;
const PIXELS: usize = 3 * SIDE * SIDE;

/// One of the two sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cifar {
    classes: usize,
    /// The bytes before an image; the last of them is the label.
    labels: usize,
    test: &'static str,
}

impl Cifar {
    pub(super) const TEN: Self = Self { classes: 10, labels: 1, test: "test_batch.bin" };
    pub(super) const HUNDRED: Self = Self { classes: 100, labels: 2, test: "test.bin" };

    /// The set in `folder`; nothing is set aside for validation.
    pub(super) fn read(self, folder: &Path) -> Result<DataSet, DataError> {
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
        Ok(if files.is_empty() { vec![folder.join("data_batch_1.bin")] } else { files })
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
