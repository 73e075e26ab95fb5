//! Writes small logs by hand.

use std::fmt::Write;

/// A log under construction.
pub(crate) struct Script(String);

impl Script {
    pub(crate) fn new() -> Self {
        Self("{\"ANNOTATION\":\"START\",\"INSTRUCTION\":\"ANNOTATE\"}\n".to_owned())
    }

    pub(crate) fn constant(mut self, name: &str, bytes: u64) -> Self {
        let _ = writeln!(self.0, r#"{{"INSTRUCTION":"CONSTANT","NAME":"{name}"}}"#);
        let _ = writeln!(self.0, r#"{{"INSTRUCTION":"MEMORY","MEMORY":"{bytes}","NAME":"{name}"}}"#);
        self
    }

    /// One operator with one output; `alias` is an argument's index or -1.
    pub(crate) fn call_alias(mut self, args: &[&str], result: &str, bytes: u64, alias: i64, time: u64) -> Self {
        let args: Vec<String> = args.iter().map(|a| format!("\"{a}\"")).collect();
        let _ = writeln!(
            self.0,
            r#"{{"ARGS":[{}],"INSTRUCTION":"CALL","NAME":"op","RESULT":["{result}"],"TIME":"{time}"}}"#,
            args.join(",")
        );
        let _ = writeln!(self.0, r#"{{"INSTRUCTION":"MEMORY","MEMORY":"{bytes}","NAME":"{result}"}}"#);
        let _ = writeln!(self.0, r#"{{"ALIAS":"{alias}","INSTRUCTION":"ALIAS","NAME":"{result}"}}"#);
        self
    }

    pub(crate) fn call(self, args: &[&str], result: &str, bytes: u64, time: u64) -> Self {
        self.call_alias(args, result, bytes, -1, time)
    }

    pub(crate) fn release(mut self, name: &str) -> Self {
        let _ = writeln!(self.0, r#"{{"INSTRUCTION":"RELEASE","NAME":"{name}"}}"#);
        self
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}
