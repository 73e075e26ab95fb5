//! Figure 5: time of a batch, six networks on three phones under five methods; and what figure 6 shares with it.

use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Panel};
use haversack_reports::table::Table;

use super::setting::{Batch, METHODS, NETWORKS, PHONES, batch_if_it_fits, method_names, of_no_phone, scenario};
use crate::artefacts::grid::Grid;
use crate::artefacts::setting::{mean, range};
use crate::reproduce::reference::Claim;
use crate::reproduce::{Answer, Artefact, ArtefactError, Context, Outcome, Run};

pub(super) static ARTEFACT: Artefact =
    on_all_phones("figure5", "time of a batch: six networks, three phones, five methods", run);

/// An artefact on the phones of table 5 under all engines.
pub(super) const fn on_all_phones(id: &'static str, about: &'static str, run: Run) -> Artefact {
    Artefact {
        devices: &["xiaomi-11-pro", "xiaomi-10", "redmi-note9-pro"],
        stacks: &["tflite", "mnn", "mandheling"],
        ..of_no_phone(id, about, run)
    }
}

const OWN: &str = "mandheling";
/// What Mandheling is compared with.
const BASELINES: [&str; 4] = ["tflite-fp32", "mnn-fp32", "mnn-int8", "mnn-fp32-gpu"];

/// A batch of one phone, network and method; `None` if it is out of memory.
struct Cell {
    phone: &'static str,
    network: &'static str,
    method: &'static str,
    batch: Option<Batch>,
}

/// Every batch of both figures.
pub(super) struct Cells(Vec<Cell>);

impl Cells {
    pub(super) fn measure(context: &Context<'_>) -> Result<Self, ArtefactError> {
        let mut cells = Vec::new();
        for (phone, _) in PHONES {
            for network in NETWORKS {
                for (method, _) in METHODS {
                    let batch = batch_if_it_fits(context, &scenario(context, phone, network, method)?)?;
                    cells.push(Cell { phone, network: network.name, method, batch });
                }
            }
        }
        Ok(Self(cells))
    }

    fn of(&self, phone: &str, network: &str, method: &str) -> Option<Batch> {
        let same = |cell: &&Cell| cell.phone == phone && cell.network == network && cell.method == method;
        self.0.iter().find(same)?.batch
    }

    /// What `ratio` makes of `method` and of `baseline` on one phone, where both run.
    fn ratios_on(&self, phone: &str, method: &str, baseline: &str, ratio: fn(Batch, Batch) -> f64) -> Vec<f64> {
        let both = |name| Some(ratio(self.of(phone, name, method)?, self.of(phone, name, baseline)?));
        NETWORKS.iter().filter_map(|network| both(network.name)).collect()
    }

    /// The same on all phones.
    fn ratios(&self, method: &str, baseline: &str, ratio: fn(Batch, Batch) -> f64) -> Vec<f64> {
        PHONES.iter().flat_map(|(phone, _)| self.ratios_on(phone, method, baseline, ratio)).collect()
    }
}

/// What one of the figures shows.
#[derive(Clone, Copy)]
pub(super) struct Quantity {
    pub(super) artefact: &'static str,
    pub(super) metric: &'static str,
    pub(super) title: &'static str,
    pub(super) axis: (&'static str, &'static str),
    pub(super) gain: &'static str,
    pub(super) value: fn(Batch) -> f64,
    pub(super) ratio: fn(Batch, Batch) -> f64,
}

