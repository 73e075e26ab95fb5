//! A TOML file as fields with their lines; a scenario has one value per field, a sweep several.

use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::error::{Fault, Mistakes, Origin, Result, ScenarioError};
use super::key::Key;
use super::value::{Kind, Literal};
use haversack_devices::text::hint;

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// One value.
    One(Literal),
    /// A list of values, each with its line.
    Many(Vec<(Literal, usize)>),
    /// `{ from, to, steps }`.
    Span {
        /// The first value.
        from: Literal,
        /// The last value.
        to: Literal,
        /// The number of values, both ends included.
        steps: u64,
    },
    /// A table: parameters of the policy, constants of the device or the system.
    Table(Vec<Field>),
}

impl Item {
    fn found(&self) -> &'static str {
        match self {
            Self::One(_) => "one value",
            Self::Many(_) => "a list",
            Self::Span { .. } => "a span",
            Self::Table(_) => "a table",
        }
    }

    /// The single value, as a scenario needs.
    pub(crate) fn one(&self) -> Result<&Literal, Fault> {
        match self {
            Self::One(literal) => Ok(literal),
            other => Err(Fault::value("one value (lists and spans are for `haversack sweep`)", other.found())),
        }
    }
}

/// A name, its value, and the line.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name; for a policy's parameter, with the policy's name before a point if that was given.
    pub name: String,
    /// The line, from one.
    pub line: usize,
    /// The value.
    pub item: Item,
}

impl Field {
    /// The values listed one by one, each with its line; `None` for a span and a table.
    pub(crate) fn named(&self) -> Option<Vec<(Literal, usize)>> {
        match &self.item {
            Item::One(value) => Some(vec![(value.clone(), self.line)]),
            Item::Many(values) => Some(values.clone()),
            Item::Span { .. } | Item::Table(_) => None,
        }
    }
}

/// A parsed document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file, as shown in messages.
    pub file: Arc<str>,
    /// The fields of scenario keys, in the order of the file.
    pub fields: Vec<(Key, Field)>,
    /// The fields of the reader's own keys, which a scenario does not have.
    pub own: Vec<Field>,
}

impl Document {
    /// Reads the valid part of the file at `path`; errors are added to the mistakes.
    ///
    /// # Errors
    /// As [`Document::parse`], or a file that cannot be read.
    pub(crate) fn read(path: &Path, mistakes: &mut Mistakes) -> Result<Self> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            ScenarioError::new(Origin::File { file: file.as_str().into(), line: 0 }, "", Fault::Read(error))
        })?;
        Self::parse(&file, &text, &[], mistakes)
    }

    /// Parses the valid part of a document's text; `file` is its name in errors, and `own` are keys in addition to a
    /// scenario's. Unknown keys and impossible values are added to the mistakes.
    ///
    /// # Errors
    /// Text that is not TOML.
    pub(crate) fn parse(file: &str, text: &str, own: &[&'static str], mistakes: &mut Mistakes) -> Result<Self> {
        let ends = text.match_indices('\n').map(|(offset, _)| offset).collect();
        let reader = Reader { file: file.into(), ends };
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(0, |span| reader.line(span.start));
            reader.error(line, "", Fault::Syntax(error.message().to_owned()))
        })?;
        let fields = reader.fields(table.get_ref(), "", mistakes);
        let (own_fields, fields): (Vec<Field>, Vec<Field>) =
            fields.into_iter().partition(|field| own.contains(&field.name.as_str()));
        let key = |field: Field| {
            let key = if mistakes.is_full() { Key::named(&field.name) } else { mistakes.note(reader.key(&field, own)) };
            Some((key?, field))
        };
        let fields = fields.into_iter().filter_map(key).collect();
        Ok(Self { fields, own: own_fields, file: reader.file })
    }

    /// The single value of `field`, named `name` in errors.
    pub(super) fn one<'f>(&self, field: &'f Field, name: &str) -> Result<&'f Literal> {
        field.item.one().map_err(|fault| ScenarioError::new(self.origin(field.line), name, fault))
    }

    /// The place of `field`.
    pub fn origin(&self, line: usize) -> Origin {
        Origin::File { file: Arc::clone(&self.file), line }
    }
}

struct Reader {
    file: Arc<str>,
    /// The positions of line ends.
    ends: Vec<usize>,
}

impl Reader {
    fn line(&self, offset: usize) -> usize {
        1 + self.ends.partition_point(|end| *end < offset)
    }

    fn error(&self, line: usize, field: &str, fault: impl Into<Fault>) -> ScenarioError {
        ScenarioError::new(Origin::File { file: Arc::clone(&self.file), line }, field, fault)
    }

