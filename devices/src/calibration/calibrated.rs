//! A loaded calibration file: the common part of devices, software stacks and operating systems.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

use super::base::{Text, chain, is_path};
use super::{CalibrationError, ConstantEntry, Dimension, Visit, short};
use crate::text::{TomlDocument, TomlError, aside, nearest};

/// A built-in calibration.
#[derive(Debug)]
pub struct BuiltIn {
    pub(crate) id: &'static str,
    pub(super) file: &'static str,
    pub(super) text: &'static str,
}

// The build script lists `calibrations/**/*.toml`, so a new file needs no code.
include!(concat!(env!("OUT_DIR"), "/calibrations.rs"));

/// The section that contradicts itself (empty for the whole file), and how.
pub type Contradiction = (String, String);

/// Reports that `section` contradicts itself.
pub(crate) fn against(section: &str, message: impl Into<String>) -> Option<Contradiction> {
    Some((section.to_owned(), message.into()))
}

/// The top level of a calibration's file; implemented by `section!`.
pub trait Schema: Clone + DeserializeOwned + Visit {
    /// The noun for such a calibration in errors: `device`.
    const WHAT: &'static str;
    /// The built-in files of this schema.
    const BUILT_IN: &'static [BuiltIn];

    /// The sections that can take their missing keys from another file by name (`from =
    /// "cortex-x1"`), each with those files.
    const PARTS: &'static [(&'static str, &'static [BuiltIn])] = &[];

    /// Computes values that follow from others in the file, and checks redundant values against them. Returns the
    /// contradiction if there is one.
    fn settle(&mut self) -> Option<Contradiction> {
        None
    }

    /// Checks beyond types: the section that is wrong, and why; `None` if the file is consistent.
    fn contradiction(&self) -> Option<Contradiction>;

    /// Scales the values that follow from the constant called `name`, which has just changed by `ratio`.
    fn follow(&mut self, _name: &str, _ratio: f64) {}

    /// One line of description for a listing.
    fn line(&self) -> String;

    /// Rewrites paths in the file that are relative to it so that they are valid from the current
    /// folder; `file` is its own path.
    fn beside(&mut self, _file: &str) {}

    /// Whether the section `name` as a whole can be taken from another file that a word names.
    fn section(_name: &str) -> bool {
        false
    }

    /// Takes the section `name` from the file that `word` names.
    ///
    /// # Errors
    /// The expected words, if `word` names no file.
    fn take_section(&mut self, name: &str, _word: &str) -> Result<(), String> {
        Err(format!("`{name}` is not a section that can be taken from elsewhere"))
    }
}

/// One line about a built-in calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The id to load it by.
    pub id: &'static str,
    /// Its description.
    pub line: String,
}

/// A calibration: its constants, and the file that they come from.
#[derive(Clone, Debug)]
pub struct Calibrated<T> {
    /// The id, e.g. `galaxy-s10`; for a user's file, the file stem.
    pub id: String,
    /// The file's name in messages.
    pub file: String,
    /// FNV-1a of the texts of the calibration and of all files that it takes from or overrides, 16 lower-case hex
    /// digits.
    pub digest: String,
    /// The constants.
    pub constants: T,
    /// The files that it overrides, directly or through others, the nearest first.
    pub bases: Vec<String>,
    /// The file of each constant that comes from another file than `file`, by name.
    inherited: BTreeMap<String, String>,
}

impl<T: Schema> Calibrated<T> {
    /// The built-in calibration called `id`, or the one in the TOML file at the path `id`.
    ///
    /// # Errors
    /// An unknown id, with the nearest valid one; a file that cannot be read or does not match the schema.
    pub fn load(id: &str) -> Result<Self, CalibrationError> {
        if let Some(found) = T::BUILT_IN.iter().find(|built_in| built_in.id == id) {
            return Self::parse(found.id, found.file, found.text);
        }
        let path = Path::new(id);
        if !is_path(id) {
            let valid: Vec<_> = T::BUILT_IN.iter().map(|built_in| built_in.id).collect();
            // The user may have meant a file in the current folder, without writing its `.toml`.
            let own = Some(format!("{id}.toml")).filter(|file| Path::new(file).is_file());
            let nearest = own.or_else(|| nearest(id, valid.iter().copied()).map(str::to_owned));
            let (what, guess, valid) = (T::WHAT, aside(nearest.as_deref()), valid.join(", "));
            return Err(CalibrationError::Refused(format!(
                "unknown {what} `{id}`{guess}; expected the path of a .toml file or one of {valid}"
            )));
        }
        let text = read(id)?;
        let stem = path.file_stem().map_or(Cow::Borrowed(id), |stem| stem.to_string_lossy());
        Self::parse(&stem, id, &text)
    }

