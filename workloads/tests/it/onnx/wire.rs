//! Writes small ONNX files by hand, so that the tests do not share the importer's declarations.

use haversack_workloads::onnx::Reading;

/// How a file is read for samples of this shape.
pub(crate) fn of_shape(shape: &[u64]) -> Reading {
    Reading { input: Some(shape.to_vec()), ..Reading::default() }
}

/// An element type of ONNX.
pub(crate) const FLOAT: u64 = 1;
/// An element type of ONNX.
pub(crate) const INT64: u64 = 7;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(tag: u64, value: u64) -> Vec<u8> {
    [varint(tag << 3), varint(value)].concat()
}

fn bytes(tag: u64, value: &[u8]) -> Vec<u8> {
    [varint(tag << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// A size, or the name of a dimension.
#[derive(Clone, Copy)]
pub(crate) enum D {
    N(i64),
    P(&'static str),
}

/// `batch` first, then sizes.
pub(crate) fn batched(rest: &[i64]) -> Vec<D> {
    std::iter::once(D::P("batch")).chain(rest.iter().map(|&size| D::N(size))).collect()
}

/// A graph under construction.
#[derive(Clone, Default)]
pub(crate) struct G {
    fields: Vec<u8>,
    nodes: usize,
    /// The module of the nodes that follow.
    module: &'static str,
}

/// An attribute.
#[derive(Clone, Copy)]
pub(crate) enum A<'a> {
    I(i64),
    F(f32),
    Ints(&'a [i64]),
    Text(&'a str),
    Floats(&'a [i64], &'a [f32]),
    Graph,
    Body(&'a G),
}

impl G {
    fn value(&mut self, tag: u64, name: &str, element: u64, dims: &[D]) {
        let dims = dims.iter().map(|dim| {
            let dim = match dim {
                D::N(size) => number(1, *size as u64),
                D::P(name) => bytes(2, name.as_bytes()),
            };
            bytes(1, &dim)
        });
        let tensor = [number(1, element), bytes(2, &dims.collect::<Vec<_>>().concat())].concat();
        let value = [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat();
        self.fields.extend(bytes(tag, &value));
    }

    pub(crate) fn input(mut self, name: &str, element: u64, dims: &[D]) -> Self {
        self.value(11, name, element, dims);
        self
    }

    pub(crate) fn output(mut self, name: &str) -> Self {
        self.value(12, name, FLOAT, &[]);
        self
    }

    /// An initialiser without data, as if its data were outside the file.
    pub(crate) fn weight(mut self, name: &str, dims: &[i64]) -> Self {
        let sizes: Vec<u8> = dims.iter().flat_map(|&dim| number(1, dim as u64)).collect();
        let tensor = [sizes, number(2, FLOAT), bytes(8, name.as_bytes())].concat();
        self.fields.extend(bytes(5, &tensor));
        self
    }

    /// An initialiser with its values.
    pub(crate) fn values(mut self, name: &str, dims: &[i64], values: &[f32]) -> Self {
        let sizes: Vec<u8> = dims.iter().flat_map(|&dim| number(1, dim as u64)).collect();
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = [sizes, number(2, FLOAT), bytes(8, name.as_bytes()), bytes(9, &raw)].concat();
        self.fields.extend(bytes(5, &tensor));
        self
    }

    /// A row of integers as an initialiser.
    pub(crate) fn ints(mut self, name: &str, values: &[i64]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let parts = [number(1, values.len() as u64), number(2, INT64), bytes(8, name.as_bytes()), bytes(9, &raw)];
        self.fields.extend(bytes(5, &parts.concat()));
        self
    }

    /// A float scalar as an initialiser.
    pub(crate) fn float(mut self, name: &str, value: f32) -> Self {
        let parts = [number(2, FLOAT), bytes(8, name.as_bytes()), bytes(9, &value.to_le_bytes())];
        self.fields.extend(bytes(5, &parts.concat()));
        self
    }

    /// A node named `n0`, `n1`, …
    pub(crate) fn node(
        mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[(&str, A<'_>)],
    ) -> Self {
        let mut node: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name.as_bytes())).collect();
        node.extend(outputs.iter().flat_map(|name| bytes(2, name.as_bytes())));
        node.extend(bytes(3, format!("n{}", self.nodes).as_bytes()));
        node.extend(bytes(4, operator.as_bytes()));
        for (name, value) in attributes {
            let value = match value {
                A::I(value) => number(3, *value as u64),
                A::F(value) => [varint(2 << 3 | 5), value.to_le_bytes().to_vec()].concat(),
                A::Ints(values) => values.iter().flat_map(|&value| number(8, value as u64)).collect(),
                A::Text(value) => bytes(4, value.as_bytes()),
                A::Floats(dims, values) => {
                    let sizes: Vec<u8> = dims.iter().flat_map(|&dim| number(1, dim as u64)).collect();
                    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                    bytes(5, &[sizes, number(2, FLOAT), bytes(9, &raw)].concat())
                }
                A::Graph => bytes(6, &[]),
                A::Body(body) => bytes(6, &body.fields),
            };
            node.extend(bytes(5, &[bytes(1, name.as_bytes()), value].concat()));
        }
        if !self.module.is_empty() {
            let scopes = format!("['', '{}', 'linear']", self.module);
            node.extend(bytes(9, &[bytes(1, b"pkg.torch.onnx.name_scopes"), bytes(2, scopes.as_bytes())].concat()));
        }
        self.fields.extend(bytes(1, &node));
        self.nodes += 1;
        self
    }

    /// The nodes that follow are of this module, as `torch.export` writes it.
    pub(crate) fn within(self, module: &'static str) -> Self {
        Self { module, ..self }
    }

    /// The signature of `torch.export`, which describes the graph's tensors.
    pub(crate) fn signature(mut self, lines: &str) -> Self {
        let key = "pkg.torch.export.ExportedProgram.graph_signature";
        self.fields.extend(bytes(16, &[bytes(1, key.as_bytes()), bytes(2, lines.as_bytes())].concat()));
        self
    }

    /// The file, of operator set 17.
    pub(crate) fn file(&self) -> Vec<u8> {
        self.file_of(17)
    }

    /// The file, of an operator set.
    pub(crate) fn file_of(&self, opset: u64) -> Vec<u8> {
        [number(1, 8), bytes(8, &number(2, opset)), bytes(7, &self.fields)].concat()
    }
}
