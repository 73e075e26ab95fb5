//! What an agenda sorts by, packed with the sequence number and the slot into one heap node.

use std::fmt::Debug;

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
