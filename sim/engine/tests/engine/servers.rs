//! Servers by hand: small cases with their arithmetic, and the calls that are refused.

use haversack_devices::units::Nanos;
use haversack_engine::{Cancelled, FifoServer, Priority, PriorityServer, ResourceError};

fn collect_fifo<T>(server: &mut FifoServer<T>, until: u64) -> Vec<(u64, T)> {
    std::iter::from_fn(|| server.advance(Nanos(until)).unwrap()).map(|done| (done.time.0, done.item)).collect()
}

#[test]
fn two_servers_take_the_oldest_job_first() {
    let mut server = FifoServer::new(2).unwrap();
    for (name, service) in [('a', 10), ('b', 4), ('c', 5), ('d', 1)] {
        server.insert(Nanos(0), Nanos(service), name).unwrap();
    }
    assert_eq!((server.serving(), server.waiting()), (2, 2));
    // b ends at 4 and c takes its place until 4 + 5 = 9; d follows until 9 + 1 = 10, where a, which
    // began earlier, ends too.
    assert_eq!(server.next_completion(), Some(Nanos(4)));
    assert_eq!(collect_fifo(&mut server, 100), [(4, 'b'), (9, 'c'), (10, 'a'), (10, 'd')]);
    assert_eq!((server.now(), server.next_completion()), (Nanos(100), None));
}

#[test]
fn a_cancelled_job_frees_its_server() {
    let mut server = FifoServer::new(1).unwrap();
    let first = server.insert(Nanos(0), Nanos(10), 'a').unwrap();
    let second = server.insert(Nanos(0), Nanos(10), 'b').unwrap();
    server.insert(Nanos(0), Nanos(10), 'c').unwrap();
    // a has 10 - 3 = 7 ns left, b has not begun.
    let cancelled = server.cancel(Nanos(3), first).unwrap();
    assert_eq!(cancelled, Some(Cancelled { item: 'a', remaining: Nanos(7) }));
    // b began at 3.
    assert_eq!(server.next_completion(), Some(Nanos(13)));
    assert_eq!(server.cancel(Nanos(5), second).unwrap().unwrap().remaining, Nanos(8));
    assert_eq!(server.cancel(Nanos(5), second), Ok(None));
    assert_eq!(collect_fifo(&mut server, 100), [(15, 'c')]);
}

#[test]
fn a_waiting_job_that_is_cancelled_is_passed_over() {
    let mut server = FifoServer::new(1).unwrap();
    server.insert(Nanos(0), Nanos(10), 'a').unwrap();
    let waiting = server.insert(Nanos(0), Nanos(6), 'b').unwrap();
    server.insert(Nanos(0), Nanos(1), 'c').unwrap();
    assert_eq!(server.cancel(Nanos(2), waiting).unwrap(), Some(Cancelled { item: 'b', remaining: Nanos(6) }));
    assert_eq!(collect_fifo(&mut server, 100), [(10, 'a'), (11, 'c')]);
}

#[test]
fn a_due_job_has_completed() {
    let mut server = FifoServer::new(1).unwrap();
    let job = server.insert(Nanos(0), Nanos(10), 'a').unwrap();
    assert_eq!(server.cancel(Nanos(10), job), Ok(None));
    assert_eq!(collect_fifo(&mut server, 10), [(10, 'a')]);
}

#[test]
fn a_job_without_service_still_takes_its_turn() {
    let mut server = FifoServer::new(1).unwrap();
    server.insert(Nanos(0), Nanos(5), 'a').unwrap();
    server.insert(Nanos(1), Nanos(0), 'b').unwrap();
    assert_eq!(collect_fifo(&mut server, 5), [(5, 'a'), (5, 'b')]);
}

#[test]
fn priority_goes_before_age_but_never_interrupts() {
    let mut server = PriorityServer::new(1).unwrap();
    for (now, priority, name) in [(0, 9, 'a'), (1, 5, 'b'), (2, 1, 'c'), (3, 5, 'd')] {
        server.insert(Nanos(now), Priority(priority), Nanos(10), name).unwrap();
    }
    let order: Vec<_> = std::iter::from_fn(|| server.advance(Nanos(40)).unwrap()).map(|done| done.item).collect();
    assert_eq!(order, ['a', 'c', 'b', 'd']);
}

#[test]
fn an_arrival_competes_for_a_server_whose_completion_is_not_collected() {
    let run = |collect_first: bool| {
        let mut server = PriorityServer::new(1).unwrap();
        server.insert(Nanos(0), Priority(0), Nanos(10), 'a').unwrap();
        server.insert(Nanos(0), Priority(2), Nanos(10), 'b').unwrap();
        if collect_first {
            server.advance(Nanos(10)).unwrap();
        }
        server.insert(Nanos(10), Priority(1), Nanos(10), 'c').unwrap();
        std::iter::from_fn(|| server.advance(Nanos(40)).unwrap()).map(|done| done.item).collect::<String>()
    };
    assert_eq!(run(false), "acb");
    assert_eq!(run(true), "bc");
}

#[test]
fn a_server_refuses_the_past_and_a_skipped_completion() {
    let mut server = FifoServer::new(1).unwrap();
    let job = server.insert(Nanos(5), Nanos(10), 'a').unwrap();
    let past = ResourceError::Past { now: Nanos(4), clock: Nanos(5) };
    assert_eq!(server.insert(Nanos(4), Nanos(1), 'b'), Err(past));
    assert_eq!(server.advance(Nanos(4)), Err(past));
    assert_eq!(server.cancel(Nanos(4), job), Err(past));
    let skipped = ResourceError::Uncollected { now: Nanos(16), due: Nanos(15) };
    assert_eq!(server.insert(Nanos(16), Nanos(1), 'b'), Err(skipped));
    assert_eq!(server.cancel(Nanos(16), job), Err(skipped));
    // The refusals left no trace.
    assert_eq!((server.now(), server.serving(), server.waiting()), (Nanos(5), 1, 0));
    assert_eq!(collect_fifo(&mut server, 16), [(15, 'a')]);
}

#[test]
fn no_servers_are_refused() {
    assert_eq!(FifoServer::<()>::new(0).unwrap_err(), ResourceError::NoServers);
    assert_eq!(PriorityServer::<()>::new(0).unwrap_err(), ResourceError::NoServers);
}
