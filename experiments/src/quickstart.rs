//! `haversack quickstart`: one network on one phone under every policy and a few memory budgets, as a page whose title
//! states the finding.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use haversack_devices::Bytes;
use haversack_reports::figure::Meanings;
use haversack_reports::page::{Drawn, RunPage, RunSection};
use haversack_reports::table::three_digits;
use haversack_reports::{Axis, Figure, Front, Look, Panel};
use haversack_training::FidelityClass;
use indexmap::IndexSet;

use crate::advise::gradients;
use crate::output::print;
use crate::progress::word;
use crate::quantities::{cut, size};
use crate::run::{Results, Status};
use crate::scenario::Cell;
use crate::source::Source;
use crate::sweep::{PAGE, Row, SweepOptions, Told, is_unfinished, sweep_into};
use crate::work::WorkOptions;
use crate::{CommandError, Result};

/// Where the page of `quickstart` goes.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/quickstart.txt"))]
pub struct QuickstartOptions {
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = "quickstart")]
    out: PathBuf,
    /// Delete the files of another command or specification that the folder lists
    #[arg(long)]
    overwrite: bool,
}

/// Runs every policy and writes the page.
///
/// # Errors
/// A folder with other files or that cannot be written; a standard output that cannot be written; Ctrl-C.
pub fn run(options: &QuickstartOptions) -> Result<()> {
    let QuickstartOptions { out, overwrite } = options;
    let work = WorkOptions { out: out.clone(), overwrite: *overwrite, resume: is_unfinished(out), jobs: None };
    let specification = Source::Own { command: "quickstart", text: include_str!("../../examples/quickstart.toml") };
    let found = sweep_into(&SweepOptions { specification, work, shard: None, dry_run: false }, Some(tell))?;
    let next = include_str!("../texts/quickstart.txt").replace("{out}", &word(out));
    print(&format!("{found}\nwrote {}\n{next}", word(&out.join(PAGE))))
}

/// A run that fits its budget.
struct Fit<'r> {
    policy: &'r str,
    stack: &'r str,
    budget: u64,
    results: &'r Results,
}

impl<'r> Fit<'r> {
    fn of(row: &'r Row) -> Option<Self> {
        let (policy, stack) = (text(row, "policy")?, text(row, "stack")?);
        let budget = cell(row, "memory_budget_bytes")?.whole()?;
        let results = row.results.as_ref().filter(|_| row.status == Status::Ok)?;
        Some(Self { policy, stack, budget, results })
    }

    fn memory(&self) -> String {
        size(Bytes(self.results.peak_memory_bytes))
    }

    /// Seconds of an iteration.
    fn time(&self) -> f64 {
        self.results.iteration_time_s
    }

    /// Gigabytes and seconds.
    fn point(&self) -> (f64, f64) {
        (self.results.peak_memory_bytes as f64 * 1e-9, self.time())
    }
}

fn cell<'r>(row: &'r Row, name: &str) -> Option<&'r Cell> {
    row.scenario.iter().find(|(known, _)| known == name).map(|(_, cell)| cell)
}

fn text<'r>(row: &'r Row, name: &str) -> Option<&'r str> {
    if let Cell::Text(text) = cell(row, name)? { text.as_deref() } else { None }
}

/// The findings, the figure and the table.
fn tell(rows: &[Row]) -> Result<Told> {
    let fits: Vec<Fit<'_>> = rows.iter().filter_map(Fit::of).collect();
    let plain = fits
        .iter()
        .find(|fit| fit.policy == "original")
        .ok_or_else(|| CommandError::failed("original does not fit"))?;
    let (one, others): (Vec<&Fit<'_>>, Vec<&Fit<'_>>) = fits.iter().partition(|fit| fit.stack == plain.stack);
    let [title, more] = findings(plain, &one, &others).ok_or_else(|| CommandError::failed("no policy fits"))?;
    let note = format!("ResNet-50 at batch 32 on a Galaxy S22; {} runs, of which {} fit", rows.len(), fits.len());
    // With all memory most policies do nothing.
    let differ: Vec<&Fit<'_>> =
        one.into_iter().filter(|fit| fit.policy == plain.policy || fit.point() != plain.point()).collect();
    let meanings = Meanings { solid: "exact gradients".into(), outlined: "inexact".into(), ..Meanings::default() };
    let figure = Figure::new(&title).note(&note).meanings(meanings);
    let figure = figure.panel(panel(&format!("one engine: {}", plain.stack), &differ));
    let front = figure.panel(panel("engines of their own", &others)).render()?;
    let (columns, table) = table(rows, &fits);
    let section = RunSection {
        title: "Seconds of an iteration within each memory budget".to_owned(),
        note: "A dash: no plan fits.".to_owned(),
        figure: Some(Drawn { alt: format!("Time against peak memory. {title}. {more}."), svg: front.svg.clone() }),
        columns,
        rows: table,
        are_words: false,
    };
    let text = format!("{title}.\n{more}.\n");
    let page = RunPage { title, lead: vec![format!("{more}."), format!("{note}.")], sections: vec![section] };
    Ok(Told { front, page: page.render().map_err(CommandError::failed)?, text })
}

