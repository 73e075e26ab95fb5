//! The rules that decide which tensor is evicted, one small log each.
//!
//! Tensors are numbered in the order of creation, constants first; a storage has the number of its first tensor.

use haversack_replay::{Heuristic, Log, Outcome, ReplayError, Status, replay};

use crate::residual;
use crate::script::Script;

/// Replays a script with a budget of `budget` bytes.
fn within(script: &Script, heuristic: Heuristic, budget: u64) -> Outcome {
    let log = Log::parse("script", script.text()).unwrap();
    // Half a byte more than the budget, as the product is rounded down.
    let ratio = (budget as f64 + 0.5) / replay(&log, heuristic, 1.0, 100.0).unwrap().baseline_memory.as_f64();
    let outcome = replay(&log, heuristic, ratio, 100.0).unwrap();
    assert_eq!(outcome.budget.0, budget);
    outcome
}

/// The digest of evictions given as (storage, clock).
fn digest(evictions: &[(u64, u64)]) -> u64 {
    let words = evictions.iter().flat_map(|&(storage, clock)| [storage, clock]);
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn the_clock_starts_at_one() {
    let script = Script::new().constant("w", 8).call(&["w"], "y", 8, 10);
    let outcome = within(&script, Heuristic::Lru, 16);
    // 1 + 10; the constant takes no time. 11 / 10 = 1.1.
    assert_eq!((outcome.status, outcome.clock_final, outcome.operators), (Status::Ok, 11, 2));
    assert!((outcome.slowdown - 1.1).abs() < 1e-12);
}

#[test]
fn what_nothing_refers_to_goes_at_once() {
    let script = Script::new().constant("w", 8).call(&["w"], "y", 8, 10).release("y");
    let outcome = within(&script, Heuristic::Lru, 16);
    // Tensor 1 at clock 1 + 10, though everything fits.
    assert_eq!((outcome.evictions, outcome.heuristic_evictions), (1, 0));
    assert_eq!(outcome.evict_hash, digest(&[(1, 11)]));
}

#[test]
fn a_released_constant_stays() {
    let script = Script::new().constant("w", 8).call(&["w"], "y", 8, 10).release("w");
    let outcome = within(&script, Heuristic::Lru, 16);
    assert_eq!(outcome.evictions, 0);
}

#[test]
fn what_a_name_still_holds_is_brought_back_at_the_end() {
    let script = Script::new().constant("w", 8).call(&["w"], "a", 100, 10).call(&["w"], "b", 100, 10).release("b");
    // One of the two fits in 108 bytes: a is evicted for b at clock 11, b is released at 21, and a returns.
    let outcome = within(&script, Heuristic::DtrLocal, 108);
    assert_eq!((outcome.status, outcome.clock_final), (Status::Ok, 31));
    assert_eq!((outcome.operators, outcome.rematerialised_operators), (4, 1));
    assert_eq!(outcome.evict_hash, digest(&[(1, 11), (2, 21)]));
    // If b stays as well, both would have to be resident simultaneously.
    let both = Script::new().constant("w", 8).call(&["w"], "a", 100, 10).call(&["w"], "b", 100, 10);
    assert_eq!(within(&both, Heuristic::DtrLocal, 108).status, Status::Oom);
}

/// Three equal tensors, an operator that may touch one of them, and one that needs room.
fn three_equals(touched: Option<&str>) -> Script {
    let script = Script::new().constant("w", 8);
    let script = ["a", "b", "c"].iter().fold(script, |s, name| s.call(&["w"], name, 100, 10));
    let script = script.call(&[touched.unwrap_or("w")], "r", 1, 10).call(&["w"], "d", 100, 10);
    ["a", "b", "c", "d"].iter().fold(script, |s, name| s.release(name))
}

#[test]
fn the_last_of_equals_goes() {
    // Tensors 1, 2 and 3 are equally large and in this order; r (4) is small. The victim is 3, at clock 1 + 4 × 10; d
    // is then created and all are released at 51.
    let outcome = within(&three_equals(None), Heuristic::Size, 8 + 300 + 1);
    assert_eq!(outcome.evict_hash, digest(&[(3, 41), (1, 51), (2, 51), (5, 51)]));
}

#[test]
fn a_touched_storage_returns_to_the_tail_of_the_pool() {
    // Reading a (1) removed it from the pool: it is now behind b and c, whose order is unchanged.
    let outcome = within(&three_equals(Some("a")), Heuristic::Size, 8 + 300 + 1);
    // The end needs r (4), which is resident: a is not brought back.
    assert_eq!(outcome.evict_hash, digest(&[(1, 41), (2, 51), (3, 51), (5, 51)]));
    // With b touched the order is a, c, b: the victim is b, not the one that a swapping removal would leave last.
    let outcome = within(&three_equals(Some("b")), Heuristic::Size, 8 + 300 + 1);
    assert_eq!(outcome.evict_hash, digest(&[(2, 41), (1, 51), (3, 51), (5, 51)]));
}

#[test]
fn a_views_cost_counts_for_its_base() {
    let with = |view: i64| {
        let script = Script::new().constant("w", 8).call(&["w"], "a", 100, 10).call(&["w"], "b", 100, 20);
        let script = script.call_alias(&["a"], "v", 0, view, 50).call(&["w"], "c", 100, 10);
        ["v", "a", "b", "c"].iter().fold(script, |s, name| s.release(name))
    };
    // Without sharing, a costs 10 per 100 bytes and b 20; v has no size. a (1) goes at 1 + 80.
    let apart = within(&with(-1), Heuristic::Msps, 208);
    assert_eq!(apart.evict_hash, digest(&[(1, 81), (3, 91), (2, 91), (4, 91)]));
    // As a view of a, v makes it 60: b (2) goes. The view has no storage of its own.
    let shared = within(&with(0), Heuristic::Msps, 208);
    assert_eq!(shared.evict_hash, digest(&[(2, 81), (1, 91), (4, 91)]));
}

#[test]
fn a_view_of_a_returned_base_is_run_again() {
    let script = Script::new().constant("w", 8).call(&["w"], "a", 100, 10).call_alias(&["a"], "v", 0, 0, 5);
    let script = script.call(&["w"], "b", 100, 10).release("b").call(&["v"], "y", 1, 10).release("v").release("a");
    let outcome = within(&script, Heuristic::Lru, 109);
    // a is evicted at 16 for b, b at 26; y needs v, which needs a: 10 and 5 once more, then y's 10.
    assert_eq!((outcome.clock_final, outcome.rematerialised_operators), (51, 2));
    assert_eq!(outcome.evict_hash, digest(&[(1, 16), (2 + 1, 26), (1, 51)]));
}

#[test]
fn recomputing_too_much_is_thrash_and_no_room_is_oom() {
    let log = Log::parse("residual", residual::residual_network(4, 1)).unwrap();
    let tight = replay(&log, Heuristic::Lru, 0.55, 1.0).unwrap();
    assert_eq!((tight.status, tight.rematerialised_operators), (Status::Thrash, 1));
    let none = replay(&log, Heuristic::Lru, 0.01, 4.0).unwrap();
    assert_eq!((none.status.to_string(), none.heuristic_evictions), ("OOM".to_owned(), 0));
}

#[test]
fn settings_without_meaning_are_refused() {
    let log = Log::parse("residual", residual::residual_network(1, 1)).unwrap();
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(replay(&log, Heuristic::Dtr, ratio, 4.0), Err(ReplayError::MemoryRatio(_))));
    }
    for limit in [0.5, f64::NAN, f64::INFINITY] {
        assert!(matches!(replay(&log, Heuristic::Dtr, 1.0, limit), Err(ReplayError::OverheadLimit(_))));
    }
    // Neither the budget nor the limit can overflow.
    assert_eq!(replay(&log, Heuristic::Dtr, f64::MAX, f64::MAX).unwrap().status, Status::Ok);
}

