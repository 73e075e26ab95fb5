//! All policies, by the names that scenarios use.

use std::ops::RangeInclusive;
use std::str::FromStr;

use haversack_devices::units::Bytes;
use haversack_replay::Heuristic;

use crate::actnn::ActNn;
use crate::budget::Rule;
use crate::capuchin::Capuchin;
use crate::daf::{self, Daf};
use crate::dtr::Dtr;
use crate::elastictrainer::ElasticTrainer;
use crate::engines::{self, ALGORITHMS, Engine};
use crate::error::PolicyError;
use crate::fedhybrid::{self, FedHybrid};
use crate::fixed8::Fixed8;
use crate::gact::{self, Gact};
use crate::importance::Metric;
use crate::mandheling::{self, Mandheling, Rescaling};
use crate::melon::{self, Melon};
use crate::original::Original;
use crate::policy::Policy;
use crate::quantised::{Control, Packing};
use crate::sage::{Dynamic, Order};
use crate::sga::StaticAccumulation;
use crate::sgc::StaticCheckpointing;

/// A parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it does, its values and its default.
    pub about: &'static str,
}

/// A policy as it is listed.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its id.
    pub id: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Where it is from.
    pub citation: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// The training engine that it stands for; nothing where it goes with any.
    pub engine: Option<Engine>,
    build: fn(&Settings<'_>) -> Result<Box<dyn Policy>, PolicyError>,
}

const SAGE: &str = "Gim and Ko, MobiSys 2022";
const MTP: Parameter =
    Parameter { name: "mtp", about: "samples below which accumulation stops (default: what fills the device)" };
const ORDER: Parameter =
    Parameter { name: "order", about: "dga-first (default), dgc-first, half or alternate: the hybrids of figure 11" };
const HEURISTIC: Parameter =
    Parameter { name: "heuristic", about: "dtr (default), dtr-eq, dtr-local, msps, lru or size" };

const DAF: &str = "Liu et al., MobiSys 2025";
const IMPORTANCE: Parameter = Parameter {
    name: "importance",
    about: "depth (default: trained values, late layers more), values or uniform: what a tensor is worth without data",
};

const MANDHELING: &str = "Xu et al., MobiCom 2022";
const ALGORITHM: Parameter =
    Parameter { name: "algorithm", about: "niti (default), octo, adaptive-fixed-point, wageubn or mls" };

