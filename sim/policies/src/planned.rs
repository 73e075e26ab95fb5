//! `planned`: a plan from a file is carried out, as [`plan`](crate::plan) describes.

use crate::entry::Parameter;
use crate::plan::{PLANNED, failed};
use crate::{Entry, Plan, Planned};

/// How scenarios name it, and what can be set.
pub static ENTRY: Entry = Entry {
    id: PLANNED,
    about: "a plan from a file: what `simulate --plan` has written, or a solver",
    description: "Carries out a plan that `simulate --plan FILE.json` has written, or that a solver has: the same micro-batches, and the same treatment of every saved tensor. It runs as the policy that was recorded does, on its stack and processor, and refuses another network, batch or machine.",
    citation: "no paper",
    parameters: &[&PLAN],
    ..Entry::built_by(|settings| {
        let file = settings.text(PLAN.name()).ok_or_else(|| failed("not set; expected --set plan=FILE.json"))?;
        Ok(Box::new(Planned::new(Plan::read(file)?)))
    })
};

pub(crate) static PLAN: PlanFile = PlanFile;

/// The file that a plan is in.
pub(crate) struct PlanFile;

impl Parameter for PlanFile {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn about(&self) -> &'static str {
        "the plan, as `simulate --plan FILE.json` writes it"
    }

    fn values(&self) -> String {
        "a file".to_owned()
    }

    fn default_text(&self) -> Option<String> {
        None
    }

    fn is_of_a_phone(&self) -> bool {
        false
    }
}
