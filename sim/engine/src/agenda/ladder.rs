//! Nodes far from the front, in unsorted buckets: a radix heap with digits of six bits.
//!
//! A node is on the level of the highest digit in which its rank differs from the base, in the bucket of its own digit
//! there. The first non-empty bucket of the lowest non-empty level contains the smallest ranks. If it has few nodes
//! they become near; otherwise its start becomes the base and its nodes move to lower levels. A node thus moves at most
//! eleven times, and three times where a million are spread evenly; nothing is compared until it is near. (Ahuja,
//! Mehlhorn, Orlin and Tarjan, *Faster algorithms for the shortest path problem*, JACM 1990; with a heap for the near
//! nodes it is a ladder queue, Tang, Goh and Thng, TOMACS 2005, and ranks need not rise.)
//!
//! An agenda's sort key, packed with the sequence number and the slot into one heap node.

use std::cmp::Reverse;
use std::fmt::Debug;

/// Bits per digit; a level has as many buckets as a word has bits.
const DIGIT: u32 = 6;
/// Levels for a 64-bit rank.
const LEVELS: usize = 11;
/// A bucket with at most this many nodes becomes near as a whole.
const FEW: usize = 48;

#[derive(Clone, Debug)]
pub(crate) struct Ladder<N> {
    /// By level, then by digit; empty before the first node.
    buckets: Vec<Vec<N>>,
    /// For each level a bit per non-empty bucket.
    occupied: [u64; LEVELS],
    /// The rank that nodes' ranks are compared with digit by digit; none here is smaller.
    base: u64,
    /// Every rank up to this one is near.
    pub(crate) reach: u64,
    pub(crate) len: usize,
}

impl<N: Copy> Ladder<N> {
    pub(crate) const fn new() -> Self {
        Self { buckets: Vec::new(), occupied: [0; LEVELS], base: 0, reach: u64::MAX, len: 0 }
    }

    /// The bytes allocated, used or not.
    pub(crate) fn footprint(&self) -> usize {
        let nodes: usize = self.buckets.iter().map(Vec::capacity).sum();
        nodes * size_of::<N>() + self.buckets.capacity() * size_of::<Vec<N>>()
    }

    /// Adds a node whose rank lies beyond `reach`.
    #[inline]
    pub(crate) fn insert(&mut self, rank: u64, node: N) {
        let differing = (rank ^ self.base) | 1;
        let level = (differing.ilog2() / DIGIT) as usize;
        let digit = (rank >> (level as u32 * DIGIT)) as usize % 64;
        if let (Some(bucket), Some(occupied)) = (self.buckets.get_mut(level * 64 + digit), self.occupied.get_mut(level))
        {
            bucket.push(node);
            *occupied |= 1 << digit;
            self.len += 1;
        }
    }

    /// Takes all of `nodes`, whose ranks are at least `base`; the ladder must be empty.
    pub(crate) fn fill(&mut self, base: u64, nodes: impl Iterator<Item = (u64, N)>) {
        self.buckets.resize_with(LEVELS * 64, Vec::new);
        self.base = base;
        for (rank, node) in nodes {
            self.insert(rank, node);
        }
    }

    /// Moves the smallest ranks to `near`, which is empty; or all, if at most `small` are left.
    pub(crate) fn refill(&mut self, near: &mut Vec<Reverse<N>>, small: usize, rank: impl Fn(N) -> u64) {
        if self.len <= small {
            self.empty(near);
            return;
        }
        while let Some(level) = self.occupied.iter().position(|&bits| bits != 0) {
            let Some(occupied) = self.occupied.get_mut(level) else { return };
            let (digit, shift) = (occupied.trailing_zeros(), level as u32 * DIGIT);
            *occupied &= *occupied - 1;
            let width = (1_u64 << shift) - 1;
            // The digits above this level stay, those below become zero.
            self.base = (self.base >> shift >> DIGIT << DIGIT | u64::from(digit)) << shift;
            let Some(bucket) = self.buckets.get_mut(level * 64 + digit as usize) else { return };
            self.len -= bucket.len();
            if level == 0 || bucket.len() <= FEW {
                near.extend(bucket.drain(..).map(Reverse));
                if bucket.capacity() > 4 * FEW {
                    *bucket = Vec::new();
                }
                self.reach = if self.len == 0 { u64::MAX } else { self.base | width };
                return;
            }
            for node in std::mem::take(bucket) {
                self.insert(rank(node), node);
            }
        }
    }

    /// Moves everything to `near`.
    pub(crate) fn empty(&mut self, near: &mut Vec<Reverse<N>>) {
        for bucket in &mut self.buckets {
            near.extend(std::mem::take(bucket).into_iter().map(Reverse));
        }
        *self = Self { buckets: std::mem::take(&mut self.buckets), ..Self::new() };
    }

    /// Drops the nodes for which `keep` is false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(N) -> bool) {
        self.len = 0;
        for (level, occupied) in self.occupied.iter_mut().enumerate() {
            let buckets = self.buckets.iter_mut().skip(level * 64).take(64).enumerate();
            *occupied = buckets.fold(0, |bits, (digit, bucket)| {
                bucket.retain(|&node| keep(node));
                self.len += bucket.len();
                bits | u64::from(!bucket.is_empty()) << digit
            });
        }
        if self.len == 0 {
            self.reach = u64::MAX;
        }
    }
}

/// An unsigned rank; the smallest comes first.
pub(crate) trait Rank: Copy + Debug {
    /// Rank, sequence number and slot, most significant first, so that comparing nodes compares
    /// (rank, sequence number). The slot never decides: no two nodes share a sequence number.
    type Node: Copy + Ord + Debug;

    fn node(self, sequence: u32, slot: u32) -> Self::Node;
    fn rank(node: Self::Node) -> Self;
    fn slot(node: Self::Node) -> u32;
    /// The highest 64 bits of the rank.
    fn high(node: Self::Node) -> u64;
}

/// A rank of 64 bits makes a node of 16 bytes that compares as a single integer.
impl Rank for u64 {
    type Node = u128;

    #[inline]
    fn node(self, sequence: u32, slot: u32) -> u128 {
        u128::from(self) << 64 | u128::from(sequence) << 32 | u128::from(slot)
    }

    #[inline]
    fn rank(node: u128) -> Self {
        (node >> 64) as u64
    }

    #[inline]
    fn slot(node: u128) -> u32 {
        node as u32
    }

    #[inline]
    fn high(node: u128) -> u64 {
        (node >> 64) as u64
    }
}

impl Rank for u128 {
    type Node = (u128, u64);

    #[inline]
    fn node(self, sequence: u32, slot: u32) -> (u128, u64) {
        (self, u64::from(sequence) << 32 | u64::from(slot))
    }

    #[inline]
    fn rank(node: (u128, u64)) -> Self {
        node.0
    }

    #[inline]
    fn slot(node: (u128, u64)) -> u32 {
        node.1 as u32
    }

    #[inline]
    fn high(node: (u128, u64)) -> u64 {
        (node.0 >> 64) as u64
    }
}
