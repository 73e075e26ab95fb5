//! Constants for the computation of shape sub-graphs: small tensors of numbers that are linear in the batch.
//!
//! Also the values of a file's initialisers, in the file's layout.

use std::collections::HashMap;

use prost::bytes::Bytes;

use super::{Fault, Order, Result, TensorProto};
use crate::network::{ImportedTensor, NumberFormat};
use crate::{Dim, FP32, INT64, Initial, Network, Shape, StorageId};

/// Elements beyond which a constant's numbers are not kept, but only its shape.
pub(super) const KEPT: usize = 1 << 16;

/// The kind of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Floating-point numbers.
    Real,
    /// Integers.
    Whole,
    /// Booleans.
    Truth,
}

impl Kind {
    /// The kind of an ONNX element type.
    pub(super) fn of(data_type: i32) -> Result<Self> {
        match data_type {
            1 | 10 | 11 | 16 => Ok(Self::Real),
            2..=7 | 12 | 13 => Ok(Self::Whole),
            9 => Ok(Self::Truth),
            other => Err(Fault::new(format!("element type {other} is unknown; expected floats, integers or booleans"))),
        }
    }

    /// Bytes of one element in PyTorch.
    pub(super) const fn bytes(self) -> u64 {
        match self {
            Self::Real => FP32,
            Self::Whole => INT64,
            Self::Truth => 1,
        }
    }
}

/// A number, known up to the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// `fixed + per_sample × batch`.
    Whole {
        /// The part without the batch.
        fixed: i64,
        /// The factor of the batch.
        per_sample: i64,
    },
    /// A floating-point number.
    Real(f64),
}

impl Number {
    pub(super) const fn whole(fixed: i64) -> Self {
        Self::Whole { fixed, per_sample: 0 }
    }

    /// The size of a dimension.
    pub(super) fn of_dim(dim: Dim) -> Option<Self> {
        let size = i64::try_from(dim.size).ok()?;
        Some(if dim.batched { Self::Whole { fixed: 0, per_sample: size } } else { Self::whole(size) })
    }

    /// The dimension of this size; `None` if it is not a size.
    pub(super) fn dim(self) -> Option<Dim> {
        match self {
            Self::Whole { fixed, per_sample: 0 } => u64::try_from(fixed).ok().map(Dim::fixed),
            Self::Whole { fixed: 0, per_sample } => u64::try_from(per_sample).ok().map(Dim::batched),
            _ => None,
        }
    }

    /// The number as an integer, if it does not depend on the batch.
    #[expect(clippy::cast_possible_truncation, reason = "a float used as an integer is truncated, as a cast does")]
    pub(super) const fn int(self) -> Option<i64> {
        match self {
            Self::Whole { fixed, per_sample: 0 } => Some(fixed),
            Self::Whole { .. } => None,
            Self::Real(value) => Some(value as i64),
        }
    }

    /// The number as a float, if it does not depend on the batch.
    pub(super) const fn real(self) -> Option<f64> {
        match self {
            Self::Whole { fixed, per_sample: 0 } => Some(fixed as f64),
            Self::Whole { .. } => None,
            Self::Real(value) => Some(value),
        }
    }

    /// Whether it is not zero, for any batch.
    pub(super) fn is_true(self) -> bool {
        self != Self::whole(0) && self != Self::Real(0.0)
    }

