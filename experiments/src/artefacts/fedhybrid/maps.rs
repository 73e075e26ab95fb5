//! Properties of trained maps, and the effect of FedHybrid's codec and the kernel's ZRAM on them.

use haversack_devices::stack::CodecRatios;
use haversack_kernels::Isa;
use haversack_kernels::compress::{Blocks, Bound, Codec, Mode, decompress};
use haversack_kernels::quantise::{Bits, Format, Grouping, Layout, Packed, Rounding};
use haversack_training::{CODEC_BOUND, codec_ratio_of};
use strum::IntoEnumIterator;

use crate::artefacts::prelude::*;
use crate::artefacts::trained::{MapKind, RECIPES, Recipe, SavedMap, Trained, measured};
use crate::measured::Measured;

const ABOUT_OUTLIERS: &str = "Channels with outliers in trained maps";

/// A record of all measurements of maps, including the pages that are neither same-filled nor kept whole.
fn of_maps(measured: &Measured) -> Result<Records> {
    let mut records = Records::of("network,of,quantity,name,unit,value,lo,hi");
    for value in &measured.values {
        let mut words = value.id.splitn(3, '/');
        let words: [&str; 3] = std::array::from_fn(|_| words.next().unwrap_or_default());
        let name = RECIPES.iter().find(|recipe| recipe.model == words[0]).map_or("", |recipe| recipe.name);
        records.row((words, name, value.unit.as_str(), [value.value, value.lo, value.hi]))?;
        if words[2] == "same-filled" {
            let whole = measured.value(&value.id.replace(words[2], "incompressible"))?.value;
            let compressed = (100.0 - value.value - whole).max(0.0);
            records.row(([words[0], words[1], "compressed"], name, "%", [compressed; 3]))?;
        }
    }
    Ok(records)
}

pub(super) fn figure9(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT_OUTLIERS, &RECIPES, outliers)?;
    show(context, of_maps(&measured)?, outcome)
}

/// The channels that the 3σ rule finds on each kind of map, and the largest outlier.
fn outliers(trained: &Trained) -> Result<Vec<(String, &'static str, f64)>> {
    let codec = Codec::new(Mode::mixed(Bound::OfTensor(CODEC_BOUND)), Isa::chosen()?)?;
    let maps = trained.maps()?;
    let mut values = Vec::new();
    for kind in MapKind::iter() {
        let (mut salient, mut all, mut out) = (0, 0, Vec::new());
        for map in maps.iter().filter(|map| map.kind == kind) {
            for sample in map.samples() {
                let found = codec.compress(map.feature(&sample), &mut out)?;
                salient += found.salient;
                all += found.salient + found.normal;
            }
        }
        if all > 0 {
            values.push((format!("{kind}/salient"), "%", salient as f64 / all as f64 * 100.0));
        }
    }
    let farthest = maps.iter().flat_map(reaches).max_by(f64::total_cmp).context("no map is saved")?;
    values.push(("channel/reach".to_owned(), "count", farthest));
    Ok(values)
}

/// For every channel of all samples of a map, the largest deviation from its mean, in standard deviations. Channels
/// with fewer than a hundred values are skipped.
fn reaches(map: &SavedMap) -> Vec<f64> {
    let plane = map.map.height * map.map.width;
    if plane < 100 {
        return Vec::new();
    }
    map.samples().flat_map(|sample| sample.chunks_exact(plane).map(reach).collect::<Vec<_>>()).collect()
}

fn reach(values: &[f32]) -> f64 {
    let number = values.len() as f64;
    let mean = values.iter().copied().map(f64::from).sum::<f64>() / number;
    let squares = values.iter().map(|&value| (f64::from(value) - mean).powi(2));
    let deviation = (squares.clone().sum::<f64>() / number).sqrt();
    if deviation > 0.0 { squares.fold(0.0, f64::max).sqrt() / deviation } else { 0.0 }
}

const ABOUT_RATIOS: &str = "How many times smaller FedHybrid's codec makes trained maps";

/// The stack with the codec.
const STACK: &str = "mnn-2";

/// The codec's ratios that a run without data assumes for the maps of a network.
fn assumed(context: &Context<'_>, recipe: Recipe) -> Result<CodecRatios> {
    let codec = context.stack(STACK)?.constants.codec.context("the stack has no codec")?;
    Ok(if recipe.data == "glyphs" { codec.pictures } else { codec.tokens })
}

pub(super) fn section4_4_1(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT_RATIOS, &RECIPES, ratios)?;
    let mut records = Records::of("network,name,kind,ratio,lo,hi,assumed");
    for recipe in RECIPES {
        let ratios = assumed(context, recipe)?;
        for kind in MapKind::iter() {
            let Ok(ratio) = measured.value(&format!("{}/{kind}/ratio", recipe.model)) else { continue };
            let numbers = [ratio.value, ratio.lo, ratio.hi, codec_ratio_of(&ratios, kind)];
            records.row((recipe.model, recipe.name, kind.to_string(), numbers))?;
        }
    }
    show(context, records, outcome)
}

