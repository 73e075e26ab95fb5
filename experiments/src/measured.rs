//! What training with data has measured: `measured/*.toml`, embedded and read strictly.
//!
//! Such a file is written by `haversack reproduce PAPER/ARTEFACT --full`, into the folder of results as
//! `PAPER/ARTEFACT.toml`; copied to `experiments/measured/PAPER-ARTEFACT.toml` it is what the plain command reads.
//!
//! ```toml
//! about = "Share of channels with outliers"
//! kind = "measured"
//! command = "haversack reproduce fedhybrid/figure9 --full"
//! data = ["glyphs"]
//! networks = ["lenet5"]
//! seeds = [0, 1, 2, 3, 4]
//! version = "0.1.0"
//!
//! [[value]]
//! id = "lenet5/outliers"          # once in a file
//! value = 1.5                     # the mean over the seeds
//! lo = 1.25                       # the ends of its 95% interval, by Student's t
//! hi = 1.75
//! unit = "%"                      # empty where it has none
//! each = [1.25, 1.5, 1.5, 1.5, 1.75] # with each seed, in their order
//!
//! [[series]]                      # what came one after the other, if anything did
//! id = "lenet5/factor"
//! seed = 0
//! unit = "bits"
//! values = [10, 11, 10]
//! ```

mod file;

use std::fmt;

use haversack_devices::registry::digest;
use haversack_devices::text::hint;

pub use self::file::{Kind, Measured, MeasuredError, MeasuredSeries, MeasuredValue};

/// One of the embedded files.
macro_rules! file {
    ($paper:literal, $artefact:literal) => {
        (
            concat!($paper, "/", $artefact),
            concat!("experiments/measured/", $paper, "-", $artefact, ".toml"),
            include_str!(concat!("../measured/", $paper, "-", $artefact, ".toml")),
        )
    };
}

/// The embedded files, each with what it was measured for: `paper/artefact`.
const FILES: &[(&str, &str, &str)] = &[
    file!("comparison", "sensitivity"),
    file!("daf", "bits"),
    file!("fedhybrid", "figure9"),
    file!("fedhybrid", "figure18b"),
    file!("fedhybrid", "section4.4.1"),
    file!("fedhybrid", "section5.2"),
    file!("mandheling", "figure4b"),
    file!("mandheling", "rescaling"),
    file!("mandheling", "section3.5"),
];

/// The number of seeds that a measurement is made with.
pub const SEEDS: u64 = 5;

/// Every embedded file: what it was measured for, its path and its text.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FILES.iter().copied()
}

/// What was measured for `place`, a `paper/artefact`.
///
/// # Errors
/// Nothing was, with the nearest place for which something was; a file that does not follow the schema.
pub fn committed(place: &str) -> Result<Measured, MeasuredError> {
    let (_, file, text) = find(place)?;
    Measured::parse(file, text)
}

/// The path of what was measured for `place`, and its digest.
///
/// # Errors
/// Nothing was.
pub fn source(place: &str) -> Result<(&'static str, String), MeasuredError> {
    find(place).map(|(_, file, text)| (file, digest(text)))
}

fn find(place: &str) -> Result<(&'static str, &'static str, &'static str), MeasuredError> {
    let absent =
        || MeasuredError::Nothing { place: place.to_owned(), hint: hint(place, files().map(|(known, ..)| known)) };
    files().find(|(known, ..)| *known == place).ok_or_else(absent)
}

/// The mean of what was measured with several seeds, and half the width of its 95% interval by Student's t; zero of fewer
/// than two values.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number.max(1.0);
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (number - 1.0);
    let quantile = statrs::distribution::StudentsT::new(0.0, 1.0, number - 1.0)
        .map_or(f64::NAN, |student| statrs::distribution::ContinuousCDF::inverse_cdf(&student, 0.975));
    (mean, quantile * (variance / number).sqrt())
}

impl Measured {
    /// On what it was measured, as a figure says it: `lenet5, resnet8-cifar on glyphs, 5 seeds`.
    pub fn trained_on(&self) -> String {
        let seeds = if self.seeds.len() == 1 { "seed" } else { "seeds" };
        format!("{} on {}, {} {seeds}", self.networks.join(", "), self.data.join(", "), self.seeds.len())
    }
}

impl fmt::Display for Measured {
    /// What it was measured on, in a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let (networks, data, seeds) = (self.networks.join(", "), self.data.join(", "), seeds.join(", "));
        let plural = if self.seeds.len() == 1 { "" } else { "s" };
        write!(f, "{}: measured on {networks}, learning {data} with seed{plural} {seeds}", self.about)?;
        write!(f, " (version {}: {})", self.version, self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_student_s() {
        // Mean 2, variance 1; t of 2 degrees of freedom at 97.5% is 4.302653; 4.302653 / √3 = 2.484138.
        let (mean, half) = interval(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12 && (half - 2.484_138).abs() < 1e-5, "{mean} {half}");
        assert_eq!(interval(&[5.0]), (5.0, 0.0));
    }

    #[test]
    fn every_embedded_file_is_as_it_was_written() {
        for (place, file, text) in files() {
            let measured = committed(place).unwrap();
            assert_eq!(measured.to_text(), text, "{file}");
            assert_eq!(file, format!("experiments/measured/{}.toml", place.replace('/', "-")));
            assert!(measured.command.starts_with(&format!("haversack reproduce {place} --full")), "{file}");
        }
    }

    #[test]
    fn a_figure_says_what_it_was_measured_on() {
        assert_eq!(
            committed("fedhybrid/section5.2").unwrap().trained_on(),
            "lenet5, transformer2-lora, resnet8-cifar on glyphs, phrases, 5 seeds"
        );
    }

    #[test]
    fn what_was_not_measured_says_how_it_is() {
        let error = committed("sage/figure99").unwrap_err().to_string();
        assert!(error.contains("`haversack reproduce sage/figure99 --full` measures it"), "{error}");
    }
}
