//! FedHybrid's tables and figures of one training phone: table 1 and figures 1c, 2 and 5.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::reproduce_into;
use haversack::cache::Cache;
use haversack::run::Plan;
use haversack::scenario::Scenario;
use haversack_devices::{load, load_system};
use rayon::prelude::*;

type Row = BTreeMap<String, String>;

/// The output of some artefacts: their tables by name, and all cells by their ids.
struct Made {
    tables: BTreeMap<String, Vec<Row>>,
    cells: BTreeMap<String, Row>,
}

fn read(path: &std::path::Path) -> Vec<Row> {
    csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
}

fn make(artefacts: &[&str]) -> Made {
    let out = tempfile::tempdir().unwrap();
    let selectors = artefacts.iter().map(|artefact| format!("fedhybrid/{artefact}")).collect();
    reproduce_into(out.path(), selectors, 0, 2);
    let cells = read(&out.path().join("cells.csv"));
    let cells: BTreeMap<_, _> =
        cells.into_iter().map(|row| (row["id"].trim_start_matches("fedhybrid/").to_owned(), row)).collect();
    let of = |id: &String| id.split('/').next().unwrap().to_owned();
    // Figures without a row have a table, too.
    let asked = artefacts.iter().map(|&artefact| artefact.to_owned());
    let names: BTreeSet<String> = cells.keys().map(of).chain(asked).collect();
    let table = |name: String| {
        let path = out.path().join(format!("fedhybrid/{name}.csv"));
        path.exists().then(|| (name, read(&path)))
    };
    Made { tables: names.into_iter().filter_map(table).collect(), cells }
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

/// Whether two values agree within the six digits of a cell.
fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-5 * expected.abs()
}

impl Made {
    fn simulated(&self, id: &str) -> f64 {
        number(&self.cells[id], "simulated")
    }

    /// The only row of a table whose columns have these values.
    fn row(&self, table: &str, wanted: &[(&str, &str)]) -> &Row {
        let mut found =
            self.tables[table].iter().filter(|row| wanted.iter().all(|(column, value)| row[*column] == *value));
        let row = found.next().unwrap();
        assert!(found.next().is_none(), "{wanted:?}");
        row
    }
}

#[test]
fn the_two_phones_of_figure_2_differ_in_memory_and_not_in_speed() {
    let [s22, op10p] = ["galaxy-s22", "oneplus-10-pro"].map(|phone| load(phone).unwrap());
    assert_eq!([s22.ram().0, op10p.ram().0], [8 << 30, 12 << 30]);
    for section in ["cpu", "cache", "dram", "storage"] {
        let of = |device: &haversack_devices::Device| -> Vec<(String, f64)> {
            let entries = device.entries().into_iter().map(|entry| (entry.name, entry.value));
            entries.filter(|(name, _)| name.split('.').next() == Some(section)).collect()
        };
        assert!(!of(&s22).is_empty(), "{section}");
        assert_eq!(of(&s22), of(&op10p), "{section}");
    }
}