/// All policies, in the order in which they are listed.
pub const POLICIES: &[Entry] = &[
    Entry {
        id: "original",
        about: "no memory management: everything is kept",
        citation: SAGE,
        parameters: &[],
        engine: None,
        build: |_| Ok(Box::new(Original)),
    },
    Entry {
        id: "sgc",
        about: "static gradient checkpointing: every √n-th saved tensor is kept",
        citation: "Chen et al., 2016",
        parameters: &[],
        engine: None,
        build: |_| Ok(Box::new(StaticCheckpointing::default())),
    },
    Entry {
        id: "sga",
        about: "static gradient accumulation: two micro-batches",
        citation: SAGE,
        parameters: &[],
        engine: None,
        build: |_| Ok(Box::new(StaticAccumulation)),
    },
    Entry {
        id: "dgc",
        about: "dynamic gradient checkpointing: the lowest latency per byte gives way",
        citation: SAGE,
        parameters: &[],
        engine: None,
        build: |_| Ok(Box::new(Dynamic::new(Order::CheckpointingOnly, None))),
    },
    Entry {
        id: "dga",
        about: "dynamic gradient accumulation: the micro-batch gives way",
        citation: SAGE,
        parameters: &[],
        engine: None,
        build: |_| Ok(Box::new(Dynamic::new(Order::AccumulationOnly, None))),
    },
    Entry {
        id: "sage",
        about: "accumulation until the processor is under-used, then checkpointing",
        citation: SAGE,
        parameters: &[ORDER, MTP],
        engine: None,
        build: |settings| {
            let order = match settings.get("order") {
                None | Some("dga-first") => Order::AccumulationFirst,
                Some("dgc-first") => Order::CheckpointingFirst,
                Some("half") => Order::Half,
                Some("alternate") => Order::Alternate,
                Some(found) => return Err(settings.bad("order", found, "dga-first, dgc-first, half or alternate")),
            };
            let mtp = match settings.get("mtp") {
                None => None,
                Some(found) => match found.parse::<u64>() {
                    Ok(samples) if samples > 0 => Some(samples),
                    _ => return Err(settings.bad("mtp", found, "a whole number of samples above zero")),
                },
            };
            Ok(Box::new(Dynamic::new(order, mtp)))
        },
    },
    Entry {
        id: "dtr",
        about: "dynamic tensor rematerialisation: the lowest heuristic score gives way",
        citation: "Kirisame et al., ICLR 2021",
        parameters: &[HEURISTIC],
        engine: None,
        build: |settings| {
            let heuristic = match settings.get("heuristic") {
                None => Heuristic::Dtr,
                Some(found) => Heuristic::from_str(found)
                    .map_err(|_| settings.bad("heuristic", found, "dtr, dtr-eq, dtr-local, msps, lru or size"))?,
            };
            Ok(Box::new(Dtr::new(heuristic)))
        },
    },
    Entry {
        id: "fixed8",
        about: "weights and activations of eight bits, computed with as they are",
        citation: DAF,
        parameters: &[],
        engine: None,
        build: |_| Ok(Box::new(Fixed8)),
    },
    Entry {
        id: "elastictrainer",
        about: "trains the weights that matter most for their time, within a time budget",
        citation: "Huang et al., MobiSys 2023",
        parameters: &[IMPORTANCE],
        engine: None,
        build: |settings| Ok(Box::new(ElasticTrainer::new(settings.among("importance", &Metric::NAMES)?))),
    },
    Entry {
        id: "actnn",
        about: "what modules keep is quantised to two bits, group by group (level L3)",
        citation: "Chen et al., ICML 2021",
        parameters: &[Parameter { name: "bits", about: "mean bits a value: 1, 2 (default), 4 or 8" }],
        engine: None,
        build: |settings| Ok(Box::new(ActNn::new(settings.bits("bits", &[1, 2, 4, 8])?.unwrap_or(2)))),
    },
    Entry {
        id: "daf",
        about: "bits by importance for every saved tensor, in an arena of pages, packed by the CPU",
        citation: DAF,
        parameters: &[
            Parameter {
                name: "bits",
                about: "1, 2, 4, 8, 16 or 32 for every tensor (default: what the budgets leave; 2 without any)",
            },
            Parameter {
                name: "trained_share",
                about: "1 to 100: the percentage of all importance at which giving up weight gradients for time stops",
            },
            Parameter {
                name: "least_bits",
                about: "0 (default), 1, 2, 4 or 8: the fewest bits that a budget may leave a tensor",
            },
            IMPORTANCE,
            Parameter { name: "packing", about: "unified (default), shared, cpu or gpu: who packs and who unpacks" },
            Parameter { name: "control", about: "fused (default) or own-kernels: where statistics are computed" },
            Parameter { name: "step_mb", about: "megabytes by which the arena grows and shrinks (default 100)" },
            Parameter { name: "page_kib", about: "KiB of a page (default 16)" },
        ],
        engine: None,
        build: |settings| {
            let mut parameters = daf::Parameters {
                bits: settings.bits("bits", &daf::BITS[..6])?,
                least_bits: settings.bits("least_bits", &daf::BITS[2..])?.unwrap_or(0),
                metric: settings.among("importance", &Metric::NAMES)?,
                packing: settings.among("packing", &Packing::NAMES)?,
                control: settings.among("control", &Control::NAMES)?,
                ..daf::Parameters::default()
            };
            parameters.trained_share = settings.whole("trained_share", 100)?.map(|percent| percent as f64 / 100.0);
            if let Some(megabytes) = settings.whole("step_mb", 1_000_000)? {
                parameters.arena.step = Bytes(megabytes * 1_000_000);
            }
            if let Some(kibibytes) = settings.whole("page_kib", 1_000_000)? {
                parameters.arena.page = Bytes(kibibytes * 1024);
            }
            Ok(Box::new(Daf::new(parameters)))
        },
    },
    Entry {
        id: "gact",
        about: "whatever autograd saves is quantised group by group, to the same bits or by sensitivity",
        citation: "Liu et al., ICML 2022",
        parameters: &[
            Parameter { name: "level", about: "L1 (default: the same bits) or L2 (2 to 8 by sensitivity)" },
            Parameter { name: "bits", about: "bits a value, the mean of them under L2: 2, 4 (default) or 8" },
            IMPORTANCE,
        ],
        engine: None,
        build: |settings| {
            Ok(Box::new(Gact::new(gact::Parameters {
                level: settings.among("level", &gact::Level::NAMES)?,
                bits: settings.bits("bits", &[2, 4, 8])?.unwrap_or(4),
                metric: settings.among("importance", &Metric::NAMES)?,
            })))
        },
    },
    Entry {
        id: "capuchin",
        about: "swapping to flash where it hides behind computation, else what stalls less",
        citation: "Peng et al., ASPLOS 2020",
        parameters: &[],
        engine: None,
        build: |_| Ok(Box::new(Capuchin::default())),
    },
    Entry {
        id: "melon",
        about: "the largest size × remaining life / cost is computed again; then the micro-batch gives way",
        citation: "Wang et al., MobiSys 2022",
        parameters: &[
            Parameter {
                name: "micro_batching",
                about: "on (default) or off: the micro-batch shrinks where nothing is left to drop",
            },
            Parameter {
                name: "computing_budget",
                about: "1 to 100 (default): percent of what weights and state leave of the memory budget, kept to after every operator",
            },
        ],
        engine: None,
        build: |settings| {
            Ok(Box::new(Melon::new(melon::Parameters {
                micro_batching: settings.on("micro_batching")?,
                computing_budget: settings.whole("computing_budget", 100)?.unwrap_or(100),
            })))
        },
    },
    Entry {
        id: "fedhybrid",
        about: "the most memory saved per second gives way, by recomputation or by compression",
        citation: "Tam et al., SenSys 2024",
        parameters: &[
            Parameter { name: "compression", about: "on (default) or off: tensors may be compressed" },
            Parameter { name: "recomputation", about: "on (default) or off: tensors may be computed again" },
            Parameter { name: "swapping", about: "on or off (default): tensors may go to flash" },
            Parameter { name: "layout", about: "on (default) or off: recomputation costs its layout transformations" },
            Parameter {
                name: "crossing",
                about: "on or off (default): layout transformations cross from CPU to GPU and count twice",
            },
            Parameter {
                name: "budget",
                about: "predicted, initial or every-round: who decides the memory budget on a phone in use (default: nobody)",
            },
            Parameter { name: "epoch", about: "iterations over whose time the predictor looks back (default 10)" },
            Parameter {
                name: "tp1",
                about: "percent of the mean page faults beyond which it plans anew (default 200)",
            },
            Parameter { name: "tp2", about: "kills beyond which it plans anew (default 3)" },
            Parameter { name: "ws_adj", about: "percent of its window that a new plan leaves (default 90)" },
        ],
        engine: None,
        build: |settings| {
            Ok(Box::new(FedHybrid::new(fedhybrid::Parameters {
                compression: settings.on("compression")?,
                recomputation: settings.on("recomputation")?,
                swapping: settings.switch("swapping", false)?,
                layout: settings.on("layout")?,
                crossing: settings.switch("crossing", false)?,
                budget: settings.budget()?,
            })))
        },
    },
    Entry {
        id: "tflite-fp32",
        about: "TFLite in fp32 on the big cores: everything is kept",
        citation: MANDHELING,
        parameters: &[],
        engine: Some(engines::TFLITE_FP32),
        build: |_| Ok(Box::new(Original)),
    },
    Entry {
        id: "mnn-fp32",
        about: "MNN in fp32 on the big cores: everything is kept",
        citation: MANDHELING,
        parameters: &[],
        engine: Some(engines::MNN_FP32),
        build: |_| Ok(Box::new(Original)),
    },
    Entry {
        id: "mnn-int8",
        about: "MNN in eight bits on the big cores: everything is kept, scale factors are taken anew in every batch",
        citation: MANDHELING,
        parameters: &[ALGORITHM],
        engine: Some(engines::MNN_INT8),
        build: |settings| settings.algorithm().map(|()| Box::new(Original) as Box<dyn Policy>),
    },
    Entry {
        id: "mnn-fp32-gpu",
        about: "MNN in fp32 on the GPU: everything is kept",
        citation: MANDHELING,
        parameters: &[],
        engine: Some(engines::MNN_FP32_GPU),
        build: |_| Ok(Box::new(Original)),
    },
    Entry {
        id: "mandheling",
        about: "eight bits on the DSP, with the CPU beside it for what the DSP lacks",
        citation: MANDHELING,
        parameters: &[
            ALGORITHM,
            Parameter { name: "coscheduling", about: "on (default) or off: crossings decide where an operator runs" },
            Parameter { name: "rescaling", about: "adaptive (default) or dynamic: when scale factors are taken anew" },
            Parameter { name: "splitting", about: "on (default) or off: products run in parts that fit the caches" },
            Parameter { name: "reuse", about: "on (default) or off: subgraphs of the DSP stay prepared" },
            Parameter {
                name: "history",
                about: "batches with rescaling from which the period of the next ones follows, at least 4 (default 16)",
            },
            Parameter { name: "warm_up", about: "batches trained before the first simulated one (default 1000)" },
            Parameter { name: "seed", about: "the seed of the scale factors' changes (default 0)" },
        ],
        engine: Some(engines::MANDHELING),
        build: |settings| {
            settings.algorithm()?;
            let default = mandheling::Parameters::default();
            Ok(Box::new(Mandheling::new(mandheling::Parameters {
                coscheduling: settings.on("coscheduling")?,
                rescaling: settings.among("rescaling", &Rescaling::NAMES)?,
                splitting: settings.on("splitting")?,
                reuse: settings.on("reuse")?,
                history: settings
                    .within("history", mandheling::rescaling::LEAST_HISTORY..=10_000)?
                    .unwrap_or(default.history),
                warm_up: settings.within("warm_up", 0..=1_000_000)?.unwrap_or(default.warm_up),
                seed: settings.within("seed", 0..=u64::MAX)?.unwrap_or(default.seed),
            })))
        },
    },
];

