//! What a row is of: a key of an answer, and the unit that its number is in.

use haversack_devices::text::alternatives;

/// The units that a quantity may be in, by how its name ends: each with what it is of the answer's own.
const UNITS: [(&str, &[(&str, f64)]); 6] = [
    (
        "_bytes_per_s",
        &[("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("KiB/s", KIB), ("MiB/s", MIB), ("GiB/s", GIB)],
    ),
    ("_per_s", &[("", 1.0), ("1/s", 1.0)]),
    ("_bytes", &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", KIB), ("MiB", MIB), ("GiB", GIB)]),
    ("_s", &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)]),
    ("_w", &[("W", 1.0), ("mW", 1e-3)]),
    ("_j", &[("J", 1.0), ("mJ", 1e-3), ("Wh", 3600.0)]),
];
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
const GIB: f64 = 1024.0 * MIB;

/// A key of an answer, in a unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantity {
    /// The key.
    pub(crate) name: String,
    /// The unit; empty of a number.
    pub(crate) unit: String,
    /// One of the unit in the answer's own.
    pub(crate) size: f64,
}

impl Quantity {
    /// The key `name` in `unit`.
    ///
    /// # Errors
    /// What was expected of the unit.
    pub(crate) fn new(name: &str, unit: &str) -> Result<Self, String> {
        let units =
            UNITS.iter().find(|(ending, _)| name.ends_with(ending)).map_or(&[("", 1.0)][..], |(_, units)| units);
        match units.iter().find(|(known, _)| *known == unit) {
            Some((_, size)) => Ok(Self { name: name.to_owned(), unit: unit.to_owned(), size: *size }),
            None if units == [("", 1.0)] => Err(format!("'{unit}', expected nothing: {name} is a number")),
            None => Err(format!("'{unit}', expected {}", alternatives(units.iter().map(|(known, _)| *known)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_fits_the_ending_of_a_name() {
        assert_eq!(Quantity::new("iteration_time_s", "ms").unwrap().size, 1e-3);
        assert_eq!(Quantity::new("peak_memory_bytes", "MiB").unwrap().size, 1_048_576.0);
        assert_eq!(Quantity::new("bandwidth_bytes_per_s", "MB/s").unwrap().size, 1e6);
        assert_eq!(Quantity::new("busy_cores", "").unwrap().size, 1.0);
        assert_eq!(Quantity::new("iteration_time_s", "MiB").unwrap_err(), "'MiB', expected s, ms, us, µs or ns");
        assert_eq!(Quantity::new("busy_cores", "s").unwrap_err(), "'s', expected nothing: busy_cores is a number");
    }
}
