//! The command queue against hand arithmetic and against processor-sharing theory.

use crate::common;
use crate::common::assert_close;
use haversack_devices::storage::{Direction, Driver, Flash, FlashQueue, PAGE, Request, ScalarSpeed, Stream};
use haversack_devices::units::{Bytes, BytesPerSecond, Factor, Fraction, Nanos};

/// 64 KiB.
const BLOCK: Bytes = Bytes(65_536);
const FREE: Driver = Driver { command: Nanos::ZERO, page: Nanos::ZERO, handover: Nanos::ZERO };
/// 5 µs per command and 1 µs per page.
const BUSY: Driver = Driver { command: Nanos(5_000), page: Nanos(1_000), handover: Nanos::ZERO };

fn flash(constants: &[(&str, f64)]) -> Flash {
    common::device_with_storage(constants).flash().unwrap()
}

/// A device whose commands can each use all of it: nothing but bandwidth.
fn plain() -> Flash {
    flash(&[("latency_read", 0.0), ("latency_write", 0.0)])
}

fn queue(flash: Flash) -> FlashQueue {
    FlashQueue::new(flash)
}

fn us(microseconds: f64) -> Nanos {
    Nanos::from_seconds(microseconds * 1e-6)
}

fn reading(bytes: Bytes) -> Request {
    Request { direction: Direction::Read, bytes, command: BLOCK, depth: 1 }
}

#[test]
fn a_command_occupies_the_device_and_takes_longer_alone() {
    let flash = flash(&[]);
    assert_eq!(flash.slots(), 8);
    // 4,096 B at 409.6 MB/s of random reads are 10 us; 65,536 B at 1 GB/s 65.536 us; alone 100 + 61,440 / 2,000 us.
    assert_eq!(flash.occupation(Direction::Read, PAGE).0, 1e-5);
    assert_eq!(flash.occupation(Direction::Read, BLOCK).0, 65.536e-6);
    assert_eq!(flash.alone(Direction::Read, PAGE), us(100.0));
    assert_eq!(flash.alone(Direction::Read, BLOCK), us(130.72));
    // No data sheet for writes: the bytes after the first page move as fast as files do, 61,440 / 500 = 122.88 us.
    assert_eq!(flash.alone(Direction::Write, BLOCK), us(162.88));
}

#[test]
fn a_drivers_work_is_counted_by_commands_and_pages() {
    assert_eq!(BUSY.time(BLOCK), us(21.0));
    assert_eq!(BUSY.time(BLOCK + Bytes(1)), us(22.0));
    assert_eq!(BUSY.in_place().time(BLOCK), us(5.0));
    let speed = |iterations| ScalarSpeed::per_second(iterations).unwrap();
    assert_eq!(speed(2000.0).time(Factor(5000.0)), us(2.5));
    assert_eq!(speed(2000.0).at(Fraction(0.5)), speed(1000.0));
    for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(ScalarSpeed::per_second(nonsense), None);
        assert_eq!(speed(1.0).at(Fraction(nonsense)), speed(1.0));
    }
}

#[test]
fn drivers_on_several_cores_hand_one_lock_to_each_other() {
    // Two threads of four pages, as deep. Each driver needs 6 us for a command, but between commands of different
    // threads lie 20 us: the last of the eight are handed in at 6 + 6 × 20 and 6 + 7 × 20 us, and take 10 us.
    let driver = Driver { handover: us(20.0), ..BUSY };
    let mut queue = queue(plain());
    let request = Request { command: PAGE, depth: 4, ..reading(Bytes(4 * 4096)) };
    queue.submit(Nanos::ZERO, request, driver);
    queue.submit(Nanos::ZERO, request, driver);
    let ends: Vec<Nanos> = std::iter::from_fn(|| queue.advance(us(1000.0))).map(|done| done.time).collect();
    assert_eq!(ends, [us(136.0), us(156.0)]);
    // Alone a thread never waits.
    assert_eq!(self::queue(plain()).read(Nanos::ZERO, Bytes(4 * 4096), PAGE, 4, driver), us(40.0 + 6.0));
}

