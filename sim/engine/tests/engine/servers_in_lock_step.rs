//! Servers beside a twin that counts down every job in a plain list.

use haversack_devices::units::Nanos;
use haversack_engine::{FifoServer, JobId, Priority, PriorityServer, ResourceError};
use proptest::prelude::*;

struct Job {
    number: usize,
    priority: u64,
    left: u64,
    /// The how-manieth service to begin, once it has.
    began: Option<usize>,
}

struct Twin {
    servers: usize,
    now: u64,
    services: usize,
    jobs: Vec<Job>,
}

impl Twin {
    fn dispatch(&mut self) {
        while self.jobs.iter().filter(|job| job.began.is_some()).count() < self.servers {
            let waiting = self.jobs.iter_mut().filter(|job| job.began.is_none());
            let Some(best) = waiting.min_by_key(|job| (job.priority, job.number)) else { return };
            best.began = Some(self.services);
            self.services += 1;
        }
    }

    fn next(&self) -> Option<u64> {
        self.jobs.iter().filter(|job| job.began.is_some()).map(|job| self.now + job.left).min()
    }

    fn pass(&mut self, now: u64) {
        for job in self.jobs.iter_mut().filter(|job| job.began.is_some()) {
            job.left -= now - self.now;
        }
        self.now = now;
    }

    fn insert(&mut self, number: usize, priority: u64, left: u64) {
        self.jobs.push(Job { number, priority, left, began: None });
        self.dispatch();
    }

    fn advance(&mut self, until: u64) -> Vec<(u64, usize)> {
        let mut completed = Vec::new();
        while let Some(due) = self.next().filter(|&due| due <= until) {
            self.pass(due);
            let done = self.jobs.iter().filter(|job| job.began.is_some() && job.left == 0);
            let number = done.min_by_key(|job| job.began).unwrap().number;
            self.jobs.retain(|job| job.number != number);
            completed.push((due, number));
            self.dispatch();
        }
        self.pass(until);
        completed
    }

    fn cancel(&mut self, number: usize) -> Option<u64> {
        let index = self.jobs.iter().position(|job| job.number == number)?;
        let left = self.jobs.remove(index).left;
        self.dispatch();
        Some(left)
    }
}

/// Both servers under one roof, so that one script drives either.
enum Server {
    Fifo(FifoServer<usize>),
    Priority(PriorityServer<usize>),
}

impl Server {
    fn insert(&mut self, now: u64, priority: u64, service: u64, item: usize) -> Result<JobId, ResourceError> {
        match self {
            Self::Fifo(server) => server.insert(Nanos(now), Nanos(service), item),
            Self::Priority(server) => server.insert(Nanos(now), Priority(priority), Nanos(service), item),
        }
    }

    fn advance(&mut self, until: u64) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| match self {
            Self::Fifo(server) => server.advance(Nanos(until)).unwrap(),
            Self::Priority(server) => server.advance(Nanos(until)).unwrap(),
        })
        .map(|done| (done.time.0, done.item))
        .collect()
    }

    fn cancel(&mut self, now: u64, id: JobId) -> Option<u64> {
        match self {
            Self::Fifo(server) => server.cancel(Nanos(now), id).unwrap(),
            Self::Priority(server) => server.cancel(Nanos(now), id).unwrap(),
        }
        .map(|cancelled| cancelled.remaining.0)
    }

    /// The next completion and the number of jobs.
    fn state(&self) -> (Option<u64>, usize) {
        let (next, jobs) = match self {
            Self::Fifo(server) => (server.next_completion(), server.serving() + server.waiting()),
            Self::Priority(server) => (server.next_completion(), server.serving() + server.waiting()),
        };
        (next.map(|time| time.0), jobs)
    }
}

#[derive(Clone, Debug)]
enum Change {
    Insert { priority: u64, service: u64 },
    Cancel(prop::sample::Index),
    Nothing,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0..4u64, 0..30u64).prop_map(|(priority, service)| Change::Insert { priority, service }),
        2 => any::<prop::sample::Index>().prop_map(Change::Cancel),
        1 => Just(Change::Nothing),
    ]
}

fn lock_step(mut server: Server, mut twin: Twin, script: Vec<(u64, Change)>) -> Result<(), TestCaseError> {
    let fifo = matches!(server, Server::Fifo(_));
    let mut ids = Vec::new();
    for (gap, change) in script {
        let now = twin.now + gap;
        prop_assert_eq!(server.advance(now), twin.advance(now));
        match change {
            Change::Insert { priority, service } => {
                let number = ids.len();
                ids.push(server.insert(now, priority, service, number).unwrap());
                twin.insert(number, if fifo { 0 } else { priority }, service);
            }
            Change::Cancel(index) if !ids.is_empty() => {
                let number = index.index(ids.len());
                // What is due at this very nanosecond has completed, for the twin only when collected.
                let due = twin.jobs.iter().any(|job| job.number == number && job.began.is_some() && job.left == 0);
                let expected = if due { None } else { twin.cancel(number) };
                prop_assert_eq!(server.cancel(now, ids[number]), expected);
            }
            Change::Cancel(_) | Change::Nothing => {}
        }
        prop_assert_eq!(server.state(), (twin.next(), twin.jobs.len()));
    }
    let end = twin.now + 100_000;
    prop_assert_eq!(server.advance(end), twin.advance(end));
    prop_assert_eq!(server.state(), (None, 0));
    Ok(())
}

fn script() -> impl Strategy<Value = Vec<(u64, Change)>> {
    prop::collection::vec((0..12u64, change()), 1..200)
}

proptest! {
    #![proptest_config(crate::scripts(250))]

    #[test]
    fn first_come_first_served(servers in 1..4usize, script in script()) {
        let server = Server::Fifo(FifoServer::new(servers).unwrap());
        lock_step(server, Twin { servers, now: 0, services: 0, jobs: Vec::new() }, script)?;
    }

    #[test]
    fn by_priority(servers in 1..4usize, script in script()) {
        let server = Server::Priority(PriorityServer::new(servers).unwrap());
        lock_step(server, Twin { servers, now: 0, services: 0, jobs: Vec::new() }, script)?;
    }
}
