//! How sensitive gradients are to each kind of saved tensor, as ActNN and GACT measure it.

use haversack_numerics::{Meter, Rule};
use haversack_policies::gact::{Gact, Level, Parameters};
use haversack_policies::{Learned, Metric};
use haversack_training::Lesson;
use strum::IntoEnumIterator;

use crate::artefacts::prelude::*;
use crate::artefacts::trained::{MapKind, RECIPES, Trained, measured};
use crate::validate;

const ABOUT: &str = "Variance that one step over the range of saved tensors adds to gradients, by what made them";

/// Mini-batches of the measurement: the newest has a weight of a tenth in the moving average.
const UPDATES: usize = 20;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT, &RECIPES, sensitivities)?;
    let mut records = Records::of("network,name,kind,share_of_variance,lo,hi,share_of_values");
    for recipe in RECIPES {
        for kind in MapKind::iter() {
            let of = |what: &str| measured.value(&format!("{}/{kind}/{what}", recipe.model));
            let (Ok(variance), Ok(share)) = (of("variance"), of("values")) else { continue };
            let numbers = [variance.value, variance.lo, variance.hi, share.value];
            records.row((recipe.model, recipe.name, kind.to_string(), numbers))?;
        }
    }
    show(context, records, outcome)
}

/// The share of each kind in the variance of all, and in their values.
fn sensitivities(trained: &Trained) -> Result<Vec<(String, &'static str, f64)>> {
    let importance = importance(trained)?;
    let (mut all_variance, mut all_values) = (0.0, 0.0);
    let mut kinds: Vec<(MapKind, f64, f64)> = MapKind::iter().map(|kind| (kind, 0.0, 0.0)).collect();
    for (tensor, kind) in trained.saved() {
        let variance = importance.get(tensor as usize).copied().unwrap_or_default();
        // A tensor whose values are never read has no variance, and is not a candidate for fewer bits.
        let values = if variance > 0.0 { trained.program.elements(tensor, 1) as f64 } else { 0.0 };
        all_variance += variance;
        all_values += values;
        if let Some((_, variances, numbers)) = kinds.iter_mut().find(|(known, ..)| *known == kind) {
            *variances += variance;
            *numbers += values;
        }
    }
    ensure!(all_variance > 0.0, "no importance was measured");
    let found = kinds.into_iter().filter(|(_, _, values)| *values > 0.0);
    Ok(found
        .flat_map(|(kind, variance, values)| {
            [
                (format!("{kind}/variance"), "%", variance / all_variance * 100.0),
                (format!("{kind}/values"), "%", values / all_values * 100.0),
            ]
        })
        .collect())
}

/// The moving averages after some more updates under GACT, which needs them.
fn importance(trained: &Trained) -> Result<Vec<f64>> {
    let mut lesson = Lesson {
        program: &trained.program,
        state: trained.state.clone(),
        meter: Meter::default(),
        seed: trained.seed,
        update: trained.updates(),
        importance: Vec::new(),
        factors: Vec::new(),
        learned: Learned::Null,
    };
    let rule: Rule = trained.rule();
    let batches = trained.next_batches().take(UPDATES).map(|batch| (batch, rule));
    let mut gact = Gact::new(Parameters { level: Level::Fixed, bits: 8, metric: Metric::Depth });
    let plan = &trained.plan;
    haversack_training::train(plan.machine(), &plan.job(), &mut gact, &mut lesson, batches, |_| true)?;
    Ok(lesson.importance)
}

pub(super) fn validation(context: &Context<'_>) -> Result<Outcome> {
    let (table, panels, finding) = validate::overview(context.cache)?;
    let mut outcome = Outcome { table: Some(table), panels, ..Outcome::default() };
    outcome.words("finding", finding);
    Ok(outcome)
}
