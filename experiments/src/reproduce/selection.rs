//! The options of `reproduce`, and the rows and artefacts that they select.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use haversack_devices::text;

use super::Artefact;
use crate::CommandError;
use crate::papers::reference::{COMPARISON, Reference, ReferenceRow};
use crate::progress::word;
use crate::trace_table::{Holds, Reader};
use crate::work::{Shard, WorkOptions};

/// The options of `reproduce`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = include_str!("../../help/reproduce.txt"))]
pub struct ReproduceOptions {
    /// `all`, a paper, `comparison`, or a prefix of an id such as sage/table1 [default: all]
    #[arg(value_name = "SELECTOR")]
    pub selectors: Vec<String>,
    /// Output folder and execution
    #[command(flatten)]
    pub work: WorkOptions,
    /// Run only every N-th artefact, beginning with the I-th, for `haversack merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Table of `trace import` or `trace generate`: artefacts about users and their apps show its users instead of the
    /// paper's setting, and are marked so
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Train networks for accuracies again, with one seed; otherwise committed results are used
    #[arg(long)]
    pub learn: bool,
    /// Run everything with every seed, repeat committed trainings, and write them as PAPER/ARTEFACT.toml
    #[arg(long)]
    pub full: bool,
}

impl ReproduceOptions {
    /// Refuses a trace that none of the `chosen` artefacts uses, or that does not exist.
    pub(super) fn check<'a>(
        &self,
        all: &[Artefact],
        chosen: impl Iterator<Item = &'a Artefact>,
    ) -> Result<(), CommandError> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let refused = |why: String| Err(CommandError::Input(format!("--trace {}: {why}", trace.display())));
        let takes = |artefact: &&Artefact| artefact.takes_trace;
        if chosen.filter(takes).count() == 0 {
            let places: Vec<String> = all.iter().filter(takes).map(|artefact| artefact.place()).collect();
            return refused(format!(
                "no artefact that was selected takes a trace; those that do are {}",
                places.join(", ")
            ));
        }
        match Reader::open(trace) {
            Err(error) => refused(error.to_string()),
            Ok(reader) if reader.holds != Holds::Apps => {
                refused("expected a table of apps, found one of counters".to_owned())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Whether networks are trained with one seed.
    pub(super) const fn learns_one(&self) -> bool {
        self.learn && !self.full
    }

    /// The command that resumes this one.
    pub(super) fn to_go_on(&self) -> String {
        let mut command = "haversack reproduce".to_owned();
        self.selectors.iter().for_each(|selector| command += &format!(" {selector}"));
        command += &format!(" --out {}", word(&self.work.out));
        if self.seed > 0 {
            command += &format!(" --seed {}", self.seed);
        }
        for (is_set, flag) in [(self.learn, " --learn"), (self.full, " --full")] {
            command += if is_set { flag } else { "" };
        }
        if let Some(trace) = &self.trace {
            command += &format!(" --trace {}", word(trace));
        }
        let shard = self.shard.map_or_else(String::new, |shard| format!(" --shard {shard}"));
        command + &shard + " --resume"
    }
}

/// The selector for everything.
pub(super) const ALL: &str = "all";

/// The selected rows, in the order of the reference, and the selected artefacts without rows.
#[derive(Clone, Debug)]
pub struct Selection<'r> {
    /// The rows.
    pub rows: Vec<&'r ReferenceRow>,
    /// Artefacts without rows: pictures without printed numbers, and the comparison.
    pub without_rows: Vec<&'r Artefact>,
    /// The selectors as given; `all` if there were none.
    pub selectors: Vec<String>,
}

impl<'r> Selection<'r> {
    /// Selects everything that any of `selectors` matches; no selector means all.
    ///
    /// # Errors
    /// A selector that matches nothing, with the most similar valid one.
    pub fn new(reference: &'r Reference, artefacts: &'r [Artefact], selectors: &[String]) -> Result<Self> {
        let selectors = if selectors.is_empty() { vec![ALL.to_owned()] } else { selectors.to_vec() };
        let bare = || artefacts.iter().filter(|artefact| reference.of(artefact.paper, artefact.id).next().is_none());
        let by = |selector: &str, artefact: &Artefact| selects(selector, artefact.paper, &place(artefact));
        for selector in &selectors {
            let known = selector == COMPARISON
                || reference.rows().iter().any(|row| selects(selector, row.paper, &row.id))
                || bare().any(|artefact| by(selector, artefact));
            if !known {
                let hint = text::aside(nearest(reference, bare(), selector).as_deref());
                let papers = Reference::papers().collect::<Vec<_>>().join(", ");
                bail!(
                    "nothing is called `{selector}`{hint}; expected `all`, a paper ({papers}), `comparison` or the beginning of an id \
                     such as `sage/table1`"
                );
            }
        }
        let row = |row: &&ReferenceRow| selectors.iter().any(|selector| selects(selector, row.paper, &row.id));
        let artefact = |artefact: &&Artefact| selectors.iter().any(|selector| by(selector, artefact));
        Ok(Self {
            rows: reference.rows().iter().filter(row).collect(),
            without_rows: bare().filter(artefact).collect(),
            selectors,
        })
    }
}

/// The prefix that the id of a row of the artefact would have.
fn place(artefact: &Artefact) -> String {
    format!("{}/{}/", artefact.paper, artefact.id)
}