#[test]
fn half_the_memory_completes_the_benchmarks_log() {
    let log = Log::parse("residual", residual::five_hundred_operators()).unwrap();
    // 2 steps of 5 + 18 × 14 calls, and of 1 + 2 × 14 constants.
    assert_eq!(log.operators(), 572);
    for heuristic in Heuristic::ALL {
        let outcome = replay(&log, heuristic, 0.5, 4.0).unwrap();
        assert_eq!(outcome.status, Status::Ok, "{heuristic}");
        assert!(outcome.rematerialised_operators > 0 && outcome.peak_memory <= outcome.budget, "{heuristic}");
        assert_eq!(outcome, replay(&log, heuristic, 0.5, 4.0).unwrap());
    }
}

#[test]
fn a_chain_of_100_000_operators_is_recomputed_from_its_start() {
    for heuristic in Heuristic::ALL {
        // Exact neighbourhoods cost time quadratic in the chain; the depth stays in the thousands.
        let exact = matches!(heuristic, Heuristic::Dtr | Heuristic::Msps);
        let length = if exact { 5_000 } else { 100_000 };
        let mut script = Script::new().constant("x0", 1);
        for i in 1..=length {
            let (from, to) = (format!("x{}", i - 1), format!("x{i}"));
            script = script.call(&[&from], &to, 100, 10).release(&from);
        }
        // The large tensor evicts the end of the chain, which the last operator then needs.
        let last = format!("x{length}");
        let script = script.call(&["x0"], "large", 200, 10).release("large").call(&[&last], "y", 1, 10).release(&last);
        let outcome = within(&script, heuristic, 203);
        assert_eq!(outcome.status, Status::Ok);
        // Everything in the chain twice, the constant and the two operators after it once.
        assert_eq!(outcome.operators, 2 * length + 3, "{heuristic}");
        assert_eq!(outcome.rematerialised_operators, length, "{heuristic}");
        assert_eq!(outcome.clock_final, 1 + 20 * length + 20, "{heuristic}");
    }
}
