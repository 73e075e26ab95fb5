//! A separate stream of draws for each selection.

use haversack_engine::Stream;

/// Counts the selections of a round, so that no two of them share their draws.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    seed: u64,
    component: &'static str,
    round: u32,
    before: u32,
}

impl Turns {
    pub(super) const fn new(seed: u64, component: &'static str) -> Self {
        Self { seed, component, round: 0, before: 0 }
    }

    /// The draws of the next selection of `round`.
    pub(super) fn next(&mut self, round: u32) -> Stream {
        self.before = if round == self.round { self.before + 1 } else { 0 };
        self.round = round;
        let purpose = match self.before {
            0 => format!("round {round}"),
            before => format!("round {round}, after {before}"),
        };
        Stream::new(self.seed, self.component, &purpose)
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn no_two_turns_share_their_draws_and_the_first_of_a_round_is_the_rounds() {
        let mut turns = Turns::new(7, "selection");
        let mut drawn = |round| turns.next(round).random::<u64>();
        let found = [drawn(1), drawn(1), drawn(1), drawn(2), drawn(1)];
        assert_eq!(found[0], Stream::new(7, "selection", "round 1").random::<u64>());
        assert!(found[0] != found[1] && found[1] != found[2] && found[3] != found[0] && found[4] == found[0]);
    }
}
