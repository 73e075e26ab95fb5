//! Results of training with data, such as the accuracies of networks: `measured/*.toml`, embedded and parsed strictly.
//!
//! `haversack reproduce PAPER/ARTEFACT --full` writes such a file into its folder, as `PAPER/ARTEFACT.toml`; copied to
//! `experiments/measured/PAPER-ARTEFACT.toml`, it is read by `reproduce` without `--full`.
//!
//! ```toml
//! digest = "0123456789abcdef"     # of all that follows: what was changed by hand is refused
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
//!
//! [[training]]                    # what figures of accuracy are drawn from, if anything is
//! network = "lenet5"
//! data = "glyphs"
//! how = "actnn, batch 32, 4 epochs"
//! key = "0123456789abcdef"        # the digest of all that it depends on but the seed: what is asked for has this one
//!
//! [[training.learned]]
//! seed = 0
//! accuracy = [81.25, 90.5]        # on the test part in percent, an epoch each
//! ```

use std::fmt;

use anyhow::{Context as _, Result, bail};
use haversack_devices::registry::digest;
use haversack_devices::text::{hint, read_toml};
use serde::{Deserialize, Serialize};

// `FILES`: the embedded files, each with the artefact it was measured for (`paper/artefact`), its path and its text.
include!(concat!(env!("OUT_DIR"), "/measured.rs"));

/// The number of seeds of a measurement.
pub const SEEDS: u64 = 5;

/// Every embedded file: the artefact it was measured for, its path and its text.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FILES.iter().copied()
}

/// The committed measurements for `place`, a `paper/artefact`.
///
/// # Errors
/// No measurements are committed for it, with the nearest place that has some; a file that does not follow the schema.
pub fn committed(place: &str) -> Result<Measured> {
    let (_, file, text) = find(place)?;
    Measured::parse(file, text)
}

/// The path of the measurements for `place`, and the digest.
///
/// # Errors
/// No measurements are committed for it.
pub fn source(place: &str) -> Result<(&'static str, String)> {
    find(place).map(|(_, file, text)| (file, digest(text)))
}

fn find(place: &str) -> Result<(&'static str, &'static str, &'static str)> {
    files().find(|(known, ..)| *known == place).with_context(|| {
        let hint = hint(place, files().map(|(known, ..)| known));
        format!("nothing is measured for {place}{hint} (`haversack reproduce {place} --full` measures it)")
    })
}

/// The mean of the values measured with several seeds, and half the width of its 95% interval by Student's t; zero for
/// fewer than two values.
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
    /// The networks, data and seeds, as a figure states them: `lenet5, resnet8-cifar on glyphs, 5 seeds`.
    pub fn trained_on(&self) -> String {
        let seeds = if self.seeds.len() == 1 { "seed" } else { "seeds" };
        format!("{} on {}, {} {seeds}", self.networks.join(", "), self.data.join(", "), self.seeds.len())
    }

    /// Parses a file; `file` is its name in errors.
    ///
    /// # Errors
    /// Text that does not follow the schema, a file that is truncated or was changed since it was written, a duplicate
    /// id of a value, or a value with another number of seeds than the file.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let read: Self = read_toml(file, text)?;
        for (place, MeasuredValue { id, each, .. }) in read.values.iter().enumerate() {
            let (seeds, found) = (read.seeds.len(), each.len());
            let message = if read.values[..place].iter().any(|other| other.id == *id) {
                format!("`value.{place}.id`: `{id}` is given twice")
            } else if found != seeds {
                format!("`value.{place}.each`: expected {seeds} numbers, one for each seed, found {found}")
            } else {
                continue;
            };
            // The line of this value's heading.
            let mut heads = text.lines().enumerate().filter(|(_, line)| line.trim() == "[[value]]");
            let line = heads.nth(place).map_or(1, |(line, _)| line + 1);
            bail!("{file}:{line}: {message}");
        }
        let (line, body) = text.lines().position(|line| line.starts_with(DIGEST)).zip(body(text)).unwrap_or_default();
        let found = digest(body);
        if read.digest != found {
            let (line, own, command) = (line + 1, &read.digest, &read.command);
            bail!(
                "{file}:{line}: `digest`: {own} does not match the rest of the file, {found}: it was changed or \
                 truncated; `{command}` writes it again"
            );
        }
        Ok(read)
    }

    /// The text of the file; the bytes are the same whenever it was measured.
    pub fn to_text(&self) -> String {
        // A struct of numbers, texts and lists of them can always be written as TOML.
        let body = toml::to_string(self).unwrap_or_default();
        format!("# Written by the command below; not to be edited.\n{DIGEST}\"{}\"\n{body}", digest(&body))
    }

    /// The committed results of the training `wanted`, if they are here.
    pub(crate) fn training(&self, wanted: &Training) -> Option<&Training> {
        self.trainings.iter().find(|training| training.key == wanted.key)
    }

    /// Adds trainings, sorted and without duplicates, with their networks, data and seeds.
    pub(crate) fn take(&mut self, mut trainings: Vec<Training>) {
        trainings.sort_by_cached_key(|one| [&one.network, &one.data, &one.how, &one.key].map(String::clone));
        trainings.dedup_by(|one, other| one.key == other.key);
        for Training { network, data, learned, .. } in &trainings {
            for (names, name) in [(&mut self.networks, network), (&mut self.data, data)] {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            self.seeds.extend(learned.iter().map(|learned| learned.seed));
        }
        self.seeds.sort_unstable();
        self.seeds.dedup();
        self.trainings = trainings;
    }

    /// The value with this id.
    ///
    /// # Errors
    /// No such value, with the nearest id.
    pub fn value(&self, id: &str) -> Result<&MeasuredValue> {
        self.values.iter().find(|value| value.id == id).with_context(|| {
            let hint = hint(id, self.values.iter().map(|value| value.id.as_str()));
            format!("no measured value of `{}` is called `{id}`{hint}", self.command)
        })
    }

    /// Adds a value from the measurements with each seed.
    pub fn add(&mut self, id: impl Into<String>, unit: &str, each: &[f64]) {
        self.values.push(MeasuredValue::new(id, unit, each));
    }
}

