//! What a report of results is told of rows that were left out of a fit: the error of each, or that it is older than the
//! constants.

use std::collections::BTreeMap;

/// What is known of a row to which a constant was fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// Its error at the constants that all other rows decide: (simulated − observed) / observed.
    LeftOut(f64),
    /// That was found at other constants, or by other rows, than there are now.
    Stale,
}

/// The errors of rows that were left out, by the ids of cells.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    /// What is known of each row.
    pub rows: BTreeMap<String, Known>,
    /// What is to be said where rows of a file are shown: the file, and the sentence.
    pub remarks: Vec<(String, String)>,
    /// The file that holds them, and its digest.
    pub source: (&'static str, String),
}

impl Errors {
    /// Of these rows, for tests of what is made of them.
    #[cfg(test)]
    pub(crate) fn of_rows<const N: usize>(rows: [(&str, Known); N]) -> Self {
        Self { rows: rows.map(|(id, known)| (id.to_owned(), known)).into(), ..Self::default() }
    }

    /// What is known of the row called `id`; `None` where no calibration that is stored fitted a constant to it.
    pub fn of(&self, id: &str) -> Option<Known> {
        self.rows.get(id).copied()
    }

    /// What is to be said where rows of a paper are shown.
    pub fn remarks_of<'e>(&'e self, paper: &str) -> impl Iterator<Item = &'e str> {
        let file = format!("experiments/reference/{paper}.csv");
        self.remarks.iter().filter(move |(of, _)| *of == file).map(|(_, remark)| remark.as_str())
    }
}
