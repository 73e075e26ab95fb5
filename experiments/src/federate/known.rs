//! What a federation has learned so far: the row of its part in the log.
//!
//! Rounds themselves are simulated again, which takes no time beside learning; what the phones of the rounds before have
//! learned is read.

use haversack_federation::federation::Learned;
use haversack_federation::learning::{Server, ServerRule};
use serde::{Deserialize, Serialize};

use crate::work::bits;

/// What was learned in the rounds so far, and the server after the last of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Known {
    rounds: Vec<Round>,
    #[serde(with = "bits")]
    weights: Vec<f32>,
    /// The mean and the mean square of changes that the server's rule keeps.
    #[serde(with = "bits")]
    mean: Vec<f32>,
    #[serde(with = "bits")]
    square: Vec<f32>,
}

/// What a round has taught.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Round {
    #[serde(with = "bits")]
    losses: Vec<f64>,
    accuracy: Option<f64>,
}

impl Known {
    /// The number of rounds.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds.len() as u64
    }

    /// What was learned in a round, from one.
    pub(super) fn learned(&self, round: u32) -> Option<Learned> {
        let Round { losses, accuracy } = self.rounds.get(round.checked_sub(1)? as usize)?.clone();
        Some(Learned { losses, accuracy })
    }

    /// The server as it was after the last round; `None` before the first.
    pub(super) fn server(&self, rule: ServerRule) -> Option<Server> {
        let Self { rounds, weights, mean, square } = self.clone();
        if rounds.is_empty() { None } else { Server::restored(weights, rule, mean, square) }
    }

    /// Takes in what a round has taught.
    pub(super) fn add(&mut self, Learned { losses, accuracy }: Learned, server: &Server) {
        self.rounds.push(Round { losses, accuracy });
        let [mean, square] = server.kept();
        (self.weights, self.mean, self.square) = (server.weights.clone(), mean.to_vec(), square.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_comes_back_to_the_bit() {
        let learned = [
            Learned { losses: vec![0.1 + 0.2, 1e-300], accuracy: Some(0.3) },
            Learned { losses: vec![], accuracy: None },
        ];
        let server = Server::new(vec![0.1, -0.0], ServerRule::Add);
        let mut known = Known::default();
        assert_eq!(known.server(ServerRule::Add), None);
        learned.iter().for_each(|learned| known.add(learned.clone(), &server));
        let text = serde_json::to_string(&known).unwrap();
        let read: Known = serde_json::from_str(&text).unwrap();
        assert_eq!((read.rounds(), read.server(ServerRule::Add)), (2, Some(server)));
        assert_eq!(
            [1, 2, 3].map(|round| read.learned(round)),
            [Some(learned[0].clone()), Some(learned[1].clone()), None]
        );
        crate::fuzz::against("federation-checkpoint", &[text.into_bytes()], |bytes| {
            let _ = serde_json::from_slice::<Known>(bytes).map(|known| known.server(ServerRule::Add));
        });
    }
}
