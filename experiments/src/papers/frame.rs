//! The frame around the panels of an artefact's figure: its title, a note, and the layout of the panels.
//!
//! ```toml
//! [[figure]]
//! artefact = "figure10"           # of this paper
//! title = "Sage, figure 10: throughput against memory, batch 32"
//! finding = "the ratio is {simulated:sage/figure10/*/ratio}"      # optional, with the placeholders of notes: replaces the
//!                                 # title's words after the colon, which open the note
//! note = "Of the paper: {paper:sage/figure10/*/ratio}."   # optional, likewise
//! columns = 4                     # panels in a row
//! size = [270, 220]               # of a panel, in pixels
//! share_y = true                  # one range for all panels; likewise share_x
//! order = ["SGC", "SGA"]          # names that take their colours first
//! rows = true                     # panels of the paper's numbers beside ours follow, where the others do not show them
//! hatched = "95% interval"        # what hatched bars and dashed lines mean, where it is not the paper's
//! ```
//!
//! Display names of ids: `resnet50` is ResNet-50.
//!
//! Also panels that compare an artefact's numbers with the paper's, one for each unit, for figures that
//! draw something else.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use haversack_devices::text::read_toml;
use haversack_reports::{Axis, BarSeries, Bars, Figure, Look, Meanings, Panel};
use indexmap::IndexSet;
use serde::Deserialize;

use super::{Answer, Claim, ComparedCell, Facts, Reference, Status};

/// The frame around the panels of an artefact's figure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureFrame {
    /// The artefact.
    pub artefact: String,
    /// The title, above everything.
    pub title: String,
    /// The finding, with placeholders; left out if something that it quotes is missing.
    pub finding: Option<String>,
    /// A sentence below the title, with placeholders.
    pub note: Option<String>,
    /// Panels per row; chosen automatically if `None`.
    pub columns: Option<usize>,
    /// Width and height of a panel's box in pixels; the defaults if `None`.
    pub size: Option<(u32, u32)>,
    /// Whether all panels share one horizontal range.
    #[serde(default)]
    pub share_x: bool,
    /// Whether all panels share one vertical range.
    #[serde(default)]
    pub share_y: bool,
    /// Series names that get the first colours.
    #[serde(default)]
    pub order: Vec<String>,
    /// Whether panels that compare our numbers with the paper's follow.
    #[serde(default)]
    pub rows: bool,
    /// The meaning of hatched bars and dashed lines; the paper's numbers if `None`.
    pub hatched: Option<String>,
}

impl FigureFrame {
    /// Puts the frame around these panels.
    ///
    /// # Errors
    /// A placeholder in the title or the note that the artefact does not offer.
    pub(crate) fn around(&self, mut panels: Vec<Panel>, facts: &Facts<'_>) -> Result<Figure, String> {
        if self.rows {
            panels.extend(panels_of(facts.cells));
        }
        let mut title = facts.text(&self.title)?.unwrap_or_default();
        let mut note = self.note.as_ref().map_or(Ok(None), |note| facts.text(note))?;
        if let Some(finding) = self.finding.as_ref().and_then(|finding| facts.text(finding).ok().flatten()) {
            let (figure, about) = title.split_once(": ").unwrap_or(("", &title));
            note = Some(format!("{}. {}", Reference::name(about), note.unwrap_or_default()));
            title = if figure.is_empty() { finding } else { format!("{figure}: {finding}") };
        }
        let figure = Figure::new(title);
        let hatched = self.hatched.clone().unwrap_or(figure.meanings.hatched);
        Ok(Figure {
            note,
            panels,
            columns: self.columns,
            panel_size: self.size.unwrap_or(figure.panel_size),
            share_x: self.share_x,
            share_y: self.share_y,
            order: self.order.clone(),
            meanings: Meanings { hatched, ..figure.meanings },
            ..figure
        })
    }
}

const FILE: &str = "experiments/readings/names.toml";
const TEXT: &str = include_str!("../../readings/names.toml");

/// Words of ids, single or joined by hyphens, each with its display name.
static NAMES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| read_toml(FILE, TEXT).unwrap_or_default());

