use std::collections::HashMap;

use rand::RngExt;

use super::turns::Turns;
use super::{Feedback, Pool, Selector};

/// Any free phone.
#[derive(Clone, Debug)]
pub struct Random {
    turns: Turns,
}

impl Random {
    /// Draws follow from the seed and the round.
    pub const fn new(seed: u64) -> Self {
        Self { turns: Turns::new(seed, "random selection") }
    }
}

impl Selector for Random {
    fn select(&mut self, round: u32, number: usize, pool: &mut dyn Pool) -> Vec<u32> {
        let mut stream = self.turns.next(round);
        let mut selected = Vec::with_capacity(number);
        // The first steps of a shuffle of all phones (Fisher and Yates); only the moved entries are stored.
        let mut moved: HashMap<u32, u32> = HashMap::new();
        for place in 0..pool.number() {
            if selected.len() == number {
                break;
            }
            let other = stream.random_range(place..pool.number());
            let at = |place: u32| moved.get(&place).copied().unwrap_or(place);
            let (phone, displaced) = (at(other), at(place));
            moved.insert(other, displaced);
            if pool.is_free(phone) {
                selected.push(phone);
            }
        }
        selected
    }

    fn learn(&mut self, _: u32, _: &[Feedback], _: &dyn Pool) {}
}
