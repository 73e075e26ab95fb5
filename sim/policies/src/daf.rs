//! `daf`: importance-aware bits for every saved tensor, in an arena of pages (Liu et al., MobiSys 2025).
//!
//! Before an iteration the greedy bi-objective knapsack of section 3.4.1 (algorithm 3) takes from the tensor with the
//! least importance per unit of the scarce resource: bits if memory is scarce, the whole tensor and its weight
//! gradients if time is. During an iteration the same order decides which tensors give way when the budget falls.
//!
//! An activation is what one operation keeps (section 2.1: a bit width for the activations of each operation), so a
//! tensor kept by two modules is stored once for each of them; if whole, it is shared.

mod kinds;

use haversack_devices::{Bytes, Nanos, ensure};
use haversack_memory::pages::{Keys, PageTable, Tighter};
use haversack_workloads::{Need, Phase, TensorId, TrainingGraph};

use crate::entry::Settings;
use crate::importance::{Metric, Worth, of_gradients, of_saved, skippable, writes_parameter_gradients_only};
use crate::quantised::{ArenaPlan, Control, Copies, Packing, Quantisation, Quantised, Reach, Rounding};
use crate::{Holding, IterationPlan, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want};
pub use kinds::KindBits;

/// The bits that a value can have, from whole to not stored (section 3.4.1).
pub const BITS: [u8; 7] = [32, 16, 8, 4, 2, 1, 0];

/// Parameters of `daf`.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Parameters {
    /// Bits of every tensor; `None` lets the budgets decide.
    pub bits: Option<u8>,
    /// Bits of the tensors kept by layers of a kind, in the order of the parameters; `None` uses those of every tensor.
    /// A tensor kept by several kinds gets the largest of their bits.
    pub kind_bits: KindBits,
    /// The fewest bits that a budget may leave a tensor; 0 lets it be given up.
    pub least_bits: u8,
    /// The share of all importance at which eviction to save time stops, with or without a budget; `None` if only the
    /// budget stops it.
    pub trained_share: Option<f64>,
    /// The importance of a tensor before any was measured.
    pub metric: Metric,
    /// The processors that pack.
    pub packing: Packing,
    /// Where statistics are computed.
    pub control: Control,
    /// The arena.
    pub arena: ArenaPlan,
}

impl Parameters {
    /// Reads the parameters from the settings.
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, PolicyError> {
        let in_units = |name, unit: u64| Ok::<_, PolicyError>(Bytes(settings.get::<u64>(name)? * unit));
        Ok(Self {
            bits: settings.get("bits")?,
            kind_bits: kinds::read(settings)?,
            least_bits: settings.get("least_bits")?,
            trained_share: settings.get::<Option<f64>>("trained_share")?.map(|percent| percent / 100.0),
            metric: settings.get("importance")?,
            packing: settings.get("packing")?,
            control: settings.get("control")?,
            arena: ArenaPlan { page: in_units("page_kib", 1024)?, step: in_units("step_mb", 1_000_000)? },
        })
    }
}

/// The bits of every tensor without a budget: the operating point of the paper's table 1.
const UNBOUNDED_BITS: u8 = 2;

/// Dynamic activation quantisation.
#[must_use]
pub struct Daf {
    parameters: Parameters,
    plan: Option<Plan>,
    /// The importance of each tensor: moving averages, once measured.
    averages: Vec<f64>,
}

/// The decisions for one run.
struct Plan {
    stored: Quantised,
    /// Saved tensors that can be quantised, in order of production.
    reached: Vec<TensorId>,
    /// Bytes of the other saved tensors.
    whole: Bytes,
    /// The bits to start from, of each tensor.
    start: Vec<u8>,
    /// The fewest bits that a budget may leave a tensor.
    least: u8,
    budget: Option<Bytes>,
    /// Bits of each tensor; 32 for those that are not saved or kept whole.
    bits: Vec<u8>,
    /// Whether a tensor can be given up altogether.
    skippable: Vec<bool>,
    /// The page table: every tensor that can still give way, by its importance.
    table: PageTable,
    page: Bytes,
    /// Bytes of the tensors that cannot give way any further.
    settled: Bytes,
    samples: u64,
}

