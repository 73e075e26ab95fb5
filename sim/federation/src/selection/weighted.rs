//! Draws without replacement by weight.

use haversack_engine::Stream;
use rand::RngExt;

/// A phone and its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weighed {
    pub phone: u32,
    pub weight: f64,
}

/// `number` of `candidates`, or all of them, each draw by weight among the remaining ones (Efraimidis and Spirakis,
/// 2006): the largest keys ln(u) / weight. Those with weight zero come last.
pub(super) fn sample(candidates: &[Weighed], number: usize, stream: &mut Stream) -> Vec<u32> {
    let keyed = candidates.iter().map(|&Weighed { phone, weight }| {
        let even: f64 = stream.random();
        let key = if weight > 0.0 { libm::log(1.0 - even) / weight } else { f64::NEG_INFINITY };
        Weighed { phone, weight: key }
    });
    let mut keyed: Vec<Weighed> = keyed.collect();
    largest(&mut keyed, number);
    keyed.iter().map(|key| key.phone).collect()
}

/// Keeps the `number` with the largest weights, largest first; of equals the lower numbers.
pub(super) fn largest(candidates: &mut Vec<Weighed>, number: usize) {
    let order = |a: &Weighed, b: &Weighed| b.weight.total_cmp(&a.weight).then(a.phone.cmp(&b.phone));
    if number < candidates.len() {
        if number > 0 {
            candidates.select_nth_unstable_by(number - 1, order);
        }
        candidates.truncate(number);
    }
    candidates.sort_unstable_by(order);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavier_phones_are_drawn_more_often() {
        let candidates: Vec<Weighed> =
            [(1, 1.0), (2, 3.0), (3, 0.0)].map(|(phone, weight)| Weighed { phone, weight }).to_vec();
        let mut stream = Stream::new(1, "test", "weights");
        let mut first = [0; 4];
        for _ in 0..4000 {
            first[sample(&candidates, 1, &mut stream)[0] as usize] += 1;
        }
        // Three of four draws take the phone of weight 3, none the one of weight 0.
        assert!((2900..3100).contains(&first[2]) && first[3] == 0 && first[1] + first[2] == 4000, "{first:?}");
        let mut all = sample(&candidates, 9, &mut stream);
        assert_eq!(all.pop(), Some(3));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        assert!(sample(&candidates, 0, &mut stream).is_empty());
    }

    #[test]
    fn the_heaviest_come_first_and_of_equals_the_lower_numbers() {
        let mut weighed =
            [(5, 1.0), (2, 1.0), (9, 4.0), (1, 0.5)].map(|(phone, weight)| Weighed { phone, weight }).to_vec();
        largest(&mut weighed, 3);
        assert_eq!(weighed.iter().map(|weighed| weighed.phone).collect::<Vec<_>>(), [9, 2, 5]);
    }
}
