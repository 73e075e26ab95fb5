//! Figure 18b with data: what restored maps add to the gradients of weights, by how much smaller the maps were made.

use haversack_kernels::Isa;
use haversack_kernels::compress::{Blocks, Bound, Codec, Mode, decompress};
use haversack_kernels::quantise::{Bits, Format, Grouping, Layout, Packed, Rounding};
use haversack_training::CODEC_BOUND;

use crate::artefacts::prelude::*;
use crate::artefacts::trained::{MapKind, RECIPES, SavedMap, Trained, measured};

const ABOUT: &str = "Variance that restored maps add to the gradients of weights, over the gradients' squares";

/// Bits of a quantised value.
const BITS: [u8; 3] = [8, 4, 2];
/// Bounds of the codec, in tenths of what a training with data has.
const TENTHS: [u8; 4] = [1, 3, 10, 30];

/// How maps are stored and got back.
#[derive(Clone, Copy)]
enum Method {
    /// As GACT does it: so many bits a value, rounded at random.
    Quantised(u8),
    /// By FedHybrid's codec, within so many tenths of the bound.
    Mixed(u8),
}

impl Method {
    fn all() -> impl Iterator<Item = Self> {
        BITS.into_iter().map(Self::Quantised).chain(TENTHS.into_iter().map(Self::Mixed))
    }

    fn name(self) -> String {
        match self {
            Self::Quantised(bits) => format!("quantised/{bits}"),
            Self::Mixed(tenths) => format!("mixed/{tenths}"),
        }
    }

    /// What comes back of a map, and the bytes that it took.
    fn restored(self, map: &SavedMap, isa: Isa) -> Result<(Vec<f32>, u64)> {
        match self {
            Self::Quantised(bits) => quantised(map, bits, isa),
            Self::Mixed(tenths) => {
                let bound = Bound::OfTensor(CODEC_BOUND * f32::from(tenths) / 10.0);
                mixed(map, &Codec::new(Mode::Mixed { bits: None, bound, blocks: Blocks::DEFAULT }, isa)?)
            }
        }
    }
}

fn quantised(map: &SavedMap, bits: u8, isa: Isa) -> Result<(Vec<f32>, u64)> {
    let format = Format::new(Bits::new(bits)?, Grouping::Group256, Layout::Interleaved);
    let packed = Packed::quantise(&map.values, format, Rounding::Stochastic { seed: map.values.len() as u64 }, isa)?;
    let mut values = vec![0.0; map.values.len()];
    packed.dequantise_into(isa, &mut values)?;
    let words = packed.words().len() + packed.params().len();
    Ok((values, (words * size_of::<u32>()) as u64))
}

fn mixed(map: &SavedMap, codec: &Codec) -> Result<(Vec<f32>, u64)> {
    let (mut bytes, mut out, mut samples) = (0, Vec::new(), Vec::new());
    for sample in map.samples() {
        let mut values = vec![0.0; sample.len()];
        bytes += codec.compress(map.feature(&sample), &mut out)?.bytes;
        decompress(&out, codec.isa(), &mut values)?;
        samples.push(values);
    }
    Ok((map.of_samples(samples), bytes))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT, &RECIPES, variances)?;
    let mut records = Records::of("network,name,method,label,setting,ratio,variance,lo,hi");
    for recipe in RECIPES {
        for name in Method::all().map(Method::name) {
            let of = |what: &str| measured.value(&format!("{}/{name}/{what}", recipe.model));
            let (ratio, variance) = (of("ratio")?, of("variance")?);
            let (method, setting) = name.split_once('/').unwrap_or((&name, ""));
            let label = if method == "mixed" { "mixed compression" } else { "quantisation" };
            let numbers = [ratio.value, variance.value, variance.lo, variance.hi];
            records.row((recipe.model, recipe.name, method, label, setting, numbers))?;
        }
    }
    show(context, records, outcome)
}

/// What each method adds to the gradients of a trained network.
fn variances(trained: &Trained) -> Result<Vec<(String, &'static str, f64)>> {
    let isa = Isa::chosen()?;
    let exact = trained.gradients(|map| Ok(map.values.clone()))?;
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let all = squares(&mut exact.iter().copied().map(f64::from));
    let mut found = Vec::new();
    for method in Method::all() {
        let (whole, stored) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let restored = trained.gradients(|map| {
            let (values, bytes) = method.restored(map, isa)?;
            whole.set(whole.get() + size_of_val(&map.values[..]) as u64);
            stored.set(stored.get() + bytes);
            Ok(passing(map, values))
        })?;
        let added = squares(&mut exact.iter().zip(&restored).map(|(&x, &y)| f64::from(y) - f64::from(x)));
        found.push((format!("{}/ratio", method.name()), "factor", whole.get() as f64 / stored.get() as f64));
        found.push((format!("{}/variance", method.name()), "", added / all));
    }
    Ok(found)
}

/// What was positive lets gradients through whatever is left of it: a store keeps a bit of that beside the values.
fn passing(map: &SavedMap, mut restored: Vec<f32>) -> Vec<f32> {
    if map.kind == MapKind::Rectified {
        for (restored, &value) in restored.iter_mut().zip(&map.values) {
            *restored = if value > 0.0 { restored.max(f32::MIN_POSITIVE) } else { 0.0 };
        }
    }
    restored
}
