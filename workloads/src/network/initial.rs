//! The content of parameters and buffers before training.

use super::{Network, Storage, StorageId};
use crate::data::Draws;
use crate::error::{Result, WorkloadError};

/// The content of a parameter or a buffer before training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// One number everywhere.
    Constant(f32),
    /// Numbers drawn evenly from −`bound` to `bound`.
    Uniform {
        /// The largest.
        bound: f32,
    },
    /// Numbers drawn from a normal distribution around zero.
    Normal {
        /// Its standard deviation.
        deviation: f32,
    },
    /// The integers `first`, `first + 1`, …: positions.
    Counting {
        /// The first of them.
        first: i64,
    },
    /// For each pair of positions in a window, the number of their distance: Swin's index into its table of biases.
    RelativePositions {
        /// The window's side.
        side: u64,
    },
    /// The values that an imported file gives.
    Imported,
}

impl Initial {
    /// Zeros: biases, means, labels of types.
    pub(crate) const ZEROS: Self = Self::Constant(0.0);
    /// Ones: the weights of normalisations, variances.
    pub(crate) const ONES: Self = Self::Constant(1.0);

    /// PyTorch's default for the weight and the bias of a layer whose outputs each read `fan_in` values: Kaiming's
    /// uniform distribution with a = √5 (He et al., ICCV 2015) has the bound √(6 / ((1 + a²) fan_in)), which is
    /// 1/√fan_in, as its biases have.
    pub fn of_layer(fan_in: u64) -> Self {
        Self::Uniform { bound: 1.0 / (fan_in.max(1) as f32).sqrt() }
    }
}

/// The purpose of the random streams of initial weights.
const PURPOSE: &str = "initial values";

impl Network {
    /// The fp32 values of a parameter or a buffer before training: those of the imported file, or drawn from (`seed`,
    /// its name), independent of the rest of the network.
    ///
    /// # Errors
    /// A tensor whose values before training are not known.
    pub fn initial_floats(&self, storage: StorageId, seed: u64) -> Result<Vec<f32>> {
        let held = self.storage(storage);
        let count = (held.bytes.fixed / super::FP32) as usize;
        let mut draws = Draws::of_name(seed, PURPOSE, &held.name);
        match held.initial {
            Some(Initial::Constant(value)) => Ok(vec![value; count]),
            Some(Initial::Uniform { bound }) => Ok((0..count).map(|_| (2.0 * draws.unit() - 1.0) * bound).collect()),
            Some(Initial::Normal { deviation }) => Ok((0..count).map(|_| draws.normal() * deviation).collect()),
            Some(Initial::Imported) => match self.imported.as_ref().and_then(|values| values.floats(storage)) {
                Some(values) => Ok(values),
                None => Err(unknown(held, "a file that is imported with its values, and that holds this one's")),
            },
            _ => Err(unknown(held, "a parameter or a buffer of fp32 values that are known beforehand")),
        }
    }

    /// The integers of a buffer before training.
    ///
    /// # Errors
    /// A buffer whose integers before training are not known.
    pub fn initial_integers(&self, storage: StorageId) -> Result<Vec<i64>> {
        let held = self.storage(storage);
        let count = held.bytes.fixed / super::INT64;
        match held.initial {
            Some(Initial::Constant(0.0)) => Ok(vec![0; count as usize]),
            Some(Initial::Counting { first }) => Ok((first..).take(count as usize).collect()),
            Some(Initial::RelativePositions { side }) => Ok(relative_positions(side.cast_signed())),
            _ => Err(unknown(held, "a buffer of integers that are known beforehand")),
        }
    }

    /// Whether the content of `storage` before training is known.
    pub(super) fn knows(&self, storage: StorageId) -> bool {
        match self.storage(storage).initial {
            None => false,
            Some(Initial::Imported) => self.imported.as_ref().is_some_and(|values| values.holds(storage)),
            Some(_) => true,
        }
    }
}

fn unknown(held: &Storage, expected: &str) -> WorkloadError {
    let (name, bytes) = (&held.name, held.bytes.fixed);
    WorkloadError::Refused(format!("{name} ({bytes} bytes) has no initial values; expected {expected}"))
}

