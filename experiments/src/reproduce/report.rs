//! What a terminal is told: how each role came out, then what did not match, worst first.

use std::fmt::Write as _;

use haversack_reports::text_table::{Column, TextTable};

use super::answer::Answer;
use super::cells::{ComparedCell, Verdict};
use super::reference::Claim;
use super::summary::{COLUMNS, Tally, Total, counted, distance};
use super::task::Finished;

/// Rows that did not match, at most.
const MISSES: usize = 20;
/// Reasons for having no answer, at most.
const REASONS: usize = 12;

/// The report as text.
pub(super) fn text(tallies: &[Tally], cells: &[ComparedCell], finished: &[Finished<'_>], remarks: &[String]) -> String {
    let mut text = format!("{}\n\n", Total::of(cells));
    roles(&mut text, tallies);
    for finished in finished.iter().filter(|finished| !finished.summary.is_empty()) {
        let _ = writeln!(text, "\n{}/{}", finished.paper, finished.artefact);
        for line in &finished.summary {
            let _ = writeln!(text, "  {line}");
        }
    }
    misses(&mut text, cells);
    unanswered(&mut text, cells);
    for remark in remarks {
        let _ = writeln!(text, "\n{remark}");
    }
    text
}

fn roles(text: &mut String, tallies: &[Tally]) {
    let word = Column::left(0).fitted();
    let number = Column::right(0).fitted().after(2);
    let mut table = TextTable::new([word, word.after(2), number, number, number, number, number, number]);
    table.row(COLUMNS);
    for tally in tallies {
        table.row(tally.figures());
    }
    text.push_str(&table.to_string());
    let wins: Vec<String> = tallies.iter().filter_map(Tally::null_that_wins).collect();
    if !wins.is_empty() {
        let _ = writeln!(text, "\n{}", wins.join("\n"));
    }
}

fn misses(text: &mut String, cells: &[ComparedCell]) {
    let missed = |cell: &&ComparedCell| matches!(cell.verdict, Verdict::Off | Verdict::Fails);
    let mut missed: Vec<&ComparedCell> = cells.iter().filter(missed).collect();
    if missed.is_empty() {
        return;
    }
    missed.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let _ = writeln!(text, "\n{} not match, worst first:", counted(missed.len(), "row does", "rows do"));
    for cell in missed.iter().take(MISSES) {
        let error = cell.error.map_or_else(String::new, |error| format!("{:+.1}%", error * 100.0));
        let verdict = cell.verdict.to_string();
        let _ = writeln!(text, "  {verdict:<5} {error:>8}  {}: {}", cell.id, beside(cell));
    }
    more(text, missed.len(), MISSES);
}

/// "2531 MB, the paper 908"; of an order, whose words are the paper's, that it is false.
fn beside(cell: &ComparedCell) -> String {
    if let (Claim::Order(words), Some(Answer::Order(holds))) = (&cell.claim, &cell.answer) {
        let words = if words.is_empty() { String::new() } else { format!(" '{words}'") };
        return format!("the order claim{words} is {holds}");
    }
    let unit = if cell.unit.is_empty() { String::new() } else { format!(" {}", cell.unit) };
    let paper = cell.paper_value();
    let paper = if paper.is_empty() { paper } else { format!(", the paper {paper}") };
    format!("{}{unit}{paper}", cell.simulated())
}

fn unanswered(text: &mut String, cells: &[ComparedCell]) {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for cell in cells.iter().filter(|cell| !cell.answered()) {
        match reasons.iter_mut().find(|(reason, _)| *reason == cell.reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((&cell.reason, 1)),
        }
    }
    if reasons.is_empty() {
        return;
    }
    let rows: usize = reasons.iter().map(|(_, count)| count).sum();
    let _ = writeln!(text, "\n{} not modelled yet:", counted(rows, "row is", "rows are"));
    for (reason, count) in reasons.iter().take(REASONS) {
        let _ = writeln!(text, "  {count:>4}  {reason}");
    }
    more(text, reasons.len(), REASONS);
}

fn more(text: &mut String, all: usize, shown: usize) {
    if all > shown {
        let _ = writeln!(text, "  … and {} more in cells.csv", all - shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::answer::Answer;
    use crate::reproduce::reference::{Reference, ReferenceRow};
    use crate::reproduce::summary::tallies;

    #[test]
    fn the_worst_miss_comes_first_and_reasons_are_counted() {
        let reference = Reference::load().unwrap();
        let cell = |id: &str, answer| ComparedCell::new(reference.row(id).unwrap(), answer).unwrap();
        let mut cells = vec![
            // (1.2 − 1) / 1 = +20%, (10 − 20) / 20 = −50%, 9 ≥ 8 holds.
            cell("sage/figure2/mobilenetv2/training/memory", Answer::Number(1.2)),
            cell("sage/figure8/resnet50/sage/minimum-memory-reduction", Answer::Number(10.0)),
            cell("sage/introduction/bert-small/training/memory", Answer::Number(9.0)),
            cell("sage/section5/all/fp16/memory-reduction", Answer::NotModelled("later".into())),
            cell("sage/figure10/rtx-3090-vs-phones/throughput/ratio", Answer::NotModelled("later".into())),
        ];
        // (0.9 − 1) / 1 = −10% beside our +20%.
        cells[0].null = Some(0.9);
        let text = text(&tallies(&cells), &cells, &[], &["comparison: later".into()]);
        let expected = "\
5 rows: 1 matches, 2 miss, 2 are not modelled

paper  role   rows  answered  median error of numbers  unanswered as 100%  null baseline on the same rows  claims that hold
sage   fit       4         2           50.0% (1 of 3)              100.0%                               –            1 of 1
sage   check     1         1           20.0% (1 of 1)               20.0%           10.0%, ours 20.0% (1)                 –

sage, check: on 1 row the null baseline is nearer than this model (10.0% off, ours 20.0%).

2 rows do not match, worst first:
  off     -50.0%  sage/figure8/resnet50/sage/minimum-memory-reduction: 10 x, the paper 20
  off     +20.0%  sage/figure2/mobilenetv2/training/memory: 1.2 GB, the paper 1

2 rows are not modelled yet:
     2  later

comparison: later
";
        // fit: errors 0.5, 1 and 1 (two are not modelled), median 1; check: 0.2 alone.
        assert_eq!(text, expected);
    }

    #[test]
    fn an_order_that_does_not_hold_is_said_to_be_false() {
        let reference = Reference::load().unwrap();
        let order = |row: &&ReferenceRow| matches!(&row.claim, Claim::Order(words) if !words.is_empty());
        let row = reference.rows().iter().find(order).unwrap();
        let cell = ComparedCell::new(row, Answer::Order(false)).unwrap();
        assert_eq!(beside(&cell), format!("the order claim '{}' is false", cell.paper_value()));
    }

    #[test]
    fn long_lists_are_cut_with_a_count() {
        let reference = Reference::load().unwrap();
        let off = |row| ComparedCell::new(row, Answer::Number(1e9)).ok().filter(|cell| cell.verdict == Verdict::Off);
        let cells: Vec<ComparedCell> = reference.rows().iter().filter_map(off).take(MISSES + 3).collect();
        let text = text(&[], &cells, &[], &[]);
        assert!(text.contains("23 rows do not match") && text.ends_with("  … and 3 more in cells.csv\n"), "{text}");
    }
}
