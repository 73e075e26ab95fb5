//! All that a training needs to go on, in one file that is written beside its name and takes it when it is whole.
//!
//! The file is a line that names the format, a line of JSON (version, digest of the specification, and of every course its
//! epoch, rows and the lengths of its tensors; real numbers as the integers of their bits), the tensors' values, little-endian,
//! and FNV-1a of all bytes before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haversack_devices::registry::digest;
use haversack_devices::units::Nanos;
use haversack_reports::write_atomically;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) use super::coded::Coded;
use super::row::{Row, RowHead};
use crate::error::CommandError;
use crate::output::note;
use crate::sealed::{opened, sealed, take};

/// The file's name in its folder.
pub(super) const NAME: &str = "checkpoint";
/// The first line: another number is another format.
const FORMAT: &str = "haversack checkpoint 3";

/// The number of the scenario, and the seed.
pub(super) type CourseKey = (u64, u64);

/// The values of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    Floats(Vec<f32>),
    Integers(Vec<i64>),
    Codes(Coded),
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Floats(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Codes(held) => held.codes.len(),
        }
    }
}

/// A tensor of the graph with what it holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Held {
    pub(super) tensor: u32,
    pub(super) values: Values,
}

/// How far a course has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Saved {
    /// Epochs and updates so far.
    pub(super) epoch: u32,
    pub(super) update: u64,
    /// Simulated time and energy so far.
    pub(super) time: Nanos,
    pub(super) energy: f64,
    /// The rows of its epochs.
    pub(super) rows: Vec<Row>,
    /// Moving averages of the importance of tensors, as policies see them.
    pub(super) importance: Vec<f64>,
    /// The scale factors of integer training, by tensor.
    pub(super) factors: Vec<Option<u32>>,
    /// What the policy has seen of the data.
    pub(super) seen: Vec<u64>,
    /// Weights, running averages and the optimiser's state.
    pub(super) tensors: Vec<Held>,
}

/// The checkpoint of a folder.
pub(super) struct Checkpoint {
    path: PathBuf,
    digest: String,
    courses: BTreeMap<CourseKey, Saved>,
}

impl Checkpoint {
    /// The checkpoint of what `record` says, in `folder`; with `resume` what it holds is kept, otherwise it begins anew.
    ///
    /// # Errors
    /// A checkpoint to go on from that is damaged, or of another version or specification; it is left as it is.
    pub(super) fn open(folder: &Path, record: &Map<String, Value>, resume: bool) -> Result<Self, CommandError> {
        let path = folder.join(NAME);
        let digest = digest(&Value::Object(record.clone()).to_string());
        let mut checkpoint = Self { path, digest, courses: BTreeMap::new() };
        if checkpoint.path.is_file() {
            if resume {
                checkpoint.read()?;
            } else if !folder.join(super::EPOCHS).is_file() {
                note(&format!(
                    "{} holds an unfinished training, which begins anew; --resume goes on",
                    folder.display()
                ));
            }
        }
        Ok(checkpoint)
    }

    /// Takes an older checkpoint off the disc where nothing of it is kept.
    pub(super) fn begin(&self) -> Result<(), CommandError> {
        if self.courses.is_empty() { self.write() } else { Ok(()) }
    }

    /// The epochs of all courses.
    pub(super) fn epochs(&self) -> u64 {
        self.courses.values().map(|saved| u64::from(saved.epoch)).sum()
    }

    /// How far a course has come, if it has begun.
    pub(super) fn saved(&self, key: CourseKey) -> Option<Saved> {
        self.courses.get(&key).cloned()
    }

    /// Keeps how far a course has come.
    pub(super) fn save(&mut self, key: CourseKey, saved: Saved) -> Result<(), CommandError> {
        self.courses.insert(key, saved);
        self.write()
    }

