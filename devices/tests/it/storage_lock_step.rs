//! The command queue against a slow model that simulates every nanosecond.

use crate::common;
use std::collections::VecDeque;

use crate::common::Lcg;
use haversack_devices::storage::{Direction, Driver, Flash, FlashQueue, PAGE, Request, Stream};
use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};

/// A command: its source, its remaining work, and the largest share of the device that it keeps busy.
#[derive(Clone)]
struct Job {
    owner: usize,
    remaining: f64,
    cap: f64,
    share: f64,
}

/// A request or a stream, which differ in when they issue.
#[derive(Clone)]
struct Source {
    direction: Direction,
    command: Bytes,
    depth: u32,
    /// Bytes not yet started; `None` for a stream.
    left: Option<Bytes>,
    driver: Driver,
    period: u64,
    in_queue: u32,
    /// When the next command comes, and its bytes.
    next: Option<(u64, Bytes)>,
    ended: Option<u64>,
}

impl Source {
    fn begin(&mut self, now: u64) {
        if let Some(left) = self.left
            && self.next.is_none()
            && left > Bytes::ZERO
            && self.in_queue < self.depth
        {
            let bytes = left.min(self.command);
            self.left = Some(left - bytes);
            self.in_queue += 1;
            self.next = Some((now + self.driver.time(bytes).0, bytes));
        }
    }
}

/// Shares out the device for one nanosecond: each command in turn keeps its part of the idle rest busy, and the total
/// is split in proportion to the shares that each would keep busy alone.
fn share_out(jobs: &mut [Job]) {
    let mut idle = 1.0;
    for job in &*jobs {
        idle -= idle * job.cap;
    }
    let asked: f64 = jobs.iter().map(|job| job.cap).sum();
    for job in jobs {
        job.share = (1.0 - idle) * job.cap / asked;
    }
}

/// Simulates nanosecond by nanosecond; returns when each source ended.
fn slowly(flash: &Flash, mut sources: Vec<Source>, starts: &[u64]) -> Vec<Option<u64>> {
    let (mut jobs, mut waiting): (Vec<Job>, VecDeque<(usize, Bytes)>) = (Vec::new(), VecDeque::new());
    let requests = starts.len();
    for now in 0..20_000_000_u64 {
        let mut changed = false;
        for job in &mut jobs {
            if now > 0 {
                job.remaining -= job.share;
            }
        }
        while let Some(index) = jobs.iter().position(|job| job.remaining <= 1e-6) {
            let source = &mut sources[jobs.remove(index).owner];
            changed = true;
            source.in_queue -= 1;
            source.begin(now);
            if source.left == Some(Bytes::ZERO) && source.in_queue == 0 {
                source.ended = Some(now);
            }
        }
        for (index, source) in sources.iter_mut().enumerate() {
            if starts.get(index) == Some(&now) {
                source.begin(now);
            }
            while let Some((at, bytes)) = source.next
                && at <= now
            {
                if source.left.is_some() {
                    waiting.push_back((index, bytes));
                    source.next = None;
                    source.begin(now);
                } else {
                    source.next = Some((at + source.period, bytes));
                    if source.in_queue < source.depth {
                        source.in_queue += 1;
                        waiting.push_back((index, bytes));
                    }
                }
            }
        }
        while jobs.len() < flash.slots()
            && let Some((owner, bytes)) = waiting.pop_front()
        {
            let occupation = flash.occupation(sources[owner].direction, bytes).0 * 1e9;
            let alone = flash.alone(sources[owner].direction, bytes).0 as f64;
            jobs.push(Job { owner, remaining: occupation, cap: (occupation / alone).min(1.0), share: 0.0 });
            changed = true;
        }
        if changed {
            share_out(&mut jobs);
        }
        if sources[..requests].iter().all(|source| source.ended.is_some()) {
            break;
        }
    }
    sources.into_iter().take(requests).map(|source| source.ended).collect()
}

#[test]
fn random_loads_end_as_in_the_slow_model() {
    let flash = common::device_with_storage(&[("write_cache", 1e6)]).flash().unwrap();
    let mut random = Lcg(2024);
    for round in 0..12 {
        let mut queue = FlashQueue::new(flash.clone());
        let streams: Vec<Stream> = (0..random.below(3))
            .map(|_| Stream {
                direction: Direction::Write,
                // A period of 61 to 123 us.
                rate: BytesPerSecond(4096.0 / (61e-6 + 62e-6 * random.unit())),
                command: PAGE,
                depth: 1 + random.below(3) as u32,
            })
            .collect();
        queue.set_streams(Nanos::ZERO, &streams);
        let mut requests: Vec<(u64, Request, Driver)> = (0..=random.below(5))
            .map(|_| {
                let direction = if random.unit() < 0.5 { Direction::Read } else { Direction::Write };
                let bytes = Bytes(1 + random.below(40 * 4096));
                let command = Bytes(4096 * (1 + random.below(5)));
                let request = Request { direction, bytes, command, depth: 1 + random.below(12) as u32 };
                let driver = Driver {
                    command: Nanos(random.below(9000)),
                    page: Nanos(random.below(2000)),
                    handover: Nanos::ZERO,
                };
                (random.below(300_000), request, driver)
            })
            .collect();
        requests.sort_by_key(|&(start, ..)| start);

        let sources = requests.iter().map(|&(_, request, driver)| Source {
            direction: request.direction,
            command: request.command,
            depth: request.depth,
            left: Some(request.bytes),
            driver,
            period: 0,
            in_queue: 0,
            next: None,
            ended: None,
        });
        let flows = streams.iter().enumerate().map(|(index, stream)| {
            let period = Nanos::from_seconds(stream.command.as_f64() / stream.rate.0).0;
            Source {
                direction: stream.direction,
                command: stream.command,
                depth: stream.depth,
                left: None,
                driver: Driver::default(),
                period,
                in_queue: 0,
                next: Some((period / streams.len() as u64 * (index as u64 + 1), stream.command)),
                ended: None,
            }
        });
        let starts: Vec<u64> = requests.iter().map(|&(start, ..)| start).collect();
        let expected = slowly(&flash, sources.chain(flows).collect(), &starts);

        let ids: Vec<_> =
            requests.iter().map(|&(start, request, driver)| queue.submit(Nanos(start), request, driver)).collect();
        let mut ends = vec![None; ids.len()];
        while let Some(done) = queue.advance(Nanos(20_000_000)) {
            ends[ids.iter().position(|&id| id == done.request).unwrap()] = Some(done.time.0);
        }
        for (end, expected) in ends.iter().zip(&expected) {
            let (end, expected) = (end.unwrap(), expected.unwrap());
            assert!(end.abs_diff(expected) <= 2, "round {round}: {end} is not {expected}");
        }
    }
}
