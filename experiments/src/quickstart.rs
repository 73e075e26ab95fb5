//! `haversack quickstart`: one network on one phone under every policy and a few memory budgets, as a page whose title
//! states the finding.

use std::collections::BTreeSet;

use clap::Args;
use haversack_devices::Bytes;
use haversack_reports::page::{Drawn, RunPage, RunSection};
use haversack_reports::table::three_digits;
use haversack_reports::{Axis, Figure, Front, Look, Panel, write_atomically};
use indexmap::IndexSet;

use crate::advise::gradients;
use crate::output::print;
use crate::progress::word;
use crate::quantities::{cut, size};
use crate::run::{Results, Status};
use crate::scenario::Cell;
use crate::source::Source;
use crate::sweep::{PAGE, Row, Specification, SweepOptions, Told, sweep_into};
use crate::work::{OutputFolder, WorkOptions};
use crate::{CommandError, Result};

/// Where the page of `quickstart` goes.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("out", |out| out.default_value("quickstart")), after_help = include_str!("../help/quickstart.txt"))]
pub struct QuickstartOptions {
    #[command(flatten)]
    work: WorkOptions,
}

/// Runs every policy and writes the page.
///
/// # Errors
/// A folder that has other results or cannot be written; a standard output that cannot be written; Ctrl-C.
pub fn run(options: &QuickstartOptions) -> Result<()> {
    let (work, out) = (options.work.clone(), &options.work.out);
    let specification = Source::Own { command: "quickstart", text: include_str!("../../examples/quickstart.toml") };
    let runs = Specification::of(&specification)?;
    let found = sweep_into(runs, &SweepOptions { specification, work, shard: None, dry_run: false }, Some(tell))?;
    let next = include_str!("../texts/quickstart.txt").replace("{out}", &word(out));
    print(&format!("{found}\nwrote {}\n{next}", word(&out.join(PAGE))))
}

/// A run that fits its budget.
struct Fit<'r> {
    policy: &'r str,
    stack: &'r str,
    budget: u64,
    /// Seconds.
    time: f64,
    /// How faithful its gradients are.
    class: &'static str,
    results: &'r Results,
}

impl<'r> Fit<'r> {
    fn of(row: &'r Row) -> Option<Self> {
        let (policy, stack, budget) =
            (text(row, "policy")?, text(row, "stack")?, cell(row, "memory_budget_bytes")?.whole()?);
        let results = row.results.as_ref().filter(|_| row.status == Status::Ok)?;
        let (time, class) = (results.iteration_time_s, results.fidelity.word());
        Some(Self { policy, stack, budget, time, class, results })
    }
}

fn cell<'r>(row: &'r Row, name: &str) -> Option<&'r Cell> {
    row.scenario.iter().find(|(known, _)| known == name).map(|(_, cell)| cell)
}

fn text<'r>(row: &'r Row, name: &str) -> Option<&'r str> {
    if let Cell::Text(text) = cell(row, name)? { text.as_deref() } else { None }
}

/// Draws the figure and writes the page; the findings.
fn tell(rows: &[Row], folder: &OutputFolder) -> Result<Told> {
    let fits: Vec<Fit<'_>> = rows.iter().filter_map(Fit::of).collect();
    let [title, more] = findings(&fits).ok_or_else(|| CommandError::failed("no run fits its budget"))?;
    let stack = fits.first().map_or("", |fit| fit.stack);
    let note = format!(
        "ResNet-50 at batch 32 on a Galaxy S22; {} of {} runs fit; open marks and dotted lines: gradients are not exact",
        fits.len(),
        rows.len()
    );
    let front = Figure::new(&title)
        .note(&note)
        .panel(panel(&format!("one engine: {stack}"), &fits, |fit| fit.stack == stack))
        .panel(panel("engines of their own", &fits, |fit| fit.stack != stack))
        .render()?;
    front.write(&folder.path("pareto"))?;
    let (columns, table) = table(rows, &fits);
    let section = RunSection {
        title: "Seconds of an iteration within each memory budget".to_owned(),
        note: "A dash: no plan fits.".to_owned(),
        figure: Some(Drawn { alt: format!("Time against peak memory. {title}. {more}."), svg: front.svg }),
        columns,
        rows: table,
        are_words: false,
    };
    let (found, lead) = (format!("{title}.\n{more}.\n"), vec![format!("{more}."), format!("{note}.")]);
    let page = RunPage { title, lead, sections: vec![section] };
    write_atomically(&folder.path(PAGE), page.render().map_err(CommandError::failed)?.as_bytes())?;
    Ok((found, vec!["pareto.svg".to_owned(), "pareto.png".to_owned(), PAGE.to_owned()]))
}

