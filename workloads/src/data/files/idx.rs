//! IDX, the files of MNIST (LeCun, Cortes, Burges, "The MNIST database of handwritten digits") and of FEMNIST: two
//! zeros, the type of the values, the number of dimensions, the dimensions as big-endian 32-bit integers, the values.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::{DataError, Place, files_of, none};
use crate::data::set::{Content, DataSet, ImageForm, SampleForm, Samples};

/// The type of unsigned bytes.
const BYTES: u8 = 8;

/// The set in `folder`; nothing is set aside for validation.
pub(super) fn read(folder: &Path) -> Result<DataSet, DataError> {
    let files = files_of(folder)?;
    let (train, size) = part(folder, &files, &["train"])?;
    let (test, test_size) = part(folder, &files, &["t10k", "test"])?;
    if test_size != size {
        let found = format!("images of {} × {} pixels to test on", test_size.0, test_size.1);
        let expected = format!("{} × {}, as to train on", size.0, size.1);
        return Err(DataError::wrong(folder, Place::Byte(8), found, expected));
    }
    let classes = train.labels.iter().max().map_or(0, |&label| usize::from(label) + 1);
    if let Some(place) = test.labels.iter().position(|&label| usize::from(label) >= classes) {
        let found = format!("the label {} of a test image", test.labels[place]);
        let expected = format!("a label from 0 to {}, which the train part has", classes - 1);
        return Err(DataError::wrong(folder, Place::Byte(8 + place), found, expected));
    }
    Ok(DataSet {
        id: String::new(),
        description: format!("images of {} × {} pixels in {classes} classes (IDX)", size.0, size.1),
        number_of_classes: classes,
        form: SampleForm::Image(ImageForm::measured(1, size.0, size.1, train.bytes())),
        validation: none(&train),
        train,
        test,
    })
}

/// The file of a folder whose name contains both words.
pub(super) fn find<'f>(files: &'f [PathBuf], part: &str, what: &str) -> Option<&'f PathBuf> {
    files.iter().find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        name.contains(part) && name.contains(what) && name.contains("idx")
    })
}

/// Images and labels of the part with one of `names`, and the rows and columns of an image.
fn part(folder: &Path, files: &[PathBuf], names: &[&str]) -> Result<(Samples, (usize, usize)), DataError> {
    let found = |what: &str| {
        let none = || DataError::unrecognised(folder, format!("no file of {}'s {what}", names.join(" or ")));
        names.iter().find_map(|name| find(files, name, what)).ok_or_else(none)
    };
    let (images_file, labels_file) = (found("images")?, found("labels")?);
    let (shape, images) = values(images_file, 3)?;
    let (number, labels) = values(labels_file, 1)?;
    if number[0] != shape[0] {
        let found = format!("{} labels", number[0]);
        let expected = format!("{}, as many as {} has images", shape[0], images_file.display());
        return Err(DataError::wrong(labels_file, Place::Byte(4), found, expected));
    }
    let labels = labels.into_iter().map(u16::from).collect();
    Ok((Samples { content: Content::Images(images), labels }, (shape[1], shape[2])))
}

/// The dimensions and the values of a file of `dimensions` dimensions.
fn values(file: &Path, dimensions: usize) -> Result<(Vec<usize>, Vec<u8>), DataError> {
    let mut bytes = content(file)?;
    let wrong =
        |place, found: String, expected: String| Err(DataError::wrong(file, Place::Byte(place), found, expected));
    let head = 4 + 4 * dimensions;
    if bytes.len() < head {
        return wrong(bytes.len(), "the end of the file".to_owned(), format!("a head of {head} bytes"));
    }
    let magic = [0, 0, BYTES, dimensions as u8];
    if bytes[..4] != magic {
        return wrong(0, format!("{:?}", &bytes[..4]), format!("{magic:?}: bytes in {dimensions} dimensions"));
    }
    let shape: Vec<usize> = bytes[4..head]
        .chunks_exact(4)
        .map(|four| four.iter().fold(0, |size, &byte| size << 8 | usize::from(byte)))
        .collect();
    if let Some(place) = shape.iter().position(|&size| size == 0) {
        return wrong(4 + 4 * place, "a dimension of 0".to_owned(), "at least one sample, row and column".to_owned());
    }
    let expected = shape.iter().try_fold(head, |size, &dimension| {
        let values = if size == head { 1 } else { size - head };
        values.checked_mul(dimension).and_then(|values| values.checked_add(head))
    });
    if expected != Some(bytes.len()) {
        let expected =
            expected.map_or_else(|| "fewer values".to_owned(), |size| format!("{size} bytes for {shape:?} values"));
        return wrong(bytes.len(), "the end of the file".to_owned(), expected);
    }
    Ok((shape, bytes.split_off(head)))
}

/// The bytes of a file, decompressed if needed.
fn content(file: &Path) -> Result<Vec<u8>, DataError> {
    if file.extension().is_none_or(|extension| extension != "gz") {
        return std::fs::read(file).map_err(DataError::read(file));
    }
    let mut bytes = Vec::new();
    let compressed = File::open(file).map_err(DataError::read(file))?;
    match MultiGzDecoder::new(compressed).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => {
            Err(DataError::wrong(file, Place::Byte(bytes.len()), error.to_string(), "a whole file compressed by gzip"))
        }
    }
}
