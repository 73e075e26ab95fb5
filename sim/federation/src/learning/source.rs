//! Which samples a client has.

use std::sync::Arc;

use haversack_engine::Stream;
use haversack_numerics::batch::{MiniBatch, Samples};
use haversack_workloads::data::{DataSet, Inputs, Part};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Gamma};

use super::deal::Deal;
use super::stand_in::StandIn;
use super::synthetic::Synthetic;
use super::{LearningError, Result};
use crate::draw::place_of;

/// How the classes of clients' samples differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Labels {
    /// All clients have the classes of the whole set.
    Even,
    /// Each client's shares of the classes are drawn from a Dirichlet distribution: the smaller `alpha`, the fewer
    /// classes (Hsu et al., 2019).
    Dirichlet {
        /// The concentration, above 0.
        alpha: f64,
    },
}

impl Labels {
    /// # Errors
    /// A concentration that is not above 0.
    pub fn check(self) -> Result {
        match self {
            Self::Dirichlet { alpha } if !(alpha > 0.0 && alpha.is_finite()) => {
                Err(LearningError::Setting { field: "alpha", value: alpha.to_string(), expected: "a number above 0" })
            }
            _ => Ok(()),
        }
    }
}

/// How many samples of each class a client has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding(pub Vec<u32>);

impl Holding {
    /// The samples of client number `client`: `samples` samples of `classes` classes. The classes are weighted by
    /// `weights`, or equally if that is empty.
    pub fn draw(seed: u64, client: u32, samples: u32, classes: usize, labels: Labels, weights: &[f64]) -> Self {
        let mut stream = Stream::new(seed, &format!("client {client}"), "classes");
        let mut counts = vec![0; classes];
        let shares = shares(&mut stream, classes, labels, weights);
        let Some(last) = classes.checked_sub(1) else { return Self(counts) };
        for _ in 0..samples {
            let class = place_of(stream.random(), shares.iter().copied());
            counts[class.unwrap_or(last)] += 1;
        }
        Self(counts)
    }

    /// All its samples.
    pub fn samples(&self) -> u32 {
        self.0.iter().sum()
    }
}

/// The share of each class.
pub(super) fn shares(stream: &mut Stream, classes: usize, labels: Labels, weights: &[f64]) -> Vec<f64> {
    let gamma = match labels {
        Labels::Even => None,
        Labels::Dirichlet { alpha } => Gamma::new(alpha, 1.0).ok(),
    };
    let weight = |class: usize| weights.get(class).copied().unwrap_or(1.0);
    let drawn = (0..classes).map(|class| weight(class) * gamma.map_or(1.0, |gamma| gamma.sample(stream)));
    let drawn: Vec<f64> = drawn.collect();
    let sum: f64 = drawn.iter().sum();
    if sum > 0.0 && sum.is_finite() {
        return drawn.into_iter().map(|share| share / sum).collect();
    }
    // The concentration is so small that no share is above zero: a single class.
    let whole: f64 = (0..classes).map(weight).sum();
    let single = place_of(stream.random::<f64>() * whole, (0..classes).map(weight));
    (0..classes).map(|class| if Some(class) == single { 1.0 } else { 0.0 }).collect()
}

/// The weights of classes for each group of clients: how strongly groups differ in their classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups(Vec<Vec<f64>>);

impl Groups {
    /// Groups of the given `sizes`, which add up to one. Each group owns as large a part of the `classes`, in an
    /// order that the seed draws. `apart` moves the shares of its clients from all classes to its own: with 0,
    /// groups do not differ; with 1, clients have only their group's classes. The shares of classes over all
    /// groups together stay the same.
    pub fn new(seed: u64, classes: usize, sizes: &[f64], apart: f64) -> Self {
        let mut order: Vec<usize> = (0..classes).collect();
        order.shuffle(&mut Stream::new(seed, "groups", "classes"));
        let mut first = 0.0;
        let weights = sizes.iter().map(|&size| {
            let own = [first, first + size].map(|end| end * classes as f64);
            first += size;
            let mut weights = vec![1.0 - apart; classes];
            for (place, &class) in order.iter().enumerate() {
                let part = (own[1].min(place as f64 + 1.0) - own[0].max(place as f64)).max(0.0);
                weights[class] += apart * part / size.max(f64::MIN_POSITIVE);
            }
            weights
        });
        Self(weights.collect())
    }

