//! The items known for each tensor while a graph is walked, and the steps that every operator shares.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haversack_devices::ensure;

use super::constant::{dims_of, elements, numbers_of};
use super::{
    Constant, Fault, Graph, Holder, Item, Kind, Number, OnnxNode, Opaque, Order, Origin, Provenance, Result, Samples,
    Source, TensorProto, Weight, constant, rebatch, roles::Parts, roles::Status, roles::is_weight,
};
use crate::network::Imported;
use crate::{Copying, Dim, Extent, Initial, Network, Op, ParameterId, Role, Shape, StorageId, Taking, ValueId};

/// Elements, bytes or operations, per sample or fixed, beyond which a file is refused: no phone trains a fraction of
/// it, and sums of counts below it do not overflow at any simulated batch.
const MOST: u128 = 1 << 50;
/// Dimensions that a tensor may have.
const MOST_DIMENSIONS: usize = 32;

/// The input of a loss.
const SCORES: &str = "scores, a row of classes for each label";

/// The results of the network's operators so far.
#[derive(Default)]
struct Made {
    /// The operators that have been processed.
    nodes: usize,
    /// The outputs of all operators that are not views.
    values: HashSet<ValueId>,
    /// The storages that are kept for backward.
    saved: HashSet<StorageId>,
}

/// The part of the network that has been counted, and its counts.
#[derive(Default)]
struct Counted {
    nodes: usize,
    storages: usize,
    flops: u128,
    bytes: u128,
}

/// The state of an import.
pub(super) struct Importer<'a> {
    pub(super) graph: &'a Graph,
    readers: HashMap<&'a str, usize>,
    pub(super) network: Network,
    /// How ambiguities in the file were resolved, a sentence each.
    pub(super) notes: Vec<String>,
    /// The parameters that it names and its graph lacks.
    missing: Vec<String>,
    /// The batch that the file was exported with, if it is a number.
    pub(super) batch: Option<u64>,
    /// Whether the network is walked at that batch.
    fixed: bool,
    /// The status of each initialiser.
    status: HashMap<String, Status>,
    items: HashMap<String, Item>,
    /// The inputs, as values once an operator needs them.
    sources: HashMap<String, (Source, Option<ValueId>)>,
    /// The values that have a name with more readers than one.
    shared: HashSet<ValueId>,
    parameters: HashMap<String, ParameterId>,
    /// The values whose leading axes are one contiguous run in memory, so that products read them in place.
    pub(super) foldable: HashSet<ValueId>,
    /// Which initialiser fills which storage.
    holders: Vec<Holder>,
    buffers: HashMap<String, StorageId>,
    counted: Counted,
    made: Made,
}

impl<'a> Importer<'a> {
    /// The state before the first operator: the network contains only the inputs of `graph`.
    pub(super) fn new(name: &str, graph: &'a Graph, samples: Samples, parts: Parts, fixed: bool) -> Result<Self> {
        let mut importer = Self {
            graph,
            readers: graph.readers(),
            network: Network::new(name),
            notes: graph.assumed.iter().cloned().chain(samples.notes).chain(parts.notes).collect(),
            missing: parts.missing,
            batch: samples.batch,
            fixed,
            status: parts.status,
            items: HashMap::new(),
            sources: HashMap::new(),
            shared: HashSet::new(),
            parameters: HashMap::new(),
            foldable: HashSet::new(),
            holders: Vec::new(),
            buffers: HashMap::new(),
            counted: Counted::default(),
            made: Made::default(),
        };
        importer.start(samples.sources)?;
        Ok(importer)
    }

    fn start(&mut self, sources: Vec<Source>) -> Result<()> {
        for (place, source) in sources.into_iter().enumerate() {
            let (name, kind, shape) = (source.name.clone(), source.kind, source.shape.clone());
            self.admit(&shape)?;
            self.sources.insert(name.clone(), (source, None));
            if place == 0 || kind == Kind::Real {
                let value = self.source(&name)?;
                if kind == Kind::Real {
                    self.items.insert(name, Item::Value(value));
                    continue;
                }
            }
            self.items.insert(name.clone(), Item::Opaque(Opaque { shape, kind, from: Provenance::Input(name) }));
        }
        Ok(())
    }

