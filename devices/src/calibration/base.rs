//! A calibration that overrides a few numbers of another: `base = "ID|FILE"`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::CalibrationError;
use super::calibrated::{BuiltIn, Schema};
use crate::text::{TomlDocument, TomlError, aside, nearest};

/// A calibration's text, with the file as errors name it.
#[derive(Clone, Debug)]
pub(super) struct Text<'a> {
    pub(super) file: Cow<'a, str>,
    pub(super) text: Cow<'a, str>,
    /// What tells it from others, however it is called.
    identity: PathBuf,
}

impl<'a> Text<'a> {
    pub(super) fn new(file: impl Into<Cow<'a, str>>, text: impl Into<Cow<'a, str>>) -> Self {
        let (file, text) = (file.into(), text.into());
        let identity = Path::new(file.as_ref()).canonicalize().unwrap_or_else(|_| PathBuf::from(file.as_ref()));
        Self { file, text, identity }
    }

    /// A built-in one, which is none of the files beside the user.
    fn built_in(found: &BuiltIn) -> Self {
        let identity = PathBuf::from(format!("built-in {}", found.file));
        Self { file: found.file.into(), text: found.text.into(), identity }
    }
}

/// `first`, then its base, then the base of that, and so on.
///
/// # Errors
/// Text that is not TOML; a base that there is not, that cannot be read, or that a chain has come by before.
pub(super) fn chain<'a, T: Schema>(first: Text<'a>) -> Result<Vec<Text<'a>>, CalibrationError> {
    let mut chain = vec![first];
    while let Some(base) = chain.last().map(base_of::<T>).transpose()?.flatten() {
        let is_circle = chain.iter().any(|text| text.identity == base.identity);
        if let (true, Some(last)) = (is_circle, chain.last()) {
            let files: Vec<&str> = chain.iter().chain([&base]).map(|text| text.file.as_ref()).collect();
            return Err(refuse(last, &format!("goes in a circle: {}", files.join(" → "))).into());
        }
        chain.push(base);
    }
    Ok(chain)
}

/// What `text` overrides, if it does.
fn base_of<'a, T: Schema>(text: &Text<'a>) -> Result<Option<Text<'a>>, CalibrationError> {
    let document = TomlDocument::parse(&text.file, &text.text)?;
    let Some(base) = document.top_text("base") else { return Ok(None) };
    if let Some(found) = T::BUILT_IN.iter().find(|built_in| built_in.id == base) {
        return Ok(Some(Text::built_in(found)));
    }
    if !is_path(base) {
        let ids = || T::BUILT_IN.iter().map(|built_in| built_in.id);
        let (near, valid) = (aside(nearest(base, ids())), ids().collect::<Vec<_>>().join(", "));
        let message = format!(
            "unknown {} `{base}`{near}; expected a .toml file, from this file's folder, or one of {valid}",
            T::WHAT
        );
        return Err(refuse(text, &message).into());
    }
    let path = Path::new(text.file.as_ref()).parent().unwrap_or(Path::new("")).join(base);
    match std::fs::read_to_string(&path) {
        Ok(read) => Ok(Some(Text::new(path.display().to_string(), read))),
        Err(error) => Err(refuse(text, &format!("cannot read {}: {error}", path.display())).into()),
    }
}

/// Whether an id is the path of a file.
pub(crate) fn is_path(id: &str) -> bool {
    let path = Path::new(id);
    path.extension().is_some_and(|extension| extension == "toml") || path.components().count() > 1
}

/// An error about the base that `text` names.
fn refuse(text: &Text<'_>, message: &str) -> TomlError {
    match TomlDocument::parse(&text.file, &text.text) {
        Ok(document) => document.refuse("base", message),
        Err(error) => error,
    }
}