    /// `self operator other`; `None` if the result is not linear in the batch or overflows.
    pub(super) fn combine(self, operator: &str, other: Self) -> Option<Self> {
        let truth = |value: bool| Some(Self::whole(i64::from(value)));
        match operator {
            "And" => return truth(self.is_true() && other.is_true()),
            "Or" => return truth(self.is_true() || other.is_true()),
            _ => {}
        }
        let (Self::Whole { fixed: a, per_sample: p }, Self::Whole { fixed: b, per_sample: q }) = (self, other) else {
            return real(operator, self.real()?, other.real()?);
        };
        let linear =
            |fixed: Option<i64>, per_sample: Option<i64>| Some(Self::Whole { fixed: fixed?, per_sample: per_sample? });
        match operator {
            "Add" => linear(a.checked_add(b), p.checked_add(q)),
            "Sub" => linear(a.checked_sub(b), p.checked_sub(q)),
            "Mul" if q == 0 => linear(a.checked_mul(b), p.checked_mul(b)),
            "Mul" if p == 0 => linear(b.checked_mul(a), q.checked_mul(a)),
            "Div" if q == 0 && (p == 0 || p.checked_rem(b)? == 0 && a.checked_rem(b)? == 0) => {
                linear(a.checked_div(b), p.checked_div(b))
            }
            "Div" if (a, b) == (0, 0) && p.checked_rem(q)? == 0 => linear(p.checked_div(q), Some(0)),
            "Mod" if (p, q) == (0, 0) => linear(a.checked_rem_euclid(b), Some(0)),
            "Pow" if (p, q) == (0, 0) => linear(a.checked_pow(u32::try_from(b).ok()?), Some(0)),
            // The batch is assumed to be larger than any fixed size.
            "Equal" => truth((a, p) == (b, q)),
            "Less" => truth((p, a) < (q, b)),
            "LessOrEqual" => truth((p, a) <= (q, b)),
            "Greater" => truth((p, a) > (q, b)),
            "GreaterOrEqual" => truth((p, a) >= (q, b)),
            "Min" => Some(if (p, a) <= (q, b) { self } else { other }),
            "Max" => Some(if (p, a) >= (q, b) { self } else { other }),
            _ => None,
        }
    }

    /// An element-wise function of one number.
    pub(super) fn map(self, operator: &str) -> Option<Self> {
        match (operator, self) {
            ("Not", _) => Some(Self::whole(i64::from(!self.is_true()))),
            ("Neg", _) => Self::whole(0).combine("Sub", self),
            ("Floor" | "Ceil", Self::Whole { .. }) => Some(self),
            ("Floor", Self::Real(value)) => Some(Self::Real(value.floor())),
            ("Ceil", Self::Real(value)) => Some(Self::Real(value.ceil())),
            ("Sqrt", _) => Some(Self::Real(self.real()?.sqrt())),
            ("Abs", Self::Whole { fixed, per_sample: 0 }) => Some(Self::whole(fixed.checked_abs()?)),
            ("Abs", Self::Real(value)) => Some(Self::Real(value.abs())),
            _ => None,
        }
    }

    /// The number as an element of `kind`.
    pub(super) fn cast(self, kind: Kind) -> Option<Self> {
        match kind {
            Kind::Truth => Some(Self::whole(i64::from(self.is_true()))),
            Kind::Whole => Some(if let Self::Real(_) = self { Self::whole(self.int()?) } else { self }),
            // A size that depends on the batch stays exact.
            Kind::Real => Some(self.real().map_or(self, Self::Real)),
        }
    }
}

fn real(operator: &str, a: f64, b: f64) -> Option<Number> {
    let truth = |value: bool| Some(Number::whole(i64::from(value)));
    let value = match operator {
        "Add" => a + b,
        "Sub" => a - b,
        "Mul" => a * b,
        "Div" => a / b,
        "Mod" => a % b,
        "Pow" => a.powf(b),
        "Min" => a.min(b),
        "Max" => a.max(b),
        "Equal" => return truth(a == b),
        "Less" => return truth(a < b),
        "LessOrEqual" => return truth(a <= b),
        "Greater" => return truth(a > b),
        "GreaterOrEqual" => return truth(a >= b),
        _ => return None,
    };
    Some(Number::Real(value))
}

/// The constant of the file that a tensor views.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Its name.
    pub(super) name: String,
    /// Its bytes, all of which autograd keeps when it saves a part.
    pub(super) bytes: u64,
}