    /// Every built-in calibration, by id.
    ///
    /// # Errors
    /// A built-in calibration that does not load.
    pub fn list() -> Result<Vec<Listing>, CalibrationError> {
        let line = |&BuiltIn { id, file, text }: &BuiltIn| {
            Ok(Listing { id, line: Self::parse(id, file, text)?.constants.line() })
        };
        T::BUILT_IN.iter().map(line).collect()
    }

    /// Reads a calibration's text; `file` names it in errors, and a `base` is looked up in its folder.
    ///
    /// # Errors
    /// Any mismatch with the schema, with its line and field; a base that does not exist.
    pub fn parse(id: &str, file: &str, text: &str) -> Result<Self, CalibrationError> {
        let texts = chain::<T>(Text::new(file, text))?;
        let document = laid_over::<T>(&texts)?;
        let mut constants: T = document.read()?;
        constants.beside(file);
        if let Some((section, message)) = constants.settle().or_else(|| constants.contradiction()) {
            return Err(document.refuse(&section, message).into());
        }
        let mut inherited = BTreeMap::new();
        if document.texts().count() > 1 {
            let located =
                entries(&constants, file).into_iter().map(|entry| (document.locate(&entry.name).file, entry.name));
            inherited = located.filter(|(of, _)| of != file).map(|(of, name)| (name, of)).collect();
        }
        Ok(Self {
            id: id.to_owned(),
            file: file.to_owned(),
            digest: digest(&document.texts().collect::<String>()),
            constants,
            bases: texts.iter().skip(1).map(|text| text.file.clone().into_owned()).collect(),
            inherited,
        })
    }

    /// The tables of the file as written, laid over those of its base.
    ///
    /// # Errors
    /// A file that can no longer be read, or that has changed since.
    pub fn tables(&self) -> Result<toml::Table, CalibrationError> {
        let text = match T::BUILT_IN.iter().find(|built_in| built_in.file == self.file) {
            Some(built_in) => Cow::Borrowed(built_in.text),
            None => read(&self.file)?.into(),
        };
        Ok(laid_over::<T>(&chain::<T>(Text::new(self.file.as_str(), text))?)?.read()?)
    }

    /// Every single constant, in the order of the schema, with the file that defines it; curves are not listed.
    pub fn entries(&self) -> Vec<ConstantEntry> {
        let mut entries = entries(&self.constants, &self.file);
        for entry in &mut entries {
            if let Some(file) = self.inherited.get(&entry.name) {
                entry.file.clone_from(file);
            }
        }
        entries
    }

    /// Overrides a constant by its dotted name (`gpu.launch`, `cpu.0.power`) or an unambiguous ending of it; `value` is
    /// in the unit of the file. Values that [follow](Schema::follow) from it are scaled with it; models already built
    /// from it keep the old value.
    ///
    /// # Errors
    /// An unknown or ambiguous name; a value that is out of range or makes the calibration contradict itself,
    /// which then stays unchanged.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), CalibrationError> {
        let full = self.full_name(name)?;
        let mut constants = self.constants.clone();
        let (mut outcome, mut before) = (Ok(()), 0.0);
        constants.visit("", &mut |candidate, constant| {
            if candidate == full {
                before = constant.entry(candidate, "").value;
                outcome = constant.replace(value);
            }
        });
        let refused = |field: &str, message: String| Err(TomlError::of_program(&self.file, field, message).into());
        if let Err(expected) = outcome {
            return refused(&full, format!("{} is out of range; expected {expected}", short(value)));
        }
        if before > 0.0 && value > 0.0 {
            constants.follow(&full, value / before);
        }
        if let Some((section, message)) = constants.contradiction() {
            return refused(&section, message);
        }
        self.constants = constants;
        Ok(())
    }

    /// The full name of the constant called `name`, or ending in `.name` if only one does.
    pub(super) fn full_name(&self, name: &str) -> Result<String, CalibrationError> {
        let names: Vec<String> = self.entries().into_iter().map(|entry| entry.name).collect();
        if names.iter().any(|full| full == name) {
            return Ok(name.to_owned());
        }
        let ending = format!(".{name}");
        let mut fits: Vec<String> = names.iter().filter(|full| full.ends_with(&ending)).cloned().collect();
        let (file, name) = (self.file.clone(), name.to_owned());
        match fits.len() {
            0 => {
                let nearest = nearest(&name, names.iter().map(String::as_str)).map(str::to_owned);
                Err(CalibrationError::UnknownConstant { file, name, nearest })
            }
            1 => Ok(fits.swap_remove(0)),
            _ => Err(CalibrationError::Refused(format!("{file}: `{name}` could be any of {}", fits.join(", ")))),
        }
    }
}

