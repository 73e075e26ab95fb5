//! The page arena by hand arithmetic, and the page table's two orders in lock step with a sorted list.

use std::collections::{BTreeMap, BTreeSet};

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::pages::order_cost::{self, OrderCost, OrderWork, OrderWorkload};
use haversack_memory::pages::red_black::RedBlackTree;
use haversack_memory::pages::{
    ArenaConfig, Effects, Fragmentation, IDS, Keys, Over, PageArena, PageError, PageTable, Rank, Tighter, Tournament,
};
use proptest::prelude::*;

const fn config(page: u64, step: u64, budget: u64) -> ArenaConfig {
    ArenaConfig { page: Bytes(page), step: Bytes(step), budget: Bytes(budget) }
}

const fn keys(importance: f64, time: u64) -> Keys {
    Keys { importance, time: Nanos(time) }
}

/// Pages of 10 bytes in blocks of 40 under a budget of 100.
fn small() -> PageArena {
    PageArena::with_data(config(10, 40, 100)).unwrap()
}

/// A table of the same pages.
fn table() -> PageTable {
    PageTable::new(Bytes(10)).unwrap()
}

fn pages(store: &PageArena, id: u32) -> Vec<u32> {
    store.pages(id).collect()
}

// ---------------------------------------------------------------------------------------- the arena by hand

#[test]
fn blocks_are_allocated_as_they_are_needed_and_the_last_is_cut_to_the_budget() {
    let mut store = small();
    assert_eq!(store.reserved(), Bytes::ZERO);
    // 25 B are 3 pages: one block of 4.
    let effects = store.insert(0, Bytes(25)).unwrap();
    assert_eq!(effects, Effects { allocations: 1, allocated: Bytes(40), ..Effects::default() });
    // 61 B are 7 pages; 1 is free, so 6 are missing: a block of 4, and 2 pages are left of the budget of 10.
    let effects = store.insert(1, Bytes(61)).unwrap();
    assert_eq!(effects, Effects { allocations: 2, allocated: Bytes(60), ..Effects::default() });
    assert_eq!((store.reserved(), store.used(), store.stored()), (Bytes(100), Bytes(100), Bytes(86)));
    // 10 of 10 pages are in use; 11 B want 2 more.
    let full = PageError::Full { id: 2, missing: Bytes(20), budget: Bytes(100) };
    assert_eq!(store.insert(2, Bytes(11)), Err(full));
    assert_eq!([0, 1, 2].map(|id| store.size(id)), [Some(Bytes(25)), Some(Bytes(61)), None]);
}

#[test]
fn the_first_fit_takes_the_lowest_free_pages_and_links_them() {
    let mut store = small();
    for id in 0..4 {
        store.insert(id, Bytes(20)).unwrap();
    }
    store.evict(0).unwrap();
    store.evict(2).unwrap();
    // Free are 0, 1, 4 and 5 of 8 pages; 35 B take the lowest four, in two runs.
    let effects = store.insert(4, Bytes(35)).unwrap();
    assert_eq!(effects, Effects::default());
    assert_eq!(pages(&store, 4), [0, 1, 4, 5]);
    store.evict(1).unwrap();
    // Reserved 80 = stored 20 + 35, 5 lost in the last page of activation 4, pages 2 and 3 free in one stretch.
    // Runs: 0-1 and 4-5 of activation 4, 6-7 of activation 3.
    let expected = Fragmentation {
        reserved: Bytes(80),
        stored: Bytes(55),
        internal: Bytes(5),
        free: Bytes(20),
        longest_free: Bytes(20),
        placed: 2,
        runs: 3,
        most_runs: 2,
    };
    assert_eq!(store.fragmentation(), expected);
}

