//! The page of a run: accuracy over simulated time, phones left out and why, memory and energy by memory class; and
//! the results as text.

use haversack_devices::units::{Bytes, Nanos};
use haversack_reports::figure::{Axis, BarSeries, Bars, Lines, Series, Stack};
use haversack_reports::page::{Drawn, RunPage, RunSection};
use haversack_reports::{Figure, FigureError, Panel};
use indexmap::{IndexMap, IndexSet};
use serde_json::{Map, Value};

use super::tables::{CLASSES, EXCLUSIONS, ROUNDS, Tables};
use crate::quantities;

/// Rows of a table at most.
const MOST_ROWS: usize = 24;

/// The page for the specification in `record`; `text` is the terminal's output.
pub(super) fn page(record: &Map<String, Value>, tables: &Tables, text: &str) -> Result<RunPage, FigureError> {
    let runs = Runs::of(tables);
    let mut lead = vec![note(record, runs.names.len())];
    lead.extend(text.lines().map(str::to_owned));
    let sections = vec![over_time(&runs, tables)?, excluded(tables)?, classes(tables)?, specification(record)];
    Ok(RunPage { title: title(record), lead, sections })
}

fn drawn(title: &str, alt: String, panels: impl IntoIterator<Item = Panel>) -> Result<Option<Drawn>, FigureError> {
    let svg = panels.into_iter().fold(Figure::new(title).order(ORDER), Figure::panel).render()?.svg;
    Ok(Some(Drawn { alt, svg }))
}

/// A row in words: each column's name and value.
fn words(columns: &[String], row: &[String]) -> String {
    let cells = columns[1..].iter().zip(&row[1..]).map(|(column, cell)| format!("{column} {cell}"));
    format!("{}: {}", row[0], cells.collect::<Vec<_>>().join(", "))
}

/// The alternative text of a figure that shows the numbers of the table below it.
fn alt(what: &str, columns: &[String], rows: &[Vec<String>]) -> String {
    let rows: Vec<String> = rows.iter().map(|row| words(columns, row)).collect();
    format!("{what}. {}.", rows.join("; "))
}

/// The first rows, and the number of those left out.
fn first(mut rows: Vec<Vec<String>>, columns: usize) -> Vec<Vec<String>> {
    if rows.len() > MOST_ROWS {
        let more = format!("and {} more", rows.len() - MOST_ROWS + 1);
        rows.truncate(MOST_ROWS - 1);
        rows.push(std::iter::once(more).chain((1..columns).map(|_| String::new())).collect());
    }
    rows
}

/// One row per federation: the accuracy it reached, and when.
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
    let [title, what, note] = match &panel {
        Some(_) => ["Accuracy over simulated time", "Lines of accuracy over hours, and of minutes by round", ""],
        None => ["Duration of rounds", "Lines of minutes by round", "Without learning: rounds are only timed."],
    };
    let alt = alt(what, &columns, &rows);
    let figure = drawn(title, alt, panel.into_iter().chain([durations(runs, tables)]))?;
    Ok(RunSection { title: title.to_owned(), note: note.to_owned(), figure, columns, rows, are_words: false })
}

/// One row per reason for leaving phones out, the most frequent first.
fn excluded(tables: &Tables) -> Result<RunSection, FigureError> {
    let columns = ["why phones are left out", "phones"].map(str::to_owned).to_vec();
    let mut reasons: IndexMap<String, usize> = IndexMap::new();
    for reason in tables.texts(EXCLUSIONS, "reason") {
        *reasons.entry(reason).or_default() += 1;
    }
    reasons.sort_by(|_, one, _, other| other.cmp(one));
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
    let alt = format!("Stacks of phones by memory, and of what became of their parts. {}.", by_class.join("; "));
    let figure = drawn(title, alt, [left_out(tables), parts(tables)])?;
    Ok(RunSection { title: title.to_owned(), note: note.to_owned(), figure, columns, rows, are_words: false })
}