fn read(path: &str) -> Result<String, CalibrationError> {
    std::fs::read_to_string(path)
        .map_err(|source| CalibrationError::Refused(format!("cannot read the calibration {path}: {source}")))
}

/// The first of `texts` laid over the second, that over the third, and so on.
fn laid_over<'a, T: Schema>(texts: &'a [Text<'_>]) -> Result<TomlDocument<'a>, TomlError> {
    let documents = texts.iter().map(|text| document::<T>(&text.file, &text.text)).collect::<Result<Vec<_>, _>>()?;
    let laid = documents.into_iter().rev().reduce(|base, document| document.over(base));
    laid.ok_or_else(|| TomlError::of_program("", "", "no text".to_owned()))
}

/// `text`, completed from the parts that it names.
fn document<'a, T: Schema>(file: &'a str, text: &'a str) -> Result<TomlDocument<'a>, TomlError> {
    let document = TomlDocument::parse(file, text)?;
    T::PARTS.iter().try_fold(document, |document, (section, parts)| {
        document.with_parts(section, |name| {
            let ids = || parts.iter().map(|part| part.id);
            let found = parts.iter().find(|part| part.id == name);
            let found = found.ok_or_else(|| {
                let near = aside(nearest(name, ids()));
                format!("unknown part `{name}`{near}; expected one of {}", ids().collect::<Vec<_>>().join(", "))
            })?;
            Ok(TomlDocument::parse(found.file, found.text))
        })
    })
}

/// Every constant below `table`, in the order of its schema.
pub fn entries(table: &(impl Visit + Clone), file: &str) -> Vec<ConstantEntry> {
    let mut entries = Vec::new();
    table.clone().visit("", &mut |name, constant| entries.push(constant.entry(name, file)));
    entries
}

/// The first constant of `table` that is used as a divisor and is not above zero; counts are rounded down first.
///
/// Divisors are the constants whose dimension is used as a divisor (`Dimension::is_divisor`), and those named in
/// `divisors` as `section.name`, without an array index.
pub(crate) fn zero_divisor(table: &(impl Visit + Clone), divisors: &[&str]) -> Option<Contradiction> {
    let mut zero = None;
    table.clone().visit("", &mut |name, constant| {
        let name = name.split('.').filter(|part| part.parse::<usize>().is_err()).collect::<Vec<_>>().join(".");
        let (unit, value) = (constant.unit(), constant.entry("", "").value);
        let value = if unit.dimension == Dimension::Count { value.floor() } else { value };
        let is_rate = unit.dimension.is_divisor();
        if zero.is_none() && value <= 0.0 && (is_rate || divisors.contains(&name.as_str())) {
            let section_and_rate = name.split_once('.');
            zero = section_and_rate
                .map(|(section, rate)| (section.to_owned(), format!("{rate} is zero: no work would ever end")));
        }
    });
    zero
}

/// FNV-1a, 64 bit, of `text`, as 16 lower-case hex digits.
pub fn digest(text: &str) -> String {
    format!("{:016x}", fnv1a(text.bytes()))
}

/// FNV-1a, 64 bit, of `bytes`.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mut digest = Digest::default();
    digest.update(bytes);
    digest.0
}

/// FNV-1a, 64 bit, of data that arrives in pieces; displayed as 16 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// The digest of `numbers`, each as little-endian bytes.
    pub fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self(fnv1a(numbers.into_iter().flat_map(u64::to_le_bytes)))
    }

    /// Adds the next piece.
    pub fn update(&mut self, piece: impl IntoIterator<Item = u8>) {
        self.0 = piece.into_iter().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