#[test]
fn requantising_in_place_gives_the_tail_back_and_keeps_the_head() {
    let mut store = small();
    store.insert(0, Bytes(38)).unwrap();
    let bytes: Vec<u8> = (0..38).collect();
    store.write(0, &bytes).unwrap();
    // Half of 38 B is 19 B: 2 of 4 pages.
    store.shrink(0, Bytes(19)).unwrap();
    assert_eq!((store.used(), store.stored()), (Bytes(20), Bytes(19)));
    let mut read = [0; 19];
    store.read(0, &mut read).unwrap();
    assert_eq!(read[..], bytes[..19]);
    let grows = PageError::Grows { id: 0, placed: Bytes(19), wanted: Bytes(20) };
    assert_eq!(store.shrink(0, Bytes(20)), Err(grows));
    // Nothing stored: no pages, but the id is still known and can be shrunk to nothing again.
    store.shrink(0, Bytes::ZERO).unwrap();
    store.shrink(0, Bytes::ZERO).unwrap();
    assert_eq!((store.used(), store.size(0)), (Bytes::ZERO, Some(Bytes::ZERO)));
    store.insert(1, Bytes(40)).unwrap();
    assert_eq!(pages(&store, 1), [0, 1, 2, 3]);
}

#[test]
fn a_smaller_budget_copies_what_lies_beyond_the_end() {
    let mut store = small();
    for (id, size) in [(0, 20), (1, 30), (2, 25)] {
        store.insert(id, Bytes(size)).unwrap();
    }
    let bytes: Vec<u8> = (100..125).collect();
    store.write(2, &bytes).unwrap();
    assert_eq!(pages(&store, 2), [5, 6, 7]);
    // 8 pages in 2 blocks; a budget of 79 leaves the first. All 8 pages are in use, so 4 are too many.
    let over = Over { bytes: Bytes(40), budget: Bytes(79) };
    assert_eq!((store.set_budget(Bytes(79)), store.shortfall(Bytes(79))), (Err(over), Bytes(40)));
    assert_eq!((store.budget(), store.reserved()), (Bytes(100), Bytes(80)));
    store.evict(1).unwrap();
    // 20 + 30 B of pages stay, the first block has 40: one page too many still.
    assert_eq!(store.shortfall(Bytes(79)), Bytes(10));
    store.shrink(2, Bytes(12)).unwrap();
    // Activation 2 has pages 5 and 6, with 10 B and 2 B; they move to 2 and 3: 12 B copied.
    let effects = store.set_budget(Bytes(79)).unwrap();
    assert_eq!(effects, Effects { releases: 1, released: Bytes(40), copied: Bytes(12), ..Effects::default() });
    assert_eq!(pages(&store, 2), [2, 3]);
    let mut read = [0; 12];
    store.read(2, &mut read).unwrap();
    assert_eq!(read[..], bytes[..12]);
    // 7 pages fit into 79 B: the next block has only 3.
    store.insert(3, Bytes(1)).unwrap();
    assert_eq!((store.reserved(), store.capacity()), (Bytes(70), Bytes(70)));
}

#[test]
fn large_steps_force_more_out_than_small_ones() {
    // 800 MB filled by 80 activations of 10 MB, then the budget falls to 450 MB, with pages of 1 MB. Blocks of 30,
    // 100 and 400 MB leave 15 x 30, 4 x 100 and 1 x 400 MB: 350, 400 and 400 MB must go. At 350 MB they leave
    // 11 x 30, 3 x 100 and nothing: 470, 500 and 800 MB. A whole step is lost at worst.
    const MB: u64 = 1_000_000;
    for (step, calls, at_450, at_350) in [(30, 27, 350, 470), (100, 8, 400, 500), (400, 2, 400, 800)] {
        let mut store = PageArena::new(config(MB, step * MB, 800 * MB)).unwrap();
        let all: Vec<Effects> = (0..80).map(|id| store.insert(id, Bytes(10 * MB)).unwrap()).collect();
        let calls_made: u32 = all.iter().map(|effects| effects.allocations).sum();
        let allocated: Bytes = all.iter().map(|effects| effects.allocated).sum();
        // ceil(800 / step) calls.
        assert_eq!((calls_made, allocated), (calls, Bytes(800 * MB)));
        assert_eq!(store.shortfall(Bytes(450 * MB)), Bytes(at_450 * MB));
        assert_eq!(store.shortfall(Bytes(350 * MB)), Bytes(at_350 * MB));
    }
}