impl fmt::Display for Measured {
    /// A sentence about the networks, data and seeds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let (networks, data, seeds) = (self.networks.join(", "), self.data.join(", "), seeds.join(", "));
        let plural = if self.seeds.len() == 1 { "" } else { "s" };
        write!(f, "{}: measured on {networks}, learning {data} with seed{plural} {seeds}", self.about)?;
        write!(f, " (version {}: {})", self.version, self.command)
    }
}

/// The significant digits of a measured value.
const DIGITS: usize = 6;
/// The beginning of the line with the file's digest.
const DIGEST: &str = "digest = ";

/// The part of a file that its digest covers: all lines after the digest's own.
fn body(text: &str) -> Option<&str> {
    let at = text.find(&format!("\n{DIGEST}"))? + 1;
    text[at..].split_once('\n').map(|(_, body)| body)
}

/// The measurements for one artefact.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Measured {
    /// The digest of everything that follows it in the file.
    #[serde(skip_serializing)]
    pub digest: String,
    /// A one-line description.
    pub about: String,
    /// The kind of the values.
    pub kind: Kind,
    /// The command that measures it.
    pub command: String,
    /// The data sets used for training.
    pub data: Vec<String>,
    /// The trained networks.
    pub networks: Vec<String>,
    /// The seeds, each of which gives one value.
    pub seeds: Vec<u64>,
    /// The version of haversack that measured it.
    pub version: String,
    /// The values.
    #[serde(rename = "value", default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<MeasuredValue>,
    /// Series of values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<MeasuredSeries>,
    /// The results of trainings.
    #[serde(rename = "training", default, skip_serializing_if = "Vec::is_empty")]
    pub trainings: Vec<Training>,
}

/// Values measured repeatedly while one network was trained.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredSeries {
    /// Its name in code, unique in the file.
    pub id: String,
    /// The seed of the training.
    pub seed: u64,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// The values, in their order.
    pub values: Vec<i64>,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A measurement.
    #[default]
    Measured,
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Unchecked")]
pub struct MeasuredValue {
    /// Its name in code, unique in the file.
    pub id: String,
    /// The mean over the seeds.
    pub value: f64,
    /// The low end of its 95% interval.
    pub lo: f64,
    /// The high end of its 95% interval.
    pub hi: f64,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// The value with each seed.
    pub each: Vec<f64>,
}

/// A value in a file, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    id: String,
    value: f64,
    lo: f64,
    hi: f64,
    unit: String,
    each: Vec<f64>,
}

impl TryFrom<Unchecked> for MeasuredValue {
    type Error = String;

