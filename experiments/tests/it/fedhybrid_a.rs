//! FedHybrid's figures 4, 7, 11 and 12 and section 4.3: the contents of their tables follow from the properties of
//! the phone and its users.

use std::collections::{BTreeMap, HashSet};

use crate::support::reproduce_into;
use haversack_devices::device::StorageConstants;
use haversack_devices::{load, load_system};
use haversack_traces::footprint::FootprintTable;

type Row = BTreeMap<String, String>;

/// The rows of a table.
struct Rows(Vec<Row>);

impl Rows {
    fn read(path: &std::path::Path) -> Self {
        let mut reader = csv::Reader::from_path(path).unwrap();
        Self(reader.deserialize().map(Result::unwrap).collect())
    }

    /// Numbers of the column `of` in the rows whose `column` is `value`.
    fn numbers(&self, column: &str, value: &str, of: &str) -> Vec<f64> {
        self.0.iter().filter(|row| row[column] == value).map(|row| number(row, of)).collect()
    }
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap()
}

/// The table of `fedhybrid/artefact` under `seed`, and its cells by the ends of their ids.
fn run(artefact: &str, seed: u64) -> (Rows, BTreeMap<String, Row>) {
    let out = tempfile::tempdir().unwrap();
    let selectors = vec![format!("fedhybrid/{artefact}/")];
    reproduce_into(out.path(), selectors, seed, 1);
    let cells = Rows::read(&out.path().join("cells.csv")).0;
    let place = format!("fedhybrid/{artefact}/");
    let own = cells.into_iter().filter_map(|row| Some((row["id"].strip_prefix(&place)?.to_owned(), row)));
    let table = out.path().join(format!("fedhybrid/{artefact}.csv"));
    let rows = if table.exists() { Rows::read(&table) } else { Rows(Vec::new()) };
    (rows, own.collect())
}

fn storage() -> StorageConstants {
    load("galaxy-s22").unwrap().constants.storage.clone().unwrap()
}

/// The 4 KiB pages of the file of figure 4.
const PAGES: f64 = 128e6 / 4096.0;

#[test]
fn figure_4a_what_a_slower_core_adds_is_its_own_work() {
    let (rows, cells) = run("figure4a", 0);
    assert_eq!(cells["ufs-3.1-128-mb/faster-core,-lower-latency/io-latency"]["simulated"], "true");
    let costs = load_system("android").unwrap().constants.costs.clone();
    let (page, command) = (costs.page.value.0 * 1e-6, costs.command.value.0 * 1e-6);
    let of = |direction, column| rows.numbers("direction", direction, column);
    // Three classes of two operating points each, the slowest first, for each direction.
    let speeds = of("write", "coremark_per_s");
    assert_eq!((speeds.len(), rows.0.len()), (6, 12));
    assert!(speeds.is_sorted());
    // A write first copies every page on the core, and its commands then fill the queue behind the driver: the
    // difference between two cores is the pages' work at either speed, and the driver's for the first command.
    let writes = of("write", "latency_ms");
    for (pair, times) in speeds.windows(2).zip(writes.windows(2)) {
        let added = (PAGES * page + command) * (1.0 / pair[0] - 1.0 / pair[1]) * 1e3;
        assert!((times[0] - times[1] - added).abs() < 0.1, "{pair:?}: {times:?}, {added} ms");
    }
    // A little core at its lowest clock is slower than the flash, which idles in between: a read of 128 MB takes as
    // long as the driver needs for its 977 commands of 128 KiB, plus the flash's time for the last one, less than 1 ms.
    let files = &load_system("android-testbed").unwrap().constants.files;
    let commands = (128e6 / files.read_ahead.value.as_f64()).ceil();
    let work = (PAGES * page + commands * command) / speeds[0] * 1e3;
    let reads = of("read", "latency_ms");
    assert!(reads[0] > work && reads[0] < work + 1.0, "{} ms, of which the core {work}", reads[0]);
    // A fast core is not: with its work alone, the read would be over sooner.
    assert!(reads[5] > 1.5 * work * speeds[0] / speeds[5], "{reads:?}");
}

