//! Figures contain what they were given, reject what they cannot draw, and are the same each time.

use haversack_reports::figure::{
    Axis, BarSeries, Bars, Chart, Figure, Front, Intervals, Lines, Look, PNG_SCALE, Panel, Series, Stack, Trace,
};
use proptest::prelude::*;
use resvg::tiny_skia::Pixmap;

fn charts() -> Vec<(&'static str, Chart)> {
    vec![
        ("lines", Lines::new().series(Series::new("sage", [(1.0, 2.0), (4.0, 8.0)]).ends_low()).into()),
        ("bars", Bars::new(["resnet50", "bert"]).series(BarSeries::new("sage", [3.0, 4.0])).show_values().into()),
        ("stack", Stack::new(["a", "b"]).part("forward", [1.0, 2.0]).part("backward", [2.0, 3.0]).show_totals().into()),
        (
            "trace",
            Trace::new("in use", [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)])
                .wall("budget", [(0.0, 4.0), (1.5, 2.5)])
                .phase(0.0, 1.0, "batch 32")
                .event(1.5, "wall 1")
                .into(),
        ),
        (
            "front",
            Front::new().cloud("sage", [(1.0, 5.0), (2.0, 3.0), (3.0, 4.0)]).overall().band([3.0, 4.0], "off").into(),
        ),
        (
            "intervals",
            Intervals::new()
                .group("fewer bits")
                .category("daf", vec![[-2.0, -0.5, 1.0], [-1.0, 0.0, 1.0]], "")
                .category("gact", Vec::new(), "not measured")
                .into(),
        ),
    ]
}

fn figure(chart: impl Into<Chart>) -> Figure {
    let panel = Panel::new(chart).title("panel").x(Axis::new("budget").unit("%")).y(Axis::new("time").unit("s"));
    Figure::new("A title").panel(panel)
}