    fn try_from(Unchecked { id, value, lo, hi, unit, each }: Unchecked) -> Result<Self, String> {
        if let Some((name, found)) =
            [("value", value), ("lo", lo), ("hi", hi)].into_iter().find(|(_, found)| !found.is_finite())
        {
            return Err(format!(".{name}: expected a finite number, found {found}"));
        }
        if lo > value {
            return Err(format!(".lo: expected at most the value, {value}, found {lo}"));
        }
        if hi < value {
            return Err(format!(".hi: expected at least the value, {value}, found {hi}"));
        }
        if each.is_empty() || each.iter().any(|value| !value.is_finite()) {
            return Err(".each: expected a finite number for each seed".to_owned());
        }
        Ok(Self { id, value, lo, hi, unit, each })
    }
}

impl MeasuredValue {
    /// The mean over the seeds, with its interval; six digits are kept.
    pub fn new(id: impl Into<String>, unit: &str, each: &[f64]) -> Self {
        let (mean, half) = interval(each);
        Self {
            id: id.into(),
            value: rounded(mean, DIGITS),
            lo: rounded(mean - half, DIGITS),
            hi: rounded(mean + half, DIGITS),
            unit: unit.to_owned(),
            each: each.iter().map(|&value| rounded(value, DIGITS)).collect(),
        }
    }
}

fn rounded(value: f64, digits: usize) -> f64 {
    // A formatted float always parses.
    format!("{value:.*e}", digits - 1).parse::<f64>().map_or(value, |rounded| rounded + 0.0)
}

/// The version of everything that affects learning but is not in a specification: arithmetic, rounding, initial
/// weights, the order of samples. If you change any of these, increase it and train again; a test trains
/// briefly and compares.
const NUMERICS: u32 = 1;

/// A training: what a network learns, and the results.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The network.
    pub network: String,
    /// The data.
    pub data: String,
    /// The settings, in words.
    pub how: String,
    /// The digest of everything that it depends on except the seed, unique in the file.
    pub key: String,
    /// The results with each seed.
    pub learned: Vec<Learned>,
}

impl Training {
    /// A training of `network` on `data` with the settings `how`, which depends only on `depends` and the
    /// seed; without results.
    pub(crate) fn wanted(network: &str, data: &str, how: String, depends: &str) -> Self {
        let key = digest(&format!("numerics {NUMERICS}; {depends}"));
        Self { network: network.to_owned(), data: data.to_owned(), how, key, learned: Vec::new() }
    }
}

/// The results with one seed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// The seed.
    pub seed: u64,
    /// The accuracy on the test part in percent, after each epoch or each measured round.
    pub accuracy: Vec<f64>,
    /// The rounds, if it was a federation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Rounds>,
    /// The final accuracy on the validation part in percent, by which settings are chosen; only known for
    /// trainings of this run.
    #[serde(skip)]
    pub validation: f64,
}

/// The rounds of a federation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rounds {
    /// The numbers of the measured rounds, and when they ended, in seconds.
    pub number: Vec<u32>,
    /// See above.
    pub end_s: Vec<f64>,
    /// The total time in seconds, and the total energy of all phones in joules.
    pub all_s: f64,
    /// See above.
    pub energy_j: f64,
    /// The number of rounds.
    pub all: u32,
    /// The updates of phones in all rounds, and their outcomes.
    pub selected: u64,
    /// Updates that were aggregated.
    pub completed: u64,
    /// Updates lost because the phone was no longer ready.
    pub dropped: u64,
    /// Updates lost because the system killed the process.
    pub killed: u64,
    /// Phones left out because the system kills training even at rest.
    pub left_out: u64,
    /// All phones.
    pub phones: u64,
    /// Phones that can take part.
    #[serde(default, skip_serializing_if = "is_none")]
    pub eligible: u64,
    /// Phones with an aggregated update, and the percentage of all samples on them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub contributed: u64,
    /// See above.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reached: f64,
}

