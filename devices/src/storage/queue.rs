//! The command queue: drivers put commands in, the device takes them out of its slots in whatever order they end.

mod collection;

use std::collections::VecDeque;

use self::collection::{Collection, Collector};
use crate::storage::flash::{Demand, MOVED, WriteCache};
use crate::storage::sharing::Sharing;
use crate::storage::{PAGE, Stream};
use crate::{Bytes, Direction, Driver, Flash, Nanos, Request};

/// Names a request of one queue.
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
    /// Which it was.
    pub request: RequestId,
}

/// Whose a command is.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// The request at this place.
    Request(usize),
    /// The stream with this number among those set in this generation.
    Stream(u64, usize),
    /// The flash's own: moving [`MOVED`] out of the write cache, or erasing a block that it was moved out of.
    Own(Collection),
}

#[derive(Clone, Copy, Debug)]
struct Command {
    owner: Owner,
    direction: Direction,
    bytes: Bytes,
    /// It stands for so many that follow one another, with so much of the driver's time between two of them.
    turns: u64,
    between: Nanos,
}

impl Command {
    fn new(owner: Owner, direction: Direction, bytes: Bytes) -> Self {
        Self { owner, direction, bytes, turns: 1, between: Nanos::ZERO }
    }
}

/// A request under way.
#[derive(Clone, Debug)]
struct Active {
    id: RequestId,
    request: Request,
    driver: Driver,
    /// Bytes of commands that the driver has not begun with.
    unprepared: Bytes,
    /// Commands under way, the one in the driver included.
    under_way: u32,
    /// The command in the driver.
    prepared: Option<Bytes>,
    /// Whether that has waited for the lock.
    has_waited: bool,
    /// Commands one after another, which pass as one; of others one.
    turns: u64,
    /// The driver's time of a full command, of which most are.
    full: Nanos,
}

impl Active {
    /// The driver begins with the next command at `now`, if there is one, it may, and nothing else is in hand; when that
    /// is ready.
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

/// A driver that has a command ready: when, of which request, and the place of that.
type Ready = (Nanos, RequestId, usize);

/// When the first of the streams issues a command; the end of time if there is none.
fn first_issue(streams: &[Flow]) -> Nanos {
    streams.iter().fold(Nanos::MAX, |first, flow| first.min(flow.next))
}

/// A stream under way.
#[derive(Clone, Debug)]
struct Flow {
    stream: Stream,
    period: Nanos,
    next: Nanos,
    in_queue: u32,
}

/// A flash storage with its one command queue.
///
/// The commands of a request pass one after another through its driver, on a core of its own, and then wait in order
/// for one of the slots. In the slots the device works on all of them (see [`crate::storage`]); beyond, first come is
/// first served. Where the write cache runs full the flash empties it beside them, in no slot, until a tenth is free: part by part is
/// moved on, and a block that was moved is erased. A read then may meet a die that programs or erases, and waits until that is
/// suspended: as likely as dies do, in the mean. Drivers of deep requests hand commands in one after the other, with a
/// handover of the lock between two cores. Writes into the cache are shared dies alone. Depth 1 thus takes the driver and the device in turn; with more the two overlap, and a long
/// transfer takes the longer of both. Streams take slots and time as requests do.
///
/// Time never goes back: a call for a time before the clock, which [`read`](Self::read) and
/// [`write`](Self::write) carry ahead, counts as made at the clock.
#[derive(Clone, Debug)]
#[must_use]
pub struct FlashQueue {
    flash: Flash,
    clock: Nanos,
    device: Sharing<Command>,
    waiting: VecDeque<Command>,
    /// Requests under way, and places that are free.
    requests: Vec<Active>,
    free: Vec<usize>,
    /// Of each request that has a command in the driver, the first first.
    ready: VecDeque<Ready>,
    /// Whose command is the last to have had the lock, or to have it, and when.
    lock: Option<(RequestId, Nanos)>,
    streams: Vec<Flow>,
    /// When the first of them issues its next command; the end of time if there is none.
    issue: Nanos,
    generation: u64,
    cache: WriteCache,
    /// Empties the cache beside others.
    collector: Collector,
    /// What a read, a write and a write into the cache asked last.
    asked: [Option<(Bytes, Demand)>; 3],
    submitted: u64,
    /// Ended and not yet told, by time.
    completed: VecDeque<Completed>,
    /// When the device last became idle while nobody but streams of one period had asked anything of it, with the level of the
    /// write cache then.
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

    /// The time up to which it has run.
    pub fn clock(&self) -> Nanos {
        self.clock
    }

    /// Commands in the device's slots and, behind them, in the queue.
    pub fn commands(&self) -> (usize, usize) {
        (self.in_slots(), self.waiting.len())
    }