/// The codec's ratio on each kind of map of a trained network.
fn ratios(trained: &Trained) -> Result<Vec<(String, &'static str, f64)>> {
    let codec = Codec::new(Mode::mixed(Bound::OfTensor(CODEC_BOUND)), Isa::chosen()?)?;
    let maps = trained.maps()?;
    let mut values = Vec::new();
    for kind in MapKind::iter() {
        let (mut whole, mut small) = (0, 0);
        for map in maps.iter().filter(|map| map.kind == kind) {
            whole += size_of_val(&map.values[..]);
            small += compressed(&codec, map)?;
        }
        if whole > 0 {
            values.push((format!("{kind}/ratio"), "factor", whole as f64 / small as f64));
        }
    }
    Ok(values)
}

/// Bytes of all samples of a map, compressed.
pub(super) fn compressed(codec: &Codec, map: &SavedMap) -> Result<u64> {
    let (mut bytes, mut out) = (0, Vec::new());
    for values in map.samples() {
        bytes += codec.compress(map.feature(&values), &mut out)?.bytes;
    }
    Ok(bytes)
}

const ABOUT_PAGES: &str = "ZRAM's classes of the pages of trained maps, with lz4 and zstd";

/// Bytes of a page.
const PAGE: usize = 4096;
/// Pages that do not shrink to three quarters are kept whole by zsmalloc (its huge class).
const HUGE: usize = PAGE / 4 * 3;
/// All kinds together.
const ALL: &str = "all";

/// The level of zstd that the kernel takes (`ZSTD_DEF_LEVEL` of `crypto/zstd.c`).
const LEVEL: i32 = 3;
/// The names of the quantities for lz4, and for zstd.
const SAID: [[&str; 3]; 2] =
    [["incompressible", "ratio-of-others", "ratio"], ["zstd-incompressible", "zstd-ratio-of-others", "zstd-ratio"]];

/// The result of a compressor on the pages that are not same-filled.
#[derive(Clone, Copy, Default)]
struct PackedPages {
    /// Pages that are kept whole.
    incompressible: usize,
    /// Bytes of the others, compressed.
    compressed: usize,
}

impl PackedPages {
    const fn add(&mut self, bytes: usize) {
        match bytes {
            HUGE.. => self.incompressible += 1,
            _ => self.compressed += bytes,
        }
    }
}

/// The classes of some pages.
#[derive(Clone, Copy, Default)]
struct Pages {
    number: usize,
    /// Pages that repeat one word, of which only the word is kept.
    same_filled: usize,
    /// The others, compressed by lz4 and by zstd.
    packed: [PackedPages; 2],
}

impl Pages {
    /// Adds the pages of `bytes`.
    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let mut zstd = zstd::bulk::Compressor::new(LEVEL)?;
        for page in bytes.chunks_exact(PAGE) {
            self.number += 1;
            let (words, _) = page.as_chunks::<8>();
            if words.windows(2).all(|pair| pair[0] == pair[1]) {
                self.same_filled += 1;
                continue;
            }
            self.packed[0].add(lz4_flex::block::compress(page).len());
            self.packed[1].add(zstd.compress(page)?.len());
        }
        Ok(())
    }

    /// Pages that a compressor makes smaller.
    const fn others(&self, packed: &PackedPages) -> usize {
        self.number - self.same_filled - packed.incompressible
    }

    /// Each quantity with its unit.
    fn values(&self) -> Vec<(&'static str, &'static str, f64)> {
        let share = |number: usize| number as f64 / self.number.max(1) as f64 * 100.0;
        let mut values = vec![("same-filled", "%", share(self.same_filled))];
        for (packed, [incompressible, ratio_of_others, ratio]) in self.packed.iter().zip(SAID) {
            let stored = packed.incompressible * PAGE + packed.compressed;
            let others = self.others(packed);
            // Without others no page became smaller.
            let smaller = if others > 0 { (others * PAGE) as f64 / packed.compressed as f64 } else { 1.0 };
            values.push((incompressible, "%", share(packed.incompressible)));
            values.push((ratio_of_others, "factor", smaller));
            values.push((ratio, "factor", (self.number * PAGE) as f64 / stored.max(1) as f64));
        }
        values
    }
}

pub(super) fn section5_2(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT_PAGES, &RECIPES, classes)?;
    show(context, of_maps(&measured)?, outcome)
}

/// The page classes of each kind of map of a trained network, and of all.
fn classes(trained: &Trained) -> Result<Vec<(String, &'static str, f64)>> {
    let maps = trained.maps()?;
    let of = |maps: &mut dyn Iterator<Item = &SavedMap>| -> Result<Pages> {
        let mut pages = Pages::default();
        for map in maps {
            let bytes: Vec<u8> = map.values.iter().flat_map(|value| value.to_le_bytes()).collect();
            pages.add(&bytes)?;
        }
        Ok(pages)
    };
    let mut values = Vec::new();
    let mut add = |name: &str, pages: Pages| {
        let named = |(what, unit, value)| (format!("{name}/{what}"), unit, value);
        if pages.number > 0 {
            values.extend(pages.values().into_iter().map(named));
        }
    };
    for kind in MapKind::iter() {
        add(&kind.to_string(), of(&mut maps.iter().filter(|map| map.kind == kind))?);
    }
    add(ALL, of(&mut maps.iter())?);
    Ok(values)
}

