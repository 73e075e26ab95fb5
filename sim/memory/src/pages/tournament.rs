//! Both orders of the activations as tournaments: they replace the two trees of Algorithm 3, of which the
//! store needs only the maxima.
//!
//! A red-black tree keeps all activations in order, but picking victims needs only the first. A tournament keeps only
//! that: its leaves are the activations by id, every inner node stores the better of its two children, and the root is
//! the maximum. It needs neither pointers nor rebalancing nor a search for the old key. After a change of a key, the
//! matches are replayed upwards until a node that the changed id neither occupied before nor wins now; for random keys
//! that takes about three matches. The benchmark `pages` times it against
//! [`RedBlackTree`](super::red_black::RedBlackTree) and the standard library's `BTreeMap`.

use super::Tighter;

/// The quotients that rank an activation, converted to integers; the larger is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank([u64; 2]);

impl Rank {
    /// Smaller than every real rank, which only NaN could reach.
    const ABSENT: Self = Self([0; 2]);

    /// The rank for importance / size and importance / time, compared as by [`f64::total_cmp`]; `None` if one is NaN.
    pub fn new(by_size: f64, by_time: f64) -> Option<Self> {
        let rank = |quotient: f64| (!quotient.is_nan()).then(|| !ordered(quotient));
        Some(Self([rank(by_size)?, rank(by_time)?]))
    }

    /// The key of one order, with the other constraint as tie-breaker; the largest is evicted first, and among
    /// equal ones the smallest id.
    pub const fn key(self, tighter: Tighter) -> (u64, u64) {
        let Self([memory, time]) = self;
        match tighter {
            Tighter::Memory => (memory, time),
            Tighter::Time => (time, memory),
        }
    }
}

/// A float as an integer in the order of [`f64::total_cmp`].
const fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    bits ^ ((((bits as i64) >> 63) as u64) | 1 << 63)
}

/// The two orders of a common set of ids.
#[derive(Clone, Debug, Default)]
pub struct Tournament {
    /// By id; as many as there are leaves: a power of two, or zero.
    ranks: Vec<Rank>,
    /// The winners of node `i` by memory and by time; its children are `2i` and `2i + 1`, from `ranks.len()` on they
    /// are leaves. Node 0 is not used.
    winners: Vec<[u32; 2]>,
    len: usize,
}

impl Tournament {
    /// The rank of an id.
    pub fn rank(&self, id: u32) -> Option<Rank> {
        self.ranks.get(id as usize).copied().filter(|&rank| rank != Rank::ABSENT)
    }

    /// Inserts an id, or changes the rank of a present one.
    pub fn set(&mut self, id: u32, rank: Rank) {
        if id as usize >= self.ranks.len() {
            self.grow(id);
        }
        let old = std::mem::replace(&mut self.ranks[id as usize], rank);
        self.len += usize::from(old == Rank::ABSENT);
        self.replay(id);
    }

    /// Removes an id, if it is present.
    pub fn remove(&mut self, id: u32) {
        if self.rank(id).is_some() {
            self.ranks[id as usize] = Rank::ABSENT;
            self.len -= 1;
            self.replay(id);
        }
    }

    /// The first id to be evicted under a constraint.
    pub fn max(&self, tighter: Tighter) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        Some(if self.ranks.len() == 1 { 0 } else { self.winners[1][tighter as usize] })
    }

    fn grow(&mut self, id: u32) {
        let leaves = (id as usize + 1).next_power_of_two();
        self.ranks.resize(leaves, Rank::ABSENT);
        self.winners = vec![[0; 2]; leaves];
        for node in (1..leaves).rev() {
            for tighter in [Tighter::Memory, Tighter::Time] {
                let [left, right] = [2 * node, 2 * node + 1].map(|child| self.winner(child, tighter));
                self.winners[node][tighter as usize] = self.better(left, right, tighter);
            }
        }
    }

    fn winner(&self, node: usize, tighter: Tighter) -> u32 {
        let Some(leaf) = node.checked_sub(self.ranks.len()) else { return self.winners[node][tighter as usize] };
        leaf as u32
    }

    /// The better of two ids; `left` is the smaller id.
    fn better(&self, left: u32, right: u32, tighter: Tighter) -> u32 {
        let [key, other] = [left, right].map(|id| self.ranks[id as usize].key(tighter));
        if other > key { right } else { left }
    }

    fn replay(&mut self, id: u32) {
        self.replay_one(id, Tighter::Memory);
        self.replay_one(id, Tighter::Time);
    }

    fn replay_one(&mut self, id: u32, tighter: Tighter) {
        let mut node = self.ranks.len() + id as usize;
        let mut winner = id;
        while node > 1 {
            let other = self.winner(node ^ 1, tighter);
            let (left, right) = if node.is_multiple_of(2) { (winner, other) } else { (other, winner) };
            winner = self.better(left, right, tighter);
            node /= 2;
            let held = std::mem::replace(&mut self.winners[node][tighter as usize], winner);
            // Above this node, this id took part in no match before and takes part in none now.
            if held == winner && winner != id {
                return;
            }
        }
    }
}
