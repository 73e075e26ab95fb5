//! The statistics of a table, for people.

use std::fmt::Write as _;
use std::path::Path;

use super::report_text::{coverage, gaps};
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
        Of::Counters(counters) => {
            let _ = writeln!(text, "\n{:32}{:>10}{:>18}{:>18}{:>18}", "counter", "rows", "least", "mean", "most");
            for (name, spread) in counters.iter().take(WRITTEN_OUT) {
                let (count, least, mean, most) = (spread.count, spread.min, spread.mean(), spread.max);
                let _ = writeln!(text, "{name:32}{count:>10}{least:>18}{mean:>18.1}{most:>18}");
            }
            if counters.len() > WRITTEN_OUT {
                let _ = writeln!(text, "and {} more; --format json has them all", counters.len() - WRITTEN_OUT);
            }
        }
    }
    text + &gaps("samples or events of a user apart", &stats.gaps) + &coverage(&stats.users)
}

fn of_apps(apps: &AppStats) -> String {
    let mut text = String::new();
    let mut list = |title: &str, counts: &mut dyn Iterator<Item = (String, u64)>| {
        let _ = writeln!(text, "\n{title}");
        for (name, count) in counts {
            let _ = writeln!(text, "  {name:24}{count:>12}");
        }
    };
    let named = |(name, count): (&&'static str, &u64)| ((*name).to_owned(), *count);
    list("rows by source", &mut apps.sources.iter().map(named));
    list("rows by confidence", &mut apps.confidences.iter().map(named));
    list("rows by oom_score_adj", &mut apps.adjs.iter().map(|(adj, count)| (adj.to_string(), *count)));
    if apps.processes.count() > 0 {
        let _ = writeln!(
            text,
            "\na sample has{:>22}{:>8}{:>8}{:>8}{:>8}{:>8}",
            "mean", "p25", "median", "p75", "p90", "most"
        );
        for (name, distribution) in
            [("processes", &apps.processes), ("in front", &apps.in_front), ("in the background", &apps.background)]
        {
            let _ = writeln!(text, "  {name:24}{}", quantiles(distribution, distribution.mean()));
        }
    }
    match &apps.sessions {
        Some(sessions) => text.push_str(&of_sessions(sessions)),
        None => text.push_str("\nsamples so far apart say nothing of sessions\n"),
    }
    text
}

fn quantiles(of: &Distribution, mean: f64) -> String {
    let at = |share| of.quantile(share).unwrap_or_default();
    format!("{mean:8.1}{:8}{:8}{:8}{:8}{:8}", at(0.25), at(0.5), at(0.75), at(0.9), at(1.0))
}

fn of_sessions(sessions: &Sessions) -> String {
    let (count, pause) = (sessions.statistics.count(), sessions.pause.seconds());
    let mut text = format!("\nsessions ({count}): some app in front, with pauses under {pause} s\n");
    if sessions.statistics.cut > 0 {
        let _ =
            writeln!(text, "  {} of them end with their last row, because no row ends them", sessions.statistics.cut);
    }
    let _ = writeln!(text, "  {:24}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}", "", "mean", "p25", "median", "p75", "p90", "most");
    let _ = writeln!(text, "  {:24}{}", "length, s", quantiles(&sessions.lengths, sessions.mean_s()));
    let _ = writeln!(text, "  {:24}{}", "apps behind", quantiles(&sessions.background, sessions.background.mean()));
    for (name, count_in) in sessions.bins() {
        let _ = writeln!(text, "  {name:24}{count_in:>8}  {:5.1}%", 100.0 * count_in as f64 / count.max(1) as f64);
    }
    for (name, share) in sessions.typical() {
        let _ = writeln!(text, "  {name:34}{:5.1}%", 100.0 * share);
    }
    text
}
