//! The report of an import, as text.

use std::fmt::Write as _;
use std::path::PathBuf;

use haversack_devices::Bytes;
use haversack_reports::{Column, TextTable};
use haversack_traces::import::{Coverage, Gaps, Kind, Report, Tally};

use crate::quantities::more;

/// Users that are listed; of more, only the number is given.
const WRITTEN_OUT: usize = 10;
/// Where to find the items left out.
pub(super) const IN_JSON: &str = "; --format json has them all";

/// The report as a text.
pub(super) fn text(kind: Kind, report: &Report, tables: &[(PathBuf, u64)]) -> String {
    let mut text = String::new();
    for (path, rows) in tables {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}: {rows} rows", path.display());
    }
    let read = format!("{} lines, {} unpacked, of {} files", report.lines, Bytes(report.bytes), report.files);
    let rows = [
        ("kind", kind.word().to_owned()),
        ("read", read),
        ("samples", report.samples.to_string()),
        ("bad lines", report.bad_lines.to_string()),
        ("other lines", format!("{} ({} blank)", report.other_lines + report.blank_lines, report.blank_lines)),
        ("merged processes", report.merged_processes.to_string()),
    ];
    text.push('\n');
    for (name, value) in rows {
        let _ = writeln!(text, "{name:22}{value}");
    }
    for (name, tally) in [
        ("unmapped priorities", &report.unmapped_priorities),
        ("battery", &report.battery),
        ("memory read by", &report.memory_clients),
    ] {
        text.push_str(&tallied(name, tally));
    }
    if report.untracked_samples > 0 {
        let _ = writeln!(text, "{:22}{} samples of further users", "not tracked", report.untracked_samples);
    }
    text.push_str(&findings(report));
    text.push_str(&gaps("samples of a user apart", &report.gaps));
    text.push_str(&coverage(&report.users));
    for note in &report.notes {
        let _ = writeln!(text, "\nnote: {note}");
    }
    text
}

fn tallied(name: &str, tally: &Tally) -> String {
    let mut text = String::new();
    let others = (tally.others > 0).then_some(("others", tally.others));
    let names = tally.names.iter().map(|(name, count)| (name.as_str(), *count));
    for (place, (value, count)) in names.chain(others).enumerate() {
        let name = if place == 0 { name } else { "" };
        let value = if value.is_empty() { "(none)" } else { value };
        let _ = writeln!(text, "{name:22}{count} {value}");
    }
    text
}

fn findings(report: &Report) -> String {
    let mut text = String::new();
    for (reason, findings) in &report.findings {
        let bad = if reason.is_bad() { "bad: " } else { "" };
        let _ = writeln!(text, "\n{bad}{} ({})", reason.words(), findings.count);
        for finding in &findings.first {
            let _ = writeln!(text, "  {finding}");
        }
        let more = findings.count.saturating_sub(findings.first.len() as u64);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more");
        }
    }
    text
}

/// The gaps, one bin per line; empty if there are none.
pub(super) fn gaps(title: &str, gaps: &Gaps) -> String {
    let bins: Vec<(String, u64)> = gaps.named().map(|(name, count)| (name.to_owned(), count)).collect();
    if bins.iter().all(|(_, count)| *count == 0) {
        String::new()
    } else {
        format!("\n{title}\n{}", shares(&from_to(bins)))
    }
}

/// Bins named by their upper bound (`under 30 s`), renamed by both of their bounds.
pub(super) fn from_to(bins: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let mut from = "0".to_owned();
    let called = |(name, count): (String, u64)| match name.strip_prefix("under ") {
        Some(to) => (format!("{} to {to}", std::mem::replace(&mut from, to.to_owned())), count),
        None => (name, count),
    };
    bins.into_iter().map(called).collect()
}

/// The length of a 100% bar, in characters.
const BAR: f64 = 40.0;

/// Each count with its share of all in percent, and a bar that would fill its line at 100%.
pub(super) fn shares(counts: &[(String, u64)]) -> String {
    let all = counts.iter().map(|(_, count)| count).sum::<u64>().max(1) as f64;
    let (word, number) = (Column::left(24).fitted(), Column::right(8).fitted().after(2));
    let mut table = TextTable::new([word, number, number, Column::left(0).after(2)]).indented(2);
    for (name, count) in counts {
        let share = *count as f64 / all;
        let bar = "#".repeat((BAR * share).round() as usize);
        table.row([name.clone(), count.to_string(), format!("{:.1}%", 1e2 * share), bar]);
    }
    table.to_string()
}

/// The users, the first ones in full.
pub(super) fn coverage(users: &[Coverage]) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "\nusers ({})", users.len());
    if users.is_empty() {
        return text;
    }
    let [samples, days, time, gap] = [10, 7, 16, 12].map(Column::right);
    let mut table = TextTable::new([Column::left(24), samples, days, time, time, gap]).indented(2);
    table.row(["", "samples", "days", "first_s", "last_s", "gap_h"]);
    for user in users.iter().take(WRITTEN_OUT) {
        let name: String = user.user.chars().take(22).collect();
        let [first, last] = [user.first_s, user.last_s].map(|time| time.to_string());
        let gap = format!("{:.1}", user.longest_gap_s / 3600.0);
        table.row([name, user.samples.to_string(), user.days.to_string(), first, last, gap]);
    }
    let _ = write!(text, "{table}");
    text + &more("  ", users.len(), WRITTEN_OUT, IN_JSON)
}