const TIME: Quantity = Quantity {
    artefact: "figure5",
    metric: "speedup",
    title: "Mandheling, figure 5: time of a batch of 64",
    axis: ("time", "s"),
    gain: "speed-up",
    value: |batch| batch.time.seconds(),
    ratio: Batch::speed_up,
};

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let cells = Cells::measure(context)?;
    let mut outcome = shown(context, &cells, TIME)?;
    for baseline in ["mnn-fp32", "mnn-int8"] {
        let id = format!("mandheling/figure5/all/{baseline}/speedup");
        outcome.remark(id, "the paper's most contradicts its table 7");
    }
    let id = "mandheling/figure5/all/mnn-fp32-gpu/mnn-fp32/latency-ratio";
    let slower = cells.ratios("mnn-fp32", "mnn-fp32-gpu", Batch::speed_up);
    if let Some((lo, hi)) = range(slower) {
        outcome.answer(id, Answer::Range(lo, hi));
    }
    let on_gpu = |is_vgg19: bool| {
        let of_network = move |cell: &&Cell| (cell.network == "VGG-19") == is_vgg19;
        cells.0.iter().filter(|cell| cell.method == "mnn-fp32-gpu").filter(of_network)
    };
    outcome.quantity(
        "phones whose GPU holds VGG-19",
        "",
        [on_gpu(true).filter(|cell| cell.batch.is_some()).count() as f64],
    );
    outcome.quantity(
        "others that a GPU does not hold",
        "",
        [on_gpu(false).filter(|cell| cell.batch.is_none()).count() as f64],
    );
    context.judge(&mut outcome, "mandheling/figure5/vgg19-imagenet/mnn-fp32-gpu/out-of-memory")?;
    let gain = |phone: &str| mean(&cells.ratios_on(phone, OWN, "mnn-fp32", Batch::speed_up));
    let gains: Vec<f64> = PHONES.iter().filter_map(|(phone, _)| gain(phone)).collect();
    outcome.quantity("gain on the Redmi Note9 Pro", "", gain("redmi-note9-pro"));
    outcome.quantity("gains on all phones", "", gains.iter().copied());
    let id = "mandheling/figure5/redmi-note9-pro/mandheling/gain-smallest-of-the-three-phones";
    context.judge(&mut outcome, id)?;
    let words = PHONES.iter().zip(&gains).map(|((_, name), gain)| format!("{name} {gain:.1}"));
    outcome.remark(id, format!("mean speed-up over MNN-FP32: {}", words.collect::<Vec<_>>().join(", ")));
    Ok(outcome)
}

/// The answers, the figure and the table of one quantity.
pub(super) fn shown(context: &Context<'_>, cells: &Cells, quantity: Quantity) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut figure = Figure::new(quantity.title)
        .note("Frequencies left to the governor. VGG-19 under MNN-FP32-GPU has no mark where it is out of memory.")
        .columns(1)
        .panel_size(820, 230)
        .order(method_names());
    let mut table = Table::new(["phone", "network", "method", "time_s", "energy_j"]);
    for Cell { phone, network, method, batch } in &cells.0 {
        let numbers = [batch.map(|batch| batch.time.seconds()), batch.map(|batch| batch.energy.0)];
        table.push([(*phone).into(), (*network).into(), (*method).into(), numbers[0].into(), numbers[1].into()])?;
    }
    let (label, unit) = quantity.axis;
    for (phone, name) in PHONES {
        let mut bars = Bars::new(NETWORKS.map(|network| network.name));
        for (method, method_name) in METHODS {
            let values = NETWORKS.map(|network| cells.of(phone, network.name, method).map(quantity.value));
            bars = bars.series(BarSeries::new(method_name, values));
        }
        figure = figure.panel(Panel::new(bars).title(name).y(Axis::new(label).unit(unit).log()));
    }
    let (ranges, panel) = gains(context, cells, quantity)?;
    outcome.answers = ranges;
    outcome.figure = Some(figure.panel(panel));
    outcome.table = Some(table);
    Ok(outcome)
}

/// The least and the largest gain over each baseline, as answers and as a panel beside the paper's.
fn gains(
    context: &Context<'_>,
    cells: &Cells,
    quantity: Quantity,
) -> Result<(Vec<(String, Answer)>, Panel), ArtefactError> {
    let (mut answers, mut grid) = (Vec::new(), Grid::default());
    for baseline in BASELINES {
        let id = format!("mandheling/{}/all/{baseline}/{}", quantity.artefact, quantity.metric);
        let Some((lo, hi)) = range(cells.ratios(OWN, baseline, quantity.ratio)) else { continue };
        let name = METHODS.iter().find(|(method, _)| *method == baseline).map_or(baseline, |(_, name)| name);
        let (least, most, answer) = match context.row(&id)?.claim {
            Claim::Range { lo: least, hi: most } => (Some(least), Some(most), Answer::Range(lo, hi)),
            Claim::Max(most) => (None, Some(most), Answer::Number(hi)),
            _ => (None, None, Answer::Number(hi)),
        };
        answers.push((id, answer));
        // Of MNN-INT8 the paper gives the most alone.
        for (which, value, given) in [("least", lo, least), ("most", hi, most)] {
            if given.is_none() {
                continue;
            }
            grid.put([&format!("{name} {which}"), "Mandheling", quantity.gain], Some(value), given);
        }
    }
    let bars = grid.bars(quantity.gain).show_values();
    let title = format!("{} over each baseline, all networks and phones", quantity.gain);
    Ok((answers, Panel::new(bars).title(title).y(Axis::new(quantity.gain).unit("x"))))
}
