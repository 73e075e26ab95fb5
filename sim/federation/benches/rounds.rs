//! Rounds without data: 1,000 rounds of 130 phones, by selector and population. `cargo bench -p haversack-federation --bench
//! rounds`; `-- 10000 100000 1000000` for other populations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::time::Instant;

use haversack_federation::availability::Availability;
use haversack_federation::federation::{Federation, Rules, TimingOnly};
use haversack_federation::population::{DeviceKind, Phone, Population, PopulationSetting, Sizes};
use haversack_federation::selection::SelectorKind;
use haversack_federation::work::{Job, LeftOut, Why, Work};

const ROUNDS: u32 = 1000;
const COHORT: u32 = 100;

/// Costs from a table.
struct Table<'p>(&'p [Phone]);

impl Work for Table<'_> {
    fn holds(&self, phone: u32) -> Result<(), LeftOut> {
        let left_out = || LeftOut { why: Why::NoPlan, reason: "no plan fits".to_owned() };
        if self.0[phone as usize].memory == 0 { Err(left_out()) } else { Ok(()) }
    }
    fn job(&self, phone: u32, _: u32, _: f64) -> Job {
        let compute_s = f64::from(self.0[phone as usize].samples) * self.batch_s(phone);
        let (down_bytes, up_bytes) = (10_000_000, 10_000_000);
        Job { budget_bytes: 0, plan: 0, width: 0, down_bytes, up_bytes, compute_s, energy_j: 1.0, killed_after_s: None }
    }
    fn expected_s(&self, phone: u32) -> f64 {
        let Phone { down, up, samples, .. } = self.0[phone as usize];
        f64::from(samples) * self.batch_s(phone) + 1e7 / f64::from(down) + 1e7 / f64::from(up)
    }
    fn batch_s(&self, phone: u32) -> f64 {
        1.0 / f64::from(self.0[phone as usize].speed)
    }
    fn memory(&self, phone: u32) -> f64 {
        f64::from(self.0[phone as usize].memory) / 4.0
    }
}

/// Seconds of CPU time of this thread, so that other processes do not count; wall-clock time if the
/// system does not report it.
fn cpu_s(begin: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse::<f64>().ok());
    nanos.map_or_else(|| begin.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

/// The peak memory of the process, as text; empty if the system does not report it.
fn peak() -> String {
    let told = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    told.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|most| most.trim().to_owned()).unwrap_or_default()
}

fn main() {
    let asked: Vec<u32> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let populations = if asked.is_empty() { vec![10_000, 100_000] } else { asked };
    let setting = PopulationSetting::embedded().expect("the embedded setting");
    let devices: Vec<DeviceKind> = (0..5).map(|memory| DeviceKind { id: format!("class {memory}"), memory }).collect();
    for number in populations {
        let sizes = Sizes::Split { total: 60 * u64::from(number), alpha: Some(1.0) };
        for selector in SelectorKind::ALL {
            let clock = Instant::now();
            let begin = cpu_s(clock);
            let population = Population::draw(1, number, &setting, &devices, sizes).expect("a population");
            let sessions = setting.sessions.clone();
            let availability = Availability::new(1, population.phones().len(), sessions.ready, sessions.between);
            let work = Table(population.phones());
            let rules = Rules { over_commit: 1.3, ..Rules::new(selector, COHORT) };
            let mut federation = Federation::new(1, rules, &population, availability, &work).expect("a federation");
            let (mut selected, mut completed, mut days) = (0_u64, 0_u64, 0.0);
            for _ in 0..ROUNDS {
                let round = federation.round(&mut TimingOnly).expect("a round");
                selected += u64::from(round.row.selected);
                completed += u64::from(round.row.completed);
                days = (round.row.start_s + round.row.duration_s) / 86_400.0;
            }
            println!(
                "{number:>8} phones, {:<14} {:>6.2} CPU s, {selected} selected, {completed} completed in {days:.1} simulated days, {} at most",
                selector.name(),
                cpu_s(clock) - begin,
                peak()
            );
        }
    }
}