/// A constant tensor; its dimensions do not depend on the batch, its numbers may.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) dims: Vec<u64>,
    pub(super) numbers: Vec<Number>,
    pub(super) kind: Kind,
    pub(super) origin: Option<Origin>,
}

impl Constant {
    /// A scalar.
    pub(super) fn scalar(number: Number, kind: Kind) -> Self {
        Self { dims: Vec::new(), numbers: vec![number], kind, origin: None }
    }

    /// A row of integers.
    pub(super) fn row(numbers: Vec<Number>) -> Self {
        Self { dims: vec![numbers.len() as u64], numbers, kind: Kind::Whole, origin: None }
    }

    /// The shape.
    pub(super) fn shape(&self) -> Shape {
        Shape::fixed(&self.dims)
    }

    /// The only number.
    pub(super) fn single(&self) -> Option<Number> {
        let [only] = self.numbers.as_slice() else { return None };
        Some(*only)
    }

    /// The constant whose element at `index` is the element of this one at `source(index)`.
    pub(super) fn gather(&self, dims: Vec<u64>, source: impl Fn(&[u64]) -> Vec<u64>) -> Option<Self> {
        let count = usize::try_from(elements(&dims)?).ok().filter(|&count| count <= KEPT)?;
        let mut numbers = Vec::with_capacity(count);
        let mut index = vec![0; dims.len()];
        for _ in 0..count {
            numbers.push(*self.numbers.get(offset(&self.dims, &source(&index))?)?);
            for (place, &size) in index.iter_mut().zip(&dims).rev() {
                *place += 1;
                if *place < size {
                    break;
                }
                *place = 0;
            }
        }
        Some(Self { dims, numbers, kind: self.kind, origin: self.origin.clone() })
    }

    /// This constant stretched to `dims`, which it broadcasts to.
    pub(super) fn stretch(&self, dims: &[u64]) -> Option<Self> {
        let lead = dims.len().checked_sub(self.dims.len())?;
        let fits = self.dims.iter().zip(dims.iter().skip(lead)).all(|(own, wide)| own == wide || *own == 1);
        let own = &self.dims;
        let source = |index: &[u64]| {
            let tail = index.iter().skip(lead).zip(own);
            tail.map(|(&place, &size)| if size == 1 { 0 } else { place }).collect()
        };
        if fits { self.gather(dims.to_vec(), source) } else { None }
    }
}

/// The number of elements, unless it overflows.
pub(super) fn elements(dims: &[u64]) -> Option<u64> {
    dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))
}

fn offset(dims: &[u64], index: &[u64]) -> Option<usize> {
    let mut at = 0_u64;
    for (&size, &place) in dims.iter().zip(index) {
        if place >= size {
            return None;
        }
        at = at.checked_mul(size)?.checked_add(place)?;
    }
    usize::try_from(at).ok()
}

/// The dimensions of `tensor`.
pub(super) fn dims_of(tensor: &TensorProto) -> Result<Vec<u64>> {
    let sizes = tensor.dims.iter().map(|&dim| u64::try_from(dim).ok());
    let dims = sizes.collect::<Option<Vec<u64>>>();
    dims.ok_or_else(|| Fault::new(format!("tensor '{}' has dimensions {:?}; expected sizes", tensor.name, tensor.dims)))
}

