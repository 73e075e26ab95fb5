//! One scenario learned with one seed, an epoch at a time.

use haversack_devices::{Nanos, Precision, ensure};
use haversack_numerics::batch::Samples;
use haversack_numerics::{Contents, Meter, MiniBatch, Pass, Plain, Program, ProgramError, Rule, State};
use haversack_training::{Lesson, RunError};
use haversack_workloads::data::{self, Inputs, Part, epoch_order};
use haversack_workloads::onnx::Reading;
use haversack_workloads::{Attention, DataSet, Network, Op, Role, SampleForm, mixed};
use serde_json::Value;

use super::{Augment, Coded, Factors, Held, Pace, Row, Saved, Values};
use crate::quantities::time;
use crate::scenario::workload;
use crate::scenario::{GraphKind, Literal, Origin};
use crate::{Cache, CommandError, Key, Plan, Result, Scenario, interrupt};

/// A scenario that can be trained.
pub(super) struct Subject {
    /// Its label, which distinguishes it from the others of the specification.
    pub(super) label: String,
    plan: Plan,
    program: Program,
}

impl Subject {
    /// A line that says so if an iteration takes longer than the time budget: not every policy gives way to it.
    pub(super) fn missed(&self) -> Option<String> {
        let (budget, taken) = (self.plan.scenario().time_budget?, self.plan.run().ok()?.iteration);
        let say = || {
            format!(
                "note: {}: an iteration takes {}, more than the time budget of {}\n",
                self.label,
                time(taken),
                time(budget)
            )
        };
        (taken > budget).then(say)
    }

    /// Prepares the scenario: a built-in model gets the data's number of classes, and, if its input shape is open, the
    /// shape of the samples.
    ///
    /// # Errors
    /// An invalid scenario, data that its network cannot take, and graphs that cannot compute real values: a
    /// stack that runs neither the graph of an eager framework nor one in integers, or an integer algorithm
    /// without an implementation.
    pub(super) fn new(label: String, scenario: Scenario, data: &DataSet, cache: &Cache) -> Result<Self> {
        let scenario = on_data(scenario, data)?;
        let plan = Plan::new(&scenario, cache)?;
        let wrong = |message: String| CommandError::input(format!("{label}: {message}"));
        check(&plan.resolved.network, plan.scenario(), data).map_err(wrong)?;
        let Scenario { model, classes, .. } = plan.scenario();
        let reading = Reading { values: true, ..plan.scenario().reading() };
        let network = workload::network(model, &reading, *classes).map_err(|error| wrong(error.to_string()))?;
        let program = program(&network, &plan).map_err(wrong)?;
        Ok(Self { label, plan, program })
    }

    /// The digests of the calibrations that it uses, by id.
    pub(super) fn calibrations(&self) -> [(String, Value); 2] {
        let (device, stack) = (&self.plan.resolved.device, &self.plan.resolved.stack);
        [(device.id.clone(), device.digest.clone().into()), (stack.id.clone(), stack.digest.clone().into())]
    }
}

/// `scenario` with the number of classes of `data`, with samples of their shape if its own is open, and with attention
/// by its parts, whose values are computed one by one.
pub(super) fn on_data(mut scenario: Scenario, data: &DataSet) -> Result<Scenario> {
    if scenario.input.is_none() {
        scenario.set(Key::Input, &Literal::text(shape(&data.form)), Origin::Program)?;
    }
    scenario.classes = Some(data.number_of_classes as u64);
    scenario.attention = scenario.attention.or(Some(Attention::Math));
    Ok(scenario)
}

