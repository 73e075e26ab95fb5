//! `haversack model`: a network's parameters, operations and memory, counted as PyTorch's tools do.

use clap::Args;
use haversack_workloads::counts::{count, layers};
use haversack_workloads::lowering::node_counts;
use haversack_workloads::{Network, Variant};
use serde_json::{Map, json};

use crate::output::{Format, join, note};
use crate::scenario::{Fault, InputShape, Origin, ScenarioError, workload};
use crate::texts::text;
use crate::{CommandError, Key, Result};

/// The options of `model`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/model.txt"))]
pub struct ModelOptions {
    /// Model of `haversack list models`, or an ONNX file
    #[arg(value_name = "NAME|FILE.onnx")]
    pub model: String,
    /// Mini-batch size
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    pub batch: String,
    /// Shape of one sample, such as 3x96x96 or 256 [default: the model's own]
    #[arg(long, value_name = "SHAPE", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// Train only these weights of the file: comma-separated names or patterns such as head.*
    #[arg(long, value_name = "NAMES")]
    pub trainable: Option<String>,
    /// Freeze these weights of the file: comma-separated names or patterns
    #[arg(long, value_name = "NAMES")]
    pub frozen: Option<String>,
    /// Outputs of the file that the loss is over, comma-separated [default: all that depend on a trained weight]
    #[arg(long, value_name = "NAMES")]
    pub outputs: Option<String>,
    /// Also list the operators, with the counts of each
    #[arg(long)]
    pub layers: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Counts the model and prints the figures.
///
/// # Errors
/// An unknown model, a file that does not contain a network, a batch or an input that it cannot take.
pub fn run(options: &ModelOptions) -> Result<()> {
    let (model, batch) = (options.model.as_str(), options.batch.as_str());
    let wrong = |key: Key, fault: Fault| ScenarioError::new(Origin::Flag, key.name(), fault);
    let samples: Option<u64> = batch.trim().parse().ok().filter(|samples| (1..=Key::Batch.most()).contains(samples));
    let samples = samples.ok_or_else(|| {
        let expected = format!("a whole number of samples from 1 to {}", Key::Batch.most());
        wrong(Key::Batch, Fault::value(expected, format!("'{batch}'")))
    })?;
    let input: Option<InputShape> = options
        .input
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error| wrong(Key::Input, Fault::Quantity(error)))?;
    let names = [&options.trainable, &options.frozen, &options.outputs].map(Option::as_deref);
    let network = workload::network(model, &workload::reading(input.as_ref(), names), None)?;
    network.notes().iter().for_each(|sentence| note(sentence));
    if overflows(&network, samples) {
        return Err(CommandError::input(format!("{samples} samples of {model} are more than can be counted")));
    }
    let nodes = Variant::ALL.iter().zip(node_counts(&network)?).map(|(variant, nodes)| (variant.id(), nodes));
    let mut answer = json!(count(&network, samples));
    answer["missing_parameters"] = json!(network.missing_parameters());
    answer["co_nodes"] = nodes.map(|(variant, nodes)| (variant.to_owned(), json!(nodes))).collect::<Map<_, _>>().into();
    if options.layers {
        answer["layers"] = json!(layers(&network, samples));
    }
    let text = || {
        let shape = input.or_else(|| workload::own_input(model)).map(|shape| shape.to_string());
        let mut all = answer.clone();
        join(&mut all, json!({ "model": model, "samples": samples, "shape": shape }));
        text(include_str!("../texts/model.txt"), &all)
    };
    options.format.print(text, || answer.clone())
}

/// Whether any figure could overflow an integer.
fn overflows(network: &Network, samples: u64) -> bool {
    let of = |extent: haversack_workloads::Extent| {
        u128::from(extent.fixed) + u128::from(extent.per_sample) * u128::from(samples)
    };
    let flops: u128 = network.nodes.iter().map(|node| 3 * of(node.flops)).sum();
    let bytes: u128 = network.storages.iter().map(|storage| of(storage.bytes)).sum();
    flops.max(bytes) > u128::from(u64::MAX >> 4)
}
