//! Draws one figure of each kind, and a page that shows them, into the folder given: `cargo run -p haversack-reports --example gallery -- FOLDER`.
//!
//! The numbers are made up; the gallery shows every kind of label, legend and axis once.

use std::error::Error;
use std::path::Path;

use haversack_reports::figure::{
    Axis, BarSeries, Bars, Figure, Front, Lines, Look, Meanings, Panel, Series, Stack, Stroke, Trace,
};
use haversack_reports::files::{create_folder, write_atomically};
use haversack_reports::page::{Card, CellRow, Drawn, Item, Notes, Page, Section, Summary};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: gallery FOLDER")?;
    let folder = Path::new(&folder);
    create_folder(&folder.join("gallery"))?;
    let figures = [
        ("lines", lines()),
        ("log-lines", log_lines()),
        ("bars", bars()),
        ("bars-grid", bars_grid()),
        ("bars-many", bars_many()),
        ("stack", stack()),
        ("trace", trace()),
        ("front", front()),
        ("edge-cases", edge_cases()),
    ];
    let mut sections = Vec::new();
    for (name, figure) in figures {
        let rendered = figure.render()?;
        rendered.write(&folder.join("gallery").join(name))?;
        println!("{name}");
        sections.push(section(name, Drawn { alt: format!("Made-up numbers: {}", figure.title), svg: rendered.svg }));
    }
    write_atomically(&folder.join("index.html"), page(sections).render()?.as_bytes())?;
    Ok(())
}

const METHODS: [&str; 4] = ["sage", "dgc", "dga", "original"];
const MODELS: [&str; 4] = ["ResNet-50", "DenseNet-121", "MobileNet-v2", "BERT-small"];

/// Four models side by side, with one range; the paper's points are drawn next to the simulated curves.
fn lines() -> Figure {
    let mut figure = Figure::new("Iteration time under a memory budget, Galaxy S10")
        .note("Batch 32; budgets are a share of what `original` needs. Open markers: read from the paper's figure.")
        .panel_size(230, 210)
        .share_y();
    for (m, model) in MODELS.iter().enumerate() {
        let mut chart = Lines::new();
        for (k, method) in METHODS.iter().take(3).enumerate() {
            let low = 20 + 10 * k as i32 + 5 * m as i32;
            let time = |b: f64| 0.6 + 0.12 * m as f64 + (0.35 + 0.2 * k as f64) * (100.0 - b) / b;
            let budgets = || (low..=100).step_by(10).map(f64::from);
            let points: Vec<_> = budgets().map(|b| (b, time(b))).collect();
            chart = chart.series(Series::new(*method, points).ends_low());
            if k < 2 {
                let paper: Vec<_> = budgets().step_by(2).map(|b| (b, time(b) * 1.12)).collect();
                chart = chart.series(Series::new(*method, paper).look(Look::Hatched));
            }
        }
        figure = figure.panel(
            Panel::new(chart)
                .title(*model)
                .x(Axis::new("memory budget").unit("%").range(0.0, 105.0))
                .y(Axis::new("iteration time").unit("s")),
        );
    }
    figure
}