/// The computations of the nodes in the graph of `plan`, or the reason why it cannot compute real values.
pub(crate) fn program(network: &Network, plan: &Plan) -> Result<Program, String> {
    let scenario = plan.scenario();
    let program = match plan.resolved.graph {
        GraphKind::Eager { .. } if scenario.precision != Precision::Fp32 => {
            return Err("`precision`: only fp32 carries data".to_owned());
        }
        GraphKind::Eager { .. } if plan.resolved.attention() == Attention::Fused => {
            return Err("`attention`: only math carries data; leave it out".to_owned());
        }
        GraphKind::Eager { .. } => Program::new(network, &plan.graph),
        GraphKind::Integer(id) => {
            let algorithm = mixed::algorithm(id).map_err(|error| error.to_string())?;
            let rewritten = mixed::rewritten(network, algorithm, scenario.optimizer);
            Program::of_integers(network, rewritten.map_err(|error| error.to_string())?)
        }
        GraphKind::Computable(_) | GraphKind::Expressions(_) => {
            let stack = scenario.stack.clone().unwrap_or_default();
            return Err(format!(
                "`stack`: {stack} runs a graph of its own, which carries no data; expected pytorch-cpu, pytorch-cuda or mnn-2-eager"
            ));
        }
    };
    program.map_err(|error| error.to_string())
}

/// A network in training.
pub(super) struct Course<'a> {
    subject: &'a Subject,
    pace: &'a Pace,
    data: &'a DataSet,
    /// The augmentation of the images in every epoch.
    augment: Option<&'a Augment>,
    seed: u64,
    meter: Meter,
    state: State,
    /// The part of its checkpoint other than the state.
    saved: Saved,
    /// The scale factors at the beginning of each batch in integers, by tensor.
    factors: Vec<Vec<Option<u32>>>,
}

/// The results of an epoch of learning.
#[derive(Default)]
struct Learned {
    loss: f64,
    correct: usize,
    rows: usize,
    time: Nanos,
    energy: f64,
    peak: u64,
}

impl<'a> Course<'a> {
    /// A network with its initial weights; augmented images change in every epoch.
    pub(super) fn new(
        subject: &'a Subject,
        pace: &'a Pace,
        augment: Option<&'a Augment>,
        data: &'a DataSet,
        seed: u64,
    ) -> Result<Self> {
        let meter = Meter::default();
        let state = subject.program.initial_state(&subject.plan.graph, seed, &meter)?;
        Ok(Self { subject, pace, data, augment, seed, meter, state, saved: Saved::default(), factors: Vec::new() })
    }

    /// Resumes from a checkpoint.
    ///
    /// # Errors
    /// Tensors of another network.
    pub(super) fn restore(&mut self, mut saved: Saved) -> Result<()> {
        let tensors = std::mem::take(&mut saved.tensors);
        let ids = |found: &[Held]| found.iter().map(|held| (held.tensor, held.values.len())).collect::<Vec<_>>();
        if ids(&tensors) != ids(&self.tensors()) {
            return Err(CommandError::input(format!("{}: the checkpoint holds another network", self.subject.label)));
        }
        let contents = |held: Held| match held.values {
            Values::Floats(values) => (held.tensor, Contents::Floats(self.meter.copy(&values))),
            Values::Integers(values) => (held.tensor, Contents::Integers(self.meter.copy(&values))),
            Values::Codes(coded) => (held.tensor, coded.contents(&self.meter)),
        };
        self.state = State::of(tensors.into_iter().map(contents).collect());
        self.saved = saved;
        Ok(())
    }

    /// The checkpoint from which the course can resume.
    pub(super) fn saved(&self) -> Saved {
        Saved { tensors: self.tensors(), ..self.saved.clone() }
    }

    fn tensors(&self) -> Vec<Held> {
        let held = |(tensor, contents): &(u32, Contents)| {
            let values = match contents {
                Contents::Floats(values) => Values::Floats(values.to_vec()),
                Contents::Integers(values) => Values::Integers(values.to_vec()),
                Contents::Eight(held) => Values::Codes(Coded { codes: held.codes.to_vec(), step: held.step }),
            };
            Held { tensor: *tensor, values }
        };
        self.state.tensors().iter().map(held).collect()
    }

    /// The scale factors used in every batch of this process; none in floating point.
    pub(super) fn factors(&self) -> Vec<Factors> {
        let taken: Vec<&[Option<u32>]> =
            self.factors.iter().skip(1).chain([&self.saved.factors]).map(Vec::as_slice).collect();
        Factors::of(&self.subject.plan.graph, &taken)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.saved.epoch >= self.pace.epochs
    }