#[test]
fn a_step_beyond_the_budget_is_cut_and_a_vanishing_budget_takes_everything() {
    let mut store = PageArena::new(config(10, 1000, 35)).unwrap();
    let effects = store.insert(0, Bytes(5)).unwrap();
    // 35 B are 3 whole pages.
    assert_eq!((effects.allocated, store.capacity()), (Bytes(30), Bytes(30)));
    store.evict(0).unwrap();
    let effects = store.set_budget(Bytes(9)).unwrap();
    assert_eq!((effects.released, store.reserved(), store.capacity()), (Bytes(30), Bytes::ZERO, Bytes::ZERO));
    let full = PageError::Full { id: 0, missing: Bytes(10), budget: Bytes(9) };
    assert_eq!(store.insert(0, Bytes(1)), Err(full));
    // Raised again, it grows again.
    store.set_budget(Bytes(20)).unwrap();
    assert_eq!(store.insert(0, Bytes(1)).unwrap().allocated, Bytes(20));
}

#[test]
fn bad_input_is_a_typed_error() {
    assert_eq!(PageArena::new(config(0, 10, 10)).unwrap_err(), PageError::EmptyPage);
    let small_budget = PageError::BudgetBelowPage { budget: Bytes(9), page: Bytes(10) };
    assert_eq!(PageArena::new(config(10, 10, 9)).unwrap_err(), small_budget);
    let small_step = PageError::StepBelowPage { step: Bytes(9), page: Bytes(10) };
    assert_eq!(PageArena::new(config(10, 9, 10)).unwrap_err(), small_step);

    let mut store = small();
    let unknown = PageError::UnknownId(7);
    assert_eq!((store.shrink(7, Bytes(1)), store.evict(7)), (Err(unknown), Err(unknown)));
    assert_eq!((store.write(7, &[]), store.read(7, &mut [])), (Err(unknown), Err(unknown)));
    store.insert(1, Bytes(1)).unwrap();
    assert_eq!(store.insert(1, Bytes(1)), Err(PageError::KnownId(1)));
    let length = PageError::WrongLength { id: 1, size: Bytes(1), given: Bytes(2) };
    assert_eq!(store.read(1, &mut [0, 0]), Err(length));
    assert_eq!(store.insert(IDS, Bytes(1)), Err(PageError::IdTooLarge(IDS)));
    let mut sizes = PageArena::new(config(10, 40, 100)).unwrap();
    sizes.insert(0, Bytes(1)).unwrap();
    assert_eq!(sizes.write(0, &[0]), Err(PageError::NoData));

    // No budget is too large, but an arena has at most 2^26 pages.
    let unlimited = PageArena::new(config(10, 40, u64::MAX)).unwrap();
    assert_eq!(unlimited.capacity(), Bytes(10 << 26));
    // A size beyond any budget is an error.
    assert!(matches!(sizes.insert(2, Bytes::MAX), Err(PageError::Full { .. })));

    let mut table = table();
    assert_eq!(PageTable::new(Bytes::ZERO).unwrap_err(), PageError::EmptyPage);
    assert_eq!((table.update_key(7, 1.0), table.update_size(7, Bytes(1))), (Err(unknown), Err(unknown)));
    assert_eq!(table.evict(7), Err(unknown));
    let nan = PageError::NotANumber(1);
    assert_eq!(table.insert(1, Bytes(1), keys(f64::NAN, 1)), Err(nan));
    assert_eq!((table.first(Tighter::Memory), table.first(Tighter::Time)), (None, None));
    table.insert(1, Bytes(1), keys(1.0, 1)).unwrap();
    assert_eq!(table.insert(1, Bytes(1), keys(1.0, 1)), Err(PageError::KnownId(1)));
    assert_eq!(table.update_key(1, f64::NAN), Err(nan));
    // Its importance is still 1: it goes before 2, which is worth more, and after 3, which is worth less.
    table.insert(2, Bytes(1), keys(1.5, 1)).unwrap();
    assert_eq!(table.first(Tighter::Memory), Some(1));
    table.insert(3, Bytes(1), keys(0.5, 1)).unwrap();
    assert_eq!(table.first(Tighter::Memory), Some(3));
    table.evict(2).unwrap();
    table.evict(3).unwrap();
    assert_eq!(table.insert(IDS, Bytes(1), keys(1.0, 1)), Err(PageError::IdTooLarge(IDS)));

    // Sizes beyond any budget, twice: the demand saturates at the largest number and comes back.
    for id in [10, 11] {
        table.insert(id, Bytes::MAX, keys(1.0, 1)).unwrap();
    }
    assert_eq!(table.demand(), Bytes::MAX);
    table.evict(10).unwrap();
    table.update_size(11, Bytes(11)).unwrap();
    // One page of activation 1, two of activation 11.
    assert_eq!(table.demand(), Bytes(30));
}

