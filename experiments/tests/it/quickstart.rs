//! `haversack quickstart`: the findings are those of its own table, the page needs no other file, and foreign files stay.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::Parser;
use haversack::cli::Arguments;
use haversack_policies::registry::POLICIES;
use haversack_reports::frame::read_parquet;
use polars::prelude::DataFrame;

use crate::support::{call_in, refusal, stderr, stdout};
use crate::sweep::{files, texts, wholes};

/// Of each run that fits: its policy, stack, budget in bytes, seconds, and the class of its gradients.
type Fit = (String, String, u64, f64, String);

fn fits(table: &DataFrame) -> Vec<Fit> {
    let text = |name: &str| texts(table, name).into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>();
    let (policies, stacks, statuses, classes) = (text("policy"), text("stack"), text("status"), text("fidelity"));
    let (budgets, times) =
        (wholes(table, "memory_budget_bytes"), table.column("iteration_time_s").unwrap().f64().unwrap());
    let fits = (0..table.height()).filter(|&row| statuses[row] == "ok");
    let fit = |row: usize| {
        let (policy, stack, class) = (policies[row].clone(), stacks[row].clone(), classes[row].clone());
        (policy, stack, budgets[row].unwrap(), times.get(row).unwrap(), class)
    };
    fits.map(fit).collect()
}

fn quickstart(folder: &Path) -> String {
    let output = call_in(folder, &["quickstart"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn the_page_states_what_its_own_table_has() {
    let folder = tempfile::tempdir().unwrap();
    let said = quickstart(folder.path());
    let out = folder.path().join("quickstart");
    let table = read_parquet(&out.join("results.parquet")).unwrap();
    // The least budget with which anything fits on the engine of `original`, and who fits it.
    let fits = fits(&table);
    let plain = fits.iter().find(|fit| fit.0 == "original").unwrap();
    let one: Vec<&Fit> = fits.iter().filter(|fit| fit.1 == plain.1).collect();
    let least = |fits: &[&Fit]| fits.iter().map(|fit| fit.2).min().unwrap();
    let within: BTreeMap<&str, f64> =
        one.iter().filter(|fit| fit.2 == least(&one)).map(|fit| (fit.0.as_str(), fit.3)).collect();
    let ratio = |time: f64| time / plain.3;
    let title = said.lines().next().unwrap();
    assert!(title.starts_with(&format!("Within {} MB only ", least(&one) / 1_000_000)), "{title}");
    let names: Vec<&str> = title
        .split(" only ")
        .nth(1)
        .unwrap()
        .split(" fit")
        .next()
        .unwrap()
        .split([',', ' '])
        .filter(|word| !["", "and"].contains(word))
        .collect();
    assert!(within.len() > 3 || names.len() == within.len(), "{title}: {within:?}");
    assert!(within.len() > 3 || names.iter().all(|name| within.contains_key(name)), "{title}: {within:?}");
    // Three digits are within half a percent.
    let stated = |text: &str| text.split(" times").next().unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let fastest = within.values().copied().fold(f64::INFINITY, f64::min);
    assert!((stated(title) / ratio(fastest) - 1.0).abs() < 0.005, "{title}: {within:?}");
    let more = said.lines().nth(1).unwrap();
    let exact: Vec<&Fit> = one.iter().filter(|fit| fit.4 == "exact").copied().collect();
    let tight = exact.iter().filter(|fit| fit.2 == least(&exact)).map(|fit| fit.3).fold(f64::INFINITY, f64::min);
    assert!(more.starts_with(&format!("Exact gradients need {} MB (", least(&exact) / 1_000_000)), "{more}");
    assert!((stated(more) / ratio(tight) - 1.0).abs() < 0.005, "{more}");

    let page = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains(&format!("<h1>{}</h1>", title.trim_end_matches('.'))) && page.contains(more), "{title}");
    assert!(page.contains("<svg role=\"img\"") && !page.contains("src=") && !page.contains("<link rel=\"stylesheet"));
    for entry in POLICIES.iter().filter(|entry| entry.id != "planned") {
        assert!(page.contains(&format!("<tr><td>{}", entry.id)), "the table has no row for {}", entry.id);
    }
    assert!(said.contains("\nwrote quickstart/index.html\n"), "{said}");
    let next: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("  haversack ")).collect();
    assert_eq!(next.len(), 3, "{said}");
    for line in next {
        let words = line.split("  #").next().unwrap().split_whitespace();
        Arguments::try_parse_from(["haversack"].into_iter().chain(words))
            .unwrap_or_else(|error| panic!("{line}: {error}"));
    }

    // The same again gives the same bytes; what belongs to others stays.
    let before = files(&out);
    assert_eq!(quickstart(folder.path()), said);
    assert!(files(&out) == before);
    let mine = folder.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("index.html"), "mine").unwrap();
    let message = refusal(&call_in(folder.path(), &["quickstart", "--out", "mine"]), 2);
    assert!(message.contains("mine/index.html is there already"), "{message}");
    assert_eq!(fs::read_to_string(mine.join("index.html")).unwrap(), "mine");
}
