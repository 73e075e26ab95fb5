//! Section 4.4.1: how many times smaller the codec makes trained maps, by what made them.

use haversack_devices::stack::CodecRatios;
use haversack_kernels::Isa;
use haversack_kernels::compress::{Bound, Codec, Mode};
use haversack_training::{CODEC_BOUND, codec_ratio_of};
use strum::IntoEnumIterator;

use crate::artefacts::prelude::*;
use crate::artefacts::trained::{MapKind, RECIPES, Recipe, SavedMap, Trained, measured};

const ABOUT: &str = "How many times smaller FedHybrid's codec makes trained maps";

/// The stack whose codec it is.
const STACK: &str = "mnn-2";

/// What a run without data takes the codec to come to on maps of a network.
fn assumed(context: &Context<'_>, recipe: Recipe) -> Result<CodecRatios> {
    let codec = context.stack(STACK)?.constants.codec.context("the stack has no codec")?;
    Ok(if recipe.data == "glyphs" { codec.pictures } else { codec.tokens })
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT, &RECIPES, ratios)?;
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

/// What the codec comes to on each kind of map of a trained network.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artefacts::trained::tests::trained_again;
    use crate::measured::committed;

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
}
