//! Leave-one-out errors of rows that constants were fitted to, for reports of results: the error of each, or that it is
//! older than the constants.

use std::collections::BTreeMap;

/// The stored evidence for a row that a constant was fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// Its error with the constants fitted to all other rows: (simulated − observed) / observed.
    LeftOut(f64),
    /// It was computed with other constants, or other rows, than the present ones.
    Stale,
}

/// Leave-one-out errors, by the ids of cells.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    /// The evidence for each row.
    pub rows: BTreeMap<String, Known>,
    /// Remarks to show with the rows of a file: the file, and the sentence.
    pub remarks: Vec<(String, String)>,
    /// The file with the stored errors, and its digest.
    pub source: (&'static str, String),
}

impl Errors {
    /// Errors of these rows, for tests.
    #[cfg(test)]
    pub(crate) fn of_rows<const N: usize>(rows: [(&str, Known); N]) -> Self {
        Self { rows: rows.map(|(id, known)| (id.to_owned(), known)).into(), ..Self::default() }
    }

    /// The evidence for the row `id`; `None` if no stored calibration fitted a constant to it.
    pub fn of(&self, id: &str) -> Option<Known> {
        self.rows.get(id).copied()
    }

    /// The remarks to show with the rows of a paper.
    pub fn remarks_of<'e>(&'e self, paper: &str) -> impl Iterator<Item = &'e str> {
        let file = format!("experiments/reference/{paper}.csv");
        self.remarks.iter().filter(move |(of, _)| *of == file).map(|(_, remark)| remark.as_str())
    }
}