/// The numbers of `tensor`; `None` if they are stored outside the file, are too many, or are not needed as numbers.
pub(super) fn numbers_of(tensor: &TensorProto, dims: &[u64]) -> Result<Option<Vec<Number>>> {
    let Some(count) = elements(dims).and_then(|count| usize::try_from(count).ok()).filter(|&count| count <= KEPT)
    else {
        return Ok(None);
    };
    let raw: &[u8] = &tensor.raw_data;
    let numbers: Vec<Number> = match tensor.data_type {
        1 if raw.is_empty() => tensor.float_data.iter().map(|&value| Number::Real(f64::from(value))).collect(),
        1 => words(raw, |bytes| Number::Real(f64::from(f32::from_le_bytes(bytes)))),
        11 if raw.is_empty() => tensor.double_data.iter().map(|&value| Number::Real(value)).collect(),
        11 => words(raw, |bytes| Number::Real(f64::from_le_bytes(bytes))),
        7 if raw.is_empty() => tensor.int64_data.iter().map(|&value| Number::whole(value)).collect(),
        7 => words(raw, |bytes| Number::whole(i64::from_le_bytes(bytes))),
        6 if !raw.is_empty() => words(raw, |bytes| Number::whole(i64::from(i32::from_le_bytes(bytes)))),
        9 if !raw.is_empty() => raw.iter().map(|&byte| Number::whole(i64::from(byte))).collect(),
        6 | 9 => tensor.int32_data.iter().map(|&value| Number::whole(i64::from(value))).collect(),
        _ => return Ok(None),
    };
    if numbers.len() == count {
        return Ok(Some(numbers));
    }
    if numbers.is_empty() {
        return Ok(None);
    }
    let found = numbers.len();
    Err(Fault::new(format!("tensor '{}' holds {found} numbers; expected {count}", tensor.name)))
}

fn words<const N: usize>(raw: &[u8], read: impl Fn([u8; N]) -> Number) -> Vec<Number> {
    raw.chunks(N).filter_map(|chunk| chunk.try_into().ok()).map(read).collect()
}

/// An initialiser that fills a storage of the network.
pub(super) struct Holder {
    pub(super) storage: StorageId,
    /// The initialiser's name.
    pub(super) name: String,
    /// The order in which the storage has its numbers.
    pub(super) order: Order,
}

/// The values of the `initialisers` of the graph of `network`. An initialiser that is read in two orders, or is stored
/// outside the file, has none.
pub(super) fn values(
    network: &mut Network,
    holders: &[Holder],
    initialisers: &HashMap<String, TensorProto>,
) -> HashMap<StorageId, ImportedTensor> {
    let mut orders: HashMap<StorageId, Order> = HashMap::new();
    for holder in holders {
        let order = orders.entry(holder.storage).or_insert(holder.order);
        if *order != holder.order {
            *order = Order::Other;
        }
    }
    let mut tensors = HashMap::new();
    for holder in holders {
        let order = orders.get(&holder.storage).copied().unwrap_or(Order::Other);
        let found = initialisers.get(&holder.name).and_then(|tensor| imported(tensor, order));
        if let Some(tensor) = found {
            network.storages[holder.storage as usize].initial = Some(Initial::Imported);
            tensors.insert(holder.storage, tensor);
        }
    }
    tensors
}

/// The numbers of `tensor` in `order`; `None` if they are not all in the file or cannot be put in order.
pub(super) fn imported(tensor: &TensorProto, order: Order) -> Option<ImportedTensor> {
    let dims = dims_of(tensor).ok()?;
    let (bytes, format) = match tensor.data_type {
        1 if tensor.raw_data.is_empty() => (packed(&tensor.float_data), NumberFormat::Single),
        1 => (tensor.raw_data.clone(), NumberFormat::Single),
        11 if !tensor.raw_data.is_empty() => (tensor.raw_data.clone(), NumberFormat::Double),
        10 if !tensor.raw_data.is_empty() => (tensor.raw_data.clone(), NumberFormat::Half),
        16 if !tensor.raw_data.is_empty() => (tensor.raw_data.clone(), NumberFormat::Brain),
        _ => return None,
    };
    let transposed = match (order, dims.as_slice()) {
        (Order::Stored, _) => None,
        (Order::Transposed, &[rows, columns]) => Some([rows, columns]),
        _ => return None,
    };
    let whole = elements(&dims)?.checked_mul(format.bytes() as u64) == Some(bytes.len() as u64);
    whole.then_some(ImportedTensor { bytes, format, transposed })
}

fn packed(values: &[f32]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
}
