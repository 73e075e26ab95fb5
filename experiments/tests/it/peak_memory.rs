//! The memory that commands use, compared with `docs/limits.md`.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use tempfile::tempdir;

use crate::support::command;

/// The commands of the table and their megabytes.
fn listed(page: &str) -> Vec<(String, f64)> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `haversack "));
    let row = |row: &str| {
        let (line, bound) = row.split_once("` | ")?;
        Some((line.to_owned(), bound.strip_suffix(" MB |")?.parse().ok()?))
    };
    rows.filter_map(row).collect()
}

/// The peak memory of `line` in megabytes, polled from the kernel until it ends.
fn peak(root: &Path, line: &str) -> f64 {
    let mut child = command(root, &line.split(' ').collect::<Vec<_>>())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut most = 0.0;
    loop {
        let told = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let high = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = high.and_then(|high| high.trim().trim_end_matches(" kB").parse::<f64>().ok());
        most = kib.map_or(most, |kib| kib * 1024.0 / 1e6);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{line}: {status}");
            return most;
        }
        sleep(Duration::from_millis(2));
    }
}

#[test]
fn commands_take_no_more_memory_than_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let listed = listed(&fs::read_to_string(root.join("docs/limits.md")).unwrap());
    assert!(listed.len() >= 13, "{listed:?}");
    for (number, (line, bound)) in listed.iter().enumerate() {
        let folder = tempdir().unwrap();
        // The commands do not create parent folders.
        let out = folder.path().join(number.to_string());
        if line.contains("OUT/") {
            fs::create_dir(&out).unwrap();
        }
        let found = peak(root, &line.replace("OUT", &out.display().to_string()));
        assert!(found > 1.0 && found <= *bound, "{line}: {found:.0} MB, at most {bound}");
    }
}
