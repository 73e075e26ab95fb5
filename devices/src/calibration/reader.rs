//! Walks a TOML document and says where it is, so that every complaint names file, line and field.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{CalibrationError, Location, nearest};

/// A document being read.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    file: &'a str,
    text: &'a str,
}

impl Document<'_> {
    fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|&&byte| byte == b'\n').count()
    }
}

#[derive(Clone, Copy)]
enum Node<'a> {
    Table(&'a DeTable<'a>),
    Value(&'a DeValue<'a>),
}

/// One value of a document, with its dotted name and its place.
#[derive(Clone)]
pub(crate) struct Place<'a> {
    document: Document<'a>,
    node: Node<'a>,
    offset: usize,
    name: String,
}

/// Parses `text` and hands its top table to `read`.
pub(crate) fn parse<T>(
    file: &str,
    text: &str,
    read: impl FnOnce(&Place<'_>) -> Result<T, CalibrationError>,
) -> Result<T, CalibrationError> {
    let document = Document { file, text };
    let table = DeTable::parse(text).map_err(|error| CalibrationError::Syntax {
        at: Box::new(Location {
            file: file.to_owned(),
            line: document.line(error.span().map_or(0, |span| span.start)),
            field: String::new(),
        }),
        message: error.message().to_owned(),
    })?;
    read(&Place { document, node: Node::Table(table.get_ref()), offset: 0, name: String::new() })
}

impl<'a> Place<'a> {
    /// Where this value stands.
    pub(crate) fn location(&self) -> Box<Location> {
        self.location_of(self.offset, self.name.clone())
    }

    /// Where the section `key` of this table stands, or the table where it is not there.
    pub(crate) fn locate(&self, key: &str) -> Box<Location> {
        self.child(key).map_or_else(|| self.location(), |place| place.location())
    }

    fn location_of(&self, offset: usize, field: String) -> Box<Location> {
        Box::new(Location { file: self.document.file.to_owned(), line: self.document.line(offset), field })
    }

    fn name_of(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn wrong_type(&self, expected: &str) -> CalibrationError {
        let found = match self.node {
            Node::Table(_) => "a table".to_owned(),
            Node::Value(value) => format!("a value of type {}", value.type_str()),
        };
        CalibrationError::WrongType { at: self.location(), expected: expected.to_owned(), found }
    }

    fn table(&self, expected: &str) -> Result<&'a DeTable<'a>, CalibrationError> {
        match self.node {
            Node::Table(table) => Some(table),
            Node::Value(value) => value.as_table(),
        }
        .ok_or_else(|| self.wrong_type(expected))
    }

    /// Refuses any key of this table that is not in `valid`.
    pub(crate) fn check_keys(&self, expected: &str, valid: &[&'static str]) -> Result<(), CalibrationError> {
        for key in self.table(expected)?.keys() {
            let name: &str = key.get_ref();
            if !valid.contains(&name) {
                return Err(CalibrationError::UnknownKey {
                    at: self.location_of(key.span().start, self.name_of(name)),
                    nearest: nearest(name, valid.iter().copied()),
                    valid: valid.iter().map(|&name| name.to_owned()).collect(),
                });
            }
        }
        Ok(())
    }

    /// The value of `key`, where it is there.
    pub(crate) fn child(&self, key: &str) -> Option<Place<'a>> {
        let (key, value): (&Spanned<_>, &'a Spanned<DeValue<'a>>) = self.table("").ok()?.get_key_value(key)?;
        Some(Place {
            document: self.document,
            node: Node::Value(value.get_ref()),
            offset: key.span().start,
            name: self.name_of(key.get_ref()),
        })
    }

    /// The value of `key`; an error where it is missing.
    pub(crate) fn required(&self, key: &str, expected: &str) -> Result<Place<'a>, CalibrationError> {
        self.child(key).ok_or_else(|| CalibrationError::MissingKey {
            at: self.location_of(self.offset, self.name_of(key)),
            expected: expected.to_owned(),
        })
    }

    /// The text that stands here.
    pub(crate) fn text(&self) -> Result<&'a str, CalibrationError> {
        match self.node {
            Node::Value(value) => value.as_str(),
            Node::Table(_) => None,
        }
        .ok_or_else(|| self.wrong_type("text"))
    }

    /// The integer or decimal number that stands here.
    pub(crate) fn number(&self) -> Result<f64, CalibrationError> {
        let Node::Value(value) = self.node else {
            return Err(self.wrong_type("a number"));
        };
        let written = match value {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            _ => return Err(self.wrong_type("a decimal number")),
        };
        written.parse().map_err(|_| self.wrong_type("a decimal number"))
    }

    /// The items of the array that stands here, named by their position.
    pub(crate) fn items(&self) -> Result<Vec<Place<'a>>, CalibrationError> {
        let Node::Value(DeValue::Array(array)) = self.node else {
            return Err(self.wrong_type("an array"));
        };
        Ok(array
            .iter()
            .enumerate()
            .map(|(index, item)| Place {
                document: self.document,
                node: Node::Value(item.get_ref()),
                offset: item.span().start,
                name: self.name_of(&index.to_string()),
            })
            .collect())
    }
}
