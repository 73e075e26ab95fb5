//! The accounts for people.

use std::fmt::Write as _;

use haversack_reports::table::{shortest, three_digits};
use haversack_reports::text_table::{Column, TextTable};

use super::constants::FittedConstant;
use super::{Accounts, WORST};
use crate::calibrate::left_out;
use crate::reproduce::summary::{COLUMNS, Tally};
use crate::reproduce::{committed, counted};

impl Accounts {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::from("Rows that are no paper's, at the constants of the files\n\n");
        text += &self.groups();
        let _ = writeln!(text, "\nThe {WORST} worst networks, each by its worst row\n");
        text += &self.worst();
        let _ = writeln!(text, "\nThe papers, of the results that came with this version ({})\n", committed::FILE);
        let word = Column::left(0).fitted();
        let number = Column::right(0).fitted().after(2);
        let mut columns = vec![word, word.after(2)];
        columns.resize(COLUMNS.len(), number);
        let mut table = TextTable::new(columns);
        table.row(COLUMNS);
        for tally in &self.papers {
            table.row(Tally::figures(tally));
        }
        let _ = write!(text, "{table}");
        let _ = writeln!(text, "\nThe calibrations, of what came with this version ({})\n", left_out::FILE);
        text += &self.calibrations();
        let declared = self.constants.iter().filter(|constant| constant.prior.is_some()).count();
        let number = counted(self.constants.len(), "constant was", "constants were");
        let others = self.constants.len() - declared;
        let _ = writeln!(
            text,
            "\n{number} fitted: {declared} by calibrations, from a prior; {others} by hand, or as copies\n"
        );
        text += &self.constants();
        text
    }

    fn calibrations(&self) -> String {
        let word = Column::left(0).fitted();
        let number = Column::right(0).fitted().after(2);
        let mut table = TextTable::new([word, number, number, number, number]);
        table.row(["calibration", "rows", "median error", "left out", "worst left out"]);
        for fit in &self.calibrations {
            let [error, left_out, worst] =
                [fit.median_error, fit.median_error_left_out, fit.worst_error_left_out].map(percent);
            let left_out = if fit.is_current { left_out } else { format!("{left_out} (stale)") };
            table.row([fit.title.clone(), fit.rows.to_string(), error, left_out, worst]);
        }
        table.to_string()
    }

    fn groups(&self) -> String {
        let word = Column::left(0).fitted();
        let number = Column::right(0).fitted().after(2);
        let columns = [word, word.after(2), word.after(2), number, number, number, number, number, number];
        let mut table = TextTable::new(columns);
        table.row(["file", "role", "setting", "rows", "answered", "mean error", "left out", "worst factor", "rank"]);
        let dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        for group in &self.groups {
            table.row([
                group.file.to_owned(),
                group.role.to_string(),
                group.setting.clone().unwrap_or_else(|| "all".to_owned()),
                group.rows.to_string(),
                group.answered.to_string(),
                dash(group.mean_error.map(percent)),
                dash(group.mean_error_left_out.map(percent)),
                dash(group.worst_factor.map(|factor| format!("{factor:.2}"))),
                dash(group.rank_correlation.map(|rank| format!("{rank:.3}"))),
            ]);
        }
        table.to_string()
    }

    fn worst(&self) -> String {
        let word = Column::left(0).fitted();
        let number = Column::right(0).fitted().after(2);
        let mut table = TextTable::new([word, word.after(2), number, number, number]);
        table.row(["row", "role", "observed", "simulated", "factor"]);
        for row in &self.worst {
            table.row([
                row.id.clone(),
                row.role.to_string(),
                seconds(row.observed),
                row.simulated.map_or_else(|| "no answer".to_owned(), seconds),
                if row.factor().is_finite() { format!("{:.2}", row.factor()) } else { "–".to_owned() },
            ]);
        }
        table.to_string()
    }

    fn constants(&self) -> String {
        let word = Column::left(0).fitted();
        let number = Column::right(0).fitted().after(2);
        let mut table = TextTable::new([word, number, number, word.after(2), word.after(2)]);
        table.row(["constant", "value", "prior", "unit", "fitted to"]);
        let mut file = "";
        for constant in &self.constants {
            let FittedConstant { name, value, unit, source, prior, .. } = constant;
            if constant.file != file {
                file = &constant.file;
                let number = self.constants.iter().filter(|other| other.file == file).count();
                table.row([format!("{file}: {number}")]);
            }
            // A value was converted to its unit and back.
            let value = shortest(format!("{value:.9e}").parse().unwrap_or(*value));
            let prior = prior.map_or_else(|| "–".to_owned(), shortest);
            table.row([format!("  {name}"), value, prior, unit.clone(), source.clone()]);
        }
        table.to_string()
    }
}

fn percent(fraction: f64) -> String {
    format!("{:.1}%", fraction * 100.0)
}

/// Of one sample, in milliseconds.
fn seconds(value: f64) -> String {
    format!("{} ms", three_digits(value * 1e3))
}
