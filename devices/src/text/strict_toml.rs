//! TOML read strictly through serde.
//!
//! A struct that derives `Deserialize` is the whole schema. Unlike the `toml` crate's deserialiser, this one keeps
//! track of its position, so every fault has a line and a dotted field. It also passes on serde's information (valid
//! keys, valid words, the expected type) as data instead of as a sentence. Unknown keys of a struct are rejected with
//! or without `deny_unknown_fields`.
//!
//! Errors in a TOML file, and their locations.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error as _, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserializer, de, forward_to_deserialize_any};
use thiserror::Error;
use toml::de::{DeTable, DeValue};

use super::{aside, nearest};

/// An error, with its byte and its field as soon as they are known.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub(super) struct Fault {
    pub(super) at: Option<(usize, String)>,
    pub(super) problem: TomlProblem,
}

impl Fault {
    /// The fault, located at `place` if it has no location yet.
    pub(super) fn at(mut self, place: &Place<'_>) -> Self {
        if self.at.is_some() {
            return self;
        }
        let mut inner = String::new();
        match &mut self.problem {
            TomlProblem::MissingKey(expected) => inner = std::mem::take(expected),
            TomlProblem::Refused(message) => {
                if let Some((key, rest)) = message.strip_prefix('.').and_then(|rest| rest.split_once(": ")) {
                    (inner, *message) = (key.to_owned(), rest.to_owned());
                }
            }
            _ => {}
        }
        let field = if inner.is_empty() { place.field.clone() } else { join(&place.field, &inner) };
        self.at = Some((place.find(&field).offset, field));
        self
    }
}

impl From<TomlProblem> for Fault {
    fn from(problem: TomlProblem) -> Self {
        Self { at: None, problem }
    }
}

/// More unknown keys in a table than it is useful to report.
const MOST_FAULTS: usize = 100;

/// Descriptions of the ranges of whole-number types.
const WHOLE: [(&str, &str); 4] =
    [("u8", "from 0 to 255"), ("u32", "from 0 to 4294967295"), ("u64", "of at least 0"), ("i32", "of 32 bits")];

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        TomlProblem::Refused(message.to_string()).into()
    }
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        TomlProblem::WrongType { expected: expected.to_string(), found: found.to_string() }.into()
    }
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (found, expected) = (found.to_string(), expected.to_string());
        let range = WHOLE.iter().find(|(of, _)| *of == expected);
        let expected = range.map_or(expected.clone(), |(_, range)| format!("a whole number {range}"));
        TomlProblem::WrongType { expected, found: found.replace("integer ", "") }.into()
    }
    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        let near = nearest(found, expected.iter().copied()).map(str::to_owned);
        TomlProblem::UnknownChoice { found: found.to_owned(), nearest: near, expected }.into()
    }
    fn unknown_field(found: &str, valid: &'static [&'static str]) -> Self {
        let nearest = nearest(found, valid.iter().copied()).map(str::to_owned);
        TomlProblem::UnknownKey { nearest, valid }.into()
    }
    fn missing_field(name: &'static str) -> Self {
        // The caller moves the name into the location once that is known.
        TomlProblem::MissingKey(name.to_owned()).into()
    }
}

#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    Table(&'a DeTable<'a>),
    Value(&'a DeValue<'a>),
    /// A placeholder for a missing key, to learn the expected type.
    Absent,
}

/// A value of a document, with its byte and its dotted name.
#[derive(Clone)]
pub(super) struct Place<'a> {
    pub(super) node: Node<'a>,
    pub(super) offset: usize,
    pub(super) field: String,
    /// The dotted name of the missing key, if one is known.
    pub(super) absent: &'a str,
    /// Collects unknown keys, so that reading continues after them.
    pub(super) unknown: &'a RefCell<Vec<Fault>>,
}

/// `name` appended to `parent`, which is empty at the top of the file.
fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

/// A key as written in a file: in quotation marks unless it is a bare word.
fn written(key: &str) -> Cow<'_, str> {
    let bare = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { key.into() } else { format!("\"{key}\"").into() }
}

impl<'a> Place<'a> {
    fn table(&self) -> Option<&'a DeTable<'a>> {
        match self.node {
            Node::Table(table) => Some(table),
            Node::Value(value) => value.as_table(),
            Node::Absent => None,
        }
    }

    fn value(&self) -> Option<&'a DeValue<'a>> {
        if let Node::Value(value) = self.node { Some(value) } else { None }
    }

