//! The cost of a phone's work in a round if its memory decides the width of the network it trains (HeteroFL: Diao
//! et al., ICLR 2021).

use haversack_federation::selection::SelectorKind;
use haversack_federation::work::{Job, LeftOut, WIDTHS, Work};

use super::budgets::Budgets;
use super::costs::{Costs, Share};
use super::specification::{Phones, Specification};
use crate::scenario::Scenario;
use crate::{Cache, Result};

/// The specification for each width, widest first; only the full one unless the selector is HeteroFL's.
pub(super) fn of_each_width(asked: &Specification) -> Vec<Specification> {
    let widths = if asked.rules.selector == SelectorKind::Heterofl { WIDTHS.len() } else { 1 };
    let of_width = |&width: &f64| {
        let model = &asked.trained.model;
        let model = if width < 1.0 { format!("{model}@{width}") } else { model.clone() };
        Specification { trained: Scenario { model, ..asked.trained.clone() }, ..asked.clone() }
    };
    WIDTHS[..widths].iter().map(of_width).collect()
}

/// The costs of networks of each width, widest first.
pub(super) struct Widths<'a>(Vec<Costs<'a>>);

impl<'a> Widths<'a> {
    /// # Errors
    /// As [`Costs::new`], and a network that has no narrower form.
    pub(super) fn new(
        asked: &'a [Specification],
        phones: &'a Phones,
        budgets: &'a Budgets,
        cache: &Cache,
    ) -> Result<Self> {
        let costs = asked.iter().map(|asked| Costs::new(asked, phones, budgets, cache));
        Ok(Self(costs.collect::<Result<_, _>>()?))
    }

    /// The plans of each width.
    pub(super) fn shares(&self) -> Vec<Vec<Share>> {
        self.0.iter().map(Costs::shares).collect()
    }

    /// The widest network that usually fits a phone's memory, or the narrowest.
    fn usual(&self, phone: u32) -> &Costs<'a> {
        let last = self.0.len() - 1;
        let widest = self.0[..last].iter().find(|costs| costs.usually_has_room(phone));
        widest.unwrap_or(&self.0[last])
    }
}

impl Work for Widths<'_> {
    fn holds(&self, phone: u32) -> Result<(), LeftOut> {
        self.usual(phone).holds(phone)
    }

    /// The widest network that fits the memory in this round; if none fits, the narrowest.
    fn job(&self, phone: u32, round: u32, now: f64) -> Job {
        let last = self.0.len() - 1;
        let width = (0..last).find(|&width| self.0[width].has_room(phone, round)).unwrap_or(last);
        Job { width: width as u8, ..self.0[width].job(phone, round, now) }
    }

    fn expected_s(&self, phone: u32) -> f64 {
        self.usual(phone).expected_s(phone)
    }

    fn batch_s(&self, phone: u32) -> f64 {
        self.usual(phone).batch_s(phone)
    }

    fn memory(&self, phone: u32) -> f64 {
        self.usual(phone).memory(phone)
    }
}
