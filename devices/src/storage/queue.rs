//! The command queue: drivers put commands in, the device takes them into its slots and completes them in any order.

mod collection;

use std::collections::VecDeque;

use self::collection::{Collection, Collector};
use crate::storage::flash::{Demand, MOVED, WriteCache};
use crate::storage::sharing::Sharing;
use crate::storage::{PAGE, Stream};
use crate::{Bytes, Direction, Driver, Flash, Nanos, Request};

/// Identifies a request of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

impl RequestId {
    /// Its number among the requests of its queue.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// When its last command ended.
    pub time: Nanos,
    /// The request.
    pub request: RequestId,
}

/// The origin of a command.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// The request at this index.
    Request(usize),
    /// The stream at this index of the streams set in this generation.
    Stream(u64, usize),
    /// The flash itself: moving [`MOVED`] out of the write cache, or erasing a block that was moved.
    Own(Collection),
}

#[derive(Clone, Copy, Debug)]
struct Command {
    owner: Owner,
    direction: Direction,
    bytes: Bytes,
    /// Number of consecutive commands that it represents; `between` is the driver's time between two of them.
    turns: u64,
    between: Nanos,
}

impl Command {
    fn new(owner: Owner, direction: Direction, bytes: Bytes) -> Self {
        Self { owner, direction, bytes, turns: 1, between: Nanos::ZERO }
    }
}

/// A request in progress.
#[derive(Clone, Debug)]
struct Active {
    id: RequestId,
    request: Request,
    driver: Driver,
    /// Bytes of commands that the driver has not started on.
    unprepared: Bytes,
    /// Commands in progress, the one in the driver included.
    under_way: u32,
    /// The command in the driver.
    prepared: Option<Bytes>,
    /// Whether that command has waited for the lock.
    has_waited: bool,
    /// Number of sequential commands that are simulated as one; 1 for other requests.
    turns: u64,
    /// The driver's time for a full command, the usual size.
    full: Nanos,
}

impl Active {
    /// Starts the driver on the next command at `now`, if there is one, the depth allows it, and the driver is free.
    /// Returns the time at which the command is ready.
    fn prepare(&mut self, now: Nanos) -> Option<Nanos> {
        if self.prepared.is_some() || self.unprepared == Bytes::ZERO || self.under_way >= self.request.depth {
            return None;
        }
        let bytes = self.request.command.min(self.unprepared);
        let time = if bytes == self.request.command { self.full } else { self.driver.time(bytes) };
        self.unprepared = if self.turns > 1 { Bytes::ZERO } else { self.unprepared - bytes };
        self.under_way += 1;
        self.prepared = Some(bytes);
        Some(Nanos(now.0.saturating_add(time.0)))
    }
}

/// A driver with a finished command: the time, the request, and the index of the request.
type Ready = (Nanos, RequestId, usize);

/// The time at which the first of the streams issues a command; the end of time without streams.
fn first_issue(streams: &[Flow]) -> Nanos {
    streams.iter().fold(Nanos::MAX, |first, flow| first.min(flow.next))
}

/// A stream in progress.
#[derive(Clone, Debug)]
struct Flow {
    stream: Stream,
    period: Nanos,
    next: Nanos,
    in_queue: u32,
}

/// A flash storage with its one command queue.
///
/// A request's commands pass one after another through its driver, which has a core of its own, and then wait in order
/// for a slot. The device works on all commands in slots concurrently (see [`crate::storage`]); the others wait first
/// come, first served. When the write cache is full, the flash empties it until a tenth is free, concurrently with
/// commands and without using slots: it moves one piece after another, and erases a block once that was moved. A read
/// may then meet a die that programs or erases, and waits until that is suspended; the model charges the expected wait.
/// Drivers of deep requests submit commands one at a time, and the lock takes a handover between two cores. Writes into
/// the cache share only dies. A request of depth 1 thus uses the driver and the device alternately; with more depth the
/// two overlap, and a long transfer takes the longer of both times. Streams take slots and time as requests do.
///
/// Time never goes back: [`read`](Self::read) and [`write`](Self::write) move the clock ahead, and a call for an
/// earlier time counts as made at the clock.
#[derive(Clone, Debug)]
#[must_use]
pub struct FlashQueue {
    flash: Flash,
    clock: Nanos,
    device: Sharing<Command>,
    waiting: VecDeque<Command>,
    /// Requests in progress, and free entries.
    requests: Vec<Active>,
    free: Vec<usize>,
    /// The finished commands in drivers, at most one per request, earliest first.
    ready: VecDeque<Ready>,
    /// The request whose command took the lock last, and the time at which it did.
    lock: Option<(RequestId, Nanos)>,
    streams: Vec<Flow>,
    /// The time at which the first of them issues its next command; the end of time if there are none.
    issue: Nanos,
    generation: u64,
    cache: WriteCache,
    /// Empties the cache concurrently with commands.
    collector: Collector,
    /// The latest demands of a read, a write and a write into the cache, with their sizes.
    asked: [Option<(Bytes, Demand)>; 3],
    submitted: u64,
    /// Completed and not yet returned, by time.
    completed: VecDeque<Completed>,
    /// The time at which the device last became idle with no other commands than those of streams with a common period,
    /// and the level of the write cache then.
    idle: Option<(Nanos, Bytes)>,
}

