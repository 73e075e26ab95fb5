//! Figure 7: the benefit of each memory-saving technique, tensor by tensor.

use std::collections::HashSet;

use haversack_devices::OperatorKind;
use haversack_policies::fedhybrid::{Surveyed, Terms, survey};
use haversack_policies::restore::Layouts;
use haversack_training::with_setting;
use haversack_workloads::training_graph::Node;
use haversack_workloads::{TensorId, TrainingGraph};

use super::setting::{MOBILENET, S22, scenario};
use crate::artefacts::prelude::*;

const COMPRESSION: &str = "fedhybrid/figure7/convolution-and-matmul-tensors/compression-above-recomputation/mps";
/// The number of tensors, from the reading `reward`.
const TENSORS: usize = 12;
/// The techniques, in the order of [`Candidate::mps`].
const TECHNIQUES: [&str; 3] = ["swapping", "recomputation", "compression"];
/// Bytes per value.
const VALUE: u64 = 4;

/// One of the tensors.
struct Candidate {
    /// The operator that makes it, by the engine's name; conversions of its layout are skipped.
    operator: String,
    shape: String,
    bytes: Bytes,
    /// Whether a convolution or a product of matrices makes it.
    product: bool,
    found: Surveyed,
}

impl Candidate {
    fn new(plan: &Plan, found: Surveyed) -> Option<Self> {
        let graph = &plan.graph;
        let tensor = graph.tensor(found.tensor);
        let maker = maker(graph, found.tensor)?;
        let (module, operator) = maker.name.rsplit_once('.').unwrap_or(("", &maker.name));
        let product = matches!(
            maker.work.kind,
            OperatorKind::Convolution | OperatorKind::DepthwiseConvolution | OperatorKind::Gemm
        );
        Some(Self {
            operator: operator.to_owned(),
            shape: shape(plan, module, tensor.bytes.per_sample / VALUE),
            bytes: Bytes(tensor.bytes.at(plan.scenario().batch)),
            product,
            found,
        })
    }

    /// The terms of each technique; `None` where the run does not provide them.
    fn terms(&self) -> [Option<&Terms>; 3] {
        let Surveyed { recompute, compress, swap, .. } = &self.found;
        [swap.as_ref(), Some(recompute), compress.as_ref()]
    }

    fn mps(&self) -> [Option<f64>; 3] {
        self.terms().map(|terms| terms.map(Terms::mps))
    }
}

/// The operator that makes a tensor; for a tensor that is only transformed to another layout, the operator that made
/// the original, as in equation 6.
fn maker(graph: &TrainingGraph, tensor: TensorId) -> Option<&Node> {
    let mut wanted = tensor;
    loop {
        let node = graph.nodes.iter().find(|node| node.outputs.contains(&wanted))?;
        match node.inputs.first() {
            Some(&source) if node.work.kind == OperatorKind::Layout && source != wanted => wanted = source,
            _ => return Some(node),
        }
    }
}

/// The shape of one sample of a tensor of `values` values that `module` makes: that of its output, if it has as many.
fn shape(plan: &Plan, module: &str, values: u64) -> String {
    let network = &plan.resolved.network;
    let mut made = network.nodes.iter().filter(|node| node.module == module).map(|node| network.shape(node.output));
    let fitting = made.rfind(|shape| shape.elements().per_sample == values);
    fitting.map_or_else(
        || format!("{values} values"),
        |shape| shape.to_string().trim_start_matches("Bx").replace('x', "×"),
    )
}

/// The tensors that the reading selects, the one with the largest reward first.
fn selected(plan: &Plan) -> Vec<Candidate> {
    let layouts = Layouts::Counted { times: 1 };
    let surveyed = with_setting(plan.machine(), &plan.job(), |setting| survey(setting, layouts));
    let mut all: Vec<Candidate> = surveyed.into_iter().filter_map(|found| Candidate::new(plan, found)).collect();
    all.sort_by(|a, b| b.found.recompute.reward().total_cmp(&a.found.recompute.reward()));
    let mut seen = HashSet::new();
    all.retain(|candidate| seen.insert((candidate.operator.clone(), candidate.bytes)));
    all.truncate(TENSORS);
    all
}

/// MobileNetV2 on the S22, as MNN trains it: four threads on the fastest cores.
fn plan(context: &Context<'_>) -> Result<Plan> {
    let batch = context.reading_number("figure7-batch")? as u64;
    let scenario = scenario(context, S22, MOBILENET.0, batch, "original")?;
    context.plan(&scenario)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let plan = plan(context)?;
    let tensors = selected(&plan);
    ensure!(tensors.len() == TENSORS, "{} tensors are saved; {TENSORS} are needed", tensors.len());
    let mut outcome = Outcome::default();
    let products: Vec<&Candidate> = tensors.iter().filter(|tensor| tensor.product).collect();
    for (technique, name) in TECHNIQUES.into_iter().enumerate() {
        // A missing value becomes NaN, for which every relation is false.
        let mps = |tensor: &Candidate| tensor.mps()[technique].unwrap_or(f64::NAN);
        outcome.quantity(&format!("MPS of {name}"), "B·s per s", tensors.iter().map(mps));
        outcome.quantity(
            &format!("MPS of {name} for products"),
            "B·s per s",
            products.iter().map(|tensor| mps(tensor)),
        );
    }
    let above = |tensor: &&&Candidate| {
        let [_, recompute, compress] = tensor.mps();
        recompute.zip(compress).is_some_and(|(recompute, compress)| recompute < compress)
    };
    let higher = products.iter().filter(above).count();
    outcome.remark(
        COMPRESSION,
        format!("{higher} of the {} tensors that a convolution or a product of matrices makes", products.len()),
    );
    if let Some(miss) = products.iter().find(|tensor| !above(tensor)).and_then(|tensor| miss(tensor)) {
        outcome.words("a tensor that compression is not worth", miss);
    }
    outcome.quantity("samples of the batch", "", [plan.scenario().batch as f64]);
    show(context, data(&tensors)?, outcome)
}

/// The reason why compression is not above recomputation for a tensor.
fn miss(tensor: &Candidate) -> Option<String> {
    let Surveyed { recompute, compress, .. } = &tensor.found;
    let compress = compress.as_ref()?;
    let [codec, again] = [compress.purge + compress.regain, recompute.purge + recompute.regain].map(milliseconds);
    let share = compress.saved.as_f64() / tensor.bytes.as_f64() * 100.0;
    Some(format!(
        "For that of {} values a sample the codec saves {share:.0} % in {codec:.0} ms there and back, and {again:.0} ms compute it again.",
        tensor.shape
    ))
}

fn data(tensors: &[Candidate]) -> Result<Records> {
    let mut records =
        Records::of("tensor,operator,shape,mb,unused_ms,technique,saved_mb,purge_ms,regain_ms,mps_mb_s_per_s");
    for (index, tensor) in (1_u64..).zip(tensors) {
        for (technique, terms) in TECHNIQUES.into_iter().zip(tensor.terms()) {
            let Some(terms) = terms else { continue };
            let [lifetime, purge, regain] = [terms.lifetime, terms.purge, terms.regain].map(milliseconds);
            let head = (index, tensor.operator.as_str(), tensor.shape.as_str(), tensor.bytes.megabytes(), lifetime);
            records.row((head, technique, [terms.saved.megabytes(), purge, regain, terms.mps() / 1e6]))?;
        }
    }
    Ok(records)
}
