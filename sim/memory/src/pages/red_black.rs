//! The red-black tree of the paper's section 3.4.3, one tree per order: the reference for tests and timings of
//! [`Tournament`](super::Tournament), and the tree that [`order_cost`](super::order_cost) counts.
//!
//! The nodes are in one array by id, so an activation is found without a search; the algorithms are those of Cormen,
//! Leiserson, Rivest and Stein, *Introduction to Algorithms*, chapter 13, with a sentinel.

use super::order_cost::OrderWork;

/// The sentinel: every missing child, and the parent of the root.
const NIL: u32 = 0;

/// Ids in ascending order of their keys; among equal keys the smaller id comes last, so that the maximum
/// is the first to be evicted.
#[derive(Clone, Debug)]
pub struct RedBlackTree {
    /// By id + 1; the first is the sentinel.
    nodes: Vec<Node>,
    root: u32,
    work: OrderWork,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    key: (u64, u64),
    children: [u32; 2],
    parent: u32,
    red: bool,
    present: bool,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

impl Default for RedBlackTree {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], root: NIL, work: OrderWork::default() }
    }
}

impl RedBlackTree {
    /// Its work so far.
    pub const fn work(&self) -> OrderWork {
        self.work
    }

    /// Inserts an id, or changes the key of a present one by a removal and an insertion.
    pub fn set(&mut self, id: u32, key: (u64, u64)) {
        self.remove(id);
        let node = id as usize + 1;
        if node >= self.nodes.len() {
            self.nodes.resize(node + 1, Node::default());
        }
        self.nodes[node] = Node { key, red: true, present: true, ..Node::default() };
        self.attach(node as u32);
        self.mend_insertion(node as u32);
    }

    /// Removes an id, if it is present.
    pub fn remove(&mut self, id: u32) {
        let node = id.saturating_add(1);
        if self.nodes.get(node as usize).is_some_and(|node| node.present) {
            self.detach(node);
            self.nodes[node as usize] = Node::default();
        }
    }

    /// The first id to be evicted.
    pub fn max(&self) -> Option<u32> {
        (self.root != NIL).then(|| self.extreme(self.root, RIGHT) - 1)
    }

    /// All ids in order of eviction.
    pub fn descending(&self) -> impl Iterator<Item = u32> {
        let first = (self.root != NIL).then(|| self.extreme(self.root, RIGHT));
        std::iter::successors(first, |&node| self.previous(node)).map(|node| node - 1)
    }

    /// The number of nodes above an id: a search for it compares that many keys and its own.
    pub fn depth(&self, id: u32) -> Option<u32> {
        let node = id.saturating_add(1);
        self.nodes.get(node as usize).filter(|node| node.present)?;
        let above = std::iter::successors(Some(self.parent(node)), |&node| Some(self.parent(node)));
        Some(above.take_while(|&node| node != NIL).count() as u32)
    }

    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    fn child(&self, node: u32, side: usize) -> u32 {
        self.node(node).children[side]
    }

    fn parent(&self, node: u32) -> u32 {
        self.node(node).parent
    }

    fn is_red(&self, node: u32) -> bool {
        self.node(node).red
    }

    fn key(&self, node: u32) -> ((u64, u64), u32) {
        (self.node(node).key, !node)
    }

    fn paint(&mut self, node: u32, red: bool) {
        self.nodes[node as usize].red = red;
        self.work.moves += 1;
    }

    /// The side of its parent on which a node is.
    fn side(&self, node: u32) -> usize {
        usize::from(self.child(self.parent(node), RIGHT) == node)
    }

    fn extreme(&self, mut node: u32, side: usize) -> u32 {
        while self.child(node, side) != NIL {
            node = self.child(node, side);
        }
        node
    }

    fn previous(&self, mut node: u32) -> Option<u32> {
        let below = self.child(node, LEFT);
        if below != NIL {
            return Some(self.extreme(below, RIGHT));
        }
        while self.parent(node) != NIL && self.side(node) == LEFT {
            node = self.parent(node);
        }
        Some(self.parent(node)).filter(|&parent| parent != NIL)
    }

    /// Attaches `node` below `parent`, or makes it the root.
    fn hang(&mut self, node: u32, parent: u32, side: usize) {
        match parent {
            NIL => self.root = node,
            _ => self.nodes[parent as usize].children[side] = node,
        }
        self.nodes[node as usize].parent = parent;
        self.work.moves += 1;
    }

    /// Rotates the edge between a node and its child on the other side: the child moves up, the
    /// node moves down to `side`.
    fn rotate(&mut self, node: u32, side: usize) {
        let up = self.child(node, 1 - side);
        let (parent, was) = (self.parent(node), self.side(node));
        let middle = self.child(up, side);
        self.nodes[node as usize].children[1 - side] = middle;
        if middle != NIL {
            self.nodes[middle as usize].parent = node;
        }
        self.hang(up, parent, was);
        self.hang(node, up, side);
    }

