//! The rules by which an artefact's records become its data, answers, quantities and panels:
//! `[[artefact]]` of `readings/*.toml`.
//!
//! A *record* is a row of columns: words, such as `method`, and numbers, such as `time_s`. An artefact either simulates
//! them or declares a `sweep`, with one record for each combination of its keys' cases.
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

/// The presentation of an artefact's records.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Shown {
    /// The artefacts of the paper.
    pub ids: Vec<String>,
    /// The simulation, if the artefact's code does not define it.
    pub sweep: Option<Sweep>,
    /// The header of the data; each column is named like the record's column, or that after the colon.
    pub data: Vec<String>,
    /// The records that become data, if not all.
    pub data_of: Filter,
    /// The columns whose combinations each form one row of data, with the means of all numbers; another statistic can
    /// be given, as in `least time_s`. If empty, each record is a row.
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
    /// Metrics of the rows that are compared with the null baseline, and their names in the report.
    pub beside_null: Vec<(String, String)>,
    #[serde(rename = "panel")]
    pub panels: Vec<PanelRule>,
}

/// The simulated runs: every combination of the keys' cases, the last key varying fastest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sweep {
    /// Scenario keys that all runs share.
    pub scenario: toml::Table,
    pub keys: Vec<SweptKey>,
}

/// A swept key. Its cases are those listed here, then shared ones, then the numbers of a reading, which set the
/// scenario key of the same name, then `more`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SweptKey {
    pub name: String,
    pub cases: Vec<SweptCase>,
    /// The name of cases that several sweeps of the paper share.
    pub shared: Option<String>,
    /// The shared cases that are used, if not all.
    pub only: Vec<String>,
    pub numbers: Option<String>,
    pub more: Vec<SweptCase>,
}

/// A case of a swept key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SweptCase {
    /// Its name in rows and data.
    pub id: String,
    /// Its display name, if that is not the id spelled out.
    pub name: Option<String>,
    /// The scenario keys that it sets; an empty table removes those set by earlier cases.
    pub with: toml::Table,
    /// Further columns: `data_set` is the column `network.data_set`.
    pub also: BTreeMap<String, String>,
}

/// Columns and the words they must have.
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

/// A column that is computed from others, or from the paper.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DerivedColumn {
    pub name: String,
    /// The source column.
    pub of: String,
    pub is: Relation,
    /// The columns by which the record it is compared with differs.
    pub over: BTreeMap<String, String>,
    /// The columns that the two records have in common.
    pub same: Vec<String>,
    /// The row whose paper's number is used.
    pub paper: Option<String>,
    /// Whether the row may be missing.
    pub optional: bool,
    /// A factor that the number is multiplied by.
    pub times: Option<f64>,
    /// The records that have the column.
    #[serde(rename = "where")]
    pub only: Filter,
}

/// The relation of a number to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Relation {
    /// The number divided by the other.
    #[default]
    #[serde(rename = "ratio")]
    Ratio,
    /// The other divided by the number.
    #[serde(rename = "speed-up")]
    SpeedUp,
    /// The percentage by which it is above the other.
    #[serde(rename = "more, %")]
    More,
}

/// The statistic over the values of several records.
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
    /// The least and the most if the row claims a range, otherwise the most.
    Range,
    /// The number of records with a value, and of those without one.
    Count,
    Missing,
}

/// Answers to rows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AnswerRule {
    /// The row without its paper, with column names in braces.
    pub row: String,
    /// The column with the answer; `None` for a remark only.
    pub value: Option<String>,
    pub take: Take,
    #[serde(rename = "where")]
    pub only: Filter,
    pub not: Filter,
    /// Whether the number is an input.
    pub input: bool,
    /// Whether the row may be missing.
    pub optional: bool,
    pub remark: Option<String>,
    /// Text for each combination of its columns, appended to the remark.
    pub each: Option<String>,
    /// The separator between them; a comma by default.
    pub between: Option<String>,
    /// Text after them.
    pub end: String,
    /// The answer without a number: `never`, or the reason.
    pub or: Option<String>,
    /// The column of the null baseline, with the same statistic.
    pub null: Option<String>,
}

/// Rules for quantities, in the order of the records.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QuantityRule {
    pub name: String,
    pub unit: String,
    pub value: String,
    /// The statistic; all values by default.
    pub take: Option<Take>,
    /// The column by whose values the mean, or the statistic, is grouped.
    pub by: Option<String>,
    #[serde(rename = "where")]
    pub only: Filter,
    pub not: Filter,
}

/// Rules for words, one piece per record.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WordsRule {
    pub name: String,
    pub each: String,
    /// The separator between them; a comma by default.
    pub between: Option<String>,
    #[serde(rename = "where")]
    pub only: Filter,
    /// If given, only records without a value in this column.
    pub missing: Option<String>,
    /// The text if no record matches.
    pub or: Option<String>,
}

/// The kind of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChartKind {
    #[default]
    Bars,
    /// The least and the most of each group, if the paper's row claims a range.
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
    /// The columns whose combinations each get a panel.
    pub each: Vec<String>,
    pub title: String,
    #[serde(rename = "where")]
    pub only: Filter,
    pub not: Filter,
    /// The column that groups bars or stacks, or several in braces; or the column of the horizontal values.
    pub x: String,
    /// The name of the only group.
    pub group: Option<String>,
    /// The name of the only series; each of `values` then is a group.
    pub across: Option<String>,
    /// The column with the names of series; if `None`, each of `values` is a series.
    pub series: Option<String>,
    pub values: Vec<Plotted>,
    pub x_axis: AxisRule,
    pub y_axis: AxisRule,
    /// Whether to write values above bars, and totals and percentages on stacks.
    pub show_values: bool,
    pub show_totals: bool,
    pub show_shares: bool,
    /// Whether lines have no marks.
    pub unmarked: bool,
    /// Whether the front of all clouds is drawn, not that of each class.
    pub overall: bool,
    /// The column of a cloud's class.
    pub class: Option<String>,
}

/// The values to draw.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Plotted {
    /// The name of the series, if no column has it.
    pub name: String,
    pub of: String,
    /// The column of the paper's numbers drawn next to it; for ends, the row.
    pub paper: Option<String>,
    /// Whether these are the paper's own numbers.
    pub hatched: bool,
}

/// An axis; its texts may contain column names in braces.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AxisRule {
    pub label: String,
    pub unit: String,
    pub log: bool,
    pub from_zero: bool,
    pub range: Option<(f64, f64)>,
    /// Whether ticks are at the values of the panel's column `x`, or at these.
    pub ticks: bool,
    pub ticks_at: Vec<f64>,
}