/// `id` in words: display names for known words, everything else unchanged, with spaces for hyphens.
pub(crate) fn spelled(id: &str) -> String {
    let mut words = String::new();
    let mut left = id;
    while !left.is_empty() {
        let known = NAMES.iter().filter(|(word, _)| {
            left.strip_prefix(word.as_str()).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        });
        // Of several matches, the longest.
        if let Some((word, name)) = known.max_by_key(|(word, _)| word.len()) {
            words += name;
            left = &left[word.len()..];
        } else {
            let end = left.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(left.len());
            words += &left[..end];
            left = &left[end..];
        }
        let end = left.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(left.len());
        words += &left[..end].replace('-', " ");
        left = &left[end..];
    }
    words
}

/// One number of the paper, and ours.
struct Row {
    unit: String,
    metric: String,
    /// Subject, method and metric as display names, and which end of a range or kind of bound it is.
    words: Vec<String>,
    simulated: Option<f64>,
    paper: f64,
}

/// The panels; none if the paper gives no number.
pub(crate) fn panels_of(cells: &[ComparedCell]) -> Vec<Panel> {
    let rows: Vec<Row> = cells.iter().filter(|cell| cell.status != Status::Withheld).flat_map(rows).collect();
    let units: IndexSet<&str> = rows.iter().map(|row| row.unit.as_str()).collect();
    units.into_iter().map(|unit| panel(unit, &rows.iter().filter(|row| row.unit == unit).collect::<Vec<_>>())).collect()
}

fn panel(unit: &str, rows: &[&Row]) -> Panel {
    // A metric that all rows share names the axis; other parts that all rows share form the title, the rest is
    // written under the bars.
    let metric = &rows[0].metric;
    let is_shared = rows.iter().all(|row| row.metric == *metric);
    let parts = rows.iter().map(|row| row.words.len()).max().unwrap_or(0);
    let differs = |part: usize| rows.iter().any(|row| row.words.get(part) != rows[0].words.get(part));
    let named = |row: &Row, differing: bool| {
        let chosen = (0..parts).filter(|part| differs(*part) == differing);
        let words = chosen.filter_map(|part| row.words.get(part)).map(String::as_str);
        let is_said = |word: &&str| (differing || *word != "all") && !(is_shared && word == metric);
        words.filter(is_said).collect::<Vec<_>>().join(", ")
    };
    let names: Vec<String> = rows.iter().map(|row| named(row, true)).collect();
    let common = named(rows[0], false);
    let bars = Bars::new(names)
        .series(BarSeries::new("simulated", rows.iter().map(|row| row.simulated)))
        .series(BarSeries::new("paper", rows.iter().map(|row| row.paper)).look(Look::Hatched))
        .show_values();
    let axis = Axis::new(if is_shared { metric } else { "value" });
    let axis = match unit {
        "" => axis,
        "percent" => axis.unit("%"),
        unit => axis.unit(unit),
    };
    Panel::new(bars).title(if common.is_empty() { "the paper's numbers".to_owned() } else { common }).y(axis).apart()
}

