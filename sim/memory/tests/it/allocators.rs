//! The caching allocator in lock step with a slow, obvious twin over random scripts. The twin represents every segment
//! as a row of pieces and searches all of them for every request.

use haversack_devices::units::Bytes;
use haversack_memory::{Allocation, AllocationError, Allocator, CachingAllocator, ExactAllocator};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// A piece of a segment; `owner` is the request that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: u64,
    size: u64,
    owner: Option<usize>,
}

#[derive(Clone, Debug)]
struct Segment {
    size: u64,
    small: bool,
    pieces: Vec<Piece>,
}

#[derive(Default)]
struct Twin {
    budget: u64,
    /// In the order in which they were reserved; addresses rise with it.
    segments: Vec<Segment>,
    next_address: u64,
}

impl Twin {
    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.segments.iter().flat_map(|segment| &segment.pieces)
    }

    fn allocated(&self) -> u64 {
        self.pieces().filter(|piece| piece.owner.is_some()).map(|piece| piece.size).sum()
    }

    fn reserved(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }

    /// Places request `owner`, or returns the bytes wanted and the bytes left.
    fn allocate(&mut self, owner: usize, bytes: u64) -> Result<(), (u64, u64)> {
        let size = bytes.max(1).next_multiple_of(512);
        let small = size <= MIB;
        if self.best_fit(size, small).is_none() {
            let segment = if small {
                2 * MIB
            } else if size < 10 * MIB {
                20 * MIB
            } else {
                size.next_multiple_of(2 * MIB)
            };
            if self.reserved() + segment > self.budget {
                self.segments.retain(|segment| segment.pieces.len() > 1 || segment.pieces[0].owner.is_some());
            }
            if self.reserved() + segment > self.budget {
                return Err((segment, self.budget.saturating_sub(self.reserved())));
            }
            let whole = Piece { start: self.next_address, size: segment, owner: None };
            self.next_address += segment;
            self.segments.push(Segment { size: segment, small, pieces: vec![whole] });
        }
        let (s, p) = self.best_fit(size, small).expect("the new segment holds it");
        let piece = self.segments[s].pieces[p];
        let rest = piece.size - size;
        let cut = if small { rest >= 512 } else { rest > MIB };
        let used = Piece { size: if cut { size } else { piece.size }, owner: Some(owner), ..piece };
        self.segments[s].pieces[p] = used;
        if cut {
            self.segments[s].pieces.insert(p + 1, Piece { start: piece.start + size, size: rest, owner: None });
        }
        Ok(())
    }

    /// The smallest free piece of the right kind that fits `size`; the one with the lowest address among equals.
    fn best_fit(&self, size: u64, small: bool) -> Option<(usize, usize)> {
        let mut best: Option<(u64, u64, usize, usize)> = None;
        for (s, segment) in self.segments.iter().enumerate().filter(|(_, segment)| segment.small == small) {
            for (p, piece) in segment.pieces.iter().enumerate() {
                let better = best.is_none_or(|(size, start, ..)| (piece.size, piece.start) < (size, start));
                if piece.owner.is_none() && piece.size >= size && better {
                    best = Some((piece.size, piece.start, s, p));
                }
            }
        }
        best.map(|(_, _, s, p)| (s, p))
    }

    fn free(&mut self, owner: usize) {
        for segment in &mut self.segments {
            for piece in &mut segment.pieces {
                if piece.owner == Some(owner) {
                    piece.owner = None;
                }
            }
            // Neighbours that are both free are one.
            let mut merged: Vec<Piece> = Vec::new();
            for &piece in &segment.pieces {
                match merged.last_mut() {
                    Some(last) if last.owner.is_none() && piece.owner.is_none() => last.size += piece.size,
                    _ => merged.push(piece),
                }
            }
            segment.pieces = merged;
        }
    }

    /// Checks the invariants: pieces tile their segment without gaps or overlap, and no two free ones are adjacent.
    fn check(&self) {
        for segment in &self.segments {
            let mut end = segment.pieces[0].start;
            for piece in &segment.pieces {
                assert_eq!(piece.start, end);
                assert!(piece.size > 0 && piece.size.is_multiple_of(512));
                end += piece.size;
            }
            assert_eq!(end - segment.pieces[0].start, segment.size);
            assert!(segment.pieces.windows(2).all(|pair| pair[0].owner.is_some() || pair[1].owner.is_some()));
        }
        let mut starts: Vec<(u64, u64)> = self.pieces().map(|piece| (piece.start, piece.size)).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(u64),
    /// Frees the n-th live request, counted cyclically.
    Free(usize),
    /// Frees something a second time.
    FreeTwice(usize),
    Budget(u64),
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0u64),
        4 => 1..=4096u64,
        4 => 4096..=MIB + 1024,
        // The edges of each kind of segment, and of what is worth splitting off.
        2 => (0..4u64, -2i64..=2).prop_map(|(edge, off)| ([MIB, 10 * MIB, 20 * MIB, 19 * MIB][edge as usize]).saturating_add_signed(off * 512)),
        2 => MIB..=12 * MIB,
        // Few sizes, so that several free pieces are equal and the oldest has to be taken.
        4 => (1..=4u64).prop_map(|n| n * 3 * MIB / 2),
        2 => Just(2048),
        2 => 12 * MIB..=70 * MIB,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => sizes().prop_map(Step::Allocate),
        5 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::FreeTwice),
        1 => (0..200 * MIB).prop_map(Step::Budget),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_caching_allocator_follows_its_twin(budget in 20 * MIB..300 * MIB, script in steps()) {
        let mut twin = Twin { budget, ..Twin::default() };
        let mut real = CachingAllocator::new(Bytes(budget));
        let mut live: Vec<(usize, Allocation)> = Vec::new();
        let mut wanted: Vec<u64> = Vec::new();
        let mut gone: Vec<Allocation> = Vec::new();
        let mut budget_fell = false;
        for step in script {
            match step {
                Step::Allocate(bytes) => {
                    let request = wanted.len();
                    wanted.push(bytes);
                    match (twin.allocate(request, bytes), real.allocate(Bytes(bytes))) {
                        (Ok(()), Ok(allocation)) => {
                            // A handle is not in use twice simultaneously; a stale one may be valid again.
                            prop_assert!(live.iter().all(|(_, other)| *other != allocation));
                            gone.retain(|stale| *stale != allocation);
                            live.push((request, allocation));
                        }
                        (Err((want, left)), Err(AllocationError::OutOfMemory { wanted, available, budget })) => {
                            prop_assert_eq!((want, left, twin.budget), (wanted.0, available.0, budget.0));
                        }
                        (one, other) => prop_assert!(false, "twin {:?}, allocator {:?}", one, other),
                    }
                }
                Step::Free(n) if !live.is_empty() => {
                    let (request, allocation) = live.swap_remove(n % live.len());
                    twin.free(request);
                    real.free(allocation);
                    gone.push(allocation);
                }
                Step::FreeTwice(n) if !gone.is_empty() => real.free(gone[n % gone.len()]),
                Step::Budget(bytes) => {
                    budget_fell |= bytes < twin.reserved();
                    twin.budget = bytes;
                    real.set_budget(Bytes(bytes));
                }
                _ => {}
            }
            twin.check();
            prop_assert_eq!(real.allocated().0, twin.allocated());
            prop_assert_eq!(real.reserved().0, twin.reserved());
            prop_assert_eq!((real.reserved() - real.allocated()).0, twin.reserved() - twin.allocated());
            // Bytes are conserved: every request got at least its size, and at most 1 MiB more.
            let asked: u64 = live.iter().map(|(request, _)| wanted[*request]).sum();
            prop_assert!(asked <= real.allocated().0);
            prop_assert!(real.allocated().0 <= asked + live.len() as u64 * (MIB + 512));
            prop_assert!(real.allocated() <= real.reserved());
            prop_assert!(budget_fell || real.reserved().0 <= twin.budget);
        }
        for (request, allocation) in live {
            twin.free(request);
            real.free(allocation);
        }
        prop_assert_eq!(real.allocated(), Bytes::ZERO);
        // Every segment is one free piece again, so a request beyond the budget releases all of them.
        real.set_budget(Bytes::ZERO);
        prop_assert!(real.allocate(Bytes(1 << 40)).is_err());
        prop_assert_eq!(real.reserved(), Bytes::ZERO);
    }

    #[test]
    fn the_exact_allocator_holds_the_sum_of_what_lives(budget in 1..1000u64, script in prop::collection::vec((any::<bool>(), 0..200u64), 1..80)) {
        let mut exact = ExactAllocator::new(Bytes(budget));
        let mut live: Vec<(Allocation, u64)> = Vec::new();
        for (allocate, n) in script {
            let sum: u64 = live.iter().map(|(_, size)| size).sum();
            if allocate {
                match exact.allocate(Bytes(n)) {
                    Ok(allocation) => live.push((allocation, n)),
                    Err(AllocationError::OutOfMemory { wanted, available, budget: of }) => {
                        prop_assert_eq!((wanted.0, available.0, of.0), (n, budget - sum, budget));
                        prop_assert!(sum + n > budget);
                    }
                }
            } else if !live.is_empty() {
                let (allocation, _) = live.swap_remove(n as usize % live.len());
                exact.free(allocation);
                exact.free(allocation);
            }
            let sum: u64 = live.iter().map(|(_, size)| size).sum();
            prop_assert!(sum <= budget);
            prop_assert_eq!((exact.allocated().0, exact.reserved().0), (sum, sum));
        }
    }
}

#[test]
fn a_smaller_budget_takes_nothing_from_what_lives() {
    let mut a = CachingAllocator::new(Bytes(100 * MIB));
    let kept = a.allocate(Bytes(30 * MIB)).unwrap();
    let cached = a.allocate(Bytes(12 * MIB)).unwrap();
    a.free(cached);
    a.set_budget(Bytes(40 * MIB));
    // 30 + 12 MiB are reserved, beyond the new 40 MiB, until the next request; then the 12 MiB of cache are released.
    assert_eq!(a.reserved(), Bytes(42 * MIB));
    assert!(a.allocate(Bytes(20 * MIB)).is_err());
    assert_eq!(a.reserved(), Bytes(30 * MIB));
    a.set_budget(Bytes(50 * MIB));
    a.allocate(Bytes(20 * MIB)).unwrap();
    assert_eq!(a.reserved(), Bytes(50 * MIB));
    a.free(kept);
    // The 30 MiB block is cached; 28 MiB fit into it and leave 2 MiB, which is worth splitting off.
    a.allocate(Bytes(28 * MIB)).unwrap();
    assert_eq!((a.allocated(), a.reserved()), (Bytes(48 * MIB), Bytes(50 * MIB)));
}