/// Width and height that the document declares.
fn size(svg: &str) -> (u32, u32) {
    let number =
        |key: &str| svg.split(&format!(" {key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    (number("width"), number("height"))
}

#[test]
fn every_kind_shows_its_words_and_its_picture_has_the_declared_size() {
    for (kind, chart) in charts() {
        let drawn = figure(chart).render().unwrap();
        for words in ["A title", "panel", "time (s)"] {
            assert!(drawn.svg.contains(words), "{kind}: no `{words}`");
        }
        let picture = Pixmap::decode_png(&drawn.png).unwrap();
        let (width, height) = size(&drawn.svg);
        assert_eq!((picture.width(), picture.height()), (width * PNG_SCALE, height * PNG_SCALE), "{kind}");
        let inked = picture.pixels().iter().filter(|p| p.red() < 100).count();
        assert!(inked > 1000, "{kind}: only {inked} dark pixels");
    }
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for (kind, chart) in charts() {
        assert_eq!(figure(chart.clone()).render().unwrap(), figure(chart).render().unwrap(), "{kind}");
    }
}

#[test]
fn labels_of_every_kind_are_there() {
    let svg = |index: usize| figure(charts()[index].1.clone()).render().unwrap().svg;
    assert!(svg(0).contains("does not go lower"));
    assert!(svg(1).contains("resnet50"));
    assert!(svg(2).contains("forward") && svg(2).contains("backward"));
    assert!(svg(3).contains("batch 32") && svg(3).contains("wall 1") && svg(3).contains("budget"));
    assert!(svg(4).contains("front over all") && svg(4).contains("dominated") && svg(4).contains(">off<"));
    assert!(svg(5).contains("fewer bits") && svg(5).contains("not measured") && svg(5).contains(">gact<"));
    // Two values, each with its interval in words.
    assert!(
        svg(5).matches("class=\"value\"").count() == 2 && svg(5).contains("daf: −0.5 s (-2.0 to 1.0)"),
        "{}",
        svg(5)
    );
}

#[test]
fn titles_are_escaped_and_control_characters_dropped() {
    let mut figure = figure(charts().remove(0).1);
    figure.title = "a < b & \u{1}c".into();
    let svg = figure.render().unwrap().svg;
    assert!(svg.contains("a &lt; b &amp;") && !svg.contains('\u{1}'));
}

#[test]
fn looks_are_explained_only_where_there_are_two() {
    let one = Bars::new(["a"]).series(BarSeries::new("sage", [1.0]));
    let two = one.clone().series(BarSeries::new("sage", [2.0]).look(Look::Hatched));
    assert!(!figure(one).render().unwrap().svg.contains("simulated"));
    let svg = figure(two).render().unwrap().svg;
    assert!(svg.contains("simulated") && svg.contains("paper"));
}

#[test]
fn a_mark_that_another_covers_is_a_ring_around_it() {
    // Okabe and Ito's blue, the first name's.
    let blue = |first: &[(f64, f64)]| {
        let front = Front::new().cloud("below", first).cloud("above", [(2.0, 3.0)]);
        let picture = Pixmap::decode_png(&figure(front).render().unwrap().png).unwrap();
        picture.pixels().iter().filter(|p| (p.red(), p.green(), p.blue()) == (0, 0x72, 0xb2)).count()
    };
    let (legend_alone, covered) = (blue(&[]), blue(&[(2.0, 3.0)]));
    // A ring of radius 7 and width 1.4 has 2π · 7 · 1.4 = 62 square pixels, four times as many in the picture.
    assert!(covered > legend_alone + 100, "{legend_alone} {covered}");
}

#[test]
fn an_axis_title_stands_under_the_lowest_panel_of_a_column_that_has_no_other() {
    let titles = |names: [&str; 3]| {
        let panel = |name: &str| Panel::new(charts().remove(0).1).x(Axis::new(name)).y(Axis::new("y"));
        let figure = names.into_iter().fold(Figure::new(""), |figure, name| figure.panel(panel(name)));
        let svg = Figure { columns: Some(1), ..figure }.render().unwrap().svg;
        svg.matches(">memory used<").count()
    };
    assert_eq!(titles(["memory used"; 3]), 1);
    assert_eq!(titles(["time taken", "memory used", "memory used"]), 2);
}

#[test]
fn a_panel_that_stands_apart_takes_no_part_in_the_range_that_others_share() {
    let panel = |value: f64| Panel::new(Bars::new(["a"]).series(BarSeries::new("s", [value]))).y(Axis::new("y"));
    let top = |apart: bool| {
        let other = if apart { panel(900.0).apart() } else { panel(900.0) };
        let svg = Figure::new("").share_y().panel(panel(1.0)).panel(other).render().unwrap().svg;
        svg.matches(">800<").count()
    };
    // Both axes reach beyond 800, or only that of the panel with 900.
    assert_eq!((top(false), top(true)), (2, 1));
}

#[test]
fn no_data_says_so() {
    let empty: [Chart; 5] = [
        Lines::new().into(),
        Bars::new(["a"]).series(BarSeries::new("s", [None::<f64>])).into(),
        Stack::new(Vec::<String>::new()).into(),
        Trace::new("in use", []).phase(0.0, 1.0, "p").into(),
        Front::new().cloud("sage", []).into(),
    ];
    for chart in empty {
        assert!(figure(chart).render().unwrap().svg.contains("no data"));
    }
    assert!(Figure::new("nothing").render().is_ok());
}

#[test]
fn values_that_cannot_be_drawn_are_named() {
    let nan = Lines::new().series(Series::new("sage", [(1.0, 2.0), (2.0, f64::NAN)]));
    let error = figure(nan).render().unwrap_err();
    assert_eq!(error.to_string(), "panel: series `sage`, value 1: NaN is not a finite number");

    let zero = Panel::new(Lines::new().series(Series::new("sage", [(0.0, 2.0)]))).x(Axis::new("x").log());
    let error = Figure::new("").panel(zero).render().unwrap_err().to_string();
    assert!(error.ends_with("series `sage`, value 0: 0 is not positive, as a logarithmic axis needs"), "{error}");

    let short = Bars::new(["a", "b"]).series(BarSeries::new("sage", [1.0]));
    let error = figure(short).render().unwrap_err();
    assert_eq!(error.to_string(), "panel: series `sage` has 1 values for 2 categories");

    let negative = Stack::new(["a"]).part("forward", [-1.0]);
    let error = figure(negative).render().unwrap_err();
    assert_eq!(error.to_string(), "panel: series `forward`, value 0: -1 is not positive, as a stack needs");

    let backwards = Panel::new(Lines::new()).y(Axis::new("y").range(2.0, 1.0));
    let error = Figure::new("").panel(backwards).render().unwrap_err();
    assert_eq!(error.to_string(), "axis `y` cannot run from 2.0 to 1.0");
}

#[test]
fn points_outside_the_range_are_not_drawn() {
    let markers = |axis: Axis| {
        // A series without a name is not in the legend.
        let lines = Lines::new().series(Series::new("", [(1.0, 1.0), (2.0, 50.0), (3.0, 2.0)]));
        let figure = Figure::new("").panel(Panel::new(lines).y(axis));
        // A closed circle is a white rim and a disc.
        figure.render().unwrap().svg.matches("<circle").count() / 2
    };
    assert_eq!(markers(Axis::new("y")), 3);
    assert_eq!(markers(Axis::new("y").range(0.0, 10.0)), 2);
}

#[test]
fn bars_stand_on_zero_and_are_as_tall_as_their_values() {
    let bars = Bars::new(["a", "b"]).series(BarSeries::new("", [100.0, 50.0]));
    let svg = Figure::new("").panel(Panel::new(bars)).render().unwrap().svg;
    let tall: Vec<f64> = svg
        .lines()
        .filter(|l| l.contains("#0072B2"))
        .map(|l| l.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
        .collect();
    // 100 is twice 50, to the quarter pixel that coordinates are rounded to.
    assert!(tall.len() == 2 && (tall[0] - 2.0 * tall[1]).abs() <= 2.0, "{tall:?}");
}

#[test]
fn the_papers_bars_are_marks_on_the_simulated_ones() {
    let strokes = |other: &str| {
        let bars = Bars::new(["a"]).series(BarSeries::new("simulated", [1.0]));
        let bars = bars.series(BarSeries::new(other, [2.0]).look(Look::Hatched));
        let svg = Figure::new("").panel(Panel::new(bars)).render().unwrap().svg;
        let colour = if other == "simulated" { "#0072B2" } else { "#D55E00" };
        svg.matches(&format!("stroke=\"{colour}\"")).count()
    };
    // The outline of the diamond on the bar, and that of its sample if the name has no filled bars.
    assert_eq!((strokes("simulated"), strokes("paper")), (1, 2));
}

#[test]
fn a_bar_says_its_value_and_the_papers() {
    let bars = Bars::new(["a", "b"]).series(BarSeries::new("sage", [Some(2.0), None])).show_values();
    let bars = bars.series(BarSeries::new("sage", [3.0, 4.0]).look(Look::Hatched));
    let svg = Figure::new("").panel(Panel::new(bars)).render().unwrap().svg;
    assert!(svg.contains(">2 (3)<") && svg.contains(">n/a (4)<"), "{svg}");
}

#[test]
fn a_sheet_is_a_landscape_that_a_slide_can_show() {
    // Twelve boxes of 460 × 300 would be 4 × 460 wide: they shrink until ticks of 11 pixels are about a fortieth of the height.
    // Three rows of the lowest boxes, from seven panels on, need more.
    let panel = || Panel::new(charts().remove(0).1).x(Axis::new("x")).y(Axis::new("y"));
    for count in 1..=12 {
        let figure = (0..count).fold(Figure::new("A title"), |figure, _| figure.panel(panel()));
        let (width, height) = size(&figure.render().unwrap().svg);
        assert!(
            width > height && f64::from(height) < 11.0 * if count < 7 { 46.0 } else { 60.0 },
            "{count}: {width} × {height}"
        );
    }
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), -1e3..1e3, Just(0.0), Just(1e-300), Just(f64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_value_makes_it_panic(points in prop::collection::vec((any_number(), any_number()), 0..8), log in any::<bool>(), kind in 0..5) {
        let values: Vec<f64> = points.iter().map(|p| p.1).collect();
        let names: Vec<String> = (0..points.len()).map(|i| format!("name {i}")).collect();
        let chart: Chart = match kind {
            0 => Lines::new().series(Series::new("s", points).ends_low()).into(),
            1 => Bars::new(names).series(BarSeries::new("s", values)).show_values().into(),
            2 => Stack::new(names).part("p", values.clone()).part("q", values).show_totals().show_shares().into(),
            3 => Trace::new("s", points.clone()).wall("w", points.clone()).phase(0.0, 1.0, "p").event(0.5, "e").into(),
            _ => Front::new().cloud("s", points).overall().into(),
        };
        let axis = if log { Axis::new("y").log() } else { Axis::new("y") };
        let figure = Figure::new("t").panel_size(120, 90).panel(Panel::new(chart).y(axis));
        let _ = figure.render();
    }
}
