//! Queues whose mean sojourn time is known, to within three standard errors.
//!
//! Each case runs independent replications from fixed seeds; the standard error is that of their means. Times are in
//! units of the mean service time, 10⁶ ns, so that rounding to whole nanoseconds is negligible.

use std::collections::BTreeMap;

use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
use haversack_engine::{EventHandle, EventQueue, ResourceError, SharedBandwidth, Stream};
use rand::RngExt;

const SERVICE: f64 = 1e6;
const REPLICATIONS: u64 = 30;
const CUSTOMERS: usize = 15_000;
/// The warm-up that is discarded, because every replication starts with an empty queue.
const WARM_UP: usize = 1_500;

fn exponential(stream: &mut Stream, mean: f64) -> f64 {
    -mean * (1.0 - stream.random::<f64>()).ln()
}

struct Customer {
    number: usize,
    class: u64,
    arrival: Nanos,
}

/// A station that the event queue can drive.
trait Station {
    fn insert(&mut self, now: Nanos, demand: u64, customer: Customer) -> Result<(), ResourceError>;
    fn advance(&mut self, now: Nanos) -> Result<Option<Customer>, ResourceError>;
    fn next_completion(&mut self) -> Option<Nanos>;
}

/// Equal servers before one queue, first come first served within a class; the lowest class goes first.
struct Servers {
    idle: usize,
    serving: EventQueue<Customer>,
    waiting: BTreeMap<(u64, usize), (u64, Customer)>,
}

impl Servers {
    fn new(idle: usize) -> Self {
        Self { idle, serving: EventQueue::new(), waiting: BTreeMap::new() }
    }

    fn serve(&mut self, now: Nanos) {
        while self.idle > 0
            && let Some((_, (demand, customer))) = self.waiting.pop_first()
        {
            self.idle -= 1;
            self.serving.schedule_at(now + Nanos(demand), customer).unwrap();
        }
    }
}

impl Station for Servers {
    fn insert(&mut self, now: Nanos, demand: u64, customer: Customer) -> Result<(), ResourceError> {
        self.waiting.insert((customer.class, customer.number), (demand, customer));
        self.serve(now);
        Ok(())
    }
    fn advance(&mut self, now: Nanos) -> Result<Option<Customer>, ResourceError> {
        let Some((time, customer)) =
            self.serving.next_time().filter(|&due| due <= now).and_then(|_| self.serving.pop())
        else {
            return Ok(None);
        };
        self.idle += 1;
        self.serve(time);
        Ok(Some(customer))
    }
    fn next_completion(&mut self) -> Option<Nanos> {
        self.serving.next_time()
    }
}

impl Station for SharedBandwidth<Customer> {
    fn insert(&mut self, now: Nanos, demand: u64, customer: Customer) -> Result<(), ResourceError> {
        self.insert(now, Bytes(demand), None, customer).map(|_| ())
    }
    fn advance(&mut self, now: Nanos) -> Result<Option<Customer>, ResourceError> {
        Ok(self.advance(now)?.map(|done| done.item))
    }
    fn next_completion(&mut self) -> Option<Nanos> {
        self.next_completion()
    }
}

enum Event {
    Arrival,
    Completion,
}

/// The mean sojourn time of each class over one replication, in service times. Customers arrive at the rate `load` per
/// service time; `class` and `demand` draw theirs.
fn replicate<const CLASSES: usize>(
    seed: u64,
    load: f64,
    station: &mut impl Station,
    class: impl Fn(&mut Stream) -> u64,
    demand: impl Fn(&mut Stream) -> f64,
) -> [f64; CLASSES] {
    let [mut arrivals, mut classes, mut demands] =
        ["arrival", "class", "demand"].map(|purpose| Stream::new(seed, "station", purpose));
    let mut queue = EventQueue::new();
    let mut prediction: Option<EventHandle> = None;
    let mut arrived = 0;
    let mut sojourns = [(0.0, 0.0); CLASSES];
    queue.schedule_in(Nanos(0), Event::Arrival);
    queue
        .run(|queue, now, event| {
            match event {
                Event::Arrival => {
                    let customer = Customer { number: arrived, class: class(&mut classes), arrival: now };
                    station.insert(now, demand(&mut demands).round() as u64, customer)?;
                    arrived += 1;
                    if arrived < CUSTOMERS {
                        let gap = exponential(&mut arrivals, SERVICE / load).round() as u64;
                        queue.schedule_in(Nanos(gap), Event::Arrival);
                    }
                }
                Event::Completion => {
                    while let Some(customer) = station.advance(now)? {
                        if customer.number >= WARM_UP {
                            let (sum, count) = &mut sojourns[customer.class as usize];
                            *sum += (now - customer.arrival).0 as f64 / SERVICE;
                            *count += 1.0;
                        }
                    }
                }
            }
            if let Some(handle) = prediction.take() {
                queue.cancel(handle);
            }
            prediction = station.next_completion().and_then(|due| queue.schedule_at(due, Event::Completion).ok());
            Ok::<(), ResourceError>(())
        })
        .unwrap();
    sojourns.map(|(sum, count)| sum / count)
}

