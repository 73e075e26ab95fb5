//! `haversack federate`: federated training of one network on a population of phones, round after round.
//!
//! The device simulator gives the cost of an iteration on each device within each budget; the memory model and users'
//! apps give the budgets that phones leave; the phones of a round train a stand-in for real, or only time is simulated.

mod budgets;
mod costs;
mod depends;
mod iteration;
mod learner;
mod on_device;
mod page;
mod plans;
mod reclaim;
mod rounds;
mod span;
mod specification;
mod stores;
mod tables;
mod widths;

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use haversack_reports::frame::FrameError;
use haversack_reports::write_atomically;
use serde_json::{Map, Value};

use crate::output::{note, print};
use crate::progress::word;
use crate::source::Source;
use crate::work::{
    Identity, Job, Log, MergeOptions, OutputFolder, Part, Shard, Steps, Whose, WorkOptions, pool, shards_of, work_on,
};
use crate::{Cache, CommandError, Result};
use learner::Known;
pub(crate) use rounds::{Held, held, planning};
use span::Span;
pub(crate) use specification::{Phones, Specification};
use tables::{CLIENTS, Clients, NAMES, ROUNDS, Tables, clients, led, read};

/// The log of learned rounds, which is kept in the folder.
const LOG: &str = "checkpoint";

/// The options of `federate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/federate.txt"))]
pub struct FederateOptions {
    /// Federation specification
    #[arg(value_name = "SPEC.toml")]
    pub specification: Source,
    /// Output folder and execution
    #[command(flatten)]
    pub work: WorkOptions,
    /// Simulate only the I-th of N equal shards of the combinations of listed values, for `haversack merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Random seed; overrides the specification's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// As [`federate`], and prints the results.
///
/// # Errors
/// As [`federate`]; a standard output that cannot be written.
pub fn run(options: &FederateOptions) -> Result<()> {
    print(&federate(options)?)
}

/// Simulates all rounds and writes the folder; returns the results as text.
///
/// # Errors
/// A specification, data or traces that are wrong, before anything is written; a checkpoint of another specification; a
/// NaN loss; Ctrl-C. Rounds learned until then are in the checkpoint.
pub fn federate(options: &FederateOptions) -> Result<String> {
    let (file, text) = options.specification.read()?;
    let span = Span::parse(&file, &text, options.seed)?;
    pool(options.work.jobs)?.install(|| hold_all(options, &span))
}

/// Simulates every federation of the specification, or those of the shard.
fn hold_all(options: &FederateOptions, span: &Span) -> Result<String> {
    let number = span.federations.len() as u64;
    let runs = options.shard.map_or(0..number, |shard| shard.of(number));
    let identity = Identity::of(span.record(), options.shard);
    // Equal for all shards, whose logs are merged.
    let of = span.federations.iter().map(|asked| Value::Object(asked.record()).to_string()).collect();
    let whose = Whose { owner: identity.owner(), of };
    let (cache, clients) = (Cache::new(), Clients::of(&options.work.out));
    let federations = Federations { span, runs, identity, cache, clients };
    Ok(work_on(&federations, &whose, &options.work, options.to_go_on())?.unwrap_or_default())
}

/// The federations of a specification, or those of a shard.
struct Federations<'a> {
    span: &'a Span,
    runs: Range<u64>,
    identity: Identity,
    cache: Cache,
    clients: Clients,
}

