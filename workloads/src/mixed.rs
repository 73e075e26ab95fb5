//! Mixed-precision training as a rewrite of the eager graph (Mandheling, sections 2.2 and 3.2).
//!
//! An [`Algorithm`] is data; [`rewrite`] knows none of them by name. Products become products of integers,
//! followed by a node that recomputes their scale; operators that stay in fp32 are surrounded by a
//! dequantisation and a quantisation; operators that the algorithm's networks do not have are removed; weights
//! get a master copy if their update needs one. The choice of a processor, and of the iterations in which scales
//! are recomputed, is made elsewhere.

mod algorithm;
mod plan;
mod rewriter;

pub use algorithm::{
    Algorithm, Arithmetic, Backpropagation, BiasFormat, GradientFormat, Initialiser, Layers, Loss, Operand,
    OperatorName, OptimiserChoice, Pass, Rounding, StateFormat, Sweep, Translation, Update, WeightFormat, WeightRules,
};

use std::collections::HashMap;
use std::sync::LazyLock;

use algorithm::Treatment;
use haversack_devices::text::{TomlDocument, TomlError, hint};
use serde::{Deserialize, Deserializer, de};
use strum::VariantNames;

use crate::autograd::differentiate;
use crate::{EagerRules, Initial, Network, Op, Optimiser, TensorId, TrainingGraph, Unary, WorkloadError};

macro_rules! built_in {
    ($($file:literal),+) => {
        [$(($file, include_str!(concat!("../algorithms/", $file)))),+]
    };
}

/// In the order of Mandheling's table 1.
static BUILT_IN: LazyLock<Result<Vec<Algorithm>, WorkloadError>> = LazyLock::new(|| {
    let files = built_in!["niti.toml", "octo.toml", "adaptive-fixed-point.toml", "wageubn.toml", "mls.toml"];
    files.into_iter().map(|(file, text)| Algorithm::parse(file, text)).collect()
});

/// The built-in algorithms, in the order of Mandheling's table 1.
///
/// # Errors
/// A built-in description that does not load.
pub fn algorithms() -> Result<&'static [Algorithm], WorkloadError> {
    BUILT_IN.as_deref().map_err(Clone::clone)
}

/// The built-in algorithm called `id`.
///
/// # Errors
/// An unknown id, with the nearest one.
pub fn algorithm(id: &str) -> Result<&'static Algorithm, WorkloadError> {
    let all = algorithms()?;
    let ids = || all.iter().map(|algorithm| algorithm.id.as_str());
    all.iter().find(|algorithm| algorithm.id == id).ok_or_else(|| {
        let (guess, valid) = (hint(id, ids()), ids().collect::<Vec<_>>().join(", "));
        WorkloadError::Refused(format!("unknown algorithm '{id}'{guess}; expected one of {valid}"))
    })
}

/// The graph of one iteration of `network` in the mixed precision of `algorithm`.
///
/// # Errors
/// A network without a loss, or with an operator that the algorithm does not translate.
pub fn rewrite(network: &Network, algorithm: &Algorithm, optimiser: Optimiser) -> Result<TrainingGraph, WorkloadError> {
    Ok(rewritten(network, algorithm, optimiser)?.graph)
}

/// The same, with the computation of each node.
///
/// # Errors
/// As [`rewrite`].
pub fn rewritten(network: &Network, algorithm: &Algorithm, optimiser: Optimiser) -> Result<Rewritten, WorkloadError> {
    // Integer engines draw a mask of one byte an element.
    let eager = differentiate(network, EagerRules { dropout_mask_bytes: 1, optimiser, ..EagerRules::default() })?;
    let plan = plan::RewritePlan::new(network, &eager, algorithm)?;
    let (graph, computes, stands_for) = rewriter::Rewriter::new(network, &eager, algorithm, plan).run();
    Ok(Rewritten { algorithm: algorithm.clone(), graph, eager, computes, stands_for })
}

impl Initialiser {
    /// The standard deviation with which a weight of the dimensions `dims` (outputs, inputs, positions) is drawn;
    /// `None` if the network defines it.
    pub fn deviation(self, dims: &[u64]) -> Option<f32> {
        let positions: u64 = dims.iter().skip(2).product();
        let fan = |axis: usize| (dims.get(axis).copied().unwrap_or(1) * positions).max(1) as f32;
        let (fan_out, fan_in) = (fan(0), fan(1));
        match self {
            Self::XavierNormal => Some((2.0 / (fan_in + fan_out)).sqrt()),
            Self::KaimingNormal => Some((2.0 / fan_in).sqrt()),
            Self::Network => None,
        }
    }
}

