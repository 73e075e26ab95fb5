//! A TOML text beside what is read from it, with the texts that it overrides below it.

use std::cell::RefCell;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::merge;
use super::strict_toml::{Fault, Node, Place};
use super::toml_error::{Location, TomlError, TomlProblem};

/// Reads `text` as a `T`; `file` is how errors name it.
///
/// # Errors
/// Text that is not TOML, or not exactly a `T`.
///
/// ```
/// use haversack_devices::text::read_toml;
///
/// #[derive(Debug, serde::Deserialize)]
/// struct Screen {
///     width: u32,
///     colours: Vec<String>,
/// }
///
/// let screen: Screen = read_toml("screen.toml", "width = 1080\ncolours = ['red']").unwrap();
/// assert_eq!((screen.width, screen.colours.len()), (1080, 1));
/// let error = read_toml::<Screen>("screen.toml", "width = 1080\ncolour = []").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "screen.toml:2: `colour`: unknown key (did you mean `colours`?); valid keys: width, colours"
/// );
/// ```
pub fn read_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, TomlError> {
    TomlDocument::parse(file, text)?.read()
}

/// The line of the byte at `offset` in `text`, from one.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// A text, and at which byte of all texts it begins.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    file: &'a str,
    text: &'a str,
    start: usize,
}

/// A TOML text, kept beside what was read from it, so that what serde cannot check can be refused at its line.
#[derive(Clone, Debug)]
pub struct TomlDocument<'a> {
    /// The text, and those below it; never none.
    sources: Vec<Source<'a>>,
    /// Its offsets count through all texts.
    top: DeTable<'a>,
}

impl<'a> TomlDocument<'a> {
    /// Parses `text`; `file` is how errors name it.
    ///
    /// # Errors
    /// Text that is not TOML.
    pub fn parse(file: &'a str, text: &'a str) -> Result<Self, TomlError> {
        match DeTable::parse(text) {
            Ok(top) => Ok(Self { sources: vec![Source { file, text, start: 0 }], top: top.into_inner() }),
            Err(error) => {
                let line = line_of(text, error.span().map_or(0, |span| span.start));
                let at = Location { file: file.to_owned(), line, field: String::new() };
                Err(TomlError::new(at, TomlProblem::Syntax(error.message().to_owned())))
            }
        }
    }

    /// The document with `base` below it: what it does not say, `base` does.
    ///
    /// Tables are laid over each other key by key; so are the tables of an array (`[[cpu]]`) that agree in `id`, `name`,
    /// `core` or `class`, the first of these in which exactly one of the base's does; others are added. Any other
    /// array takes the place of the base's. A constant of which only the value is given keeps its unit; it is
    /// `estimated`, and its source is the file.
    #[must_use]
    pub fn over(mut self, base: Self) -> Self {
        let file = self.file();
        let start = self.append(base.sources);
        merge::lay_over(&mut self.top, merge::shifted(base.top, start), file);
        self
    }