    /// The rows of all courses, by scenario, seed and epoch.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.courses.values().flat_map(|saved| saved.rows.iter().copied()).collect()
    }

    fn write(&self) -> Result<(), CommandError> {
        let head = Head {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            digest: self.digest.clone(),
            courses: self.courses.iter().map(|(key, saved)| CourseHead::of(*key, saved)).collect(),
        };
        let head = serde_json::to_string(&head).map_err(CommandError::failed)?;
        let mut bytes = Vec::new();
        for held in self.courses.values().flat_map(|saved| &saved.tensors) {
            match &held.values {
                Values::Floats(values) => values.iter().for_each(|value| bytes.extend(value.to_le_bytes())),
                Values::Integers(values) => values.iter().for_each(|value| bytes.extend(value.to_le_bytes())),
                Values::Codes(held) => {
                    bytes.extend(held.codes.iter().chain(&held.low).map(|code| code.cast_unsigned()));
                    bytes.extend(&held.shifts);
                }
            }
        }
        Ok(write_atomically(&self.path, &sealed(FORMAT, &head, &bytes))?)
    }

    fn read(&mut self) -> Result<(), CommandError> {
        let path = self.path.display().to_string();
        let wrong = |message: String| CommandError::input(format!("{path}: {message}"));
        let anew = "train into another folder, or without --resume";
        let bytes = std::fs::read(&self.path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let (head, mut values) = opened(&bytes, FORMAT).map_err(|why| wrong(format!("{why}; {anew}")))?;
        let head: Head = serde_json::from_slice(head).map_err(|error| wrong(format!("line 2: {error}; {anew}")))?;
        let version = env!("CARGO_PKG_VERSION");
        if head.version != version {
            return Err(wrong(format!("found a checkpoint of version {}; expected {version}; {anew}", head.version)));
        }
        if head.digest != self.digest {
            let message = "of another specification, other data or other calibrations";
            return Err(wrong(format!("{message} (digest {}, expected {}); {anew}", head.digest, self.digest)));
        }
        for course in head.courses {
            let (key, saved) =
                course.read(&mut values).ok_or_else(|| wrong(format!("line 2: too few values; {anew}")))?;
            self.courses.insert(key, saved);
        }
        Ok(())
    }
}

/// The second line.
#[derive(Serialize, Deserialize)]
struct Head {
    version: String,
    digest: String,
    courses: Vec<CourseHead>,
}

/// A course in the second line.
#[derive(Serialize, Deserialize)]
struct CourseHead {
    run: u64,
    seed: u64,
    epoch: u32,
    update: u64,
    time_ns: u64,
    energy_bits: u64,
    importance_bits: Vec<u64>,
    factors: Vec<Option<u32>>,
    seen: Vec<u64>,
    rows: Vec<RowHead>,
    /// Of each tensor its id, the number of its values, and what they are.
    tensors: Vec<(u32, usize, Kind)>,
}

/// What the values of a tensor are.
#[derive(Serialize, Deserialize)]
enum Kind {
    Floats,
    Integers,
    Codes {
        /// The bits of what a code is multiplied by.
        step: u32,
        has_two_planes: bool,
        group: usize,
        groups: usize,
    },
}

impl CourseHead {
    fn of((run, seed): CourseKey, saved: &Saved) -> Self {
        let kind = |values: &Values| match values {
            Values::Floats(_) => Kind::Floats,
            Values::Integers(_) => Kind::Integers,
            Values::Codes(held) => Kind::Codes {
                step: held.step.to_bits(),
                has_two_planes: !held.low.is_empty(),
                group: held.group,
                groups: held.shifts.len(),
            },
        };
        let tensor = |held: &Held| (held.tensor, held.values.len(), kind(&held.values));
        Self {
            run,
            seed,
            epoch: saved.epoch,
            update: saved.update,
            time_ns: saved.time.0,
            energy_bits: saved.energy.to_bits(),
            factors: saved.factors.clone(),
            seen: saved.seen.clone(),
            importance_bits: saved.importance.iter().map(|value| value.to_bits()).collect(),
            rows: saved.rows.iter().map(Row::head).collect(),
            tensors: saved.tensors.iter().map(tensor).collect(),
        }
    }

    /// The course, whose tensors' values are taken from the front of `bytes`; `None` if there are too few.
    fn read(self, bytes: &mut &[u8]) -> Option<(CourseKey, Saved)> {
        let (run, seed) = (self.run, self.seed);
        let mut tensor = |(tensor, len, kind): (u32, usize, Kind)| {
            let values = match kind {
                Kind::Floats => Values::Floats(take(bytes, len)?.map(f32::from_le_bytes).collect()),
                Kind::Integers => Values::Integers(take(bytes, len)?.map(i64::from_le_bytes).collect()),
                Kind::Codes { step, has_two_planes, group, groups } => {
                    let codes = take(bytes, len)?.map(i8::from_le_bytes).collect();
                    let low = take(bytes, if has_two_planes { len } else { 0 })?.map(i8::from_le_bytes).collect();
                    let shifts = take(bytes, groups)?.map(u8::from_le_bytes).collect();
                    Values::Codes(Coded { codes, low, step: f32::from_bits(step), group, shifts })
                }
            };
            Some(Held { tensor, values })
        };
        let saved = Saved {
            epoch: self.epoch,
            update: self.update,
            time: Nanos(self.time_ns),
            energy: f64::from_bits(self.energy_bits),
            importance: self.importance_bits.into_iter().map(f64::from_bits).collect(),
            rows: self.rows.into_iter().map(|head| Row::of((run, seed), head)).collect::<Option<_>>()?,
            factors: self.factors,
            seen: self.seen,
            tensors: self.tensors.into_iter().map(&mut tensor).collect::<Option<_>>()?,
        };
        Some(((run, seed), saved))
    }
}

