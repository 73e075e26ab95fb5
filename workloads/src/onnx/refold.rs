//! Recombines composed functions: GELU, SiLU and similar ones, normalisations, products with a bias, and the weights of
//! recurrent layers.
//!
//! The last node of a pattern becomes the whole; the others have no reader left and are removed when the
//! graph is arranged.

use std::collections::HashMap;

use super::constant::{dims_of, numbers_of};
use super::{AttributeProto, Graph, Kind, Number, OnnxNode, TensorProto};

/// The tolerance for the constants of a pattern, which are stored in fp32 or fp16.
const CLOSE: f64 = 1e-3;

/// Refolds every pattern of `graph`.
pub(super) fn refold(graph: &mut Graph) {
    let mut changes: Vec<(usize, OnnxNode)> = Vec::new();
    {
        let view = View { graph, makers: graph.producers(), readers: graph.readers_by_name() };
        for (place, node) in graph.nodes.iter().enumerate() {
            let change = match node.operator.as_str() {
                "Erf" => view.gelu(node),
                "Sigmoid" => view.gated(node, node, "Swish"),
                "Div" => { view.layer_norm(node).or_else(|| view.weight_norm(node)) }
                    .or_else(|| view.cosine(node).map(|node| (place, node))),
                "Mul" => view.glu(node).map(|node| (place, node)),
                "ReduceMax" => view.max(node).map(|node| (place, node)),
                "Squeeze" => view.packed(node).map(|node| (place, node)),
                "HardSigmoid" => view.hard_swish(node),
                "InstanceNormalization" => view.group_norm(node),
                "MatMul" => view.linear(place),
                "Softplus" => view.mish(node),
                "LSTM" | "GRU" | "RNN" => Some((place, view.recurrent(node))),
                _ => None,
            };
            changes.extend(change);
        }
    }
    for (place, node) in changes {
        if let Some(slot) = graph.nodes.get_mut(place) {
            *slot = node;
        }
    }
}

/// A graph with its makers and readers.
struct View<'a> {
    graph: &'a Graph,
    makers: HashMap<&'a str, usize>,
    readers: HashMap<&'a str, Vec<(usize, usize)>>,
}

