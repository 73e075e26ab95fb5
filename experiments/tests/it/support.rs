//! Calls of the program, and their results.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use haversack::artefacts::ARTEFACTS;
use haversack::error::CommandError;
use haversack::papers::left_out::Errors;
use haversack::reproduce::{Artefact, ReproduceOptions, Reproduction};
use haversack::work::WorkOptions;
use serde_json::Value;

/// The program with `arguments`, in the folder `within`.
pub(crate) fn command(within: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haversack"));
    command.args(arguments).current_dir(within).stdin(Stdio::null());
    command
}

/// Calls the program in the folder `within`.
pub(crate) fn call_in(within: &Path, arguments: &[&str]) -> Output {
    command(within, arguments).output().unwrap()
}

/// Calls the program with arguments separated by spaces.
pub(crate) fn call(line: &str) -> Output {
    call_in(Path::new("."), &line.split(' ').collect::<Vec<_>>())
}

/// The standard output of the call.
pub(crate) fn stdout(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    // A template that cannot be rendered prints why.
    assert!(!text.contains("(in <string>:"), "{text}");
    text
}

/// The standard error output of the call.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The JSON that a successful call printed.
pub(crate) fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).unwrap()
}

/// Whether a line reports progress: `12 of 97 artefacts`.
pub(crate) fn tells_how_far(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(" of ")
}

/// The message of a call that must end with `code`.
pub(crate) fn refusal(output: &Output, code: i32) -> String {
    let said = stderr(output);
    // A slow machine may have printed its progress.
    let message: String = said.split_inclusive('\n').skip_while(|line| tells_how_far(line)).collect();
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.starts_with("error: ") && !message.contains("panicked"), "{message}");
    message
}

/// The names of an object, in order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Reproduces with these artefacts, without leave-one-out errors.
pub(crate) fn reproduce(options: &ReproduceOptions, artefacts: &[Artefact]) -> Result<Reproduction, CommandError> {
    haversack::reproduce::reproduce(options, artefacts, &Errors::default())
}

/// Reproduces the artefacts that `selectors` select into `out`; all of them must succeed.
pub(crate) fn reproduce_into(out: &Path, selectors: Vec<String>, seed: u64, jobs: usize) {
    let (out, jobs) = (out.to_path_buf(), NonZeroUsize::new(jobs));
    let work = WorkOptions { out, jobs, ..WorkOptions::default() };
    let options = ReproduceOptions { selectors, work, seed, ..ReproduceOptions::default() };
    let failures = reproduce(&options, &ARTEFACTS).unwrap().failures;
    assert!(failures.is_empty(), "{failures:?}");
}

/// Draws one element of a list at each call, determined by `seed`.
pub(crate) fn draws(seed: u64) -> impl FnMut(&[&'static str]) -> &'static str {
    let mut state = seed;
    move |list| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list[(state >> 33) as usize % list.len()]
    }
}