/// Whether files omit a number: older files do not have it.
fn is_none<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Learned {
    /// Rounds the values as files do, so that figures are the same before and after writing: four
    /// digits, six for times.
    pub(crate) fn rounded(mut self) -> Self {
        self.accuracy.iter_mut().for_each(|value| *value = rounded(*value, 4));
        if let Some(rounds) = &mut self.rounds {
            let Rounds { end_s, all_s, energy_j, reached, .. } = rounds;
            end_s.iter_mut().chain([all_s, energy_j, reached]).for_each(|value| *value = rounded(*value, 6));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MeasuredValue {
        /// Whether `value` lies within the interval.
        pub(crate) fn holds(&self, value: f64) -> bool {
            (self.lo..=self.hi).contains(&value)
        }
    }

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
            let command = format!("haversack reproduce {place} --");
            let flag = measured.command.strip_prefix(&command);
            assert!(flag.is_some_and(|flag| ["full", "learn"].contains(&flag)), "{file}: {}", measured.command);
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

    fn example() -> Measured {
        let mut measured = Measured {
            about: "Shares".into(),
            kind: Kind::Measured,
            command: "haversack reproduce sage/table1 --full".into(),
            data: vec!["glyphs".into()],
            networks: vec!["lenet5".into()],
            seeds: vec![0, 1, 2],
            version: "0.1.0".into(),
            series: vec![MeasuredSeries { id: "s".into(), seed: 1, unit: "bits".into(), values: vec![3, -4] }],
            ..Measured::default()
        };
        measured.add("share", "%", &[1.0, 2.0, 3.0]);
        measured.add("b", "", &[2.0 / 3.0; 3]);
        measured
    }

    fn refused(from: &str, to: &str) -> String {
        let text = example().to_text();
        assert!(text.contains(from), "{text}");
        Measured::parse("m.toml", &text.replacen(from, to, 1)).unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_was_written_is_read_and_written_again_to_the_same_bytes() {
        let written = example().to_text();
        let read = Measured::parse("m.toml", &written).unwrap();
        assert_eq!(read.to_text(), written);
        assert_eq!(Measured { digest: String::new(), ..read.clone() }, example());
        // Mean 2, half 4.302653 / √3 = 2.484138: the ends to six digits.
        let a = read.value("share").unwrap();
        assert_eq!((a.value, a.lo, a.hi), (2.0, -0.484_138, 4.484_14));
        assert!(a.holds(4.0) && !a.holds(4.5));
        assert_eq!(read.value("b").unwrap().each, [0.666_667; 3]);
        assert_eq!((read.series[0].id.as_str(), &read.series[0].values[..]), ("s", &[3, -4][..]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_field() {
        // Lines: a comment, eight fields, a blank line, and then the first value's head in line 11.
        let cases = [
            ("unit = \"%\"", "units = \"%\"", "m.toml:16: `value.0.units`: unknown key (did you mean `unit`?)"),
            ("lo = -0.484138", "lo = 3.0", "m.toml:14: `value.0.lo`: expected at most the value, 2, found 3"),
            ("\"measured\"", "\"guessed\"", "m.toml:4: `kind`: unknown value `guessed`"),
            ("seeds = [0, 1, 2]", "seeds = [0, 1]", "m.toml:11: `value.0.each`: expected 2 numbers"),
            ("id = \"b\"", "id = \"share\"", "`value.1.id`: `share` is given twice"),
            ("version = \"0.1.0\"\n", "", "`version`: missing key"),
            ("values = [3, -4]", "values = [3, -5]", "m.toml:2: `digest`: "),
            ("digest = ", "digst = ", "m.toml:2: `digst`: unknown key (did you mean `digest`?)"),
        ];
        for (from, to, message) in cases {
            let error = refused(from, to);
            assert!(error.contains(message), "{error}");
        }
        assert!(example().value("shares").unwrap_err().to_string().contains("did you mean 'share'?"));
    }

    #[test]
    fn trainings_are_found_by_all_that_they_depend_on() {
        let wanted = |rate: &str| Training::wanted("lenet5", "glyphs", "original, 2 epochs".to_owned(), rate);
        let learned =
            |seed, accuracy: &[f64]| Learned { seed, accuracy: accuracy.to_vec(), ..Learned::default() }.rounded();
        let mut measured = Measured::default();
        let learned = vec![learned(3, &[10.0, 81.256_78]), learned(0, &[11.0, 200.0 / 3.0])];
        let taught = Training { learned, ..wanted("0.1") };
        measured.take(vec![wanted("9"), taught.clone(), taught]);
        // Ordered by networks, data and settings, without duplicates, and with four digits.
        let read = Measured::parse("m.toml", &measured.to_text()).unwrap();
        assert_eq!(
            (read.trainings.len(), &read.seeds[..], &read.networks[..]),
            (2, &[0, 3][..], &["lenet5".to_owned()][..])
        );
        let found = read.training(&wanted("0.1")).unwrap();
        assert_eq!(found.learned.iter().map(|one| one.accuracy[1]).collect::<Vec<_>>(), [81.26, 66.67]);
        assert_eq!(read.training(&wanted("0.2")), None);
    }
}
