//! Sections 3.3, 3.4 and 3.6: a crossing, dynamic against static rescaling, and preparing a graph.

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{ClusterClass, CoreSelection, Device, Frequency, Stack};
use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Look, Panel};
use haversack_reports::table::Table;
use haversack_training::{Machine, Trains};

use super::figure10::of_step;
use super::setting::{NETWORKS, Network, batch as settled, range};
use super::table3::MIB;
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};
use crate::run::Plan;
use crate::scenario::Scenario;

/// The engines of section 3.6, as the reference names them and for people.
const ENGINES: [(&str, &str); 2] = [("tflite", "TFLite"), ("mnn", "MNN")];
const RATIO: &str = "mandheling/section3.4/dynamic-vs-static-rescaling/dsp/latency-ratio";
const SAVED: &str = "mandheling/section3.4/all/self-adaptive-rescaling/time-saved";
/// Milliseconds of a second.
const MILLIS: f64 = 1e3;

/// A batch of VGG-16 under the engine of a row of section 3.6.
pub(crate) fn preparing(engine: &str, batch: u64) -> Scenario {
    let model = Network::called("vgg16").map_or("vgg16-cifar", |network| network.model);
    Scenario { policy: format!("{engine}-fp32"), batch, ..Scenario::new("xiaomi-11-pro", model) }
}

/// What the engine spends on preparing the batch's graph, operator by operator.
pub(crate) fn preparation(plan: &Plan, machine: &Machine) -> Nanos {
    let scenario = plan.scenario();
    let launch = |id| machine.cost(&plan.graph, id, scenario.batch, scenario.precision).launch;
    (0..plan.graph.nodes.len()).map(launch).sum()
}

/// Crossing between the CPU and the DSP with `bytes` to be copied, on the two big cores that Mandheling runs on.
pub(crate) fn crossing(device: &Device, stack: &Stack, bytes: Bytes) -> Option<Nanos> {
    let cores = CoreSelection::Some { class: ClusterClass::Big, count: 2 };
    let machine =
        Machine::new(device.clone(), stack.clone(), Trains::CpuAndDsp, Some(cores), Frequency::Highest).ok()?;
    Some(machine.crossing(bytes))
}

/// Section 3.3: a crossing between the CPU and the DSP.
pub(super) fn switching(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let (device, stack) = (context.device("xiaomi-10")?, context.stack("mandheling")?);
    let bytes = Bytes((context.reading_number("map")? * MIB) as u64);
    let millis = |bytes| crossing(&device, &stack, bytes).map(|time| time.seconds() * MILLIS);
    let (all, call) = millis(bytes).zip(millis(Bytes::ZERO)).ok_or_else(|| anyhow::anyhow!("no DSP to cross to"))?;
    let mut outcome = Outcome::default();
    let row = "mandheling/section3.3/xiaomi-10/cpu-dsp-switch/latency";
    outcome.number(row, all);
    outcome.remark(row, format!("{call:.2} ms of it are the call, the rest is the copy of {bytes}"));
    let mut table = Table::new(["part", "time_ms"]);
    table.push(["call".into(), call.into()])?;
    table.push(["copy".into(), (all - call).into()])?;
    outcome.table = Some(table);
    let notes = &mut outcome.notes;
    notes.calibrated.push(
        "The host's work on the copy, on this one number: it predicts nothing here, but it does on other phones and other cores. The call comes from table 4.".into(),
    );
    notes.left_out.push("The size that was copied is not printed; here a crossing takes as long as its tensors need, so that small ones cross in little more than a call.".into());
    Ok(outcome)
}

/// Section 3.6: what engines spend on preparing the graph of VGG-16 for every batch.
pub(super) fn preparations(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let batch = context.reading_number("batch")? as u64;
    let mut outcome = Outcome::default();
    let mut table = Table::new(["engine", "operators", "preparation_ms"]);
    let (mut own, mut paper) = (Vec::new(), Vec::new());
    for (engine, _) in ENGINES {
        let plan = Plan::new(&preparing(engine, batch), context.cache)?;
        let time = preparation(&plan, plan.machine()).seconds() * MILLIS;
        let row = format!("mandheling/section3.6/vgg16/{engine}/graph-preparation");
        let operators = plan.graph.nodes.iter().filter(|node| node.work.launches > 0).count() as u64;
        table.push([engine.into(), operators.into(), time.into()])?;
        own.push(time);
        paper.push(context.row(&row)?.number());
        outcome.remark(row.as_str(), format!("{operators} operators"));
        outcome.number(row, time);
    }
    let bars = Bars::new(ENGINES.map(|(_, name)| name))
        .series(BarSeries::new("simulated", own))
        .series(BarSeries::new("paper", paper).look(Look::Hatched))
        .show_values();
    outcome.figure = Some(
        Figure::new("Mandheling, section 3.6: preparing the graph of VGG-16 for a batch")
            .panel_size(420, 300)
            .panel(Panel::new(bars).y(Axis::new("preparation").unit("ms").from_zero())),
    );
    outcome.table = Some(table);
    let notes = &mut outcome.notes;
    notes.calibrated.push("The bandwidth at which fresh buffers are mapped, one constant an engine, each on its one number, which predicts nothing here.".into());
    notes
        .left_out
        .push("What a subgraph of the DSP takes to prepare, which is far more: it follows from figure 10.".into());
    Ok(outcome)
}

