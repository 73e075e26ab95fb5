//! Figure 18: the local training engine, part by part. The paper prints no numbers for it.

use haversack_devices::OperatorKind;
use haversack_kernels::Isa;
use haversack_kernels::compress::{Blocks, Bound, Codec, FeatureMap, Kind, Mode, Shape};
use haversack_kernels::quantise::Bits;
use haversack_policies::fedhybrid::survey;
use haversack_policies::restore::Layouts;
use haversack_training::{Job, Machine, with_setting};
use haversack_workloads::autograd::Optimiser;
use haversack_workloads::express::{Version, express};
use haversack_workloads::operator::Window;
use haversack_workloads::{Network, Phase, TrainingGraph, WorkloadError};

use super::figure19::traces::{ROUNDS, Trace, synthetic, with_starts};
use super::figure19::training;
use super::figure19::training::train;
use super::setting::{MOBILENET, S22, scenario};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (maps, phones) = (maps(context)?, phones(context)?);
    let mut outcome = Outcome::default();
    offer(&mut outcome, &maps, &phones);
    show(context, data(&maps, &phones)?, outcome)
}

/// C1 to C5.
fn thresholds() -> impl Iterator<Item = String> {
    (1..).zip(THRESHOLDS).map(|(number, (tp1, tp2))| {
        let factor = tp1.parse::<f64>().unwrap_or_default() / 100.0;
        format!("C{number} ({factor}, {tp2})")
    })
}

/// The time of all rounds, over all phones on which every run ends.
fn total(phones: &[Phone], which: usize) -> Option<f64> {
    let ended = phones.iter().filter_map(|phone| phone.predicted[which].as_ref());
    let times: Vec<f64> = ended.map(training::time).collect();
    (!times.is_empty()).then(|| times.iter().sum())
}

/// The measurements of maps and phones, and last the times in the figure's last panel.
fn data(maps: &[Map], phones: &[Phone]) -> Result<Records> {
    let mut records = Records::of("panel,subject,method,quantity,unit,value,short");
    let mut row = |panel, subject: &str, method: &str, quantity, unit, value: Option<f64>| {
        records.row(([panel, subject, method, quantity, unit], value, subject.trim_start_matches("synthetic-0000")))
    };
    for map in maps {
        let name = &map.name();
        let times = [
            ("quantisation", map.quantise),
            ("mixed compression", map.compress),
            ("mixed decompression", map.restore),
            ("convolution", map.convolution),
        ];
        for (method, time) in times {
            row("a", name, method, "time", "ms", Some(time.seconds() * 1e3))?;
        }
        for (method, error) in [("quantisation", map.quantised), ("mixed compression", map.mixed)] {
            row("b", name, method, "size", "B", Some(error.bytes as f64))?;
            row("b", name, method, "error variance over the map's", "", Some(error.variance))?;
        }
    }
    for Phone { user, measured, predicted } in phones {
        for (method, record) in [("direct measurement", measured), ("predictor", &predicted[0])] {
            row("c", user, method, "page faults", "", record.as_ref().map(training::faults))?;
        }
        for (name, record) in thresholds().zip(predicted) {
            row("d", user, &name, "time of all rounds", "s", record.as_ref().map(training::time))?;
            row("d", user, &name, "budgets decided", "", record.as_ref().map(training::budgets))?;
        }
    }
    for (which, name) in thresholds().enumerate() {
        row("all phones", "", &name, "time of all rounds", "s", total(phones, which))?;
    }
    Ok(records)
}

/// The quantities that the notes quote.
fn offer(outcome: &mut Outcome, maps: &[Map], phones: &[Phone]) {
    let slower = maps.iter().map(|map| map.compress.seconds() / map.quantise.seconds()).fold(0.0, f64::max);
    let worst = maps.iter().map(|map| map.compress.seconds() / map.convolution.seconds()).fold(0.0, f64::max);
    outcome.quantity("compression over quantisation", "", [slower]);
    outcome.quantity("compression over a convolution", "%", [worst * 100.0]);
    if slower > 2.0 {
        outcome.quantity("compression is far slower", "", [slower]);
    }
    let better = maps.iter().filter(|map| map.mixed.variance < map.quantised.variance).count();
    outcome.words("maps with the smaller error", format!("{better} of {} maps", maps.len()));
    let plans = |which: usize| -> f64 {
        phones.iter().filter_map(|phone| phone.predicted[which].as_ref()).map(training::budgets).sum()
    };
    let counts: Vec<String> = (0..THRESHOLDS.len()).map(|which| plans(which).to_string()).collect();
    outcome.words("budgets decided", counts.join(", "));
    let times: Vec<u64> = (0..THRESHOLDS.len()).filter_map(|which| Some(total(phones, which)?.to_bits())).collect();
    if times.windows(2).all(|pair| pair[0] == pair[1]) {
        outcome.words("thresholds that decide nothing", "all");
    }
    let runs = phones.iter().flat_map(|phone| phone.predicted.iter().chain([&phone.measured]));
    let never = runs.filter(|run| run.is_none()).count();
    if never > 0 {
        outcome.quantity("runs that never end", "", [never as f64]);
    }
}