    /// The keys of the table or the items of the array at this place, in file order.
    fn children(&self) -> Children<'a> {
        let child = |node, offset, key: &str| {
            let field = join(&self.field, &written(key));
            (key.to_owned(), Place { node, offset, field, absent: self.absent, unknown: self.unknown })
        };
        let mut children = Vec::new();
        if let Some(table) = self.table() {
            let keys = table.iter();
            children
                .extend(keys.map(|(key, value)| child(Node::Value(value.get_ref()), key.span().start, key.get_ref())));
            children.sort_by_key(|(_, place)| place.offset);
            let (parent, name) = self.absent.rsplit_once('.').unwrap_or(("", self.absent));
            if parent == self.field && !name.is_empty() {
                children.push(child(Node::Absent, self.offset, name));
            }
        } else if let Some(DeValue::Array(items)) = self.value() {
            let items = items.iter().enumerate();
            children
                .extend(items.map(|(at, item)| child(Node::Value(item.get_ref()), item.span().start, &at.to_string())));
        }
        Children { rest: children.into_iter(), value: None }
    }

    /// The field below with this dotted name, or the innermost existing place around it.
    pub(super) fn find(&self, field: &str) -> Place<'a> {
        let around = |place: &Place<'_>| {
            field.strip_prefix(&place.field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let child = self.children().rest.map(|(_, place)| place).find(around);
        child.map_or_else(|| self.clone(), |child| child.find(field))
    }

    /// The fault that the value at this place is not `expected`.
    fn wrong(&self, expected: &str) -> Fault {
        let expected = expected.to_owned();
        let found = match self.node {
            Node::Absent => {
                let at = Some((self.offset, self.field.clone()));
                return Fault { at, problem: TomlProblem::MissingKey(expected) };
            }
            Node::Table(_) => "a table".to_owned(),
            Node::Value(value) => format!("a value of type {}", value.type_str()),
        };
        TomlProblem::WrongType { expected, found }.into()
    }

    fn integer<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Fault> {
        let expected = "a whole number";
        let Some(DeValue::Integer(integer)) = self.value() else { return Err(self.wrong(expected)) };
        let too_large = || TomlProblem::WrongType {
            expected: format!("{expected} of at most {}", i64::MAX),
            found: format!("`{}`", integer.as_str()),
        };
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| too_large())?;
        visitor.visit_i64(number)
    }
}

/// Deserialiser methods for whole numbers.
macro_rules! integers {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.integer(visitor)
        }
    )+};
}

