//! The trained tensors of a file: its parameters and buffers, by its signature, the user, or else its
//! graph and numbers.

use std::collections::{HashMap, HashSet};

use super::proto::Entry;
use super::{Fault, Graph, Kind, NodeProto, Reading, Result, TensorProto, tables};
use haversack_devices::text::hint;

/// The status of an initialiser of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// A parameter that is trained.
    Trained,
    /// A parameter that is not.
    Frozen,
    /// Not a parameter: a number, a table, or constants that normalise pictures.
    Buffer,
}

/// A file's own description of its tensors, as written by `torch.export`; frozen parameters are added by
/// `haversack.from_torch`.
#[derive(Debug, Default)]
pub(super) struct Signature {
    parts: HashMap<String, Status>,
    /// The names of parameters, in the file's order.
    parameters: Vec<String>,
}

impl Signature {
    /// The key of a signature, whose lines are `p_fc_weight: PARAMETER target='fc.weight'`.
    const KEY: &str = "pkg.torch.export.ExportedProgram.graph_signature";
    /// The key under which a node lists the names of its enclosing modules:
    /// `['', 'layers.0', 'layers.0.fc', 'linear']`.
    const SCOPES: &str = "pkg.torch.onnx.name_scopes";

    /// The signature among the `entries` of a file, the last of them where there are several.
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let mut signature = Self::default();
        for line in entries.filter(|entry| entry.key == Self::KEY).last().iter().flat_map(|entry| entry.value.lines()) {
            let Some((name, rest)) = line.split_once(": ") else { continue };
            let Some((kind, target)) = rest.split_once(" target='") else { continue };
            let target = target.split('\'').next().unwrap_or_default();
            let status = match kind {
                "PARAMETER" => Status::Trained,
                "FROZEN" => Status::Frozen,
                "BUFFER" | "CONSTANT_TENSOR" => Status::Buffer,
                _ => continue,
            };
            if status != Status::Buffer {
                signature.parameters.push(target.to_owned());
            }
            signature.parts.extend([(name.to_owned(), status), (target.to_owned(), status)]);
        }
        signature
    }

    /// Gives the parameters of the signature that `initialisers` lacks back to the `nodes` of their modules. An
    /// exporter removes them if it folds a transposition into a matrix, merges tensors with equal elements, or leaves
    /// out a bias of zeros. Further names of a tied matrix are dropped.
    pub(super) fn restore(&mut self, nodes: &mut [NodeProto], initialisers: &mut HashMap<String, TensorProto>) {
        let lost: HashSet<&String> = self.parameters.iter().filter(|name| !initialisers.contains_key(*name)).collect();
        let (mut renamed, mut ties, mut run) = (HashSet::new(), HashSet::new(), HashSet::new());
        for node in nodes {
            let scopes = node.metadata_props.iter().find(|entry| entry.key == Self::SCOPES);
            let scopes: Vec<&str> = scopes.map_or("", |entry| &entry.value).split('\'').skip(1).step_by(2).collect();
            run.extend(scopes.iter().map(|&scope| scope.to_owned()));
            let own = |leaf: &str| {
                let of_module = |scope: &&str| format!("{scope}.{leaf}").trim_start_matches('.').to_owned();
                let own = scopes.iter().rev().map(of_module).find(|own| self.parts.contains_key(own));
                own.filter(|own| lost.contains(own))
            };
            for (index, read) in node.input.iter_mut().enumerate() {
                let Some(tensor) = initialisers.get(read) else { continue };
                let named = self.parts.contains_key(read);
                let leaf = match named {
                    true => read.rsplit('.').next().unwrap_or_default(),
                    false if is_weight(&node.op_type, index) && tensor.dims.len() > 1 => "weight",
                    false => continue,
                };
                let Some(own) = own(leaf) else { continue };
                if named && !tables::is_flat(tensor) {
                    ties.extend((tensor.dims.len() > 1).then_some(own));
                } else {
                    let tensor = TensorProto { name: own.clone(), ..tensor.clone() };
                    initialisers.insert(own.clone(), tensor);
                    renamed.insert(std::mem::replace(read, own));
                }
            }
            let [_, weight] = node.input.as_slice() else { continue };
            let sizes = initialisers.get(weight).map_or(&[][..], |tensor| &tensor.dims);
            let transposed = node.attribute.iter().any(|own| own.name == "transB" && own.i == Some(1));
            let rows = match node.op_type.as_str() {
                "Gemm" if !transposed => sizes.last(),
                "Conv" | "Gemm" => sizes.first(),
                _ => None,
            };
            let rows = rows.and_then(|&rows| u16::try_from(rows).ok());
            if let (Some(rows), Some(name)) = (rows, own("bias")) {
                let raw_data = vec![0; usize::from(rows) * 4].into();
                let bias =
                    TensorProto { name, dims: vec![rows.into()], data_type: 1, raw_data, ..TensorProto::default() };
                node.input.push(bias.name.clone());
                initialisers.insert(bias.name.clone(), bias);
            }
        }
        let is_own = |name: &String| self.parts.contains_key(name);
        initialisers.retain(|name, _| is_own(name) || !renamed.contains(name));
        // Modules that never run have but shared their weight, where any is tied.
        let is_idle =
            |name: &str| name.strip_suffix(".weight").is_some_and(|of| !run.contains(of) && !self.normalises(name));
        let is_tie = |name: &String| ties.contains(name) || !ties.is_empty() && is_idle(name);
        let kept = self.parameters.iter().filter(|name| initialisers.contains_key(*name) || !is_tie(name));
        self.parameters = kept.cloned().collect();
    }

    /// Whether the parameter `name` is one of a batch normalisation.
    fn normalises(&self, name: &str) -> bool {
        let module = name.rsplit_once('.').map_or("", |(module, _)| module);
        self.parts.contains_key(&format!("{module}.running_mean"))
    }

    /// The parameters that `graph` lacks. A matrix with a name that is not in the signature is one of them, renamed.
    fn missing(&self, graph: &Graph) -> Vec<String> {
        let absent = |name: &&String| {
            let of_program = format!("p_{}", name.replace('.', "_"));
            !graph.initialisers.contains_key(*name) && !graph.initialisers.contains_key(&of_program)
        };
        let readers = graph.readers_by_name();
        let is_read = |&(node, index): &(usize, usize)| is_weight(&graph.nodes[node].operator, index);
        let is_renamed = |(name, tensor): &(&String, &TensorProto)| {
            let read = readers.get(name.as_str()).is_some_and(|readers| readers.iter().any(is_read));
            read && tensor.dims.len() > 1 && !self.parts.contains_key(*name) && !graph.lifted.contains(*name)
        };
        let mut renamed = graph.initialisers.iter().filter(is_renamed).count();
        let mut missing: Vec<String> = self.parameters.iter().filter(absent).cloned().collect();
        missing.retain(|name| {
            let stands_in = renamed > 0 && name.ends_with("weight") && !self.normalises(name);
            renamed -= usize::from(stands_in);
            !stands_in
        });
        missing
    }
}

