//! How an artefact's records become its data, answers, quantities and panels: `[[artefact]]` of `readings/*.toml`.
//!
//! A *record* is a row of columns: words, such as `method`, and numbers, such as `time_s`. An artefact simulates them, or
//! declares a `sweep`: one record for each combination of its keys' cases.
//!
//! ```toml
//! [[artefact]]
//! ids = ["figure7"]                       # of this paper
//! data = ["network: network.name", "time_s"]      # the header of its data, each with another column where that differs
//!
//! [artefact.sweep]
//! scenario = { device = "xiaomi-11-pro", batch = "{batch}" }      # a reading between braces
//! keys = [
//!   { name = "network", cases = [{ id = "vgg16", name = "VGG-16", with = { model = "vgg16-cifar" } }] },
//!   { name = "batch", numbers = "figure7-batches" },      # the numbers of a reading, which set the key of this name
//! ]
//!
//! [[artefact.column]]                     # a column more: here the time under MNN over this record's
//! name = "speed_up"
//! of = "time_s"
//! is = "speed-up"                         # or `ratio`, `more, %`
//! over = { method = "mnn-fp32" }          # the record that differs in this
//! same = ["network", "batch"]             # and has these in common
//!
//! [[artefact.answer]]                     # a row for each combination of the columns between braces
//! row = "figure7/{network}/speedup"
//! value = "speed_up"
//! take = "mean"                           # one | mean | least | most | first | last | range
//! where = { method = "mandheling" }       # `not` likewise
//! remark = "at most {most speed_up:1}"    # a column, or what is taken of it, with so many digits
//!
//! [[artefact.quantity]]                   # what predicates compare and notes quote; `by`: the mean for each value of a column
//! name = "speed-up of {network}"
//! value = "speed_up"
//!
//! [[artefact.panel]]                      # one for each combination of the columns in `each`
//! kind = "lines"                          # bars | stack | lines | front
//! each = ["network"]
//! title = "{network.name}: time"
//! x = "batch"
//! series = "method.name"                  # a series for each value; without, one for each of `values`
//! values = [{ of = "time_s", paper = "paper_s" }]
//! y_axis = { label = "time", unit = "s", log = true }
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

/// What becomes of an artefact's records.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Shown {
    /// The artefacts of the paper.
    pub ids: Vec<String>,
    /// What is simulated, where the artefact does not itself say so.
    pub sweep: Option<Sweep>,
    /// The header of the data; each column is of the same name, or of the one after the colon.
    pub data: Vec<String>,
    /// The records that are data, where not all are.
    pub data_of: Filter,
    /// The columns of which each combination is one row of data, with the means of all numbers; a column may be another take,
    /// `least time_s`. None where each record is a row.
    pub means_by: Vec<String>,
    #[serde(rename = "column")]
    pub columns: Vec<DerivedColumn>,
    #[serde(rename = "answer")]
    pub answers: Vec<AnswerRule>,
    #[serde(rename = "quantity")]
    pub quantities: Vec<QuantityRule>,
    pub words: Vec<WordsRule>,
    /// Lines for the report.
    pub summary: Vec<String>,
    /// Metrics of the rows that are compared with the null baseline, and how the report calls them.
    pub beside_null: Vec<(String, String)>,
    #[serde(rename = "panel")]
    pub panels: Vec<PanelRule>,
}

/// What is simulated: every combination of the keys' cases, the last key first.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sweep {
    /// Keys of a scenario that all runs have.
    pub scenario: toml::Table,
    pub keys: Vec<SweptKey>,
}

/// A swept key: cases that are listed here, then those that sweeps share, then the numbers of a reading, which set the
/// scenario's key of the same name, then more.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SweptKey {
    pub name: String,
    pub cases: Vec<SweptCase>,
    /// Cases that several sweeps of the paper share.
    pub shared: Option<String>,
    /// Of shared cases those that are swept here, where not all are.
    pub only: Vec<String>,
    pub numbers: Option<String>,
    pub more: Vec<SweptCase>,
}

/// A case of a swept key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SweptCase {
    /// As rows and data call it.
    pub id: String,
    /// For people, where that is not the id spelled out.
    pub name: Option<String>,
    /// What it sets of a scenario; an empty table takes back what cases before it set.
    pub with: toml::Table,
    /// Further words of it: `data_set` is the column `network.data_set`.
    pub also: BTreeMap<String, String>,
}

/// Columns and the words that they are to have.
pub(crate) type Filter = BTreeMap<String, OneOrMany>;

/// One word, or one of several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn has(&self, word: &str) -> bool {
        match self {
            Self::One(one) => one == word,
            Self::Many(many) => many.iter().any(|one| one == word),
        }
    }
}