impl<'de> Deserializer<'de> for Place<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.node {
            Node::Value(DeValue::String(text)) => visitor.visit_str(text),
            Node::Value(DeValue::Integer(_)) => self.integer(visitor),
            Node::Value(DeValue::Float(_)) => self.deserialize_f64(visitor),
            Node::Value(&DeValue::Boolean(truth)) => visitor.visit_bool(truth),
            Node::Value(DeValue::Datetime(_)) | Node::Absent => Err(self.wrong("text, a number, a table or an array")),
            Node::Value(DeValue::Array(_)) => visitor.visit_seq(self.children()),
            Node::Table(_) | Node::Value(DeValue::Table(_)) => visitor.visit_map(self.children()),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let text = self.value().and_then(DeValue::as_str);
        visitor.visit_str(text.ok_or_else(|| self.wrong("text"))?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let written = match self.value() {
            Some(DeValue::Integer(integer)) if integer.radix() == 10 => integer.as_str(),
            Some(DeValue::Float(float)) => float.as_str(),
            _ => return Err(self.wrong("a decimal number")),
        };
        visitor.visit_f64(written.parse().map_err(|_| self.wrong("a decimal number"))?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_f64(visitor)
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let truth = self.value().and_then(DeValue::as_bool);
        visitor.visit_bool(truth.ok_or_else(|| self.wrong("a boolean"))?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Some(DeValue::Array(_)) = self.value() else { return Err(self.wrong("an array")) };
        visitor.visit_seq(self.children())
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.table().ok_or_else(|| self.wrong("a table"))?;
        visitor.visit_map(self.children())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        // Structs written on one line are named after their form: `{ value, unit }`.
        let expected = if name.starts_with('{') { name } else { "a table" };
        self.table().ok_or_else(|| self.wrong(expected))?;
        let is_known = |(key, _): &(String, Place<'_>)| fields.contains(&key.as_str());
        let (known, unknown): (Vec<_>, Vec<_>) = self.children().rest.partition(is_known);
        let unknown = unknown.iter().take(MOST_FAULTS);
        let unknown = unknown.map(|(key, place)| Fault::unknown_field(key, fields).at(place));
        self.unknown.borrow_mut().extend(unknown);
        visitor.visit_map(Children { rest: known.into_iter(), value: None })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if self.table().is_some() {
            return visitor.visit_enum(MapAccessDeserializer::new(self.children()));
        }
        let word = self.value().and_then(DeValue::as_str);
        let word = word.ok_or_else(|| self.wrong(&format!("one of {}", variants.join(", "))))?;
        let word: StringDeserializer<Fault> = word.to_owned().into_deserializer();
        visitor.visit_enum(word)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The remaining content of a table or an array, while serde iterates over it.
struct Children<'a> {
    rest: std::vec::IntoIter<(String, Place<'a>)>,
    value: Option<Place<'a>>,
}

impl<'de> de::MapAccess<'de> for Children<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, place)) = self.rest.next() else { return Ok(None) };
        let key: StringDeserializer<Fault> = key.into_deserializer();
        let key = seed.deserialize(key).map_err(|fault| fault.at(&place))?;
        self.value = Some(place);
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let place = self.value.take().ok_or_else(|| Fault::custom("a value without a key"))?;
        seed.deserialize(place.clone()).map_err(|fault| fault.at(&place))
    }
}

impl<'de> de::SeqAccess<'de> for Children<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((_, place)) = self.rest.next() else { return Ok(None) };
        seed.deserialize(place.clone()).map(Some).map_err(|fault| fault.at(&place))
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file's name in messages.
    pub file: String,
    /// The line, from one; zero for a value set by the program.
    pub line: usize,
    /// The dotted name of the field (`gpu.launch`, `cpu.1.core`); empty at the top of the file.
    pub field: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.field.is_empty() {
            write!(f, ": `{}`", self.field)?;
        }
        Ok(())
    }
}

/// Why a TOML file was rejected: the first mistake, and all others, one per line.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{at}: {problem}{}", on_lines(others))]
pub struct TomlError {
    /// The location of the first mistake.
    pub at: Box<Location>,
    /// The first mistake.
    pub problem: TomlProblem,
    /// All other mistakes, in file order.
    pub others: Vec<TomlError>,
}

/// Each of `errors` on its own line, starting with a line break.
pub fn on_lines<E: fmt::Display>(errors: &[E]) -> String {
    errors.iter().map(|error| format!("\n{error}")).collect()
}

impl TomlError {
    /// A problem at a place.
    pub(crate) fn new(at: Location, problem: TomlProblem) -> Self {
        Self { at: Box::new(at), problem, others: Vec::new() }
    }

    /// The first of `errors`, with the others after it.
    pub(super) fn of(errors: impl IntoIterator<Item = Self>) -> Self {
        let mut errors = errors.into_iter();
        let nothing = || Self::of_program("", "", String::new());
        let first = errors.next().unwrap_or_else(nothing);
        Self { others: errors.collect(), ..first }
    }

    /// Rejects a value that the program set for `field` and that has no line therefore.
    pub(crate) fn of_program(file: &str, field: &str, message: String) -> Self {
        let at = Location { file: file.to_owned(), line: 0, field: field.to_owned() };
        Self::new(at, TomlProblem::Refused(message))
    }
}

/// A mistake at a place of a TOML file.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TomlProblem {
    /// Not TOML, with the parser's message.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// A key that is not in the schema.
    #[error("unknown key{}; valid keys: {}", aside(nearest.as_deref()), valid.join(", "))]
    UnknownKey {
        /// The most similar valid key.
        nearest: Option<String>,
        /// All valid keys.
        valid: &'static [&'static str],
    },
    /// A missing required key, with its expected type; the line is that of its table.
    #[error("missing key; expected {0}")]
    MissingKey(String),
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The expected type.
        expected: String,
        /// The value or type in the file.
        found: String,
    },
    /// A word that is not among the choices.
    #[error("unknown value `{found}`{}; expected one of {}", aside(nearest.as_deref()), expected.join(", "))]
    UnknownChoice {
        /// The word in the file.
        found: String,
        /// The most similar valid word.
        nearest: Option<String>,
        /// The valid words.
        expected: &'static [&'static str],
    },
    /// Rejected by the type that reads the value, with its message.
    #[error("{0}")]
    Refused(String),
}