    /// Learns one more epoch of scenario number `run`, and evaluates all parts of the data.
    ///
    /// # Errors
    /// A run that the device or the budget does not allow, a NaN loss, Ctrl-C.
    pub(super) fn epoch(&mut self, run: u64) -> Result<()> {
        let learned = self.learn()?;
        self.saved.epoch += 1;
        self.saved.time_ns += learned.time.0;
        self.saved.energy += learned.energy;
        let row = |split, loss, accuracy| Row {
            run,
            seed: self.seed,
            epoch: self.saved.epoch,
            split,
            loss,
            accuracy,
            simulated_time_s: Nanos(self.saved.time_ns).seconds(),
            energy_j: self.saved.energy,
            peak_memory_bytes: learned.peak,
        };
        let rows = learned.rows.max(1) as f64;
        let mut new = vec![row(Part::Train, learned.loss / rows, learned.correct as f64 / rows)];
        let row = |split, (loss, accuracy)| Row { split, loss, accuracy, ..new[0] };
        let validation = self.evaluate(Part::Validation)?;
        let test = self.evaluate(Part::Test)?;
        let more = [row(Part::Validation, validation), row(Part::Test, test)];
        new.extend(more);
        self.saved.rows.extend(new);
        Ok(())
    }

    /// Learns from every full mini-batch of the epoch once; the leftover samples differ between epochs.
    fn learn(&mut self) -> Result<Learned> {
        let plan = &self.subject.plan;
        let order = epoch_order(self.data.train.len(), self.seed, u64::from(self.saved.epoch));
        let batch = plan.scenario().batch as usize;
        let (steps, first) = ((order.len() / batch) as u64, self.saved.update);
        let augmentation = self.augment.map(|augment| augment.of(self.seed, u64::from(self.saved.epoch)));
        let batches = order.chunks_exact(batch).zip(first..).map(|(indices, step)| {
            let rate = self.pace.rate(step, steps) as f32;
            let rule = Rule { optimiser: plan.scenario().optimizer, rate, decay: 0.0 };
            (taken(self.data.mini_batch(Part::Train, indices, augmentation.as_ref())), rule)
        });
        let mut lesson = Lesson {
            program: &self.subject.program,
            state: std::mem::replace(&mut self.state, State::of(Vec::new())),
            meter: self.meter.clone(),
            seed: self.seed,
            update: first,
            importance: self.saved.importance.clone(),
            factors: self.saved.factors.clone(),
            learned: self.saved.learned.clone(),
        };
        let mut learned = Learned::default();
        // A new policy is built for every epoch, with the measurements and what it has learned so far, so that an epoch
        // does not depend on whether the one before ran in this process.
        let mut policy = plan.policy()?;
        let factors = &mut self.factors;
        let ran =
            haversack_training::train(plan.machine(), &plan.job(), policy.as_mut(), &mut lesson, batches, |record| {
                if let Some(loss) = record.loss {
                    learned.loss += loss.mean * loss.rows as f64;
                    learned.correct += loss.correct;
                    learned.rows += loss.rows;
                }
                if !record.factors.is_empty() {
                    factors.push(record.factors.clone());
                }
                learned.time += record.iteration;
                learned.energy += record.energy.0;
                learned.peak = learned.peak.max(record.peak_memory.0);
                !interrupt::came()
            });
        ran.map_err(|error| self.failure(error))?;
        ensure!(!interrupt::came(), CommandError::Interrupted);
        (self.state, self.saved.update) = (lesson.state, lesson.update);
        (self.saved.importance, self.saved.factors) = (lesson.importance, lesson.factors);
        self.saved.learned = lesson.learned;
        Ok(learned)
    }

    /// The error of a failed run, with its position.
    fn failure(&self, error: RunError) -> CommandError {
        let place = format!("{}, seed {}, epoch {}", self.subject.label, self.seed, self.saved.epoch + 1);
        let error = CommandError::from(self.subject.plan.explain_failure(error, &Cache::new()));
        let says = format!("{place}: {error}");
        if error.exit_code() == 3 { CommandError::NoPlan(says) } else { CommandError::failed(says) }
    }