impl FlashQueue {
    /// An idle device with an empty write cache, the clock at zero.
    pub fn new(flash: Flash) -> Self {
        Self {
            clock: Nanos::ZERO,
            device: Sharing::new(flash.slots()),
            waiting: VecDeque::new(),
            requests: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            lock: None,
            streams: Vec::new(),
            issue: Nanos::MAX,
            generation: 0,
            cache: WriteCache::new(&flash),
            collector: Collector::default(),
            asked: [None; 3],
            submitted: 0,
            completed: VecDeque::new(),
            idle: None,
            flash,
        }
    }

    /// The simulated time.
    pub fn clock(&self) -> Nanos {
        self.clock
    }

    /// The numbers of commands in the device's slots and in the queue behind them.
    pub fn commands(&self) -> (usize, usize) {
        (self.in_slots(), self.waiting.len())
    }

    /// Commands in slots; the flash's own work takes none.
    fn in_slots(&self) -> usize {
        self.device.len() - usize::from(self.collector.is_at_work)
    }

    /// Bytes in the write cache.
    pub fn write_cache_level(&self) -> Bytes {
        self.cache.level
    }

    /// Replaces the background streams from `now` on; their commands already in the queue stay there.
    ///
    /// Streams are staggered over the period of the first stream's commands, so that equal streams do
    /// not issue simultaneously.
    pub fn set_streams(&mut self, now: Nanos, streams: &[Stream]) {
        self.run_to(now);
        self.generation += 1;
        self.idle = None;
        let (clock, count) = (self.clock, streams.len().max(1) as u64);
        let moving = streams.iter().enumerate().filter(|(_, stream)| stream.rate.0 > 0.0);
        self.streams = moving
            .map(|(index, &stream)| {
                let stream = Stream { command: stream.command.max(PAGE), depth: stream.depth.max(1), ..stream };
                let period = Nanos::from_seconds(stream.command.as_f64() / stream.rate.0).max(Nanos(1));
                let first = period.0 / count * (index as u64 + 1);
                Flow { stream, period, next: Nanos(clock.0.saturating_add(first)), in_queue: 0 }
            })
            .collect();
        self.issue = first_issue(&self.streams);
    }

    /// Starts a request at `now`, with a driver on its own core.
    pub fn submit(&mut self, now: Nanos, request: Request, driver: Driver) -> RequestId {
        self.begin(now, request, driver, 1)
    }

    /// The same for sequential commands, each of which waits for the one before. They are simulated as one command that
    /// takes as long as all of them, and waits for the lock and for a slot once.
    pub fn submit_in_turn(&mut self, now: Nanos, request: Request, driver: Driver) -> RequestId {
        let command = request.command.max(PAGE);
        self.begin(now, Request { depth: 1, ..request }, driver, request.bytes.0.div_ceil(command.0).max(1))
    }

    fn begin(&mut self, now: Nanos, request: Request, driver: Driver, turns: u64) -> RequestId {
        self.run_to(now);
        self.idle = None;
        let id = RequestId(self.submitted);
        self.submitted += 1;
        if request.bytes == Bytes::ZERO {
            self.completed.push_back(Completed { time: self.clock, request: id });
            return id;
        }
        let request = Request { command: request.command.max(PAGE), depth: request.depth.max(1), ..request };
        let (unprepared, full) = (request.bytes, driver.time(request.command));
        let active =
            Active { id, request, driver, unprepared, under_way: 0, prepared: None, has_waited: false, turns, full };
        let place = match self.free.pop() {
            Some(place) => {
                self.requests[place] = active;
                place
            }
            None => {
                self.requests.push(active);
                self.requests.len() - 1
            }
        };
        self.prepare(place);
        id
    }

    /// Starts the driver of the request at `place` on its next command, if allowed.
    fn prepare(&mut self, place: usize) {
        let active = &mut self.requests[place];
        let Some(time) = active.prepare(self.clock) else { return };
        let id = active.id;
        self.await_lock((time, id, place));
    }