/// Two sentences without their full stops: the least budget of any policy on the engine of the first run, which is the one without
/// a policy; and that of exact gradients, with the fastest run on another engine.
fn findings(fits: &[Fit<'_>]) -> Option<[String; 2]> {
    let plain = fits.first()?;
    let longer = |fit: &Fit<'_>| format!("{} times as long", three_digits(fit.time / plain.time));
    let mut one: Vec<&Fit<'_>> = fits.iter().filter(|fit| fit.stack == plain.stack).collect();
    one.sort_by(|a, b| a.budget.cmp(&b.budget).then(a.time.total_cmp(&b.time)));
    let (best, exact) = (one.first()?, one.iter().find(|fit| fit.class == "exact")?);
    let names: Vec<String> =
        one.iter().filter(|fit| fit.budget == best.budget).map(|fit| fit.policy.to_owned()).collect();
    let fit = if names.len() == 1 { "fits" } else { "fit" };
    let names = if names.len() < 4 { names.join(" and ") } else { cut(&names, 2, names.len()) };
    let (least, all) = (size(Bytes(best.budget)), size(Bytes(plain.results.peak_memory_bytes)));
    let title = format!("Within {least} only {names} {fit}: at best {} as with all memory ({all})", longer(best));
    let mut more = format!("Exact gradients need {} ({}: {})", size(Bytes(exact.budget)), exact.policy, longer(exact));
    let others = fits.iter().filter(|fit| fit.stack != plain.stack && fit.time < plain.time);
    if let Some(Fit { policy, time, class, results, .. }) = others.min_by(|a, b| a.time.total_cmp(&b.time)) {
        let (time, memory) = (three_digits(*time), size(Bytes(results.peak_memory_bytes)));
        more += &format!("; {policy}, on an engine of its own, takes {time} s and {memory}, with {class} gradients");
    }
    Some([title, more])
}

/// Time against memory of the runs that are of `one` engine, a cloud for each policy and class of gradients.
fn panel(title: &str, fits: &[Fit<'_>], one: impl Fn(&Fit<'_>) -> bool) -> Panel {
    // Within all memory most policies do nothing, and their runs are those without a policy.
    let place = |fit: &Fit<'_>| (fit.results.peak_memory_bytes as f64 * 1e-9, fit.time);
    let is_plain =
        |fit: &Fit<'_>| fits.first().is_some_and(|plain| plain.policy != fit.policy && place(plain) == place(fit));
    let drawn: Vec<&Fit<'_>> = fits.iter().filter(|fit| one(fit) && !is_plain(fit)).collect();
    let kinds: IndexSet<(&str, &str)> = drawn.iter().map(|fit| (fit.policy, fit.class)).collect();
    let front = kinds.into_iter().fold(Front::new().overall(), |front, (policy, class)| {
        let own = drawn.iter().filter(|fit| (fit.policy, fit.class) == (policy, class));
        let mut front = front.cloud_of(class, policy, own.map(|fit| place(fit)).collect::<Vec<_>>());
        let look = if class == "exact" { Look::Solid } else { Look::Outlined };
        front.clouds.last_mut().into_iter().for_each(|cloud| cloud.look = look);
        front
    });
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
        let seconds = |budget: &u64| within(policy, *budget).map_or("–".to_owned(), |fit| three_digits(fit.time));
        let order = least.map_or((u64::MAX, 0), |fit| (fit.budget, fit.time.to_bits()));
        (order, std::iter::once(name).chain(budgets.iter().map(seconds)).collect::<Vec<_>>())
    };
    let mut table: Vec<_> = policies.iter().map(row).collect();
    table.sort();
    let columns = std::iter::once("policy".to_owned()).chain(budgets.iter().map(|budget| size(Bytes(*budget))));
    (columns.collect(), table.into_iter().map(|(_, row)| row).collect())
}