/// Whether `operator` reads a weight as input `index`.
pub(super) fn is_weight(operator: &str, index: usize) -> bool {
    match operator {
        "Conv"
        | "ConvTranspose"
        | "BatchNormalization"
        | "LayerNormalization"
        | "GroupNormalization"
        | "InstanceNormalization"
        | "RMSNormalization"
        | "SimplifiedLayerNormalization"
        | "SkipSimplifiedLayerNormalization" => (1..=2).contains(&index),
        "LSTM" | "GRU" | "RNN" | "PRelu" => index > 0,
        "Gather" => index == 0,
        "Gemm" | "MatMul" | "Einsum" | "WeightNorm" => true,
        _ => false,
    }
}

/// Whether `operator` reads numbers as input `index`: a scale, a bound, a ratio.
fn is_number(operator: &str, index: usize) -> bool {
    match operator {
        "ConstantOfShape" | "Range" => true,
        "Clip" | "Dropout" | "Expand" | "OneHot" | "Pad" | "Pow" | "Reshape" | "Resize" | "Slice" | "Tile" | "TopK"
        | "Upsample" => index > 0,
        _ => false,
    }
}

/// Whether the first output of `operator` is its first input in another view.
fn looks(operator: &str) -> bool {
    matches!(operator, "Cast" | "Flatten" | "Identity" | "Reshape" | "Squeeze" | "Transpose" | "Unsqueeze")
}

/// How an initialiser is read.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    weight: bool,
    number: bool,
    /// With samples before any weight, as a row.
    samples: bool,
    other: bool,
}

/// The trained parts of a graph.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The status of every floating-point initialiser with a dimension.
    pub(super) status: HashMap<String, Status>,
    /// The parameters of the signature that the graph lacks.
    pub(super) missing: Vec<String>,
    /// The assumptions that were made.
    pub(super) notes: Vec<String>,
}

/// The trained parts of `graph`.
///
/// # Errors
/// A pattern of `reading` that no parameter matches.
pub(super) fn parts(graph: &Graph, reading: &Reading) -> Result<Parts> {
    let uses = uses(graph);
    let mut parts = Parts { missing: graph.signature.missing(graph), ..Parts::default() };
    let mut tables = Vec::new();
    let mut names: Vec<&str> = uses.keys().copied().collect();
    names.sort_unstable();
    let says_nothing = graph.signature.parts.is_empty();
    for name in names {
        let (tensor, uses) = (&graph.initialisers[name], uses[name]);
        let single = tensor.dims.iter().all(|&size| size == 1);
        let unnamed = graph.lifted.contains(name) || !says_nothing;
        let of_samples = uses.samples && !uses.weight && !uses.other;
        let status = match graph.signature.parts.get(name) {
            Some(&status) => status,
            None if !uses.weight && (single || unnamed || uses.number && !uses.other) => Status::Buffer,
            None if of_samples || tables::is_table(tensor, uses.weight) => {
                tables.push(format!("'{name}'"));
                Status::Buffer
            }
            None => Status::Trained,
        };
        parts.status.insert(name.to_owned(), status);
    }
    if says_nothing && reading.trainable.is_empty() && reading.frozen.is_empty() {
        let but = if tables.is_empty() { String::new() } else { format!(" but the tables {}", tables.join(", ")) };
        parts.notes.push(format!("the file does not say what is trained: every weight is{but}"));
    }
    choose(&mut parts.status, &reading.trainable, true)?;
    choose(&mut parts.status, &reading.frozen, false)?;
    let folded = |(name, status): (&String, &Status)| *status == Status::Trained && name.starts_with("onnx::Conv_");
    let inference = match parts.missing.as_slice() {
        [] if parts.status.iter().any(folded) => "normalisation is folded into the convolutions".to_owned(),
        [] => return Ok(parts),
        missing => format!("the graph lacks the parameters {} of its signature", missing.join(", ")),
    };
    parts.notes.push(format!("exported for inference: {inference}; {ADVICE}"));
    Ok(parts)
}