#[test]
fn figure_2_is_the_smaller_phone_waiting_for_pages() {
    let made = make(&["figure2"]);
    let round = |phone: &str, batch: &str| made.row("figure2a", &[("phone", phone), ("batch", batch)]);
    let time = |phone: &str, batch: &str| number(round(phone, batch), "time_s");
    // The same number of pictures with both batches: 7 iterations of 32 are 14 of 16.
    for phone in ["galaxy-s22", "oneplus-10-pro"] {
        assert_eq!((&*round(phone, "32")["iterations"], &*round(phone, "16")["iterations"]), ("7", "14"));
    }
    for row in &made.tables["figure2a"] {
        // The thread is in one of three states at any time.
        let states: f64 = ["asleep_s", "running_s", "runnable_s"].iter().map(|state| number(row, state)).sum();
        assert!(near(states, number(row, "time_s")), "{row:?}");
    }
    // At batch 16 everything fits on both: 3.9 GB of the system and half of 5.1 GB are below the 7.0 GiB of the S22.
    let ratio = made.simulated("figure2a/batch-16/s22/op10p/time-ratio");
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    // At batch 32 3.9 and 5.1 GB exceed the S22's memory, but not the OnePlus's.
    let s22 = round("galaxy-s22", "32");
    let extra = time("galaxy-s22", "32") - time("oneplus-10-pro", "32");
    assert!(made.simulated("figure2a/batch-32/s22/op10p/time-ratio") > 3.0);
    assert!(number(s22, "asleep_s") > extra / 2.0, "{s22:?}, {extra} s more");
    assert_eq!(number(round("oneplus-10-pro", "32"), "asleep_s"), 0.0);

    // Figure 2b's shares are of those times, averaged over starts, whose times differ.
    for (state, column) in [("uninterruptible-sleep", "asleep_s"), ("running", "running_s"), ("runnable", "runnable_s")]
    {
        let share = made.simulated(&format!("figure2b/s22-batch-32/{state}/share-of-time"));
        let of_means = number(s22, column) / number(s22, "time_s") * 100.0;
        assert!((share - of_means).abs() < 1.0, "{state}: {share} %, {of_means} %");
    }
    // The OnePlus does not evict pages of the process and the system, so the mean unavailable memory is above the
    // system's own without its files, and at most all of it, the cached apps, the reserve of the watermarks and
    // the 5.15 GB of the process.
    let system = load_system("android-testbed").unwrap();
    let phone = load("oneplus-10-pro").unwrap();
    let managed = system.managed(&phone).as_f64();
    let own = system.resident(&phone).total().as_f64();
    let used = made.simulated("figure2b/op10p-batch-32/system/memory-used") / 100.0 * managed;
    let files = system.resident(&phone).file.as_f64();
    let cached = system.constants.resident.cached.value.as_f64();
    let kept = system.watermarks(&load("oneplus-10-pro").unwrap()).high.as_f64();
    assert!(used > own - files && used < own + cached + kept + 5.15e9, "{used}");
    let not_free = number(made.row("figure2b", &[("phone", "oneplus-10-pro")]), "not_free_percent") / 100.0 * managed;
    assert!(not_free > used && not_free > own && not_free < managed, "{not_free}");
    assert!(made.simulated("figure2b/s22-batch-32/system/memory-used") <= 100.0);

    let pages = |phone: &str| made.row("figure2c", &[("phone", phone)]);
    // On the OnePlus only unused file pages make room.
    let of_oneplus =
        ["to_flash_pages", "to_zram_pages", "read_pages"].map(|column| number(pages("oneplus-10-pro"), column));
    assert_eq!(of_oneplus, [0.0; 3]);
    let [read, evicted] = ["read_pages", "evicted_pages"].map(|column| number(pages("galaxy-s22"), column));
    assert!(near(made.simulated("figure2c/s22-batch-32/kernel/page-refaults"), read));
    // Every evicted page goes to flash, to ZRAM, or is dropped.
    let to = ["to_flash_pages", "to_zram_pages", "dropped_pages"].map(|column| number(pages("galaxy-s22"), column));
    assert!(near(to.iter().sum(), evicted), "{to:?}");
    // A mean over the starts of their shares, which is near the share of the means.
    let again = made.simulated("figure2c/s22-batch-32/kernel/evicted-re-accessed");
    assert!((again - read / evicted * 100.0).abs() < 1.0, "{again}");
    // The thread sleeps for pages that it reads one by one, each for little more than the flash's
    // latency: not twice as long.
    let latency = load("galaxy-s22").unwrap().constants.storage.clone().unwrap().latency_read.value.seconds();
    assert!(number(s22, "asleep_s") < 2.0 * 7.0 * read * latency);
}