    /// The mean loss and the accuracy over a part.
    fn evaluate(&mut self, part: Part) -> Result<(f64, f64)> {
        let indices: Vec<usize> = (0..self.data.part(part).len()).collect();
        let (mut loss, mut correct, mut rows) = (0.0, 0, 0);
        for some in indices.chunks(self.subject.plan.scenario().batch as usize) {
            let pass = Pass::whole(some.len(), self.saved.update, self.seed, Rule::default());
            let batch = mini_batch(self.data, part, some);
            let Subject { program, plan, .. } = self.subject;
            let found = Plain { program, graph: &plan.graph, batch: &batch, pass: &pass, meter: &self.meter }
                .evaluate(&mut self.state);
            let found = found.map_err(|error: ProgramError| CommandError::failed(error))?;
            loss += found.mean * found.rows as f64;
            correct += found.correct;
            rows += found.rows;
        }
        let number = rows.max(1) as f64;
        Ok((loss / number, f64::from(correct as u32) / number))
    }
}

/// Samples of `data` as inputs of the arithmetic.
pub(crate) fn mini_batch(data: &DataSet, part: Part, indices: &[usize]) -> MiniBatch {
    taken(data.mini_batch(part, indices, None))
}

fn taken(batch: data::MiniBatch) -> MiniBatch {
    let samples = match batch.inputs {
        Inputs::Images(values) => Samples::Values(values),
        Inputs::Tokens(ids) => Samples::Ids(ids),
    };
    MiniBatch { len: batch.labels.len(), samples, labels: batch.labels }
}

/// The shape of a sample, as in a scenario's `input`.
pub(crate) fn shape(form: &SampleForm) -> String {
    match form {
        SampleForm::Image(form) => format!("{}x{}x{}", form.channels, form.height, form.width),
        SampleForm::Tokens { length, .. } => length.to_string(),
    }
}

/// Refuses data that `network` cannot take, with a message: another number of values, more classes or more tokens than
/// it supports, fewer samples than a mini-batch, or an empty part to evaluate.
fn check(network: &Network, scenario: &Scenario, data: &DataSet) -> Result<(), String> {
    let model = workload::called(&scenario.model);
    let is_input =
        |value: &&haversack_workloads::network::Value| network.storages[value.storage as usize].role == Role::Input;
    let takes = network.values.iter().find(is_input).map_or(0, |value| value.shape.elements().at(1));
    let own = data.form.elements() as u64;
    if takes != own {
        let shape = shape(&data.form);
        return Err(format!("`data`: samples of {shape}, which are {own} values; {model} takes {takes}"));
    }
    let rows = |is: fn(&Op) -> bool| network.nodes.iter().find(|node| is(&node.op));
    if let Some(loss) = rows(|op| matches!(op, Op::CrossEntropy)) {
        let scores = network.shape(loss.inputs[0]).elements().at(1);
        if (data.number_of_classes as u64) > scores {
            return Err(format!("`data`: {} classes; {model} tells {scores} apart", data.number_of_classes));
        }
    }
    if let (SampleForm::Tokens { vocabulary, .. }, Some(table)) = (&data.form, rows(|op| matches!(op, Op::Embedding))) {
        let width = network.shape(table.output).elements().at(1) / takes.max(1);
        let known = network.parameters[table.parameters[0] as usize].elements / width.max(1);
        ensure!(*vocabulary as u64 <= known, format!("`data`: {vocabulary} different tokens; {model} knows {known}"));
    }
    let (batch, samples) = (scenario.batch, data.train.len());
    ensure!(batch <= samples as u64, format!("`batch`: {batch} samples; the train part of the data has {samples}"));
    match (data.validation.is_empty(), data.test.is_empty()) {
        (true, _) => Err("`data`: no sample to choose on; expected a larger `validation_share`".to_owned()),
        (_, true) => Err("`data`: no sample to test on".to_owned()),
        _ => Ok(()),
    }
}
