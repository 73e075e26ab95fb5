//! The inputs of a graph: the batch dimension, and the others.

use std::collections::HashMap;

use super::{Dimension, Fault, Graph, Kind, Result, Source, ValueInfoProto};
use crate::{Dim, Shape};

/// The name under which exporters usually leave the batch open.
const BATCH: &str = "batch";

/// The inputs of a network.
pub(super) struct Samples {
    /// The inputs that are read, the samples first.
    pub(super) sources: Vec<Source>,
    /// The batch of the export, if it is a number.
    pub(super) batch: Option<u64>,
    /// The assumptions that were made.
    pub(super) notes: Vec<String>,
}

/// How the batch is marked.
enum Batch<'a> {
    Named(&'a str),
    Sized(u64),
    /// The first dimension of the samples is open and unnamed.
    Open,
}

/// Reads the inputs of `graph`; `given` is the shape of a sample, if the user gave one. If the batch is `fixed`, it is
/// the file's own, if that is a number.
pub(super) fn read(graph: &Graph, given: Option<&[u64]>, fixed: bool) -> Result<Samples> {
    let readers = graph.readers();
    let mut read: Vec<_> = graph.inputs.iter().filter(|input| readers.contains_key(input.name.as_str())).collect();
    if read.is_empty() {
        return Err(Fault::new("no operator reads an input; expected one that reads the samples"));
    }
    let mut notes = Vec::new();
    let mut shapes = read.iter().map(|input| dimensions(input, given)).collect::<Result<Vec<_>>>()?;
    // A scalar, such as a rate, cannot be the samples.
    let first = shapes.iter().position(|shape| !shape.is_empty()).unwrap_or(0);
    read[..=first].rotate_right(1);
    shapes[..=first].rotate_right(1);
    let samples = read[0];
    let names = shapes.iter().flatten().filter_map(|dim| dim.dim_param.as_deref());
    let batch = match ({ names }.find(|&name| name == BATCH), shapes.first().and_then(|shape| shape.first())) {
        (Some(name), _) => Batch::Named(name),
        (None, Some(Dimension { dim_param: Some(name), .. })) if !name.is_empty() => Batch::Named(name),
        (None, Some(&Dimension { dim_value: Some(size), .. })) => {
            let size = size.unsigned_abs();
            notes.push(format!("the first dimension of input '{}', {size}, is taken as the batch", samples.name));
            Batch::Sized(size)
        }
        (None, Some(_)) => Batch::Open,
        (None, None) => return Err(Fault::new(format!("input '{}' is a scalar; expected samples", samples.name))),
    };
    let overrides = Overrides::new(samples, shapes.first().map_or(&[], Vec::as_slice), given, &batch)?;
    let sources = read.iter().zip(&shapes).map(|(input, dims)| source(input, dims, &batch, &overrides));
    let mut sources = sources.collect::<Result<Vec<_>, _>>()?;
    let size = if let Batch::Sized(size) = batch { Some(size) } else { None };
    if let (Some(size), true) = (size, fixed) {
        for dim in sources.iter_mut().flat_map(|source| &mut source.shape.0).filter(|dim| dim.batched) {
            *dim = Dim::fixed(dim.size * size);
        }
    }
    Ok(Samples { sources, batch: size, notes })
}

/// The dimensions of an input; those of size zero or less are free, and so are all if the shape is missing
/// and one is `given`.
fn dimensions(input: &ValueInfoProto, given: Option<&[u64]>) -> Result<Vec<Dimension>> {
    let tensor = input.r#type.as_ref().and_then(|r#type| r#type.tensor_type.as_ref());
    let mut dims = match (tensor.and_then(|tensor| tensor.shape.as_ref()), given) {
        (Some(shape), _) => shape.dim.clone(),
        (None, Some(sizes)) => vec![Dimension::default(); sizes.len() + 1],
        (None, None) => {
            let message = format!("input '{}' has no shape; expected one: give the shape of a sample", input.name);
            return Err(Fault::new(message));
        }
    };
    dims.iter_mut().for_each(|dim| dim.dim_value = dim.dim_value.filter(|&size| size > 0));
    Ok(dims)
}

/// Whether dimension `axis` of `dims` is the batch. If the batch is named and no dimension has this name, it is a
/// leading free one.
fn is_batch(axis: usize, dims: &[Dimension], batch: &Batch<'_>) -> bool {
    let dim = &dims[axis];
    match batch {
        Batch::Named(name) => {
            let is_named = |dim: &Dimension| dim.dim_param.as_deref() == Some(*name);
            is_named(dim) || axis == 0 && dim.dim_value.is_none() && !dims.iter().any(is_named)
        }
        Batch::Sized(size) => axis == 0 && dim.dim_value == i64::try_from(*size).ok(),
        Batch::Open => dims.iter().position(|dim| dim.dim_value.is_none()) == Some(axis),
    }
}

/// The sizes that the user gave instead of the file's.
struct Overrides<'a> {
    samples: &'a [Dimension],
    given: Option<&'a [u64]>,
    /// The sizes of named dimensions, as the samples have them.
    named: HashMap<&'a str, u64>,
}

impl<'a> Overrides<'a> {
    fn new(
        samples: &ValueInfoProto,
        dims: &'a [Dimension],
        given: Option<&'a [u64]>,
        batch: &Batch<'_>,
    ) -> Result<Self> {
        let rest: Vec<_> =
            (0..dims.len()).filter(|&axis| !is_batch(axis, dims, batch)).map(|axis| &dims[axis]).collect();
        let mut named = HashMap::new();
        if let Some(sizes) = given {
            if sizes.len() != rest.len() || sizes.contains(&0) {
                let got = format!("samples of shape {}", Shape::fixed(sizes));
                let expected =
                    format!("{} sizes above zero, for input '{}' without its batch", rest.len(), samples.name);
                return Err(Fault::mismatch(got, expected));
            }
            let pairs = rest.iter().zip(sizes);
            named.extend(pairs.filter_map(|(dim, &size)| dim.dim_param.as_deref().map(|name| (name, size))));
        }
        Ok(Self { samples: dims, given, named })
    }
}

fn source(input: &ValueInfoProto, dims: &[Dimension], batch: &Batch<'_>, overrides: &Overrides<'_>) -> Result<Source> {
    let tensor = input.r#type.as_ref().and_then(|r#type| r#type.tensor_type.as_ref());
    let kind = Kind::of(tensor.map_or(0, |tensor| tensor.elem_type))?;
    // An input with the samples' shape, such as a mask next to token ids, follows them.
    let given = overrides.given.filter(|_| dims == overrides.samples);
    let mut given = given.unwrap_or_default().iter();
    let mut shape = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        let named = dim.dim_param.as_deref().and_then(|name| overrides.named.get(name));
        if named.is_none() && is_batch(axis, dims, batch) {
            shape.push(Dim::batched(1));
            continue;
        }
        let own = dim.dim_value.and_then(|size| u64::try_from(size).ok()).filter(|&size| size > 0);
        let Some(size) = given.next().or(named).copied().or(own) else {
            let called = dim.dim_param.as_deref().unwrap_or("?");
            let message = format!("dimension {axis} ('{called}') of input '{}' has no size", input.name);
            return Err(Fault::new(format!("{message}; expected one: give the shape of a sample")));
        };
        shape.push(Dim::fixed(size));
    }
    if let (0, false) = (shape.iter().filter(|dim| dim.batched).count(), overrides.samples != dims) {
        return Err(Fault::new(format!("input '{}' has no batch; expected its first dimension to be", input.name)));
    }
    Ok(Source { name: input.name.clone(), shape: Shape(shape), kind })
}
