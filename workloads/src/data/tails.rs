//! `tails`, `tails-20` and `tails-4`: generated values in clusters, many of which are rare.
//!
//! Class number k, from one, has the weight 1 / (k + 10). It is several clusters, number m of which has the weight
//! 1 / (m + 1), around a centre of the class. A cluster varies in four directions of its class, and each value has
//! noise. The rarer a cluster, the more samples are needed to learn it, so that the error falls as a power of their
//! number (Hutter, "Learning Curve Theory", 2021); and a narrow network has no room for all of them.
//!
//! Measured by `sim/federation/examples/entry.rs`: the network `mlp`, all clients, 20 a round at random, FedAvg, one
//! local epoch in batches of 8 at rate 0.05 with momentum 0.9 and decay 5e-4; five seeds, parts and half the width two.
//!
//! | set | rounds | accuracy | over the largest class | last fifth | exponent | half the width |
//! |---|---|---|---|---|---|---|
//! | `tails`, 658 clients, ten epochs in batches of 64 at 0.045 | 120 | 82.6 % | 28.5 | +0.5 points | 0.098 | −7.2 points |
//! | `tails-4` | 400 | 89.0 % | 3.2 | −0.7 points | 0.227 | −7.8 points |
//! | `tails-20` | 200 | 73.8 % | 8.9 | +1.6 points, no plateau yet | 0.207 | −18.8 points |

use super::augmentation::Draws;
use super::set::DataSet;

/// Values of a sample.
pub const VALUES: usize = 32;

/// Directions in which the samples of a cluster vary.
const WAYS: usize = 4;

/// Deviations along a direction and of the noise, where that of the centres of classes is 1.
const WITHIN: f32 = 0.5;
const NOISE: f32 = 0.7;

/// The numbers added to those of a class and of a cluster in the denominators of the weights.
const FLATTENED: [f32; 2] = [10.0, 1.0];

/// The numbers of samples to choose on and to report on.
const LATER: [usize; 2] = [1000, 4000];

/// Another seed would be another set.
const SEED: u64 = 20;

/// A set of this kind.
#[derive(Clone, Copy, Debug)]
struct Shape {
    id: &'static str,
    classes: usize,
    /// Clusters of a class.
    clusters: usize,
    /// The deviation of the centres of clusters from those of their classes.
    spread: f32,
    /// Samples to train on.
    train: usize,
}

/// Enough samples for 658 clients of 200, 100 of 188 and 204 of 62.
const SHAPES: [Shape; 3] = [
    Shape { id: "tails", classes: 200, clusters: 12, spread: 1.0, train: 131_600 },
    Shape { id: "tails-20", classes: 20, clusters: 96, spread: 4.0, train: 18_800 },
    Shape { id: "tails-4", classes: 4, clusters: 384, spread: 4.0, train: 12_648 },
];

/// The set of that name; `None` if the name is unknown.
pub fn data_set(id: &str) -> Option<DataSet> {
    let shape = *SHAPES.iter().find(|shape| shape.id == id)?;
    let (centres, sum) = (Centres::drawn(shape), 1.0 + shape.spread * shape.spread);
    let description = format!("32 values made by code: {} classes of {} clusters", shape.classes, shape.clusters);
    // Four deviations of the values are within a byte.
    let scale = 32.0 / sum.sqrt();
    let numbers = [shape.train, LATER[0], LATER[1]];
    let sample = |index, bytes: &mut Vec<u8>| centres.sample(scale, index, bytes);
    Some(DataSet::made(id, &description, shape.classes, [1, 1, VALUES], numbers, sample))
}

/// Where clusters are, and how often they are drawn.
struct Centres {
    /// Where the share of each class ends, and within a class that of each cluster.
    ends: [Vec<f32>; 2],
    clusters: Vec<[f32; VALUES]>,
    /// For each class.
    ways: Vec<[[f32; VALUES]; WAYS]>,
}

impl Centres {
    fn drawn(Shape { id, classes, clusters, spread, .. }: Shape) -> Self {
        let mut draws = Draws::new(SEED, id, u64::MAX);
        let mut row = |deviation: f32| -> [f32; VALUES] { std::array::from_fn(|_| deviation * draws.normal()) };
        let (mut all, mut ways) = (Vec::with_capacity(classes * clusters), Vec::with_capacity(classes));
        for _ in 0..classes {
            let class = row(1.0);
            for _ in 0..clusters {
                let off = row(spread);
                all.push(std::array::from_fn(|value| class[value] + off[value]));
            }
            ways.push(std::array::from_fn(|_| row(WITHIN)));
        }
        let ends = [ends(classes, FLATTENED[0]), ends(clusters, FLATTENED[1])];
        Self { ends, clusters: all, ways }
    }

    /// Adds the bytes of sample number `index` and returns its class.
    fn sample(&self, scale: f32, index: u64, bytes: &mut Vec<u8>) -> u16 {
        let mut draws = Draws::new(SEED, "tails", index);
        let [class, cluster] = [0, 1].map(|level| {
            let (ends, unit) = (&self.ends[level], draws.unit());
            ends.partition_point(|&end| end <= unit).min(ends.len() - 1)
        });
        let mut values = self.clusters[class * self.ends[1].len() + cluster];
        for way in &self.ways[class] {
            let along = draws.normal();
            values.iter_mut().zip(way).for_each(|(value, way)| *value += along * way);
        }
        for value in values {
            // Four even ones less two have a variance of a third.
            let noise = (0..4).map(|_| draws.unit()).sum::<f32>() - 2.0;
            bytes.push((128.0 + scale * (value + NOISE * 3_f32.sqrt() * noise)).clamp(0.0, 255.0) as u8);
        }
        class as u16
    }
}

/// Where the shares of `number` weights 1 / (k + `flattened`) end, from 0 to 1.
fn ends(number: usize, flattened: f32) -> Vec<f32> {
    let mut sum = 0.0;
    let sums = (1..=number).map(|k| {
        sum += 1.0 / (k as f32 + flattened);
        sum
    });
    let mut ends: Vec<f32> = sums.collect();
    ends.iter_mut().for_each(|end| *end /= sum);
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_classes_are_rare_and_parts_differ() {
        let set = data_set("tails-20").unwrap();
        let mut counts = [0_u32; 20];
        set.train.labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        // The sum of 1/11 to 1/30 is 1.066: 8.5 and 3.1 of 100 are of the first and of the last class.
        assert!(counts[0].abs_diff(1603) < 160 && counts[19].abs_diff(588) < 100, "{counts:?}");
        assert!(set.train.bytes()[..VALUES] != set.test.bytes()[..VALUES] && data_set("tails-21").is_none());
    }
}
