//! Shared by FedHybrid's artefacts: phones, networks, and runs of MNN with and without the phone's own memory.

use haversack_devices::{CoreSelection, System};
use haversack_training::PhoneReport;
use statrs::statistics::Statistics;

use crate::artefacts::prelude::*;
use crate::scenario::PhoneApps;

/// The phone of most figures.
pub(crate) const S22: &str = "galaxy-s22";
/// The phone of the same chip with more memory.
pub(crate) const OP10P: &str = "oneplus-10-pro";
/// The phone of a lower class.
pub(crate) const NOTE10: &str = "redmi-note10";

/// The phones: the id of the calibration, and the display name.
pub(crate) const PHONES: [(&str, &str); 3] =
    [(S22, "Galaxy S22"), (OP10P, "OnePlus 10 Pro"), (NOTE10, "Redmi Note 10")];

/// The display name of a phone.
pub(crate) fn phone_name(phone: &'static str) -> &'static str {
    PHONES.iter().find(|(id, _)| *id == phone).map_or(phone, |(_, name)| name)
}

/// The policy that only recomputes.
pub(crate) const MELON: &str = "melon";

/// The stack that FedHybrid builds on.
pub(crate) const STACK: &str = "mnn-2";

/// The image network of sections 2 and 3, with its display name.
pub(crate) const MOBILENET: (&str, &str) = ("mobilenetv2", "MobileNetV2");
/// The text network, for 128 tokens, with its display name.
pub(crate) const BERT: (&str, &str) = ("bert-base", "BERT");
/// The batch of pictures in figures 1, 2 and 5, and the smaller one of figures 2 and 21.
pub(crate) const PICTURES: u64 = 32;
pub(crate) const FEW_PICTURES: u64 = 16;
/// The batch of texts in figures 1 and 5.
pub(crate) const TEXTS: u64 = 8;

/// A scenario of MNN: `model` at `batch` samples on `phone` under `policy`, with the cores and the frequency that the
/// readings declare for the artefact; on a phone with fewer such cores, on all except the little ones.
pub(crate) fn scenario(context: &Context<'_>, phone: &str, model: &str, batch: u64, policy: &str) -> Result<Scenario> {
    let mut scenario = trained(phone, model, policy, batch);
    scenario.stack = Some(STACK.to_owned());
    scenario.seed = context.seed;
    scenario.frequency = context.reading_text("frequency")?.parse()?;
    let cpu = context.device(phone)?.cpu().with_context(|| format!("{phone} has no CPU"))?;
    let cores: CoreSelection = context.reading_text("cores")?.parse()?;
    scenario.cores = Some(cores.or_all_of_class(cpu.choose(cores, scenario.frequency)));
    Ok(scenario)
}

/// Runs `plan`; if no plan fits its budget, returns a message with the budget that would.
pub(crate) fn run_if_it_fits(context: &Context<'_>, plan: &Plan) -> Result<Result<Record, String>> {
    match plan.run() {
        Err(error) if error.is_infeasible() => Ok(Err(plan.explain_failure(error, context.cache).to_string())),
        other => Ok(Ok(other?)),
    }
}

/// `scenario` on a phone in use with `apps`, under the system that the reading declares.
pub(super) fn on_phone(context: &Context<'_>, scenario: Scenario, apps: Option<PhoneApps>) -> Result<Scenario> {
    Ok(Scenario { system: Some(context.reading_text("system")?.to_owned()), apps, ..scenario })
}

/// The number of starts of a run within the one-second period of hot pages; the figure uses their mean.
pub(super) const STARTS: u64 = 16;

/// The relative standard error of the mean time at which no more starts are needed.
const ENOUGH: f64 = 0.02;

/// The phone reports of `scenario` from several starts drawn by the seed: from all starts if everything is run,
/// otherwise from two, four and so on until their mean is precise enough.
pub(super) fn from_starts(context: &Context<'_>, scenario: &Scenario) -> Result<Vec<PhoneReport>> {
    let from = |place: u64| {
        let scenario = Scenario { seed: context.seed * STARTS + place, ..scenario.clone() };
        context.run(&scenario)?.phone.context("the run has no report of a phone")
    };
    let mut reports: Vec<PhoneReport> = Vec::new();
    let mut wanted = if context.full { STARTS } else { 2 };
    loop {
        let more: Vec<PhoneReport> = (reports.len() as u64..wanted).into_par_iter().map(from).collect::<Result<_>>()?;
        reports.extend(more);
        let times = reports.iter().map(|report| report.run.time.seconds());
        let error_of_mean = times.clone().std_dev() / times.mean() / (reports.len() as f64).sqrt();
        if wanted >= STARTS || error_of_mean <= ENOUGH {
            return Ok(reports);
        }
        wanted *= 2;
    }
}

/// The system that the reading declares.
pub(crate) fn system(context: &Context<'_>) -> Result<System> {
    context.system(context.reading_text("system")?)
}