#[test]
fn figure_4b_apps_take_more_of_the_flash_than_their_bytes_and_less_than_their_share() {
    let (rows, cells) = run("figure4b", 0);
    assert_eq!(cells["ufs-3.1-128-mb/background-apps-raise-latency/io-latency"]["simulated"], "true");
    let storage = storage();
    let apps = 5.0 * load_system("android-testbed").unwrap().constants.background.rate.value.0;
    let writes = rows.numbers("direction", "write", "latency_ms");
    assert_eq!(writes.len(), 6);
    assert!(writes.is_sorted());
    // The part of a write in which the flash is busy: 128 MB at the rate of all commands together. Meanwhile apps write
    // single pages. If these cost only their bytes, they would add the bytes' share of that time; if they had the flash
    // to themselves whenever they occupy it, the file would get only the rest of the time.
    let rate = storage.sequential_write.value.0;
    let busy = 128e6 / rate * 1e3;
    let (least, most) = (busy * apps / rate, busy / (1.0 - apps / storage.random_write.value.0) - busy);
    let added = writes[5] - writes[0];
    assert!(added > least && added < most, "{least} < {added} < {most} ms");
}

#[test]
fn section_4_3_states_what_was_put_in_and_files_stay_below() {
    let (rows, cells) = run("section4.3", 0);
    let storage = storage();
    let sheets = [("read", storage.datasheet_read), ("write", storage.datasheet_write)];
    for (direction, sheet) in sheets {
        let cell = &cells[&format!("ufs-3.1/{direction}/throughput")];
        assert_eq!(cell["verdict"], "input");
        assert_eq!(number(cell, "simulated"), sheet.unwrap().value.0 / 1e6);
        // The vendor's rate, then the rate of all commands together, then that of one file.
        let rates = rows.numbers("direction", direction, "mb_s");
        assert!(rates.len() == 3 && rates.is_sorted_by(|above, below| above > below), "{rates:?}");
    }
}

#[test]
fn figure_7_is_the_reward_over_the_time_and_swapping_pays_the_flash() {
    let (rows, cells) = run("figure7", 0);
    let tensors: HashSet<_> = rows.0.iter().map(|row| (row["operator"].clone(), row["mb"].clone())).collect();
    assert_eq!((tensors.len(), rows.0.len()), (12, 36), "one of each operator and size, by three techniques");
    // A tensor that is only reordered counts for the operator that computed it.
    let made_by = |operator: &str| rows.0.iter().any(|row| row["operator"] == operator);
    assert!(made_by("convolution") && !made_by("convert"));
    let storage = storage();
    let [out, back] = [storage.sequential_write.value.0, storage.sequential_read.value.0].map(|rate| rate / 1e6);
    let mut rewards = Vec::new();
    let (mut lowest, mut above) = (true, true);
    for tensor in rows.0.chunks(3) {
        for row in tensor {
            // Equation 5: MB saved, times ms unused, over ms spent, is MB s per s.
            let spent = number(row, "purge_ms") + number(row, "regain_ms");
            let expected = number(row, "saved_mb") * number(row, "unused_ms") / spent;
            assert!((number(row, "mps_mb_s_per_s") / expected - 1.0).abs() < 1e-9, "{row:?}");
            assert_eq!(row["unused_ms"], tensor[0]["unused_ms"]);
        }
        let [swapping, again, compressed] = tensor else { panic!("{tensor:?}") };
        // 154 MB at 750 MB/s out and 1,750 MB/s back take 206 and 88 ms.
        let megabytes = number(swapping, "mb");
        assert!((number(swapping, "purge_ms") - megabytes / out * 1e3).abs() < 1e-5);
        assert!((number(swapping, "regain_ms") - megabytes / back * 1e3).abs() < 1e-5);
        // Recomputation purges at no cost and saves all bytes; a codec keeps some.
        assert_eq!((number(again, "purge_ms"), number(again, "saved_mb")), (0.0, megabytes));
        assert!(number(compressed, "saved_mb") < megabytes);
        rewards.push(megabytes * number(again, "unused_ms"));
        let [swapping, again, compressed] = [swapping, again, compressed].map(|row| number(row, "mps_mb_s_per_s"));
        lowest &= swapping < again.min(compressed);
        let product = ["convolution", "matmul"].contains(&tensor[0]["operator"].as_str());
        above &= !product || compressed > again;
    }
    assert!(rewards.is_sorted_by(|before, after| before >= after), "{rewards:?}");
    let simulated = |id: &str| cells[id]["simulated"] == "true";
    assert_eq!(simulated("mobilenetv2-tensors/swapping-lowest-mps-on-every-tensor/mps"), lowest);
    assert_eq!(simulated("convolution-and-matmul-tensors/compression-above-recomputation/mps"), above);
}

