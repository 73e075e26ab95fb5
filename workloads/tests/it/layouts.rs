//! The layouts of values over their storages: every built-in model has them, and a chain of views sees the elements
//! that a slow reference implementation gathers.

use haversack_workloads::network::layout::Layout;
use haversack_workloads::operator::{Along, Part, Unary};
use haversack_workloads::{Dim, Network, Op, Shape, ValueId, models};
use proptest::prelude::*;

/// The place of the element at `index` of sample `sample`; along the batched axis, the index within the sample.
fn place(layout: &Layout, sample: u64, index: &[u64]) -> u64 {
    let within: u64 = index.iter().zip(&layout.strides).map(|(&at, &stride)| at * stride).sum();
    layout.offset + sample * layout.sample + within
}

#[test]
fn every_model_has_layouts_and_products_read_rows_in_order() {
    for model in models::MODELS.iter() {
        let network = models::build(model.id, None).unwrap();
        let layouts = network.layouts().unwrap();
        assert_eq!(layouts.len(), network.values.len());
        for (value, layout) in network.values.iter().zip(&layouts) {
            assert_eq!(layout.shape, value.shape, "{}", model.id);
            assert!(!value.contiguous || layout.is_row_major(), "{}: {layout:?}", model.id);
            let storage = network.storage(value.storage);
            let sizes = value.shape.sizes();
            let last: Vec<u64> = sizes.iter().map(|size| size - 1).collect();
            // The last element of the second sample lies within the storage of two samples; bytes of the
            // narrowest kind.
            assert!(place(layout, 1, &last) < storage.bytes.at(2), "{}: {}", model.id, storage.name);
        }
    }
}

#[test]
fn thirds_of_a_fused_projection_are_seen_by_heads() {
    let network = models::build("gpt2-medium-lora", Some(&[2])).unwrap();
    let layouts = network.layouts().unwrap();
    let of = |name: &str| {
        let node = network.nodes.iter().find(|node| node.module == name).unwrap();
        &layouts[node.output as usize]
    };
    // Of 3 x 1024 features a token: the value's third starts at 2 x 1024; heads of 64, tokens 3072 apart.
    let value = of("transformer.h.0.attn.value");
    assert_eq!((value.offset, value.sample), (2048, 2 * 3072));
    assert_eq!(value.strides, [2 * 3072, 64, 3072, 1]);
    assert_eq!(value.shape, Shape::batched(&[16, 2, 64]));
    // Rows of scores without the last token's.
    assert_eq!(of("shift_logits").strides, [2 * 50257, 50257, 1]);
}

#[test]
fn a_function_keeps_the_order_of_its_operand_in_memory() {
    let mut n = Network::new("transposed");
    let x = n.input(&[2, 3]);
    let x = n.linear("in", x, 3, false).unwrap();
    let y = n.permute("turn", x, &[0, 2, 1]).unwrap();
    let y = n.unary("act", y, Unary::Tanh);
    let layouts = n.layouts().unwrap();
    // 2 x 3 in rows of 3, seen as 3 x 2: the result has the operand's layout.
    assert_eq!(layouts[y as usize].strides, [6, 1, 3]);
    assert_eq!(layouts[y as usize].sample, 6);
}

#[test]
fn a_batch_within_rows_is_refused_by_name() {
    let mut n = Network::new("turned");
    let x = n.input(&[2, 3]);
    let y = n.permute("turn", x, &[1, 0, 2]).unwrap();
    assert!(n.layouts().is_ok());
    n.copy("settle", y);
    let error = n.layouts().unwrap_err().to_string();
    assert!(error.contains("settle") && error.contains("2xBx3"), "{error}");
}

/// One step of a chain of views.
#[derive(Clone, Debug)]
enum Step {
    Merge(usize),
    Split(usize),
    Swap(usize, usize),
    Cut { axis: usize, start: u64, step: u64 },
    Pick { axis: usize, at: u64 },
    Heads { axis: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..4_usize).prop_map(Step::Merge),
        (0..4_usize).prop_map(Step::Split),
        (0..4_usize, 0..4_usize).prop_map(|(a, b)| Step::Swap(a, b)),
        (0..4_usize, 0..3_u64, 1..3_u64).prop_map(|(axis, start, step)| Step::Cut { axis, start, step }),
        (0..4_usize, 0..5_u64).prop_map(|(axis, at)| Step::Pick { axis, at }),
        (0..4_usize).prop_map(|axis| Step::Heads { axis }),
    ];
    prop::collection::vec(step, 0..7)
}

/// A tensor of one sample with its elements written out: the slow reference for a layout.
#[derive(Clone)]
struct Written {
    sizes: Vec<u64>,
    elements: Vec<u64>,
}

impl Written {
    /// The tensor of `sizes` whose element at an index is this one's at `source` of it.
    fn gather(&self, sizes: Vec<u64>, source: impl Fn(&[u64]) -> Vec<u64>) -> Self {
        let pick = |index: Vec<u64>| {
            let at = source(&index).iter().zip(&self.sizes).fold(0, |at, (&place, &size)| at * size + place);
            self.elements[at as usize]
        };
        Self { elements: indices(&sizes).map(pick).collect(), sizes }
    }
}

