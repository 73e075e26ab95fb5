//! FedHybrid's figures 18, 19a, 20 and 21, and the four papers side by side: the contents of their tables
//! follow from the mechanisms.

use std::collections::BTreeMap;

use crate::support::reproduce_into;
use haversack_devices::{load, load_stack, load_system};

type Row = BTreeMap<String, String>;

/// The table of an artefact, and its cells by the ends of their ids.
fn run(place: &str) -> (Vec<Row>, BTreeMap<String, Row>) {
    let out = tempfile::tempdir().unwrap();
    let selectors = vec![format!("{place}/")];
    reproduce_into(out.path(), selectors, 0, 2);
    let read = |path: String| -> Vec<Row> {
        csv::Reader::from_path(out.path().join(path)).unwrap().deserialize().map(Result::unwrap).collect()
    };
    let place = format!("{place}/");
    let own = read("cells.csv".to_owned()).into_iter();
    let own = own.filter_map(|row| Some((row["id"].strip_prefix(&place)?.to_owned(), row)));
    (read(format!("{}.csv", place.trim_end_matches('/'))), own.collect())
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap()
}

fn numbers(rows: &[Row], wanted: &[(&str, &str)], of: &str) -> Vec<f64> {
    let fits = |row: &&Row| wanted.iter().all(|(column, value)| row[*column] == *value);
    rows.iter().filter(fits).map(|row| number(row, of)).collect()
}

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-4, "{found}, not {expected}");
}

