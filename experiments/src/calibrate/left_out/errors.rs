//! What a report of results knows of rows that were left out: the error of each, or that it is older than the constants.

use std::collections::BTreeMap;

use super::{FILE, LeftOut, LeftOutError, command, declared, digests};
use crate::calibrate::declared::Calibration;
use crate::reproduce::reference::Reference;
use haversack_devices::registry::digest;

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
    rows: BTreeMap<String, Known>,
    /// What is to be said where rows of a file are shown: the file, and the sentence.
    remarks: Vec<(&'static str, String)>,
    digest: String,
}

impl Errors {
    /// Of what came with this version.
    ///
    /// # Errors
    /// A committed file that is wrong.
    pub fn committed() -> Result<Self, LeftOutError> {
        Ok(Self { digest: digest(super::TEXT), ..Self::new(&LeftOut::committed()?)? })
    }

    /// Of a file, beside the constants of this program.
    ///
    /// # Errors
    /// A calibration that does not load.
    pub fn new(file: &LeftOut) -> Result<Self, LeftOutError> {
        let (mut errors, reference) = (Self::default(), Reference::load()?);
        for calibration in declared()? {
            let Some(stored) = file.calibrations.iter().find(|stored| stored.is_of(&calibration)) else {
                errors.remark(&calibration, "are not stored");
                continue;
            };
            let is_current = stored.digests == digests(&calibration, &reference)?;
            if !is_current {
                errors.remark(&calibration, "are older than the constants, and its rows are shown as fitted");
            }
            let known = |error| if is_current { Known::LeftOut(error) } else { Known::Stale };
            errors.rows.extend(stored.rows.iter().map(|row| (row.id.clone(), known(row.error()))));
        }
        Ok(errors)
    }

    /// Of these rows, for tests of what is made of them.
    #[cfg(test)]
    pub(crate) fn of_rows<const N: usize>(rows: [(&str, Known); N]) -> Self {
        Self { rows: rows.map(|(id, known)| (id.to_owned(), known)).into(), ..Self::default() }
    }

    fn remark(&mut self, calibration: &Calibration, what: &str) {
        let (title, command) = (calibration.title(), command(calibration, 0));
        let remark = format!("Left-out errors of {title} {what}: run `{command}` and build again");
        self.remarks.push((calibration.observations.file(), remark));
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

    /// All that is missing or older than the constants, a sentence each.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        self.remarks.iter().map(|(_, remark)| remark.as_str())
    }

    /// The file, and its digest.
    pub fn source(&self) -> (&'static str, &str) {
        (FILE, &self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn an_error_counts_only_beside_the_constants_that_it_was_found_with() {
        let (mut file, _) = example();
        let id = file.calibrations[1].rows[0].id.clone();
        let current = Errors::new(&file).unwrap();
        assert_eq!(
            (current.of(&id), current.of("lenet5/forward")),
            (Some(Known::LeftOut(0.25)), Some(Known::LeftOut(0.25)))
        );
        assert_eq!((current.of("daf/table2/nothing"), current.remarks_of("daf").count()), (None, 0));
        // Sage's is not stored.
        let missing: Vec<&str> = current.remarks_of("sage").collect();
        assert_eq!(
            missing,
            ["Left-out errors of galaxy-s10 under sage-opencl (sage-table1) are not stored: run `haversack calibrate \
              galaxy-s10 --stack sage-opencl --leave-one-out --store experiments/left-out.toml` and build again"]
        );
        let of_device = file.calibrations[1].digests.get_mut("devices/calibrations/jetson-agx-xavier.toml").unwrap();
        *of_device = "0".repeat(16);
        let stale = Errors::new(&file).unwrap();
        assert_eq!((stale.of(&id), stale.of("lenet5/forward")), (Some(Known::Stale), Some(Known::LeftOut(0.25))));
        let remark = stale.remarks_of("daf").next().unwrap();
        assert!(
            remark.contains("jetson-agx-xavier under pytorch-cuda (daf-table2) are older than the constants"),
            "{remark}"
        );
        assert!(remark.contains("`haversack calibrate jetson-agx-xavier --stack pytorch-cuda --leave-one-out --store"));
    }
}