struct Settings<'a> {
    policy: &'static str,
    values: &'a [(String, String)],
}

impl Settings<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// One of a few words; the default where it is not set.
    fn among<T: Copy + Default>(&self, name: &'static str, words: &[(&'static str, T)]) -> Result<T, PolicyError> {
        let Some(found) = self.get(name) else { return Ok(T::default()) };
        let known = words.iter().find(|(word, _)| *word == found);
        known.map(|&(_, value)| value).ok_or_else(|| {
            let names = || words.iter().map(|(word, _)| *word);
            let near = nearest(found, names()).map_or_else(String::new, |word| format!("; did you mean '{word}'?"));
            self.bad(name, found, &format!("{}{near}", names().collect::<Vec<_>>().join(", ")))
        })
    }

    /// A number of bits among `allowed`.
    fn bits(&self, name: &'static str, allowed: &[u8]) -> Result<Option<u8>, PolicyError> {
        let Some(found) = self.get(name) else { return Ok(None) };
        let bits = found.parse().ok().filter(|bits| allowed.contains(bits));
        let expected = || allowed.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
        bits.map(Some).ok_or_else(|| self.bad(name, found, &expected()))
    }

    /// A whole number from 1 to `most`.
    fn whole(&self, name: &'static str, most: u64) -> Result<Option<u64>, PolicyError> {
        self.within(name, 1..=most)
    }

    /// A whole number of `range`.
    fn within(&self, name: &'static str, range: RangeInclusive<u64>) -> Result<Option<u64>, PolicyError> {
        let Some(found) = self.get(name) else { return Ok(None) };
        let number = found.parse().ok().filter(|number| range.contains(number));
        let expected = || format!("a whole number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| self.bad(name, found, &expected()))
    }

    /// Whether a technique is on, as it is where nothing is set.
    fn on(&self, name: &'static str) -> Result<bool, PolicyError> {
        self.switch(name, true)
    }

    /// Whether a technique is on, with what holds where nothing is set.
    fn switch(&self, name: &'static str, default: bool) -> Result<bool, PolicyError> {
        match self.get(name) {
            None => Ok(default),
            Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(found) => Err(self.bad(name, found, "on or off")),
        }
    }

    /// Who decides the memory budget of a phone in use; nobody where it is not set.
    fn budget(&self) -> Result<Option<fedhybrid::BudgetParameters>, PolicyError> {
        let rule = self.get("budget").map(|_| self.among("budget", &Rule::NAMES)).transpose()?;
        let parameters = fedhybrid::BudgetParameters {
            rule: rule.unwrap_or_default(),
            epoch: self.whole("epoch", 1_000_000)?.unwrap_or(10),
            fault_percent: self.whole("tp1", 1_000_000)?.unwrap_or(200),
            kills: self.within("tp2", 0..=1_000_000)?.unwrap_or(3),
            shrink_percent: self.whole("ws_adj", 100)?.unwrap_or(90),
        };
        Ok(rule.map(|_| parameters))
    }

    /// The algorithm of mixed precision, which only has to be known here: the graph is rewritten for it beforehand.
    fn algorithm(&self) -> Result<(), PolicyError> {
        self.among("algorithm", &ALGORITHMS.map(|name| (name, ())))
    }

    fn bad(&self, parameter: &'static str, found: &str, expected: &str) -> PolicyError {
        PolicyError::BadValue { policy: self.policy, parameter, found: found.to_owned(), expected: expected.to_owned() }
    }
}

