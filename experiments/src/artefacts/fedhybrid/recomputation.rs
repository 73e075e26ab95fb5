//! The cost of recomputation under Melon: table 1 and figure 5.

use haversack_workloads::Role;

use super::setting::{BERT, MELON, MOBILENET, PICTURES, S22, TEXTS, run_if_it_fits, scenario};
use crate::artefacts::prelude::*;
use crate::artefacts::sweeps::gathered;
use crate::papers::reference::{Reference, Role as RowRole};

/// The budget of the reading `table1-share`, in percent of the memory of saved tensors.
const HALF: f64 = 50.0;

/// Milliseconds of layout transformations and of all other recomputation.
fn parts(record: &Record) -> [f64; 2] {
    let layout = record.recomputed_layout;
    [layout, record.breakdown.recompute.saturating_sub(layout)].map(|time| time.seconds() * 1e3)
}

/// The percentage of layout transformations in the recomputation time; `None` if nothing is recomputed.
fn share(record: &Record) -> Option<f64> {
    let [layout, other] = parts(record);
    (layout + other > 0.0).then(|| layout / (layout + other) * 100.0)
}

pub(super) fn table1(context: &Context<'_>) -> Result<Outcome> {
    let &[pictures, texts] = context.reading_numbers("table1-batch")? else {
        bail!("the reading `table1-batch` is not two numbers")
    };
    let mut outcome = Outcome::default();
    let records = gathered(context, "batch,budget_mb,layout_ms,other_ms,layout_percent", |cases| {
        let (network, percent) = (&cases[0], cases[1].id.parse()?);
        let batch = if network.also["sample"] == "text" { texts } else { pictures } as u64;
        let mut scenario = scenario(context, S22, &network.also["model"], batch, MELON)?;
        scenario.activation_budget = Some(Budget::Percent(percent));
        let plan = context.plan(&scenario)?;
        let ran = run_if_it_fits(context, &plan)?;
        let parts = ran.as_ref().map_or([0.0; 2], parts);
        let share = ran.as_ref().ok().and_then(share);
        let budget = plan.budgets.activations.map(Bytes::megabytes);
        if percent == HALF && share.is_none() {
            let why = ran.err().unwrap_or_else(|| "nothing is computed again".to_owned());
            let id = format!("fedhybrid/table1/{}/recomputation/layout-transformation-share", network.id);
            outcome.not_modelled(id, why);
        }
        Ok(vec![(batch, budget, parts, share)])
    })?;
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    show(context, records, outcome)
}

/// The lines: network, samples, and the name in the reference.
const LINES: [((&str, &str), u64, &str); 2] =
    [(MOBILENET, PICTURES, "mobilenetv2-batch-32"), (BERT, TEXTS, "bert-batch-8")];
/// Steps from enough memory down to the reading's budget.
const STEPS: u64 = 8;

/// One network on one phone.
struct Line {
    scenario: Scenario,
    /// The optimiser's state, which every budget excludes.
    state: Bytes,
    /// An iteration with enough memory.
    enough: Record,
}

impl Line {
    fn new(context: &Context<'_>, phone: &str, model: &str, batch: u64) -> Result<Self> {
        let stack = Some(context.reading_text("stack")?.to_owned());
        let scenario = Scenario { stack, ..scenario(context, phone, model, batch, MELON)? };
        let plan = context.plan(&scenario)?;
        let state = Bytes(plan.graph.bytes_of(|role| role == Role::OptimiserState).at(batch));
        Ok(Self { enough: plan.run()?, scenario, state })
    }

    /// An iteration within `budget` plus the optimiser's state, or the reason why there is none.
    fn within(&self, context: &Context<'_>, budget: Bytes) -> Result<Result<Record, String>> {
        let memory_budget = Some(Budget::Bytes(budget + self.state));
        run_if_it_fits(context, &context.plan(&Scenario { memory_budget, ..self.scenario.clone() })?)
    }

    fn overhead(&self, record: &Record) -> f64 {
        record.iteration.seconds() / self.enough.iteration.seconds()
    }

    /// Budgets from the need of training down to `least`, which comes last.
    fn budgets(&self, least: Bytes) -> impl Iterator<Item = Bytes> + use<> {
        let spare = self.enough.reserved.saturating_sub(self.state).saturating_sub(least);
        (0..=STEPS).rev().map(move |step| least + Bytes(spare.0 * step / STEPS))
    }
}

