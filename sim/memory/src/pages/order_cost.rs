//! The work of keeping activations in order, counted by executing it. The paper's table 3 compares red-black trees with
//! a list that is sorted again in microseconds; this module compares them in operations, and a simulation of a device
//! gives a comparison and a move their time.

use super::red_black::RedBlackTree;
use super::{Rank, Tighter};

/// Operations on keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderWork {
    /// Keys compared.
    pub comparisons: u64,
    /// Writes that restore an order: for a sort, elements written; for a tree, nodes relinked or recoloured.
    pub moves: u64,
}

/// The events of the activations of one iteration.
///
/// All activations are planned and fit at the beginning; their insertion is not counted. As each arrives in the forward
/// pass its importance changes, and the budget falls evenly to its last value. Victims are taken as in Algorithm 3: one
/// that has not arrived is requantised to half its size, one that has arrived is evicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderWorkload {
    /// An importance is multiplied or divided by up to e to this power.
    pub drift: f64,
    /// The share of all bytes that must be freed during the iteration.
    pub freed: f64,
    /// The seed for sizes, times and importances.
    pub seed: u64,
}

impl Default for OrderWorkload {
    /// Importances that change by up to a tenth, as moving averages do, under a constant budget.
    fn default() -> Self {
        Self { drift: 0.1, freed: 0.0, seed: 1 }
    }
}

/// One iteration, managed in two ways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderCost {
    /// One list, sorted at every arrival, and again before a victim is picked after a requantisation.
    pub sort: OrderWork,
    /// Two red-black trees, in which a new key is a search for the old one, a removal and an insertion: the key of the
    /// paper's tree is the activation itself, so finding it takes comparisons.
    pub tree: OrderWork,
    /// The victims in the order in which they are picked: the same for both.
    pub victims: Vec<u32>,
}

/// Runs one iteration of `n` activations both ways and counts.
///
/// The sort is the introsort of libstdc++ (`std::sort`): quicksort by the median of three down to 16 elements, then
/// one insertion sort.
pub fn iteration(n: u32, workload: &OrderWorkload) -> OrderCost {
    let mut list = SortedList::default();
    let victims = run(n, workload, &mut list);
    let mut trees = Trees::default();
    run(n, workload, &mut trees);
    OrderCost { sort: list.work, tree: trees.work(), victims }
}

/// A way to keep activations in order that counts its work.
trait Order {
    fn set(&mut self, id: u32, rank: Rank);
    fn remove(&mut self, id: u32);
    fn arrived(&mut self);
    fn first(&mut self) -> Option<u32>;
    fn forget_work(&mut self);
}

#[derive(Clone, Copy)]
struct Activation {
    importance: f64,
    size: f64,
    time: f64,
    arrived: bool,
}

impl Activation {
    fn draw(random: &mut Random) -> Self {
        // Sizes over two and a half orders of magnitude, as in the maps of a convolutional network.
        let [importance, size, time] = [random.next().exp(), 2_f64.powf(16.0 + 8.0 * random.next()), random.next()];
        Self { importance, size, time: 1.0 + time, arrived: false }
    }

    fn rank(&self) -> Option<Rank> {
        Rank::new(self.importance / self.size, self.importance / self.time)
    }
}

fn run(n: u32, workload: &OrderWorkload, order: &mut impl Order) -> Vec<u32> {
    let mut random = Random(workload.seed);
    let mut activations: Vec<_> = (0..n).map(|_| Activation::draw(&mut random)).collect();
    for (id, activation) in activations.iter().enumerate() {
        if let Some(rank) = activation.rank() {
            order.set(id as u32, rank);
        }
    }
    order.forget_work();
    let all: f64 = activations.iter().map(|activation| activation.size).sum();
    let mut gone = 0.0;
    let mut evicted = vec![false; n as usize];
    let mut victims = Vec::new();
    for arrival in 0..n as usize {
        let activation = &mut activations[arrival];
        activation.importance *= (workload.drift * (2.0 * random.next() - 1.0)).exp();
        activation.arrived = true;
        if let Some(rank) = activation.rank().filter(|_| !evicted[arrival]) {
            order.set(arrival as u32, rank);
        }
        order.arrived();
        let due = all * workload.freed.clamp(0.0, 1.0) * (arrival + 1) as f64 / f64::from(n);
        while gone < due {
            let Some(id) = order.first() else { break };
            victims.push(id);
            let victim = &mut activations[id as usize];
            if victim.arrived {
                gone += victim.size;
                evicted[id as usize] = true;
                order.remove(id);
            } else {
                victim.size /= 2.0;
                gone += victim.size;
                if let Some(rank) = victim.rank() {
                    order.set(id, rank);
                }
            }
        }
    }
    victims
}

/// The constraint that is tighter in these runs.
const TIGHTER: Tighter = Tighter::Memory;

/// A key and its id, so that among equal keys the smaller id is the larger entry.
type Entry = ((u64, u64), std::cmp::Reverse<u32>);

#[derive(Default)]
struct SortedList {
    entries: Vec<Entry>,
    sorted: bool,
    work: OrderWork,
}

impl Order for SortedList {
    fn set(&mut self, id: u32, rank: Rank) {
        let entry = (rank.key(TIGHTER), std::cmp::Reverse(id));
        match self.entries.iter_mut().find(|entry| entry.1.0 == id) {
            Some(held) => *held = entry,
            None => self.entries.push(entry),
        }
        self.sorted = false;
    }

    fn remove(&mut self, id: u32) {
        self.entries.retain(|entry| entry.1.0 != id);
    }

