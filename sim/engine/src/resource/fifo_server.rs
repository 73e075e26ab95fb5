//! Identical servers in front of one queue, first come, first served.

use haversack_devices::units::Nanos;

use crate::resource::{Cancelled, Completion, JobId, Priority, PriorityServer, ResourceError};

/// Servers that take the job that has waited longest, and finish it.
///
/// A [`PriorityServer`] whose jobs all have one priority, with the same rules at equal times.
///
/// ```
/// use haversack_devices::units::Nanos;
/// use haversack_engine::FifoServer;
///
/// let mut flash = FifoServer::new(2)?;
/// for request in 0..3 {
///     flash.insert(Nanos(0), Nanos(100), request)?;
/// }
/// // Two are served at once, the third starts at 100 ns.
/// assert_eq!(flash.next_completion(), Some(Nanos(100)));
/// while flash.advance(Nanos(100))?.is_some() {}
/// assert_eq!(flash.next_completion(), Some(Nanos(200)));
/// # Ok::<(), haversack_engine::ResourceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FifoServer<T>(PriorityServer<T>);

impl<T> FifoServer<T> {
    /// So many idle servers, with the clock at zero.
    ///
    /// # Errors
    ///
    /// [`ResourceError::NoServers`] if `servers` is zero.
    pub fn new(servers: usize) -> Result<Self, ResourceError> {
        PriorityServer::new(servers).map(Self)
    }

    /// The clock: the time of the last call that succeeded.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.0.now()
    }

    /// The number of jobs that wait for a server.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.waiting()
    }

    /// The number of jobs in service, due ones included until they are collected.
    #[must_use]
    pub fn serving(&self) -> usize {
        self.0.serving()
    }

    /// When the next job ends, due ones included.
    #[must_use]
    pub fn next_completion(&self) -> Option<Nanos> {
        self.0.next_completion()
    }

    /// Adds a job that needs `service` of one server.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Past`] and [`ResourceError::Uncollected`].
    pub fn insert(&mut self, now: Nanos, service: Nanos, item: T) -> Result<JobId, ResourceError> {
        self.0.insert(now, Priority::default(), service, item)
    }

    /// Moves the clock to the next completion or to `now`, whichever is first, and returns the
    /// completion. To be called until it returns `None`.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Past`].
    pub fn advance(&mut self, now: Nanos) -> Result<Option<Completion<T>>, ResourceError> {
        self.0.advance(now)
    }

    /// Takes a job back, waiting or in service; its server turns to the next job at once. `None` if
    /// the job has completed, is due now, or was cancelled.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Past`] and [`ResourceError::Uncollected`].
    pub fn cancel(&mut self, now: Nanos, id: JobId) -> Result<Option<Cancelled<T, Nanos>>, ResourceError> {
        self.0.cancel(now, id)
    }
}
