//! Entry tests of stand-ins: properties that a network, its data and their training must show on all clients, under
//! random selection and FedAvg, before methods are compared on them.
//!
//! `cargo run --release -p haversack-federation --example entry` prints a row for each stand-in, which takes many
//! minutes; `--example entry 0 2` prints only those with these indices.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::sync::Arc;

use haversack_engine::Stream;
use haversack_federation::learning::{
    Contribution, Holding, Labels, LocalSgd, Server, ServerRule, Source, StandIn, Trainee, mean_change, train_all,
};
use haversack_workloads::data::{DataSet, LoadOptions, SampleForm, load};
use haversack_workloads::models::Width;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Gamma};

const COHORT: usize = 20;
const HOW: LocalSgd =
    LocalSgd { epochs: 1, steps: None, batch: 8, rate: 0.1, proximal: 0.0, momentum: 0.0, decay: 5e-4 };
/// The momentum and decay of FedScale's clients; FedHybrid's rate, batch and epochs on pictures (section 5.2).
const PICTURES: LocalSgd = LocalSgd { epochs: 10, batch: 64, rate: 0.045, momentum: 0.9, ..HOW };
const ALPHA: f64 = 0.1;
/// Seeds of the whole set and of the other runs, and rounds, of a table.
const SEEDS: [u64; 2] = [5, 2];

#[derive(Clone, Copy)]
struct Federation {
    network: &'static str,
    data: &'static str,
    clients: u32,
    /// The concentration of clients' sizes.
    sizes: f64,
    rounds: u32,
    how: LocalSgd,
}

#[derive(Debug)]
struct Entry {
    /// The mean final accuracy over the share of the test's most frequent class.
    accuracy: f64,
    chance: f64,
    /// The gain in accuracy over the last fifth of the rounds.
    last_fifth: f64,
    /// The error falls with the share of clients to the power of minus this.
    exponent: f64,
    /// The loss in accuracy at half the width.
    half: f64,
}

impl Federation {
    /// Accuracy after four fifths of the rounds and after all, with a share of the clients.
    fn train(&self, set: &Arc<DataSet>, seed: u64, share: f64, width: f64) -> [f64; 2] {
        let mut stream = Stream::new(seed, "entry", "clients");
        let gamma = Gamma::new(self.sizes, 1000.0 / self.sizes).unwrap();
        let sizes: Vec<(u32, &[f64])> =
            (0..self.clients).map(|_| (gamma.sample(&mut stream) as u32 + 1, &[][..])).collect();
        let source = Source::dealt(Arc::clone(set), seed, &sizes, Labels::Dirichlet { alpha: ALPHA });
        let SampleForm::Image(form) = &set.form else { return [0.0; 2] };
        let input = [form.channels, form.height, form.width].map(|size| size as u64);
        let classes = Some(set.number_of_classes as u64);
        let network = StandIn::of_width(self.network, Some(&input), classes, Width::new(width).unwrap()).unwrap();
        let mut reached: Vec<u32> = (0..self.clients).collect();
        reached.shuffle(&mut stream);
        reached.truncate((f64::from(self.clients) * share) as usize);
        let (mut server, test) =
            (Server::new(network.initial(seed).unwrap(), ServerRule::Add), source.test(seed, self.clients));
        let mut accuracies = [0.0; 2];
        for round in 1..=self.rounds {
            let weights = Cow::Borrowed(&server.weights[..]);
            let of = |&mut client: &mut u32| Trainee {
                client,
                holding: Holding(Vec::new()),
                network: &network,
                weights: weights.clone(),
                store: None,
                round,
            };
            let cohort: Vec<Trainee<'_>> = reached.partial_shuffle(&mut stream, COHORT).0.iter_mut().map(of).collect();
            let updates = train_all(&source, &cohort, &self.how, seed).unwrap();
            let taken = updates.iter().flatten();
            let parts: Vec<Contribution<'_>> = taken
                .map(|update| Contribution { share: update.samples as f64, change: &update.change, places: None })
                .collect();
            let change = mean_change(network.len(), &parts).unwrap();
            server.take(&change);
            for (place, measured) in [self.rounds * 4 / 5, self.rounds].into_iter().enumerate() {
                if round == measured {
                    accuracies[place] = network.score(&server.weights, &test).unwrap().accuracy;
                }
            }
        }
        accuracies
    }