/// How to export for training.
const ADVICE: &str = "export it in training mode, with haversack.from_torch or torch.onnx.export(…, \
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, dynamo=False)";

/// Trains the parameters that one of `patterns` matches, and no others; or freezes them.
fn choose(status: &mut HashMap<String, Status>, patterns: &[String], trains: bool) -> Result<()> {
    for pattern in patterns {
        if !status.keys().any(|name| matches(pattern, name)) {
            let near = hint(pattern, status.keys().map(String::as_str));
            return Err(Fault::new(format!(
                "'{pattern}' matches no weight; expected the name of one, or a pattern{near}"
            )));
        }
    }
    for (name, status) in status.iter_mut().filter(|_| !patterns.is_empty()) {
        match (patterns.iter().any(|pattern| matches(pattern, name)), trains) {
            (true, true) => *status = Status::Trained,
            (false, true) | (true, false) if *status == Status::Trained => *status = Status::Frozen,
            _ => {}
        }
    }
    Ok(())
}

/// Whether `pattern`, in which a star matches any text, matches the whole of `name`.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((front, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(front) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some((_, behind)) = left.split_once(piece) else { return false };
        left = behind;
    }
    left.ends_with(last)
}

/// How each initialiser of floats is read, also through views of it.
fn uses(graph: &Graph) -> HashMap<&str, Uses> {
    let mut uses: HashMap<&str, Uses> = HashMap::new();
    // The initialiser behind each tensor that is a view of one.
    let mut shown: HashMap<&str, &str> = HashMap::new();
    for (name, tensor) in &graph.initialisers {
        if Kind::of(tensor.data_type).ok() == Some(Kind::Real) && !tensor.dims.is_empty() {
            shown.insert(name, name);
        }
    }
    let mut samples: HashSet<&str> = graph.inputs.iter().map(|input| input.name.as_str()).collect();
    // Tensors that no weight has been applied to.
    let mut plain: HashSet<&str> =
        samples.iter().copied().chain(graph.initialisers.keys().map(String::as_str)).collect();
    for node in &graph.nodes {
        let of_samples = node.inputs.iter().any(|name| samples.contains(name.as_str()));
        let look = node.input(0).and_then(|name| shown.get(name).copied()).filter(|_| looks(&node.operator));
        let mut learned = false;
        for (index, name) in node.inputs.iter().enumerate() {
            let Some(&root) = shown.get(name.as_str()) else { continue };
            let used = uses.entry(root).or_default();
            let row = graph.initialisers[root].dims.iter().filter(|&&size| size > 1).count() <= 1;
            match node.operator.as_str() {
                _ if look.is_some() => continue,
                // The running statistics of a normalisation are its buffers.
                "BatchNormalization" if index > 2 => used.number = true,
                operator if is_number(operator, index) => used.number = true,
                // A constant weight of ones or bias of zeros means a normalisation without weights.
                "GroupNormalization" | "InstanceNormalization"
                    if graph.lifted.contains(root) && tables::is_flat(&graph.initialisers[root]) =>
                {
                    used.number = true;
                }
                operator if is_weight(operator, index) => used.weight = true,
                "Add" | "Sub" | "Mul" | "Div" if of_samples && row => used.samples = true,
                _ => used.other = true,
            }
            learned |= (used.weight || used.other) && !tables::is_table(&graph.initialisers[root], used.weight);
        }
        let made = node.outputs.iter().map(String::as_str);
        if let Some(root) = look {
            shown.extend(made.clone().map(|made| (made, root)));
        }
        if !learned && node.inputs.iter().all(|name| name.is_empty() || plain.contains(name.as_str())) {
            plain.extend(made.clone());
            samples.extend(made.filter(|_| of_samples));
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name) in
            [("o.*", "o.weight"), ("*", "a"), ("a*b*c", "axbxc"), ("a*", "a"), ("*.bias", "l.0.bias")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("o.*", "lo.weight"), ("a", "ab"), ("a*b*c", "axc"), ("*.bias", "bias"), ("", "a")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