    /// At the given time, the driver puts its command into the queue if the lock is free then.
    fn await_lock(&mut self, ready: Ready) {
        // Most drivers take equally long, so the latest to start is usually the last to finish.
        let later = self.ready.iter().rev().take_while(|other| **other > ready).count();
        if later == 0 {
            self.ready.push_back(ready);
        } else {
            self.ready.insert(self.ready.len() - later, ready);
        }
    }

    /// Advances the clock to the next completion of a request or to `now`, whichever is first. Call
    /// it until it returns `None`.
    pub fn advance(&mut self, now: Nanos) -> Option<Completed> {
        while self.completed.is_empty() {
            if !self.step(now) {
                self.stop_at(now);
                return None;
            }
        }
        let told = self.completed.front().is_some_and(|done| done.time <= now);
        if told { self.completed.pop_front() } else { None }
    }

    /// The time of a thread that starts to read `bytes` at `now`, with `depth` commands in flight,
    /// and waits for all of them.
    pub fn read(&mut self, now: Nanos, bytes: Bytes, command: Bytes, depth: u32, driver: Driver) -> Nanos {
        self.wait(now, Request { direction: Direction::Read, bytes, command, depth }, driver)
    }

    /// The same for a thread that writes.
    pub fn write(&mut self, now: Nanos, bytes: Bytes, command: Bytes, depth: u32, driver: Driver) -> Nanos {
        self.wait(now, Request { direction: Direction::Write, bytes, command, depth }, driver)
    }

    fn wait(&mut self, now: Nanos, request: Request, driver: Driver) -> Nanos {
        let before = self.completed.len();
        let id = self.submit(now, request, driver);
        loop {
            // Skips requests that had completed before.
            let ended = self.completed.iter().skip(before).position(|done| done.request == id);
            if let Some(index) = ended.map(|index| before + index) {
                let time = self.completed.remove(index).map_or(self.clock, |done| done.time);
                return time.saturating_sub(now);
            }
            if !self.step(Nanos::MAX) {
                return self.clock.saturating_sub(now);
            }
        }
    }

    /// Runs to `now`; later calls return the requests that complete on the way.
    fn run_to(&mut self, now: Nanos) {
        while self.step(now) {}
        self.stop_at(now);
    }

    /// Advances to `now`, without any event in between. Rounding may drain a byte less from the cache
    /// in two spans than in one.
    fn stop_at(&mut self, now: Nanos) {
        if now > self.clock && self.cache.level > Bytes::ZERO {
            self.idle = None;
        }
        self.pass(now);
    }

    /// Called when the device has become idle. If only streams with a common period use it, and its state is the same
    /// as one period ago, all further periods before `until` are identical and are skipped.
    fn note_idle(&mut self, until: Nanos) {
        let Some(period) = self.common_period() else { return };
        let level = self.cache.level;
        if self.idle == Some((self.clock.saturating_sub(period), level)) {
            // At most until `until`; a clock near the end of time has no whole period left.
            let span = Nanos(until.saturating_sub(self.clock).0 / period.0 * period.0);
            self.clock += span;
            self.streams.iter_mut().for_each(|flow| flow.next = Nanos(flow.next.0.saturating_add(span.0)));
            self.issue = first_issue(&self.streams);
        }
        let is_due = self.idle.is_none_or(|(before, _)| self.clock.saturating_sub(before) >= period);
        if is_due {
            self.idle = Some((self.clock, level));
        }
    }

    /// The common period of all streams, if they have one, each issues once within it, and the queue is empty.
    fn common_period(&self) -> Option<Nanos> {
        let is_idle = self.device.len() == 0 && self.waiting.is_empty() && self.requests.len() == self.free.len();
        let period = self.streams.first().filter(|_| is_idle)?.period;
        let within = |flow: &Flow| flow.period == period && flow.next.saturating_sub(self.clock) < period;
        self.streams.iter().all(within).then_some(period)
    }

    /// Processes the next event at or before `until`: a command completes, leaves a driver, or is issued by a stream,
    /// in this order at equal times. Returns whether there was one.
    fn step(&mut self, until: Nanos) -> bool {
        // Times that saturate at the end of time never arrive.
        let never = Nanos::MAX;
        // The time at which the first driver finishes a command.
        let driver = self.ready.front().map_or(never, |(ready, ..)| *ready);
        let device = self.device.due();
        let at = device.min(driver).min(self.issue);
        if at > until || at == never {
            return false;
        }
        self.pass(at);
        if device == at {
            self.end_command();
            self.fill_slots();
            self.note_idle(until);
        } else if driver == at {
            self.hand_over();
        } else {
            self.issue_stream();
            self.fill_slots();
        }
        true
    }

