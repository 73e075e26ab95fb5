//! The graph of an ONNX file: nodes in an order of execution, initialisers, inputs and the outputs that are trained.

use std::collections::{BTreeSet, HashMap, HashSet};

use haversack_devices::ensure;
use haversack_devices::text::hint;

use super::constant::{dims_of, numbers_of};
use super::roles::{Signature, is_weight};
use super::{AttributeProto, Fault, GraphProto, Kind, ModelProto, NodeProto, Result, TensorProto, ValueInfoProto};

/// The newest version of the standard operators (ONNX 1.23).
const NEWEST: i64 = 28;

/// A node; absent inputs and outputs are empty names.
#[derive(Clone, Debug, Default)]
pub(super) struct OnnxNode {
    /// Its name, or one made of its operator and its place if it has none.
    pub(super) name: String,
    pub(super) operator: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) attributes: Vec<AttributeProto>,
}

impl OnnxNode {
    /// The names that it and its branches read.
    fn reads(&self) -> impl Iterator<Item = &str> {
        let bodies = self.attributes.iter().filter_map(|own| own.g.as_ref());
        self.inputs.iter().map(String::as_str).chain(bodies.flat_map(reads))
    }

    /// The name of input `index`, if it is given.
    pub(super) fn input(&self, index: usize) -> Option<&str> {
        self.inputs.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// An integer attribute.
    pub(super) fn int(&self, name: &str) -> Result<Option<i64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeProto { i: Some(value), .. }) => Ok(Some(*value)),
            Some(_) => Err(Fault::new(format!("attribute '{name}' is not an integer; expected one"))),
        }
    }

    /// An integer attribute that the operator requires.
    pub(super) fn required_int(&self, name: &str) -> Result<i64> {
        self.int(name)?.ok_or_else(|| missing(name))
    }

    /// A list of integers; empty where the attribute is absent.
    pub(super) fn ints(&self, name: &str) -> &[i64] {
        self.attribute(name).map_or(&[], |attribute| &attribute.ints)
    }

    /// A list of integers that the operator requires.
    pub(super) fn required_ints(&self, name: &str) -> Result<&[i64]> {
        self.attribute(name).map(|attribute| attribute.ints.as_slice()).ok_or_else(|| missing(name))
    }

    /// A number attribute.
    pub(super) fn float(&self, name: &str) -> Option<f64> {
        self.attribute(name).and_then(|attribute| attribute.f).map(f64::from)
    }

    /// A text attribute.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let bytes = self.attribute(name)?.s.as_ref()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// The names that the nodes of `graph` read, and those of its branches.
fn reads(graph: &GraphProto) -> Vec<&str> {
    let bodies = graph.node.iter().flat_map(|node| &node.attribute).filter_map(|own| own.g.as_ref());
    let own = graph.node.iter().flat_map(|node| &node.input).map(String::as_str);
    own.chain(bodies.flat_map(reads)).collect()
}

fn missing(name: &str) -> Fault {
    Fault::new(format!("attribute '{name}' is missing; expected one"))
}

/// A graph whose names have been resolved.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<OnnxNode>,
    /// Those of the file, and the floats of nodes without inputs.
    pub(super) initialisers: HashMap<String, TensorProto>,
    /// The initialisers that are nodes of the file.
    pub(super) lifted: HashSet<String>,
    /// The file's own description of its parameters and buffers.
    pub(super) signature: Signature,
    /// The inputs that are not initialisers, in the file's order.
    pub(super) inputs: Vec<ValueInfoProto>,
    /// The outputs, in the file's order; there is at least one.
    pub(super) outputs: Vec<String>,
    /// The version of the standard operators.
    pub(super) opset: i64,
    /// The assumptions that were made so far.
    pub(super) assumed: Vec<String>,
}

impl Graph {
    /// Resolves the names of `model`'s graph.
    pub(super) fn new(model: ModelProto) -> Result<Self> {
        let mut graph: GraphProto = model.graph.ok_or_else(|| Fault::new("no graph in it; expected an ONNX model"))?;
        let opset = model.opset_import.iter().find(|set| is_standard(&set.domain)).map(|set| set.version);
        // It is last in many files, so a file that is cut between two fields is found here.
        let opset =
            opset.ok_or_else(|| Fault::new("no version of the standard operators; expected a whole ONNX model"))?;
        if !(1..=NEWEST).contains(&opset) {
            let got = format!("version {opset} of the standard operators does not exist");
            return Err(Fault::new(format!("{got}; expected one from 1 to {NEWEST}")));
        }
        let mut signature = Signature::of(graph.metadata_props.iter().chain(&model.metadata_props));
        let mut initialisers: HashMap<String, TensorProto> =
            graph.initializer.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
        signature.restore(&mut graph.node, &mut initialisers);
        let inputs: Vec<_> = graph.input.into_iter().filter(|input| !initialisers.contains_key(&input.name)).collect();
        ensure!(!inputs.is_empty(), Fault::new("the graph has no input; expected the samples"));
        let outputs: Vec<String> = graph.output.into_iter().map(|output| output.name).collect();
        ensure!(!outputs.is_empty(), Fault::new("the graph has no output; expected the scores to train"));
        let nodes = graph.node.into_iter().enumerate().map(|(place, node)| named(place, node)).collect();
        let mut graph = Self {
            nodes,
            initialisers,
            lifted: HashSet::new(),
            signature,
            inputs,
            outputs,
            opset,
            assumed: Vec::new(),
        };
        graph.lift();
        Ok(graph)
    }

