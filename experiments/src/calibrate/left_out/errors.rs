//! What a report of results is told of the rows that are stored.

use super::{FILE, LeftOut, LeftOutError, command, declared, digests};
use crate::papers::left_out::{Errors, Known};
use crate::papers::reference::Reference;
use haversack_devices::registry::digest;

/// The errors that came with this version.
///
/// # Errors
/// A committed file that is wrong.
pub fn errors() -> Result<Errors, LeftOutError> {
    errors_of(&LeftOut::committed()?)
}

/// Those of a file, beside the constants of this program.
///
/// # Errors
/// A calibration that does not load.
pub fn errors_of(file: &LeftOut) -> Result<Errors, LeftOutError> {
    let reference = Reference::load()?;
    let mut errors = Errors { source: (FILE, digest(super::TEXT)), ..Errors::default() };
    for calibration in declared()? {
        let stored = file.calibrations.iter().find(|stored| stored.is_of(&calibration));
        let is_current = match stored {
            Some(stored) => stored.digests == digests(&calibration, &reference)?,
            None => false,
        };
        if !is_current {
            let (title, command) = (calibration.title(), command(&calibration, 0));
            let what = match stored {
                Some(_) => "are older than the constants, and its rows are shown as fitted",
                None => "are not stored",
            };
            let remark = format!("Left-out errors of {title} {what}: run `{command}` and build again");
            errors.remarks.push((calibration.observations.file(), remark));
        }
        let known = |error| if is_current { Known::LeftOut(error) } else { Known::Stale };
        let rows = stored.iter().flat_map(|stored| &stored.rows);
        errors.rows.extend(rows.map(|row| (row.id.clone(), known(row.error()))));
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn an_error_counts_only_beside_the_constants_that_it_was_found_with() {
        let (mut file, _) = example();
        let id = file.calibrations[1].rows[0].id.clone();
        let current = errors_of(&file).unwrap();
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
        let stale = errors_of(&file).unwrap();
        assert_eq!((stale.of(&id), stale.of("lenet5/forward")), (Some(Known::Stale), Some(Known::LeftOut(0.25))));
        let remark = stale.remarks_of("daf").next().unwrap();
        assert!(
            remark.contains("jetson-agx-xavier under pytorch-cuda (daf-table2) are older than the constants"),
            "{remark}"
        );
        assert!(remark.contains("`haversack calibrate jetson-agx-xavier --stack pytorch-cuda --leave-one-out --store"));
    }
}
