//! The width of a network's hidden layers.

use std::str::FromStr;

/// The share of a hidden layer's features that a narrower network has (HeteroFL: Diao et al., ICLR 2021): the first
/// ones, so that its weights are leading slices of the full network's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width(f64);

impl Width {
    /// All features.
    pub const FULL: Self = Self(1.0);

    /// A share above 0 and up to 1; `None` for another number.
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= 1.0).then_some(Self(share))
    }

    /// This share of `features`, rounded up.
    pub(super) fn of(self, features: u64) -> u64 {
        ((features as f64 * self.0).ceil() as u64).max(1)
    }
}

impl FromStr for Width {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = text.parse().ok().and_then(Self::new);
        share.ok_or_else(|| format!("a width of '{text}'; expected a share above 0 and up to 1, such as 0.5"))
    }
}

#[cfg(test)]
mod tests {
    use crate::models::{MODELS, build};

    fn weights(name: &str) -> Option<u64> {
        build(name, None).ok().map(|network| network.parameters.iter().map(|weight| weight.elements).sum())
    }

    #[test]
    fn a_name_says_how_wide_a_network_is() {
        let without: Vec<&str> =
            MODELS.iter().map(|model| model.id).filter(|id| weights(&format!("{id}@0.5")).is_none()).collect();
        assert_eq!(
            without,
            ["densenet121", "inceptionv3", "swin-t", "gpt2-medium-lora", "qwen2-0.5b-lora", "tinyllama-lora"]
        );
        for id in ["lenet5", "resnet18", "mobilenetv2", "shufflenetv2", "squeezenet1-1", "vgg11-cifar-bn", "bert-small"]
        {
            let [full, one, half, least] = ["", "@1", "@0.5", "@0.0625"].map(|width| weights(&format!("{id}{width}")));
            assert!(full == one && half < full && least < half && least > Some(0), "{id}: {full:?} {half:?} {least:?}");
        }
        // A convolution between hidden layers keeps a quarter of its weights; the first keeps half.
        let [full, half] = ["vgg11-cifar", "vgg11-cifar@0.5"].map(|name| build(name, None).unwrap());
        let [of_full, of_half] = [&full, &half].map(|network| [0, 2].map(|place| network.parameters[place].elements));
        assert_eq!((of_full, of_half), ([64 * 3 * 9, 128 * 64 * 9], [32 * 3 * 9, 64 * 32 * 9]));
    }

    #[test]
    fn a_width_that_none_can_have_is_refused() {
        let refused = |name: &str| build(name, None).map(|_| ()).unwrap_err().to_string();
        for name in ["lenet5@0", "lenet5@1.5", "lenet5@half"] {
            assert!(refused(name).contains("expected a share above 0"), "{}", refused(name));
        }
        assert!(refused("lenet6@0.5").contains("lenet5") && refused("swin-t@0.5").contains("no narrower form"));
    }
}