#[test]
fn figure_11a_is_of_the_users_that_are_nearest_to_each_other() {
    let (rows, cells) = run("figure11a", 1);
    let means: Vec<f64> = rows.0.iter().map(|row| number(row, "mean_s")).collect();
    assert_eq!(means.len(), 150);
    assert!(means.is_sorted());
    // 70 % of 150 users are 105: the narrowest of the 46 ranges of 105 users, by checking all of them.
    let narrowest = means.windows(105).min_by(|a, b| (a[104] - a[0]).total_cmp(&(b[104] - b[0]))).unwrap();
    let mean = narrowest.iter().sum::<f64>() / 105.0;
    let cell = &cells["carat/sessions/mean-duration"];
    assert!((number(cell, "simulated") - mean).abs() < 1e-3, "{mean}");
    // The sessions of the usage model were fitted to only these two rows, so they do not predict it.
    assert_eq!(cell["verdict"], "input");
    // It is fitted, so it does not count as a prediction.
    assert_eq!(cells["carat/sessions/share-between-126-and-412-s"]["verdict"], "input");
}

#[test]
fn figure_11b_runs_from_a_tenth_of_the_sessions_to_nine() {
    let (rows, cells) = run("figure11b", 0);
    let shares: Vec<f64> = rows.0.iter().map(|row| number(row, "share_percent")).collect();
    assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-9);
    // The first number of apps at or below which a tenth, or nine tenths, of all sessions are.
    let first = |percent: f64| {
        let mut below = 0.0;
        let up_to = rows.0.iter().zip(&shares).find(|(_, share)| {
            below += **share;
            below >= percent
        });
        up_to.unwrap().0["background_apps"].clone()
    };
    let cell = &cells["carat/sessions/background-apps"];
    assert_eq!(cell["simulated"], format!("{}..{}", first(10.0), first(90.0)));
}

#[test]
fn figure_12_spikes_when_an_app_comes_in_front_and_then_stands_still() {
    let (rows, _) = run("figure12", 0);
    assert_eq!(rows.0.len(), 600, "a row a second");
    let own = load_system("android-testbed").unwrap().resident(&load("galaxy-s22").unwrap()).total().as_f64() / 1e9;
    let apps = |row: &Row| number(row, "app_anonymous_mb") + number(row, "app_file_mb");
    for row in &rows.0 {
        // The memory in use is the system's own and that of the apps.
        assert!((number(row, "in_use_gb") - own - apps(row) / 1e3).abs() < 1e-9);
    }
    let table = FootprintTable::built_in().unwrap();
    // No launch needs extra memory for longer than the table's longest span, plus a second for
    // the step in which it ends.
    let settled = table.launch().most_s.seconds() as usize + 1;
    let (mut stretches, mut spikes) = (0, 0);
    for stretch in rows.0.chunk_by(|a, b| a["front"] == b["front"]) {
        let in_front = !stretch[0]["front"].is_empty();
        stretches += usize::from(in_front);
        if stretch.len() > settled {
            let last = apps(&stretch[stretch.len() - 1]);
            assert!(stretch[settled..].iter().all(|row| apps(row) == last), "{}", stretch[0]["front"]);
            spikes += usize::from(in_front && apps(&stretch[0]) > last);
        }
    }
    assert!(stretches >= 6 && spikes >= 3, "{spikes} spikes in {stretches} stretches");
}

#[test]
fn section_5_5_counts_looks_at_memory() {
    let (rows, cells) = run("section5.5", 0);
    let services = load_system("android-testbed").unwrap().constants.services;
    for row in &rows.0 {
        // This many checks a second, each a reading on the little core and a call over binder.
        let [every, reading, call, share] =
            ["every_ms", "reading_us", "call_us", "share_percent"].map(|column| number(row, column));
        assert!((call - services.binder_call.value.seconds() * 1e6).abs() < 1e-6, "{call}");
        assert!((share - (reading + call) / (every * 1e3) * 100.0).abs() < 1e-9, "{row:?}");
    }
    let cell = &cells["s22/predictor/cpu-share"];
    assert!(!cell["simulated"].is_empty() && cell["reason"].contains("/proc/meminfo"), "{cell:?}");
}