/// All indices of a tensor of `sizes`, in row-major order.
fn indices(sizes: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    (0..sizes.iter().product::<u64>()).map(move |mut rest| {
        let mut index: Vec<u64> = sizes.iter().rev().map(|&size| (rest % size, rest /= size).0).collect();
        index.reverse();
        index
    })
}

/// Takes `step` in the network and in writing, where it fits; axis 0 is the batch and stays.
fn take(n: &mut Network, x: ValueId, written: &Written, step: &Step) -> (ValueId, Written) {
    let (shape, rank) = (n.shape(x).clone(), n.shape(x).rank());
    let sizes = &written.sizes;
    let after = |axis: usize| 1 + axis % (rank - 1).max(1);
    let batched = |sizes: &[u64]| Shape::batched(&sizes[1..]);
    match *step {
        _ if rank < 2 => (x, written.clone()),
        Step::Merge(axis) if rank > 2 => {
            let axis = 1 + axis % (rank - 2);
            let mut merged = sizes.clone();
            merged.splice(axis..axis + 2, [sizes[axis] * sizes[axis + 1]]);
            let y = n.reshape("merge", x, batched(&merged)).unwrap();
            (y, Written { sizes: merged, elements: written.elements.clone() })
        }
        Step::Split(axis) if sizes[after(axis)].is_multiple_of(2) => {
            let mut split = sizes.clone();
            split.splice(after(axis)..=after(axis), [2, sizes[after(axis)] / 2]);
            let y = n.reshape("split", x, batched(&split)).unwrap();
            (y, Written { sizes: split, elements: written.elements.clone() })
        }
        Step::Swap(a, b) => {
            let mut order: Vec<usize> = (0..rank).collect();
            order.swap(after(a), after(b));
            let y = n.permute("swap", x, &order).unwrap();
            let seen = order.iter().map(|&axis| sizes[axis]).collect();
            // A swap is its own inverse.
            (y, written.gather(seen, |index| order.iter().map(|&axis| index[axis]).collect()))
        }
        Step::Cut { axis, start, step } if start < sizes[after(axis)] => {
            let axis = after(axis);
            let mut cut = sizes.clone();
            cut[axis] = (sizes[axis] - start).div_ceil(step);
            let mut seen = shape;
            seen.0[axis] = Dim::fixed(cut[axis]);
            let y = n.slice("cut", x, Part::whole(rank).from(axis, start, step), seen, false);
            let moved = |index: &[u64]| {
                let mut at = index.to_vec();
                at[axis] = start + step * at[axis];
                at
            };
            (y, written.gather(cut, moved))
        }
        Step::Pick { axis, at } if at < sizes[after(axis)] => {
            let axis = after(axis);
            let mut rest = sizes.clone();
            rest.remove(axis);
            let y = n.slice("pick", x, Part::whole(rank).at(axis, at), batched(&rest), false);
            let back = |index: &[u64]| {
                let mut whole = index.to_vec();
                whole.insert(axis, at);
                whole
            };
            (y, written.gather(rest, back))
        }
        Step::Heads { axis } if sizes[after(axis)].is_multiple_of(2) => {
            let axis = after(axis);
            let half = sizes[axis] / 2;
            // Two positions, half the axis apart, in front of the rest of it.
            let mut part = Part::whole(rank);
            part.axes.insert(1, Along { axis, step: half });
            let mut seen = sizes.clone();
            seen[axis] = half;
            seen.insert(1, 2);
            let y = n.slice("heads", x, part, batched(&seen), false);
            let back = |index: &[u64]| {
                let mut whole = index.to_vec();
                let head = whole.remove(1);
                whole[axis] += head * half;
                whole
            };
            (y, written.gather(seen, back))
        }
        _ => (x, written.clone()),
    }
}

/// The positions that `layout` sees of a storage in which the value of each element is its position.
fn seen(layout: &Layout) -> Vec<u64> {
    indices(&layout.shape.sizes()).map(|index| place(layout, 0, &index)).collect()
}

proptest! {
    #[test]
    fn a_chain_of_looks_sees_what_its_slow_twin_gathers(
        sizes in prop::collection::vec(1..5_u64, 1..4),
        steps in steps(),
    ) {
        let mut n = Network::new("chain");
        let mut x = n.input(&sizes);
        let whole = std::iter::once(1).chain(sizes).collect::<Vec<u64>>();
        // In each storage an element's value is its position; a copy is a new storage.
        let mut written = Written { elements: (0..whole.iter().product()).collect(), sizes: whole };
        for step in &steps {
            let before = n.nodes.len();
            let (y, now) = take(&mut n, x, &written, step);
            written = now;
            let copied = n.nodes[before..].iter().any(|node| matches!(node.op, Op::Copy(_)));
            if copied {
                // The network copied a tensor that was not contiguous, and views the copy.
                written.elements = (0..written.sizes.iter().product()).collect();
            }
            x = y;
            let layouts = n.layouts().unwrap();
            prop_assert_eq!(seen(&layouts[x as usize]), written.elements.clone(), "{:?}", steps);
        }
    }
}