/// Two sentences without their full stops: the least budget of any policy on the engine of `plain`, and that of exact gradients
/// with the fastest run on another engine.
fn findings(plain: &Fit<'_>, one: &[&Fit<'_>], others: &[&Fit<'_>]) -> Option<[String; 2]> {
    let longer = |fit: &Fit<'_>| format!("{} times as long", three_digits(fit.time() / plain.time()));
    let few = tightest(one.to_vec());
    let names: Vec<String> = few.iter().map(|fit| fit.policy.to_owned()).collect();
    let (names, fit) = (cut(&names, 3, names.len()), if names.len() == 1 { "fits" } else { "fit" });
    let best = few.first()?;
    let (least, all) = (size(Bytes(best.budget)), plain.memory());
    let title = format!("Within {least} only {names} {fit}: an iteration takes {} as within {all}", longer(best));
    let is_exact = |fit: &&&Fit<'_>| fit.results.fidelity == FidelityClass::Exact;
    let exact = tightest(one.iter().filter(is_exact).copied().collect()).into_iter().next()?;
    let mut more = format!("Exact gradients need {} ({}: {})", size(Bytes(exact.budget)), exact.policy, longer(exact));
    let fastest = others.iter().min_by(|a, b| a.time().total_cmp(&b.time()));
    if let Some(other) = fastest.filter(|other| other.time() < plain.time()) {
        let (policy, stack, class) = (other.policy, other.stack, other.results.fidelity.word());
        let (time, memory) = (three_digits(other.time()), other.memory());
        more += &format!("; {policy} on the engine {stack} takes {time} s and {memory}, with {class} gradients");
    }
    Some([title, more])
}

/// Of the runs that fit the least budget, the fastest first.
fn tightest<'f>(mut fits: Vec<&'f Fit<'f>>) -> Vec<&'f Fit<'f>> {
    fits.sort_by(|a, b| a.budget.cmp(&b.budget).then(a.time().total_cmp(&b.time())));
    let least = fits.first().map(|fit| fit.budget);
    fits.retain(|fit| Some(fit.budget) == least);
    fits
}

/// Time against memory of these runs, a cloud for each policy and class of gradients.
fn panel(title: &str, fits: &[&Fit<'_>]) -> Panel {
    let class = |fit: &Fit<'_>| fit.results.fidelity.word();
    let kinds: IndexSet<(&str, &str)> = fits.iter().map(|fit| (fit.policy, class(fit))).collect();
    let mut front = Front::new().overall();
    for kind in kinds {
        let own = fits.iter().filter(|fit| (fit.policy, class(fit)) == kind);
        front = front.cloud_of(kind.1, kind.0, own.map(|fit| fit.point()).collect::<Vec<_>>());
        let look = if kind.1 == FidelityClass::Exact.word() { Look::Solid } else { Look::Outlined };
        front.clouds.last_mut().into_iter().for_each(|cloud| cloud.look = look);
    }
    let memory = Axis::new("peak memory").unit("GB").log();
    Panel::new(front).title(title).x(memory).y(Axis::new("time of an iteration").unit("s"))
}

/// A row a policy, those that fit the least budget first; a column a budget.
fn table(rows: &[Row], fits: &[Fit<'_>]) -> (Vec<String>, Vec<Vec<String>>) {
    let budgets: BTreeSet<u64> = fits.iter().map(|fit| fit.budget).collect();
    let policies: IndexSet<&str> = rows.iter().filter_map(|row| text(row, "policy")).collect();
    let within = |policy: &str, budget: u64| fits.iter().find(|fit| fit.policy == policy && fit.budget == budget);
    let row = |policy: &&str| {
        let least = budgets.iter().find_map(|budget| within(policy, *budget));
        let name = least.map_or_else(|| (*policy).to_owned(), |fit| format!("{policy}: {}", gradients(fit.results)));
        let seconds = |budget: &u64| within(policy, *budget).map_or("–".to_owned(), |fit| three_digits(fit.time()));
        let order = least.map_or((u64::MAX, 0), |fit| (fit.budget, fit.time().to_bits()));
        (order, std::iter::once(name).chain(budgets.iter().map(seconds)).collect::<Vec<_>>())
    };
    let mut table: Vec<_> = policies.iter().map(row).collect();
    table.sort();
    let columns = std::iter::once("policy".to_owned()).chain(budgets.iter().map(|budget| size(Bytes(*budget))));
    (columns.collect(), table.into_iter().map(|(_, row)| row).collect())
}