/// Logarithmic axes, ticks at batch sizes and a step line.
fn log_lines() -> Figure {
    let batches = [1.0_f64, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let mut chart = Lines::new();
    for (k, name) in
        ["MNN-FP32", "MNN-INT8", "TFLite-FP32", "Mandheling (ours, with all optimisations)"].iter().enumerate()
    {
        let points: Vec<_> =
            batches.iter().map(|b| (*b, 4e-4 * b.powf(0.8 + 0.1 * k as f64) * (k as f64 + 1.0))).collect();
        let stroke = if k == 2 { Stroke::Step } else { Stroke::Straight };
        chart = chart.series(Series::new(*name, points).stroke(stroke));
    }
    Figure::new("Time of one operator").panel(
        Panel::new(chart).x(Axis::new("batch size").log().ticks_at(batches)).y(Axis::new("time").unit("s").log()),
    )
}

/// Two methods, simulated values next to the paper's, with labels, a gap and a long name.
fn bars() -> Figure {
    let chart = Bars::new(["ResNet-50", "DenseNet-121", "MobileNet-v2", "BERT-small (64 tokens)"])
        .series(BarSeries::new("original", [1161.0, 1320.0, 402.0, 899.0]))
        .series(BarSeries::new("original", [1100.0, 1400.0, 390.0, 950.0]).look(Look::Hatched))
        .series(BarSeries::new("sage", [Some(811.0), None, Some(301.5), Some(640.0)]))
        .series(BarSeries::new("sage", [790.0, 870.0, 322.0, 633.0]).look(Look::Hatched))
        .show_values();
    Figure::new("Latency after graph optimisation")
        .panel_size(620, 300)
        .panel(Panel::new(chart).y(Axis::new("latency").unit("ms")))
}

/// Three devices in a row, negative values, and three looks.
fn bars_grid() -> Figure {
    let mut figure = Figure::new("Error of each table's rows: simulated against the null baseline")
        .panel_size(240, 200)
        .meanings(Meanings { solid: "haversack".into(), hatched: "paper".into(), outlined: "null baseline".into() });
    for (d, device) in ["Jetson AGX Xavier", "Galaxy S10", "RTX 3090"].iter().enumerate() {
        let value = |k: f64| (0..3).map(move |i| 0.4 * k - 0.3 * f64::from(i) * (d as f64 - 0.6));
        let chart = Bars::new(["time", "memory", "energy"])
            .series(BarSeries::new("error", value(1.0)))
            .series(BarSeries::new("error", value(1.4)).look(Look::Outlined));
        figure = figure.panel(Panel::new(chart).title(*device).y(Axis::new("relative error")));
    }
    figure
}

/// Many bars in narrow slots: values and names are vertical.
fn bars_many() -> Figure {
    let names =
        ["original", "fixed8", "elastictrainer", "actnn", "gact", "sgc", "sga", "dgc", "dga", "sage", "dtr", "melon"];
    let categories = ["galaxy-s10 / roberta-base-lora-s512", "galaxy-note20 / resnet50", "jetson-agx-xavier / vgg16"];
    let mut chart = Bars::new(categories).show_values();
    for (k, name) in names.iter().enumerate() {
        chart = chart.series(BarSeries::new(*name, (0..3).map(|c| 12_000.0 / (k as f64 + 1.0) + 900.0 * f64::from(c))));
    }
    Figure::new("Policies side by side").panel(Panel::new(chart).y(Axis::new("peak memory").unit("B")))
}

fn stack() -> Figure {
    let mut figure = Figure::new("Where the time goes").panel_size(300, 260).share_y();
    for model in ["ResNet-50", "BERT-small"] {
        let chart = Stack::new(["original", "dgc", "dga", "sage"])
            .part("forward", [0.4, 0.41, 0.52, 0.45])
            .part("backward", [0.8, 0.82, 0.95, 0.84])
            .part("recomputation", [0.0, 0.36, 0.0, 0.11])
            .part("swapping and page faults", [0.3, 0.05, 0.02, 0.01])
            .show_totals()
            .show_shares();
        figure = figure.panel(Panel::new(chart).title(model).y(Axis::new("iteration time").unit("s")));
    }
    figure
}

fn trace() -> Figure {
    let wall = [(0.0, 3300.0), (0.32, 2112.0), (0.55, 1485.0), (1.05, 1200.0)];
    let memory: Vec<(f64, f64)> = (0..160)
        .map(|i| {
            let t = f64::from(i) * 0.01;
            let limit = wall.iter().rev().find(|w| w.0 <= t).map_or(3300.0, |w| w.1);
            let saw = |period: f64| 400.0 + 5200.0 * (t % period) / period;
            (t, f64::min(saw(if t < 0.5 { 0.9 } else { 0.45 }), limit - 40.0))
        })
        .collect();
    let chart = Trace::new("memory in use", memory)
        .wall("memory available", wall)
        .phase(0.0, 0.32, "batch 32")
        .phase(0.32, 0.55, "20 + 12")
        .phase(0.55, 1.05, "14 + 14 + 4")
        .phase(1.05, 1.08, "checkpointing of the last part")
        .phase(1.08, 1.59, "gradient checkpointing")
        .event(0.32, "wall 1: micro-batch reduced")
        .event(0.55, "wall 2: reduced again")
        .event(1.05, "wall 3: under-utilisation point")
        .event(1.45, "update begins");
    Figure::new("Memory over one iteration while the budget falls")
        .panel(Panel::new(chart).x(Axis::new("time").unit("s")).y(Axis::new("memory").unit("MB")))
        .panel_size(640, 280)
}

fn front() -> Figure {
    let mut figure = Figure::new("Memory against time").panel_size(330, 280);
    for (d, device) in ["galaxy-s10", "rtx-3090"].iter().enumerate() {
        let mut chart = Front::new().overall();
        for (k, name) in METHODS.iter().take(3).enumerate() {
            let points: Vec<(f64, f64)> = (0..40)
                .map(|i| {
                    let memory = 600.0 + 65.0 * f64::from(i) + 150.0 * k as f64;
                    let noise = f64::from((i * 7 + k as i32 * 3) % 11) * 0.03;
                    (memory, 0.5 + (0.9 + 0.5 * k as f64 * (1.0 - d as f64 * 0.8)) * 700.0 / memory + noise)
                })
                .collect();
            chart = chart.cloud(*name, points);
        }
        figure = figure.panel(
            Panel::new(chart)
                .title(*device)
                .x(Axis::new("peak memory").unit("MB"))
                .y(Axis::new("iteration time").unit("s").from_zero()),
        );
    }
    figure
}

/// No data, one point, equal values, marks that must be escaped, values far from one, bars on a log axis.
fn edge_cases() -> Figure {
    let tiny = Lines::new().series(Series::new("a < b & c", [(0.0, 1.2e-7), (1e6, 3.4e-7), (2e6, 2.2e-7)]));
    let flat = Lines::new().series(Series::new("flat", [(1.0, 5.0), (2.0, 5.0)]).stroke(Stroke::None));
    let outside =
        Lines::new().series(Series::new("leaves the range", [(0.0, 0.0), (1.0, 9.0), (2.0, 3.0), (3.0, -4.0)]));
    let dots = Bars::new(["a", "b", "c"])
        .series(BarSeries::new("log bars", [0.004, 3.0, 800.0]))
        .series(BarSeries::new("log bars", [0.003, 5.0, 700.0]).look(Look::Hatched))
        .show_values();
    Figure::new("Edge cases: a title that is much longer than the figure is wide must wrap onto a second line, and so must <this> & that, however long it may be")
        .panel_size(220, 170)
        .columns(3)
        .panel(Panel::new(Lines::new()).title("no data").x(Axis::new("x")).y(Axis::new("y")))
        .panel(Panel::new(tiny).title("tiny & large").x(Axis::new("bytes").unit("B")).y(Axis::new("energy").unit("J")))
        .panel(Panel::new(flat).title("one value").x(Axis::new("x")).y(Axis::new("y")))
        .panel(Panel::new(outside).title("given range").x(Axis::new("x")).y(Axis::new("y").range(1.0, 7.0)))
        .panel(Panel::new(dots).title("bars on a log axis").y(Axis::new("ratio").log()))
        .panel(Panel::new(Bars::new(["x"]).series(BarSeries::new("alone", [3.0]))).title("one bar").y(Axis::new("a vertical title that is far too long for its axis")))
}

/// A section with one row of each verdict.
fn section(name: &str, figure: Drawn) -> Section {
    let rows = [
        ("latency", "1130.5", "1161", Some(-0.02627), "ok", ""),
        ("memory", "2410", "3300", Some(-0.2697), "off", ""),
        ("budgets", "21.5..98", "", None, "holds", ""),
        ("sage-beats-dgc", "false", "", None, "fails", "dgc is faster by 4% where recomputation is cheap"),
        ("energy", "4.71", "", None, "predicted", ""),
        ("rounds", "140", "140", None, "input", "rounds are declared, not simulated"),
        (
            "accuracy",
            "",
            "93.1",
            None,
            "not-modelled",
            "ImageNet is out of reach here: accuracies are measured on the embedded sets or not at all",
        ),
    ];
    let cell =
        |(metric, simulated, paper, error, verdict, reason): (&str, &str, &str, Option<f64>, &str, &str)| CellRow {
            id: format!("gallery/{name}/resnet50/original/{metric}"),
            simulated: simulated.into(),
            unit: "ms".into(),
            paper: paper.into(),
            role: "check".into(),
            error,
            left_out: None,
            verdict: verdict.into(),
            null: "980".into(),
            reason: reason.into(),
        };
    Section {
        paper: "gallery".into(),
        paper_name: "Gallery".into(),
        artefact: name.into(),
        name: name.into(),
        about: "made-up numbers".into(),
        sentence: "Of 7 rows 2 match and 2 miss.".into(),
        devices: vec!["galaxy-s10".into()],
        figure: Some(figure),
        cells: rows.map(cell).to_vec(),
        notes: Notes {
            calibrated: vec!["Launch cost and achievable rate of the GPU, from the `fit` rows of table 1.".into()],
            predicted: vec!["Every other row.".into()],
            readings: vec!["Memory counts saved tensors and weights, not the runtime.".into()],
            left_out: vec!["Fragmentation of the vendor's driver heap.".into(), "Thermal throttling.".into()],
            misses: vec!["Small models, by up to a third.".into()],
        },
    }
}

fn page(sections: Vec<Section>) -> Page {
    let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    let item = |name: &str, value: &str, unit: &str, source: &str| Item {
        name: name.into(),
        value: value.into(),
        unit: unit.into(),
        source: source.into(),
    };
    Page {
        title: "Four papers, simulated".into(),
        lead: "Each number next to the paper's own, with what was calibrated, what was predicted, and where it misses."
            .into(),
        cards: vec![Card { label: "matched".into(), count: 2, note: "of 4".into(), verdict: "ok".into() }],
        overview: None,
        summary: Summary {
            columns: ["paper", "role", "median error", "claims that hold"].map(str::to_owned).to_vec(),
            rows: vec![
                row(["sage", "fit", "4.1% (38 of 40)", "5 of 6"]),
                row(["sage", "check", "11.2% (38 of 40)", "9 of 10"]),
                row(["sage", "withheld", "–", "–"]),
                row(["daf", "check", "8.7% (38 of 40)", "12 of 13"]),
            ],
            remarks: vec!["daf, check: the null baseline is nearer.".into()],
        },
        sections,
        constants: vec![item("galaxy-s10.gpu.launch", "31", "µs", "fit to 12 rows of sage table 1")],
        readings: vec![item("sage/table1 batch", "32", "", "the batch that the rest of the paper uses")],
    }
}
