//! The statistics of a table, for people.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use haversack_reports::text_table::{Column, TextTable};

use super::report_text::{coverage, from_to, gaps, shares};
use super::sessions::Sessions;
use super::stats::{AppStats, Distribution, Of, Stats};

/// Counters that are written out; of more, only how many.
const WRITTEN_OUT: usize = 60;

/// The statistics as a text.
pub(super) fn text(path: &Path, stats: &Stats) -> String {
    let mut text = format!("{}: {} rows, {} samples or events", path.display(), stats.rows, stats.samples);
    if stats.reversals > 0 {
        // Writing to a text cannot fail.
        let _ = write!(text, ", {} of them earlier than the one before", stats.reversals);
    }
    text.push('\n');
    match &stats.of {
        Of::Apps(apps) => text.push_str(&of_apps(apps)),
        Of::Counters(counters, availability) => {
            let number = Column::right(18);
            let mut table = TextTable::new([Column::left(32), Column::right(10), number, number, number]);
            table.row(["counter", "rows", "least", "mean", "most"]);
            for (name, of) in counters.iter().take(WRITTEN_OUT) {
                let [rows, least, most] = [of.count.to_string(), of.min.to_string(), of.max.to_string()];
                table.row([name.clone(), rows, least, format!("{:.1}", of.mean()), most]);
            }
            let _ = write!(text, "\n{table}");
            if counters.len() > WRITTEN_OUT {
                let _ = writeln!(text, "and {} more; --format json has them all", counters.len() - WRITTEN_OUT);
            }
            if let Some(known) = availability {
                let share = 100.0 * known.available.seconds() / known.covered.seconds();
                let _ = writeln!(
                    text,
                    "\navailable to training, on a charger and on no mobile network: {share:.1}% of {:.1} h, in {} stretches",
                    known.covered.seconds() / 3600.0,
                    known.stretches
                );
            }
        }
    }
    text + &gaps("samples or events of a user apart", &stats.gaps) + &coverage(&stats.users)
}

fn of_apps(apps: &AppStats) -> String {
    let mut text = String::new();
    let named = |counts: &BTreeMap<&'static str, u64>| {
        let mut counts: Vec<(String, u64)> = counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        counts.sort_by_key(|(_, count)| Reverse(*count));
        counts
    };
    let scores: Vec<(String, u64)> = apps.adjs.iter().map(|(adj, count)| (adj.to_string(), *count)).collect();
    for (title, counts) in [
        ("rows by source", named(&apps.sources)),
        ("rows by confidence", named(&apps.confidences)),
        ("rows by oom_score_adj, the least likely to be killed first", scores),
    ] {
        let _ = write!(text, "\n{title}\n{}", shares(&counts));
    }
    if apps.processes.count() > 0 {
        let rows =
            [("processes", &apps.processes), ("in front", &apps.in_front), ("in the background", &apps.background)];
        let _ = write!(text, "\n{}", quantiles("a sample has", rows.map(|(name, of)| (name, of, of.mean()))));
    }
    match &apps.sessions {
        Some(sessions) => text.push_str(&of_sessions(sessions)),
        None => text.push_str("\nsamples so far apart say nothing of sessions\n"),
    }
    text
}

fn quantiles<const N: usize>(title: &str, rows: [(&str, &Distribution, f64); N]) -> TextTable {
    let mut table = TextTable::new(std::iter::once(Column::left(26)).chain([Column::right(8); 6]));
    table.row([title, "mean", "p25", "median", "p75", "p90", "most"]);
    for (name, of, mean) in rows {
        let at = [0.25, 0.5, 0.75, 0.9, 1.0].map(|share| of.quantile(share).unwrap_or_default().to_string());
        table.row([format!("  {name}"), format!("{mean:.1}")].into_iter().chain(at));
    }
    table
}

fn of_sessions(sessions: &Sessions) -> String {
    let (count, pause) = (sessions.statistics.count(), sessions.pause.seconds());
    let mut text = format!("\nsessions ({count}): some app in front, with pauses under {pause} s\n");
    if sessions.statistics.cut > 0 {
        let _ =
            writeln!(text, "  {} of them end with their last row, because no row ends them", sessions.statistics.cut);
    }
    let lengths = ("length, s", &sessions.lengths, sessions.mean_s());
    let behind = ("apps behind", &sessions.background, sessions.background.mean());
    text += &quantiles("", [lengths, behind]).to_string();
    text += "\nsessions by length\n";
    text += &shares(&from_to(sessions.bins()));
    text += "\nas FedHybrid counts them\n";
    for (name, share) in sessions.typical() {
        let _ = writeln!(text, "  {name:34}{:5.1}%", 100.0 * share);
    }
    text
}