    /// The network with the loss over the outputs, and with the file's values if they are to be kept.
    pub(super) fn finish(mut self, keep_values: bool) -> Result<Network> {
        if let Some(batch) = self.batch.filter(|_| self.fixed) {
            rebatch::rebatch(&mut self.network, batch);
            let note = format!("the file fixes a batch of {batch}; what depends on the samples is scaled to any other");
            self.notes.push(note);
        }
        self.loss()?;
        self.count()?;
        let kept = if keep_values { &self.holders[..] } else { &[] };
        let tensors = constant::values(&mut self.network, kept, &self.graph.initialisers);
        self.network.imported = Some(Arc::new(Imported { tensors, notes: self.notes, missing: self.missing }));
        Ok(self.network)
    }

    fn loss(&mut self) -> Result<()> {
        let graph = self.graph;
        let mut scores = Vec::new();
        for output in &graph.outputs {
            match self.scores(output) {
                Ok(value) => scores.push((output, value)),
                Err(fault) if graph.outputs.len() == 1 => return Err(fault),
                Err(fault) => self.notes.push(format!("left out of the loss: {}", fault.0)),
            }
        }
        let ((rows, labels), whole) = match scores.as_slice() {
            [] => return Err(Fault::new("no weight leads to any output; expected a network to train")),
            &[(output, scores)] => (self.rows(output, scores)?, 1),
            _ => {
                let rows = scores.iter().map(|&(_, value)| self.row(value)).collect::<Result<Vec<_>>>()?;
                ((self.network.concat("loss.scores", &rows, 1)?, 1), scores.len())
            }
        };
        if whole > 1 {
            self.notes.push(format!("the loss is over {whole} outputs side by side, a label a sample"));
        }
        let target = self.network.target(labels);
        self.network.cross_entropy("loss", rows, target)?;
        Ok(())
    }

    /// The value of `output`, from which a loss can be computed.
    fn scores(&self, output: &str) -> Result<ValueId> {
        let Some(&Item::Value(scores)) = self.items.get(output) else {
            return Err(Fault::new(format!("output '{output}' does not depend on the samples; expected {SCORES}")));
        };
        if !self.network.value(scores).requires_grad {
            return Err(Fault::new(format!("no weight leads to the output '{output}'; expected a network to train")));
        }
        let shape = self.network.shape(scores);
        if !shape.is_batched() {
            return Err(Fault::new(format!("output '{output}' is {shape}; expected {SCORES}")));
        }
        Ok(scores)
    }

    /// All of `value` as one row per sample.
    fn row(&mut self, value: ValueId) -> Result<ValueId> {
        let shape = self.network.shape(value).clone();
        let batch = shape.0.iter().position(|dim| dim.batched).unwrap_or(0);
        let order: Vec<usize> = std::iter::once(batch).chain((0..shape.rank()).filter(|&axis| axis != batch)).collect();
        let turned = self.network.permute("loss.scores", value, &order)?;
        Ok(self.network.flatten("loss.scores", turned)?)
    }

    /// Scores as rows of classes, and how many of them there are for each sample.
    fn rows(&mut self, output: &str, scores: ValueId) -> Result<(ValueId, u64)> {
        let scores = self.positions_last(scores)?;
        let shape = self.network.shape(scores).clone();
        let Some((&classes, rows)) =
            shape.0.split_last().filter(|(last, rows)| !last.batched && (1..=2).contains(&rows.len()))
        else {
            return Err(Fault::new(format!("output '{output}' is {shape}; expected {SCORES}")));
        };
        let labels: u64 = rows.iter().map(|dim| dim.size).product();
        let flat = Shape(vec![Dim::batched(labels), classes]);
        let rows = if rows.len() == 2 { self.network.reshape("loss.scores", scores, flat)? } else { scores };
        Ok((rows, labels))
    }

