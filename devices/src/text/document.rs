//! A TOML text, kept after it was parsed, and the texts that it overrides.
//!
//! Merging of TOML tables.

use std::borrow::Cow;
use std::cell::RefCell;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::strict_toml::{Fault, Node, Place};
use super::strict_toml::{Location, TomlError, TomlProblem};

/// Reads `text` as a `T`; `file` names it in errors.
///
/// # Errors
/// Text that is not TOML, or does not match `T` exactly.
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

/// The line of the byte at `offset` in `text`, counted from one.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// A text, and its offset in the sequence of all texts.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    file: &'a str,
    text: &'a str,
    start: usize,
}

/// A TOML text, kept after it was parsed, so that callers can reject values that serde cannot check
/// and still report the line.
#[derive(Clone, Debug)]
pub struct TomlDocument<'a> {
    /// The text, followed by those that it overrides; never empty.
    sources: Vec<Source<'a>>,
    /// The merged tables; their offsets count through all texts.
    top: DeTable<'a>,
}

impl<'a> TomlDocument<'a> {
    /// Parses `text`; `file` names it in errors.
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

    /// The document laid over `base`, which supplies the missing keys.
    ///
    /// Tables are merged key by key. A table of an array (`[[cpu]]`) is merged with the base's table of the same `id`,
    /// `name`, `core` or `class`, using the first of these that matches exactly one table of the base; without a match
    /// it is added. Any other array replaces the base's. A constant with only a value keeps its unit; it counts as
    /// `estimated`, with the file as its source.
    #[must_use]
    pub fn over(mut self, base: Self) -> Self {
        let file = self.file();
        let start = self.append(base.sources);
        lay_over(&mut self.top, shifted(base.top, start), file);
        self
    }

    /// The document with every table `field` completed: if it names a part by the key `from`, the part that `find`
    /// returns supplies its missing keys. `field` may be an array of tables.
    ///
    /// # Errors
    /// A name that `find` rejects, with its message; a part that is not TOML.
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
                lay_over(own, shifted(part.top, start), file);
            }
        }
        Ok(self)
    }

    /// Appends `sources` to the document's own. Returns the shift of their offsets.
    fn append(&mut self, sources: Vec<Source<'a>>) -> usize {
        let start = self.sources.last().map_or(0, |last| last.start + last.text.len() + 1);
        self.sources.extend(sources.into_iter().map(|source| Source { start: source.start + start, ..source }));
        start
    }

    /// The texts that the document consists of, its own first.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.sources.iter().map(|source| source.text)
    }

    /// The text value of the top-level key `name`, if there is one.
    pub(crate) fn top_text(&self, name: &str) -> Option<&str> {
        self.top.get(name)?.get_ref().as_str()
    }

    /// Deserialises the document as a `T`.
    ///
    /// An error that a `Deserialize` of the caller makes with [`serde::de::Error::custom`] is located at the value it
    /// was reading; a message that begins with `.key: ` is located at that key of the value.
    ///
    /// # Errors
    /// Any mismatch with `T`: every unknown key, and the first value that is wrong or missing.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TomlError> {
        let unknown = RefCell::default();
        let wrong = match self.attempt(&unknown) {
            Ok(read) if unknown.borrow().is_empty() => return Ok(read),
            other => other.err(),
        };
        Err(self.error(wrong.into_iter().chain(unknown.take()).collect()))
    }

    /// Reads the document once. Returns the first fault other than unknown keys, which are added to `unknown`.
    fn attempt<T: DeserializeOwned>(&self, unknown: &RefCell<Vec<Fault>>) -> Result<T, Fault> {
        let read = |absent: &str| {
            unknown.take();
            let top = self.place(absent, unknown);
            T::deserialize(top.clone()).map_err(|fault| fault.at(&top))
        };
        match read("") {
            // serde only reports that a key is missing: read again with a placeholder there, to learn the expected
            // type.
            Err(Fault { at: Some((_, field)), problem: TomlProblem::MissingKey(_) }) => read(&field),
            other => other,
        }
    }

    /// All faults as one error, in file order.
    fn error(&self, mut faults: Vec<Fault>) -> TomlError {
        let parent = |field: &str| field.rsplit_once('.').map_or(String::new(), |(parent, _)| parent.to_owned());
        // If a key is mistyped, do not report the intended one as missing too.
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

    /// The location of the field with this dotted name; if it does not exist, that of the innermost
    /// table around it that does.
    pub(crate) fn locate(&self, field: &str) -> Location {
        let unknown = RefCell::default();
        let found = self.place("", &unknown).find(field);
        self.location(found.offset, found.field)
    }

    /// An error with the message `message` at the field with this dotted name.
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

/// The keys that identify a table within an array, in order of precedence.
const IDENTITIES: [&str; 4] = ["id", "name", "core", "class"];

/// Merges `over`, of the file `file`, with `under`, which supplies the missing keys.
pub(super) fn lay_over<'a>(over: &mut DeTable<'a>, under: DeTable<'a>, file: &'a str) {
    for (key, value) in under {
        let Some(own) = over.get_mut(&key) else {
            over.insert(key, value);
            continue;
        };
        // An empty array removes the base's value: tables of an array, a section, a constant.
        if value.get_ref().is_table() && own.get_ref().as_array().is_some_and(|items| items.is_empty()) {
            over.remove(&key);
        } else {
            lay_value_over(own.get_mut(), value.into_inner(), file);
        }
    }
}