    /// Advances the clock to `time`, without any event in between.
    fn pass(&mut self, time: Nanos) {
        let span = time.saturating_sub(self.clock);
        if self.device.len() == 0 {
            self.cache.drain(span);
        } else {
            self.device.progress(span);
        }
        self.clock += span;
    }

    fn end_command(&mut self) {
        let Some(command) = self.device.take(self.clock) else { return };
        match command.owner {
            Owner::Request(place) => {
                self.requests[place].under_way -= 1;
                self.prepare(place);
                let Active { id, under_way, .. } = self.requests[place];
                if under_way == 0 {
                    self.free.push(place);
                    self.completed.push_back(Completed { time: self.clock, request: id });
                }
            }
            Owner::Stream(generation, index) => {
                if generation == self.generation
                    && let Some(flow) = self.streams.get_mut(index)
                {
                    flow.in_queue -= 1;
                }
            }
            Owner::Own(done) => {
                let next = self.collector.after(done, &mut self.cache, &self.flash);
                self.collect(next);
            }
        }
    }

    fn collect(&mut self, piece: Option<(Collection, Demand)>) {
        let Some((what, demand)) = piece else { return };
        let command = Command::new(Owner::Own(what), Direction::Write, MOVED);
        self.device.insert(self.clock, command, demand);
    }

    /// The first driver that has finished a command puts it into the queue; among several at the same time,
    /// that of the oldest request.
    fn hand_over(&mut self) {
        let Some((_, id, place)) = self.ready.pop_front() else { return };
        let active = &mut self.requests[place];
        // A thread that sleeps during its only command has no contention for the lock.
        if active.request.depth > 1 && !std::mem::take(&mut active.has_waited) {
            let others = self.lock.filter(|(holder, _)| *holder != id);
            let free = others.map_or(self.clock, |(_, last)| Nanos(last.0.saturating_add(active.driver.handover.0)));
            self.lock = Some((id, free.max(self.clock)));
            if free > self.clock {
                active.has_waited = true;
                return self.await_lock((free, id, place));
            }
        }
        if let Some(bytes) = active.prepared.take() {
            let (turns, between) = (active.turns, active.full);
            let direction = active.request.direction;
            let command = Command { turns, between, ..Command::new(Owner::Request(place), direction, bytes) };
            // If a slot is free, the queue is empty.
            if self.has_slot() {
                self.start(command);
            } else {
                self.waiting.push_back(command);
            }
        }
        self.prepare(place);
    }

    fn issue_stream(&mut self) {
        for (index, flow) in self.streams.iter_mut().enumerate() {
            if flow.next <= self.clock {
                flow.next = Nanos(flow.next.0.saturating_add(flow.period.0));
                if flow.in_queue < flow.stream.depth {
                    flow.in_queue += 1;
                    let owner = Owner::Stream(self.generation, index);
                    let Stream { direction, command: bytes, .. } = flow.stream;
                    self.waiting.push_back(Command::new(owner, direction, bytes));
                }
                break;
            }
        }
        self.issue = first_issue(&self.streams);
    }

    /// The demand of a command; usually the same as that of the previous command of its direction.
    fn demand(&mut self, command: Command, cached: bool) -> Demand {
        let Command { direction, bytes, .. } = command;
        let way = match direction {
            Direction::Read => 0,
            Direction::Write => 1 + usize::from(cached),
        };
        match self.asked[way] {
            Some((of, demand)) if of == bytes => demand,
            _ => {
                let demand = self.flash.demand(direction, bytes, cached);
                self.asked[way] = Some((bytes, demand));
                demand
            }
        }
    }

    fn has_slot(&self) -> bool {
        self.in_slots() < self.flash.slots()
    }

    fn fill_slots(&mut self) {
        while !self.waiting.is_empty() && self.has_slot() {
            self.waiting.pop_front().into_iter().for_each(|command| self.start(command));
        }
    }

    /// Starts a command in the device.
    fn start(&mut self, command: Command) {
        let reads = command.direction == Direction::Read;
        let cached = reads || self.cache.take(command.bytes);
        let mut demand = self.demand(command, cached);
        if let Some([programs, erases]) = self.device.held().filter(|_| reads) {
            demand.alone += self.flash.wait(programs, erases);
        }
        if command.turns > 1 {
            let turns = command.turns as f64;
            demand.occupation *= turns;
            demand.alone = demand.alone * turns + command.between.0 as f64 * (turns - 1.0);
        }
        self.device.insert(self.clock, command, demand);
        if !cached {
            let first = self.collector.begin(&self.flash);
            self.collect(first);
        }
    }
}