impl Job for Federations<'_> {
    type Out = Tables;
    type Report = String;
    const NAME: &'static str = "federation";
    const THINGS: &'static str = "rounds";
    const LOG: &'static str = LOG;
    const FILES: &'static [&'static str] = FILES;
    const IN_TURN: bool = true;

    fn parts(&self) -> Range<u64> {
        self.runs.clone()
    }

    fn steps(&self, part: u64) -> u64 {
        u64::from(self.span.federations[part as usize].rounds)
    }

    fn before(&self, part: u64, log: &Log) -> Result<u64> {
        Ok(log.get::<Known>(part)?.map_or(0, |known| known.rounds()))
    }

    /// Rounds are always simulated again; only what was learned is read back.
    fn is_done(&self, _part: u64, _before: u64) -> bool {
        false
    }

    fn has_results(&self, folder: &OutputFolder) -> bool {
        folder.path(NAMES[ROUNDS]).is_file()
    }

    /// Simulates the rounds of one federation.
    fn run(&self, part: u64, steps: &Steps<'_>) -> Result<Tables> {
        let (asked, run) = (&self.span.federations[part as usize], part as usize);
        let write = &mut |rows: &[_], kinds: &[_]| {
            self.clients.push(&led(clients(rows, kinds, &asked.setting.memory)?, self.span, run)?)
        };
        let held = held(asked, Some(steps), &self.cache, write)?;
        Tables::of(&held, self.span, run)
    }

    fn finish(&self, folder: OutputFolder, log: &Log, outs: Vec<Tables>) -> Result<String> {
        let mut outs = outs.into_iter();
        let Some(mut tables) = outs.next() else {
            folder.record(self.identity.record(), &[])?;
            return Ok("no federation is in this shard\n".to_owned());
        };
        for later in outs {
            tables.append(&later).map_err(FrameError::Encode)?;
        }
        if tables.numbers(ROUNDS, "completed").iter().all(|completed| *completed == Some(0.0)) {
            note(&"no phone has completed a round: see the outcomes in clients.parquet");
        }
        log.tidy()?;
        self.clients.finish()?;
        finish(&folder, self.identity.record(), tables, !log.is_empty())
    }
}

/// The page of the run.
const PAGE: &str = "index.html";
const FILES: &[&str] = &[NAMES[0], CLIENTS, NAMES[1], NAMES[2], LOG, PAGE, "federation*"];

/// Writes the tables, the figure, the page and the record; returns the results as text.
fn finish(folder: &OutputFolder, record: Map<String, Value>, mut tables: Tables, has_learned: bool) -> Result<String> {
    tables.write(folder)?;
    let mut outputs: Vec<String> = FILES[..4].iter().map(|name| (*name).to_owned()).collect();
    page::figure(&record, &tables).render()?.write(&folder.path(page::FIGURE))?;
    outputs.extend(["svg", "png"].map(|ending| format!("{}.{ending}", page::FIGURE)));
    outputs.extend(has_learned.then(|| LOG.to_owned()));
    let text = page::text(&tables, page::wanted(&record));
    let page = page::page(&record, &tables, &text)?.render().map_err(CommandError::failed)?;
    write_atomically(&folder.path(PAGE), page.as_bytes())?;
    outputs.push(PAGE.to_owned());
    folder.record(record, &outputs)?;
    Ok(format!("{text}{}\n", word(&folder.path(NAMES[ROUNDS]))))
}

/// Merges the folders of all shards of one specification; the result is identical to an unsharded run.
///
/// # Errors
/// A folder that does not contain a shard, shards of different specifications, missing or duplicate federations; all
/// before anything is written. A folder that cannot be written.
pub(crate) fn merge(options: &MergeOptions) -> Result<()> {
    let (identity, parts) = shards_of(&options.shards, "federation", "")?;
    if let Some(part) = parts.iter().find(|part| !part.is_shard) {
        let folder = part.folder.display();
        return Err(CommandError::input(format!(
            "{folder}: holds no shard; expected folders of `federate --shard I/N`"
        )));
    }
    let mut whole: Option<Tables> = None;
    for Part { folder, .. } in &parts {
        let tables = Tables::read(folder)?;
        let Some(whole) = &mut whole else {
            whole = Some(tables);
            continue;
        };
        let other = |_| CommandError::input(format!("{}: its tables have other columns", folder.display()));
        whole.append(&tables).map_err(other)?;
    }
    let tables =
        whole.ok_or_else(|| CommandError::input("there is nothing to merge; expected the folders of all shards"))?;
    let folder = OutputFolder::claim(&options.out, &identity.owner(), options.overwrite, FILES)?;
    let clients = Clients::of(&options.out);
    parts.iter().try_for_each(|part| clients.push(&read(part.folder, CLIENTS)?))?;
    clients.finish()?;
    let logs: Vec<PathBuf> = parts.iter().map(|part| part.folder.join(LOG)).filter(|log| log.is_file()).collect();
    Log::join(&logs, &folder.path(LOG))?;
    print(&finish(&folder, identity.record(), tables, !logs.is_empty())?)
}

impl FederateOptions {
    /// The command that resumes this one.
    fn to_go_on(&self) -> String {
        let seed = self.seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
        let shard = self.shard.map_or_else(String::new, |shard| format!(" --shard {shard}"));
        self.specification.to_go_on("federate", &self.work.out, &format!("{seed}{shard}"))
    }
}

#[cfg(test)]
#[path = "../tests/unit/federate.rs"]
mod tests;