#[test]
fn depth_one_takes_the_driver_and_the_device_in_turn() {
    // Four pages, each takes 5 + 1 us in the driver and 100 us in the device: 424 us.
    let flash = flash(&[]);
    let mut queue = queue(flash);
    assert_eq!(queue.read(us(7.0), Bytes(4 * 4096), PAGE, 1, BUSY), us(424.0));
    assert_eq!(queue.clock(), us(431.0));
}

#[test]
fn driver_and_device_overlap_with_more_depth() {
    // 1 MiB are 16 commands. The core needs 21 us for each, the device 65.536 us: after the first 21 us it is never
    // idle, 21 + 16 × 65.536 = 1,069.576 us. A driver that takes 105 us never waits; the device's last command ends
    // 65.536 us after it: 16 × 105 + 65.536 = 1,745.536 us.
    let slow = Driver { command: us(25.0), page: us(5.0), ..FREE };
    for (driver, expected) in [(BUSY, 1069.576), (slow, 1745.536)] {
        let taken = queue(plain()).read(Nanos::ZERO, Bytes(1 << 20), BLOCK, 8, driver);
        assert_close(taken.seconds() * 1e6, expected, 0.02);
    }
}

#[test]
fn random_reads_reach_their_rate_with_depth_and_their_latency_without() {
    let read = |latency: f64, depth: u32| {
        let mut queue = queue(flash(&[("latency_read", latency)]));
        queue.read(Nanos::ZERO, Bytes(1000 * 4096), PAGE, depth, FREE)
    };
    // 1,000 pages of 10 us of the device and 40 us alone, which keep a quarter of it busy. One at a time: 40
    // ms. Two at a time keep 1 − 0.75² = 0.4375 of it busy: 10 / 0.4375 = 22.857 ms. Eight at a time 1 −
    // 0.75⁸ = 0.8999: 11.112 ms.
    assert_close(read(40.0, 1).seconds(), 40e-3, 1e-9);
    assert_close(read(40.0, 2).seconds(), 22.857e-3, 2e-6);
    assert_close(read(40.0, 8).seconds(), 11.112e-3, 2e-6);
    // At 100 us alone 1 − 0.9⁸ = 0.5695: 17.558 ms, however deep beyond the eight slots.
    assert_close(read(100.0, 8).seconds(), 17.558e-3, 2e-6);
    assert_close(read(100.0, 64).seconds(), 17.558e-3, 2e-6);
}

#[test]
fn commands_share_the_device_and_wait_beyond_its_slots() {
    // Twelve simultaneous pages, each of 10 us: eight share the device and end together after 80 us, the four that
    // waited share it for 40 us.
    let mut queue = queue(plain());
    for _ in 0..12 {
        queue.submit(Nanos::ZERO, reading(PAGE), FREE);
    }
    let ends: Vec<Nanos> = std::iter::from_fn(|| queue.advance(us(1000.0))).map(|done| done.time).collect();
    let expected: Vec<Nanos> = [[us(80.0); 8].as_slice(), [us(120.0); 4].as_slice()].concat();
    assert_eq!(ends, expected);
    assert_eq!(queue.clock(), us(1000.0));
    // A page concurrent with a block gets half of the device, 20 us; the block then has 55.536 us left.
    let block = queue.submit(us(1000.0), reading(BLOCK), FREE);
    let page = queue.submit(us(1000.0), reading(PAGE), FREE);
    let ends = [queue.advance(us(2000.0)).unwrap(), queue.advance(us(2000.0)).unwrap()];
    assert_eq!(ends.map(|done| (done.request, done.time)), [(page, us(1020.0)), (block, us(1075.536))]);
    assert_eq!((queue.advance(us(2000.0)), queue.advance(Nanos::MAX)), (None, None));
}

