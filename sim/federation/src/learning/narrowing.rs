//! A narrower copy of a network, whose weights are leading slices of the full one's (HeteroFL: Diao et al., ICLR 2021).

use super::error::LearningError;
use super::stand_in::StandIn;

/// Which of the full network's weights a narrower one has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowing {
    /// Of each weight of the narrower network, its place in the full one.
    places: Vec<u32>,
    full: usize,
}

impl Narrowing {
    /// # Errors
    /// Networks that do not have the same weights by name, or a narrower one that is wider somewhere.
    pub fn new(full: &StandIn, narrow: &StandIn) -> Result<Self, LearningError> {
        let wrong = || LearningError::Weights { expected: full.len(), found: narrow.len() };
        let mut places = Vec::with_capacity(narrow.len());
        for (wide, slim) in full.weights().iter().zip(narrow.weights()) {
            let fits = wide.name == slim.name && wide.dims.len() == slim.dims.len();
            if !fits || wide.dims.iter().zip(&slim.dims).any(|(wide, slim)| slim > wide) {
                return Err(wrong());
            }
            for index in 0..slim.len() as u64 {
                // From the last dimension to the first: the digit in the narrow weight is the digit in the full one.
                let (mut rest, mut place, mut step) = (index, 0, 1);
                for (slim, wide) in slim.dims.iter().zip(&wide.dims).rev() {
                    place += rest % slim * step;
                    rest /= slim;
                    step *= wide;
                }
                places.push((wide.first as u64 + place) as u32);
            }
        }
        if full.weights().len() == narrow.weights().len() {
            Ok(Self { places, full: full.len() })
        } else {
            Err(wrong())
        }
    }

    /// The place in the full network of each weight of the narrower one.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// What the narrower network has of the full one's weights.
    ///
    /// # Errors
    /// Another number of weights.
    pub fn narrowed(&self, weights: &[f32]) -> Result<Vec<f32>, LearningError> {
        if weights.len() != self.full {
            return Err(LearningError::Weights { expected: self.full, found: weights.len() });
        }
        Ok(self.places.iter().map(|&place| weights[place as usize]).collect())
    }
}
