//! The clients of a federation (figure 14).

use haversack_federation::learning::{Holding, Labels};

use super::federations::text;
use crate::artefacts::prelude::*;
use crate::federate::{Phones, Specification};

/// The data sets: a task that uses each, the display name, and the number of classes (section 5.2).
const SETS: [(&str, &str, usize); 3] =
    [("openimg-mobilenetv2", "OpenImage", 600), ("20news-bert", "20News", 20), ("agnews-bert", "AG News", 4)];
/// The concentration of classes (section 5.2).
const LABELS: Labels = Labels::Dirichlet { alpha: 0.1 };

pub(super) fn populations(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of("panel,series,value,share_percent");
    let mut largest = None;
    for (task, name, classes) in SETS {
        let asked = Specification::parse(task, &text(context, task, &["random"])?, Some(context.seed))?;
        let phones = Phones::draw(&asked)?;
        let of = |phone: (u32, &haversack_federation::population::Phone)| {
            Holding::draw(context.seed, phone.0, phone.1.samples, classes, LABELS, &[])
        };
        let held: Vec<Holding> = (0..).zip(phones.population.phones()).map(of).collect();
        shares(&mut records, "samples", name, held.iter().map(|holding| f64::from(holding.samples())).collect())?;
        shares(&mut records, "divergence", name, held.iter().map(|holding| divergence(&holding.0)).collect())?;
        largest.get_or_insert((phones, asked));
    }
    let (phones, asked) = largest.context("a population is missing")?;
    let names: Vec<String> = asked.memory_sizes().iter().map(|size| format!("{size} GB")).collect();
    let all = phones.population.phones();
    let mut numbers = Vec::new();
    for (class, name) in (0..).zip(&names) {
        let own = all.iter().filter(|phone| phone.memory == class).map(|phone| f64::from(phone.speed));
        let own: Vec<f64> = own.collect();
        numbers.push((name, own.len() as f64 / all.len() as f64 * 100.0));
        shares(&mut records, "speed", name, own)?;
    }
    for (name, share) in numbers {
        records.row(("memory", name.as_str(), None::<f64>, share))?;
    }
    show(context, records, Outcome::default())
}

/// The percentage of clients with at most each value, in a hundred steps.
fn shares(records: &mut Records, panel: &str, name: &str, mut values: Vec<f64>) -> Result<()> {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    for percent in 0..=100 {
        let Some(&value) = values.get(last * percent / 100) else { break };
        records.row((panel, name, value, percent as f64))?;
    }
    Ok(())
}

/// The Jensen-Shannon divergence of a client's classes from even ones, in bits.
fn divergence(counts: &[u32]) -> f64 {
    let all = counts.iter().map(|&count| f64::from(count)).sum::<f64>().max(1.0);
    let even = 1.0 / counts.len().max(1) as f64;
    let part = |share: f64, middle: f64| if share > 0.0 { share * (share / middle).log2() } else { 0.0 };
    let of = |&count: &u32| {
        let share = f64::from(count) / all;
        let middle = (share + even) / 2.0;
        (part(share, middle) + part(even, middle)) / 2.0
    };
    counts.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergence_is_none_of_even_classes_and_grows_with_what_is_missing() {
        assert!(divergence(&[5, 5, 5, 5]).abs() < 1e-12);
        // One class of two: ½ · 1 · log₂(1 / ¾) + ½ · (½ log₂(½ / ¾) + ½ log₂(½ / ¼)).
        let by_hand = 0.5 * (4.0_f64 / 3.0).log2() + 0.25 * ((2.0_f64 / 3.0).log2() + 1.0);
        assert!((divergence(&[8, 0]) - by_hand).abs() < 1e-12);
        assert!(divergence(&[8, 0, 0, 0]) > divergence(&[8, 0]));
    }
}
