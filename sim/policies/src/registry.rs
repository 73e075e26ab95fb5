//! All policies, by the names that scenarios use: `policies.toml` lists them; this module builds them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use haversack_devices::text::nearest;

use crate::entry::Settings;
use crate::mincut::policy::MinCut;
use crate::plan::{PLANNED, failed};
use crate::sage::{Dynamic, Order};
use crate::{
    Entry, Plan, Planned, Policy, PolicyError, actnn, capuchin, daf, dtr, elastictrainer, fedhybrid, fixed8, gact,
    mandheling, melon, original, sga, sgc,
};

/// Makes a policy with its settings.
type Build = fn(&Settings<'_>) -> Result<Box<dyn Policy>, PolicyError>;

const BUILDS: [(&str, Build); 22] = [
    (original::ID, |_| Ok(Box::new(original::Original))),
    ("sgc", |_| Ok(Box::new(sgc::StaticCheckpointing::default()))),
    ("sga", |set| Ok(Box::new(sga::StaticAccumulation { statistics: set.get("batch_norm")? }))),
    ("dgc", |_| Ok(Box::new(Dynamic::new(Order::CheckpointingOnly, None)))),
    ("dga", |set| Ok(Box::new(Dynamic::new(Order::AccumulationOnly, None).normalising_by(set.get("batch_norm")?)))),
    ("sage", |set| {
        let dynamic = Dynamic::new(set.get("order")?, set.get("mtp")?).down_to(set.get("floor")?);
        Ok(Box::new(dynamic.normalising_by(set.get("batch_norm")?)))
    }),
    ("dtr", |set| Ok(Box::new(dtr::Dtr::new(set.get("heuristic")?)))),
    ("fixed8", |_| Ok(Box::new(fixed8::Fixed8))),
    ("elastictrainer", |set| Ok(Box::new(elastictrainer::ElasticTrainer::new(set.get("importance")?)))),
    ("actnn", |set| Ok(Box::new(actnn::ActNn::new(set.get("bits")?)))),
    ("daf", |set| Ok(Box::new(daf::Daf::new(daf::Parameters::read(set)?)))),
    ("gact", |set| Ok(Box::new(gact::Gact::new(set.all()?)))),
    ("capuchin", |_| Ok(Box::new(capuchin::Capuchin::default()))),
    ("melon", |set| Ok(Box::new(melon::Melon::new(set.all()?)))),
    ("fedhybrid", |set| Ok(Box::new(fedhybrid::FedHybrid::new(fedhybrid::Parameters::read(set)?)))),
    ("tflite-fp32", |_| Ok(Box::new(original::Original))),
    ("mnn-fp32", |_| Ok(Box::new(original::Original))),
    ("mnn-int8", |_| Ok(Box::new(original::Original))),
    ("mnn-fp32-gpu", |_| Ok(Box::new(original::Original))),
    ("mandheling", |set| Ok(Box::new(mandheling::Mandheling::new(set.all()?)))),
    ("mincut", |set| Ok(Box::new(MinCut::new(set.all()?, papers).checked(set)?))),
    (PLANNED, |set| {
        let file: Option<String> = set.get(PLAN)?;
        let file = file.ok_or_else(|| failed("not set; expected --set plan=FILE.json"))?;
        Ok(Box::new(Planned::new(Plan::read(&file)?)))
    }),
];

/// The policies of papers that work with any engine, with default settings.
fn papers() -> Vec<Box<dyn Policy>> {
    let ids = ["sage", "dgc", "dga", "dtr", "fedhybrid", "melon", "capuchin", "sgc", "sga", "gact", "actnn", "daf"];
    ids.into_iter().filter_map(|id| build(id, &[]).ok()).collect()
}

/// The parameter of the policy that carries out a plan.
const PLAN: &str = "plan";

static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut listed: BTreeMap<&str, Vec<Entry>> = toml::from_str(include_str!("../policies.toml")).unwrap_or_default();
    let mut entries = listed.remove("policy").unwrap_or_default();
    let known: Vec<_> = entries.iter().flat_map(|entry| &entry.parameters).cloned().collect();
    for parameter in entries.iter_mut().flat_map(|entry| &mut entry.parameters).filter(|own| own.values.is_none()) {
        known
            .iter()
            .find(|first| first.name == parameter.name)
            .into_iter()
            .for_each(|first| parameter.clone_from(first));
    }
    entries
});

/// All policies that make decisions, in the order in which they are listed.
pub static POLICIES: LazyLock<Vec<&'static Entry>> =
    LazyLock::new(|| all().filter(|entry| entry.id != PLANNED).collect());

/// The same, and the one that carries out earlier decisions.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    ALL.iter()
}

/// The entry of the policy `id`.
///
/// # Errors
/// An unknown policy, with the nearest name.
pub fn find(id: &str) -> Result<&'static Entry, PolicyError> {
    all().find(|entry| entry.id == id).ok_or_else(|| PolicyError::Unknown {
        found: id.to_owned(),
        nearest: nearest(id, all().map(|entry| entry.id)).map(str::to_owned),
    })
}

/// Builds the policy `id` with parameters set by name.
///
/// # Errors
/// An unknown policy or parameter, with the nearest name, or a value that the parameter cannot have.
pub fn build(id: &str, set: &[(String, String)]) -> Result<Box<dyn Policy>, PolicyError> {
    let settings = find(id)?.settings(set)?;
    let unknown = || PolicyError::Unknown { found: id.to_owned(), nearest: None };
    let (_, build) = BUILDS.iter().find(|(own, _)| *own == id).ok_or_else(unknown)?;
    build(&settings)
}

/// The policy that decided in a run under `entry` with the parameters `set`, and its parameters: for `planned`, the
/// policy that made its plan.
///
/// # Errors
/// As [`Plan::read`], and a plan of an unknown policy.
pub fn origin(
    entry: &'static Entry,
    set: &BTreeMap<String, String>,
) -> Result<(&'static Entry, BTreeMap<String, String>), PolicyError> {
    match set.get(PLAN).filter(|_| entry.id == PLANNED) {
        None => Ok((entry, set.clone())),
        Some(file) => {
            let plan = Plan::read(file)?;
            Ok((find(&plan.policy)?, plan.set))
        }
    }
}