    /// The weights of a group's clients; all equal if groups do not differ.
    pub fn of(&self, group: u8) -> &[f64] {
        self.0.get(usize::from(group)).map_or(&[], Vec::as_slice)
    }
}

/// Where clients' samples come from.
#[derive(Debug)]
pub enum Source {
    /// The train part of a data set: a client's samples are drawn from it, so that clients of a large population share some.
    Set {
        /// The set.
        set: Arc<DataSet>,
        /// The indices of each class's samples in its train part.
        by_class: Vec<Vec<u32>>,
    },
    /// The train part of a data set, each sample of which belongs to one client, whatever the client's [`Holding`].
    Dealt {
        /// The set.
        set: Arc<DataSet>,
        /// The samples of each client.
        deal: Deal,
    },
    /// Samples made for each client.
    Synthetic(Synthetic),
}

impl Source {
    /// The samples of a data set.
    pub fn of_set(set: impl Into<Arc<DataSet>>) -> Self {
        let set = set.into();
        Self::Set { by_class: by_class(&set), set }
    }

    /// The samples of a data set, divided among clients with these sizes and weights of classes, as in [`Deal::new`].
    pub fn dealt(set: impl Into<Arc<DataSet>>, seed: u64, clients: &[(u32, &[f64])], labels: Labels) -> Self {
        let set = set.into();
        Self::Dealt { deal: Deal::new(seed, &by_class(&set), clients, labels), set }
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        match self {
            Self::Set { set, .. } | Self::Dealt { set, .. } => set.number_of_classes,
            Self::Synthetic(_) => Synthetic::CLASSES,
        }
    }

    /// The samples of client number `client` according to `holding`. Samples of a set are drawn without
    /// repetition while the class lasts; a synthetic client has as many samples as `holding`, with classes
    /// from the client's own model.
    pub fn samples(&self, seed: u64, client: u32, holding: &Holding) -> MiniBatch {
        let (set, by_class) = match self {
            Self::Synthetic(synthetic) => return synthetic.samples(seed, client, holding.samples() as usize),
            Self::Set { set, by_class } => (set, by_class),
            Self::Dealt { set, deal } => {
                let places: Vec<usize> = deal.of(client).iter().map(|&place| place as usize).collect();
                return batch(set, Part::Train, &places);
            }
        };
        let mut stream = Stream::new(seed, &format!("client {client}"), "samples");
        let mut indices = Vec::with_capacity(holding.samples() as usize);
        for (places, &count) in by_class.iter().zip(&holding.0) {
            let (mut rest, mut left) = (Vec::new(), if places.is_empty() { 0 } else { count });
            while left > 0 {
                if rest.is_empty() {
                    rest.clone_from(places);
                }
                indices.push(rest.swap_remove(stream.random_range(0..rest.len())) as usize);
                left -= 1;
            }
        }
        batch(set, Part::Train, &indices)
    }

    /// The samples on which the server's weights are tested: the test part of a set, or further ones of
    /// the federation's `clients`.
    pub fn test(&self, seed: u64, clients: u32) -> MiniBatch {
        match self {
            Self::Set { set, .. } | Self::Dealt { set, .. } => {
                batch(set, Part::Test, &(0..set.test.len()).collect::<Vec<_>>())
            }
            Self::Synthetic(synthetic) => synthetic.test(seed, clients),
        }
    }

    /// # Errors
    /// A network that takes other samples.
    pub fn check(&self, stand_in: &StandIn) -> Result {
        let found = match self {
            Self::Set { set, .. } | Self::Dealt { set, .. } => set.form.elements(),
            Self::Synthetic(_) => Synthetic::FEATURES,
        };
        let expected = stand_in.sample_values();
        if expected == found { Ok(()) } else { Err(LearningError::Samples { expected, found }) }
    }
}

/// The indices of each class's samples in the train part.
fn by_class(set: &DataSet) -> Vec<Vec<u32>> {
    let mut by_class = vec![Vec::new(); set.number_of_classes];
    for (place, &label) in (0..).zip(&set.train.labels) {
        by_class[usize::from(label)].push(place);
    }
    by_class
}

fn batch(set: &DataSet, part: Part, indices: &[usize]) -> MiniBatch {
    let found = set.mini_batch(part, indices, None);
    let samples = match found.inputs {
        Inputs::Images(values) => Samples::Values(values),
        Inputs::Tokens(ids) => Samples::Ids(ids),
    };
    MiniBatch { len: indices.len(), samples, labels: found.labels }
}
