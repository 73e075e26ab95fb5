//! The page escapes its input, is complete, and loads nothing from elsewhere.

use haversack_reports::figure::{Figure, Front, Panel};
use haversack_reports::page::{Card, CellRow, Drawn, Item, Notes, Page, RunPage, RunSection, Section, Summary};

pub(crate) fn page() -> Page {
    let cell = |id: &str, verdict: &str, error| CellRow {
        id: id.into(),
        simulated: "1130.5".into(),
        unit: "ms".into(),
        paper: "1161".into(),
        role: "check".into(),
        error,
        left_out: None,
        verdict: verdict.into(),
        null: "980".into(),
        reason: String::new(),
    };
    let front = Front::new().cloud("sage", [(1.0, 5.0), (2.0, 3.0)]).cloud("daf", [(1.5, 4.0)]);
    let svg = Figure::new("A front").panel(Panel::new(front).title("on <one> phone")).render().unwrap().svg;
    Page {
        title: "Four papers <reproduced> & compared".into(),
        lead: "Nothing is hidden.".into(),
        cards: vec![Card { label: "missed".into(), count: 17, note: "of 40 <rows>".into(), verdict: "off".into() }],
        overview: Some(Drawn { alt: "all numbers".into(), svg: svg.clone() }),
        summary: Summary {
            columns: ["paper", "role", "median error", "claims"].map(str::to_owned).to_vec(),
            rows: vec![["sage", "check", "8.3% (40 of 42)", "5 of 6"].map(str::to_owned).to_vec()],
            remarks: vec!["The null baseline is nearer.".into()],
        },
        sections: vec![
            Section {
                paper: "sage".into(),
                paper_name: "Sage".into(),
                artefact: "table1".into(),
                name: "Table 1".into(),
                about: "graphs & <nodes>".into(),
                sentence: "Of 3 rows 1 matches.".into(),
                devices: vec!["galaxy-s10".into(), "galaxy-s22".into()],
                figure: Some(Drawn { alt: "Bars of \"latency\" for <four> models".into(), svg }),
                cells: vec![
                    cell("sage/table1/a", "ok", Some(-0.026_27)),
                    cell("sage/table1/b", "off", Some(0.4)),
                    cell("sage/table1/c", "not-modelled", None),
                ],
                notes: Notes { misses: vec!["<script>alert(1)</script>".into()], ..Notes::default() },
            },
            Section {
                paper: "daf".into(),
                paper_name: "DAF".into(),
                artefact: "abstract".into(),
                name: "Abstract".into(),
                ..Section::default()
            },
        ],
        constants: vec![Item {
            name: "gpu.launch".into(),
            value: "31".into(),
            unit: "µs".into(),
            source: "fit to table 1".into(),
        }],
        readings: Vec::new(),
    }
}

#[test]
fn data_is_escaped_everywhere() {
    let html = page().render().unwrap();
    assert!(html.contains("<title>Four papers &lt;reproduced&gt; &amp; compared</title>"), "{html}");
    assert!(html.contains("aria-label=\"Bars of &quot;latency&quot; for &lt;four&gt; models\""));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;") && html.contains("graphs &amp; &lt;nodes&gt;"));
    assert!(html.contains("of 40 &lt;rows&gt;") && html.contains("data-name=\"on &lt;one&gt; phone\""));
    // The page's own script.
    assert_eq!(html.matches("<script").count(), 1);
}

#[test]
fn a_section_shows_its_figure_cells_and_notes() {
    let html = page().render().unwrap();
    // That of the overview and that of the section, with the same looks.
    assert_eq!(html.matches("<svg role=\"img\"").count(), 2);
    assert!(html.contains("class=\"panel front\"") && html.contains("Of 3 rows 1 matches."));
    assert!(html.contains("href=\"sage/table1.png\"") && html.contains("href=\"sage/table1.csv\""));
    // −0.02627 is −2.6%, 0.4 is +40.0%.
    assert!(html.contains("−2.6%") && html.contains("+40.0%"));
    assert!(html.contains("<span class=\"verdict off\">off</span>"));
    assert!(html.contains("3 rows: 1 ok, 1 off, 1 not-modelled"));
    assert!(html.contains("Where it misses") && !html.contains("What is calibrated"));
    // The abstract has no picture.
    assert!(!html.contains("daf/abstract.svg") && html.contains("daf/abstract.csv"));
}