    /// Turns nodes with constant floats of at least one dimension into initialisers: `Constant`, and `ConstantOfShape`
    /// if it is read as a weight.
    fn lift(&mut self) {
        let readers = self.readers_by_name();
        let lifted = |node: &OnnxNode| {
            let tensor = match node.operator.as_str() {
                "Constant" => node.attribute("value")?.t.clone()?,
                "ConstantOfShape" => {
                    let is_read = |&(reader, index): &(usize, usize)| is_weight(&self.nodes[reader].operator, index);
                    readers.get(node.outputs.first()?.as_str())?.iter().find(|reader| is_read(reader))?;
                    let value = node.attribute("value").and_then(|attribute| attribute.t.as_ref());
                    let data_type = value.map_or(1, |value| value.data_type);
                    TensorProto { dims: self.whole_numbers(node.input(0)?)?, data_type, ..TensorProto::default() }
                }
                _ => return None,
            };
            let name = node.outputs.first().filter(|name| !self.initialisers.contains_key(*name))?.clone();
            let is_table = Kind::of(tensor.data_type).ok() == Some(Kind::Real) && !tensor.dims.is_empty();
            is_table.then_some(TensorProto { name, ..tensor })
        };
        let tensors: Vec<Option<TensorProto>> = self.nodes.iter().map(lifted).collect();
        let mut kept = tensors.iter().map(Option::is_none).collect::<Vec<_>>().into_iter();
        self.nodes.retain(|_| kept.next() == Some(true));
        for tensor in tensors.into_iter().flatten() {
            self.lifted.insert(tensor.name.clone());
            self.initialisers.insert(tensor.name.clone(), tensor);
        }
    }

    /// The integers of an initialiser or a `Constant`.
    fn whole_numbers(&self, name: &str) -> Option<Vec<i64>> {
        let of_node = || {
            let node = self.nodes.iter().find(|node| node.outputs.first().is_some_and(|made| made == name))?;
            node.attribute("value")?.t.as_ref().filter(|_| node.operator == "Constant")
        };
        let tensor = self.initialisers.get(name).or_else(of_node)?;
        numbers_of(tensor, &dims_of(tensor).ok()?).ok()??.iter().map(|number| number.int()).collect()
    }

    /// The nodes that read each tensor, and as which input.
    pub(super) fn readers_by_name(&self) -> HashMap<&str, Vec<(usize, usize)>> {
        let mut readers: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
        for (place, node) in self.nodes.iter().enumerate() {
            for (index, name) in node.inputs.iter().enumerate() {
                readers.entry(name).or_default().push((place, index));
            }
        }
        readers
    }

    /// The place of the node that makes each tensor.
    pub(super) fn producers(&self) -> HashMap<&str, usize> {
        let mut producers = HashMap::new();
        for (place, node) in self.nodes.iter().enumerate() {
            for name in node.outputs.iter().filter(|name| !name.is_empty()) {
                producers.insert(name.as_str(), place);
            }
        }
        producers
    }

    /// The number of nodes that read each tensor, in branches too; being an output counts as one more reader.
    pub(super) fn readers(&self) -> HashMap<&str, usize> {
        let mut readers = HashMap::new();
        for name in self.nodes.iter().flat_map(OnnxNode::reads).chain(self.outputs.iter().map(String::as_str)) {
            *readers.entry(name).or_insert(0) += 1;
        }
        readers
    }

    /// Checks that every tensor that is read has one maker.
    pub(super) fn check(&self) -> Result<()> {
        let mut known: HashSet<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        known.extend(self.initialisers.keys().map(String::as_str));
        for node in &self.nodes {
            for name in node.outputs.iter().filter(|name| !name.is_empty()) {
                if !known.insert(name) {
                    return Err(Fault::new(format!("'{name}' exists already; expected one maker")).at(node));
                }
            }
        }
        for node in &self.nodes {
            if let Some(name) = node.inputs.iter().find(|name| !name.is_empty() && !known.contains(name.as_str())) {
                let what =
                    format!("reads '{name}', which no node makes; expected an input, an initialiser or an output");
                return Err(Fault::new(what).at(node));
            }
        }
        let Some(name) = self.outputs.iter().find(|name| !known.contains(name.as_str())) else { return Ok(()) };
        Err(Fault::new(format!("no node makes the output '{name}'; expected a node that does")))
    }

