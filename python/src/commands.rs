//! The commands: the arguments of each, and its result.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::panic::catch_unwind;
use std::path::PathBuf;

use haversack::artefacts::ARTEFACTS;
use haversack::federate::FederateOptions;
use haversack::reproduce::ReproduceOptions;
use haversack::simulate::{Asked, Remark};
use haversack::source::Source;
use haversack::sweep::SweepOptions;
use haversack::train::{TrainOptions, Trained};
use haversack::work::{Shard, WorkOptions};
use haversack::{Cache, CommandError, Plan, Scenario};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{AfterCtrlC, watched};
use crate::error;
use crate::policy::{Failure, Written};
use crate::values::{dictionary, over};

/// The name in errors of a specification that is given as keywords.
const KEYWORDS: &str = "<keywords>";

/// One run; see `haversack.simulate`.
#[pyfunction]
#[pyo3(signature = (file, given, policy, files, explain, least_memory))]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    file: Option<PathBuf>,
    given: &str,
    policy: Option<Written>,
    files: (Option<PathBuf>, Option<PathBuf>),
    explain: bool,
    least_memory: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (given, failure, (timeline, plan)) = (given.to_owned(), Failure::default(), files);
    let brought = policy.map(|written| written.shared(&failure));
    let asked = Asked { timeline, plan, explain, least_memory, ..Asked::default() };
    let work = move || {
        let (scenario, cache) = (Scenario::with(file.as_deref(), KEYWORDS, &given)?, Cache::new());
        let plan = Plan::new(&scenario, &cache)?;
        let plan = brought.into_iter().fold(plan, Plan::under);
        let mut notes = plan.resolved.notes.clone();
        let simulation = haversack::simulate::simulate(plan, &asked, &cache)?;
        let text = |remark: &Remark| match remark {
            Remark::Note(sentence) | Remark::Warning(sentence) => sentence.clone(),
        };
        notes.extend(simulation.remarks.iter().map(text));
        notes.extend(simulation.doubt());
        Ok((simulation.to_json(), notes, simulation.missed()))
    };
    let ended = watched(py, AfterCtrlC::Leave, work).inspect_err(|_| failure.leave())?;
    // An exception of a hook is the reason why the run ended.
    if let Some(raised) = failure.take() {
        return Err(raised);
    }
    let (answer, notes, missed) = ended.map_err(|reason| error::of(py, &reason, None))?;
    let answer = dictionary(py, &answer)?;
    answer.set_item("notes", notes)?;
    missed.map_or_else(|| Ok(answer.clone()), |missed| Err(error::of(py, &missed, Some(answer.as_any()))))
}

/// A specification: a file, with the keywords that override it, or keywords only.
fn source(py: Python<'_>, file: Option<PathBuf>, given: &str) -> PyResult<Source> {
    let Some(file) = file else { return Ok(Source::Text { name: KEYWORDS.to_owned(), text: given.to_owned() }) };
    if given.is_empty() {
        return Ok(Source::File(file));
    }
    let name = file.display().to_string();
    let text = std::fs::read_to_string(&file)
        .map_err(|reason| error::input(py, format!("{name}: cannot be read: {reason}")))?;
    Ok(Source::Text { text: over(py, &text, &name, given)?, name: format!("{name} with {KEYWORDS}") })
}

/// The shard `I/N`.
fn shard(py: Python<'_>, text: Option<&str>) -> PyResult<Option<Shard>> {
    let parse =
        |text: &str| text.parse().map_err(|reason| error::input(py, format!("shard: {reason}, found '{text}'")));
    text.map(parse).transpose()
}

/// The result of a command, whose files are in its folder.
fn answer<T>(py: Python<'_>, ended: PyResult<Result<T, CommandError>>) -> PyResult<T> {
    ended?.map_err(|reason| error::of(py, &reason, None))
}

/// The folder, whether to resume in it, whether to overwrite the files that it lists, and the number of parallel parts.
#[derive(FromPyObject)]
pub(crate) struct Work(PathBuf, bool, bool, Option<NonZeroUsize>);

impl From<Work> for WorkOptions {
    fn from(Work(out, resume, overwrite, jobs): Work) -> Self {
        Self { out, resume, overwrite, jobs }
    }
}

/// Many runs; see `haversack.sweep`.
#[pyfunction]
pub(crate) fn sweep(
    py: Python<'_>,
    file: Option<PathBuf>,
    given: &str,
    policies: Vec<Written>,
    work: Work,
    shard_text: Option<&str>,
) -> PyResult<String> {
    let (specification, shard) = (source(py, file, given)?, shard(py, shard_text)?);
    let options = SweepOptions { specification, work: work.into(), shard, dry_run: false };
    let failure = Failure::default();
    let brought = policies.into_iter().map(|written| written.copied(&failure)).collect();
    let ended = watched(py, AfterCtrlC::Wait, move || haversack::sweep::sweep_with(&options, brought));
    failure.take().map_or_else(|| answer(py, ended), Err)
}

/// Federations; see `haversack.federate`.
#[pyfunction]
pub(crate) fn federate(
    py: Python<'_>,
    file: Option<PathBuf>,
    given: &str,
    work: Work,
    shard_text: Option<&str>,
) -> PyResult<String> {
    let (specification, shard) = (source(py, file, given)?, shard(py, shard_text)?);
    let options = FederateOptions { specification, work: work.into(), shard, seed: None };
    answer(py, watched(py, AfterCtrlC::Wait, move || haversack::federate::federate(&options)))
}

/// Training with data; see `haversack.train`.
#[pyfunction]
pub(crate) fn train(py: Python<'_>, file: Option<PathBuf>, given: &str, work: Work) -> PyResult<String> {
    let options = TrainOptions { specification: source(py, file, given)?, work: work.into(), seed: None };
    let Trained { report, failure } =
        answer(py, watched(py, AfterCtrlC::Wait, move || haversack::train::train(&options)))?;
    failure.map_or(Ok(report), |reason| Err(error::of(py, &reason, None)))
}

/// The papers' figures; see `haversack.reproduce`.
#[pyfunction]
pub(crate) fn reproduce(
    py: Python<'_>,
    selectors: Vec<String>,
    work: Work,
    shard_text: Option<&str>,
    seed: u64,
    trace: Option<PathBuf>,
    again: (bool, bool),
) -> PyResult<String> {
    let (shard, (learn, full)) = (shard(py, shard_text)?, again);
    let options = ReproduceOptions { selectors, work: work.into(), shard, trace, seed, full, learn };
    let work = move || {
        let left_out = haversack::calibrate::left_out::errors().map_err(CommandError::failed)?;
        haversack::reproduce::reproduce(&options, &ARTEFACTS, &left_out)
    };
    let found = answer(py, watched(py, AfterCtrlC::Wait, work))?;
    let failure = found.failure();
    failure.map_or(Ok(found.report), |reason| Err(error::of(py, &reason, None)))
}

/// Runs a command line, whose first word is the name of the program; returns the exit code, also of a panic.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| catch_unwind(|| haversack::cli::main(words)).unwrap_or(101))
}

/// A panic, for the test that it becomes an exception.
#[cfg(debug_assertions)]
#[pyfunction]
pub(crate) fn fault(py: Python<'_>) -> PyResult<()> {
    answer(py, watched(py, AfterCtrlC::Leave, || std::panic::resume_unwind(Box::new("on purpose"))))
}