    fn key(&self, field: &Field, own: &[&'static str]) -> Result<Key> {
        Key::named(&field.name).ok_or_else(|| {
            let names = || Key::ALL.iter().map(|key| key.name()).chain(own.iter().copied());
            let valid = names().collect::<Vec<_>>().join(", ");
            let hint = hint(&field.name, names());
            self.error(field.line, &field.name, Fault::UnknownKey { hint, valid })
        })
    }

    /// The fields of `table` in the order of the file; fields of nested tables have dotted names.
    fn fields(&self, table: &DeTable<'_>, within: &str, mistakes: &mut Mistakes) -> Vec<Field> {
        let mut entries: Vec<_> = table.iter().map(|(key, value)| (key.span().start, key.get_ref(), value)).collect();
        entries.sort_by_key(|&(offset, ..)| offset);
        let mut fields = Vec::new();
        for (offset, name, value) in entries {
            let (line, name) = (self.line(offset), format!("{within}{name}"));
            let item = self.item(value.get_ref(), line, &name, mistakes);
            if let Some(item) = mistakes.note(item) {
                fields.push(Field { name, line, item });
            }
        }
        fields
    }

    fn item(&self, value: &DeValue<'_>, line: usize, name: &str, mistakes: &mut Mistakes) -> Result<Item> {
        match value {
            DeValue::Array(items) if items.len() > MOST_VALUES => {
                let found = format!("{} of them", items.len());
                Err(self.error(line, name, Fault::value(format!("a list of at most {MOST_VALUES} values"), found)))
            }
            DeValue::Array(items) => {
                let literals: Result<Vec<_>, _> = items
                    .iter()
                    .map(|item| {
                        let line = self.line(item.span().start);
                        Ok((self.literal(item.get_ref(), line, name)?, line))
                    })
                    .collect();
                Ok(Item::Many(literals?))
            }
            DeValue::Table(table) if is_span(table) => self.span(table, line, name),
            // Parameters of one policy, and constants of one section, may be nested tables.
            DeValue::Table(table) if Key::named(name).is_some_and(Key::is_table) => {
                let mut flat = Vec::new();
                for field in self.fields(table, "", mistakes) {
                    match field.item {
                        Item::Table(inner) => flat.extend(inner),
                        _ => flat.push(field),
                    }
                }
                Ok(Item::Table(flat))
            }
            DeValue::Table(table) if !name.contains('.') && Key::named(name).is_none() => {
                Ok(Item::Table(self.fields(table, &format!("{name}."), mistakes)))
            }
            DeValue::Table(_) => {
                let expected = "a value, a list or a span { from = …, to = …, steps = … }";
                Err(self.error(line, name, Fault::value(expected, "another table")))
            }
            other => Ok(Item::One(self.literal(other, line, name)?)),
        }
    }

    fn literal(&self, value: &DeValue<'_>, line: usize, name: &str) -> Result<Literal> {
        let (text, kind) = match value {
            DeValue::String(text) => (text.to_string(), Kind::Text),
            DeValue::Integer(number) if number.radix() == 10 => (number.as_str().to_owned(), Kind::Integer),
            DeValue::Float(number) => (number.as_str().to_owned(), Kind::Real),
            DeValue::Boolean(truth) => (truth.to_string(), Kind::Boolean),
            other => {
                let found = format!("a value of type {}", other.type_str());
                return Err(self.error(line, name, Fault::value("text, a decimal number, true or false", found)));
            }
        };
        Ok(Literal { text, kind })
    }

    fn span(&self, table: &DeTable<'_>, line: usize, name: &str) -> Result<Item> {
        let end = |key: &str| {
            let missing = || self.error(line, name, Fault::Refused(format!("the span has no '{key}'; {SPAN}")));
            self.literal(table.get(key).ok_or_else(missing)?.get_ref(), line, name)
        };
        let unknown = table.keys().find(|key| !SPAN_KEYS.contains(&key.get_ref().as_ref()));
        if let Some(key) = unknown {
            let found: &str = key.get_ref();
            let fault = Fault::UnknownKey { hint: hint(found, SPAN_KEYS), valid: SPAN_KEYS.join(", ") };
            return Err(self.error(self.line(key.span().start), &format!("{name}.{found}"), fault));
        }
        let written = end("steps")?;
        let steps = written.text.parse().ok().filter(|steps| (1..=MOST_STEPS).contains(steps));
        let steps = steps.filter(|_| written.kind == Kind::Integer).ok_or_else(|| {
            let expected = format!("a whole number of steps from 1 to {MOST_STEPS}");
            self.error(line, &format!("{name}.steps"), Fault::value(expected, written.found()))
        })?;
        Ok(Item::Span { from: end("from")?, to: end("to")?, steps })
    }
}

const SPAN_KEYS: [&str; 3] = ["from", "to", "steps"];
const SPAN: &str = "expected { from = …, to = …, steps = … }";
/// Far more steps than a sweep could simulate.
const MOST_STEPS: u64 = 1_000_000;

/// Far more values than a user would list.
const MOST_VALUES: usize = 10_000;

/// Whether a table has the keys of a span.
fn is_span(table: &DeTable<'_>) -> bool {
    table.keys().any(|key| SPAN_KEYS.contains(&key.get_ref().as_ref()))
}