/// Swin's index (Liu et al., ICCV 2021, section 3.2) as torchvision numbers it: rows of distances, then columns.
fn relative_positions(side: i64) -> Vec<i64> {
    let positions = || (0..side * side).map(|place| (place / side, place % side));
    let index = |(row, column): (i64, i64), (other_row, other_column): (i64, i64)| {
        (row - other_row + side - 1) * (2 * side - 1) + column - other_column + side - 1
    };
    positions().flat_map(|from| positions().map(move |to| index(from, to))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models;

    #[test]
    fn values_are_as_their_distribution_says() {
        let mut n = Network::new("n");
        let of = |n: &mut Network, name: &str, initial| {
            let parameter = n.weight(name, &[100, 100], initial, true);
            n.parameter(parameter).storage
        };
        let even = of(&mut n, "even", Initial::of_layer(100));
        let normal = of(&mut n, "normal", Initial::Normal { deviation: 0.02 });
        let even = n.initial_floats(even, 1).unwrap();
        // 1/√100; the mean of 10,000 has a deviation of 0.1/√3/100 = 0.0006.
        assert!(even.iter().all(|value| value.abs() <= 0.1));
        assert!(even.iter().any(|value| *value > 0.099) && even.iter().any(|value| *value < -0.099));
        assert!(even.iter().sum::<f32>().abs() / 1e4 < 0.003);
        let normal = n.initial_floats(normal, 1).unwrap();
        let variance = normal.iter().map(|value| value * value).sum::<f32>() / 1e4;
        // The variance of a variance: 2/n, so that √ of it deviates by 0.7%.
        assert!((variance.sqrt() / 0.02 - 1.0).abs() < 0.03, "{variance}");
        assert!(normal.iter().any(|value| value.abs() > 0.06));
    }

    #[test]
    fn values_follow_from_seed_and_name_alone() {
        let mut alone = Network::new("alone");
        let p = alone.weight("w", &[8], Initial::of_layer(8), true);
        let alone = |seed| alone.initial_floats(alone.parameter(p).storage, seed).unwrap();
        let mut beside = Network::new("beside");
        let other = beside.weight("v", &[8], Initial::of_layer(8), true);
        let p = beside.weight("w", &[8], Initial::of_layer(8), true);
        let beside = |p| beside.initial_floats(beside.parameter(p).storage, 7).unwrap();
        assert_eq!(alone(7), beside(p));
        assert_ne!(alone(8), beside(p));
        assert_ne!(beside(other), beside(p));
    }

    #[test]
    fn what_every_model_holds_before_training_has_its_shape_and_is_known() {
        for model in models::MODELS.iter() {
            let n = models::build(model.id, None).unwrap();
            for parameter in &n.parameters {
                assert_eq!(parameter.dims.iter().product::<u64>(), parameter.elements, "{}", parameter.name);
                assert!(n.knows(parameter.storage), "{}: {}", model.id, parameter.name);
            }
        }
        let n = models::build("resnet8-cifar", None).unwrap();
        let held = |name: &str| {
            let (storage, _) = (0..).zip(&n.storages).find(|(_, storage)| storage.name == name).unwrap();
            n.initial_floats(storage, 0).unwrap()
        };
        assert_eq!(held("bn1.weight"), [1.0; 16]);
        assert_eq!(held("bn1.running_mean"), [0.0; 16]);
        assert_eq!(held("bn1.running_var"), [1.0; 16]);
    }

    #[test]
    fn distances_are_numbered_by_row_then_column() {
        // Positions (0,0), (0,1), (1,0), (1,1); the distance (0,0) is 1·3 + 1 = 4, (0,−1) 3, (−1,0) 1, (−1,−1) 0.
        assert_eq!(relative_positions(2)[..4], [4, 3, 1, 0]);
        // From (1,1): (1,1) → 8, (1,0) → 7, (0,1) → 5, (0,0) → 4.
        assert_eq!(relative_positions(2)[12..], [8, 7, 5, 4]);
    }

    #[test]
    fn an_activation_has_none() {
        let n = models::build("lenet5", None).unwrap();
        let made = n.value(n.nodes[0].output).storage;
        let error = n.initial_floats(made, 0).unwrap_err().to_string();
        assert!(error.contains("conv1"), "{error}");
    }
}
