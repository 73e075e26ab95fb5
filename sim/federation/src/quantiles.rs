//! A distribution of lengths that is given by some of its quantiles.

/// Lengths at quantiles, with straight lines between their logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    shares: Vec<f64>,
    lengths: Vec<f64>,
}

impl Quantiles {
    /// # Errors
    /// The reason in words: shares that do not rise from 0 to 1, lengths that fall or are not above 0, or different
    /// numbers of shares and lengths.
    pub fn new(shares: Vec<f64>, lengths: Vec<f64>) -> Result<Self, String> {
        let rises = shares.windows(2).all(|pair| pair[0] < pair[1]);
        if shares.len() < 2 || !rises || shares.first() != Some(&0.0) || shares.last() != Some(&1.0) {
            return Err("shares must rise from 0 to 1".to_owned());
        }
        if lengths.len() != shares.len() {
            return Err(format!(
                "{} lengths were expected, as many as shares, there are {}",
                shares.len(),
                lengths.len()
            ));
        }
        let falls = lengths.windows(2).any(|pair| pair[0] > pair[1]);
        if falls || lengths.iter().any(|&length| !(length > 0.0 && length.is_finite())) {
            return Err("lengths must be above 0 and must not fall".to_owned());
        }
        Ok(Self { shares, lengths })
    }

    /// The length at the quantile `share`, from 0 to 1.
    pub fn at(&self, share: f64) -> f64 {
        let above = self.shares.partition_point(|&known| known <= share).clamp(1, self.shares.len() - 1);
        let ([from, to], [low, high]) =
            ([self.shares[above - 1], self.shares[above]], [self.lengths[above - 1], self.lengths[above]]);
        low * libm::pow(high / low, ((share - from) / (to - from)).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_lie_between_their_neighbours() {
        let quantiles = Quantiles::new(vec![0.0, 0.5, 1.0], vec![1.0, 100.0, 100.0]).unwrap();
        // Half of the way between the logarithms of 1 and 100.
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|share| quantiles.at(share)), [1.0, 100.0, 100.0, 100.0]);
        assert!((quantiles.at(0.25) - 10.0).abs() < 1e-12);
        assert_eq!([-1.0, 2.0].map(|share| quantiles.at(share)), [1.0, 100.0]);
        assert!(Quantiles::new(vec![0.0, 0.5], vec![1.0, 2.0]).unwrap_err().contains("from 0 to 1"));
        assert!(Quantiles::new(vec![0.0, 1.0], vec![2.0, 1.0]).unwrap_err().contains("must not fall"));
        assert!(Quantiles::new(vec![0.0, 1.0], vec![2.0]).unwrap_err().contains("2 lengths"));
    }
}