/// The numbers of a row: two of a range, none of an order.
fn rows(cell: &ComparedCell) -> Vec<Row> {
    let row = |end: &str, simulated, paper| {
        let ids: Vec<String> = cell.id.split('/').skip(2).map(spelled).collect();
        let metric = ids.last().cloned().unwrap_or_default();
        let words = ids.into_iter().chain((!end.is_empty()).then(|| end.to_owned())).collect();
        Row { unit: cell.unit.clone(), metric, words, simulated, paper }
    };
    let number = match cell.answer {
        Some(Answer::Number(value) | Answer::Input(value)) => Some(value),
        _ => None,
    };
    match (&cell.claim, &cell.answer) {
        (Claim::Value(Some(paper)), _) => vec![row("", number, *paper)],
        (Claim::Min(paper), _) => vec![row("at least", number, *paper)],
        (Claim::Max(paper), _) => vec![row("at most", number, *paper)],
        (Claim::Range { lo, hi }, answer) => {
            let ends = if let Some(Answer::Range(lo, hi)) = answer { (Some(*lo), Some(*hi)) } else { (None, None) };
            vec![row("least", ends.0, *lo), row("most", ends.1, *hi)]
        }
        (Claim::Value(None) | Claim::Never | Claim::Order(_), _) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Quantities;
    use crate::papers::reference::{Role, example};
    use haversack_reports::figure::Chart;

    #[test]
    fn a_frame_is_filled_from_the_run_and_laid_around_the_panels() {
        let text = "artefact = \"figure8\"\ntitle = \"At {reading:batch} samples\"\nnote = \"{quantity:users}.\"\n\
            columns = 2\nsize = [300, 200]\nshare_y = true\nhatched = \"interval\"\n";
        let frame: FigureFrame = toml::from_str(text).unwrap();
        let mut quantities = Quantities::default();
        quantities.offer_words("users", "two users".to_owned());
        let declared = |id: &str| (id == "batch").then(|| "32".to_owned());
        let facts = Facts { cells: &[], quantities: &quantities, declared: &declared };
        let figure = frame.around(Vec::new(), &facts).unwrap();
        assert_eq!((figure.title.as_str(), figure.note.as_deref()), ("At 32 samples", Some("two users.")));
        assert_eq!((figure.panel_size, figure.columns), ((300, 200), Some(2)));
        assert!(figure.share_y && !figure.share_x);
        assert_eq!((figure.meanings.hatched.as_str(), figure.meanings.solid.as_str()), ("interval", "simulated"));
        let found = |finding: &str| {
            let title = "Sage, figure 8: memory".to_owned();
            let frame = FigureFrame { title, finding: Some(finding.to_owned()), ..frame.clone() };
            frame.around(Vec::new(), &facts).unwrap()
        };
        let figure = found("it takes {quantity:users}");
        assert_eq!(figure.title, "Sage, figure 8: it takes two users");
        assert_eq!(figure.note.as_deref(), Some("Memory. two users."));
        assert_eq!(found("it takes {quantity:phones}").title, "Sage, figure 8: memory");
        let other = FigureFrame { note: Some("{quantity:phones}".to_owned()), ..frame };
        assert!(other.around(Vec::new(), &facts).unwrap_err().contains("`phones`"));
    }

    #[test]
    fn the_longest_name_wins_and_words_are_whole() {
        assert_eq!(spelled("resnet50-on-galaxy-s10"), "ResNet-50 on Galaxy S10");
        assert_eq!(spelled("bert-small-sage"), "BERT-small Sage");
        assert_eq!(spelled("bertha-cpus"), "bertha cpus");
        assert_eq!(spelled("bert,oort+capuchin"), "BERT,Oort+Capuchin");
        assert_eq!(spelled("rtx-3090-vs-phones"), "RTX 3090 vs phones");
        assert_eq!(spelled("émile"), "émile");
    }

    #[test]
    fn numbers_of_one_unit_share_a_panel_whose_title_has_what_they_share() {
        let cell = |metric, claim, answer| ComparedCell::new(&example(metric, claim, Role::Check), answer).unwrap();
        let cells = [
            cell("time", Claim::Value(Some(100.0)), Answer::Number(110.0)),
            cell("slow-down", Claim::Range { lo: 2.0, hi: 8.0 }, Answer::Range(3.0, 9.0)),
            cell("order", Claim::Order("a > b".into()), Answer::Order(true)),
            cell("time", Claim::Value(None), Answer::Number(1.0)),
        ];
        let panels = panels_of(&cells);
        let [only] = &panels[..] else { panic!("{} panels", panels.len()) };
        assert_eq!(only.title.as_deref(), Some("net, method"));
        assert_eq!(only.y.title(), "value (ms)");
        let Chart::Bars(bars) = &only.chart else { panic!("no bars") };
        assert_eq!(bars.categories, ["time", "slow down, least", "slow down, most"]);
        // One metric names the axis.
        let one = super::panels_of(&cells[1..]);
        assert_eq!((one[0].title.as_deref(), one[0].y.title()), (Some("net, method"), "slow down (ms)".to_owned()));
        let values: Vec<_> = bars.series.iter().map(|series| series.values.clone()).collect();
        assert_eq!(values[0], [Some(110.0), Some(3.0), Some(9.0)]);
        assert_eq!(values[1], [Some(100.0), Some(2.0), Some(8.0)]);
    }
}
