//! What federations reach over time, what their rounds take, who was left out, and what each memory class did.

use haversack_reports::figure::{Axis, BarSeries, Bars, Lines, Series, Stack};
use haversack_reports::{Figure, Panel};
use serde_json::{Map, Value};

use super::tables::{CLASSES, ROUNDS, Tables};

/// The name of the figure's files.
pub(super) const NAME: &str = "federation";
/// Curves that are drawn at most, of the first federations.
const MOST_CURVES: usize = 8;
/// What became of parts: a column, and what it is called.
pub(super) const OUTCOMES: [(&str, &str); 4] =
    [("completed", "completed"), ("timed_out", "timed out"), ("dropped", "dropped"), ("killed", "killed")];

/// Accuracy by simulated time where it was measured, what rounds take, and by memory class what became of phones, who was left out
/// and why, energy and budgets.
pub(super) fn figure(record: &Map<String, Value>, tables: &Tables) -> Figure {
    let runs = Runs::of(tables);
    let figure = Figure::new(title(record)).note(note(record, runs.names.len())).columns(2);
    let panels = [durations(&runs, tables), parts(tables), left_out(tables), energy(tables), budgets(tables)];
    learned(&runs, tables).into_iter().chain(panels).fold(figure, Figure::panel)
}

/// When each round ended, in hours, and its accuracy in percent where that was measured.
fn measured(tables: &Tables) -> Vec<(f64, Option<f64>)> {
    let [start, took, accuracy] = ["start_s", "duration_s", "accuracy"].map(|name| tables.numbers(ROUNDS, name));
    let ends = start.iter().zip(&took).map(|(start, took)| (start.unwrap_or(0.0) + took.unwrap_or(0.0)) / 3600.0);
    ends.zip(accuracy).map(|(end, accuracy)| (end, accuracy.map(|share| 100.0 * share))).collect()
}

/// Accuracy by simulated time; `None` where nobody learns.
pub(super) fn learned(runs: &Runs, tables: &Tables) -> Option<Panel> {
    let measured = measured(tables);
    measured.iter().any(|(_, accuracy)| accuracy.is_some()).then(|| {
        let reached = runs.lines(|row| Some((measured[row].0, measured[row].1?)));
        let x = Axis::new("simulated time").unit("h").from_zero();
        Panel::new(reached).title("what is learned").x(x).y(Axis::new("accuracy").unit("%").from_zero())
    })
}

/// What rounds take.
pub(super) fn durations(runs: &Runs, tables: &Tables) -> Panel {
    let [numbers, took] = ["round", "duration_s"].map(|name| tables.numbers(ROUNDS, name));
    let durations = runs.lines(|row| Some((numbers[row]?, took[row]? / 60.0)));
    let last = numbers.iter().flatten().copied().fold(1.0, f64::max);
    let every = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0].into_iter().find(|every| last / every <= 8.0);
    let every = every.unwrap_or(1000.0);
    let ticks = (1..).map(|tick| f64::from(tick) * every).take_while(|tick| *tick <= last);
    Panel::new(durations)
        .title("what rounds take")
        .x(Axis::new("round").ticks_at(ticks.collect::<Vec<_>>()))
        .y(Axis::new("duration").unit("min").from_zero())
}

/// What the phones of each class took, the mean over the federations.
pub(super) fn energy(tables: &Tables) -> Panel {
    bars(tables, "energy", "kJ", "energy_j", 1e-3)
}

/// What training might hold on the phones of each class, the mean over the federations of their medians.
pub(super) fn budgets(tables: &Tables) -> Panel {
    bars(tables, "median budget", "GB", "budget_bytes", 1e-9)
}

/// The rows of each federation.
pub(super) struct Runs {
    /// What each is called.
    pub(super) names: Vec<String>,
    of: Vec<usize>,
}