    fn entry(&self, [whole, parts]: [u64; 2]) -> Entry {
        let set = Arc::new(load(self.data, &LoadOptions::default()).unwrap());
        let mut counts = vec![0_u32; set.number_of_classes];
        set.test.labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        let chance = f64::from(*counts.iter().max().unwrap()) / set.test.len() as f64;
        let runs = |seeds: u64, share: f64, width: f64| -> Vec<[f64; 2]> {
            (1..=seeds).map(|seed| self.train(&set, seed, share, width)).collect()
        };
        let mean = |found: &[[f64; 2]], place: usize| {
            found.iter().map(|accuracies| accuracies[place]).sum::<f64>() / found.len() as f64
        };
        let full = runs(whole, 1.0, 1.0);
        let of_parts = &full[..parts as usize];
        let shares: [f64; 3] = [0.125, 0.25, 0.5];
        let mut points = vec![(0.0, (1.0 - mean(of_parts, 1)).ln())];
        points.extend(shares.map(|share| (share.ln(), (1.0 - mean(&runs(parts, share, 1.0), 1)).ln())));
        let half = mean(of_parts, 1) - mean(&runs(parts, 1.0, 0.5), 1);
        let accuracy = mean(&full, 1);
        Entry { accuracy, chance, last_fifth: accuracy - mean(&full, 0), exponent: -slope(&points), half }
    }

    fn print(&self) {
        let Entry { accuracy, chance, last_fifth, exponent, half } = self.entry(SEEDS);
        let Self { network, data, clients, rounds, how, .. } = self;
        let part = how.steps.map_or_else(|| format!("{} epochs", how.epochs), |steps| format!("{steps} steps"));
        println!(
            "{network} on {data}, {clients} clients, {rounds} rounds, {part} at {}, momentum {}: accuracy {:.1} % is {:.1} × chance, \
             last fifth {:+.1}, exponent {exponent:.3}, half the width {:+.1}",
            how.rate,
            how.momentum,
            100.0 * accuracy,
            accuracy / chance,
            100.0 * last_fifth,
            -100.0 * half,
        );
    }
}

/// The slope of the least-squares line.
fn slope(points: &[(f64, f64)]) -> f64 {
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    mean(&|point| (point.0 - x) * (point.1 - y)) / mean(&|point| (point.0 - x).powi(2))
}

const TAILS: Federation =
    Federation { network: "mlp", data: "tails", clients: 658, sizes: 60.0, rounds: 120, how: PICTURES };
const TEXTS: LocalSgd = LocalSgd { rate: 0.05, momentum: 0.9, ..HOW };
const TWENTY: Federation = Federation { data: "tails-20", clients: 100, sizes: 2.0, rounds: 400, how: TEXTS, ..TAILS };
const FOUR: Federation = Federation { data: "tails-4", clients: 204, sizes: 0.4, rounds: 400, ..TWENTY };

fn main() {
    let alone = |federation| Federation { how: HOW, ..federation };
    let step = |federation| Federation { how: LocalSgd { steps: Some(1), ..HOW }, ..federation };
    let pictures = LocalSgd { momentum: 0.0, decay: 0.0, ..PICTURES };
    let of_pictures = Federation { data: "linear", rounds: 100, how: pictures, ..TAILS };
    let rows = [
        TAILS,
        TWENTY,
        FOUR,
        alone(TWENTY),
        alone(FOUR),
        step(TWENTY),
        step(FOUR),
        step(Federation { data: "linear", ..TWENTY }),
        Federation { network: "lenet5", data: "glyphs", ..of_pictures },
        of_pictures,
    ];
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |place: usize| wanted.is_empty() || wanted.contains(&place.to_string());
    rows.iter().enumerate().filter(|(place, _)| is_wanted(*place)).for_each(|(_, row)| row.print());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_twenty_classes_passes_with_one_seed() {
        let entry = Federation { rounds: 80, ..TWENTY }.entry([1, 1]);
        // A fifth of the rounds is not the plateau yet.
        assert!(entry.accuracy > 3.0 * entry.chance && entry.last_fifth < 0.05 && entry.half > 0.02, "{entry:?}");
        assert!((0.07..0.35).contains(&entry.exponent), "{entry:?}");
    }
}