/// A column that is derived from others, or from the paper.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DerivedColumn {
    pub name: String,
    /// Of which column.
    pub of: String,
    pub is: Relation,
    /// The record to which it is set in relation differs in these columns.
    pub over: BTreeMap<String, String>,
    /// What the two have in common.
    pub same: Vec<String>,
    /// The paper's number in this row.
    pub paper: Option<String>,
    /// Whether there need not be such a row.
    pub optional: bool,
    /// A factor on the number.
    pub times: Option<f64>,
    /// The records that have one.
    #[serde(rename = "where")]
    pub only: Filter,
}

/// How a number stands to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Relation {
    /// The number over the other.
    #[default]
    #[serde(rename = "ratio")]
    Ratio,
    /// The other over the number.
    #[serde(rename = "speed-up")]
    SpeedUp,
    /// By how many percent it is above the other.
    #[serde(rename = "more, %")]
    More,
}

/// What is taken of the values of several records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Take {
    /// The value of the only record.
    #[default]
    One,
    Mean,
    Least,
    Most,
    First,
    Last,
    /// The least and the most of a row that claims a range, of others the most.
    Range,
    /// How many records have a value, and how many have none.
    Count,
    Missing,
}

/// Answers to rows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AnswerRule {
    /// The row without its paper, with columns between braces.
    pub row: String,
    /// The column that answers it; none where there is only a remark.
    pub value: Option<String>,
    pub take: Take,
    #[serde(rename = "where")]
    pub only: Filter,
    pub not: Filter,
    /// Whether the number is put in.
    pub input: bool,
    /// Whether there need not be such a row.
    pub optional: bool,
    pub remark: Option<String>,
    /// What is said of each combination of its columns, after the remark, with commas between.
    pub each: Option<String>,
    /// What is between them; a comma by default.
    pub between: Option<String>,
    /// What is said after them.
    pub end: String,
    /// What is answered where there is no number: `never`, or why there is none.
    pub or: Option<String>,
    /// The column of which the same is taken as the null baseline.
    pub null: Option<String>,
}

/// Quantities, in the order of the records.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QuantityRule {
    pub name: String,
    pub unit: String,
    pub value: String,
    /// What is taken; all values by default.
    pub take: Option<Take>,
    /// The mean, or what is taken, for each value of this column.
    pub by: Option<String>,
    #[serde(rename = "where")]
    pub only: Filter,
    pub not: Filter,
}

/// Words, a piece for each record.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WordsRule {
    pub name: String,
    pub each: String,
    /// What is between them; a comma by default.
    pub between: Option<String>,
    #[serde(rename = "where")]
    pub only: Filter,
    /// Only the records that have nothing in this column.
    pub missing: Option<String>,
    /// What is said where there is none of them.
    pub or: Option<String>,
}

/// The kind of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChartKind {
    #[default]
    Bars,
    /// The least and the most of each group, where the paper's row claims it.
    Ends,
    Stack,
    Lines,
    Front,
}

/// Panels of a figure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PanelRule {
    pub kind: ChartKind,
    /// A panel for each combination of these columns.
    pub each: Vec<String>,
    pub title: String,
    #[serde(rename = "where")]
    pub only: Filter,
    pub not: Filter,
    /// The column of the groups of bars and of stacks, or several between braces, or the column of the numbers across.
    pub x: String,
    /// The only group.
    pub group: Option<String>,
    /// The name of the only series, of which each of `values` is a group.
    pub across: Option<String>,
    /// The column of the names of series; one for each of `values` where `None`.
    pub series: Option<String>,
    pub values: Vec<Plotted>,
    pub x_axis: AxisRule,
    pub y_axis: AxisRule,
    /// Values above bars, totals and shares of stacks.
    pub show_values: bool,
    pub show_totals: bool,
    pub show_shares: bool,
    /// Whether lines have no marks.
    pub unmarked: bool,
    /// Whether the front of all clouds is drawn, or of each class of them.
    pub overall: bool,
    /// The column of a cloud's class.
    pub class: Option<String>,
}

/// What is drawn.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Plotted {
    /// The name of the series, where no column has it.
    pub name: String,
    pub of: String,
    /// The column of the paper's numbers beside it; of ends, the row.
    pub paper: Option<String>,
    /// Whether it is the paper's itself.
    pub hatched: bool,
}

/// An axis; its words may quote columns between braces.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AxisRule {
    pub label: String,
    pub unit: String,
    pub log: bool,
    pub from_zero: bool,
    pub range: Option<(f64, f64)>,
    /// Ticks at the values of the panel's column `x`, or at these.
    pub ticks: bool,
    pub ticks_at: Vec<f64>,
}
