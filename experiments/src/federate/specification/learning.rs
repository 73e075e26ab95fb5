//! The learning keys of a specification.

use std::sync::Arc;

use haversack_federation::learning::{Labels, LearningError, LocalSgd, ServerRule, Yogi};
use haversack_workloads::data::{DataSet, LoadOptions, load};
use toml::Spanned;
use toml::de::DeTable;

use super::keys::{Aggregator, Asked, Mode, Place, Split, Store};
use crate::{Cache, CommandError, Result};

/// The name of the data that are generated for each client (Li et al., MLSys 2020).
const SYNTHETIC: &str = "synthetic";
/// Stand-ins that take tokens.
const OF_TOKENS: [&str; 2] = ["bag-of-tokens", "transformer1"];
/// FedProx's μ by default: the best on most of its paper's sets is 0.1 or 1 (Li et al., MLSys 2020, section 5.3).
const PROXIMAL: f32 = 0.1;
/// The default concentration of the classes.
const ALPHA: f64 = 0.1;

/// Keys that have no effect unless something is learned.
const OF_LEARNING: &str = include_str!("of-learning.txt");

/// The network, the data and the algorithms of learning.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::federate) struct Learning {
    /// The network that learns.
    pub(in crate::federate) stand_in: String,
    /// The data: a name or a path; `None` for the network's default.
    pub(in crate::federate) data: Option<String>,
    /// The training of a client.
    pub(in crate::federate) how: LocalSgd,
    /// The server's aggregation of updates.
    pub(in crate::federate) rule: ServerRule,
    /// The distribution of classes over phones.
    pub(in crate::federate) labels: Labels,
    /// How strongly the classes on a phone depend on its memory, from 0 to 1.
    pub(in crate::federate) by_memory: f64,
    /// Whether saved tensors are kept whole, even if the policy would not.
    pub(in crate::federate) keeps_whole: bool,
    /// Whether each sample of the set belongs to exactly one phone.
    pub(in crate::federate) dealt: bool,
    /// The accuracy at which the federation ends; `None` if it ends after its rounds.
    pub(in crate::federate) target: Option<f64>,
    /// Accuracy is measured after every this many rounds, and after the last.
    pub(in crate::federate) every: u32,
}

impl Learning {
    /// The requested data set, or the stand-in's default; `None` if the data are generated for each client.
    ///
    /// # Errors
    /// Data that cannot be loaded.
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

/// The learning part of the specification; `None` if only time is simulated.
pub(super) fn learning(asked: &Asked, place: &Place<'_>) -> Result<Option<Learning>> {
    let mode = asked.mode.unwrap_or(if asked.stand_in.is_some() { Mode::Learning } else { Mode::Timing });
    if mode == Mode::Timing {
        let given = DeTable::parse(place.text).map(Spanned::into_inner).unwrap_or_default();
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

/// The server's aggregation of updates, and FedProx's μ.
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
