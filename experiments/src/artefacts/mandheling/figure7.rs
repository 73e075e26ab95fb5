//! Figure 7: time and energy of a batch over batch sizes.

use haversack_reports::figure::{Axis, Figure, Lines, Look, Panel, Series, Stroke};
use haversack_reports::table::Table;

use super::setting::{Batch, Network, XIAOMI_11_PRO, batch, method_names, on_xiaomi_11_pro, scenario_of};
use crate::artefacts::setting::mean;
use crate::reproduce::{Artefact, ArtefactError, Context, Outcome};

pub(super) static ARTEFACT: Artefact = Artefact {
    stacks: &["tflite", "mnn", "mandheling"],
    ..on_xiaomi_11_pro("figure7", "time and energy of a batch over batch sizes", run)
};

const NETWORKS: [&str; 2] = ["vgg16", "inceptionv3"];
const BASELINE: &str = "mnn-fp32";
/// The methods of the figure, as the policies name them and for people.
const METHODS: [(&str, &str); 4] =
    [("tflite-fp32", "TFLite-FP32"), (BASELINE, "MNN-FP32"), ("mnn-int8", "MNN-INT8"), ("mandheling", "Mandheling")];

const MEAN: &str = "mandheling/figure7/vgg16,inceptionv3-on-xiaomi-11-pro/mandheling/speedup";
const LARGEST: &str = "mandheling/figure7/batch-128/mandheling/speedup";

/// One network: by method, the batch of each size.
struct Measured {
    network: Network,
    by_method: Vec<Vec<Batch>>,
}

impl Measured {
    fn of(&self, method: &str) -> &[Batch] {
        let found = METHODS.iter().zip(&self.by_method).find(|((id, _), _)| *id == method);
        found.map_or(&[], |(_, batches)| batches)
    }

    /// What `ratio` makes of Mandheling and the baseline, size by size.
    fn gains(&self, ratio: fn(Batch, Batch) -> f64) -> Vec<f64> {
        let pairs = self.of("mandheling").iter().zip(self.of(BASELINE));
        pairs.map(|(own, baseline)| ratio(*own, *baseline)).collect()
    }
}

fn measure(context: &Context<'_>, sizes: &[f64]) -> Result<Vec<Measured>, ArtefactError> {
    let mut measured = Vec::new();
    for id in NETWORKS {
        let network = Network::called(id)?;
        let mut by_method = Vec::new();
        for (method, _) in METHODS {
            let of_size =
                |size: &f64| batch(context, &scenario_of(context, XIAOMI_11_PRO, network, method, *size as u64)?);
            by_method.push(sizes.iter().map(of_size).collect::<Result<Vec<_>, _>>()?);
        }
        measured.push(Measured { network, by_method });
    }
    Ok(measured)
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let sizes = context.reading_numbers("figure7-batches")?;
    let measured = measure(context, sizes)?;
    let gains: Vec<Vec<f64>> = measured.iter().map(|network| network.gains(Batch::speed_up)).collect();
    let mut outcome = Outcome::default();
    if let Some(mean) = mean(&gains.concat()) {
        outcome.number(MEAN, mean);
    }
    let at_the_end = gains.iter().filter_map(|gains| gains.last().copied());
    if let Some(largest) = at_the_end.max_by(f64::total_cmp) {
        outcome.number(LARGEST, largest);
    }
    let id = "mandheling/figure7/all/mandheling/gap-grows-with-batch-size";
    let at = |size: usize| gains.iter().map(|gains| gains[size]).collect::<Vec<_>>();
    let means: Vec<f64> = (0..sizes.len()).filter_map(|size| mean(&at(size))).collect();
    outcome.quantity("mean speed-up by batch", "", means.iter().copied());
    context.judge(&mut outcome, id)?;
    let shown: Vec<String> = sizes.iter().zip(&means).map(|(size, mean)| format!("{size}: {mean:.2}")).collect();
    outcome.remark(id, format!("mean of the two networks by batch: {}", shown.join(", ")));
    outcome.table = Some(table(&measured, sizes)?);
    let paper = [context.row(MEAN)?.number(), context.row(LARGEST)?.number()];
    outcome.figure = Some(figure(&measured, sizes, &gains, paper));
    Ok(outcome)
}

fn table(measured: &[Measured], sizes: &[f64]) -> Result<Table, ArtefactError> {
    let mut table = Table::new(["network", "method", "batch", "time_s", "energy_j"]);
    for Measured { network, by_method } in measured {
        for ((method, _), batches) in METHODS.iter().zip(by_method) {
            for (size, batch) in sizes.iter().zip(batches) {
                let numbers = [(*size).into(), batch.time.seconds().into(), batch.energy.0.into()];
                table.push([network.name.into(), (*method).into()].into_iter().chain(numbers))?;
            }
        }
    }
    Ok(table)
}

fn figure(
    measured: &[Measured],
    sizes: &[f64],
    gains: &[Vec<f64>],
    [paper_mean, paper_largest]: [Option<f64>; 2],
) -> Figure {
    let mut figure = Figure::new("Mandheling, figure 7: time and energy over batch sizes, Xiaomi 11 Pro")
        .note("Frequency left to the governor. Dashed: the paper's mean speed-up over both networks, and its largest at batch 128, of whichever network.")
        .columns(3)
        .order(method_names())
        .panel_size(360, 270);
    let size = || Axis::new("batch").log().ticks_at(sizes);
    type Value = fn(&Batch) -> f64;
    let quantities: [(&str, &str, Value); 2] =
        [("time", "s", |batch| batch.time.seconds()), ("energy", "J", |batch| batch.energy.0)];
    for (Measured { network, by_method }, gains) in measured.iter().zip(gains) {
        for (label, unit, value) in quantities {
            let mut lines = Lines::new();
            for ((_, name), batches) in METHODS.iter().zip(by_method) {
                let points: Vec<_> = sizes.iter().zip(batches).map(|(size, batch)| (*size, value(batch))).collect();
                lines = lines.series(Series::new(*name, points));
            }
            let title = format!("{}: {label}", network.name);
            figure = figure.panel(Panel::new(lines).title(title).x(size()).y(Axis::new(label).unit(unit).log()));
        }
        let points: Vec<_> = sizes.iter().copied().zip(gains.iter().copied()).collect();
        let ends = [sizes.first(), sizes.last()].into_iter().flatten();
        let level: Vec<_> = ends.zip([paper_mean; 2]).filter_map(|(size, mean)| Some((*size, mean?))).collect();
        let mark: Vec<_> = sizes.last().copied().zip(paper_largest).into_iter().collect();
        let lines = Lines::new()
            .series(Series::new("Mandheling", points))
            .series(Series::new("Mandheling", level).look(Look::Hatched).unmarked())
            .series(Series::new("Mandheling", mark).look(Look::Hatched).stroke(Stroke::None));
        let gain = Axis::new("speed-up over MNN-FP32").unit("x").from_zero();
        figure = figure.panel(Panel::new(lines).title(format!("{}: speed-up", network.name)).x(size()).y(gain));
    }
    figure
}
