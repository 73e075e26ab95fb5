//! The log format: one JSON instruction per line.
//!
//! Reading is strict: a field of the wrong type, a missing `MEMORY` or `ALIAS` line or a tensor without a producer is
//! an error with the file, the line and the field. `program` defines the meaning of the instructions.

use std::path::Path;

use haversack_devices::ensure;
use haversack_devices::text::{nearest, question};
use serde_json::{Map, Value};

use crate::LogError;
use crate::program::{Builder, Output, Program};

const INSTRUCTIONS: [&str; 9] =
    ["ALIAS", "ANNOTATE", "CALL", "CONSTANT", "COPY", "COPY_FROM", "MEMORY", "MUTATE", "RELEASE"];

/// A recorded operator log, compiled and ready to be replayed any number of times.
pub struct Log {
    name: String,
    pub(crate) program: Program,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("name", &self.name).field("operators", &self.operators()).finish_non_exhaustive()
    }
}

impl Log {
    /// Reads and compiles the file at `path`.
    ///
    /// # Errors
    ///
    /// [`LogError`] with the file and, if there is one, the line and the field.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let file = path.as_ref().display().to_string();
        let text = std::fs::read(path).map_err(|source| LogError(format!("{file}: {source}")))?;
        Self::parse(file, text)
    }

    /// Compiles `text`, a log; `name` names it in errors.
    ///
    /// Lines up to and including the first `ANNOTATE START` are not part of the log. Sizes and
    /// times may be strings or numbers.
    ///
    /// # Errors
    ///
    /// Those of [`Log::read`].
    pub fn parse(name: impl Into<String>, text: impl AsRef<[u8]>) -> Result<Self, LogError> {
        let name = name.into();
        let mut lines = Lines { rest: text.as_ref(), number: 0 };
        let wrong = match compile(&mut lines) {
            Ok(Some(program)) if program.baseline_compute > 0 => return Ok(Self { name, program }),
            Ok(Some(_)) => {
                ": no operator after START takes time; expected at least one CALL or MUTATE with a positive TIME"
                    .to_owned()
            }
            Ok(None) if lines.number == 0 => ": the log is empty; expected one JSON instruction per line".to_owned(),
            Ok(None) => {
                r#": no line starts the log; expected {"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}"#.to_owned()
            }
            Err(Fault { line, fault }) => format!(":{line}: {fault}"),
        };
        Err(LogError(name + &wrong))
    }

    /// The file, or the caller's name for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Operators in the log; each constant counts as one.
    pub fn operators(&self) -> usize {
        self.program.ops.len()
    }

    /// Tensors, aliases included.
    pub fn tensors(&self) -> usize {
        self.program.tensor_op.len()
    }

    /// Storages behind the tensors.
    pub fn storages(&self) -> usize {
        self.program.roots.len()
    }
}

/// A fault and its line.
struct Fault {
    line: usize,
    fault: String,
}

/// The program after START; `None` without a START.
fn compile(lines: &mut Lines<'_>) -> Result<Option<Program>, Fault> {
    loop {
        match lines.next()? {
            None => return Ok(None),
            Some(Line { instruction: "ANNOTATE", fields }) => {
                if fields.text("ANNOTATION").map_err(|fault| lines.at(fault))? == "START" {
                    break;
                }
            }
            Some(_) => {}
        }
    }
    let mut builder = Builder::default();
    while let Some(line) = lines.next()? {
        let number = lines.number;
        instruction(&mut builder, &line, lines).map_err(|error| match error {
            Trouble::Here(fault) => Fault { line: number, fault },
            Trouble::Further(fault) => fault,
        })?;
    }
    Ok(Some(builder.finish()))
}

/// A fault in an instruction's own line, or in one of the lines that describe its outputs.
enum Trouble {
    Here(String),
    Further(Fault),
}

impl From<String> for Trouble {
    fn from(fault: String) -> Self {
        Self::Here(fault)
    }
}

fn instruction(builder: &mut Builder, line: &Line, lines: &mut Lines<'_>) -> Result<(), Trouble> {
    let fields = &line.fields;
    match line.instruction {
        "CONSTANT" => {
            let name = fields.text("NAME")?;
            let bytes = lines.memory(name).map_err(Trouble::Further)?;
            builder.constant(name, bytes)?;
        }
        "CALL" => {
            let args = fields.names("ARGS")?;
            let results = fields.names("RESULT")?;
            let time = fields.whole("TIME", "a whole number of nanoseconds")?;
            ensure!(!results.is_empty(), no_output("RESULT").into());
            let mut outputs = Vec::with_capacity(results.len());
            for name in results {
                let bytes = lines.memory(&name).map_err(Trouble::Further)?;
                let alias = lines.alias(&name, args.len()).map_err(Trouble::Further)?;
                outputs.push(Output { name, bytes, alias });
            }
            builder.call(&args, &outputs, time)?;
        }
        "MUTATE" => {
            let args = fields.names("ARGS")?;
            let time = fields.whole("TIME", "a whole number of nanoseconds")?;
            let changed = fields.indices("MUTATE", args.len())?;
            ensure!(!changed.is_empty(), no_output("MUTATE").into());
            builder.mutate(&args, &changed, time)?;
        }
        "COPY" => builder.copy(fields.text("DST")?, fields.text("SRC")?)?,
        "COPY_FROM" => builder.copy_from(fields.text("DST")?, fields.text("SRC")?)?,
        "RELEASE" => builder.release(fields.text("NAME")?),
        // Further annotations only mark the forward and the backward pass.
        "ANNOTATE" => {}
        stray => return Err(format!("{stray} line without a CALL or CONSTANT before it").into()),
    }
    Ok(())
}

