//! Phones of similar memory and speed, which share a plan (FedHybrid, section 4.3.2): k-means, and each cluster's plan
//! is that of its weakest member, so that it fits every member.

use haversack_engine::Stream;
use rand::RngExt;

use crate::draw::place_of;

/// The most rounds of k-means.
const MOST_ROUNDS: usize = 100;

/// The properties that decide which plan suits a phone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capability {
    /// The memory that training may use, in bytes.
    pub budget: f64,
    /// Its speed, in any unit that all phones share.
    pub speed: f64,
}

/// Phones by cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// The cluster of each phone.
    pub of: Vec<u32>,
    /// The least budget and the least speed within each.
    pub weakest: Vec<Capability>,
    /// How often a phone was compared with all centres to find them, the first centres included.
    pub visits: u64,
}

impl Clusters {
    /// At most `number` clusters of `phones`, seeded by k-means++ (Arthur and Vassilvitskii, SODA 2007). The
    /// coordinates of a phone are its budget and its speed, each over its mean. Empty clusters are left out; without
    /// phones there are none, and with `number` zero there is one.
    pub fn new(phones: &[Capability], number: usize, seed: u64) -> Self {
        let points = scaled(phones);
        let mut centres = first_centres(&points, number.max(1), &mut Stream::new(seed, "clusters", "first centres"));
        let mut of = vec![0_u32; points.len()];
        // Each further centre was compared with every phone.
        let mut visits = points.len() as u64;
        for round in 0..MOST_ROUNDS {
            visits += points.len() as u64;
            let next: Vec<u32> = points.iter().map(|point| nearest(*point, &centres).0).collect();
            if round > 0 && next == of {
                break;
            }
            of = next;
            move_centres(&points, &of, &mut centres);
        }
        Self { visits, ..Self::weakest_of(phones, &of, centres.len()) }
    }

    /// The clusters that have members, renumbered in their order.
    fn weakest_of(phones: &[Capability], of: &[u32], number: usize) -> Self {
        let mut weakest: Vec<Option<Capability>> = vec![None; number];
        for (phone, &cluster) in phones.iter().zip(of) {
            let least = weakest[cluster as usize].get_or_insert(*phone);
            least.budget = least.budget.min(phone.budget);
            least.speed = least.speed.min(phone.speed);
        }
        let mut numbers = vec![0; number];
        for (cluster, (place, _)) in (0..).zip(weakest.iter().enumerate().filter(|(_, least)| least.is_some())) {
            numbers[place] = cluster;
        }
        let of = of.iter().map(|&cluster| numbers[cluster as usize]).collect();
        Self { of, weakest: weakest.into_iter().flatten().collect(), visits: 0 }
    }
}

/// A budget and a speed, each over its mean.
type Point = [f64; 2];

fn scaled(phones: &[Capability]) -> Vec<Point> {
    let mean = |of: fn(&Capability) -> f64| {
        let mean = phones.iter().map(of).sum::<f64>() / phones.len().max(1) as f64;
        if mean > 0.0 && mean.is_finite() { mean } else { 1.0 }
    };
    let [budget, speed] = [mean(|phone| phone.budget), mean(|phone| phone.speed)];
    phones.iter().map(|phone| [phone.budget / budget, phone.speed / speed]).collect()
}

fn distance(a: Point, b: Point) -> f64 {
    a.into_iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The nearest centre, the first of equals, and the square of its distance.
fn nearest(point: Point, centres: &[Point]) -> (u32, f64) {
    let distances = (0..).zip(centres).map(|(number, centre)| (number, distance(point, *centre)));
    distances.fold((0, f64::INFINITY), |best, found| if found.1 < best.1 { found } else { best })
}

/// The first centre is drawn among all points, each further one by the square of its distance from the centres so far.
fn first_centres(points: &[Point], number: usize, stream: &mut Stream) -> Vec<Point> {
    let Some(last) = points.len().checked_sub(1) else { return Vec::new() };
    let mut centres = vec![points[stream.random_range(0..=last)]];
    let mut far: Vec<f64> = points.iter().map(|point| distance(*point, centres[0])).collect();
    while centres.len() < number {
        let total: f64 = far.iter().sum();
        if total <= 0.0 {
            break;
        }
        let chosen = place_of(stream.random::<f64>() * total, far.iter().copied());
        let centre = points[chosen.unwrap_or(last)];
        centres.push(centre);
        far.iter_mut().zip(points).for_each(|(far, point)| *far = far.min(distance(*point, centre)));
    }
    centres
}

/// Moves each centre to the middle of its points; one without points stays.
fn move_centres(points: &[Point], of: &[u32], centres: &mut [Point]) {
    let mut sums = vec![([0.0; 2], 0_u32); centres.len()];
    for (point, &cluster) in points.iter().zip(of) {
        let (sum, number) = &mut sums[cluster as usize];
        sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += value);
        *number += 1;
    }
    for (centre, (sum, number)) in centres.iter_mut().zip(sums).filter(|(_, (_, number))| *number > 0) {
        *centre = sum.map(|sum| sum / f64::from(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phone(budget: f64, speed: f64) -> Capability {
        Capability { budget, speed }
    }

    #[test]
    fn phones_that_lie_apart_are_apart_and_a_plan_fits_the_weakest() {
        let phones: Vec<Capability> = (0..60)
            .map(|place| {
                let (group, member) = (place % 3, f64::from(place / 3));
                phone(1e9 * f64::from(1 + 3 * group) + 1e6 * member, 1.0 + 0.001 * member)
            })
            .collect();
        let clusters = Clusters::new(&phones, 3, 1);
        assert_eq!(clusters.weakest.len(), 3);
        for (place, phone) in phones.iter().enumerate() {
            let weakest = clusters.weakest[clusters.of[place] as usize];
            assert_eq!(weakest.budget, 1e9 * (1 + 3 * (place % 3)) as f64);
            assert!(weakest.budget <= phone.budget && weakest.speed <= phone.speed);
        }
        assert_eq!(clusters, Clusters::new(&phones, 3, 1));
    }

    #[test]
    fn there_are_no_more_clusters_than_different_phones() {
        assert_eq!(Clusters::new(&[], 4, 1), Clusters { of: vec![], weakest: vec![], visits: 0 });
        let same = Clusters::new(&[phone(2.0, 1.0); 5], 4, 1);
        // Five comparisons for the first centre and five in each of two rounds.
        assert_eq!(same, Clusters { of: vec![0; 5], weakest: vec![phone(2.0, 1.0)], visits: 15 });
        let one = Clusters::new(&[phone(2.0, 3.0), phone(5.0, 1.0)], 0, 1);
        assert_eq!((one.of, one.weakest), (vec![0, 0], vec![phone(2.0, 1.0)]));
        // Zero budgets do not cause a division by zero.
        assert_eq!(Clusters::new(&[phone(0.0, 0.0), phone(0.0, 0.0)], 2, 1).weakest.len(), 1);
    }
}
