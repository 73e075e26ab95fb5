//! Maximum flow by Dinic's algorithm (Soviet Mathematics Doklady, 1970), in integers, so that equal networks have equal
//! cuts.

/// Arcs with capacities. Nodes are numbers; flow goes from [`SOURCE`] to [`SINK`].
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The end of each arc and its remaining capacity; arc `n ^ 1` is its reverse.
    arcs: Vec<(u32, u64)>,
    /// The arcs of each node.
    of: Vec<Vec<u32>>,
    /// Steps from the source along arcs with remaining capacity.
    level: Vec<u32>,
    /// Number of arcs of each node already tried.
    tried: Vec<u32>,
}

/// The node where all flow begins.
pub(super) const SOURCE: u32 = 0;
/// The node where all flow ends.
pub(super) const SINK: u32 = 1;
const NOWHERE: u32 = u32::MAX;

impl Flow {
    /// A source and a sink.
    pub(super) fn new() -> Self {
        Self { of: vec![Vec::new(); 2], ..Self::default() }
    }

    /// A new node.
    pub(super) fn node(&mut self) -> u32 {
        self.of.push(Vec::new());
        (self.of.len() - 1) as u32
    }

    /// A new arc without capacity; returns its number.
    pub(super) fn arc(&mut self, from: u32, to: u32) -> u32 {
        let arc = self.arcs.len() as u32;
        self.of[from as usize].push(arc);
        self.of[to as usize].push(arc + 1);
        self.arcs.extend([(to, 0), (from, 0)]);
        arc
    }

    /// Sets the capacity of an arc and resets its flow to zero.
    pub(super) fn set(&mut self, arc: u32, capacity: u64) {
        (self.arcs[arc as usize].1, self.arcs[arc as usize ^ 1].1) = (capacity, 0);
    }

    /// Sends the maximum flow, and returns it: the sum of the least cut.
    pub(super) fn fill(&mut self) -> u64 {
        let mut all = 0;
        while self.climb() {
            self.tried.clear();
            self.tried.resize(self.of.len(), 0);
            all += self.pour();
        }
        all
    }

    /// Whether the least cut goes through an arc.
    pub(super) fn is_cut(&self, arc: u32) -> bool {
        let [to, from] = [arc, arc ^ 1].map(|arc| self.arcs[arc as usize].0);
        self.reaches(from) && !self.reaches(to)
    }

    /// Whether more flow could reach `node`.
    fn reaches(&self, node: u32) -> bool {
        self.level[node as usize] != NOWHERE
    }

    /// Computes each node's distance from the source; returns whether the sink is reachable.
    fn climb(&mut self) -> bool {
        self.level.clear();
        self.level.resize(self.of.len(), NOWHERE);
        self.level[SOURCE as usize] = 0;
        let mut queue = vec![SOURCE];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            for &arc in &self.of[node as usize] {
                let (to, left) = self.arcs[arc as usize];
                if left > 0 && self.level[to as usize] == NOWHERE {
                    self.level[to as usize] = self.level[node as usize] + 1;
                    queue.push(to);
                }
            }
        }
        self.reaches(SINK)
    }

    /// Fills every path that leads up level by level. Paths are as long as networks are deep, so this is not recursive.
    fn pour(&mut self) -> u64 {
        let (mut all, mut path) = (0, Vec::<u32>::new());
        loop {
            let node = path.last().map_or(SOURCE, |&arc| self.arcs[arc as usize].0);
            if node == SINK {
                let least = path.iter().map(|&arc| self.arcs[arc as usize].1).min().unwrap_or(0);
                let mut keep = path.len();
                for (place, &arc) in path.iter().enumerate() {
                    self.arcs[arc as usize].1 -= least;
                    self.arcs[arc as usize ^ 1].1 += least;
                    if self.arcs[arc as usize].1 == 0 {
                        keep = keep.min(place);
                    }
                }
                path.truncate(keep);
                all += least;
                continue;
            }
            let tried = &mut self.tried[node as usize];
            let Some(&arc) = self.of[node as usize].get(*tried as usize) else {
                // Dead end.
                let Some(arc) = path.pop() else { return all };
                let before = self.arcs[arc as usize ^ 1].0;
                self.tried[before as usize] += 1;
                continue;
            };
            let (to, left) = self.arcs[arc as usize];
            if left > 0 && self.level[to as usize] == self.level[node as usize] + 1 {
                path.push(arc);
            } else {
                *tried += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use haversack_testing::Draws;

    use super::*;

    #[test]
    fn the_flow_is_the_least_cut_of_all() {
        let mut draws = Draws(7);
        for _ in 0..200 {
            let nodes = 3 + draws.below(6) as u32;
            let mut flow = Flow::new();
            (2..nodes).for_each(|_| {
                flow.node();
            });
            let mut arcs = Vec::new();
            for _ in 0..draws.below(24) {
                let (from, to) = (draws.below(nodes as usize) as u32, draws.below(nodes as usize) as u32);
                let arc = flow.arc(from, to);
                arcs.push((arc, from, to, draws.below(10) as u64));
            }
            // Every set of nodes with the source and without the sink is a side of a cut.
            let sides = (0..1_u32 << nodes).filter(|side| side & 1 == 1 && side & 2 == 0);
            let has = |side: u32, node: u32| side >> node & 1 == 1;
            let sum = |side: u32| {
                let cut = arcs.iter().filter(|&&(_, from, to, _)| has(side, from) && !has(side, to));
                cut.map(|arc| arc.3).sum::<u64>()
            };
            let least = sides.map(sum).min().unwrap();
            // Filled twice, since capacities are reset for every price.
            for _ in 0..2 {
                arcs.iter().for_each(|&(arc, _, _, capacity)| flow.set(arc, capacity));
                assert_eq!(flow.fill(), least);
                let cut: u64 = arcs.iter().filter(|(arc, ..)| flow.is_cut(*arc)).map(|arc| arc.3).sum();
                assert_eq!(cut, least);
            }
        }
    }
}