/// Builds the policy `id` with parameters set by name.
///
/// # Errors
/// An unknown policy or parameter, with the nearest name, or a value that the parameter cannot have.
pub fn build(id: &str, set: &[(String, String)]) -> Result<Box<dyn Policy>, PolicyError> {
    let entry = find(id)?;
    for (key, _) in set {
        if !entry.parameters.iter().any(|parameter| parameter.name == key) {
            let nearest = nearest(key, entry.parameters.iter().map(|parameter| parameter.name));
            return Err(PolicyError::UnknownParameter { policy: entry.id, found: key.clone(), nearest });
        }
    }
    (entry.build)(&Settings { policy: entry.id, values: set })
}

/// The entry of the policy `id`.
///
/// # Errors
/// An unknown policy, with the nearest name.
pub fn find(id: &str) -> Result<&'static Entry, PolicyError> {
    POLICIES.iter().find(|entry| entry.id == id).ok_or_else(|| PolicyError::Unknown {
        found: id.to_owned(),
        nearest: nearest(id, POLICIES.iter().map(|entry| entry.id)),
    })
}

fn nearest<'a>(found: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let scored = names.map(|name| (strsim::jaro_winkler(found, name), name));
    scored.filter(|(score, _)| *score > 0.6).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name.to_owned())
}
