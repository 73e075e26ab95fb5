//! Synthetic(α, β): samples whose classes follow from a separate linear model for each client (Li et al., "Federated
//! Optimization in Heterogeneous Networks", MLSys 2020, section 5.1).

use haversack_engine::Stream;
use haversack_numerics::batch::{MiniBatch, Samples};
use rand_distr::{Distribution, StandardNormal};

use super::{LearningError, Result};

/// How much clients differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// The variance of the mean of a client's model.
    alpha: f64,
    /// The variance of the mean of a client's samples.
    beta: f64,
}

/// A client's linear model, and the centre of its samples.
struct Client {
    /// Rows of [`Synthetic::FEATURES`], one a class.
    weights: Vec<f64>,
    bias: Vec<f64>,
    centre: Vec<f64>,
}

impl Synthetic {
    /// Values of a sample.
    pub const FEATURES: usize = 60;
    /// Classes.
    pub const CLASSES: usize = 10;
    /// The most samples of the test.
    const TESTED: u32 = 2000;

    /// # Errors
    /// A variance below 0.
    pub fn new(alpha: f64, beta: f64) -> Result<Self> {
        for (field, value) in [("alpha", alpha), ("beta", beta)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(LearningError::Setting { field, value: value.to_string(), expected: "a number from 0" });
            }
        }
        Ok(Self { alpha, beta })
    }

    /// The first `number` samples of a client.
    pub fn samples(&self, seed: u64, client: u32, number: usize) -> MiniBatch {
        let (mut values, mut labels) = (Vec::new(), Vec::new());
        self.draw(seed, client, "samples", number, &mut values, &mut labels);
        MiniBatch { len: number, samples: Samples::Values(values), labels }
    }

    /// Further samples of `clients` clients, the same number from each; with more clients than test samples,
    /// one from each of the first.
    pub fn test(&self, seed: u64, clients: u32) -> MiniBatch {
        let (clients, mut values, mut labels) = (clients.clamp(1, Self::TESTED), Vec::new(), Vec::new());
        for client in 0..clients {
            self.draw(seed, client, "test", (Self::TESTED / clients) as usize, &mut values, &mut labels);
        }
        MiniBatch { len: labels.len(), samples: Samples::Values(values), labels }
    }

    fn draw(&self, seed: u64, client: u32, purpose: &str, number: usize, values: &mut Vec<f32>, labels: &mut Vec<i64>) {
        let Client { weights, bias, centre } = self.client(seed, client);
        let mut stream = Stream::new(seed, &format!("client {client}"), purpose);
        for _ in 0..number {
            // The variance of value number j, from one, is j^-1.2.
            let sample: Vec<f64> = (1..)
                .zip(&centre)
                .map(|(j, centre)| centre + libm::pow(f64::from(j), -0.6) * normal(&mut stream))
                .collect();
            let score = |class: usize| {
                let row = &weights[class * Self::FEATURES..(class + 1) * Self::FEATURES];
                bias[class] + row.iter().zip(&sample).map(|(weight, value)| weight * value).sum::<f64>()
            };
            let best = (0..Self::CLASSES).max_by(|&a, &b| score(a).total_cmp(&score(b)));
            labels.push(best.unwrap_or(0) as i64);
            values.extend(sample.iter().map(|&value| value as f32));
        }
    }

    fn client(&self, seed: u64, client: u32) -> Client {
        let mut stream = Stream::new(seed, &format!("client {client}"), "model");
        let mean = self.alpha.sqrt() * normal(&mut stream);
        let middle = self.beta.sqrt() * normal(&mut stream);
        let mut around =
            |mean: f64, number: usize| (0..number).map(|_| mean + normal(&mut stream)).collect::<Vec<f64>>();
        Client {
            weights: around(mean, Self::CLASSES * Self::FEATURES),
            bias: around(mean, Self::CLASSES),
            centre: around(middle, Self::FEATURES),
        }
    }
}

fn normal(stream: &mut Stream) -> f64 {
    StandardNormal.sample(stream)
}