/// A network with and without a scale that is taken anew in every batch, all other techniques off.
struct Rescaled {
    network: Network,
    dynamic: f64,
    adaptive: f64,
}

impl Rescaled {
    fn ratio(&self) -> f64 {
        self.dynamic / self.adaptive
    }

    /// Per cent.
    fn saved(&self) -> f64 {
        (1.0 - self.adaptive / self.dynamic) * 100.0
    }
}

fn rescaled(context: &Context<'_>, network: Network) -> Result<Rescaled, ArtefactError> {
    let batch = context.reading_number("batch")? as u64;
    let seconds = |step: &str| -> Result<f64, ArtefactError> {
        let scenario = of_step(step, network.id.0, batch);
        let mut scenario = scenario.ok_or_else(|| anyhow::anyhow!("figure 10 has no step `{step}`"))?;
        scenario.frequency = context.reading_text("frequency")?.parse()?;
        if network.model == "inceptionv3" {
            scenario.input = Some(context.reading_text("inception-input")?.parse()?);
        }
        Ok(settled(context, &scenario)?.time.seconds())
    };
    Ok(Rescaled { network, dynamic: seconds("none")?, adaptive: seconds("+self-adaptive-rescaling")? })
}

/// Section 3.4: dynamic against static rescaling, and what the self-adaptive kind saves.
pub(super) fn rescaling(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let all = NETWORKS.map(|network| rescaled(context, network)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "dynamic_s", "adaptive_s", "ratio", "saved_percent"]);
    for one in &all {
        table.push([
            one.network.name.into(),
            one.dynamic.into(),
            one.adaptive.into(),
            one.ratio().into(),
            one.saved().into(),
        ])?;
        if one.network.id.0 == "resnet34" {
            outcome.number(RATIO, one.ratio());
        }
    }
    if let Some((low, high)) = range(all.iter().map(Rescaled::ratio)) {
        let words = format!("ResNet-34, the network of figure 10; {low:.2} to {high:.2} over the six networks");
        outcome.remark(RATIO, words);
    }
    if let Some((low, high)) = range(all.iter().map(Rescaled::saved)) {
        outcome.answer(SAVED, Answer::Range(low, high));
    }
    let bars = |series: Vec<BarSeries>| {
        let bars = Bars::new(NETWORKS.map(|network| network.name)).show_values();
        series.into_iter().fold(bars, Bars::series)
    };
    let column = |name: &str, of: fn(&Rescaled) -> f64| BarSeries::new(name, all.iter().map(of).collect::<Vec<_>>());
    let times = bars(vec![column("dynamic", |one| one.dynamic), column("self-adaptive", |one| one.adaptive)]);
    outcome.figure = Some(
        Figure::new("Mandheling, section 3.4: rescaling in every batch and when it is due, Xiaomi 10, batch 64")
            .note("All other techniques off.")
            .columns(1)
            .panel_size(760, 240)
            .panel(Panel::new(times).title("time of a batch").y(Axis::new("time").unit("s").log()))
            .panel(
                Panel::new(bars(vec![column("time saved", Rescaled::saved)]))
                    .title("what self-adaptive rescaling saves")
                    .y(Axis::new("time saved").unit("%").from_zero()),
            ),
    );
    outcome.table = Some(table);
    let notes = &mut outcome.notes;
    notes.calibrated.push("The preparation of a subgraph on the steps of figure 10 for ResNet-34, the crossing on section 3.3: the ratio is nearly that of two fitted rows of figure 10. How often factors change is an input (figure 4).".into());
    notes.predicted.push("The other five networks.".into());
    notes.left_out.push("Static rescaling, which knows each scale from the start: the self-adaptive kind stands for it, in whose batches some factors still have their turn, so that the ratio comes out lower than it would.".into());
    notes.left_out.push("The two passes over the sums themselves: the DSP would stream them in a hundredth of the time that is saved here. What is saved are crossings to the CPU and the subgraphs that they cut.".into());
    notes.misses.push("The range: the paper's is over models and data sets that it does not list, FEMNIST among them, and reaches further at either end. Here a rescaling costs every network alike, two crossings and a subgraph, and the share that is saved moves only with the time of the products between.".into());
    Ok(outcome)
}
