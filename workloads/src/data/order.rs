//! Which samples come when, and which are set aside for validation.

use super::draws::Draws;

/// The order in which epoch number `epoch` visits `samples` samples: a permutation of 0 to `samples` − 1.
///
/// It depends on the seed and the epoch alone, so that policies are compared on the same mini-batches and a resumed run
/// goes on as the uninterrupted one would.
pub fn epoch_order(samples: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..samples).collect();
    Draws::new(seed, "shuffle", epoch).shuffle(&mut order);
    order
}

/// The samples that stay for training and those set aside: of every class the share `share`, rounded to the nearest
/// sample, drawn under `seed`. Both keep the order in which the samples were.
pub fn split_off(labels: &[u16], share: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let classes = labels.iter().max().map_or(0, |&label| usize::from(label) + 1);
    let mut by_class = vec![Vec::new(); classes];
    for (sample, &label) in labels.iter().enumerate() {
        by_class[usize::from(label)].push(sample);
    }
    let mut aside = vec![false; labels.len()];
    for (class, mut members) in by_class.into_iter().enumerate() {
        let number = (members.len() as f64 * share.clamp(0.0, 1.0)).round() as usize;
        Draws::new(seed, "validation", class as u64).shuffle(&mut members);
        members.into_iter().take(number).for_each(|sample| aside[sample] = true);
    }
    (0..labels.len()).partition(|&sample| !aside[sample])
}