    /// Scores of classes at every position of a picture, `B×classes×H×W`, as one row of classes per position;
    /// others are unchanged.
    fn positions_last(&mut self, scores: ValueId) -> Result<ValueId> {
        let shape = self.network.shape(scores).clone();
        let &[batch, classes, height, width] = shape.0.as_slice() else { return Ok(scores) };
        if batch != Dim::batched(1) {
            return Ok(scores);
        }
        let note = format!("the output, {shape}, is taken as a map of {} classes: a label a position", classes.size);
        self.notes.push(note);
        let turned = self.network.permute("loss.scores", scores, &[0, 2, 3, 1])?;
        let rows = Shape(vec![batch, Dim::fixed(height.size * width.size), classes]);
        Ok(self.network.reshape("loss.scores", turned, rows)?)
    }

    /// As [`Self::item`], and its shape.
    pub(super) fn shaped(&mut self, node: &OnnxNode, index: usize) -> Result<(Item, Shape)> {
        let item = self.item(node, index)?;
        let shape = self.shape(&item);
        Ok((item, shape))
    }

    /// Input `index` of `node`, which the operator cannot do without.
    pub(super) fn item(&mut self, node: &OnnxNode, index: usize) -> Result<Item> {
        match self.optional(node, index)? {
            Some(item) => Ok(item),
            None => Err(Fault::new(format!("input {index} is missing; expected one"))),
        }
    }

    /// Input `index` of `node`, which the operator cannot do without, as a value of the network.
    pub(super) fn input(&mut self, node: &OnnxNode, index: usize) -> Result<ValueId> {
        let item = self.item(node, index)?;
        self.value(node, &item)
    }

    /// Input `index` of `node`, if it is given.
    pub(super) fn optional(&mut self, node: &OnnxNode, index: usize) -> Result<Option<Item>> {
        let Some(name) = node.input(index) else { return Ok(None) };
        if let Some(item) = self.items.get(name) {
            return Ok(Some(item.clone()));
        }
        let Some(tensor) = self.graph.initialisers.get(name) else {
            return Err(Fault::new(format!("reads '{name}', which is not made; expected a tensor")));
        };
        // A table that a layer needs as its weight is a frozen weight; operators that also take constants
        // read it as a buffer.
        let by_itself = node.operator == "Conv" && index == 1 && tensor.dims.first() == node.int("group")?.as_ref();
        let without = ["Einsum", "Gather", "GroupNormalization", "InstanceNormalization", "MatMul"];
        let is_layer = is_weight(&node.operator, index) && !by_itself && !without.contains(&node.operator.as_str());
        let is_buffer = self.status.get(name) == Some(&Status::Buffer) && !is_layer;
        let item = self.tensor(tensor, !is_buffer)?;
        self.items.insert(name.to_owned(), item.clone());
        Ok(Some(item))
    }

    /// The item of `tensor`; a floating-point one of at least one dimension is a weight if it may be `trained`.
    pub(super) fn tensor(&self, tensor: &TensorProto, trained: bool) -> Result<Item> {
        let kind = Kind::of(tensor.data_type)?;
        let dims = dims_of(tensor)?;
        let shape = Shape::fixed(&dims);
        self.admit(&shape)?;
        let name = tensor.name.clone();
        if trained && kind == Kind::Real && !dims.is_empty() {
            return Ok(Item::Weight(Weight { name, dims, order: Order::Stored }));
        }
        let bytes = elements(&dims).unwrap_or(0).saturating_mul(kind.bytes());
        let origin = Origin { name, bytes };
        Ok(match numbers_of(tensor, &dims)? {
            Some(numbers) => Item::Constant(Constant { dims, numbers, kind, origin: Some(origin) }),
            None => Item::Opaque(Opaque { shape, kind, from: Provenance::Constant(origin) }),
        })
    }

    /// Sets the item of output `index` of `node`.
    pub(super) fn set(&mut self, node: &OnnxNode, index: usize, item: Item) {
        if let Some(name) = node.outputs.get(index).filter(|name| !name.is_empty()) {
            if let Item::Value(value) = item
                && self.readers(name) != 1
            {
                self.shared.insert(value);
            }
            self.items.insert(name.clone(), item);
        }
    }