#[test]
fn figure_2s_time_does_not_hang_on_what_is_moved_at_once() {
    let mean = |extent: u64| {
        let starts = (16..20_u64).into_par_iter().map(|seed| {
            let text = format!(
                "device = \"galaxy-s22\"\nmodel = \"mobilenetv2\"\nbatch = 32\npolicy = \"original\"\nstack = \"mnn-2\"\n\
                 system = \"android-testbed\"\ntrainer_adj = -1000\ncores = \"big:4\"\nfrequency = \"highest\"\n\
                 iterations = 3\nseed = {seed}\n[system_set]\n\"reclaim.extent\" = \"{extent} KiB\"\n"
            );
            let scenario = Scenario::with(None, "run.toml", &text).unwrap();
            let record = Plan::new(&scenario, &Cache::default()).unwrap().run().unwrap();
            record.phone.unwrap().run.time.seconds()
        });
        starts.sum::<f64>() / 4.0
    };
    let usual = mean(64);
    // Starts differ by up to a twentieth either way at any extent, and the means of four of them by less than a tenth.
    for extent in [32, 16] {
        let finer = mean(extent);
        assert!((finer / usual - 1.0).abs() < 0.1, "{finer} s at {extent} KiB, {usual} at 64");
    }
}

#[test]
fn figure_1c_stacks_the_phone_and_the_process_as_runs_find_them() {
    let made = make(&["figure1c"]);
    // On the idle phone, the system's own memory is unavailable except for its files beyond the low watermark, and so
    // are the memory of cached apps and the reserve of the high watermark.
    let system = load_system("android-testbed").unwrap();
    let resident = system.resident(&load("oneplus-10-pro").unwrap());
    let watermarks = system.watermarks(&load("oneplus-10-pro").unwrap());
    let cached = system.constants.resident.cached.value;
    let held = resident.kernel + resident.anonymous + cached;
    for (model, id) in [("mobilenetv2", "mobilenetv2-batch-32"), ("bert-base", "bert-batch-8")] {
        let row = made.row("figure1c", &[("network", model)]);
        let parts = ["system_gb", "state_gb", "saved_gb", "rest_gb"].map(|part| number(row, part));
        let beyond = parts[0] - held.as_f64() / 1e9;
        // A megabyte for rounding up to extents.
        let reserve = (watermarks.high + watermarks.low).as_f64() / 1e9;
        assert!((0.0..=reserve + 1e-3).contains(&beyond), "{row:?}, a reserve of {reserve}");
        let total = made.simulated(&format!("figure1c/{id}/mnn/memory"));
        assert!(near(parts.iter().sum(), total), "{row:?}");
        // The phone has enough memory, so that all starts give the same result except for the free reserve; besides
        // tensors and the idle system, a process has gaps in its pool.
        let [least, most] = ["least_gb", "most_gb"].map(|column| number(row, column));
        // A cell has six digits.
        assert!(least <= total + 1e-4 && total <= most + 1e-4 && most - least < 0.1, "{row:?}");
    }
    // MobileNetV2: 3,504,872 weights, each with a momentum, mean and variance of 17,056 channels, 4 B a value.
    let state = number(made.row("figure1c", &[("network", "mobilenetv2")]), "state_gb");
    assert!(near(state, f64::from(4 * (2 * 3_504_872 + 2 * 17_056)) / 1e9), "{state}");
}

