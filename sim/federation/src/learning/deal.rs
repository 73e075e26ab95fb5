//! A data set that is divided among clients: each sample belongs to one client.

use haversack_engine::Stream;
use rand::RngExt;

use super::source::{Labels, shares};
use crate::draw::place_of;

/// For each client, the indices of its samples in the train part. No two clients share a sample.
///
/// A client's samples are drawn among those that are left, each weighted by the client's share of its class (Hsu et al.,
/// "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019), so that a rare class
/// is rare among all clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    places: Vec<Vec<u32>>,
}

impl Deal {
    /// How many of `all` samples each of `sizes` gets: in proportion, and at least one if there are enough; with more
    /// clients than samples, some get none.
    pub fn numbers(all: u64, sizes: &[u32]) -> Vec<u64> {
        let total = sizes.iter().map(|&size| u64::from(size)).sum::<u64>().max(1);
        let holders = sizes.iter().filter(|&&size| size > 0).count() as u64;
        let in_proportion = |each: u64| -> Vec<u64> {
            let (mut size, mut dealt) = (0, 0);
            let rest = all - each * holders;
            let of = |&own: &u32| {
                size += u64::from(own);
                // Whole numbers that add up to all samples.
                let until = rest * size / total;
                until - std::mem::replace(&mut dealt, until) + if own > 0 { each } else { 0 }
            };
            sizes.iter().map(of).collect()
        };
        let numbers = in_proportion(0);
        let lacks = numbers.iter().zip(sizes).any(|(&number, &size)| number == 0 && size > 0);
        if lacks && all >= holders { in_proportion(1) } else { numbers }
    }

    /// Deals the samples of each class in `by_class` to clients, which are given by their sizes and the weights of
    /// their classes (empty if all count the same). The numbers of samples are those of [`numbers`](Self::numbers).
    pub fn new(seed: u64, by_class: &[Vec<u32>], clients: &[(u32, &[f64])], labels: Labels) -> Self {
        let mut rest = by_class.to_vec();
        let all = rest.iter().map(Vec::len).sum::<usize>() as u64;
        let of = |(client, number): (usize, u64)| {
            let mut stream = Stream::new(seed, &format!("client {client}"), "dealt classes");
            let shares = shares(&mut stream, rest.len(), labels, clients[client].1);
            (0..number).filter_map(|_| draw(&mut rest, &shares, &mut stream)).collect()
        };
        let sizes: Vec<u32> = clients.iter().map(|client| client.0).collect();
        Self { places: Self::numbers(all, &sizes).into_iter().enumerate().map(of).collect() }
    }

    /// The indices of a client's samples; empty for an unknown client.
    pub fn of(&self, client: u32) -> &[u32] {
        self.places.get(client as usize).map_or(&[], Vec::as_slice)
    }
}

/// One of the remaining samples, each weighted by the client's share of its class; any sample if
/// none of its classes remains.
fn draw(rest: &mut [Vec<u32>], shares: &[f64], stream: &mut Stream) -> Option<u32> {
    let left = |share: &dyn Fn(usize) -> f64| -> Vec<f64> {
        rest.iter().enumerate().map(|(class, rest)| share(class) * rest.len() as f64).collect()
    };
    let mut weights = left(&|class| shares[class]);
    if weights.iter().sum::<f64>() <= 0.0 {
        weights = left(&|_| 1.0);
    }
    let within = place_of(stream.random::<f64>() * weights.iter().sum::<f64>(), weights.iter().copied());
    let class = within.or_else(|| weights.iter().rposition(|&weight| weight > 0.0))?;
    let place = stream.random_range(0..rest[class].len());
    Some(rest[class].swap_remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_class(each: u32) -> Vec<Vec<u32>> {
        (0..4).map(|class| (class * each..(class + 1) * each).collect()).collect()
    }

    #[test]
    fn every_sample_has_one_holder() {
        let clients = [3, 1, 4, 0, 2].map(|size| (size, &[][..]));
        let deal = Deal::new(7, &by_class(25), &clients, Labels::Dirichlet { alpha: 0.1 });
        let mut all: Vec<u32> = (0..5).flat_map(|client| deal.of(client).to_vec()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        // 100 samples by 3 : 1 : 4 : 0 : 2.
        let found: Vec<usize> = (0..6).map(|client| deal.of(client).len()).collect();
        assert_eq!(found, [30, 10, 40, 0, 20, 0]);
        // A rare class is not used up by the first clients: of 4 · 90 + 10 samples each half has
        // about 5 of the last class.
        let rare = [by_class(90), vec![(360..370).collect()]].concat();
        let deal = Deal::new(7, &rare, &[(1, &[][..]); 370], Labels::Even);
        let first = (0..185).filter(|&client| deal.of(client)[0] >= 360).count();
        assert!((2..=8).contains(&first), "{first}");
        assert_eq!(deal, Deal::new(7, &rare, &[(1, &[][..]); 370], Labels::Even));
    }

    #[test]
    fn everybody_who_counts_gets_one_while_there_is_one_for_each() {
        // 9.6 and 0.4 of 10 are 9 and the rest; in the other order the first would get none, so
        // each client first gets one.
        assert_eq!(Deal::numbers(10, &[24, 1]), [9, 1]);
        assert_eq!(Deal::numbers(10, &[1, 24, 0]), [1, 9, 0]);
        // One each, and of the other five 4.8 and twice 0.1, in whole numbers with the same sum.
        assert_eq!(Deal::numbers(8, &[1, 48, 1]), [1, 5, 2]);
        assert_eq!(Deal::numbers(2, &[1, 1, 1, 1]), [0, 1, 0, 1]);
    }

    #[test]
    fn a_small_concentration_leaves_clients_few_classes() {
        let classes = |labels| {
            let deal = Deal::new(1, &by_class(500), &[(1, &[][..]); 100], labels);
            let of = |client| {
                let mut own: Vec<u32> = deal.of(client).iter().map(|place| place / 500).collect();
                own.sort_unstable();
                own.dedup();
                own.len()
            };
            (0..50).map(of).sum::<usize>()
        };
        // Twenty samples each of the first fifty clients: each lacks one of four classes with 4 × 0.75^20, one in a hundred.
        assert!(classes(Labels::Even) >= 195, "{}", classes(Labels::Even));
        assert!(classes(Labels::Dirichlet { alpha: 0.1 }) < 110, "{}", classes(Labels::Dirichlet { alpha: 0.1 }));
    }
}