// -------------------------------------------------------------------------------------------- the two orders

#[test]
fn the_least_valuable_for_its_cost_goes_first() {
    let mut table = table();
    // Importance / size: 0.2, 0.4, 0.4; importance / time: 2, 1, 0.5.
    table.insert(0, Bytes(10), keys(2.0, 1)).unwrap();
    table.insert(1, Bytes(10), keys(4.0, 4)).unwrap();
    table.insert(2, Bytes(20), keys(8.0, 16)).unwrap();
    assert_eq!(table.first(Tighter::Memory), Some(0));
    assert_eq!(table.first(Tighter::Time), Some(2));
    // Without 0 the memory order is a tie at 0.4; by time, 2 is worth less.
    table.evict(0).unwrap();
    assert_eq!(table.first(Tighter::Memory), Some(2));
    // Half its size, so twice its value per byte.
    table.update_size(2, Bytes(10)).unwrap();
    assert_eq!(table.first(Tighter::Memory), Some(1));
    // Equal in everything: the smaller id.
    table.update_size(2, Bytes(10)).unwrap();
    table.insert(3, Bytes(10), keys(4.0, 4)).unwrap();
    assert_eq!(table.first(Tighter::Memory), Some(1));
    // Negative worth goes before zero worth; an activation without bytes goes last.
    table.update_key(3, -1.0).unwrap();
    assert_eq!(table.first(Tighter::Memory), Some(3));
    table.update_size(3, Bytes::ZERO).unwrap();
    table.update_key(1, f64::INFINITY).unwrap();
    assert_eq!(table.first(Tighter::Memory), Some(2));
}

#[test]
fn demand_is_in_whole_pages() {
    // 2 and 5 pages of 10 B.
    let mut table = table();
    table.insert(0, Bytes(20), keys(1.0, 1)).unwrap();
    table.insert(1, Bytes(45), keys(1.0, 1)).unwrap();
    assert_eq!(table.demand(), Bytes(70));
}

/// A quotient as the table ranks it; few values, so that ties are common.
fn quotient() -> impl Strategy<Value = f64> {
    prop_oneof![4 => (-3_i32..4).prop_map(f64::from), 1 => any::<f64>().prop_filter("a number", |x| !x.is_nan())]
}

/// All ids of a tournament in order of eviction, by repeatedly removing the maximum.
fn drained(mut tournament: Tournament, tighter: Tighter) -> Vec<u32> {
    std::iter::from_fn(|| {
        let id = tournament.max(tighter)?;
        tournament.remove(id);
        Some(id)
    })
    .collect()
}

#[test]
fn a_red_black_tree_counts_its_work() {
    let mut tree = RedBlackTree::default();
    for id in 0..3 {
        tree.set(id, (u64::from(id), 0));
    }
    // The second key is compared with the first, the third with both: 3 comparisons. Each is linked once; the third
    // below a red parent, so the second is rotated above the first: two are recoloured and two linked again.
    assert_eq!(tree.work(), OrderWork { comparisons: 3, moves: 7 });
    assert_eq!([0, 1, 2, 3].map(|id| tree.depth(id)), [Some(1), Some(0), Some(1), None]);
    assert_eq!(tree.max(), Some(2));
}