#[test]
fn figure_19a_a_weighted_average_stays_within_what_it_is_of() {
    let (rows, cells) = run("fedhybrid/figure19a");
    // Five minutes of thirty users, a sample a second.
    assert_eq!(rows.len(), 30 * 300);
    let range = |of: &[f64]| {
        (of.iter().copied().fold(f64::INFINITY, f64::min), of.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let kept = 2.0 * load_system("android-testbed").unwrap().watermarks(&load("galaxy-s22").unwrap()).high.megabytes();
    let mut spreads = [0.0; 2];
    for rows in rows.chunk_by(|a, b| a["user"] == b["user"]) {
        let series = ["available_mb", "predicted_mb"]
            .map(|column| rows.iter().map(|row| number(row, column)).collect::<Vec<f64>>());
        // M_safe is available memory less two high watermarks, because there is ZRAM; its average stays in its range.
        let (low, high) = range(&series[0]);
        close(series[0][0] - series[1][0], kept);
        assert!(series[1].iter().all(|budget| (low - kept - 1e-3..=high - kept + 1e-3).contains(budget)));
        // Largest less smallest once the predictor has seen two minutes.
        for (spread, series) in spreads.iter_mut().zip(&series) {
            let (low, high) = range(&series[120..]);
            *spread += (high - low) / 30.0;
        }
    }
    // The results are the means of all thirty.
    for (method, spread) in ["actual", "predicted"].into_iter().zip(spreads) {
        let answer = number(&cells[&format!("s22-example-trace/{method}/available-memory-spread")], "simulated");
        close(answer, spread);
    }
}

#[test]
fn figure_20a_a_phone_in_use_is_never_faster() {
    let (rows, _) = run("fedhybrid/figure20a");
    let of = |phone: &str| rows.iter().filter(|row| row["phone"] == phone).collect::<Vec<_>>();
    let (alone, in_use) = (of("to itself"), of("in use"));
    // Six policies at six budgets, and one without a budget.
    assert_eq!((alone.len(), in_use.len()), (37, 37));
    let need = number(alone.last().unwrap(), "memory_mb");
    let mut beside = 0;
    for (alone, in_use) in alone.iter().zip(&in_use) {
        assert_eq!((&alone["policy"], &alone["budget_percent"]), (&in_use["policy"], &in_use["budget_percent"]));
        // A policy that can train next to apps can train alone.
        assert!(in_use["time_s"].is_empty() || !alone["time_s"].is_empty());
        // Micro-batches are found in the first iteration, which only the mean has.
        if !in_use["time_s"].is_empty() {
            beside += 1;
            // The kernel counts the pages of a pool once, the stack counts a share of them in every iteration.
            assert!(number(in_use, "time_s") >= number(alone, "time_s") * 0.97, "{in_use:?}");
        }
        // No run exceeds the budget.
        if let Ok(percent) = alone["budget_percent"].parse::<f64>() {
            assert!(alone["memory_mb"].is_empty() || number(alone, "memory_mb") <= need * percent / 100.0 + 1.0);
        }
    }
    assert!(beside >= 18, "{beside} of 37 points beside apps");
}

#[test]
fn figure_20c_is_the_planners_operations_and_bytes_over_a_rate() {
    let (rows, cells) = run("fedhybrid/figure20c");
    let planning = load_stack("mnn-2").unwrap().constants.planning.unwrap();
    let mut ratios = Vec::new();
    for row in &rows {
        // Operations at their measured cost on the server's core, in milliseconds.
        let operations = number(row, "scores") + number(row, "operators");
        let server = operations * planning.operation.value.0 * 1e-6 / planning.server.value.0 * 1e3;
        close(number(row, "server_ms"), server);
        ratios.push(number(row, "phone_ms") / number(row, "server_ms"));
    }
    let ratio = number(&cells["s22-vs-server/plan-generation/time-ratio"], "simulated");
    assert!(ratios.iter().all(|other| (other / ratio - 1.0).abs() < 1e-3), "{ratios:?}, {ratio}");
    // A smaller budget needs more operations, and a larger plan.
    let of_mobilenet: Vec<&Row> = rows.iter().filter(|row| row["network"] == "MobileNetV2").collect();
    assert_eq!(of_mobilenet.len(), 5);
    for column in ["scores", "operators", "plan_bytes"] {
        assert!(of_mobilenet.windows(2).all(|two| number(two[0], column) < number(two[1], column)), "{column}");
    }
    // 3,504,872 weights of MobileNetV2 down and up at 12.5 MB/s, 2.243 s, and some kilobytes; ten rounds of seven
    // iterations of some seconds.
    let once = 2.0 * 4.0 * 3_504_872.0 / planning.link.value.0;
    let share = number(&cells["s22/five-regenerations-in-ten-rounds/communication-share"], "simulated") / 100.0;
    let training = 5.0 * once * (1.0 / share - 1.0);
    assert!(training / 70.0 > 1.0 && training / 70.0 < 20.0, "{training}");
}

#[test]
fn figure_21_energy_rises_as_memory_shrinks() {
    let (rows, cells) = run("fedhybrid/figure21");
    assert_eq!(rows.len(), 2 * 4 * 6);
    let own: Vec<&Row> = rows.iter().filter(|row| row["policy"] == "fedhybrid").collect();
    for network in ["mobilenetv2", "squeezenet1-1"] {
        // Budgets are in descending order; whatever is given up at one is also given up at the next.
        let fits = |row: &&&Row| row["network"] == network && !row["energy_j"].is_empty();
        let energies: Vec<f64> = own.iter().filter(fits).map(|row| number(row, "energy_over_ideal")).collect();
        // The gradient of SqueezeNet's first pooling needs nine maps simultaneously, more than
        // dropping saved tensors can free.
        let least = if network == "mobilenetv2" { 6 } else { 1 };
        assert!(energies.len() >= least && energies[0] >= 1.0 && energies.is_sorted(), "{energies:?}");
        // GACT has no budget, so it takes the same at each.
        let gact = numbers(
            &rows.iter().filter(|row| !row["energy_j"].is_empty()).cloned().collect::<Vec<_>>(),
            &[("network", network), ("policy", "gact")],
            "energy_j",
        );
        assert!(gact.windows(2).all(|pair| pair[0] == pair[1]), "{gact:?}");
    }
    // The row: the mean over budgets and networks, in percent above the ideal.
    let all: Vec<f64> =
        own.iter().filter(|row| !row["energy_j"].is_empty()).map(|row| number(row, "energy_over_ideal")).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let cell = &cells["op10p-mobilenetv2,squeezenet-batch-16/fedhybrid/ideal/energy-increase"];
    close(number(cell, "simulated"), (mean - 1.0) * 100.0);
    // Power of the whole phone: below the maximum of all cores and memory, above that of the idle phone.
    let idle = load("oneplus-10-pro").unwrap().constants.power.idle.value.0;
    let powers = rows.iter().filter(|row| !row["energy_j"].is_empty());
    assert!(
        powers.map(|row| number(row, "energy_j") / number(row, "time_s")).all(|watts| watts > idle && watts < 20.0)
    );
}