const ABOUT_VARIANCE: &str = "Variance that restored maps add to the gradients of weights, over the gradients' squares";

/// Bits of a quantised value.
const BITS: [u8; 3] = [8, 4, 2];
/// Bounds of the codec, in tenths of the bound used in training with data.
const TENTHS: [u8; 4] = [1, 3, 10, 30];

/// Methods to store and restore maps.
#[derive(Clone, Copy)]
enum Method {
    /// As in GACT: this many bits per value, with stochastic rounding.
    Quantised(u8),
    /// By FedHybrid's codec, within this many tenths of the bound.
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

    /// The restored map, and the bytes of its stored form.
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

pub(super) fn figure18b(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT_VARIANCE, &RECIPES, variances)?;
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

/// The error that each method adds to the gradients of a trained network.
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

/// The gradient passes wherever the original was positive, even if the restored value is zero: a store keeps one bit
/// for this in addition to the values.
fn passing(map: &SavedMap, mut restored: Vec<f32>) -> Vec<f32> {
    if map.kind == MapKind::Rectified {
        for (restored, &value) in restored.iter_mut().zip(&map.values) {
            *restored = if value > 0.0 { restored.max(f32::MIN_POSITIVE) } else { 0.0 };
        }
    }
    restored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artefacts::trained::tests::trained_again;
    use crate::measured::committed;

    #[test]
    fn the_farthest_value_is_told_in_standard_deviations() {
        // One of four is 4: mean 1, variance (3 × 1 + 9) / 4 = 3, and 3 / √3 = √3.
        assert!((reach(&[0.0, 0.0, 4.0, 0.0]) - 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(reach(&[2.0, 2.0]), 0.0);
    }

    #[test]
    fn what_is_measured_again_lies_in_the_interval_that_was_committed() {
        let trained = trained_again("fedhybrid/section4.4.1", RECIPES[0], 2);
        let found = ratios(&trained).unwrap().into_iter().find(|(id, ..)| id == "rectified/ratio").unwrap().2;
        let measured = committed("fedhybrid/section4.4.1").unwrap();
        let before = measured.value("lenet5/rectified/ratio").unwrap();
        // The third seed is 2; it was measured before sums had one order on every machine.
        assert!(before.holds(found) && (found / before.each[2] - 1.0).abs() < 0.01, "{found} for {before:?}");
    }

    #[test]
    fn a_run_without_data_has_the_mean_of_what_was_measured() {
        let measured = committed("fedhybrid/section4.4.1").unwrap();
        let codec = haversack_devices::load_stack(STACK).unwrap().constants.codec.unwrap();
        let mean = |networks: &[&str], kind: MapKind| {
            let of = |network: &&str| measured.value(&format!("{network}/{kind}/ratio")).unwrap().value;
            networks.iter().map(of).sum::<f64>() / networks.len() as f64
        };
        // The dense map of LeNet-5 is ten numbers a sample.
        let pictures: [(&[&str], MapKind); 2] =
            [(&["lenet5", "resnet8-cifar"], MapKind::Rectified), (&["resnet8-cifar"], MapKind::Dense)];
        let of_tokens = [MapKind::Dense, MapKind::Normalised, MapKind::Smooth, MapKind::Attention];
        let tokens = of_tokens.map(|kind| (&codec.tokens, mean(&["transformer2-lora"], kind), kind));
        let pictures = pictures.map(|(networks, kind)| (&codec.pictures, mean(networks, kind), kind));
        for (ratios, mean, kind) in pictures.into_iter().chain(tokens) {
            // The file keeps two decimals.
            assert!((codec_ratio_of(ratios, kind) - mean).abs() <= 0.005 + 1e-9, "{kind}: {mean}");
        }
    }

    #[test]
    fn pages_are_same_filled_incompressible_or_smaller() {
        // Zeros; a counter in one byte, whose 256 values both compressors find again after the first
        // cycle; random bits.
        let noise = (0..PAGE as u32)
            .map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8 ^ ((place * place) >> 7) as u8);
        let mut bytes = vec![0; PAGE];
        bytes.extend((0..PAGE).map(|place| place as u8));
        bytes.extend(noise);
        bytes.extend([1; 100]);
        let mut pages = Pages::default();
        pages.add(&bytes).unwrap();
        let [lz4, zstd] = pages.packed;
        assert_eq!((pages.number, pages.same_filled), (3, 1));
        assert_eq!([lz4, zstd].map(|packed| (packed.incompressible, pages.others(&packed))), [(1, 1); 2]);
        for packed in [lz4, zstd] {
            assert!(packed.compressed > 256 && packed.compressed < 400, "{}", packed.compressed);
        }
        // The stored bytes of three pages: one whole, and a compressed one.
        let ratio = pages.values().into_iter().find(|value| value.0 == "ratio").unwrap().2;
        assert!((ratio - (3 * PAGE) as f64 / (PAGE + lz4.compressed) as f64).abs() < 1e-12);
    }
}