proptest! {
    /// Tournament, red-black trees and a sorted list, in lock step.
    #[test]
    fn orders_agree_with_a_sorted_list(
        script in prop::collection::vec((0_u32..40, prop::option::weighted(0.7, (quotient(), quotient()))), 0..120),
    ) {
        let mut tournament = Tournament::default();
        let mut trees = [RedBlackTree::default(), RedBlackTree::default()];
        let mut model = BTreeMap::new();
        for (id, quotients) in script {
            match quotients {
                Some((by_size, by_time)) => {
                    let rank = Rank::new(by_size, by_time).unwrap();
                    tournament.set(id, rank);
                    trees[0].set(id, rank.key(Tighter::Memory));
                    trees[1].set(id, rank.key(Tighter::Time));
                    model.insert(id, (by_size, by_time));
                }
                None => {
                    tournament.remove(id);
                    trees.iter_mut().for_each(|tree| tree.remove(id));
                    model.remove(&id);
                }
            }
            for (tighter, tree) in [Tighter::Memory, Tighter::Time].into_iter().zip(&trees) {
                let mut sorted: Vec<u32> = model.keys().copied().collect();
                sorted.sort_by(|a, b| {
                    let [(size_a, time_a), (size_b, time_b)] = [model[a], model[b]];
                    let (by_size, by_time) = (size_a.total_cmp(&size_b), time_a.total_cmp(&time_b));
                    let by_quotients = match tighter {
                        Tighter::Memory => by_size.then(by_time),
                        Tighter::Time => by_time.then(by_size),
                    };
                    by_quotients.then(a.cmp(b))
                });
                prop_assert_eq!(tournament.max(tighter), sorted.first().copied());
                prop_assert_eq!(tree.max(), sorted.first().copied());
                prop_assert_eq!(tree.descending().collect::<Vec<_>>(), sorted.clone());
                prop_assert_eq!(drained(tournament.clone(), tighter), sorted);
            }
        }
    }
}

// ------------------------------------------------------------------------------------------------ the cost of an order

#[test]
fn with_one_activation_there_is_nothing_to_order() {
    for n in [0, 1] {
        let cost = order_cost::iteration(n, &OrderWorkload { freed: 0.0, ..OrderWorkload::default() });
        let n = u64::from(n);
        assert_eq!(cost.sort, OrderWork::default());
        // The search for the only key compares it with itself. Its removal links the sentinel instead of it and
        // recolours it; the insertion links the node. Twice, for two trees.
        assert_eq!(cost.tree, OrderWork { comparisons: 2 * n, moves: 6 * n });
    }
}

#[test]
fn sorting_at_every_arrival_costs_more_than_two_trees_from_a_few_activations_on() {
    for n in [20, 60, 200] {
        let OrderCost { sort, tree, victims } = order_cost::iteration(n, &OrderWorkload::default());
        let n = u64::from(n);
        // A sort cannot know that n keys are in order with less than n - 1 comparisons, and there are n sorts.
        assert!(sort.comparisons >= n * (n - 1), "{sort:?}");
        // A red-black tree is at most 2 log2(n + 1) deep; each arrival searches two of them for the old key and for
        // the place of the new.
        let deepest = 2.0 * (n as f64 + 1.0).log2();
        assert!(tree.comparisons as f64 <= 4.0 * n as f64 * deepest, "{tree:?}");
        // A removal and an insertion write at least one node each, in two trees.
        assert!(tree.moves >= 4 * n, "{tree:?}");
        assert!(sort.comparisons > tree.comparisons);
        assert!(victims.is_empty());
    }
}

#[test]
fn a_falling_budget_takes_victims() {
    let workload = OrderWorkload { freed: 0.5, ..OrderWorkload::default() };
    let cost = order_cost::iteration(60, &workload);
    assert_eq!(cost, order_cost::iteration(60, &workload));
    assert!(!cost.victims.is_empty());
    // Freeing everything means evicting every activation once, including those requantised before.
    let all = order_cost::iteration(60, &OrderWorkload { freed: 1.0, ..workload });
    assert_eq!(BTreeSet::from_iter(all.victims).len(), 60);
}
