//! Figure 9 with data: channels with outliers in trained maps.

use haversack_kernels::Isa;
use haversack_kernels::compress::{Bound, Codec, Mode};
use haversack_training::CODEC_BOUND;
use strum::IntoEnumIterator;

use crate::artefacts::prelude::*;
use crate::artefacts::trained::{MapKind, RECIPES, SavedMap, Trained, measured};

const ABOUT: &str = "Channels with outliers in trained maps";

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT, &RECIPES, outliers)?;
    let mut records = Records::of("network,of,quantity,name,unit,value,lo,hi");
    for value in &measured.values {
        let mut words = value.id.splitn(3, '/');
        let words: [&str; 3] = std::array::from_fn(|_| words.next().unwrap_or_default());
        let name = RECIPES.iter().find(|recipe| recipe.model == words[0]).map_or("", |recipe| recipe.name);
        records.row((words, name, value.unit.as_str(), [value.value, value.lo, value.hi]))?;
    }
    show(context, records, outcome)
}

/// The channels that the 3σ rule finds on each kind of map, and the one with the farthest outlier.
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

/// Of every channel of all samples of a map its farthest value from its mean, in standard deviations. Of fewer than a
/// hundred values nothing can be told.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farthest_value_is_told_in_standard_deviations() {
        // One of four is 4: mean 1, variance (3 × 1 + 9) / 4 = 3, and 3 / √3 = √3.
        assert!((reach(&[0.0, 0.0, 4.0, 0.0]) - 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(reach(&[2.0, 2.0]), 0.0);
    }
}