    /// How many readers the tensor `name` has.
    pub(super) fn readers(&self, name: &str) -> usize {
        self.readers.get(name).copied().unwrap_or(0)
    }

    /// The shape of an item.
    pub(super) fn shape(&self, item: &Item) -> Shape {
        match item {
            Item::Value(value) => self.network.shape(*value).clone(),
            Item::Weight(weight) => Shape::fixed(&weight.dims),
            Item::Constant(constant) => constant.shape(),
            Item::Opaque(opaque) => opaque.shape.clone(),
        }
    }

    /// Elements of `item` at other places, as `shape`.
    pub(super) fn take(
        &mut self,
        node: &OnnxNode,
        item: Item,
        taking: Taking,
        indices: Extent,
        shape: Shape,
    ) -> Result<Item> {
        self.admit(&shape)?;
        if !item.is_learned() {
            let kind = item.kind();
            return self.computed(&[item], shape, kind);
        }
        let x = self.value(node, &item)?;
        Ok(Item::Value(self.network.take(&node.name, x, taking, indices, shape)))
    }

    /// An opaque result of `items`, through which no gradient flows.
    pub(super) fn computed(&self, items: &[Item], shape: Shape, kind: Kind) -> Result<Item> {
        self.admit(&shape)?;
        let derived = items.iter().find_map(|item| match item {
            Item::Value(value) | Item::Opaque(Opaque { from: Provenance::Derived(value), .. }) => Some(*value),
            _ => None,
        });
        let source = items.iter().find_map(|item| if let Item::Opaque(opaque) = item { opaque.source() } else { None });
        let from = derived.map_or_else(|| Provenance::Computed(source.map(str::to_owned)), Provenance::Derived);
        Ok(Item::Opaque(Opaque { shape, kind, from }))
    }

    /// An item as a value of the network.
    pub(super) fn value(&mut self, node: &OnnxNode, item: &Item) -> Result<ValueId> {
        match item {
            Item::Value(value) => Ok(*value),
            Item::Weight(weight) => {
                let parameter = self.parameter(weight)?;
                let shape = Shape::fixed(&weight.dims);
                if self.network.parameter(parameter).trainable {
                    return Ok(self.whole_table(node, parameter, shape));
                }
                Ok(self.network.frozen(parameter, shape))
            }
            Item::Constant(constant) => self.unlearned(node, &Opaque::of(constant, constant.shape())),
            Item::Opaque(opaque) => self.unlearned(node, opaque),
        }
    }

    fn unlearned(&mut self, node: &OnnxNode, opaque: &Opaque) -> Result<ValueId> {
        let (shape, bytes) = (opaque.shape.clone(), opaque.kind.bytes());
        Ok(match &opaque.from {
            Provenance::Input(name) => match self.source(name)? {
                source if *self.network.shape(source) == shape => source,
                source => self.network.reshape(&node.name, source, shape)?,
            },
            Provenance::Constant(origin) => {
                let storage = self.buffer(origin);
                self.network.look_at(storage, shape)
            }
            Provenance::Computed(Some(name)) => {
                let source = self.source(name)?;
                self.network.computed(&node.name, source, Copying::Computed, shape, bytes)
            }
            Provenance::Derived(value) => {
                let made = self.network.computed(&node.name, *value, Copying::Computed, shape, bytes);
                self.network.values[made as usize].requires_grad = false;
                made
            }
            Provenance::Computed(None) => self.network.source(&node.name, shape, bytes, Role::Buffer),
        })
    }

    /// A weight as a value of `shape`: all its rows, read as from a table.
    pub(super) fn whole_table(&mut self, node: &OnnxNode, parameter: ParameterId, shape: Shape) -> ValueId {
        let rows = self.network.id_buffer(&format!("{}.rows", node.name), &[1], 1, Initial::ZEROS);
        self.network.index_table(&node.name, rows, parameter, shape)
    }