/// Phones in use: the first of figure 19b's.
const TRACES: usize = 5;
/// TP_1 in percent and TP_2 of the caption's C1 to C5.
pub(super) const THRESHOLDS: [(&str, &str); 5] = [("200", "3"), ("150", "3"), ("300", "3"), ("200", "4"), ("200", "5")];

/// The runs on one phone in use; `None` for a run that never ends.
#[derive(Clone, Debug)]
pub(super) struct Phone {
    pub(super) user: String,
    /// The memory measured before every round is the budget.
    pub(super) measured: Option<Record>,
    /// With the predictor, for each of its thresholds.
    pub(super) predicted: Vec<Option<Record>>,
}

pub(super) fn phones(context: &Context<'_>) -> Result<Vec<Phone>> {
    let traces = with_starts(synthetic(context.seed, TRACES, ROUNDS)?, context.full);
    traces.par_iter().map(|trace| phone(context, trace)).collect()
}

fn phone(context: &Context<'_>, trace: &Trace) -> Result<Phone> {
    let under =
        |(tp1, tp2): (&str, &str)| train(context, trace, &[("budget", "predicted"), ("tp1", tp1), ("tp2", tp2)]);
    Ok(Phone {
        user: trace.user.clone(),
        measured: train(context, trace, &[("budget", "every-round")])?,
        predicted: THRESHOLDS.into_iter().map(under).collect::<Result<_, _>>()?,
    })
}

/// The maps of the caption: channels, rows and columns.
const MAPS: [[usize; 3]; 5] = [[64, 112, 112], [64, 56, 56], [128, 28, 28], [256, 14, 14], [512, 7, 7]];
/// Bits of a quantised value: GACT's.
const BITS: u8 = 4;
const VALUE: u64 = 4;
/// Halvings of the bound's logarithm until the sizes are equal.
const STEPS: u32 = 14;
/// The search range for the bound of salient channels, as fractions of a channel's range.
const BOUNDS: (f32, f32) = (1e-6, 0.5);

/// One of the maps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Map {
    pub(super) shape: [usize; 3],
    /// Quantising it, as in the executor: its bytes and those of its codes move through DRAM.
    pub(super) quantise: Nanos,
    /// Compressing it, and restoring it.
    pub(super) compress: Nanos,
    pub(super) restore: Nanos,
    /// Convolving it: 3 × 3, with as many output as input channels.
    pub(super) convolution: Nanos,
    pub(super) quantised: Error,
    pub(super) mixed: Error,
}

/// The result of a codec on a synthetic map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Error {
    pub(super) bytes: u64,
    /// The variance of the error, relative to the variance of the map.
    pub(super) variance: f64,
}

impl Map {
    /// Its shape as text.
    pub(super) fn name(&self) -> String {
        let [channels, height, width] = self.shape;
        format!("{channels}×{height}×{width}")
    }
}

/// All maps of one sample on the cores that the readings declare.
pub(super) fn maps(context: &Context<'_>) -> Result<Vec<Map>> {
    maps_on(&context.plan(&scenario(context, S22, MOBILENET.0, 1, "original")?)?)
}

/// All maps on the machine of `plan`.
fn maps_on(plan: &Plan) -> Result<Vec<Map>> {
    MAPS.into_par_iter().map(|shape| map(plan, shape)).collect()
}

fn map(plan: &Plan, shape: [usize; 3]) -> Result<Map> {
    let machine = plan.machine();
    let graph = express(&network(shape)?, Optimiser::default(), Version::V2)?;
    let job = Job { graph: &graph, batch: 1, ..plan.job() };
    let values = shape.iter().map(|&size| size as u64).product::<u64>();
    let surveyed = with_setting(machine, &job, |setting| survey(setting, Layouts::Overlooked));
    let compressed = surveyed.iter().filter(|found| graph.tensor(found.tensor).bytes.at(1) == values * VALUE);
    let terms = compressed.filter_map(|found| found.compress).next();
    let terms = terms.with_context(|| format!("the stack has no codec for a map of {values} values"))?;
    let (quantised, mixed) = errors(shape)?;
    Ok(Map {
        shape,
        quantise: quantising(machine, values),
        compress: terms.purge,
        restore: terms.regain,
        convolution: convolving(machine, &graph),
        quantised,
        mixed,
    })
}

/// A convolution whose input is the output of another, so that it is saved.
fn network([channels, height, width]: [usize; 3]) -> Result<Network, WorkloadError> {
    let [channels, height, width] = [channels, height, width].map(|size| size as u64);
    let mut network = Network::new("map");
    let input = network.input(&[1, height, width]);
    let map = network.convolution("before", input, channels, Window::square(1, 1, 0), 1, false)?;
    let after = network.convolution("convolution", map, channels, Window::square(3, 1, 1), 1, false)?;
    let pooled = network.adaptive_average_pool("pool", after, 1)?;
    let scores = network.flatten("flatten", pooled)?;
    let target = network.target(1);
    network.cross_entropy("loss", scores, target)?;
    Ok(network)
}