/// One row per memory class.
fn classes(tables: &Tables) -> Result<RunSection, FigureError> {
    let mut columns = vec!["memory".to_owned(), "phones".to_owned(), "left out".to_owned()];
    columns.extend(OUTCOMES.map(|(_, name)| name.to_owned()));
    columns.extend(["energy", "median budget"].map(str::to_owned));
    let counted: Vec<&str> =
        ["phones"].into_iter().chain(WHY.map(|why| why.0)).chain(OUTCOMES.map(|of| of.0)).collect();
    let (names, sums) = by_class(tables, &counted);
    let (_, energies) = by_class(tables, &["energy_j"]);
    let row = |(class, name): (usize, &String)| {
        let left_out: f64 = sums[1..=WHY.len()].iter().map(|sums| sums[class]).sum();
        let own = of_class(tables, name, "budget_bytes");
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
    let note =
        "Parts of phones, and what all of them took together; the budget is the median of what training might hold.";
    let alt = alt("Bars of the median budget and of energy by memory", &columns, &rows);
    let figure = drawn(title, alt, [budgets(tables), energy(tables)])?;
    Ok(RunSection { title: title.to_owned(), note: note.to_owned(), figure, columns, rows, are_words: false })
}

/// The specification, one row per key; nested keys are joined by a point.
fn specification(record: &Map<String, Value>) -> RunSection {
    let mut rows = Vec::new();
    record.get("specification").into_iter().for_each(|asked| told(asked, "", &mut rows));
    let columns = ["key", "value"].map(str::to_owned).to_vec();
    RunSection { title: "Specification".to_owned(), columns, rows, are_words: true, ..RunSection::default() }
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

/// The results as text; each round waits for `wanted` updates, if that is one number.
pub(super) fn text(tables: &Tables, wanted: Option<f64>) -> String {
    let numbers = |name: &str| tables.numbers(ROUNDS, name).into_iter().map(|number| number.unwrap_or(0.0));
    let all = |name: &str| numbers(name).sum::<f64>();
    let time = |seconds: f64| quantities::time(Nanos((seconds * 1e9) as u64));
    let (rounds, took) = (tables.0[ROUNDS].height(), all("duration_s"));
    let mut text = String::new();
    if let Some(last) = tables.numbers(ROUNDS, "run").last().copied().flatten() {
        let first = tables.numbers(ROUNDS, "run").first().copied().flatten().unwrap_or(0.0);
        text += &format!("{} federations\n", last - first + 1.0);
    }
    let each = time(took / rounds.max(1) as f64);
    let rounds = quantities::counted(rounds, "round", "rounds");
    text += &format!("{rounds} in {} of simulated time, {each} each\n", time(took));
    text += &format!(
        "{} parts of phones: {} completed, {} timed out, {} dropped, {} killed\n",
        all("selected"),
        all("completed"),
        all("timed_out"),
        all("dropped"),
        all("killed")
    );
    if let Some(wanted) = wanted {
        let short = numbers("completed").filter(|completed| *completed < wanted).count();
        if short > 0 {
            let short = quantities::counted(short, "round", "rounds");
            text += &format!("{short} had fewer than the {wanted} updates that they waited for\n");
        }
    }
    text += &format!("{:.1} kJ of all phones\n", numbers("energy_j").fold(0.0, |sum, energy| sum + energy) / 1e3);
    let why = ["the system ends training even at rest", "they hold no samples", "their users' traces end too early"];
    let (classes, sums) = by_class(tables, &WHY.map(|(column, _)| column));
    for (why, sums) in why.into_iter().zip(sums) {
        let left_out: f64 = sums.iter().sum();
        if left_out > 0.0 {
            let of_class = classes.iter().zip(&sums).filter(|(_, number)| **number > 0.0);
            let of_class: Vec<String> = of_class.map(|(class, number)| format!("{number} with {class}")).collect();
            text += &format!("{left_out} phones were left out, since {why}: {}\n", of_class.join(", "));
        }
    }
    let accuracy = tables.numbers(ROUNDS, "accuracy");
    if let Some((row, accuracy)) = accuracy.iter().enumerate().rev().find_map(|(row, found)| Some((row, (*found)?))) {
        let round = numbers("round").nth(row).unwrap_or(0.0);
        let whose = if text.contains(" federations\n") { " of the last" } else { "" };
        text += &format!("accuracy {} after round {round}{whose}\n", quantities::percent(accuracy));
    }
    text
}

/// The name of the figure's files.
pub(super) const FIGURE: &str = "federation";
/// The most curves drawn, of the first federations.
const MOST_CURVES: usize = 8;
/// The outcomes of phones in rounds: the column, and its label.
const OUTCOMES: [(&str, &str); 4] =
    [("completed", "completed"), ("timed_out", "timed out"), ("dropped", "dropped"), ("killed", "killed")];

/// Names that get their colours first: completed is green, and timed out is red.
const ORDER: [&str; 5] = ["all phones", "timed out", "completed", "killed", "dropped"];

/// Accuracy over simulated time where it was measured, durations of rounds, and by memory class the outcomes of phones,
/// the phones left out and why, energy and budgets.
pub(super) fn figure(record: &Map<String, Value>, tables: &Tables) -> Figure {
    let runs = Runs::of(tables);
    let (_, sums) = by_class(tables, &OUTCOMES.map(|outcome| outcome.0));
    let [completed, all] = [&sums[..1], &sums[..]].map(|of| of.concat().iter().sum::<f64>());
    let title = format!("{}: {completed} of {all} parts of phones completed", title(record));
    let figure = Figure::new(title).note(note(record, runs.names.len())).order(ORDER);
    let panels = [durations(&runs, tables), parts(tables), left_out(tables), energy(tables), budgets(tables)];
    learned(&runs, tables).into_iter().chain(panels).fold(figure, Figure::panel)
}

/// When each round ended, in hours, and its accuracy in percent where that was measured.
fn measured(tables: &Tables) -> Vec<(f64, Option<f64>)> {
    let [start, took, accuracy] = ["start_s", "duration_s", "accuracy"].map(|name| tables.numbers(ROUNDS, name));
    let ends = start.iter().zip(&took).map(|(start, took)| (start.unwrap_or(0.0) + took.unwrap_or(0.0)) / 3600.0);
    ends.zip(accuracy).map(|(end, accuracy)| (end, accuracy.map(|share| 100.0 * share))).collect()
}

/// Accuracy over simulated time; `None` if nothing is learned.
fn learned(runs: &Runs, tables: &Tables) -> Option<Panel> {
    let measured = measured(tables);
    measured.iter().any(|(_, accuracy)| accuracy.is_some()).then(|| {
        let reached = runs.lines(|row| Some((measured[row].0, measured[row].1?)));
        let x = Axis::new("simulated time").unit("h").from_zero();
        Panel::new(reached).title("what is learned").x(x).y(Axis::new("accuracy").unit("%").from_zero())
    })
}

/// The durations of rounds.
fn durations(runs: &Runs, tables: &Tables) -> Panel {
    let [numbers, took] = ["round", "duration_s"].map(|name| tables.numbers(ROUNDS, name));
    let durations = runs.lines(|row| Some((numbers[row]?, took[row]? / 60.0)));
    let last = numbers.iter().flatten().copied().fold(1.0, f64::max);
    let every = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0].into_iter().find(|every| last / every <= 8.0);
    let every = every.unwrap_or(1000.0);
    let ticks = (1..).map(|tick| f64::from(tick) * every).take_while(|tick| *tick <= last);
    Panel::new(durations)
        .title("duration of rounds")
        .x(Axis::new("round").ticks_at(ticks.collect::<Vec<_>>()))
        .y(Axis::new("duration").unit("min").from_zero())
}

/// The energy of each class's phones, the mean over the federations.
fn energy(tables: &Tables) -> Panel {
    bars(tables, "energy", "kJ", "energy_j", 1e-3)
}

/// The median memory budget of each class's phones, the mean over the federations.
fn budgets(tables: &Tables) -> Panel {
    bars(tables, "median budget", "GB", "budget_bytes", 1e-9)
}

/// The rows of each federation.
struct Runs {
    /// The label of each federation.
    names: Vec<String>,
    of: Vec<usize>,
}

impl Runs {
    fn of(tables: &Tables) -> Self {
        let frame = &tables.0[ROUNDS];
        let before = frame.get_column_names().iter().take_while(|name| name.as_str() != "round").count();
        if before == 0 {
            return Self { names: vec!["all phones".to_owned()], of: vec![0; frame.height()] };
        }
        let named = frame.get_column_names().into_iter().map(|name| name.as_str().to_owned()).take(before).skip(1);
        let values: Vec<Vec<String>> = named.map(|name| tables.texts(ROUNDS, &name)).collect();
        let (mut names, mut of) = (Vec::new(), Vec::new());
        for row in 0..frame.height() {
            let name = values.iter().map(|values| values[row].as_str()).collect::<Vec<_>>().join(", ");
            if names.last() != Some(&name) {
                names.push(name);
            }
            of.push(names.len() - 1);
        }
        Self { names, of }
    }

    /// The rounds of a federation: when each ended, in hours, and its accuracy in percent where that was measured.
    fn rounds(&self, run: usize, tables: &Tables) -> Vec<(f64, Option<f64>)> {
        let rounds = measured(tables).into_iter().zip(&self.of);
        rounds.filter(|(_, of)| **of == run).map(|(round, _)| round).collect()
    }

    /// One curve per federation.
    fn lines(&self, point: impl Fn(usize) -> Option<(f64, f64)>) -> Lines {
        let names = self.names.iter().enumerate().take(MOST_CURVES);
        names.fold(Lines::new(), |lines, (run, name)| {
            let rows = self.of.iter().enumerate().filter(|(_, of)| **of == run);
            lines.series(Series::new(name.clone(), rows.filter_map(|(row, _)| point(row)).collect::<Vec<_>>()))
        })
    }
}

/// The values of all federations for a memory class in a column.
fn of_class(tables: &Tables, class: &str, name: &str) -> Vec<f64> {
    let rows = tables.texts(CLASSES, "memory_class").into_iter().zip(tables.numbers(CLASSES, name));
    rows.filter(|(of, _)| of == class).filter_map(|(_, value)| value).collect()
}

/// The memory classes, and the sums of columns over all federations.
fn by_class(tables: &Tables, names: &[&str]) -> (Vec<String>, Vec<Vec<f64>>) {
    let classes: IndexSet<String> = tables.texts(CLASSES, "memory_class").into_iter().collect();
    let sums = |name: &&str| classes.iter().map(|class| of_class(tables, class, name).iter().sum()).collect();
    let sums = names.iter().map(sums).collect();
    (classes.into_iter().collect(), sums)
}

/// The outcomes of each class's phones in rounds.
fn parts(tables: &Tables) -> Panel {
    let (classes, sums) = by_class(tables, &OUTCOMES.map(|outcome| outcome.0));
    let stack = OUTCOMES.iter().zip(sums).fold(Stack::new(classes), |stack, ((_, name), sums)| stack.part(*name, sums));
    Panel::new(stack).title("what became of phones").y(Axis::new("parts").from_zero())
}

/// The reasons for leaving phones out: the column, and its label.
const WHY: [(&str, &str); 3] =
    [("without_plan", "ended at rest"), ("without_samples", "no samples"), ("without_trace", "trace ends early")];

/// The phones of each class, and those left out, by reason.
fn left_out(tables: &Tables) -> Panel {
    let (classes, sums) = by_class(tables, &["phones", WHY[0].0, WHY[1].0, WHY[2].0]);
    let rest = (0..classes.len()).map(|class| sums[0][class] - sums[1..].iter().map(|sums| sums[class]).sum::<f64>());
    let mut stack = Stack::new(classes.clone()).part("not left out", rest.collect::<Vec<_>>());
    for ((_, why), sums) in WHY.into_iter().zip(&sums[1..]) {
        if sums.iter().any(|sum| *sum > 0.0) {
            stack = stack.part(why, sums.clone());
        }
    }
    Panel::new(stack).title("who was left out, and why").y(Axis::new("phones").from_zero())
}

/// A mean over the federations by class.
fn bars(tables: &Tables, what: &str, unit: &str, name: &str, scale: f64) -> Panel {
    let (classes, _) = by_class(tables, &[]);
    let mean = |class: &String| {
        let own = of_class(tables, class, name);
        (!own.is_empty()).then(|| scale * own.iter().sum::<f64>() / own.len() as f64)
    };
    let means: Vec<Option<f64>> = classes.iter().map(mean).collect();
    let title = format!("{what} by memory");
    Panel::new(Bars::new(classes).series(BarSeries::new(what, means)))
        .title(title)
        .y(Axis::new(what).unit(unit).from_zero())
}

/// A value of the specification; `None` if it lists several.
fn asked<'r>(record: &'r Map<String, Value>, keys: &[&str]) -> Option<&'r Value> {
    let specification = record.get("specification")?;
    let first = specification.get("first").unwrap_or(specification);
    let spans = specification.get("spans");
    let last = keys.last()?;
    if spans.is_some_and(|spans| spans.get(*last).is_some()) {
        return None;
    }
    keys.iter().try_fold(first, |value, key| value.get(*key))
}

