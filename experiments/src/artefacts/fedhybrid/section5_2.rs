//! Section 5.2: what ZRAM makes of the pages of trained maps, with lz4 and with zstd.

use strum::IntoEnumIterator;

use crate::artefacts::prelude::*;
use crate::artefacts::trained::{MapKind, RECIPES, SavedMap, Trained, measure};

const PLACE: &str = "fedhybrid/section5.2";
const ABOUT: &str = "ZRAM's classes of the pages of trained maps, with lz4 and zstd";

/// Bytes of a page.
const PAGE: usize = 4096;
/// What does not shrink to three quarters zsmalloc keeps whole (its huge class).
const HUGE: usize = PAGE / 4 * 3;
/// All kinds together.
const ALL: &str = "all";

/// The level of zstd that the kernel takes (`ZSTD_DEF_LEVEL` of `crypto/zstd.c`).
const LEVEL: i32 = 3;
/// What is said of the pages under lz4, and under zstd.
const SAID: [[&str; 3]; 2] =
    [["incompressible", "ratio-of-others", "ratio"], ["zstd-incompressible", "zstd-ratio-of-others", "zstd-ratio"]];

/// What a compressor makes of the pages that are not same-filled.
#[derive(Clone, Copy, Default)]
struct Packed {
    /// Pages that are kept whole.
    incompressible: usize,
    /// Bytes of the others, compressed.
    compressed: usize,
}

impl Packed {
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
    /// Pages of one word again and again, of which only the word is kept.
    same_filled: usize,
    /// The others under lz4, and under zstd.
    packed: [Packed; 2],
}

impl Pages {
    /// Counts the pages of `bytes`, too.
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
    const fn others(&self, packed: &Packed) -> usize {
        self.number - self.same_filled - packed.incompressible
    }

    /// Each quantity with its unit.
    fn values(&self) -> Vec<(&'static str, &'static str, f64)> {
        let share = |number: usize| number as f64 / self.number.max(1) as f64 * 100.0;
        let mut values = vec![("same-filled", "%", share(self.same_filled))];
        for (packed, [incompressible, ratio_of_others, ratio]) in self.packed.iter().zip(SAID) {
            let stored = packed.incompressible * PAGE + packed.compressed;
            let others = self.others(packed);
            // Without others there is nothing that became smaller.
            let smaller = if others > 0 { (others * PAGE) as f64 / packed.compressed as f64 } else { 1.0 };
            values.push((incompressible, "%", share(packed.incompressible)));
            values.push((ratio_of_others, "factor", smaller));
            values.push((ratio, "factor", (self.number * PAGE) as f64 / stored.max(1) as f64));
        }
        values
    }
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let measured = context.measured(PLACE, || measure(context, ABOUT, &RECIPES, classes))?;
    let mut outcome = Outcome::of("network,kind,quantity,unit,value,lo,hi");
    outcome.words("stand-ins", measured.trained_on());
    for recipe in RECIPES {
        let kinds: Vec<String> = MapKind::iter().map(|kind| kind.to_string()).chain([ALL.to_owned()]).collect();
        let of = |kind: &str, what: &str| measured.value(&format!("{}/{kind}/{what}", recipe.model));
        let kinds: Vec<String> = kinds.into_iter().filter(|kind| of(kind, "ratio").is_ok()).collect();
        for kind in &kinds {
            for what in ["same-filled"].into_iter().chain(SAID.into_iter().flatten()) {
                let Ok(value) = of(kind, what) else { continue };
                let numbers = [value.value, value.lo, value.hi];
                outcome.row((recipe.model, kind.as_str(), what, value.unit.as_str(), numbers))?;
            }
        }
        let share = |kind: &String, what| of(kind, what).map_or(0.0, |value| value.value);
        let same: Vec<f64> = kinds.iter().map(|kind| share(kind, "same-filled")).collect();
        let huge: Vec<f64> = kinds.iter().map(|kind| share(kind, "incompressible")).collect();
        let others: Vec<f64> = same.iter().zip(&huge).map(|(same, huge)| (100.0 - same - huge).max(0.0)).collect();
        let stack = Stack::new(kinds).part("same-filled", same).part("compressed", others);
        let stack = stack.part("incompressible", huge);
        outcome.panel(recipe.name, stack, Axis::default(), from_zero("pages", "%"));
    }
    for recipe in RECIPES {
        let ratio = measured.value(&format!("{}/{ALL}/ratio", recipe.model))?.value;
        outcome.quantity(&format!("ratio of all maps, {}", recipe.name), "×", [ratio]);
    }
    Ok(outcome)
}

/// The classes of each kind of map of a trained network, and of all.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_same_filled_incompressible_or_smaller() {
        // Zeros; one byte counted up, whose 256 values both find again after the first time; bits without order.
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
        // What is left of three pages: one whole, and the compressed one.
        let ratio = pages.values().into_iter().find(|value| value.0 == "ratio").unwrap().2;
        assert!((ratio - (3 * PAGE) as f64 / (PAGE + lz4.compressed) as f64).abs() < 1e-12);
    }
}