impl Runs {
    pub(super) fn of(tables: &Tables) -> Self {
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
    pub(super) fn rounds(&self, run: usize, tables: &Tables) -> Vec<(f64, Option<f64>)> {
        let rounds = measured(tables).into_iter().zip(&self.of);
        rounds.filter(|(_, of)| **of == run).map(|(round, _)| round).collect()
    }

    /// A curve a federation.
    fn lines(&self, point: impl Fn(usize) -> Option<(f64, f64)>) -> Lines {
        let names = self.names.iter().enumerate().take(MOST_CURVES);
        names.fold(Lines::new(), |lines, (run, name)| {
            let rows = self.of.iter().enumerate().filter(|(_, of)| **of == run);
            lines.series(Series::new(name.clone(), rows.filter_map(|(row, _)| point(row)).collect::<Vec<_>>()))
        })
    }
}

/// The memory classes, and the sums of a column over all federations.
pub(super) fn by_class(tables: &Tables, names: &[&str]) -> (Vec<String>, Vec<Vec<f64>>) {
    let of = tables.texts(CLASSES, "memory_class");
    let mut classes: Vec<String> = Vec::new();
    of.iter().for_each(|class| {
        if !classes.contains(class) {
            classes.push(class.clone());
        }
    });
    let sums = |name: &&str| {
        let values = tables.numbers(CLASSES, name);
        let sum = |class: &String| {
            let own = of.iter().zip(&values).filter(|(of, _)| *of == class);
            own.filter_map(|(_, value)| *value).sum()
        };
        classes.iter().map(sum).collect()
    };
    let sums = names.iter().map(sums).collect();
    (classes, sums)
}

/// What became of the parts of the phones of each class.
pub(super) fn parts(tables: &Tables) -> Panel {
    let (classes, sums) = by_class(tables, &OUTCOMES.map(|outcome| outcome.0));
    let stack = OUTCOMES.iter().zip(sums).fold(Stack::new(classes), |stack, ((_, name), sums)| stack.part(*name, sums));
    Panel::new(stack).title("what became of phones").y(Axis::new("parts").from_zero())
}

/// Why phones are left out: a column, and in words.
pub(super) const WHY: [(&str, &str); 3] =
    [("without_plan", "no plan fits"), ("without_samples", "no samples"), ("without_trace", "trace ends early")];

/// The phones of each class, and those of them that are left out, by why.
pub(super) fn left_out(tables: &Tables) -> Panel {
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
    let (classes, sums) = by_class(tables, &[name]);
    let of = tables.texts(CLASSES, "memory_class");
    let counted = tables.numbers(CLASSES, name);
    let mean = |(class, sum): (&String, &f64)| {
        let number = of.iter().zip(&counted).filter(|(of, value)| *of == class && value.is_some()).count();
        (number > 0).then(|| scale * sum / number as f64)
    };
    let means: Vec<Option<f64>> = classes.iter().zip(&sums[0]).map(mean).collect();
    let title = format!("{what} by memory");
    Panel::new(Bars::new(classes).series(BarSeries::new(what, means)))
        .title(title)
        .y(Axis::new(what).unit(unit).from_zero())
}

/// A value of what is asked for; `None` where several are.
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

/// Updates that a round waits for; `None` where that differs.
pub(super) fn wanted(record: &Map<String, Value>) -> Option<f64> {
    asked(record, &["rules", "cohort"]).and_then(Value::as_f64)
}

pub(super) fn title(record: &Map<String, Value>) -> String {
    let number = asked(record, &["population"]).and_then(Value::as_u64);
    let phones = number.map_or_else(|| "phones".to_owned(), |number| format!("{number} phones"));
    let text = |key| asked(record, &[key]).and_then(Value::as_str);
    let network = text("network").map_or_else(|| "several networks".to_owned(), str::to_owned);
    let with = text("policy").map_or_else(String::new, |policy| format!(" with {policy}"));
    format!("{phones} train {network}{with}")
}

pub(super) fn note(record: &Map<String, Value>, runs: usize) -> String {
    let text = |keys: &[&str]| asked(record, keys).and_then(Value::as_str).map(str::to_owned);
    let mut notes: Vec<String> = Vec::new();
    notes.extend(text(&["rules", "selector"]).map(|selector| format!("selector: {selector}")));
    if asked(record, &["learning"]).is_some_and(|learning| !learning.is_null()) {
        notes.extend(text(&["learning", "stand_in"]).map(|stand_in| format!("{stand_in} learns in its place")));
    } else {
        notes.push("nobody learns".to_owned());
    }
    if runs > 1 {
        notes.push(format!("{runs} federations; phones are of all together, energy and budgets their mean"));
    }
    if runs > MOST_CURVES {
        notes.push(format!("curves of the first {MOST_CURVES}"));
    }
    notes.join("; ")
}