    fn arrived(&mut self) {
        sort(&mut self.entries, &mut self.work);
        self.sorted = true;
    }

    fn first(&mut self) -> Option<u32> {
        if !self.sorted {
            self.arrived();
        }
        self.entries.last().map(|entry| entry.1.0)
    }

    fn forget_work(&mut self) {
        self.work = OrderWork::default();
    }
}

#[derive(Default)]
struct Trees {
    memory: RedBlackTree,
    time: RedBlackTree,
    searches: u64,
    before: OrderWork,
}

impl Trees {
    fn work(&self) -> OrderWork {
        let (memory, time) = (self.memory.work(), self.time.work());
        OrderWork {
            comparisons: memory.comparisons + time.comparisons + self.searches - self.before.comparisons,
            moves: memory.moves + time.moves - self.before.moves,
        }
    }

    fn search(&mut self, id: u32) {
        let depths = [self.memory.depth(id), self.time.depth(id)];
        self.searches += depths.into_iter().flatten().map(|above| u64::from(above) + 1).sum::<u64>();
    }
}

impl Order for Trees {
    fn set(&mut self, id: u32, rank: Rank) {
        self.search(id);
        self.memory.set(id, rank.key(Tighter::Memory));
        self.time.set(id, rank.key(Tighter::Time));
    }

    fn remove(&mut self, id: u32) {
        self.search(id);
        self.memory.remove(id);
        self.time.remove(id);
    }

    fn arrived(&mut self) {}

    fn first(&mut self) -> Option<u32> {
        self.memory.max()
    }

    fn forget_work(&mut self) {
        self.before = OrderWork::default();
        self.before = self.work();
    }
}

/// Ranges up to this length are left to the insertion sort.
const SHORT: usize = 16;

/// Sorts in ascending order and counts.
fn sort<T: Ord + Copy>(list: &mut [T], work: &mut OrderWork) {
    // Beyond this depth libstdc++ switches to heapsort; here the insertion sort handles the rest.
    let depth = 2 * (list.len().max(1)).ilog2();
    quicksort(list, depth, work);
    for end in 1..list.len() {
        let inserted = list[end];
        let mut place = end;
        while place > 0 {
            work.comparisons += 1;
            if list[place - 1] <= inserted {
                break;
            }
            list[place] = list[place - 1];
            work.moves += 1;
            place -= 1;
        }
        list[place] = inserted;
        work.moves += u64::from(place != end);
    }
}

fn quicksort<T: Ord + Copy>(list: &mut [T], depth: u32, work: &mut OrderWork) {
    if list.len() <= SHORT || depth == 0 {
        return;
    }
    let last = list.len() - 1;
    let pivot = median([list[1], list[last / 2], list[last]], work);
    let (mut low, mut high) = (0, last);
    loop {
        while less(&list[low], &pivot, work) {
            low += 1;
        }
        while less(&pivot, &list[high], work) {
            high -= 1;
        }
        if low >= high {
            break;
        }
        list.swap(low, high);
        work.moves += 2;
        low += 1;
        high -= 1;
    }
    let (left, right) = list.split_at_mut(low);
    quicksort(left, depth - 1, work);
    quicksort(right, depth - 1, work);
}

fn less<T: Ord>(a: &T, b: &T, work: &mut OrderWork) -> bool {
    work.comparisons += 1;
    a < b
}

fn median<T: Ord + Copy>([a, b, c]: [T; 3], work: &mut OrderWork) -> T {
    let (low, high) = if less(&b, &a, work) { (b, a) } else { (a, b) };
    if less(&c, &low, work) {
        low
    } else if less(&high, &c, work) {
        high
    } else {
        c
    }
}

/// Uniform draws from 0 to 1 by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_pick_the_same_victims() {
        for (n, freed) in [(1, 1.0), (17, 0.3), (60, 0.1), (60, 1.0), (150, 0.5)] {
            let workload = OrderWorkload { freed, drift: 0.5, seed: u64::from(n) };
            let list = run(n, &workload, &mut SortedList::default());
            let trees = run(n, &workload, &mut Trees::default());
            assert!(!list.is_empty());
            assert_eq!(list, trees, "n = {n}, freed = {freed}");
        }
    }

    #[test]
    fn the_sort_sorts_and_counts() {
        let mut random = Random(9);
        for n in [0_u32, 1, 2, 16, 17, 100, 1000] {
            // Few values, so that there are many equal ones; then all distinct; then all equal.
            for values in [7, 1 << 30, 1] {
                let mut list: Vec<u64> = (0..n).map(|_| (random.next() * f64::from(values)) as u64).collect();
                let mut expected = list.clone();
                expected.sort_unstable();
                let mut work = OrderWork::default();
                sort(&mut list, &mut work);
                assert_eq!(list, expected);
                // No sort takes fewer than log2(n!) comparisons for most orders of n distinct keys; quicksort by the
                // median of three takes some 1.2 times as many.
                if values > 7 && n >= 100 {
                    let least: f64 = (1..=n).map(|i| f64::from(i).log2()).sum();
                    assert!((0.9 * least..2.0 * least).contains(&(work.comparisons as f64)), "{n}: {work:?}, {least}");
                }
            }
        }
        // In order already, two elements: one comparison, no move. The other way round: one and two.
        for (mut list, moves) in [([1, 2], 0), ([2, 1], 2)] {
            let mut work = OrderWork::default();
            sort(&mut list, &mut work);
            assert_eq!((list, work), ([1, 2], OrderWork { comparisons: 1, moves }));
        }
    }
}
