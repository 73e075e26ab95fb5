//! Identical servers in front of one queue ordered by priority.

use haversack_devices::units::Nanos;

use crate::agenda::Agenda;
use crate::resource::{Cancelled, Completion, JobId, ResourceError, check};
use crate::slots::{Key, Slots};

/// The urgency of a job; the smallest number is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u64);

#[derive(Clone, Debug)]
struct Job<T> {
    service: Nanos,
    place: Place,
    item: T,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Waiting(Key),
    Serving { entry: Key, finish: Nanos },
}

/// Servers that take the waiting job of the best priority, the oldest among equals, and finish it.
///
/// A job in service is never interrupted. A free server starts a job the instant it is inserted. A
/// busy one starts its next job when its completion is collected, so that jobs inserted at that very
/// nanosecond, but before the collection, compete for it. Completions of one nanosecond come in the
/// order in which their services began. A service that would end beyond [`Nanos::MAX`] ends there.
///
/// Every operation is O(log n) at most, cancelling amortised.
///
/// ```
/// use haversack_devices::units::Nanos;
/// use haversack_engine::{Priority, PriorityServer};
///
/// let mut flash = PriorityServer::new(1)?;
/// flash.insert(Nanos(0), Priority(1), Nanos(50), "prefetch")?;
/// flash.insert(Nanos(1), Priority(1), Nanos(50), "write-back")?;
/// flash.insert(Nanos(2), Priority(0), Nanos(10), "fault")?;
/// let mut order = Vec::new();
/// while let Some(done) = flash.advance(Nanos(200))? {
///     order.push((done.time.0, done.item));
/// }
/// assert_eq!(order, [(50, "prefetch"), (60, "fault"), (110, "write-back")]);
/// # Ok::<(), haversack_engine::ResourceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PriorityServer<T> {
    servers: usize,
    now: Nanos,
    jobs: Slots<Job<T>>,
    /// Slots of jobs by priority.
    waiting: Agenda<u64, u32>,
    /// Slots of jobs by finish.
    serving: Agenda<u64, u32>,
}

impl<T> PriorityServer<T> {
    /// So many idle servers, with the clock at zero.
    ///
    /// # Errors
    ///
    /// [`ResourceError::NoServers`] if `servers` is zero.
    pub fn new(servers: usize) -> Result<Self, ResourceError> {
        if servers == 0 {
            return Err(ResourceError::NoServers);
        }
        let (waiting, serving) = (Agenda::new(), Agenda::new());
        Ok(Self { servers, now: Nanos::ZERO, jobs: Slots::with_capacity(0), waiting, serving })
    }

    /// The clock: the time of the last call that succeeded.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The number of jobs that wait for a server.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of jobs in service, due ones included until they are collected.
    #[must_use]
    pub fn serving(&self) -> usize {
        self.serving.len()
    }

    /// When the next job ends, due ones included. Jobs inserted later cannot bring it forward unless
    /// a server is free.
    #[must_use]
    pub fn next_completion(&self) -> Option<Nanos> {
        self.serving.first_rank().map(Nanos)
    }

    /// Adds a job that needs `service` of one server.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Past`] and [`ResourceError::Uncollected`].
    pub fn insert(&mut self, now: Nanos, priority: Priority, service: Nanos, item: T) -> Result<JobId, ResourceError> {
        self.enter(now)?;
        let entry = self.waiting.insert(priority.0, self.jobs.next_slot());
        let id = self.jobs.insert(Job { service, place: Place::Waiting(entry), item });
        self.dispatch();
        Ok(JobId(id))
    }

    /// Moves the clock to the next completion or to `now`, whichever is first, and returns the
    /// completion. To be called until it returns `None`.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Past`].
    pub fn advance(&mut self, now: Nanos) -> Result<Option<Completion<T>>, ResourceError> {
        check(now, self.now, None)?;
        if self.next_completion().is_some_and(|due| due <= now)
            && let Some((finish, slot)) = self.serving.pop()
        {
            self.now = Nanos(finish);
            self.dispatch();
            return Ok(self.jobs.release(slot).map(|job| Completion { time: self.now, item: job.item }));
        }
        self.now = now;
        Ok(None)
    }

    /// Takes a job back, waiting or in service; its server turns to the next job at once. `None` if
    /// the job has completed, is due now, or was cancelled.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Past`] and [`ResourceError::Uncollected`].
    pub fn cancel(&mut self, now: Nanos, id: JobId) -> Result<Option<Cancelled<T, Nanos>>, ResourceError> {
        self.enter(now)?;
        let remaining = match self.jobs.get(id.0) {
            Some(Job { place: Place::Waiting(entry), service, .. }) => {
                self.waiting.cancel(*entry);
                *service
            }
            Some(Job { place: Place::Serving { entry, finish }, .. }) if *finish > now => {
                self.serving.cancel(*entry);
                *finish - now
            }
            _ => return Ok(None),
        };
        self.dispatch();
        Ok(self.jobs.remove(id.0).map(|job| Cancelled { item: job.item, remaining }))
    }

    fn enter(&mut self, now: Nanos) -> Result<(), ResourceError> {
        check(now, self.now, self.next_completion())?;
        self.now = now;
        Ok(())
    }

    /// Starts waiting jobs while servers are free.
    fn dispatch(&mut self) {
        while self.serving.len() < self.servers
            && let Some((_, slot)) = self.waiting.pop()
        {
            if let Some(job) = self.jobs.at_mut(slot) {
                let finish = Nanos(self.now.0.saturating_add(job.service.0));
                job.place = Place::Serving { entry: self.serving.insert(finish.0, slot), finish };
            }
        }
    }
}
