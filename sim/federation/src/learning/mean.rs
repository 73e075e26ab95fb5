//! What a cohort has learned together: the mean change of each weight over the clients that have it.

use super::error::LearningError;

/// What one client contributes.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// How much it counts beside the others, such as its number of samples.
    pub share: f64,
    /// The change of each of its weights.
    pub change: &'a [f32],
    /// The places of its weights in the server's network ([`super::Narrowing::places`]); `None` if it has all of them.
    pub places: Option<&'a [u32]>,
}

/// The weighted mean change of each of `len` weights over the clients that have it (FedAvg: McMahan et al., AISTATS 2017; for
/// networks of several widths HeteroFL: Diao et al., ICLR 2021); zero where no client has it. Sums run in double precision and in
/// the order of the clients.
///
/// # Errors
/// A client with another number of weights.
pub fn mean_change(len: usize, clients: &[Contribution<'_>]) -> Result<Vec<f32>, LearningError> {
    let (mut sums, mut shares) = (vec![0.0_f64; len], vec![0.0_f64; len]);
    for &Contribution { share, change, places } in clients {
        let (expected, found) = (places.map_or(len, <[u32]>::len), change.len());
        if expected != found || places.is_some_and(|places| places.iter().any(|&place| place as usize >= len)) {
            return Err(LearningError::Weights { expected, found });
        }
        for (index, &change) in change.iter().enumerate() {
            let place = places.map_or(index, |places| places[index] as usize);
            sums[place] += share * f64::from(change);
            shares[place] += share;
        }
    }
    let mean = |(sum, share): (f64, f64)| if share > 0.0 { (sum / share) as f32 } else { 0.0 };
    Ok(sums.into_iter().zip(shares).map(mean).collect())
}