/// `network` with the weights of its products drawn by the rules of `algorithm`, unless they come from
/// an imported file.
pub fn with_initial_weights(network: &Network, algorithm: &Algorithm) -> Network {
    let mut network = network.clone();
    for node in network.nodes.iter().filter(|node| matches!(node.op, Op::Convolution { .. } | Op::Linear)) {
        let Some(&weight) = node.parameters.first() else { continue };
        let parameter = &network.parameters[weight as usize];
        let held = &mut network.storages[parameter.storage as usize];
        let deviation = algorithm.weight.initialiser.deviation(&parameter.dims);
        if let (Some(deviation), true) = (deviation, held.initial != Some(Initial::Imported)) {
            held.initial = Some(Initial::Normal { deviation });
        }
    }
    network
}

// Reading an algorithm's description, and its errors.

/// The operators that a translation may name, by [`crate::Op::name`]; views do no work and need no translation.
static OPERATORS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let names = Op::VARIANTS.iter().flat_map(|name| match *name {
        "unary" => Unary::VARIANTS,
        "other" | "pairwise" | "reduce" | "take" => &[],
        _ => std::slice::from_ref(name),
    });
    let mut known: Vec<&str> = Vec::new();
    for &name in names.filter(|name| !["view", "slice"].contains(name)) {
        // Several operators share one name.
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
});
/// Those that leave the range of integers: exponentials and logarithms.
const FLOAT_ONLY: &[&str] = &["softmax", "cross_entropy"];
/// Those that may be left out, because their output has the shape of their input.
const OMISSIBLE: &[&str] = &["batch_norm", "layer_norm"];

impl<'de> Deserialize<'de> for OperatorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = OPERATORS.iter().find(|&&known| known == name);
        known.map(|&known| Self(known)).ok_or_else(|| de::Error::unknown_variant(&name, OPERATORS.as_slice()))
    }
}

impl Algorithm {
    /// Reads the description `text` of the file `file`.
    ///
    /// # Errors
    /// Text that is not TOML, an unexpected key, word or type, an operator with two translations or one that it cannot
    /// have: with the file, the line and the field, the expected value and the nearest valid name.
    pub fn parse(file: &str, text: &str) -> Result<Self, WorkloadError> {
        let read = || {
            let document = TomlDocument::parse(file, text)?;
            let algorithm: Self = document.read()?;
            algorithm.check(&document)?;
            Ok(algorithm)
        };
        read().map_err(WorkloadError::Algorithm)
    }

    fn check(&self, document: &TomlDocument<'_>) -> Result<(), TomlError> {
        let mut seen: HashMap<&str, &str> = HashMap::new();
        for (list, treatment, operators) in self.translation.lists() {
            for &OperatorName(name) in operators {
                let (fits, expected) = match treatment {
                    Treatment::Integer => (!FLOAT_ONLY.contains(&name), "an operator on integers"),
                    Treatment::Absent => (OMISSIBLE.contains(&name), "one of `batch_norm`, `layer_norm`"),
                    Treatment::Float => (true, ""),
                };
                let message = match seen.insert(name, list) {
                    Some(earlier) => format!("`{name}` is already in `translation.{earlier}`"),
                    None if fits => continue,
                    None => format!("expected {expected}, found `{name}`"),
                };
                return Err(document.refuse(&format!("translation.{list}"), message));
            }
        }
        Ok(())
    }
}

// The computation of each node of a rewritten graph, for a run that carries data.

/// A rewritten graph, and the computation of its nodes.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The graph; the `step` of each node is its place in `computes`.
    pub graph: TrainingGraph,
    /// The eager graph that it was made of.
    pub eager: TrainingGraph,
    /// The computation of each node, in the order of the nodes.
    pub computes: Vec<Computes>,
    /// The tensor of the eager graph whose values each tensor contains, in integers or in fp32; `None` for 32-bit sums,
    /// which only a rescaling sees.
    pub stands_for: Vec<Option<TensorId>>,
}

/// The computation of a node of a rewritten graph. A `step` is the position of a node in the eager graph; the node that
/// computes it has corresponding inputs and outputs, in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computes {
    /// The product of `step` in integers: 32-bit sums, which become eight-bit integers.
    Product {
        /// The position in the eager graph.
        step: u32,
        /// The first of its eight-bit outputs, which identifies its rescaling.
        rescaled: Option<TensorId>,
    },
    /// Recomputes the scale of the product before it.
    Rescaling,
    /// The operator of `step`, on integers.
    Integer {
        /// The position in the eager graph.
        step: u32,
    },
    /// The operator of `step`, on fp32 values.
    Float {
        /// The position in the eager graph.
        step: u32,
    },
    /// Copies an operand into the order in which a kernel reads it.
    Layout,
    /// Converts fp32 values to integers.
    Quantise,
    /// Converts integers to fp32.
    Dequantise,
    /// The algorithm's own pass at this position among its passes.
    Pass {
        /// The position among them.
        place: usize,
    },
    /// The update of an integer weight without a master copy.
    Update,
}