#[test]
fn commands_that_leave_room_still_meet_on_a_die() {
    // Two blocks keep 65.536 / 130.72 = 0.50134 of the device busy each, a page 0.1. Together they need 1.10268 and get
    // 1 − 0.49866² × 0.9 = 0.77621: a pace of 0.70393. The page ends after 100 / 0.70393 = 142.06 us, when the blocks
    // have 30.72 us left, at 0.75134 / 1.00268 = 0.74933: 41.00 us more.
    let mut queue = queue(flash(&[]));
    queue.submit(Nanos::ZERO, reading(BLOCK), FREE);
    queue.submit(Nanos::ZERO, reading(BLOCK), FREE);
    queue.submit(Nanos::ZERO, reading(PAGE), FREE);
    let ends: Vec<f64> =
        std::iter::from_fn(|| queue.advance(us(1000.0))).map(|done| done.time.seconds() * 1e6).collect();
    assert_close(ends[0], 142.06, 0.01);
    assert_close(ends[1], 183.06, 0.01);
    assert_close(ends[2], 183.06, 0.01);
}

#[test]
fn writes_slow_down_behind_a_full_cache_which_drains_while_idle() {
    // 1 MiB takes 16 blocks at 500 MB/s, 131.072 us each; the other 8 go to the flash at 250 MB/s, 262.144 us each.
    let mut queue = queue(plain());
    let taken = queue.write(Nanos::ZERO, Bytes(24 * 65_536), BLOCK, 1, FREE);
    assert_close(taken.seconds() * 1e6, 16.0 * 131.072 + 8.0 * 262.144, 0.1);
    assert_eq!(queue.write_cache_level(), Bytes(1 << 20));
    // Idle for 262.144 us at 250 MB/s makes room for one block.
    let later = queue.clock() + us(262.2);
    assert_close(queue.write(later, BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 131.072, 0.01);
    let again = queue.clock();
    assert_close(queue.write(again, BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 262.144, 0.01);
    // Reads care for none of this.
    let then = queue.clock();
    assert_close(queue.read(then, BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 65.536, 0.01);
}

/// The same with cells: four dies, a block of 384 KiB that 4 ms erase, and reads that wait 100 us for a
/// program and 700 us for an erase.
fn with_cells(write_cache: f64) -> Flash {
    let cells = "[storage.nand]
dies = 4 count
block = 384 KiB
erase = 4 ms
program_wait = 100 us
erase_wait = 700 us

[memory]";
    let mut device = common::device_with("[[cpu]]", &common::STORAGE.replace("[memory]", cells));
    for (name, value) in [("latency_read", 0.0), ("latency_write", 0.0), ("write_cache", write_cache)] {
        device.set(name, value).unwrap();
    }
    device.flash().unwrap()
}

#[test]
fn a_full_cache_is_emptied_beside_others_and_reads_wait_for_programs_and_erases() {
    let fill = |flash: Flash| {
        let mut queue = queue(flash);
        // 16 blocks fill 1 MiB, 131.072 us each; nothing is moved before a write finds no room.
        let taken = queue.write(Nanos::ZERO, Bytes(16 * 65_536), BLOCK, 1, FREE);
        assert_close(taken.seconds() * 1e6, 16.0 * 131.072, 0.1);
        queue
    };
    // The next one goes to the cells, 262.144 us, concurrently with the first piece that is moved, 384 KiB read at 1
    // GB/s and written at 250 MB/s or 1,966.08 us: each gets half.
    let mut full = fill(with_cells(1.0));
    let start = full.clock();
    assert_close(full.write(start, BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 524.288, 0.1);
    assert_eq!((full.commands(), full.write_cache_level()), ((0, 0), Bytes(1 << 20)));
    // A read certainly meets a programming die: it waits 100 us, and then shares the device: 65.536 of 165.536 us with
    // a command that uses all of it, 165.536 + 65.536 us.
    let mut meets = full.clone();
    let then = meets.clock();
    assert_close(meets.read(then, BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 231.072, 0.1);
    // Without reads the piece has moved 1,703.936 us later, and its block is erased for 4 ms, on one die of four. A
    // read that meets it waits a quarter of 700 us: 240.536 us alone, of which it keeps the device busy 65.536, a share
    // of 0.27246, concurrently with a quarter: a pace of (1 − 0.75 × 0.72754) / 0.52246 = 0.86963.
    let mut erases = full.clone();
    assert_close(erases.read(start + us(2_500.0), BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 276.60, 0.1);
    assert_eq!(erases.write_cache_level(), Bytes((1 << 20) - (384 << 10)));
    // Afterwards the flash is idle, and reads are as fast as before; there is room for a write.
    let later = start + us(8_000.0);
    assert_close(erases.read(later, BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 65.536, 0.01);
    let then = erases.clock();
    assert_close(erases.write(then, BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 131.072, 0.01);
    // While the cache has room, reads only share dies with concurrent writes, and wait for none of them.
    let beside = |flash: Flash| {
        let mut queue = queue(flash);
        queue.submit(Nanos::ZERO, Request { direction: Direction::Write, ..reading(BLOCK) }, FREE);
        queue.read(Nanos::ZERO, BLOCK, BLOCK, 1, FREE).seconds() * 1e6
    };
    assert_close(beside(with_cells(1.0)), 131.072, 0.01);
    // Without a cache every write is a program, and there is nothing to move.
    assert_close(beside(with_cells(0.0)), 231.072, 0.1);
}

#[test]
fn a_call_for_the_past_counts_as_made_at_the_clock() {
    let mut queue = queue(flash(&[]));
    assert_eq!(queue.read(Nanos::ZERO, PAGE, PAGE, 1, FREE), us(100.0));
    // The first read ran ahead to 100 us: the second waits 50 us for it and takes 100 us.
    assert_eq!(queue.read(us(50.0), PAGE, PAGE, 1, FREE), us(150.0));
    // Requests that complete during another wait are returned with their own times. A page write keeps half of the
    // device busy, a page read a tenth: a pace of (1 − 0.5 × 0.9) / 0.6 = 0.9167 until the write ends after 40 / 0.9167
    // = 43.636 us; the read has 60 us left.
    let write = queue.submit(us(200.0), Request { direction: Direction::Write, ..reading(PAGE) }, FREE);
    assert_eq!(queue.read(us(200.0), PAGE, PAGE, 1, FREE), us(103.637));
    assert_eq!(queue.advance(us(243.0)), None);
    assert_eq!(queue.advance(us(250.0)).map(|done| (done.request, done.time)), Some((write, us(243.637))));
    assert_eq!(queue.clock(), us(303.637));
    // An empty read takes no time.
    assert_eq!(queue.read(us(400.0), Bytes::ZERO, PAGE, 1, FREE), Nanos::ZERO);
}

/// `count` streams of page reads that together take up the share `load` of the device.
fn streams(load: f64, count: usize) -> Vec<Stream> {
    // 409.6 MB/s are all of it.
    let rate = BytesPerSecond(409.6e6 * load / count as f64);
    vec![Stream { direction: Direction::Read, rate, command: PAGE, depth: 4 }; count]
}

#[test]
fn a_long_transfer_beside_streams_gets_what_they_leave() {
    // 64 MiB at 1 GB/s take 67.1 ms; processor sharing gives them 1 − load: 67.1 / (1 − load) ms. Slots enough for all:
    // with few, what the streams cannot put in they leave.
    for (load, count) in [(0.1, 1), (0.1, 5), (0.5, 3), (0.7, 8)] {
        let mut queue = queue(flash(&[("latency_read", 0.0), ("queue_depth", 65.0)]));
        queue.set_streams(Nanos::ZERO, &streams(load, count));
        let taken = queue.read(us(500.0), Bytes(64 << 20), BLOCK, 4, FREE).seconds();
        assert_close(taken * (1.0 - load) / 67.108_864e-3, 1.0, 2e-3);
    }
}

#[test]
fn streams_that_ask_too_much_hold_themselves_back() {
    // Four times the device's capacity: each stream has at most 4 pages in the queue, 8 in all, which fill the slots. A
    // block alone among the 8 waits its turn and then has an eighth at worst: it does end, and no backlog grows.
    let mut queue = queue(plain());
    queue.set_streams(Nanos::ZERO, &streams(4.0, 2));
    for start in [1e3, 1e5] {
        let taken = queue.read(us(start), BLOCK, BLOCK, 1, FREE).seconds() * 1e6;
        assert!(taken > 7.0 * 65.536 && taken < 9.0 * 65.536 + 80.0, "{taken}");
        let (at_work, behind) = queue.commands();
        assert!(at_work + behind <= 9, "{at_work} + {behind}");
    }
    // They stop once they are removed.
    let now = queue.clock();
    queue.set_streams(now, &[]);
    assert_close(queue.read(now + us(100.0), BLOCK, BLOCK, 1, FREE).seconds() * 1e6, 65.536, 0.01);
}

#[test]
fn sojourn_times_are_those_of_m_g_1_processor_sharing() {
    // Poisson arrivals of pages (10 us) and blocks (65.536 us), half of each, at a load of 0.6: by Kleinrock's result
    // for M/G/1-PS a command of length x takes x / (1 − 0.6) in the mean, for any distribution.
    let mut queue = queue(flash(&[("latency_read", 0.0), ("queue_depth", 1000.0)]));
    let mut random = common::Lcg(7);
    let mean = f64::midpoint(10e-6, 65.536e-6);
    let (mut now, mut started, mut sums) = (0.0, Vec::new(), [(0.0, 0.0); 2]);
    let mut collect =
        |queue: &mut FlashQueue, started: &[(haversack_devices::storage::RequestId, Nanos, usize)], to| {
            while let Some(done) = queue.advance(to) {
                let index = started.binary_search_by_key(&done.request, |&(id, ..)| id).unwrap();
                let (_, arrived, kind) = started[index];
                sums[kind].0 += (done.time - arrived).seconds();
                sums[kind].1 += 1.0;
            }
        };
    for _ in 0..200_000 {
        now += -(1.0 - random.unit()).ln() * mean / 0.6;
        let arrived = Nanos::from_seconds(now);
        collect(&mut queue, &started, arrived);
        let kind = usize::from(random.unit() < 0.5);
        let id = queue.submit(arrived, reading([PAGE, BLOCK][kind]), FREE);
        started.push((id, arrived, kind));
    }
    let end = queue.clock() + us(1e6);
    collect(&mut queue, &started, end);
    let [page, block] = sums.map(|(sum, count)| sum / count);
    assert_close(page / (10e-6 / 0.4), 1.0, 0.02);
    assert_close(block / (65.536e-6 / 0.4), 1.0, 0.02);
}

#[test]
fn streams_that_nobody_waits_for_are_skipped_to_where_they_would_be() {
    // Equal streams of a fault's flash: 1 ms a command, in a cache that is emptied in between, and a device that is
    // hardly fast enough. Steps that are shorter than a period skip nothing.
    for load in [0.03, 0.6] {
        let flash = flash(&[("write_cache", 1e6)]);
        let streams = vec![Stream { direction: Direction::Write, ..streams(load, 3)[0] }; 3];
        let mut queues = [queue(flash.clone()), queue(flash)];
        queues.iter_mut().for_each(|queue| queue.set_streams(us(7.0), &streams));
        let period = Nanos::from_seconds(PAGE.as_f64() / streams[0].rate.0);
        for (round, end) in [2e4, 1.3e5, 1.3001e5, 5e5].into_iter().enumerate() {
            let step = Nanos(period.0 / 2 - round as u64);
            while queues[0].clock() + step < us(end) {
                let next = queues[0].clock() + step;
                assert_eq!(queues[0].advance(next), None);
            }
            let took = queues.each_mut().map(|queue| queue.read(us(end), BLOCK, BLOCK, 1, FREE));
            assert_eq!(took[0], took[1], "{load}, {end}");
            let states = queues.each_ref().map(|queue| (queue.clock(), queue.commands(), queue.write_cache_level()));
            assert_eq!(states[0], states[1], "{load}, {end}");
        }
    }
}