/// One parsed line.
struct Line {
    instruction: &'static str,
    fields: Fields,
}

/// The lines of a log, numbered from 1; blank ones are skipped.
struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<Line>, Fault> {
        while !self.rest.is_empty() {
            let end = self.rest.iter().position(|&byte| byte == b'\n').unwrap_or(self.rest.len());
            let line = &self.rest[..end];
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return parse_line(line).map(Some).map_err(|fault| self.at(fault));
            }
        }
        Ok(None)
    }

    fn at(&self, fault: String) -> Fault {
        Fault { line: self.number, fault }
    }

    /// The line that must come next and describe `name`.
    fn labelled(&mut self, instruction: &'static str, name: &str) -> Result<Fields, Fault> {
        let a = if instruction == "ALIAS" { "an" } else { "a" };
        let expected = |found: &str| format!("expected {a} {instruction} line for '{name}', found {found}");
        let Some(line) = self.next()? else {
            // The log ends where another line is expected.
            return Err(Fault { line: self.number + 1, fault: expected("the end of the log") });
        };
        ensure!(line.instruction == instruction, self.at(expected(line.instruction)));
        let other = line.fields.text("NAME").map_err(|fault| self.at(fault))?;
        ensure!(other == name, self.at(expected(&format!("one for '{other}' in field NAME"))));
        Ok(line.fields)
    }

    fn memory(&mut self, name: &str) -> Result<u64, Fault> {
        let fields = self.labelled("MEMORY", name)?;
        fields.whole("MEMORY", "a whole number of bytes").map_err(|fault| self.at(fault))
    }

    fn alias(&mut self, name: &str, arguments: usize) -> Result<Option<usize>, Fault> {
        const EXPECTED: &str = "-1 or the index of an argument";
        let fields = self.labelled("ALIAS", name)?;
        let value = fields.get("ALIAS", EXPECTED).map_err(|fault| self.at(fault))?;
        if value.as_str() == Some("-1") || value.as_i64() == Some(-1) {
            return Ok(None);
        }
        let index = whole(value, "ALIAS", EXPECTED).map_err(|fault| self.at(fault))?;
        in_range("ALIAS", index, arguments, "-1 or an index below ").map(Some).map_err(|fault| self.at(fault))
    }
}

fn parse_line(line: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(line).map_err(|error| {
        format!("not UTF-8 from byte {} of the line; expected a JSON object", error.valid_up_to() + 1)
    })?;
    let fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        // serde_json parses a single line: its line number would mislead.
        let reason = error.to_string().replace(" at line 1 column", " at column");
        format!("expected a JSON object: {reason}")
    })?;
    let mut fields = Fields { instruction: "line", map: fields };
    let found = fields.text("INSTRUCTION")?;
    let Some(&instruction) = INSTRUCTIONS.iter().find(|&&known| known == found) else {
        let guess = question(nearest(found, INSTRUCTIONS));
        return Err(format!("field INSTRUCTION: unknown instruction '{found}'{guess}"));
    };
    fields.instruction = instruction;
    Ok(Line { instruction, fields })
}

/// A line's fields, with accessors that check their types.
struct Fields {
    instruction: &'static str,
    map: Map<String, Value>,
}

impl Fields {
    fn get(&self, field: &'static str, expected: &'static str) -> Result<&Value, String> {
        let missing = || format!("{}: field {field} is missing; expected {expected}", self.instruction);
        self.map.get(field).ok_or_else(missing)
    }

    fn text(&self, field: &'static str) -> Result<&str, String> {
        let expected = "a string";
        let value = self.get(field, expected)?;
        value.as_str().ok_or_else(|| other(field, expected, value))
    }

    fn whole(&self, field: &'static str, expected: &'static str) -> Result<u64, String> {
        whole(self.get(field, expected)?, field, expected)
    }

    fn list(&self, field: &'static str, expected: &'static str) -> Result<&[Value], String> {
        let value = self.get(field, expected)?;
        value.as_array().map(Vec::as_slice).ok_or_else(|| other(field, expected, value))
    }

    fn names(&self, field: &'static str) -> Result<Vec<String>, String> {
        let expected = "a list of tensor names";
        let list = self.list(field, expected)?.iter();
        list.map(|value| value.as_str().map(str::to_owned).ok_or_else(|| other(field, expected, value))).collect()
    }

    fn indices(&self, field: &'static str, arguments: usize) -> Result<Vec<usize>, String> {
        let expected = "a list of argument indices";
        let list = self.list(field, expected)?.iter();
        list.map(|value| in_range(field, whole(value, field, expected)?, arguments, "an index below ")).collect()
    }
}

/// The error for an operator without outputs, at the field `field`.
fn no_output(field: &str) -> String {
    format!("field {field}: the operator has no output; expected at least one")
}

/// The error for a field with unexpected content.
fn other(field: &str, expected: &str, found: &Value) -> String {
    format!("field {field}: expected {expected}, found {found}")
}

/// A whole number, written as one or as a string of digits.
fn whole(value: &Value, field: &'static str, expected: &'static str) -> Result<u64, String> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64(),
    };
    number.ok_or_else(|| other(field, expected, value))
}

fn in_range(field: &'static str, index: u64, arguments: usize, expected: &'static str) -> Result<usize, String> {
    match usize::try_from(index) {
        Ok(place) if place < arguments => Ok(place),
        _ => Err(format!(
            "field {field}: index {index} is out of range; expected {expected}{arguments}, the number of arguments"
        )),
    }
}
