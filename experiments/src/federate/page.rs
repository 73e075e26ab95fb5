//! A run's page: what was learned over simulated time, who was left out and why, memory and energy by memory class.

use haversack_devices::units::{Bytes, Nanos};
use haversack_reports::page::{RunPage, RunSection};
use haversack_reports::{Figure, FigureError, Panel};
use serde_json::{Map, Value};

use super::curves::{OUTCOMES, Runs, WHY, budgets, by_class, durations, energy, learned, left_out, note, parts, title};
use super::tables::{CLASSES, EXCLUSIONS, ROUNDS, Tables};
use crate::quantities;

/// Rows of a table at most.
const MOST_ROWS: usize = 24;

/// The page of what `record` asks for; `text` is what a terminal is told.
pub(super) fn page(record: &Map<String, Value>, tables: &Tables, text: &str) -> Result<RunPage, FigureError> {
    let runs = Runs::of(tables);
    let mut lead = vec![note(record, runs.names.len())];
    lead.extend(text.lines().map(str::to_owned));
    let sections = vec![over_time(&runs, tables)?, excluded(tables)?, classes(tables)?, specification(record)];
    Ok(RunPage { title: title(record), lead, sections })
}

fn drawn(title: &str, panels: impl IntoIterator<Item = Panel>) -> Result<String, FigureError> {
    Ok(panels.into_iter().fold(Figure::new(title).columns(2), Figure::panel).render()?.svg)
}

/// A row in words: what each column says, by its name.
fn words(columns: &[String], row: &[String]) -> String {
    let cells = columns[1..].iter().zip(&row[1..]).map(|(column, cell)| format!("{column} {cell}"));
    format!("{}: {}", row[0], cells.collect::<Vec<_>>().join(", "))
}

/// What a figure shows that has the numbers of the table below it.
fn alt(what: &str, columns: &[String], rows: &[Vec<String>]) -> String {
    let rows: Vec<String> = rows.iter().map(|row| words(columns, row)).collect();
    format!("{what}. {}.", rows.join("; "))
}

/// The first rows of many, and how many are left out.
fn first(mut rows: Vec<Vec<String>>, columns: usize) -> Vec<Vec<String>> {
    if rows.len() > MOST_ROWS {
        let more = format!("and {} more", rows.len() - MOST_ROWS + 1);
        rows.truncate(MOST_ROWS - 1);
        rows.push(std::iter::once(more).chain((1..columns).map(|_| String::new())).collect());
    }
    rows
}

/// A row a federation: what it reached, and when.
fn over_time(runs: &Runs, tables: &Tables) -> Result<RunSection, FigureError> {
    let columns = ["federation", "rounds", "simulated time", "accuracy at the end", "highest accuracy"];
    let columns = columns.map(str::to_owned).to_vec();
    let row = |(run, name): (usize, &String)| {
        let rounds = runs.rounds(run, tables);
        let accuracies = || rounds.iter().filter_map(|(_, accuracy)| *accuracy);
        let percent = |accuracy: Option<f64>| accuracy.map_or_else(|| "–".to_owned(), |found| format!("{found:.1} %"));
        let ended_s = rounds.last().map_or(0.0, |(hours, _)| hours * 3600.0);
        let highest = accuracies().reduce(f64::max);
        let time = quantities::time(Nanos((ended_s * 1e9) as u64));
        vec![name.clone(), rounds.len().to_string(), time, percent(accuracies().next_back()), percent(highest)]
    };
    let rows: Vec<Vec<String>> = first(runs.names.iter().enumerate().map(row).collect(), columns.len());
    let panel = learned(runs, tables);
    let title = if panel.is_some() { "Accuracy over simulated time" } else { "What rounds take" };
    let what = if panel.is_some() {
        "Lines of accuracy over hours, and of minutes by round"
    } else {
        "Lines of minutes by round"
    };
    let svg = drawn(title, panel.into_iter().chain([durations(runs, tables)]))?;
    let note = if tables.numbers(ROUNDS, "accuracy").iter().all(Option::is_none) {
        "Nobody learns: rounds are timed alone."
    } else {
        ""
    };
    Ok(RunSection {
        title: title.to_owned(),
        note: note.to_owned(),
        svg,
        alt: alt(what, &columns, &rows),
        columns,
        rows,
        are_words: false,
    })
}

