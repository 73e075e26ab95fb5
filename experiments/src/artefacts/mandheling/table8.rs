//! Table 8: time and energy to convergence, by rounds that are taken from the table.

use haversack_devices::{Flops, Frequency};

use super::setting::{XIAOMI_11_PRO, batch};
use super::table7::{METHODS, chosen};
use super::{accuracy, federated, roofline};
use crate::artefacts::learning::stand_in_words;
use crate::artefacts::prelude::*;
use crate::papers::reference::Reference;

/// What is trained on one phone, as the reference names it and for people.
const CENTRALISED: [(&str, &str); 2] = [("vgg11-cifar10", "VGG-11"), ("resnet18-cifar10", "ResNet-18")];
/// The quantities: as the reference names them, for people, and their unit.
const QUANTITIES: [(&str, &str, &str); 2] = [("clock-hours", "time to convergence", "h"), ("energy", "energy", "Wh")];

/// The scenario of a batch of a row's training; nothing for federated ones.
pub(crate) fn of_row(subject: &str, method: &str, batch: u64) -> Option<Scenario> {
    let model = match subject {
        "vgg11-cifar10" => "vgg11-cifar",
        "resnet18-cifar10" => "resnet18-cifar",
        _ => return None,
    };
    Some(Scenario { frequency: Frequency::Highest, ..trained(XIAOMI_11_PRO, model, method, batch) })
}

/// The rounds of the row's training, an input.
pub(crate) fn rounds(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    let same =
        |other: &&ReferenceRow| other.metric == "rounds" && other.subject == row.subject && other.method == row.method;
    reference.of(row.paper, &row.artefact).find(same)?.number()
}

/// The rounds of a training, which are put in.
pub(super) fn put_in_rounds(context: &Context<'_>, outcome: &mut Outcome, subject: &str, method: &str) -> Result<f64> {
    let row = context.row(&format!("mandheling/table8/{subject}/{method}/rounds"))?;
    let number = rounds(context.reference, row).with_context(|| format!("{} has no number", row.id))?;
    outcome.answer(row.id.clone(), Answer::Input(number));
    Ok(number)
}

/// The operations of a batch in fp32, forward and backward, as the engines on the CPU compute them.
fn operations(context: &Context<'_>, scenario: &Scenario) -> Result<Flops> {
    let in_floats = Scenario { policy: "mnn-fp32".to_owned(), ..scenario.clone() };
    let plan = context.plan(&in_floats)?;
    Ok(plan.graph.nodes.iter().map(|node| Flops(node.work.flops.at(scenario.batch) as f64)).sum())
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let samples = context.reading_number("batch")? as u64;
    let batches = context.reading_number("batches-per-round")?;
    let device = context.device(XIAOMI_11_PRO)?;
    let cores_of = |cores: &str, frequency: &str| chosen(&device, cores, frequency);
    let of_table7 = Scenario { batch: samples, ..Scenario::new(XIAOMI_11_PRO, "vgg16-cifar") };
    let of_table7 = operations(context, &of_table7)?;
    let mut outcome = Outcome::of("network,method,batch_s,batch_j,quantity,simulated,paper,unit");
    let mut grid = Grid::default();
    for (subject, name) in CENTRALISED {
        for (method, method_name) in METHODS {
            let Some(scenario) = of_row(subject, method, samples) else { continue };
            let rounds = put_in_rounds(context, &mut outcome, subject, method)?;
            let batch = batch(context, &scenario)?;
            let share = operations(context, &scenario)?.0 / of_table7.0;
            let each = [batch.time.seconds(), batch.energy.0];
            for ((metric, words, unit), each_batch) in QUANTITIES.into_iter().zip(each) {
                let id = format!("mandheling/table8/{subject}/{method}/{metric}");
                let value = each_batch * rounds * batches / 3600.0;
                let paper = grid.answer(context, &mut outcome, &id, [name, method_name, words], value)?;
                let row = context.row(&id)?;
                if let Some(null) = roofline::of_table8(context.reference, row, share, rounds * batches, &cores_of) {
                    outcome.null(id, null);
                }
                outcome.row((name, method, each, metric, value, paper, unit))?;
            }
        }
    }
    let learned = accuracy::of_methods(context)?;
    accuracy::answer(&mut outcome, &CENTRALISED.map(|(subject, _)| subject), &learned);
    let named: Vec<String> = learned.iter().take(2).map(|one| stand_in_words(&one.stand_in)).collect();
    outcome.words("stand-ins", named.join(" in fp32; in integers "));
    for (_, words, unit) in QUANTITIES {
        outcome.bars(words, grid.bars(words), axis(words, unit));
    }
    federated::answer(context, &mut outcome, QUANTITIES)?;
    Ok(outcome)
}
