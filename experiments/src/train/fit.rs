//! Whether a network can take the samples of a data set.

use haversack_workloads::data::{DataSet, SampleForm};
use haversack_workloads::network::Value;
use haversack_workloads::{Network, Op, Role};

use crate::scenario::{Scenario, workload};

/// The shape of a sample as a scenario's `input` has it.
pub(crate) fn shape(form: &SampleForm) -> String {
    match form {
        SampleForm::Image(form) => format!("{}x{}x{}", form.channels, form.height, form.width),
        SampleForm::Tokens { length, .. } => length.to_string(),
    }
}

/// Refuses data that `network` cannot take, in words: another number of values, more classes than it tells apart, more
/// tokens than it knows, fewer samples than a mini-batch, or nothing to measure on.
pub(super) fn check(network: &Network, scenario: &Scenario, data: &DataSet) -> Result<(), String> {
    let model = workload::called(&scenario.model);
    let is_input = |value: &&Value| network.storages[value.storage as usize].role == Role::Input;
    let takes = network.values.iter().find(is_input).map_or(0, |value| value.shape.elements().at(1));
    let own = data.form.elements() as u64;
    if takes != own {
        let shape = shape(&data.form);
        return Err(format!("`data`: samples of {shape}, which are {own} values; {model} takes {takes}"));
    }
    let rows = |is: fn(&Op) -> bool| network.nodes.iter().find(|node| is(&node.op));
    if let Some(loss) = rows(|op| matches!(op, Op::CrossEntropy)) {
        let scores = network.shape(loss.inputs[0]).elements().at(1);
        if (data.number_of_classes as u64) > scores {
            return Err(format!("`data`: {} classes; {model} tells {scores} apart", data.number_of_classes));
        }
    }
    if let (SampleForm::Tokens { vocabulary, .. }, Some(table)) = (&data.form, rows(|op| matches!(op, Op::Embedding))) {
        let width = network.shape(table.output).elements().at(1) / takes.max(1);
        let known = network.parameters[table.parameters[0] as usize].elements / width.max(1);
        if *vocabulary as u64 > known {
            return Err(format!("`data`: {vocabulary} different tokens; {model} knows {known}"));
        }
    }
    let (batch, samples) = (scenario.batch, data.train.len());
    if batch > samples as u64 {
        return Err(format!("`batch`: {batch} samples; the train part of the data has {samples}"));
    }
    match (data.validation.is_empty(), data.test.is_empty()) {
        (true, _) => Err("`data`: no sample to choose on; expected a larger `validation_share`".to_owned()),
        (_, true) => Err("`data`: no sample to test on".to_owned()),
        _ => Ok(()),
    }
}
