//! What a cohort has learned together, and how the server takes it into its weights.

use super::{LearningError, Result};

/// The rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServerRule {
    /// Adds it: FedAvg (McMahan et al., AISTATS 2017), and FedProx, whose clients differ (Li et al., MLSys 2020).
    Add,
    /// Takes it for a gradient of Yogi: FedYogi (Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2).
    Yogi(Yogi),
}

/// The constants of FedYogi.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yogi {
    /// The server's learning rate, η.
    pub rate: f32,
    /// How slowly the mean moves, β₁.
    pub first: f32,
    /// How slowly the mean square moves, β₂.
    pub second: f32,
    /// How adaptive it is, τ: the smaller, the more.
    pub adaptivity: f32,
}

impl Default for Yogi {
    /// β₁, β₂ and τ as in the experiments of Reddi et al.; the rate, which they seek for each task, is a choice.
    fn default() -> Self {
        Self { rate: 0.01, first: 0.9, second: 0.99, adaptivity: 1e-3 }
    }
}

/// The server's weights, and what its rule keeps of them.
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

    /// What the rule keeps of each weight, for a checkpoint: the mean and the mean square of changes; empty where it keeps none.
    pub fn kept(&self) -> [&[f32]; 2] {
        [&self.mean, &self.square]
    }

    /// A server as it was when [`Self::weights`] and [`Self::kept`] were written; `None` if they are not of one length.
    pub fn restored(weights: Vec<f32>, rule: ServerRule, mean: Vec<f32>, square: Vec<f32>) -> Option<Self> {
        let fresh = Self::new(Vec::new(), rule);
        let kept = if fresh.rule == ServerRule::Add { 0 } else { weights.len() };
        (mean.len() == kept && square.len() == kept).then_some(Self { weights, rule, mean, square })
    }

    /// Takes the mean change of a cohort in. Changes beyond the last weight are left out.
    pub fn take(&mut self, change: &[f32]) {
        let ServerRule::Yogi(Yogi { rate, first, second, adaptivity }) = self.rule else {
            self.weights.iter_mut().zip(change).for_each(|(weight, change)| *weight += change);
            return;
        };
        let kept = self.mean.iter_mut().zip(&mut self.square);
        for ((weight, change), (mean, square)) in self.weights.iter_mut().zip(change).zip(kept) {
            let new = change * change;
            *mean = first * *mean + (1.0 - first) * change;
            // The sign of nothing is nothing, where f32's is one.
            let sign = if *square == new { 0.0 } else { (*square - new).signum() };
            *square -= (1.0 - second) * new * sign;
            *weight += rate * *mean / (square.sqrt() + adaptivity);
        }
    }
}

/// What one client contributes.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// How much it counts beside the others, such as its number of samples.
    pub share: f64,
    /// The change of each of its weights.
    pub change: &'a [f32],
    /// The places of its weights in the server's network ([`super::Narrowing::places`]); `None` if it has all of them.
    pub places: Option<&'a [u32]>,
}

/// The weighted mean change of each of `len` weights over the clients that have it (FedAvg: McMahan et al., AISTATS 2017; for
/// networks of several widths HeteroFL: Diao et al., ICLR 2021); zero where no client has it. Sums run in double precision and in
/// the order of the clients.
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