/// The larger of the two convolutions, forward.
fn convolving(machine: &Machine, graph: &TrainingGraph) -> Nanos {
    let times = machine.times(graph, 1, haversack_devices::work::Precision::Fp32);
    let forward = graph
        .nodes
        .iter()
        .zip(times)
        .filter(|(node, _)| node.phase == Phase::Forward && node.work.kind == OperatorKind::Convolution);
    forward.map(|(_, time)| time).max().unwrap_or_default()
}

/// As in the executor: cores stream the values and their codes.
fn quantising(machine: &Machine, values: u64) -> Nanos {
    let moved = Bytes(values * VALUE + (values * u64::from(BITS)).div_ceil(8));
    Nanos::from_seconds(moved.as_f64() / machine.device.dram().bandwidth.0)
}

/// The error of plain quantisation on a synthetic map, and that of the mixed codec within the same bytes: normal
/// channels have equally many bits, and salient ones the smallest bound that keeps the total within those bytes.
fn errors([channels, height, width]: [usize; 3]) -> Result<(Error, Error)> {
    let values = Kind::Rectified.generate(Shape { channels, height, width });
    let map = FeatureMap { values: &values, channels, height, width };
    let (isa, bits) = (Isa::chosen()?, Bits::new(BITS)?);
    let own = variance(&values);
    let error = |mode: Mode| -> Result<Error> {
        let codec = Codec::new(mode, isa)?;
        let bytes = codec.compress(map, &mut Vec::new())?.bytes;
        Ok(Error { bytes, variance: codec.error_variance(map)? / own })
    };
    let mixed = |bound: f32| Mode::Mixed { bits: Some(bits), bound: Bound::OfChannel(bound), blocks: Blocks::DEFAULT };
    let quantised = error(Mode::Quantise { bits })?;
    let (mut low, mut high) = BOUNDS;
    for _ in 0..STEPS {
        let middle = (low * high).sqrt();
        let bytes = Codec::new(mixed(middle), isa)?.compress(map, &mut Vec::new())?.bytes;
        if bytes > quantised.bytes {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok((quantised, error(mixed(high))?))
}

fn variance(values: &[f32]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
    values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use haversack_devices::{Frequency, load, load_stack};

    use super::super::setting::STACK;
    use super::*;
    use crate::cache::Cache;

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-4, "{found}, not {expected}");
    }

    #[test]
    fn times_are_bytes_over_rates_and_errors_are_of_equal_bytes() {
        let four = "big:4".parse().unwrap();
        let scenario = Scenario { stack: Some(STACK.to_owned()), cores: Some(four), ..Scenario::new(S22, MOBILENET.0) };
        let maps = maps_on(&Plan::new(&scenario, &Cache::new()).unwrap()).unwrap();
        let of = |time: fn(&Map) -> Nanos| -> Vec<f64> { maps.iter().map(|map| time(map).seconds()).collect() };
        // The first map has 64 × 112 × 112 values of four bytes.
        let bytes = 4.0 * 64.0 * 112.0 * 112.0;
        let cores = load(S22).unwrap().cpu().unwrap().choose(four, Frequency::Highest).unwrap();
        let cycles: f64 = cores.cores().iter().map(|core| core.frequency.0).sum();
        let stack = load_stack(STACK).unwrap();
        let codec = stack.constants.codec.as_ref().unwrap();
        let compress = of(|map| map.compress);
        close(compress[0], bytes / (codec.compress_rate.value.0 * cycles));
        close(of(|map| map.restore)[0], bytes / (codec.decompress_rate.value.0 * cycles));
        // Codes have four bits: an eighth of the values' bytes moves in addition to them.
        close(of(|map| map.quantise)[0], bytes * 1.125 / load(S22).unwrap().dram().bandwidth.0);
        // The second map has a quarter of the first's positions; each further one has half of the values
        // of the one before.
        close(compress[0], 4.0 * compress[1]);
        compress[1..].windows(2).for_each(|pair| close(pair[0], 2.0 * pair[1]));
        // From the second map on, each has twice the channels at a quarter of the positions: C² H W is the same,
        // and so is 18 C² H W.
        let convolution = of(|map| map.convolution);
        // The first has four times the second's work, and the same preparation.
        assert!(convolution[0] > 3.5 * convolution[1], "{convolution:?}");
        // The same work, with more and more weights, which are read once.
        assert!(convolution[1..].is_sorted() && convolution[4] < 3.5 * convolution[1], "{convolution:?}");

        // Four bits of 32, and for each channel at least one group of values with its own scale.
        let bytes_of = |map: &Map| [map.quantised, map.mixed].map(|error| error.bytes as f64);
        assert!(maps.iter().map(bytes_of).all(|[plain, mixed]| mixed <= plain && plain * 8.0 > bytes / 64.0));
        // Where salient channels are large, the bytes that their zeros save allow a far smaller bound.
        assert!(maps.iter().take(2).all(|map| map.mixed.variance < map.quantised.variance / 2.0));
    }
}