impl Daf {
    /// DAF with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, plan: None, averages: Vec::new() }
    }

    const fn rules(&self) -> Quantisation {
        Quantisation {
            reach: Reach::Everything,
            copies: Copies::PerModule,
            redraw_masks: true,
            writes_signs: true,
            control: self.parameters.control,
            packing: self.parameters.packing,
            rounding: Rounding::Nearest,
            arena: Some(self.parameters.arena),
        }
    }

    /// The iteration without the weight gradients that do not fit the time budget: tensors are evicted one after the
    /// other, by importance for their time. Without a budget, down to the share that is to be trained.
    fn within_time(&self, setting: &Setting<'_>) -> Result<Option<TrainingGraph>, PolicyError> {
        let whole: Nanos = setting.times().iter().copied().sum();
        let budget = match (setting.time_budget, self.parameters.trained_share) {
            (Some(budget), _) if whole > budget => budget,
            (None, Some(_)) => Nanos::ZERO,
            _ => return Ok(None),
        };
        let gradients = ByGradient::new(setting);
        let of_gradient = of_gradients(setting.graph, setting.worth(self.parameters.metric));
        let importance = gradients.importance(setting, self.parameters.metric, &of_gradient);
        let mut order: Vec<TensorId> = gradients.tensors();
        let worth = |id: TensorId| importance[id as usize] / (gradients.time_of(id).0 as f64).max(1.0);
        order.sort_by(|&a, &b| worth(a).total_cmp(&worth(b)).then(a.cmp(&b)));
        let floor = self.parameters.trained_share.unwrap_or(0.0) * of_gradient.iter().sum::<f64>();
        let mut left: f64 = of_gradient.iter().sum();
        let mut given_up = vec![false; setting.graph.tensors.len()];
        let mut least = whole;
        for tensor in order {
            let lost = || gradients.of(tensor).iter().filter(|&&gradient| !given_up[gradient as usize]);
            let after = left - lost().map(|&gradient| of_gradient[gradient as usize]).sum::<f64>();
            // Rounding may make this negative.
            if floor > 0.0 && after < floor {
                continue;
            }
            left = after;
            for &gradient in gradients.of(tensor) {
                given_up[gradient as usize] = true;
            }
            let kept = setting.graph.kept_without(|id| given_up[id as usize]);
            least = kept.iter().zip(setting.times()).filter(|(kept, _)| **kept).map(|(_, &time)| time).sum();
            if least <= budget {
                break;
            }
        }
        ensure!(setting.time_budget.is_none() || least <= budget, PolicyError::too_slow("daf", least, budget));
        Ok(Some(setting.graph.without_gradients(|id| given_up[id as usize])))
    }

    fn plan(&mut self, graph: &TrainingGraph, setting: &Setting<'_>) -> Result<Plan, PolicyError> {
        let bits = match (self.parameters.bits, setting.activation_budget, setting.time_budget) {
            (Some(bits), ..) => bits,
            (None, None, None) => UNBOUNDED_BITS,
            (None, ..) => BITS[0],
        };
        let stored = Quantised::new(graph, &self.rules(), setting.elements);
        let (reached, whole): (Vec<_>, Vec<_>) = graph.saved().into_iter().partition(|&tensor| stored.reaches(tensor));
        let whole = whole.iter().map(|&tensor| Bytes(graph.tensor(tensor).bytes.at(setting.batch))).sum();
        self.averages = of_saved(graph, setting.worth(self.parameters.metric));
        let mut plan = Plan {
            stored,
            reached,
            whole,
            start: kinds::start(graph, &self.parameters.kind_bits, bits),
            least: self.parameters.least_bits,
            budget: setting.activation_budget,
            bits: vec![BITS[0]; graph.tensors.len()],
            skippable: skippable(graph),
            table: page_table(self.parameters.arena.page)?,
            page: self.parameters.arena.page,
            settled: Bytes::ZERO,
            samples: setting.batch,
        };
        plan.estimate(&self.averages)?;
        Ok(plan)
    }
}

fn page_table(page: Bytes) -> Result<PageTable, PolicyError> {
    PageTable::new(page).map_err(|error| no_table(&error))
}

impl Plan {
    /// The estimate before an iteration (algorithm 3): every tensor with its starting bits, then bits taken from the
    /// tensor with the least importance for its size until everything fits.
    fn estimate(&mut self, importance: &[f64]) -> Result<(), PolicyError> {
        self.table = page_table(self.page)?;
        self.settled = self.whole;
        for place in 0..self.reached.len() {
            let tensor = self.reached[place];
            self.bits[tensor as usize] = self.start[tensor as usize];
            // Time was accounted for when the schedule was chosen; equal times leave it out of the keys.
            let keys = Keys { importance: importance[tensor as usize], time: Nanos(1) };
            self.table.insert(tensor, self.size(tensor), keys).map_err(|error| no_table(&error))?;
        }
        let Some(budget) = self.budget else { return Ok(()) };
        while self.demand() > budget {
            if self.take().is_none() {
                let (least, budget) = (self.demand().to_string(), budget.to_string());
                return Err(PolicyError::Budget { policy: "daf", least, budget });
            }
        }
        Ok(())
    }

    fn size(&self, tensor: TensorId) -> Bytes {
        self.stored.bytes(tensor, self.bits[tensor as usize], self.samples)
    }

    fn in_pages(&self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0.div_ceil(self.page.0) * self.page.0)
    }

    fn demand(&self) -> Bytes {
        self.table.demand() + self.settled
    }

    /// The next step of algorithm 3: the victim and its new bits; `None` if no tensor can give way any further.
    fn take(&mut self) -> Option<(TensorId, u8)> {
        while let Some(tensor) = self.table.first(Tighter::Memory) {
            let before = self.size(tensor);
            let held = self.bits[tensor as usize];
            let least = if self.skippable[tensor as usize] { self.least } else { self.least.max(1) };
            // Copies of several modules may take more at 16 bits than the one whole tensor that they share.
            let smaller = |bits: &u8| self.stored.bytes(tensor, *bits, self.samples) < before;
            let fewer = BITS.into_iter().find(|bits| *bits < held && *bits >= least && smaller(bits));
            let Some(bits) = fewer else {
                self.table.evict(tensor).ok()?;
                self.settled += self.in_pages(before);
                continue;
            };
            self.bits[tensor as usize] = bits;
            if bits == 0 {
                self.table.evict(tensor).ok()?;
                // The signs that a ReLU needs stay.
                self.settled += self.in_pages(self.size(tensor));
            } else {
                self.table.update_size(tensor, self.size(tensor)).ok()?;
            }
            return Some((tensor, bits));
        }
        None
    }
}