fn lay_value_over<'a>(over: &mut DeValue<'a>, under: DeValue<'a>, file: &'a str) {
    match (over, under) {
        (DeValue::Table(over), DeValue::Table(mut under)) => {
            if over.contains_key("value") && under.contains_key("value") {
                // The source of the base's value does not apply to the new value.
                let unit = under.remove_entry("unit");
                under = unit.into_iter().collect();
                own_provenance(over, file);
            }
            lay_over(over, under, file);
        }
        (DeValue::Array(over), DeValue::Array(under)) => {
            let tables = |items: &[Spanned<DeValue<'_>>]| {
                !items.is_empty() && items.iter().all(|item| item.get_ref().is_table())
            };
            if tables(over) && tables(&under) {
                let own = std::mem::replace(over, DeArray::new());
                *over = joined(own.into_iter().collect(), under.into_iter().collect(), file).into_iter().collect();
            }
        }
        _ => {}
    }
}

/// Sets the missing kind and source of the constant `table`: an estimate of the file `file`.
fn own_provenance<'a>(table: &mut DeTable<'a>, file: &'a str) {
    let span = table.get("value").map_or(0..0, Spanned::span);
    for (key, value) in [("kind", "estimated"), ("source", file)] {
        if !table.contains_key(key) {
            let value = DeValue::String(Cow::Borrowed(value));
            table.insert(Spanned::new(span.clone(), Cow::Borrowed(key)), Spanned::new(span.clone(), value));
        }
    }
}

/// The base's tables in their order, each merged with the one that overrides it, then the tables that override none.
fn joined<'a>(
    over: Vec<Spanned<DeValue<'a>>>,
    mut under: Vec<Spanned<DeValue<'a>>>,
    file: &'a str,
) -> Vec<Spanned<DeValue<'a>>> {
    let mut added = Vec::new();
    for mut table in over {
        match overridden(&table, &under).and_then(|at| under.get_mut(at)) {
            Some(base) => {
                let below = std::mem::replace(base.get_mut(), DeValue::Boolean(false));
                lay_value_over(table.get_mut(), below, file);
                *base = table;
            }
            None => added.push(table),
        }
    }
    under.extend(added);
    under
}

/// The index of the one table in `under` that `table` overrides.
fn overridden(table: &Spanned<DeValue<'_>>, under: &[Spanned<DeValue<'_>>]) -> Option<usize> {
    fn identity<'t>(table: &'t Spanned<DeValue<'_>>, key: &str) -> Option<&'t str> {
        table.get_ref().as_table()?.get(key)?.get_ref().as_str()
    }
    IDENTITIES.iter().find_map(|key| {
        let own = identity(table, key)?;
        let mut fits = under.iter().enumerate().filter(|(_, base)| identity(base, key) == Some(own));
        let (at, _) = fits.next()?;
        fits.next().is_none().then_some(at)
    })
}

/// `table` with all offsets increased by `by`.
pub(super) fn shifted(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    table.into_iter().map(|(key, value)| (moved(key, by), shifted_value(value, by))).collect()
}

fn shifted_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let mut value = moved(value, by);
    match value.get_mut() {
        DeValue::Table(table) => *table = shifted(std::mem::take(table), by),
        DeValue::Array(items) => {
            *items = std::mem::replace(items, DeArray::new()).into_iter().map(|item| shifted_value(item, by)).collect();
        }
        _ => {}
    }
    value
}

fn moved<T>(spanned: Spanned<T>, by: usize) -> Spanned<T> {
    let span = spanned.span();
    Spanned::new(span.start + by..span.end + by, spanned.into_inner())
}