/// `expected` is within three standard errors of the mean of `means`, and the error is small enough to be meaningful.
fn assert_mean(what: &str, means: &[f64], expected: f64) {
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    assert!((mean - expected).abs() < 3.0 * error, "{what}: {mean} ± {error}, expected {expected}");
    assert!(error < 0.015 * expected, "{what}: a standard error of {error} tells nothing");
}

fn one_class(_: &mut Stream) -> u64 {
    0
}

fn means(run: impl Fn(u64) -> [f64; 1]) -> Vec<f64> {
    (0..REPLICATIONS).map(|seed| run(seed)[0]).collect()
}

#[test]
fn one_server_is_mm1() {
    // λ = 0.7, μ = 1: T = 1 / (μ - λ) = 1 / 0.3 = 3.3333.
    let sojourns = means(|seed| {
        let mut server = Servers::new(1);
        replicate(seed, 0.7, &mut server, one_class, |stream| exponential(stream, SERVICE))
    });
    assert_mean("M/M/1", &sojourns, 1.0 / 0.3);
}

#[test]
fn three_servers_are_erlang_c() {
    // c = 3, a = λ/μ = 2.4, ρ = 0.8. The terms aᵏ/k! of k = 0, 1, 2 add up to 1 + 2.4 + 2.88 = 6.28; that of k = 3 is
    // 13.824 / 6 = 2.304, and over 1 - ρ it is 11.52. Probability of waiting: C = 11.52 / (6.28 + 11.52) = 0.64719. T =
    // 1/μ + C / (cμ - λ) = 1 + 0.64719 / 0.6 = 2.07865.
    let sojourns = means(|seed| {
        let mut server = Servers::new(3);
        replicate(seed, 2.4, &mut server, one_class, |stream| exponential(stream, SERVICE))
    });
    assert_mean("M/M/3", &sojourns, 1.0 + 11.52 / 17.8 / 0.6);
}

#[test]
fn two_priorities_are_cobhams() {
    // Cobham 1954, one server, λ₁ = 0.3, λ₂ = 0.4, μ = 1. Work found in service: W₀ = (λ₁ + λ₂) E[S²] / 2
    // = 0.7 · 2 / 2 = 0.7. T₁ = 1 + W₀ / (1 - 0.3) = 2; T₂ = 1 + W₀ / ((1 - 0.3)(1 - 0.7)) = 4.3333.
    let runs: Vec<[f64; 2]> = (0..REPLICATIONS)
        .map(|seed| {
            let mut server = Servers::new(1);
            let class = |stream: &mut Stream| u64::from(stream.random::<f64>() * 0.7 >= 0.3);
            replicate(seed, 0.7, &mut server, class, |stream| exponential(stream, SERVICE))
        })
        .collect();
    assert_mean("urgent", &runs.iter().map(|run| run[0]).collect::<Vec<_>>(), 2.0);
    assert_mean("patient", &runs.iter().map(|run| run[1]).collect::<Vec<_>>(), 1.0 + 0.7 / 0.21);
}

#[test]
fn processor_sharing_depends_on_the_mean_only() {
    type Volume = fn(&mut Stream) -> f64;
    // M/G/1 processor sharing, λ = 0.6, E[S] = 1 (10⁶ B at 1 B/ns): T = 1 / (1 - 0.6) = 2.5 for any distribution. First
    // come, first served would give 1 + 0.6 E[S²] / (2 · 0.4): 1.75 for equal volumes, 2.5 for exponential ones and,
    // with E[S²] = 3.5 below, 3.625.
    let volumes: [(&str, Volume); 3] = [
        ("equal volumes", |_| SERVICE),
        ("exponential volumes", |stream| exponential(stream, SERVICE)),
        // 0.25 of the flows have a mean of 2.5, the others of 0.5: E[S] = 0.625 + 0.375 = 1 and
        // E[S²] = 2 (0.25 · 6.25 + 0.75 · 0.25) = 3.5.
        ("hyperexponential volumes", |stream| {
            let mean = if stream.random::<f64>() < 0.25 { 2.5 } else { 0.5 };
            exponential(stream, mean * SERVICE)
        }),
    ];
    for (what, volume) in volumes {
        let sojourns = means(|seed| {
            let mut link = SharedBandwidth::new(BytesPerSecond(1e9)).unwrap();
            replicate(seed, 0.6, &mut link, one_class, volume)
        });
        assert_mean(what, &sojourns, 2.5);
    }
}