fn no_table(error: &haversack_memory::pages::PageError) -> PolicyError {
    PolicyError::Table { policy: "daf", reason: error.to_string() }
}

/// The weight gradients that are given up with each saved tensor.
struct ByGradient {
    of: Vec<Vec<TensorId>>,
    time: Vec<Nanos>,
}

impl ByGradient {
    fn new(setting: &Setting<'_>) -> Self {
        let graph = setting.graph;
        let mut of = vec![Vec::new(); graph.tensors.len()];
        let mut time = vec![Nanos::ZERO; graph.tensors.len()];
        let saved = graph.saved();
        let mut is_saved = vec![false; graph.tensors.len()];
        for &tensor in &saved {
            is_saved[tensor as usize] = true;
        }
        for (node, &taken) in graph.nodes.iter().zip(setting.times()).filter(|(node, _)| node.phase == Phase::Backward)
        {
            let gradients = node
                .outputs
                .iter()
                .filter(|&&output| graph.tensor(output).role == haversack_workloads::Role::ParameterGradient);
            let gradients: Vec<TensorId> = gradients.copied().collect();
            if gradients.is_empty() {
                continue;
            }
            let by_itself = writes_parameter_gradients_only(graph, node);
            let values = |&input: &TensorId| is_saved[input as usize] && node.need_of(input) == Need::Values;
            let mut keys: Vec<TensorId> = node.inputs.iter().copied().filter(values).collect();
            if keys.is_empty() {
                // A first layer reads the samples, which are not saved: its gradient is listed under its own id.
                keys.extend(gradients.first());
            }
            for key in keys {
                of[key as usize].extend(&gradients);
                if by_itself {
                    time[key as usize] += taken;
                }
            }
        }
        Self { of, time }
    }

    fn tensors(&self) -> Vec<TensorId> {
        (0..).zip(&self.of).filter(|(_, gradients)| !gradients.is_empty()).map(|(id, _)| id).collect()
    }

    fn of(&self, tensor: TensorId) -> &[TensorId] {
        &self.of[tensor as usize]
    }

    /// The importance lost with each tensor: by a metric, including the tensor itself; from measurements, the gradients
    /// only.
    fn importance(&self, setting: &Setting<'_>, metric: Metric, of_gradient: &[f64]) -> Vec<f64> {
        if let Worth::Measured(_) = setting.worth(metric) {
            let lost =
                |gradients: &Vec<TensorId>| gradients.iter().map(|&gradient| of_gradient[gradient as usize]).sum();
            return self.of.iter().map(lost).collect();
        }
        let saved = of_saved(setting.graph, Worth::Prior(metric));
        saved.iter().zip(of_gradient).map(|(saved, own)| saved + own).collect()
    }

    fn time_of(&self, tensor: TensorId) -> Nanos {
        self.time[tensor as usize]
    }
}

impl Policy for Daf {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let graph = self.within_time(setting)?;
        let plan = self.plan(graph.as_ref().unwrap_or(setting.graph), setting)?;
        self.plan = Some(plan);
        Ok(Schedule { graph, quantisation: Some(self.rules()), ..Schedule::plain(setting.batch) })
    }

    fn begin_iteration(&mut self, iteration: &mut IterationPlan) -> Result<(), PolicyError> {
        if !iteration.importance.is_empty() {
            // The importance of weight gradients does not affect storage.
            self.averages.iter_mut().zip(&iteration.importance).for_each(|(held, &measured)| *held = measured);
        }
        if let Some(plan) = &mut self.plan {
            // The bits fitted the budget before, and importance only moves them around, so this cannot fail.
            let _none = plan.estimate(&self.averages);
        }
        Ok(())
    }

    fn hold(&mut self, tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        let Some(plan) = self.plan.as_ref().filter(|plan| plan.stored.reaches(tensor)) else {
            return Ok(Holding::Keep);
        };
        Ok(match plan.bits[tensor as usize] {
            0 => Holding::Skip,
            bits => Holding::Quantise(bits),
        })
    }

    fn relieve(&mut self, want: Want, _memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let Some(plan) = &mut self.plan else { return Ok(Vec::new()) };
        let target = plan.demand().saturating_sub(want.bytes());
        let mut reliefs = Vec::new();
        while plan.demand() > target {
            match plan.take() {
                Some((tensor, 0)) => reliefs.push(Relief::Skip(tensor)),
                Some((tensor, bits)) => reliefs.push(Relief::Requantise(tensor, bits)),
                None => break,
            }
        }
        Ok(reliefs)
    }
}
