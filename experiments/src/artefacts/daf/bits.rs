//! DAF's bits by accuracy: for each kind of layer, the fewest that lose at most a point.

use std::collections::BTreeMap;

use super::setting::KINDS;
use crate::artefacts::learning::{Taught, Training, learn, stand_ins};
use crate::artefacts::prelude::*;
use crate::measured::{Measured, MeasuredValue};
use crate::train::{StandIn, apart};

/// The artefact that measures them.
pub(super) const PLACE: &str = "daf/bits";

/// The kinds of layers with their own number of bits for saved tensors: DAF's parameters.
const LAYERS: [&str; 7] = ["convolution", "linear", "product", "softmax", "norm", "elementwise", "loss"];

/// The bits of layers by kind.
type Bits = BTreeMap<&'static str, u64>;

/// A trial: some kinds with few bits and all others whole, and its loss of accuracy on each part with
/// each seed, in points.
struct Trial {
    name: String,
    bits: Bits,
    validation: Vec<f64>,
    test: Vec<f64>,
}

/// The search on one stand-in.
struct Search<'a> {
    context: &'a Context<'a>,
    stand_in: &'a StandIn,
    original: Taught,
    trials: Vec<Trial>,
}

impl<'a> Search<'a> {
    fn new(context: &'a Context<'a>, stand_in: &'a StandIn) -> Result<Self> {
        let scenario = stand_in.scenario.clone();
        let original = learn(context, &[Training { stand_in: stand_in.clone(), scenario }])?
            .pop()
            .context("nothing was trained")??;
        Ok(Self { context, stand_in, original, trials: Vec::new() })
    }

    /// Trains with each of these bits, and adds the trials; one that diverges counts as losing everything.
    fn try_all(&mut self, named: Vec<(String, Bits)>) -> Result<()> {
        let scenario = |bits: &Bits| {
            let set: Vec<_> = bits.iter().map(|(layer, bits)| (format!("{layer}_bits"), bits.to_string())).collect();
            let set = set.iter().map(|(name, bits)| (name.as_str(), bits.as_str()));
            under(&self.stand_in.scenario, "daf", &[("bits", "32")].into_iter().chain(set).collect::<Vec<_>>())
        };
        let trainings: Vec<_> = named
            .iter()
            .map(|(_, bits)| Training { stand_in: self.stand_in.clone(), scenario: scenario(bits) })
            .collect();
        for ((name, bits), taught) in named.into_iter().zip(learn(self.context, &trainings)?) {
            let lost = |part| {
                let original = self.original.accuracies(part);
                match &taught {
                    Ok(taught) => original.iter().zip(taught.accuracies(part)).map(|(all, own)| all - own).collect(),
                    Err(_) => original,
                }
            };
            let (validation, test) = (lost(Part::Validation), lost(Part::Test));
            self.trials.push(Trial { name, bits, validation, test });
        }
        Ok(())
    }

    /// Finds for each kind of layer the fewest bits that lose at most `points` on the validation part while all other
    /// kinds are whole; then combines them, and adds bits to the kind with the largest loss until the combination loses
    /// no more than `points`, either. Kinds whose bits another stand-in has determined keep them.
    fn run(&mut self, tried: &[u64], points: f64, found: &mut Bits) -> Result<()> {
        let most = tried.last().copied().unwrap_or(8);
        let mut open: Vec<&'static str> = self.present();
        open.retain(|layer| !found.contains_key(layer));
        for &bits in tried {
            let named = |layer: &&'static str| (format!("{layer} {bits}"), Bits::from([(*layer, bits)]));
            let first = self.trials.len();
            self.try_all(open.iter().map(named).collect())?;
            for (layer, trial) in std::mem::take(&mut open).into_iter().zip(&self.trials[first..]) {
                if mean(&trial.validation).is_some_and(|lost| lost <= points) || bits == most {
                    found.insert(layer, bits);
                } else {
                    open.push(layer);
                }
            }
        }
        let mut name = "all together".to_owned();
        loop {
            let place = self.trials.len();
            self.try_all(vec![(name.clone(), found.clone())])?;
            let lost = self.trials.get(place).and_then(|trial| mean(&trial.validation)).unwrap_or_default();
            let raised = found
                .iter()
                .filter(|(_, bits)| **bits < most)
                .max_by(|a, b| self.alone(a.0, *a.1).total_cmp(&self.alone(b.0, *b.1)));
            match raised.map(|(layer, bits)| (*layer, *bits)) {
                Some((layer, bits)) if lost > points => {
                    let more = tried.iter().copied().find(|tried| *tried > bits).unwrap_or(most);
                    let alone = format!("{layer} {more}");
                    name = format!("{name}, {alone}");
                    self.try_all(vec![(alone, Bits::from([(layer, more)]))])?;
                    found.insert(layer, more);
                }
                _ => return Ok(()),
            }
        }
    }