pub(super) fn figure5(context: &Context<'_>, phone: &'static str) -> Result<Outcome> {
    let artefact = context.artefact.id;
    let least = Bytes((context.reading_number("budget")? * 1e6) as u64);
    let subject_phone = if phone == S22 { "s22" } else { phone };
    let mut records = Records::of(
        "network,name,batch,row,budget_mb,budget_with_state_mb,time_s,recomputed_s,micro_batches,overhead,overhead_in_the_end",
    );
    let mut outcome = Outcome::default();
    for ((model, name), batch, subject) in LINES {
        let row = format!("{artefact}/{subject_phone}-{subject}/melon/latency-overhead");
        let line = Line::new(context, phone, model, batch)?;
        let mut last = Err(String::new());
        for budget in line.budgets(least) {
            last = line.within(context, budget)?;
            let Ok(record) = &last else { continue };
            let budgets = [budget, budget + line.state].map(Bytes::megabytes);
            let times = [record.iteration, record.breakdown.recompute].map(Nanos::seconds);
            let overhead = line.overhead(record);
            let overheads = [Some(overhead), (budget == least).then_some(overhead)];
            let case = (model, name, batch, row.as_str());
            records.row((case, budgets, times, record.micro_batches.len() as u64, overheads))?;
        }
        let overhead = last.map(|record| line.overhead(&record));
        outcome.answer(format!("fedhybrid/{row}"), overhead.map_or_else(Answer::NotModelled, Answer::Number));
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    show(context, records, outcome)
}

/// One number per method, for all networks, batches and phones: the median of the method's `fit` rows of the same
/// metric; the two parts of figure 5 count as one artefact.
///
/// `None` if the row itself is the only such row, and for all other artefacts: in figures 1c and 2 no method and metric
/// has both a `fit` row and a row of another role. The rows of figures 1c and 2a are all `fit`, and the memory in use
/// of figure 2b and the counts of figure 2c are all `check`.
pub(super) fn null(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    let together: &[&str] = match row.artefact.as_str() {
        "table1" => &["table1"],
        "figure5a" | "figure5b" => &["figure5a", "figure5b"],
        _ => return None,
    };
    let alike = |other: &&ReferenceRow| {
        other.method == row.method && other.metric == row.metric && other.role() == RowRole::Fit
    };
    let known = together.iter().flat_map(|artefact| reference.of(row.paper, artefact)).filter(alike);
    let known: Vec<&ReferenceRow> = known.collect();
    if known.iter().all(|other| other.id == row.id) {
        return None;
    }
    median(known.into_iter().filter_map(ReferenceRow::number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::parse;

    #[test]
    fn a_row_is_no_baseline_of_its_own() {
        let column = "id,artefact,subject,method,metric,unit,kind,value,lo,hi,role,conditions\n";
        let row = |subject: &str, value: &str, role: &str| {
            let cells = format!("table1,{subject},recomputation,share,percent,value,{value},,,{role},");
            format!("fedhybrid/table1/{subject}/recomputation/share,{cells}\n")
        };
        let null_of_a = |rows: &[String]| {
            let text = format!("{column}{}", rows.concat());
            let reference = Reference::of_rows(parse("fedhybrid", "f.csv", &text).unwrap());
            null(&reference, reference.row("fedhybrid/table1/a/recomputation/share").unwrap())
        };
        // The only fit row is not a source for itself, and a check row is not a source; a row of another
        // role uses the fit row.
        assert_eq!(null_of_a(&[row("a", "20", "fit")]), None);
        assert_eq!(null_of_a(&[row("a", "20", "fit"), row("b", "30", "check")]), None);
        assert_eq!(null_of_a(&[row("a", "20", "check"), row("b", "30", "fit")]), Some(30.0));
        // With two fit rows it is their median: (20 + 30) / 2 = 25.
        assert_eq!(null_of_a(&[row("a", "20", "fit"), row("b", "30", "fit")]), Some(25.0));
    }

    #[test]
    fn a_method_of_fedhybrids_has_one_number() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| null(&reference, reference.row(id)?);
        // The fit rows of table 1 are 19.7, 14.2 and 57.8 %: the median applies to all rows, including withheld ones.
        for subject in ["resnet34", "bert", "swin-finetune"] {
            let id = format!("fedhybrid/table1/{subject}/recomputation/layout-transformation-share");
            assert_eq!(null(&id), Some(19.7), "{id}");
        }
        // Figure 5 has two fit rows, 2.3 and 4.8, whose mean applies to all four.
        let overhead = |place: &str| null(&format!("fedhybrid/{place}/melon/latency-overhead"));
        for place in ["figure5a/s22-bert-batch-8", "figure5b/redmi-note10-mobilenetv2-batch-32"] {
            assert_eq!(overhead(place), Some(3.55), "{place}");
        }
        assert_eq!(null("fedhybrid/figure2b/s22-batch-32/system/memory-used"), None);
    }
}
