//! The mean change of a cohort, and how the server applies it to its weights.

use super::{LearningError, Result};

/// The rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServerRule {
    /// Adds the change: FedAvg (McMahan et al., AISTATS 2017), and FedProx, whose clients differ
    /// (Li et al., MLSys 2020).
    Add,
    /// Uses the change as a gradient of Yogi: FedYogi (Reddi et al., "Adaptive Federated Optimization",
    /// ICLR 2021, algorithm 2).
    Yogi(Yogi),
}

/// The constants of FedYogi.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yogi {
    /// The server's learning rate, η.
    pub rate: f32,
    /// The decay of the mean, β₁.
    pub first: f32,
    /// The decay of the mean square, β₂.
    pub second: f32,
    /// The adaptivity, τ: the smaller, the more adaptive.
    pub adaptivity: f32,
}

impl Default for Yogi {
    /// β₁, β₂ and τ as in the experiments of Reddi et al.; they tune the rate for each task, and 0.01 is our choice.
    fn default() -> Self {
        Self { rate: 0.01, first: 0.9, second: 0.99, adaptivity: 1e-3 }
    }
}

/// The server's weights, and the state of its rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The weights, in the order of the network's parameters.
    pub weights: Vec<f32>,
    rule: ServerRule,
    mean: Vec<f32>,
    square: Vec<f32>,
}

impl Server {
    /// A server that has seen no cohort yet.
    pub fn new(weights: Vec<f32>, rule: ServerRule) -> Self {
        let (mean, square) = match rule {
            ServerRule::Add => (Vec::new(), Vec::new()),
            ServerRule::Yogi(yogi) => (vec![0.0; weights.len()], vec![yogi.adaptivity.powi(2); weights.len()]),
        };
        Self { weights, rule, mean, square }
    }

    /// The rule's state for each weight, for a checkpoint: the mean and the mean square of changes; empty
    /// if the rule has no state.
    pub fn kept(&self) -> [&[f32]; 2] {
        [&self.mean, &self.square]
    }

    /// A server as it was when [`Self::weights`] and [`Self::kept`] were written; `None` if their lengths differ.
    pub fn restored(weights: Vec<f32>, rule: ServerRule, mean: Vec<f32>, square: Vec<f32>) -> Option<Self> {
        let fresh = Self::new(Vec::new(), rule);
        let kept = if fresh.rule == ServerRule::Add { 0 } else { weights.len() };
        (mean.len() == kept && square.len() == kept).then_some(Self { weights, rule, mean, square })
    }

    /// Applies the mean change of a cohort. Changes beyond the last weight are ignored.
    pub fn take(&mut self, change: &[f32]) {
        let ServerRule::Yogi(Yogi { rate, first, second, adaptivity }) = self.rule else {
            self.weights.iter_mut().zip(change).for_each(|(weight, change)| *weight += change);
            return;
        };
        let kept = self.mean.iter_mut().zip(&mut self.square);
        for ((weight, change), (mean, square)) in self.weights.iter_mut().zip(change).zip(kept) {
            let new = change * change;
            *mean = first * *mean + (1.0 - first) * change;
            // The sign of zero is zero, but f32's is one.
            let sign = if *square == new { 0.0 } else { (*square - new).signum() };
            *square -= (1.0 - second) * new * sign;
            *weight += rate * *mean / (square.sqrt() + adaptivity);
        }
    }
}

/// The contribution of one client.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// Its weight relative to the others, such as its number of samples.
    pub share: f64,
    /// The change of each of its weights.
    pub change: &'a [f32],
    /// The indices of its weights in the server's network ([`super::Narrowing::places`]); `None` if it has all of them.
    pub places: Option<&'a [u32]>,
}

/// The weighted mean change of each of `len` weights over the clients that have it (FedAvg: McMahan et al., AISTATS
/// 2017; for networks of several widths HeteroFL: Diao et al., ICLR 2021); zero if no client has it. Sums run in double
/// precision and in the order of the clients.
///
/// # Errors
/// A client with another number of weights.
pub fn mean_change(len: usize, clients: &[Contribution<'_>]) -> Result<Vec<f32>> {
    let (mut sums, mut shares) = (vec![0.0_f64; len], vec![0.0_f64; len]);
    for &Contribution { share, change, places } in clients {
        let (expected, found) = (places.map_or(len, <[u32]>::len), change.len());
        if expected != found || places.is_some_and(|places| places.iter().any(|&place| place as usize >= len)) {
            return Err(LearningError::Weights { expected, found });
        }
        for (index, &change) in change.iter().enumerate() {
            let place = places.map_or(index, |places| places[index] as usize);
            sums[place] += share * f64::from(change);
            shares[place] += share;
        }
    }
    let mean = |(sum, share): (f64, f64)| if share > 0.0 { (sum / share) as f32 } else { 0.0 };
    Ok(sums.into_iter().zip(shares).map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fedavg_adds_the_change() {
        let mut server = Server::new(vec![1.0, -2.0], ServerRule::Add);
        server.take(&[0.5, 0.25]);
        assert_eq!((server.weights.as_slice(), server.kept()), (&[1.5, -1.75][..], [&[][..], &[]]));
    }

    #[test]
    fn fedyogi_by_hand() {
        let yogi = Yogi { rate: 0.1, first: 0.5, second: 0.75, adaptivity: 0.5 };
        let mut server = Server::new(vec![1.0], ServerRule::Yogi(yogi));
        // Mean 0.5 · 0 + 0.5 · 1 = 0.5; the square was 0.25, below 1, and becomes 0.25 + 0.25 · 1 = 0.5.
        server.take(&[1.0]);
        let first = 1.0 + 0.1 * 0.5 / (0.5_f32.sqrt() + 0.5);
        assert!((server.weights[0] - first).abs() < 1e-6 && server.kept() == [&[0.5][..], &[0.5]]);
        // Mean 0.5 · 0.5 + 0.5 · 0.5 = 0.5; the square is above 0.25, and becomes 0.5 − 0.25 · 0.25 = 0.4375.
        server.take(&[0.5]);
        let second = first + 0.1 * 0.5 / (0.4375_f32.sqrt() + 0.5);
        assert!((server.weights[0] - second).abs() < 1e-6 && server.kept() == [&[0.5][..], &[0.4375]]);
    }

    #[test]
    fn a_server_goes_on_from_what_was_kept() {
        let rule = ServerRule::Yogi(Yogi::default());
        let mut server = Server::new(vec![1.0, 2.0], rule);
        server.take(&[0.5, -0.5]);
        let [mean, square] = server.kept().map(<[f32]>::to_vec);
        let mut again = Server::restored(server.weights.clone(), rule, mean, square).unwrap();
        again.take(&[0.1, 0.2]);
        server.take(&[0.1, 0.2]);
        assert_eq!(again, server);
        assert_eq!(Server::restored(vec![1.0], rule, vec![], vec![]), None);
        assert_eq!(Server::restored(vec![1.0], ServerRule::Add, vec![1.0], vec![]), None);
    }
}