/// A row a reason for which phones are left out, those of most phones first.
fn excluded(tables: &Tables) -> Result<RunSection, FigureError> {
    let columns = ["why phones are left out", "phones"].map(str::to_owned).to_vec();
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for reason in tables.texts(EXCLUSIONS, "reason") {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, number)) => *number += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let rows = reasons.into_iter().map(|(reason, number)| vec![reason, number.to_string()]).collect();
    let rows = first(rows, columns.len());
    let (note, columns) =
        if rows.is_empty() { ("No phone is left out that was looked at.", Vec::new()) } else { ("", columns) };
    let (names, sums) = by_class(tables, &["phones", WHY[0].0, WHY[1].0, WHY[2].0]);
    let in_words = |(class, name): (usize, &String)| {
        let why = WHY.iter().zip(&sums[1..]).filter(|(_, sums)| sums[class] > 0.0);
        let why: Vec<String> = why.map(|((_, why), sums)| format!(", {why} {}", sums[class])).collect();
        format!("{name}: phones {}{}", sums[0][class], why.concat())
    };
    let by_class: Vec<String> = names.iter().enumerate().map(in_words).collect();
    let title = "Who was left out, and why";
    let svg = drawn(title, [left_out(tables), parts(tables)])?;
    let alt = format!("Stacks of phones by memory, and of what became of their parts. {}.", by_class.join("; "));
    Ok(RunSection { title: title.to_owned(), note: note.to_owned(), svg, alt, columns, rows, are_words: false })
}

/// A row a memory class.
fn classes(tables: &Tables) -> Result<RunSection, FigureError> {
    let mut columns = vec!["memory".to_owned(), "phones".to_owned(), "left out".to_owned()];
    columns.extend(OUTCOMES.map(|(_, name)| name.to_owned()));
    columns.extend(["energy", "median budget"].map(str::to_owned));
    let counted: Vec<&str> =
        ["phones"].into_iter().chain(WHY.map(|why| why.0)).chain(OUTCOMES.map(|of| of.0)).collect();
    let (names, sums) = by_class(tables, &counted);
    let (_, energies) = by_class(tables, &["energy_j"]);
    let budgets_of = tables.numbers(CLASSES, "budget_bytes");
    let of = tables.texts(CLASSES, "memory_class");
    let row = |(class, name): (usize, &String)| {
        let left_out: f64 = sums[1..=WHY.len()].iter().map(|sums| sums[class]).sum();
        let own: Vec<f64> =
            of.iter().zip(&budgets_of).filter(|(of, _)| *of == name).filter_map(|(_, own)| *own).collect();
        let mean = own.iter().sum::<f64>() / own.len().max(1) as f64;
        let budget = if own.is_empty() { "–".to_owned() } else { quantities::size(Bytes(mean as u64)) };
        let mut row = vec![name.clone(), sums[0][class].to_string(), left_out.to_string()];
        row.extend(sums[1 + WHY.len()..].iter().map(|sums| sums[class].to_string()));
        let joules = energies[0][class];
        row.extend([if joules < 1e3 { format!("{joules:.1} J") } else { format!("{:.1} kJ", joules * 1e-3) }, budget]);
        row
    };
    let rows: Vec<Vec<String>> = names.iter().enumerate().map(row).collect();
    let title = "Memory and energy by memory class";
    let svg = drawn(title, [budgets(tables), energy(tables)])?;
    let note =
        "Parts of phones, and what all of them took together; the budget is the median of what training might hold.";
    let alt = alt("Bars of the median budget and of energy by memory", &columns, &rows);
    Ok(RunSection { title: title.to_owned(), note: note.to_owned(), svg, alt, columns, rows, are_words: false })
}

/// What was asked for, a row a key; keys within others follow a point.
fn specification(record: &Map<String, Value>) -> RunSection {
    let mut rows = Vec::new();
    record.get("specification").into_iter().for_each(|asked| told(asked, "", &mut rows));
    let columns = ["key", "value"].map(str::to_owned).to_vec();
    RunSection { title: "What was asked for".to_owned(), columns, rows, are_words: true, ..RunSection::default() }
}

fn told(value: &Value, key: &str, rows: &mut Vec<Vec<String>>) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let shown = match value {
        Value::Null => return,
        Value::Object(keys) => {
            let within = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
            return keys.iter().for_each(|(name, value)| told(value, &within(name), rows));
        }
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        value => text(value),
    };
    rows.push(vec![key.to_owned(), shown]);
}