    /// A buffer for a tensor that is known not to be trained, with the storage of the constant that it views.
    pub(super) fn buffer(&mut self, origin: &Origin) -> StorageId {
        let network = &mut self.network;
        *self.buffers.entry(origin.name.clone()).or_insert_with(|| network.buffer(&origin.name, origin.bytes))
    }

    /// An input of the graph as a value, made once.
    fn source(&mut self, name: &str) -> Result<ValueId> {
        let Some((source, value)) = self.sources.get_mut(name) else {
            return Err(Fault::new(format!("'{name}' is not an input; expected one")));
        };
        Ok(*value
            .get_or_insert_with(|| self.network.source(name, source.shape.clone(), source.kind.bytes(), Role::Input)))
    }

    /// The parameter of a weight, made once even if the initialiser is read several times.
    pub(super) fn parameter(&mut self, weight: &Weight) -> Result<ParameterId> {
        if let Some(&parameter) = self.parameters.get(&weight.name) {
            self.hold(self.network.parameter(parameter).storage, weight);
            return Ok(parameter);
        }
        if elements(&weight.dims).is_none_or(|count| count == 0) {
            return Err(Fault::mismatch(Shape::fixed(&weight.dims), "a weight with elements"));
        }
        let trains = self.status.get(&weight.name).is_none_or(|status| *status == Status::Trained);
        let parameter = self.network.weight(&weight.name, &weight.dims, Initial::Imported, trains);
        self.parameters.insert(weight.name.clone(), parameter);
        self.hold(self.network.parameter(parameter).storage, weight);
        Ok(parameter)
    }

    fn hold(&mut self, storage: StorageId, weight: &Weight) {
        self.holders.push(Holder { storage, name: weight.name.clone(), order: weight.order });
    }

    /// Notes the initialisers of the running statistics of `node`, which the network's last operator normalises with.
    pub(super) fn hold_statistics(&mut self, node: &OnnxNode) {
        let buffers = self.network.nodes.last().map_or(&[][..], |node| &node.buffers);
        let named = buffers.iter().zip(3..).filter_map(|(&storage, index)| Some((storage, node.input(index)?)));
        let order = Order::Stored;
        self.holders.extend(named.map(|(storage, name)| Holder { storage, name: name.to_owned(), order }));
    }

    /// Input `index` as a weight of `rank` dimensions.
    pub(super) fn weight(&mut self, node: &OnnxNode, index: usize, rank: usize) -> Result<Weight> {
        match self.item(node, index)? {
            Item::Weight(weight) if weight.dims.len() == rank => Ok(weight),
            other => {
                let (got, plural) = (self.shape(&other), if rank == 1 { "" } else { "s" });
                let got = format!("{got} as input {index}");
                Err(Fault::mismatch(got, format!("a weight initialiser of {rank} dimension{plural}")))
            }
        }
    }

    /// The length of the weight `computed`, and its storage, if it was made of a direction and a length.
    pub(super) fn normed(&self, computed: ValueId) -> Option<(ParameterId, StorageId)> {
        let made = self.network.nodes.iter().rfind(|node| node.output == computed)?;
        let length = made.parameters.get(1).filter(|_| made.op == Op::IndexTable)?;
        Some((*length, self.network.value(computed).storage))
    }

    /// The weight from which `computed` was made by standardisation. A convolution reads the weight instead, so that
    /// the standardisation is charged in forward and left out of backward.
    pub(super) fn weight_behind(&mut self, computed: ValueId, rank: usize) -> Result<Weight> {
        let shape = self.network.shape(computed).clone();
        let mut reached = HashSet::from([computed]);
        let mut found = None;
        for node in self.network.nodes.iter().rev().filter(|node| !node.inputs.is_empty()) {
            if reached.contains(&node.output) {
                reached.extend(&node.inputs);
                let fits = |id: &&ParameterId| self.network.parameter(**id).elements == shape.elements().fixed;
                found = found.or_else(|| node.parameters.iter().find(fits).copied());
            }
        }
        let Some(parameter) = found.filter(|_| shape.rank() == rank && !shape.is_batched()) else {
            return Err(Fault::mismatch(&shape, "a weight, or one that is computed of a weight of its size"));
        };
        let name = self.network.parameter(parameter).name.clone();
        if self.normed(computed).is_none() {
            let note = format!("'{name}' is standardised before its product; the derivative of that is left out");
            self.notes.push(note);
        }
        Ok(Weight { name, dims: shape.sizes(), order: Order::Stored })
    }