impl<'a> View<'a> {
    /// The node that makes `name`, if it is of `operator`.
    fn maker(&self, name: &str, operator: &str) -> Option<&'a OnnxNode> {
        let node = self.graph.nodes.get(*self.makers.get(name)?)?;
        (node.operator == operator).then_some(node)
    }

    /// The only reader of the first output of `node`, if it is of `operator`, with its other input.
    fn reader(&self, node: &OnnxNode, operator: &str) -> Option<(usize, &'a OnnxNode, &'a str)> {
        let made = node.outputs.first()?;
        let &[(place, _)] = self.readers.get(made.as_str())?.as_slice() else { return None };
        let reader = self.graph.nodes.get(place)?;
        let [a, b] = reader.inputs.as_slice() else { return None };
        let other = if a == made { b } else { a };
        (reader.operator == operator && !self.graph.outputs.contains(made)).then_some((place, reader, other))
    }

    /// The tensor of a constant or an initialiser, also behind `Identity`.
    fn tensor(&self, name: &str) -> Option<&'a TensorProto> {
        if let Some(tensor) = self.graph.initialisers.get(name) {
            return Some(tensor);
        }
        if let Some(constant) = self.maker(name, "Constant") {
            return constant.attribute("value")?.t.as_ref();
        }
        self.graph.initialisers.get(self.maker(name, "Identity")?.input(0)?)
    }

    /// The numbers of a constant or an initialiser.
    fn numbers(&self, name: &str) -> Option<Vec<Number>> {
        let tensor = self.tensor(name)?;
        numbers_of(tensor, &dims_of(tensor).ok()?).ok()?
    }

    /// The only number of a constant or an initialiser.
    fn number(&self, name: &str) -> Option<f64> {
        match self.numbers(name)?.as_slice() {
            [only] => only.real(),
            _ => None,
        }
    }

    fn is_close(&self, name: &str, wanted: f64) -> bool {
        self.number(name).is_some_and(|number| (number - wanted).abs() < CLOSE)
    }

    /// The dimensions of a floating-point initialiser.
    fn weight(&self, name: &str) -> Option<Vec<u64>> {
        let tensor = self.tensor(name).filter(|tensor| Kind::of(tensor.data_type).ok() == Some(Kind::Real))?;
        dims_of(tensor).ok()
    }

    /// `x/√2 → erf → +1`, times `x` and a half in any order.
    fn gelu(&self, erf: &OnnxNode) -> Option<(usize, OnnxNode)> {
        let inner = erf.input(0)?;
        let x = if let Some(div) = self.maker(inner, "Div") {
            div.input(0).filter(|_| div.input(1).is_some_and(|c| self.is_close(c, std::f64::consts::SQRT_2)))?
        } else {
            self.times(self.maker(inner, "Mul")?, std::f64::consts::FRAC_1_SQRT_2)?
        };
        let (_, mut last, one) = self.reader(erf, "Add")?;
        if !self.is_close(one, 1.0) {
            return None;
        }
        let (mut half, mut itself) = (false, false);
        loop {
            let (place, product, other) = self.reader(last, "Mul")?;
            if !half && self.is_close(other, 0.5) {
                half = true;
            } else if !itself && other == x {
                itself = true;
            } else if !half && !itself && self.maker(other, "Mul").and_then(|mul| self.times(mul, 0.5)) == Some(x) {
                (half, itself) = (true, true);
            } else {
                return None;
            }
            last = product;
            if half && itself {
                return Some((place, folded(erf, "Gelu", &[x], product)));
            }
        }
    }

    /// `x → first → … → last`, times `x`: the function `whole`.
    fn gated(&self, first: &OnnxNode, last: &OnnxNode, whole: &str) -> Option<(usize, OnnxNode)> {
        let x = first.input(0)?;
        let (place, product, other) = self.reader(last, "Mul")?;
        (other == x).then(|| (place, folded(first, whole, &[x], product)))
    }

    /// `x → hard sigmoid`, times `x`, as it is exported before operator set 14.
    fn hard_swish(&self, gate: &OnnxNode) -> Option<(usize, OnnxNode)> {
        let slope = gate.float("alpha").is_some_and(|alpha| (alpha - 1.0 / 6.0).abs() < CLOSE);
        self.gated(gate, gate, "HardSwish").filter(|_| slope)
    }

    /// `x → softplus → tanh`, times `x`.
    fn mish(&self, softplus: &OnnxNode) -> Option<(usize, OnnxNode)> {
        let made = softplus.outputs.first()?;
        let &[(only, _)] = self.readers.get(made.as_str())?.as_slice() else { return None };
        let tanh = self.graph.nodes.get(only).filter(|node| node.operator == "Tanh")?;
        self.gated(softplus, tanh, "Mish")
    }

    /// An instance normalisation of groups, seen as channels, with weights for the channels behind it.
    fn group_norm(&self, norm: &OnnxNode) -> Option<(usize, OnnxNode)> {
        let grouped = self.maker(norm.input(0)?, "Reshape")?;
        let x = grouped.input(0)?;
        let sizes = self.numbers(grouped.input(1)?)?;
        let groups = sizes.get(1).and_then(|groups| groups.int()).filter(|&groups| groups > 0)?;
        let (_, back, _) = self.reader(norm, "Reshape")?;
        let (_, scaled, weight) = self.reader(back, "Mul")?;
        let (place, shifted, bias) = self.reader(scaled, "Add")?;
        let (weight, bias) = (self.row_behind(weight)?, self.row_behind(bias)?);
        let mut node = folded(norm, "GroupNormalization", &[x, weight, bias], shifted);
        node.attributes = norm.attributes.clone();
        node.attributes.push(AttributeProto { i: Some(groups), ..named("num_groups") });
        Some((place, node))
    }

    /// The one-dimensional initialiser that `name` shows with additional axes of one position.
    fn row_behind(&self, name: &'a str) -> Option<&'a str> {
        let look = self.maker(name, "Unsqueeze").or_else(|| self.maker(name, "Reshape"));
        let row = look.map_or(Some(name), |look| look.input(0))?;
        (self.weight(row)?.len() == 1).then_some(row)
    }

    /// A recurrent layer with the initialisers from which its weights are cut and joined as inputs, each once.
    fn recurrent(&self, layer: &OnnxNode) -> OnnxNode {
        const BEHIND: usize = 3;
        let mut names: Vec<&str> = Vec::new();
        // Weights, biases: the sequence's lengths and the first states follow, and are zeros.
        let mut waiting: Vec<&str> = (1..=BEHIND).rev().filter_map(|index| layer.input(index)).collect();
        while let Some(name) = waiting.pop() {
            match self.makers.get(name).and_then(|&place| self.graph.nodes.get(place)) {
                None if self.weight(name).is_some() && !names.contains(&name) => names.push(name),
                None => {}
                Some(maker) => waiting.extend(maker.inputs.iter().rev().map(String::as_str)),
            }
        }
        let inputs = layer.inputs.first().into_iter().cloned();
        let inputs = inputs.chain(names.into_iter().map(str::to_owned)).collect();
        OnnxNode { inputs, ..layer.clone() }
    }

    /// The other operand of a product with the constant `factor`.
    fn times(&self, product: &'a OnnxNode, factor: f64) -> Option<&'a str> {
        let (a, b) = (product.input(0)?, product.input(1)?);
        if self.is_close(b, factor) {
            Some(a)
        } else if self.is_close(a, factor) {
            Some(b)
        } else {
            None
        }
    }

    /// `(x − mean) / √(mean((x − mean)²) + ε) · weight + bias`.
    fn layer_norm(&self, div: &'a OnnxNode) -> Option<(usize, OnnxNode)> {
        let centred = |name: &str| {
            let sub = self.maker(name, "Sub")?;
            let (x, mean) = (sub.input(0)?, self.maker(sub.input(1)?, "ReduceMean")?);
            (mean.input(0) == Some(x)).then_some((x, mean))
        };
        let (x, mean) = centred(div.input(0)?)?;
        let deviation = self.maker(div.input(1)?, "Sqrt")?;
        let sum = self.maker(deviation.input(0)?, "Add")?;
        let variance = sum.inputs.iter().find_map(|side| self.maker(side, "ReduceMean"))?;
        let squared = variance.input(0)?;
        let base = match (self.maker(squared, "Pow"), self.maker(squared, "Mul")) {
            (Some(pow), _) if self.is_close(pow.input(1)?, 2.0) => pow.input(0)?,
            (_, Some(mul)) if mul.input(0) == mul.input(1) => mul.input(0)?,
            _ => return None,
        };
        if centred(base)?.0 != x {
            return None;
        }
        let (_, scaled, weight) = self.reader(div, "Mul")?;
        let (place, shifted, bias) = self.reader(scaled, "Add")?;
        if self.weight(weight)?.len() != 1 || self.weight(bias)?.len() != 1 {
            return None;
        }
        let mut node = folded(div, "LayerNormalization", &[x, weight, bias], shifted);
        let axis = self.axis(mean)?;
        let epsilon = sum.inputs.iter().find_map(|side| self.number(side));
        node.attributes = vec![
            AttributeProto { i: Some(axis), ..named("axis") },
            AttributeProto { f: epsilon.map(|epsilon| epsilon as f32), ..named("epsilon") },
        ];
        Some((place, node))
    }

    /// `v / norm(v)` times a length for each norm: a weight of a direction and a length.
    fn weight_norm(&self, div: &'a OnnxNode) -> Option<(usize, OnnxNode)> {
        let (direction, norms) = (div.input(0)?, self.maker(div.input(1)?, "ReduceL2")?);
        let (place, product, length) = self.reader(div, "Mul")?;
        let is_weight = self.weight(direction).is_some() && self.weight(length).is_some();
        let whole = is_weight && norms.input(0) == Some(direction);
        whole.then(|| (place, folded(div, "WeightNorm", &[direction, length], product)))
    }

    /// `sum(a·b) / max(√(sum(a²)·sum(b²)), ε)`.
    fn cosine(&self, div: &'a OnnxNode) -> Option<OnnxNode> {
        let product = |name: &str| {
            let sum = self.maker(name, "ReduceSum")?;
            let mul = self.maker(sum.input(0)?, "Mul")?;
            Some((self.axis(sum)?, mul.input(0)?, mul.input(1)?))
        };
        let (axis, a, b) = product(div.input(0)?)?;
        let bound = self.maker(div.input(1)?, "Max").or_else(|| self.maker(div.input(1)?, "Clip"))?;
        let norms = self.maker(self.maker(bound.input(0)?, "Sqrt")?.input(0)?, "Mul")?;
        let squares = [product(norms.input(0)?)?, product(norms.input(1)?)?];
        let mut node = folded(div, "CosineSimilarity", &[a, b], div);
        node.attributes = vec![AttributeProto { i: Some(axis), ..named("axis") }];
        (squares == [(axis, a, a), (axis, b, b)]).then_some(node)
    }

    /// The first half of a `Split` times the sigmoid of the second.
    fn glu(&self, mul: &'a OnnxNode) -> Option<OnnxNode> {
        let [a, b] = [mul.input(0)?, mul.input(1)?];
        let (first, gate) = match (self.maker(b, "Sigmoid"), self.maker(a, "Sigmoid")) {
            (Some(gate), _) => (a, gate),
            (None, gate) => (b, gate?),
        };
        let split = self.maker(first, "Split")?;
        let second = gate.input(0)?;
        let halves = split.outputs.iter().map(String::as_str).eq([first, second]);
        (halves && self.readers.get(gate.outputs.first()?.as_str())?.len() == 1)
            .then(|| folded(mul, "Glu", &[first, second], mul))
    }

    /// A maximum whose indices are also read.
    fn max(&self, max: &'a OnnxNode) -> Option<OnnxNode> {
        let axis = self.axis(max)?;
        let readers = self.readers.get(max.input(0)?)?.iter().filter_map(|&(reader, _)| self.graph.nodes.get(reader));
        let places = { readers }.find(|reader| reader.operator == "ArgMax")?;
        let same = places.int("axis").ok()?.unwrap_or(0) == axis;
        same.then(|| OnnxNode { operator: "MaxWithPlaces".to_owned(), ..max.clone() })
    }

    /// Queries, keys and values packed in one tensor, which are transposed before each is taken out.
    fn packed(&self, squeeze: &'a OnnxNode) -> Option<OnnxNode> {
        let turned = self.maker(squeeze.input(0)?, "Transpose")?;
        self.maker(turned.input(0)?, "Unsqueeze")?;
        let readers = self.readers.get(squeeze.outputs.first()?.as_str())?;
        let looks = readers.iter().filter(|&&(reader, _)| self.graph.nodes[reader].operator == "Gather").count();
        let mut node = squeeze.clone();
        node.attributes.push(named("contiguous"));
        (looks == 3).then_some(node)
    }

    /// The only axis that a reduction is over.
    fn axis(&self, mean: &OnnxNode) -> Option<i64> {
        if let Some(name) = mean.input(1).filter(|name| self.tensor(name).is_some()) {
            let numbers = self.numbers(name)?;
            return if let [only] = numbers.as_slice() { Number::int(*only) } else { None };
        }
        if let [only] = mean.ints("axes") { Some(*only) } else { None }
    }

    /// A product with a weight whose only reader adds a bias.
    fn linear(&self, place: usize) -> Option<(usize, OnnxNode)> {
        let product = self.graph.nodes.get(place)?;
        let (x, weight) = (product.input(0)?, product.input(1)?);
        let outputs = match self.maker(weight, "Transpose") {
            Some(transpose) => self.weight(transpose.input(0)?).filter(|dims| dims.len() == 2)?.first().copied(),
            None => self.weight(weight).filter(|dims| dims.len() == 2)?.get(1).copied(),
        };
        let (at, sum, bias) = self.reader(product, "Add")?;
        (self.weight(bias)? == [outputs?]).then(|| (at, folded(product, "MatMul", &[x, weight, bias], sum)))
    }
}

/// An attribute without a value yet.
fn named(name: &str) -> AttributeProto {
    AttributeProto { name: name.to_owned(), ..AttributeProto::default() }
}

/// A node named after `from` that makes the output of `last`.
fn folded(from: &OnnxNode, operator: &str, inputs: &[&str], last: &OnnxNode) -> OnnxNode {
    OnnxNode {
        name: from.name.clone(),
        operator: operator.to_owned(),
        inputs: inputs.iter().map(|&input| input.to_owned()).collect(),
        outputs: last.outputs.clone(),
        attributes: Vec::new(),
    }
}
