//! Tables of texts and their labels, separated by commas or tabs, and the words of a text as tokens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord};

use super::{DataError, LoadOptions, Place, VALIDATION_SHARE, none};
use crate::data::set::{Content, DataSet, SampleForm, Samples};
use crate::data::split_off;

/// The token of padding, and that of words outside the vocabulary.
const RESERVED: [&str; 2] = ["padding", "unknown"];

/// A text, its label, and its line.
struct Row {
    text: String,
    label: String,
    line: u64,
}

/// A file with its rows.
struct Table {
    file: PathBuf,
    rows: Vec<Row>,
}

/// The table at `path`, or the tables of that folder; without a validation part if it has no file.
pub(super) fn read(path: &Path, options: &LoadOptions) -> Result<DataSet, DataError> {
    let (train, validation, test) = tables(path)?;
    let labels: Vec<&str> = sorted(train.rows.iter().map(|row| row.label.as_str()));
    if labels.len() < 2 {
        let found = format!("{} different labels", labels.len());
        return Err(DataError::wrong(&train.file, Place::Line(1), found, "at least two classes"));
    }
    let words = vocabulary(&train, options.vocabulary);
    let encode = |table: &Table| samples(table, &labels, &words, options.length);
    let mut set = DataSet {
        id: String::new(),
        description: format!("texts in {} classes", labels.len()),
        number_of_classes: labels.len(),
        form: SampleForm::Tokens { length: options.length, vocabulary: options.vocabulary },
        train: encode(&train)?,
        validation: Samples { content: Content::Tokens(Vec::new()), labels: Vec::new() },
        test: none(&Samples { content: Content::Tokens(Vec::new()), labels: Vec::new() }),
    };
    if let Some(validation) = &validation {
        set.validation = encode(validation)?;
    }
    match &test {
        Some(test) => set.test = encode(test)?,
        None => {
            // Another seed than that of the validation part, which is cut from what stays.
            let (kept, aside) =
                split_off(&set.train.labels, options.validation_share.unwrap_or(VALIDATION_SHARE), options.seed ^ 1);
            set.test = set.train.select(&aside, options.length);
            set.train = set.train.select(&kept, options.length);
        }
    }
    Ok(set)
}

/// The tables of train, validation and test, those that exist.
fn tables(path: &Path) -> Result<(Table, Option<Table>, Option<Table>), DataError> {
    if path.is_file() {
        return Ok((table(path)?, None, None));
    }
    let named = |names: &[&str]| {
        let files = names.iter().flat_map(|name| ["csv", "tsv"].map(|end| path.join(format!("{name}.{end}"))));
        files.into_iter().find(|file| file.is_file())
    };
    let train = named(&["train"]).unwrap_or_else(|| path.join("train.csv"));
    let validation = named(&["validation", "dev"]).map(|file| table(&file)).transpose()?;
    let test = named(&["test"]).map(|file| table(&file)).transpose()?;
    Ok((table(&train)?, validation, test))
}

fn table(file: &Path) -> Result<Table, DataError> {
    let is_tabs = file.extension().is_some_and(|extension| extension == "tsv");
    let reader = ReaderBuilder::new().delimiter(if is_tabs { b'\t' } else { b',' }).from_path(file);
    let mut reader = reader.map_err(|error| of_csv(file, error))?;
    let header = reader.headers().map_err(|error| of_csv(file, error))?.clone();
    let column = |name: &str| header.iter().position(|found| found.trim_start_matches('\u{feff}').trim() == name);
    let (Some(text), Some(label)) = (column("text"), column("label")) else {
        let found = format!("the columns {}", header.iter().collect::<Vec<_>>().join(", "));
        return Err(DataError::wrong(file, Place::Line(1), found, "the columns text and label"));
    };
    let mut rows = Vec::new();
    for record in reader.records() {
        rows.push(row(file, &record.map_err(|error| of_csv(file, error))?, text, label)?);
    }
    if rows.is_empty() {
        return Err(DataError::wrong(file, Place::Line(2), "the end of the file", "at least one text with its label"));
    }
    Ok(Table { file: file.to_path_buf(), rows })
}

fn row(file: &Path, record: &StringRecord, text: usize, label: usize) -> Result<Row, DataError> {
    let line = record.position().map_or(0, csv::Position::line);
    let field = |column: usize| record.get(column).unwrap_or_default().trim().to_owned();
    let (text, label) = (field(text), field(label));
    if label.is_empty() {
        return Err(DataError::wrong(file, Place::Line(line), "no label", "a label for every text"));
    }
    Ok(Row { text, label, line })
}

fn of_csv(file: &Path, error: csv::Error) -> DataError {
    let line = error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(source) => DataError::read(file)(source),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => DataError::wrong(
            file,
            Place::Line(line),
            format!("{len} fields"),
            format!("{expected_len}, as in the header"),
        ),
        csv::ErrorKind::Utf8 { .. } => DataError::wrong(file, Place::Line(line), "bytes that are not text", "UTF-8"),
        other => DataError::wrong(file, Place::Line(line), format!("{other:?}"), "a row of separated values"),
    }
}

/// The words of a text, in lower case: its runs of letters and digits.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The ids of the most frequent words of the train part; of equally frequent words the first in the alphabet.
fn vocabulary(train: &Table, size: usize) -> BTreeMap<String, u16> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for word in train.rows.iter().flat_map(|row| words(&row.text)) {
        *counts.entry(word).or_default() += 1;
    }
    let mut ranked: Vec<(String, u64)> = counts.into_iter().collect();
    // A stable sort: the map was in the order of the alphabet.
    ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let kept = ranked.into_iter().take(size.saturating_sub(RESERVED.len()));
    kept.enumerate().map(|(rank, (word, _))| (word, (rank + RESERVED.len()) as u16)).collect()
}

fn samples(table: &Table, labels: &[&str], ids: &BTreeMap<String, u16>, length: usize) -> Result<Samples, DataError> {
    let mut samples = Samples { content: Content::Tokens(Vec::new()), labels: Vec::new() };
    let mut tokens = Vec::with_capacity(table.rows.len() * length);
    for row in &table.rows {
        let Ok(class) = labels.binary_search(&row.label.as_str()) else {
            let found = format!("the label '{}'", row.label);
            let expected = format!("one of the train part: {}", labels.join(", "));
            return Err(DataError::wrong(&table.file, Place::Line(row.line), found, expected));
        };
        let known = words(&row.text).map(|word| ids.get(&word).copied().unwrap_or(1));
        tokens.extend(known.chain(std::iter::repeat(0)).take(length));
        samples.labels.push(class as u16);
    }
    samples.content = Content::Tokens(tokens);
    Ok(samples)
}

/// The distinct `items`, in alphabetical order.
fn sorted<'a>(items: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut items: Vec<&str> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