#[test]
fn figures_without_rows_are_folded_where_others_have_some() {
    let mut page = page();
    assert!(!page.render().unwrap().contains("Figures without numbers"));
    let bare =
        Section { artefact: "figure7".into(), name: "Figure 7".into(), cells: Vec::new(), ..page.sections[0].clone() };
    page.sections.insert(0, bare);
    let html = page.render().unwrap();
    let (before, folded) = html.split_once("Figures without numbers of the paper: 1</summary>").unwrap();
    // The one with rows comes first, and its rows are folded below its figure.
    assert!(before.contains("id=\"sage-table1\"") && folded.contains("id=\"sage-figure7\""));
    assert!(before.contains("<details><summary>3 rows"));
    // Where no artefact of a paper has rows, nothing is folded.
    assert!(folded.contains("id=\"daf-abstract\""));
}

#[test]
fn the_contents_lead_to_what_is_there() {
    let html = page().render().unwrap();
    for link in html.split("href=\"#").skip(1) {
        let target = link.split('"').next().unwrap();
        assert!(html.contains(&format!("id=\"{target}\"")), "no target for #{target}");
    }
    assert!(html.contains("Fitted constants (1)") && html.contains("Declared readings (0)"));
    assert!(html.contains("<option>galaxy-s10</option><option>galaxy-s22</option>"));
    // One of three rows of table 1 matches, one misses; the abstract has none.
    assert!(html.contains("aria-label=\"some match\">◐</span> Table 1"));
    assert!(html.contains("aria-label=\"nothing to match\">–</span> Abstract"));
    assert!(html.contains("8.3%") && html.contains("5 of 6") && html.contains("The null baseline is nearer."));
}

#[test]
fn the_page_asks_nothing_of_the_network_and_is_deterministic() {
    let html = page().render().unwrap();
    assert!(!html.contains("http://") && !html.contains("https://"));
    for loads in [" src=", "@import", "url(", "fetch(", "<link rel=\"style"] {
        assert!(!html.contains(loads), "{loads}");
    }
    assert_eq!(html, page().render().unwrap());
}

#[test]
fn an_empty_page_is_a_page() {
    assert!(Page::default().render().unwrap().contains("</html>"));
}

#[test]
fn a_runs_page_holds_its_figures_and_says_what_they_show() {
    let svg =
        "<svg width=\"90\" viewBox=\"0 0 360 160\">\n<text x=\"3\" fill=\"#22262B\">5% &amp; more</text>\n</svg>\n";
    let figure = RunSection {
        title: "Who was left out".into(),
        figure: Some(Drawn { alt: "Stacks: <4 GB> 7 of 30".into(), svg: svg.into() }),
        ..RunSection::default()
    };
    let table = RunSection {
        title: "By memory".into(),
        columns: ["memory", "phones"].map(str::to_owned).to_vec(),
        rows: vec![["4 GB", "30"].map(str::to_owned).to_vec()],
        ..RunSection::default()
    };
    let page = RunPage { title: "Phones & more".into(), lead: vec!["6 rounds".into()], sections: vec![figure, table] };
    let html = page.render().unwrap();
    assert!(
        html.contains("aria-label=\"Stacks: &lt;4 GB&gt; 7 of 30\"") && html.contains("<h1>Phones &amp; more</h1>")
    );
    assert!(html.contains("<text class=\"f0\" x=\"3\">5% &amp; more</text>") && html.contains(".f0{fill:#22262B;}"));
    assert!(html.contains("<tr><td>4 GB</td><td class=\"number\">30</td></tr>"));
    assert_eq!(html.matches("<figure>").count(), 1);
    assert!(!html.contains(" src=") && !html.contains("http"));
}