/// The number of updates that a round waits for; `None` if it differs between federations.
pub(super) fn wanted(record: &Map<String, Value>) -> Option<f64> {
    asked(record, &["rules", "cohort"]).and_then(Value::as_f64)
}

fn title(record: &Map<String, Value>) -> String {
    let number = asked(record, &["population"]).and_then(Value::as_u64);
    let phones = number.map_or_else(|| "phones".to_owned(), |number| format!("{number} phones"));
    let text = |key| asked(record, &[key]).and_then(Value::as_str);
    let network = text("network").map_or_else(|| "several networks".to_owned(), str::to_owned);
    let with = text("policy").map_or_else(String::new, |policy| format!(" with {policy}"));
    format!("{phones} train {network}{with}")
}

fn note(record: &Map<String, Value>, runs: usize) -> String {
    let text = |keys: &[&str]| asked(record, keys).and_then(Value::as_str).map(str::to_owned);
    let mut notes: Vec<String> = Vec::new();
    notes.extend(text(&["rules", "selector"]).map(|selector| format!("selector: {selector}")));
    if asked(record, &["learning"]).is_some_and(|learning| !learning.is_null()) {
        notes.extend(text(&["learning", "stand_in"]).map(|stand_in| format!("{stand_in} learns instead")));
    } else {
        notes.push("without learning".to_owned());
    }
    if runs > 1 {
        notes.push(format!("{runs} federations; phones are of all together, energy and budgets their mean"));
    }
    if runs > MOST_CURVES {
        notes.push(format!("curves of the first {MOST_CURVES}"));
    }
    notes.join("; ")
}
