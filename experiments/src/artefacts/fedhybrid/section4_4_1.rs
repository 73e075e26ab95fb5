//! Section 4.4.1: how many times smaller the codec makes trained maps, by what made them.

use haversack_kernels::Isa;
use haversack_kernels::compress::{Bound, Codec, FeatureMap, Kind, Mode, Shape, ratio_on_synthetic};
use haversack_training::CODEC_BOUND;
use strum::IntoEnumIterator;

use crate::artefacts::prelude::*;
use crate::artefacts::trained::{MapKind, RECIPES, SavedMap, Trained, measure};
use crate::measured::Measured;

const PLACE: &str = "fedhybrid/section4.4.1";
const ABOUT: &str = "How many times smaller FedHybrid's codec makes trained maps";

pub(super) static ARTEFACT: Artefact =
    Artefact::new("fedhybrid", "section4.4.1", "what the codec makes of trained maps, by what made them", run)
        .reading(&[PLACE]);

/// Bytes of values, what the codec makes of them, and what the simulator takes it to make of maps of their shape.
#[derive(Clone, Copy, Default)]
struct Sizes {
    whole: f64,
    compressed: f64,
    assumed: f64,
}

fn run(context: &Context<'_>) -> Result<Outcome> {
    let measured = context.measured(PLACE, || measure(context, ABOUT, &RECIPES, ratios))?;
    let mut outcome = Outcome::of("network,kind,ratio,lo,hi,assumed");
    outcome.words("stand-ins", measured.trained_on());
    for recipe in RECIPES {
        let (mut names, mut found, mut assumed) = (Vec::new(), Vec::new(), Vec::new());
        for kind in MapKind::iter() {
            let value = |what: &str| measured.value(&format!("{}/{kind}/{what}", recipe.model));
            let (Ok(ratio), Ok(simulated)) = (value("ratio"), value("assumed")) else { continue };
            outcome.row((recipe.model, kind.to_string(), [ratio.value, ratio.lo, ratio.hi, simulated.value]))?;
            names.push(kind.to_string());
            found.push(ratio.value);
            assumed.push(simulated.value);
        }
        let bars = Bars::new(names).series(BarSeries::new("trained maps", found));
        let bars = bars.series(BarSeries::new("what the simulator assumes", assumed));
        outcome.bars(recipe.name, bars, from_zero("compression", "×"));
    }
    offer(&mut outcome, &measured);
    Ok(outcome)
}

/// The ratios of each kind over all networks, for the notes.
fn offer(outcome: &mut Outcome, measured: &Measured) {
    for kind in MapKind::iter() {
        for what in ["ratio", "assumed"] {
            let end = format!("/{kind}/{what}");
            let values = measured.values.iter().filter(|value| value.id.ends_with(&end)).map(|value| value.value);
            outcome.quantity(&format!("{what} of {kind} maps"), "×", values);
        }
    }
}

/// What the codec comes to on each kind of map of a trained network.
fn ratios(trained: &Trained) -> Result<Vec<(String, &'static str, f64)>> {
    let codec = Codec::new(Mode::mixed(Bound::OfTensor(CODEC_BOUND)), Isa::chosen()?)?;
    let maps = trained.maps()?;
    let mut values = Vec::new();
    for kind in MapKind::iter() {
        let mut all = Sizes::default();
        for map in maps.iter().filter(|map| map.kind == kind) {
            let found = sizes(&codec, map)?;
            all.whole += found.whole;
            all.compressed += found.compressed;
            all.assumed += found.assumed;
        }
        if all.whole > 0.0 {
            values.push((format!("{kind}/ratio"), "factor", all.whole / all.compressed));
            values.push((format!("{kind}/assumed"), "factor", all.whole / all.assumed));
        }
    }
    Ok(values)
}

fn sizes(codec: &Codec, map: &SavedMap) -> Result<Sizes> {
    let whole = size_of_val(&map.values[..]) as f64;
    Ok(Sizes { whole, compressed: compressed(codec, map)? as f64, assumed: whole / assumed(map)? })
}

/// Bytes of all samples of a map, compressed.
pub(super) fn compressed(codec: &Codec, map: &SavedMap) -> Result<u64> {
    let (mut bytes, mut out) = (0, Vec::new());
    let (channels, height, width) = (map.map.channels, map.map.height, map.map.width);
    for values in map.samples() {
        bytes += codec.compress(FeatureMap { values: &values, channels, height, width }, &mut out)?.bytes;
    }
    Ok(bytes)
}

/// What a run without data takes the codec to come to: on a synthetic map of the same shape, never below one.
fn assumed(map: &SavedMap) -> Result<f64> {
    let shape = Shape { channels: map.map.channels, height: map.map.height, width: map.map.width };
    let kind = if map.map.are_tokens || shape.height != shape.width { Kind::Tokens } else { Kind::Rectified };
    let codec = Codec::new(Mode::mixed(Bound::OfTensor(CODEC_BOUND)), Isa::Scalar)?;
    Ok(ratio_on_synthetic(&codec, shape, kind)?.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::measured::committed;
    use crate::reproduce::readings::Readings;
    use crate::reproduce::reference::Reference;

    #[test]
    fn what_is_measured_again_lies_in_the_interval_that_was_committed() {
        let (reference, readings, cache) = (Reference::load().unwrap(), Readings::default(), Cache::new());
        let context = Context {
            seed: 2,
            full: true,
            artefact: &ARTEFACT,
            rows: Vec::new(),
            reference: &reference,
            readings: &readings,
            cache: &cache,
            kept: &Default::default(),
        };
        let trained = Trained::of(&context, RECIPES[0], 2).unwrap();
        let found = ratios(&trained).unwrap().into_iter().find(|(id, ..)| id == "rectified/ratio").unwrap().2;
        let measured = committed(PLACE).unwrap();
        let before = measured.value("lenet5/rectified/ratio").unwrap();
        // The third seed is 2; another instruction set adds in another order.
        assert!(before.holds(found) && (found / before.each[2] - 1.0).abs() < 0.01, "{found} for {before:?}");
    }
}