    /// Keeps the outputs called `names`, or all of them if the list is empty.
    pub(super) fn choose(&mut self, names: &[String]) -> Result<()> {
        if let Some(name) = names.iter().find(|name| !self.outputs.contains(name)) {
            let near = hint(name, self.outputs.iter().map(String::as_str));
            let known = self.outputs.join(", ");
            return Err(Fault::new(format!("the network has no output '{name}'; expected one of {known}{near}")));
        }
        self.outputs.retain(|output| names.is_empty() || names.contains(output));
        Ok(())
    }

    /// Keeps the nodes that the outputs need, in an order of execution near the file's.
    pub(super) fn arrange(&mut self) -> Result<()> {
        let order = {
            let producers = self.producers();
            let parents: Vec<BTreeSet<usize>> = self
                .nodes
                .iter()
                .map(|node| node.reads().filter_map(|name| producers.get(name).copied()).collect())
                .collect();
            let sorted = self.sort(&parents)?;
            let mut needed: HashSet<usize> = HashSet::new();
            let mut waiting: Vec<usize> =
                self.outputs.iter().filter_map(|output| producers.get(output.as_str()).copied()).collect();
            while let Some(place) = waiting.pop() {
                if needed.insert(place) {
                    waiting.extend(parents.get(place).into_iter().flatten());
                }
            }
            sorted.into_iter().filter(|place| needed.contains(place)).collect::<Vec<_>>()
        };
        let mut nodes: Vec<Option<OnnxNode>> = std::mem::take(&mut self.nodes).into_iter().map(Some).collect();
        self.nodes = order.into_iter().filter_map(|place| nodes.get_mut(place)?.take()).collect();
        Ok(())
    }

    /// Kahn's order, the earliest node of the file first; a cycle is reported with its nodes.
    fn sort(&self, parents: &[BTreeSet<usize>]) -> Result<Vec<usize>> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
        let mut open: Vec<usize> = parents.iter().map(BTreeSet::len).collect();
        for (place, above) in parents.iter().enumerate() {
            for &parent in above {
                if let Some(list) = children.get_mut(parent) {
                    list.push(place);
                }
            }
        }
        let mut ready: BTreeSet<usize> = (0..parents.len()).filter(|&place| open.get(place) == Some(&0)).collect();
        let mut order = Vec::with_capacity(parents.len());
        while let Some(place) = ready.pop_first() {
            order.push(place);
            for &child in children.get(place).into_iter().flatten() {
                if let Some(count) = open.get_mut(child) {
                    *count -= 1;
                    if *count == 0 {
                        ready.insert(child);
                    }
                }
            }
        }
        if order.len() == parents.len() { Ok(order) } else { Err(self.cycle(parents, &order)) }
    }

    /// Walks up from a node that never became ready until a node repeats.
    fn cycle(&self, parents: &[BTreeSet<usize>], sorted: &[usize]) -> Fault {
        let done: HashSet<usize> = sorted.iter().copied().collect();
        let (mut path, mut seen) = (Vec::new(), HashMap::new());
        let mut next = (0..parents.len()).find(|place| !done.contains(place));
        while let Some(place) = next {
            if let Some(start) = seen.insert(place, path.len()) {
                path.drain(..start);
                break;
            }
            path.push(place);
            next = parents.get(place).and_then(|above| above.iter().copied().find(|parent| !done.contains(parent)));
        }
        path.reverse();
        const SHOWN: usize = 8;
        let mut names: Vec<String> = path
            .iter()
            .take(SHOWN)
            .filter_map(|&place| self.nodes.get(place))
            .map(|n| format!("'{}'", n.name))
            .collect();
        if path.len() > SHOWN {
            names.push(format!("… {} more", path.len() - SHOWN));
        }
        Fault::new(format!("the graph is cyclic: {} each wait for another; expected no cycle", names.join(", ")))
    }
}

fn named(place: usize, node: NodeProto) -> OnnxNode {
    let name = if node.name.is_empty() { format!("{}_{place}", node.op_type) } else { node.name };
    let operator = if is_standard(&node.domain) { node.op_type } else { format!("{}.{}", node.domain, node.op_type) };
    OnnxNode { name, operator, inputs: node.input, outputs: node.output, attributes: node.attribute }
}

fn is_standard(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}