fn selects(selector: &str, paper: &str, id: &str) -> bool {
    if selector == ALL || selector == paper {
        return true;
    }
    let ends_in_digit = selector.ends_with(|c: char| c.is_ascii_digit());
    selector.contains('/')
        && id.strip_prefix(selector).is_some_and(|rest| {
            let cuts_a_number = ends_in_digit && rest.starts_with(|c: char| c.is_ascii_digit());
            !cuts_a_number
        })
}

/// The valid selector that begins with `selector`, or is most similar to it, among those with the same number of parts.
fn nearest<'a>(
    reference: &Reference,
    without_rows: impl Iterator<Item = &'a Artefact>,
    selector: &str,
) -> Option<String> {
    let parts = selector.split('/').count();
    let beginning = |id: &str| id.split('/').take(parts).collect::<Vec<_>>().join("/");
    let rows = reference.rows().iter().map(|row| beginning(&row.id));
    let beginnings: Vec<String> = rows.chain(without_rows.map(|artefact| beginning(&place(artefact)))).collect();
    let valid = || [ALL, COMPARISON].into_iter().chain(beginnings.iter().map(String::as_str));
    let completion = valid().find(|name| !selector.is_empty() && name.starts_with(selector));
    completion.or_else(|| text::nearest(selector, valid())).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::catalogue::Entry;

    fn artefacts(selectors: &[&str]) -> Vec<String> {
        let reference = Reference::load().unwrap();
        let selectors: Vec<String> = selectors.iter().map(|s| (*s).to_owned()).collect();
        let selection = Selection::new(&reference, &[], &selectors).unwrap();
        let mut places: Vec<String> =
            selection.rows.iter().map(|row| format!("{}/{}", row.paper, row.artefact)).collect();
        places.dedup();
        places
    }

    const ARTEFACTS: &[Artefact] =
        &[artefact("comparison", "fronts"), artefact("sage", "figure3"), artefact("sage", "table1")];

    const fn artefact(paper: &'static str, id: &'static str) -> Artefact {
        Artefact { entry: Entry { paper, id, ..Entry::EMPTY }, run: |_| Ok(crate::reproduce::Outcome::default()) }
    }

    fn bare(selection: &Selection<'_>) -> Vec<String> {
        selection.without_rows.iter().map(|artefact| format!("{}/{}", artefact.paper, artefact.id)).collect()
    }

    fn refused(selector: &str) -> String {
        let reference = Reference::load().unwrap();
        Selection::new(&reference, &[], &[selector.to_owned()]).unwrap_err().to_string()
    }

    fn meant(selector: &str) -> Option<String> {
        let refused = refused(selector);
        let (_, guess) = refused.split_once("did you mean `")?;
        guess.split_once('`').map(|(guess, _)| guess.to_owned())
    }

    #[test]
    fn a_selector_is_the_beginning_of_ids() {
        assert_eq!(artefacts(&["sage/table1"]), ["sage/table1"]);
        assert_eq!(artefacts(&["sage/figure9"]), ["sage/figure9a", "sage/figure9b", "sage/figure9"]);
        assert_eq!(artefacts(&["sage/figure9/"]), ["sage/figure9"]);
        assert_eq!(artefacts(&["sage/section3.4"]), ["sage/section3.4.3"]);
        assert_eq!(artefacts(&["sage/table1/resnet50/original", "sage/figure13"]), ["sage/table1", "sage/figure13"]);
        assert!(artefacts(&["fedhybrid"]).iter().all(|place| place.starts_with("fedhybrid/")));
    }

    #[test]
    fn it_does_not_end_inside_a_number() {
        // fedhybrid has figure1, figure1c, figure11a, figure17, figure19a …: only the first two begin with figure 1.
        assert_eq!(artefacts(&["fedhybrid/figure1"]), ["fedhybrid/figure1", "fedhybrid/figure1c"]);
        assert_eq!(meant("sage/figure1").as_deref(), Some("sage/figure10"));
    }

    #[test]
    fn all_is_every_row_once_and_the_default() {
        let reference = Reference::load().unwrap();
        let all = Selection::new(&reference, ARTEFACTS, &[]).unwrap();
        assert_eq!(all.rows.len(), reference.rows().len());
        assert_eq!(bare(&all), ["comparison/fronts", "sage/figure3"]);
        let twice = Selection::new(&reference, ARTEFACTS, &["sage".into(), "sage/table1".into()]).unwrap();
        assert_eq!(twice.rows.len(), reference.rows().iter().filter(|row| row.paper == "sage").count());
        assert_eq!(bare(&twice), ["sage/figure3"]);
        let comparison = Selection::new(&reference, ARTEFACTS, &["comparison".into()]).unwrap();
        assert!(comparison.rows.is_empty());
        assert_eq!(bare(&comparison), ["comparison/fronts"]);
        // sage/figure3 has no row in the reference, but can be selected all the same.
        let picture = Selection::new(&reference, ARTEFACTS, &["sage/figure3".into()]).unwrap();
        assert!(picture.rows.is_empty());
        assert_eq!(bare(&picture), ["sage/figure3"]);
    }

    #[test]
    fn what_selects_nothing_is_an_error_with_the_nearest() {
        assert_eq!(meant("sage/table99").as_deref(), Some("sage/table1"));
        assert_eq!(meant("mandhelng").as_deref(), Some("mandheling"));
        assert_eq!(meant("sage/table1/resnet5o/original").as_deref(), Some("sage/table1/resnet50/original"));
        assert_eq!(meant(""), None);
        let message = refused("sag");
        assert!(message.contains("did you mean `sage`?") && message.contains("daf, sage"), "{message}");
    }
}