    /// Whether a function can overwrite its input `x`: it has no other reader, in forward or backward.
    pub(super) fn overwrites(&mut self, x: ValueId) -> bool {
        let (made, nodes) = (&mut self.made, &self.network.nodes);
        for node in &nodes[made.nodes..] {
            if !node.op.is_look() {
                made.values.insert(node.output);
            }
            made.saved.extend(&node.saved);
        }
        made.nodes = nodes.len();
        let storage = self.network.value(x).storage;
        made.values.contains(&x)
            && !self.shared.contains(&x)
            && self.network.storage(storage).role == Role::Activation
            && !made.saved.contains(&storage)
    }

    /// Refuses a shape whose counts would overflow.
    pub(super) fn admit(&self, shape: &Shape) -> Result<()> {
        if shape.rank() > MOST_DIMENSIONS {
            return Err(Fault::mismatch(format!("{} dimensions", shape.rank()), format!("at most {MOST_DIMENSIONS}")));
        }
        let sizes = shape.0.iter().map(|dim| u128::from(dim.size.max(1)));
        let product = { sizes }.try_fold(1_u128, |product, size| product.checked_mul(size).filter(|&p| p <= MOST));
        ensure!(product.is_some(), Fault::mismatch(shape, format!("a tensor of at most {MOST} elements")));
        if shape.0.iter().filter(|dim| dim.batched).count() > 1 {
            return Err(Fault::mismatch(shape, "the batch in one dimension only"));
        }
        Ok(())
    }

    /// Refuses a product with too many operations to count: `terms` multiply-adds for each element of `output`.
    pub(super) fn admit_product(&self, output: &Shape, terms: u64) -> Result<()> {
        self.admit(output)?;
        let elements: u128 = output.0.iter().map(|dim| u128::from(dim.size)).product();
        if elements.saturating_mul(u128::from(terms)) > MOST {
            let got = format!("{terms} terms for each of {output} elements");
            return Err(Fault::mismatch(got, format!("at most {MOST} operations")));
        }
        Ok(())
    }

    /// Counts what the last operator added.
    pub(super) fn count(&mut self) -> Result<()> {
        for node in self.network.nodes.iter().skip(self.counted.nodes) {
            self.counted.flops += u128::from(node.flops.fixed) + u128::from(node.flops.per_sample);
        }
        for storage in self.network.storages.iter().skip(self.counted.storages) {
            self.counted.bytes += u128::from(storage.bytes.fixed) + u128::from(storage.bytes.per_sample);
        }
        self.counted.nodes = self.network.nodes.len();
        self.counted.storages = self.network.storages.len();
        if self.counted.flops > MOST || self.counted.bytes > MOST {
            return Err(Fault::new(format!(
                "the network has grown too large; expected at most {MOST} bytes and operations"
            )));
        }
        Ok(())
    }

    /// The integers of a constant item.
    pub(super) fn ints(&self, item: &Item) -> Result<Vec<i64>> {
        let ints = match item {
            Item::Constant(constant) => constant.numbers.iter().map(|number| number.int()).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        ints.ok_or_else(|| Fault::mismatch(self.shape(item), "integers that do not depend on data or the batch"))
    }

    /// The numbers of a constant item, which may depend on the batch.
    pub(super) fn numbers(&self, item: &Item) -> Result<Vec<Number>> {
        match item {
            Item::Constant(constant) => Ok(constant.numbers.clone()),
            other => Err(Fault::mismatch(self.shape(other), "numbers that do not depend on data")),
        }
    }
}