    /// The loss of a kind with these bits while all others are whole.
    fn alone(&self, layer: &str, bits: u64) -> f64 {
        let is = |trial: &&Trial| trial.bits.len() == 1 && trial.bits.get(layer) == Some(&bits);
        self.trials.iter().find(is).and_then(|trial| mean(&trial.validation)).unwrap_or_default()
    }

    /// The kinds of layers that the network has.
    fn present(&self) -> Vec<&'static str> {
        let graph = self.context.plan(&self.stand_in.scenario).map(|plan| plan.graph);
        let has = |layer: &&str| graph.iter().flat_map(|graph| &graph.nodes).any(|node| node.layer.name() == *layer);
        LAYERS.into_iter().filter(has).collect()
    }
}

/// Measures the bits of every kind of layer on every kind of stand-in, and the losses of each trial.
fn measure(context: &Context<'_>) -> Result<Measured> {
    let tried: Vec<u64> = context.reading_numbers("bits-tried")?.iter().map(|&bits| bits as u64).collect();
    let points = context.reading_number("bits-points")?;
    let (mut data, mut networks, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for kind in KINDS {
        let mut bits = Bits::new();
        for stand_in in &stand_ins(context, kind)? {
            let mut search = Search::new(context, stand_in)?;
            search.run(&tried, points, &mut bits)?;
            let model = stand_in.scenario.model.as_str();
            for Trial { name, validation, test, .. } in search.trials {
                values.push((format!("{model}/{name}/validation"), "points lost", validation));
                values.push((format!("{model}/{name}/test"), "points lost", test));
            }
            data.push(stand_in.data.clone());
            networks.push(model.to_owned());
        }
        let number = context.seeds().len();
        values.extend(bits.iter().map(|(layer, &bits)| (place(kind, layer), "bits", vec![bits as f64; number])));
    }
    data.dedup();
    let [data, networks] = [&data, &networks].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    let about = "the fewest bits of what layers of a kind keep for backward that cost no more than a point on the validation part";
    let mut measured = context.measuring(about, &data, &networks);
    for (id, unit, each) in values {
        measured.add(id, unit, &each);
    }
    Ok(measured)
}

/// The id of a kind of layer's bits among the measurements.
fn place(kind: &str, layer: &str) -> String {
    format!("{kind}/{layer}")
}

/// The measurements; the threads that wait for them take on no other work.
fn measured(context: &Context<'_>) -> Result<Arc<Measured>> {
    context.measured(PLACE, || apart(rayon::current_num_threads(), || measure(context))?)
}

/// The bits as parameters of `daf`, for networks of a kind of stand-in: the measured ones for each kind of layer, from
/// another stand-in if necessary, and otherwise the declared ones.
///
/// # Errors
/// Bits that were not measured.
pub(super) fn parameters(context: &Context<'_>, kind: &str) -> Result<Vec<(String, String)>> {
    let measured = measured(context)?;
    let of_kind = |kind: &str, layer: &str| measured.value(&place(kind, layer)).ok().map(|found| found.value);
    let bits = |layer: &str| of_kind(kind, layer).or_else(|| KINDS.iter().find_map(|other| of_kind(other, layer)));
    let of_layer = LAYERS.into_iter().filter_map(|layer| Some((format!("{layer}_bits"), bits(layer)?.to_string())));
    let declared = ("bits".to_owned(), context.reading_number("bits")?.to_string());
    Ok(std::iter::once(declared).chain(of_layer).collect())
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let measured = measured(context)?;
    let mut outcome = Outcome::of("id,value,lo,hi,unit");
    for MeasuredValue { id, value, lo, hi, unit, .. } in &measured.values {
        outcome.row((id.as_str(), [*value, *lo, *hi], unit.as_str()))?;
    }
    let of = |kind: &str, layer: &str| measured.value(&place(kind, layer)).ok().map(|found| found.value);
    // Layers without measurements are left out of the figure.
    let layers: Vec<&str> =
        LAYERS.into_iter().filter(|layer| KINDS.iter().any(|kind| of(kind, layer).is_some())).collect();
    let values = |kind: &str| layers.iter().map(|layer| of(kind, layer)).collect::<Vec<_>>();
    let kinds = KINDS.into_iter().filter(|kind| values(kind).iter().any(Option::is_some));
    let bars = kinds.fold(Bars::new(layers.clone()), |bars, kind| bars.series(BarSeries::new(kind, values(kind))));
    KINDS.iter().for_each(|kind| outcome.quantity(&format!("bits of {kind}"), "", values(kind).into_iter().flatten()));
    outcome.words("stand-ins", measured.trained_on());
    outcome.bars("", bars, from_zero("bits a value", ""));
    Ok(outcome)
}
