//! `linear`: generated values whose class is the largest of ten linear scores.
//!
//! The generator of FedProx's Synthetic-IID (Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020,
//! section 5.1): one linear model for all, values of falling variance. Here value number j has the variance 1/j, since
//! roots are the same on every machine and other powers are not. A logistic regression learns it, and improves with the
//! number of samples that it sees.

use super::augmentation::Draws;
use super::set::{DataSet, MADE};

/// Values of a sample.
pub const VALUES: usize = 60;

/// The number of classes.
pub const CLASSES: usize = 10;

/// Another seed would be another set.
const SEED: u64 = 20;

/// The first value's standard deviation, in units of a byte.
const SCALE: f32 = 40.0;

/// A row of scores' weights for each class.
type Weights = [[f32; VALUES]; CLASSES];

/// The set.
pub fn data_set() -> DataSet {
    let weights = weights();
    let description = "60 values made by code: the largest of ten linear scores";
    DataSet::made("linear", description, CLASSES, [1, 1, VALUES], MADE, |index, bytes| sample(&weights, index, bytes))
}

fn weights() -> Weights {
    let mut draws = Draws::new(SEED, "linear scores", 0);
    let mut weights = [[0.0; VALUES]; CLASSES];
    weights.iter_mut().flatten().for_each(|weight| *weight = draws.normal());
    weights
}

/// Adds the bytes of sample number `index` and returns its class.
fn sample(weights: &Weights, index: u64, bytes: &mut Vec<u8>) -> u16 {
    let mut draws = Draws::new(SEED, "linear", index);
    let mut values = [0.0; VALUES];
    for (variance, value) in (1_u8..).zip(&mut values) {
        *value = draws.normal() / f32::from(variance).sqrt();
        bytes.push((128.0 + SCALE * *value).clamp(0.0, 255.0) as u8);
    }
    let score = |row: &[f32; VALUES]| row.iter().zip(&values).fold(0.0, |sum, (weight, value)| sum + weight * value);
    let mut best = (0, f32::NEG_INFINITY);
    for (class, row) in (0..).zip(weights) {
        let score = score(row);
        if score > best.1 {
            best = (class, score);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_share_and_the_bytes_are_the_known_ones() {
        let set = data_set();
        let mut counts = [0; CLASSES];
        set.train.labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        assert!(counts.iter().all(|&count| count > 200), "{counts:?}");
        assert_eq!(set.train.bytes().len(), 10_000 * VALUES);
        let first = &set.train.bytes()[..VALUES];
        let later = &set.train.bytes()[first.len()..2 * VALUES];
        assert!(first != later && set.train != set.test);
    }
}