    /// What the device does of its own accord takes no slot.
    fn in_slots(&self) -> usize {
        self.device.len() - usize::from(self.collector.is_at_work)
    }

    /// Bytes in the write cache.
    pub fn write_cache_level(&self) -> Bytes {
        self.cache.level
    }

    /// Replaces what others do in the background from `now` on; their commands already in the queue stay there.
    ///
    /// Streams are staggered over the period of the first command, so that equal ones do not come together.
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

    /// Starts a request at `now`, with a driver on a core of its own.
    pub fn submit(&mut self, now: Nanos, request: Request, driver: Driver) -> RequestId {
        self.begin(now, request, driver, 1)
    }

    /// The same of commands of which each waits for the one before: they pass as one that takes as long as all, and wait for
    /// the lock and for a slot together.
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

    /// The driver of the request at `place` begins with its next command, if it may.
    fn prepare(&mut self, place: usize) {
        let active = &mut self.requests[place];
        let Some(time) = active.prepare(self.clock) else { return };
        let id = active.id;
        self.await_lock((time, id, place));
    }

    /// A driver puts its command into the queue at that time, if nobody has the lock then.
    fn await_lock(&mut self, ready: Ready) {
        // Most drivers take as long as the others, so that who began last is last.
        let later = self.ready.iter().rev().take_while(|other| **other > ready).count();
        if later == 0 {
            self.ready.push_back(ready);
        } else {
            self.ready.insert(self.ready.len() - later, ready);
        }
    }

    /// Moves the clock to the next end of a request or to `now`, whichever is first; called until it answers `None`.
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

    /// How long a thread takes that reads at `now`, `depth` commands at once, and waits for all of it.
    pub fn read(&mut self, now: Nanos, bytes: Bytes, command: Bytes, depth: u32, driver: Driver) -> Nanos {
        self.wait(now, Request { direction: Direction::Read, bytes, command, depth }, driver)
    }

    /// The same of a thread that writes.
    pub fn write(&mut self, now: Nanos, bytes: Bytes, command: Bytes, depth: u32, driver: Driver) -> Nanos {
        self.wait(now, Request { direction: Direction::Write, bytes, command, depth }, driver)
    }

    fn wait(&mut self, now: Nanos, request: Request, driver: Driver) -> Nanos {
        let before = self.completed.len();
        let id = self.submit(now, request, driver);
        loop {
            // What had ended before is not it.
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

    /// Runs to `now`; what ends on the way is told later.
    fn run_to(&mut self, now: Nanos) {
        while self.step(now) {}
        self.stop_at(now);
    }

    /// Nothing happens any more until `now`. What the cache is emptied of in two spans may be a byte less than in one.
    fn stop_at(&mut self, now: Nanos) {
        if now > self.clock && self.cache.level > Bytes::ZERO {
            self.idle = None;
        }
        self.pass(now);
    }

    /// The device has become idle. Where nobody but streams of one period asks anything of it and it stands as it did a period
    /// ago, each further period before `until` goes as the one before, and is not run through.
    fn note_idle(&mut self, until: Nanos) {
        let Some(period) = self.common_period() else { return };
        let level = self.cache.level;
        if self.idle == Some((self.clock.saturating_sub(period), level)) {
            // Not beyond what `until` allows; a clock near the end of time has no whole period left.
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

    /// The period of all streams, where they share one and each issues once within it, and nobody has anything in the queue.
    fn common_period(&self) -> Option<Nanos> {
        let is_idle = self.device.len() == 0 && self.waiting.is_empty() && self.requests.len() == self.free.len();
        let period = self.streams.first().filter(|_| is_idle)?.period;
        let within = |flow: &Flow| flow.period == period && flow.next.saturating_sub(self.clock) < period;
        self.streams.iter().all(within).then_some(period)
    }

    /// What happens next at or before `until`: a command ends, or leaves a driver, or a stream issues one, in that
    /// order where times are equal. Whether something did.
    fn step(&mut self, until: Nanos) -> bool {
        // What saturates at the end of time never happens.
        let never = Nanos::MAX;
        // When the first of the drivers has a command ready.
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

    /// Moves the clock on to `time`, in which nothing happens.
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

    /// Of the drivers that have a command ready first that of the oldest request puts it into the queue.
    fn hand_over(&mut self) {
        let Some((_, id, place)) = self.ready.pop_front() else { return };
        let active = &mut self.requests[place];
        // Who sleeps while its one command is under way meets nobody.
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
            // Where there is a slot nobody waits.
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

    /// What a command asks of the device; most ask what the one before of their way did.
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

    /// The device begins with a command.
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