#[cfg(test)]
mod tests {
    use haversack_workloads::data::Part;
    use serde_json::json;

    use super::*;

    fn record(seed: u64) -> Map<String, Value> {
        json!({ "command": "train", "seed": seed }).as_object().cloned().unwrap()
    }

    fn saved() -> Saved {
        let row = Row {
            run: 2,
            seed: 7,
            epoch: 1,
            split: Part::Test,
            loss: 0.1 + 0.2,
            accuracy: f64::NAN,
            simulated_time_s: 1e-300,
            energy_j: 3.0,
            peak_memory_bytes: u64::MAX,
        };
        let floats = Held { tensor: 4, values: Values::Floats(vec![0.1, f32::MIN_POSITIVE, -0.0]) };
        let integers = Held { tensor: 9, values: Values::Integers(vec![i64::MIN, 10]) };
        let one = Coded { codes: vec![-127, 0, 3], step: 0.25, ..Coded::default() };
        let wide = Coded { low: vec![-128, 0, 3], ..one.clone() };
        let grouped = Coded { group: 2, shifts: vec![0, 255], ..one.clone() };
        let codes = [(10, one), (11, wide), (12, grouped)];
        let codes = codes.map(|(tensor, held)| Held { tensor, values: Values::Codes(held) });
        Saved {
            epoch: 1,
            update: 156,
            time: Nanos(5),
            energy: 0.3,
            importance: vec![0.7],
            factors: vec![None, Some(11)],
            seen: vec![u64::MAX, 3],
            rows: vec![row],
            tensors: [floats, integers].into_iter().chain(codes).collect(),
        }
    }

    fn written(folder: &Path) -> Vec<u8> {
        let mut checkpoint = Checkpoint::open(folder, &record(1), false).unwrap();
        checkpoint.save((2, 7), saved()).unwrap();
        std::fs::read(folder.join(NAME)).unwrap()
    }

    #[test]
    fn what_was_saved_comes_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        let again = Checkpoint::open(folder.path(), &record(1), true).unwrap();
        // Rows are compared by their text: one accuracy is no number, which is unequal to itself.
        assert_eq!(format!("{:?}", again.saved((2, 7)).unwrap()), format!("{:?}", saved()));
        assert_eq!((again.epochs(), again.saved((2, 8))), (1, None));
        let found = again.rows()[0];
        assert_eq!((found.loss.to_bits(), found.split), ((0.1_f64 + 0.2).to_bits(), Part::Test));
        assert_eq!(Checkpoint::open(folder.path(), &record(1), false).unwrap().epochs(), 0, "begins anew");
    }

    #[test]
    fn a_checkpoint_that_cannot_be_gone_on_from_says_why_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = written(folder.path());
        let refusal = |bytes: &[u8], seed: u64| {
            std::fs::write(folder.path().join(NAME), bytes).unwrap();
            let Err(error) = Checkpoint::open(folder.path(), &record(seed), true) else { panic!("it was read") };
            assert_eq!((error.exit_code(), std::fs::read(folder.path().join(NAME)).unwrap()), (2, bytes.to_vec()));
            error.to_string()
        };
        assert!(refusal(&bytes, 2).contains("of another specification"));
        let mut damaged = bytes.clone();
        damaged[bytes.len() - 20] ^= 1;
        assert!(refusal(&damaged, 1).contains("damaged: its checksum"));
        assert!(refusal(&bytes[..bytes.len() - 1], 1).contains("damaged"));
        assert!(refusal(b"PAR1", 1).contains("begins with 'PAR1'; expected 'haversack checkpoint 3'"));
        let (head, values) = opened(&bytes, FORMAT).unwrap();
        let head = String::from_utf8_lossy(head).replacen(env!("CARGO_PKG_VERSION"), "9.0", 1);
        let other = sealed(FORMAT, &head, values);
        assert!(refusal(&other, 1).contains("found a checkpoint of version 9"));
    }

    #[test]
    fn no_bytes_make_a_checkpoint_panic() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = written(folder.path());
        let (head, values) = opened(&bytes, FORMAT).unwrap();
        let content = [head, values].join(&b'\n');
        // What is whole by its checksum, whatever it holds.
        crate::fuzz::against("training-checkpoint", &[content], |bytes| {
            let (head, values) = bytes.split_at(bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len()));
            let head = String::from_utf8_lossy(head);
            std::fs::write(folder.path().join(NAME), sealed(FORMAT, &head, values.get(1..).unwrap_or_default()))
                .unwrap();
            let _ = Checkpoint::open(folder.path(), &record(1), true);
        });
    }
}