    fn attach(&mut self, node: u32) {
        let (mut parent, mut below, mut side) = (NIL, self.root, LEFT);
        while below != NIL {
            self.work.comparisons += 1;
            side = usize::from(self.key(node) > self.key(below));
            parent = below;
            below = self.child(below, side);
        }
        self.hang(node, parent, side);
    }

    fn mend_insertion(&mut self, mut node: u32) {
        while self.is_red(self.parent(node)) {
            let parent = self.parent(node);
            let grandparent = self.parent(parent);
            let side = self.side(parent);
            let uncle = self.child(grandparent, 1 - side);
            if self.is_red(uncle) {
                self.paint(parent, false);
                self.paint(uncle, false);
                self.paint(grandparent, true);
                node = grandparent;
                continue;
            }
            if self.side(node) != side {
                self.rotate(parent, side);
                node = parent;
            }
            self.paint(self.parent(node), false);
            self.paint(grandparent, true);
            self.rotate(grandparent, 1 - side);
        }
        self.nodes[self.root as usize].red = false;
    }

    fn detach(&mut self, node: u32) {
        let [left, right] = self.node(node).children;
        let (heir, lost_black);
        if left == NIL || right == NIL {
            heir = if left == NIL { right } else { left };
            lost_black = !self.is_red(node);
            self.hang(heir, self.parent(node), self.side(node));
        } else {
            let next = self.extreme(right, LEFT);
            heir = self.child(next, RIGHT);
            lost_black = !self.is_red(next);
            if next == right {
                self.nodes[heir as usize].parent = next;
            } else {
                self.hang(heir, self.parent(next), LEFT);
                self.hang(right, next, RIGHT);
            }
            self.hang(next, self.parent(node), self.side(node));
            self.hang(left, next, LEFT);
            self.paint(next, self.is_red(node));
        }
        if lost_black {
            self.mend_removal(heir);
        }
        self.nodes[NIL as usize] = Node::default();
    }

    /// `node` counts as one black too few on its path.
    fn mend_removal(&mut self, mut node: u32) {
        while node != self.root && !self.is_red(node) {
            let parent = self.parent(node);
            let side = self.side(node);
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.paint(sibling, false);
                self.paint(parent, true);
                self.rotate(parent, side);
                sibling = self.child(parent, 1 - side);
            }
            if !self.is_red(self.child(sibling, LEFT)) && !self.is_red(self.child(sibling, RIGHT)) {
                self.paint(sibling, true);
                node = parent;
                continue;
            }
            if !self.is_red(self.child(sibling, 1 - side)) {
                self.paint(self.child(sibling, side), false);
                self.paint(sibling, true);
                self.rotate(sibling, 1 - side);
                sibling = self.child(parent, 1 - side);
            }
            self.paint(sibling, self.is_red(parent));
            self.paint(parent, false);
            self.paint(self.child(sibling, 1 - side), false);
            self.rotate(parent, side);
            node = self.root;
        }
        self.paint(node, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RedBlackTree {
        /// Whether the invariants are met: the root is black, no red node has a red child, every path to a leaf has the
        /// same number of black nodes, keys are in order, and children link to their parents.
        fn is_valid(&self) -> bool {
            let ids: Vec<u32> = self.descending().collect();
            let ordered = ids.windows(2).all(|pair| self.key(pair[0] + 1) > self.key(pair[1] + 1));
            !self.node(self.root).red
                && ids.len() == self.nodes.iter().filter(|node| node.present).count()
                && ordered
                && self.black_height(self.root).is_some()
        }

        fn black_height(&self, node: u32) -> Option<u32> {
            if node == NIL {
                return Some(0);
            }
            let here = self.node(node);
            let [left, right] = here.children.map(|child| {
                let below = self.node(child);
                let fits = child == NIL || (below.parent == node && !(here.red && below.red));
                if fits { self.black_height(child) } else { None }
            });
            (left == right).then(|| left.map(|height| height + u32::from(!here.red)))?
        }
    }

    #[test]
    fn the_invariants_hold_whatever_comes_and_goes() {
        let mut tree = RedBlackTree::default();
        let mut draw = 1_u64;
        for step in 0..5_000 {
            // A full-period generator of 64 bits (Knuth); its high bits are used. Keys are few, so that ties are
            // common.
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (id, key, comes) = ((draw >> 33) as u32 % 60, draw >> 50 & 15, draw >> 60 < 10);
            if comes {
                tree.set(id, (key, 0))
            } else {
                tree.remove(id)
            }
            assert!(tree.is_valid(), "step {step}");
        }
        assert!(tree.descending().count() > 10);
    }
}