    /// The document with, below each table `field` that names a part by the key `from`, what `find` knows by that name:
    /// what the table does not say, the part does. `field` may be an array of tables.
    ///
    /// # Errors
    /// A name that `find` refuses, in its words; a part that is not TOML.
    pub(crate) fn with_parts(
        mut self,
        field: &str,
        find: impl Fn(&str) -> Result<Result<Self, TomlError>, String>,
    ) -> Result<Self, TomlError> {
        let tables: Vec<&DeValue<'_>> = match self.top.get(field).map(Spanned::get_ref) {
            Some(DeValue::Array(items)) => items.iter().map(Spanned::get_ref).collect(),
            other => other.into_iter().collect(),
        };
        let named = |table: &&DeValue<'_>| Some(table.as_table()?.get("from")?.get_ref().as_str()?.to_owned());
        let names: Vec<Option<String>> = tables.iter().map(named).collect();
        for (place, name) in names.into_iter().enumerate() {
            let Some(name) = name else { continue };
            let is_array = self.top.get(field).is_some_and(|value| value.get_ref().is_array());
            let at = if is_array { format!("{field}.{place}.from") } else { format!("{field}.from") };
            let part = find(&name).map_err(|message| self.refuse(&at, message))??;
            let file = self.file();
            let start = self.append(part.sources);
            let own = match self.top.get_mut(field).map(Spanned::get_mut) {
                Some(DeValue::Array(items)) => items.get_mut(place).map(Spanned::get_mut),
                other => other,
            };
            if let Some(DeValue::Table(own)) = own {
                own.remove("from");
                merge::lay_over(own, merge::shifted(part.top, start), file);
            }
        }
        Ok(self)
    }

    /// Puts `sources` behind the document's own: by how much their offsets are later there.
    fn append(&mut self, sources: Vec<Source<'a>>) -> usize {
        let start = self.sources.last().map_or(0, |last| last.start + last.text.len() + 1);
        self.sources.extend(sources.into_iter().map(|source| Source { start: source.start + start, ..source }));
        start
    }

    /// The texts that the document was read from, its own first.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.sources.iter().map(|source| source.text)
    }

    /// The text of the top's key `name`, if there is one.
    pub(crate) fn top_text(&self, name: &str) -> Option<&str> {
        self.top.get(name)?.get_ref().as_str()
    }

    /// The document as a `T`.
    ///
    /// An error that a `Deserialize` of the caller makes with [`serde::de::Error::custom`] is located at the value it was
    /// reading; a message that begins with `.key: ` is located at that key of the value.
    ///
    /// # Errors
    /// Anything that is not exactly a `T`: every unknown key, and the first value that is wrong or missing.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TomlError> {
        let unknown = RefCell::default();
        let wrong = match self.attempt(&unknown) {
            Ok(read) if unknown.borrow().is_empty() => return Ok(read),
            other => other.err(),
        };
        Err(self.error(wrong.into_iter().chain(unknown.take()).collect()))
    }

    /// Reads the document once: the first fault that is no unknown key, of which `unknown` takes all.
    fn attempt<T: DeserializeOwned>(&self, unknown: &RefCell<Vec<Fault>>) -> Result<T, Fault> {
        let read = |absent: &str| {
            unknown.take();
            let top = self.place(absent, unknown);
            T::deserialize(top.clone()).map_err(|fault| fault.at(&top))
        };
        match read("") {
            // serde only says that a key is missing: ask again with a value there that tells what it is asked for.
            Err(Fault { at: Some((_, field)), problem: TomlProblem::MissingKey(_) }) => read(&field),
            other => other,
        }
    }

    /// All faults as one error, in the order of the file.
    fn error(&self, mut faults: Vec<Fault>) -> TomlError {
        let parent = |field: &str| field.rsplit_once('.').map_or(String::new(), |(parent, _)| parent.to_owned());
        // Of a mistyped key it goes without saying that the right one is missing.
        let meant = faults.iter().filter_map(|fault| match (&fault.at, &fault.problem) {
            (Some((_, field)), TomlProblem::UnknownKey { nearest: Some(nearest), .. }) => {
                Some(format!("{}.{nearest}", parent(field)))
            }
            _ => None,
        });
        let meant: Vec<String> = meant.collect();
        faults.retain(|fault| match (&fault.at, &fault.problem) {
            (Some((_, field)), TomlProblem::MissingKey(_)) => {
                let name = field.rsplit('.').next().unwrap_or_default();
                !meant.contains(&format!("{}.{name}", parent(field)))
            }
            _ => true,
        });
        let located = |Fault { at, problem }: Fault| {
            let (offset, field) = at.unwrap_or_default();
            (offset, TomlError::new(self.location(offset, field), problem))
        };
        let mut errors: Vec<(usize, TomlError)> = faults.into_iter().map(located).collect();
        errors.sort_by_key(|(offset, _)| *offset);
        TomlError::of(errors.into_iter().map(|(_, error)| error))
    }

    /// Where the field with this dotted name stands; if it does not, the innermost table around it that does.
    pub(crate) fn locate(&self, field: &str) -> Location {
        let unknown = RefCell::default();
        let found = self.place("", &unknown).find(field);
        self.location(found.offset, found.field)
    }

    /// An error about the field with this dotted name, in the caller's words.
    pub fn refuse(&self, field: &str, message: impl Into<String>) -> TomlError {
        TomlError::new(self.locate(field), TomlProblem::Refused(message.into()))
    }

    fn file(&self) -> &'a str {
        self.sources.first().map_or("", |source| source.file)
    }

    fn location(&self, offset: usize, field: String) -> Location {
        let source = self.sources.iter().rev().find(|source| source.start <= offset);
        let (file, line) = source.map_or(("", 0), |source| (source.file, line_of(source.text, offset - source.start)));
        Location { file: file.to_owned(), line, field }
    }

    fn place<'p>(&'p self, absent: &'p str, unknown: &'p RefCell<Vec<Fault>>) -> Place<'p> {
        Place { node: Node::Table(&self.top), offset: 0, field: String::new(), absent, unknown }
    }
}
