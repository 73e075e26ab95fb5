//! What is learned, and how.

use std::sync::Arc;

use haversack_federation::learning::{Labels, LearningError, LocalSgd, ServerRule, Yogi};
use haversack_workloads::data::{DataSet, LoadOptions, load};

use super::keys::{Aggregator, Asked, Mode, Place, Split, Store};
use crate::{Cache, CommandError, Result};

/// The name of the data that are made for each client (Li et al., MLSys 2020).
const SYNTHETIC: &str = "synthetic";
/// Stand-ins that take tokens.
const OF_TOKENS: [&str; 2] = ["bag-of-tokens", "transformer1"];
/// FedProx's μ by default: the best on most of its paper's sets is 0.1 or 1 (Li et al., MLSys 2020, section 5.3).
const PROXIMAL: f32 = 0.1;
/// The concentration of the classes by default.
const ALPHA: f64 = 0.1;

/// Keys that say nothing where nobody learns.
const OF_LEARNING: &str = include_str!("of-learning.txt");

/// What is learned, and how.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::federate) struct Learning {
    /// The network that learns.
    pub(in crate::federate) stand_in: String,
    /// The data: a name or a path; `None` for what suits the network.
    pub(in crate::federate) data: Option<String>,
    /// How a client trains.
    pub(in crate::federate) how: LocalSgd,
    /// How the server takes updates in.
    pub(in crate::federate) rule: ServerRule,
    /// How classes differ among phones.
    pub(in crate::federate) labels: Labels,
    /// How far phones with one size of memory hold classes of their own, from 0 to 1.
    pub(in crate::federate) by_memory: f64,
    /// Whether tensors are kept whole between forward and backward, whatever the policy makes of them.
    pub(in crate::federate) keeps_whole: bool,
    /// Whether each sample of the set has one holder.
    pub(in crate::federate) dealt: bool,
    /// The accuracy with which the federation ends; `None` if it ends after its rounds.
    pub(in crate::federate) target: Option<f64>,
    /// Every so many rounds accuracy is measured, and after the last.
    pub(in crate::federate) every: u32,
}

impl Learning {
    /// The set that is asked for, or the one that suits the stand-in; `None` where the data are made for each client.
    ///
    /// # Errors
    /// Data that cannot be had.
    pub(in crate::federate) fn data_set(&self, cache: &Cache) -> Result<Option<Arc<DataSet>>> {
        let suits = if OF_TOKENS.contains(&self.stand_in.as_str()) { "phrases" } else { "glyphs" };
        let name = self.data.as_deref().unwrap_or(suits);
        if name == SYNTHETIC {
            return Ok(None);
        }
        let load =
            || load(name, &LoadOptions::default()).map_err(|error| CommandError::input(format!("`data`: {error}")));
        Ok(Some(cache.get(format!("data of a federation, {name}"), load)?))
    }
}

/// What is learned; `None` for time alone.
pub(super) fn learning(asked: &Asked, place: &Place<'_>) -> Result<Option<Learning>> {
    let mode = asked.mode.unwrap_or(if asked.stand_in.is_some() { Mode::Learning } else { Mode::Timing });
    if mode == Mode::Timing {
        let given = toml::from_str::<toml::Table>(place.text).unwrap_or_default();
        return match OF_LEARNING.lines().find(|key| given.contains_key(*key)) {
            Some(key) => Err(place.says(key, &format!("`{key}` needs `mode` learning, but `mode` is timing"))),
            None => Ok(None),
        };
    }
    let Some(stand_in) = asked.stand_in.clone() else {
        return Err(place.says("mode", "`mode` is learning, which needs `stand_in`"));
    };
    let labels = match (asked.split, asked.alpha) {
        (Some(_), Some(_)) => {
            return Err(place.says("alpha", "`alpha` and `split` both say how samples are split; expected one of them"));
        }
        (Some(Split::Natural), None) if asked.data.as_deref() != Some(SYNTHETIC) => {
            return Err(
                place.says("split", "`split` is natural, which only data = \"synthetic\" has; expected even, or alpha")
            );
        }
        (Some(_), None) => Labels::Even,
        (None, alpha) => Labels::Dirichlet { alpha: alpha.unwrap_or(ALPHA) },
    };
    let dealt = asked.dealt.unwrap_or(false);
    if dealt && asked.data.as_deref() == Some(SYNTHETIC) {
        return Err(place.says("dealt", "`dealt` is of a set, but the `data` are made for each phone; expected a set"));
    }
    let by_memory = asked.data_by_memory.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&by_memory) {
        return Err(place.says("data_by_memory", &format!("`data_by_memory` is {by_memory}, expected from 0 to 1")));
    }
    if by_memory > 0.0 && asked.data.as_deref() == Some(SYNTHETIC) {
        let why = "`data_by_memory` is of the classes of a set, but the `data` are made for each phone; expected a set";
        return Err(place.says("data_by_memory", why));
    }
    labels.check().map_err(|error| place.says("alpha", &error.to_string()))?;
    let (rule, proximal) = aggregator(asked, place)?;
    let epochs = asked.local_epochs.unwrap_or(1);
    let batch = usize::try_from(asked.batch.unwrap_or(20)).unwrap_or(usize::MAX);
    let (rate, momentum) = (asked.learning_rate.unwrap_or(0.05), asked.momentum.unwrap_or(0.0));
    let decay = asked.weight_decay.unwrap_or(0.0);
    let how = LocalSgd { epochs, steps: asked.local_steps, batch, rate, proximal, momentum, decay };
    how.check().map_err(|error| {
        let field = if let LearningError::Setting { field, .. } = error { field } else { "learning_rate" };
        place.says(field, &error.to_string())
    })?;
    if let Some(target) = asked.target_accuracy.filter(|target| !(0.0..=1.0).contains(target)) {
        return Err(place.says("target_accuracy", &format!("`target_accuracy` is {target}, expected from 0 to 1")));
    }
    let every = asked.evaluate_every.unwrap_or(5).max(1);
    let (data, target) = (asked.data.clone(), asked.target_accuracy);
    let keeps_whole = asked.store == Some(Store::Whole);
    Ok(Some(Learning { stand_in, data, how, rule, labels, by_memory, keeps_whole, dealt, target, every }))
}

/// How the server takes updates in, and FedProx's μ.
fn aggregator(asked: &Asked, place: &Place<'_>) -> Result<(ServerRule, f32)> {
    let aggregator = asked.aggregator.unwrap_or(Aggregator::Average);
    if asked.proximal.is_some() && aggregator != Aggregator::Proximal {
        return Err(place.says("proximal", "`proximal` is FedProx's μ; expected aggregator = \"fedprox\" with it"));
    }
    if asked.server_learning_rate.is_some() && aggregator != Aggregator::Yogi {
        let why = "`server_learning_rate` is FedYogi's; expected aggregator = \"fedyogi\" with it";
        return Err(place.says("server_learning_rate", why));
    }
    let yogi = Yogi::default();
    let rate = asked.server_learning_rate.unwrap_or(yogi.rate);
    if !(rate > 0.0 && rate.is_finite()) {
        let why = format!("`server_learning_rate` is {rate}, expected a number above 0");
        return Err(place.says("server_learning_rate", &why));
    }
    Ok(match aggregator {
        Aggregator::Average => (ServerRule::Add, 0.0),
        Aggregator::Proximal => (ServerRule::Add, asked.proximal.unwrap_or(PROXIMAL)),
        Aggregator::Yogi => (ServerRule::Yogi(Yogi { rate, ..yogi }), 0.0),
    })
}