#[test]
fn figure_5_is_longer_by_what_is_computed_again() {
    let made = make(&["figure5"]);
    // Values of the optimiser's state, one a weight.
    let networks = [("mobilenetv2", "mobilenetv2-batch-32", 3_504_872_u32), ("bert-base", "bert-batch-8", 109_483_778)];
    let mut enough = Vec::new();
    for (table, phone) in [("figure5a", "s22"), ("figure5b", "redmi-note10")] {
        for (model, id, weights) in networks {
            let rows: Vec<&Row> = made.tables[table].iter().filter(|row| row["network"] == model).collect();
            let (first, last) = (rows[0], rows[rows.len() - 1]);
            // MNN's pool is larger than the planner's budget, so that memory is not short at first.
            assert!(number(last, "recomputed_s") > number(first, "recomputed_s"), "{first:?}");
            let undisturbed = number(first, "time_s") - number(first, "recomputed_s");
            assert_eq!(number(last, "budget_mb"), 1000.0);
            for row in &rows {
                let state = number(row, "budget_with_state_mb") - number(row, "budget_mb");
                assert!(near(state, 4.0 * f64::from(weights) / 1e6), "{row:?}");
                // Recomputation reaches every budget here without other means: apart from it, an
                // iteration takes its usual time.
                assert_eq!(row["micro_batches"], "1");
                let [time, again] = ["time_s", "recomputed_s"].map(|column| number(row, column));
                assert!(near(time - again, undisturbed), "{row:?}");
                assert!(near(number(row, "overhead"), time / undisturbed));
            }
            assert!(number(last, "overhead") > number(first, "overhead"));
            let cell = format!("figure5{}/{phone}-{id}/melon/latency-overhead", &table[7..]);
            assert!(near(made.simulated(&cell), number(last, "overhead")));
            enough.push((model, number(first, "budget_with_state_mb"), undisturbed));
        }
    }
    // The slower phone needs the same memory and takes longer.
    let [a, b, c, d] = enough.try_into().unwrap();
    assert!(a.1 == c.1 && b.1 == d.1 && a.2 < c.2 && b.2 < d.2);
    // Both rows of figure 5a are fit, 2.3 and 4.8: the mean of the two is the baseline of every row.
    for cell in ["figure5a/s22-mobilenetv2-batch-32", "figure5b/redmi-note10-mobilenetv2-batch-32"] {
        assert_eq!(made.cells[&format!("{cell}/melon/latency-overhead")]["null"], "3.55");
    }
}

#[test]
fn table_1_is_layouts_of_all_that_is_computed_again() {
    let made = make(&["table1", "figure1c"]);
    // Five networks at six budgets; the row's budget is half.
    assert_eq!(made.tables["table1"].len(), 30);
    for row in made.tables["table1"].iter().filter(|row| row["budget_percent"] == "50") {
        let cell = &made.cells[&format!("table1/{}/recomputation/layout-transformation-share", row["network"])];
        assert_eq!(cell["null"], "19.7");
        let [layout, other] = ["layout_ms", "other_ms"].map(|column| number(row, column));
        if cell["verdict"] == "not-modelled" {
            // No plan: then the reason names a budget that would be enough.
            assert!(layout == 0.0 && other == 0.0 && cell["reason"].contains("least memory budget"), "{cell:?}");
        } else {
            assert!(layout >= 0.0 && other > 0.0);
            assert!(near(number(cell, "simulated"), layout / (layout + other) * 100.0), "{row:?}");
        }
    }
    // Saved tensors get half of the memory that they take if nothing is dropped, which figure 1c shows as a stack.
    for model in [["mobilenetv2", "mobilenetv2"], ["bert", "bert-base"]] {
        let half = number(made.row("table1", &[("network", model[0]), ("budget_percent", "50")]), "budget_mb");
        assert!(
            near(2.0 * half, number(made.row("figure1c", &[("network", model[1])]), "saved_gb") * 1e3),
            "{model:?}"
        );
    }
}

#[test]
fn the_phones_of_a_federation_are_those_of_the_paper() {
    let made = make(&["figure14"]);
    let share = |panel, series| made.row("figure14", &[("panel", panel), ("series", series)]);
    // Section 2.1's mix, drawn for 658 phones.
    for (memory, percent) in [("4 GB", 15.0), ("6 GB", 25.0), ("8 GB", 30.0), ("12 GB", 25.0), ("16 GB", 5.0)] {
        assert!((number(share("memory", memory), "share_percent") - percent).abs() < 5.0, "{memory}");
    }
    // The least divergence of a client's classes from an even distribution: with 600 classes more than with 4.
    let of_set = |set: &'static str| {
        made.tables["figure14"].iter().filter(move |row| row["panel"] == "divergence" && row["series"] == set)
    };
    let least = |set| of_set(set).map(|row| number(row, "value")).fold(f64::INFINITY, f64::min);
    assert!(least("OpenImage") > least("20News") && least("20News") > least("AG News"));
}
