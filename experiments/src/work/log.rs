//! A log on disk with a row for each finished part, written as they come, so that killed work can be resumed.
//!
//! The first line contains the format and a digest of what the rows depend on. Each other line contains the checksum of
//! the rest, the key of a part, and a row as JSON; a later row of a part replaces the earlier one. A truncated last
//! line is dropped. Only the position of each part's line is in memory.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::ops::{Range, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haversack_devices::ensure;
use haversack_devices::registry::digest;
use haversack_reports::write_atomically;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::folder::THIS_BUILD;
use crate::{CommandError, Result};

/// The number is increased with every change of the format.
const FORMAT: &str = "haversack log 1";
/// Bytes per read: about two rows of a sweep.
const READ: usize = 2048;
/// The file is compacted only if its replaced rows exceed this many bytes.
const STALE: u64 = 1 << 20;

/// The log of one piece of work.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    head: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` until something is written.
    file: Option<File>,
    /// The end of the file.
    end: u64,
    /// The position of each part's line.
    lines: BTreeMap<u64, Range<u64>>,
    /// The bytes of these lines.
    live: u64,
}

impl State {
    /// Records that the line of `key` is now the `length` bytes at the end.
    fn put(&mut self, key: u64, length: u64) {
        let line = self.end..self.end + length;
        self.end = line.end;
        self.live += length;
        if let Some(stale) = self.lines.insert(key, line) {
            self.live -= stale.end - stale.start;
        }
    }
}

impl Log {
    /// Opens the log at `path` of work with the dependencies `of`; with `resume` its rows are kept, otherwise the first
    /// write replaces it.
    ///
    /// # Errors
    /// A log to resume from that is damaged or has other dependencies; the file is not changed.
    pub(crate) fn open(path: PathBuf, of: &str, resume: bool) -> Result<Self> {
        let head = format!("{FORMAT} {}\n", digest(&format!("{THIS_BUILD} {of}")));
        let state = if resume && path.is_file() { read(&path, &head) } else { Ok(State::default()) };
        let state = state.map_err(|why| {
            CommandError::input(format!("{} {why}; choose another folder, or go without --resume", path.display()))
        })?;
        Ok(Self { path, head, state: Mutex::new(state) })
    }

    /// The key of a name.
    pub(crate) fn key(name: &str) -> u64 {
        u64::from_str_radix(&digest(name), 16).unwrap_or_default()
    }

    /// Concatenates the compacted logs at `from`, whose parts follow each other, to `to`; writes nothing without logs.
    pub(crate) fn join(from: &[PathBuf], to: &Path) -> Result<()> {
        let mut whole = Vec::new();
        for path in from {
            let bytes = std::fs::read(path)
                .map_err(|error| CommandError::failed(format!("cannot read {}: {error}", path.display())))?;
            let head = if whole.is_empty() {
                0
            } else {
                bytes.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1)
            };
            whole.extend(&bytes[head..]);
        }
        if !whole.is_empty() {
            write_atomically(to, &whole)?;
        }
        Ok(())
    }

    /// Whether the log has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().lines.is_empty()
    }

    /// Whether there is a row of `key`.
    pub(crate) fn holds(&self, key: u64) -> bool {
        self.lock().lines.contains_key(&key)
    }

    /// The row of `key`, if there is one.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: u64) -> Result<Option<T>> {
        Ok(self.rows(key..=key)?.pop())
    }

    /// The rows of `keys`, by key; missing ones are left out.
    pub(crate) fn rows<T: DeserializeOwned>(&self, keys: impl RangeBounds<u64>) -> Result<Vec<T>> {
        let failed = |error: io::Error| self.failure("read", &error);
        let lines: Vec<Range<u64>> = self.lock().lines.range(keys).map(|(_, line)| line.clone()).collect();
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let mut reader = BufReader::with_capacity(READ, File::open(&self.path).map_err(failed)?);
        let (mut at, mut line, mut rows) = (0, Vec::new(), Vec::with_capacity(lines.len()));
        for place in lines {
            reader.seek_relative(place.start as i64 - at).map_err(failed)?;
            line.clear();
            at = place.start as i64 + reader.read_until(b'\n', &mut line).map_err(failed)? as i64;
            let damaged = || io::Error::other("a line has another checksum");
            checked(&line).ok_or_else(damaged).map_err(failed)?;
            let row = line.splitn(3, |&byte| byte == b' ').last().unwrap_or_default();
            rows.push(serde_json::from_slice(row).map_err(|error| failed(error.into()))?);
        }
        Ok(rows)
    }

    /// Writes the log to disk, with the rows that are kept and without a truncated one.
    pub(crate) fn begin(&self) -> Result<()> {
        let begun = self.begun(&mut self.lock()).map(drop);
        begun.map_err(|error| self.failure("write", &error))
    }

    /// Appends a row of `key`.
    pub(crate) fn append(&self, key: u64, row: &impl Serialize) -> Result<()> {
        let content = format!("{key} {}", serde_json::to_string(row).map_err(CommandError::failed)?);
        let line = format!("{} {content}\n", digest(&content));
        let mut state = self.lock();
        let written = self.begun(&mut state).and_then(|file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            // A partial line may remain, which is removed before anything else is written.
            state.file = None;
            return Err(self.failure("write", &error));
        }
        state.put(key, line.len() as u64);
        if state.end - state.live > STALE.max(4 * state.live) { self.rewrite(&mut state) } else { Ok(()) }
    }

    /// Compacts the log to the last row of each part, by key: the bytes are the same even if the work was interrupted.
    pub(crate) fn tidy(&self) -> Result<()> {
        self.rewrite(&mut self.lock())
    }

    /// The file, truncated after its last complete line.
    fn begun<'s>(&self, state: &'s mut State) -> io::Result<&'s mut File> {
        let file = match state.file.take() {
            Some(file) => file,
            None => {
                let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
                file.set_len(state.end)?;
                file.seek(SeekFrom::End(0))?;
                if state.end == 0 {
                    file.write_all(self.head.as_bytes())?;
                    state.end = self.head.len() as u64;
                }
                file
            }
        };
        Ok(state.file.insert(file))
    }

    fn rewrite(&self, state: &mut State) -> Result<()> {
        let bytes = match std::fs::read(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.failure("read", &error)),
            found => found.unwrap_or_default(),
        };
        let mut tidy = State { end: self.head.len() as u64, ..State::default() };
        let mut text = self.head.clone().into_bytes();
        for (key, line) in &state.lines {
            text.extend(bytes.get(line.start as usize..line.end as usize).unwrap_or_default());
            tidy.put(*key, line.end - line.start);
        }
        write_atomically(&self.path, &text)?;
        *state = tidy;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self, action: &str, error: &io::Error) -> CommandError {
        CommandError::failed(format!("cannot {action} {}: {error}", self.path.display()))
    }
}

/// Finds the complete lines of the log at `path`, which begins with `head`.
fn read(path: &Path, head: &str) -> Result<State, String> {
    let failed = |error: io::Error| format!("cannot be read: {error}");
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let (mut state, mut line) = (State::default(), Vec::new());
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(failed)? as u64;
        let is_whole = line.last() == Some(&b'\n');
        if state.end == 0 {
            let is_ours = if is_whole { line == head.as_bytes() } else { head.as_bytes().starts_with(&line) };
            ensure!(is_ours, "is of another specification, shard or build".to_owned());
        }
        if !is_whole {
            return Ok(state);
        }
        if state.end == 0 {
            state.end = length;
        } else {
            let damaged = || format!("is damaged: the line at byte {} has another checksum", state.end);
            let key = checked(&line).ok_or_else(damaged)?;
            state.put(key, length);
        }
    }
}

/// The key of a line whose checksum is right.
fn checked(line: &[u8]) -> Option<u64> {
    let (sum, content) = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.split_once(' ')?;
    let (key, _) = content.split_once(' ')?;
    if sum == digest(content) { key.parse().ok() } else { None }
}

/// Lists of numbers as the hexadecimal digits of their bytes: short, and bit-exact when read back.
pub(crate) mod bits {
    use std::fmt::Write as _;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// A number as little-endian bytes.
    pub(crate) trait Bits: Copy {
        /// Appends its bytes.
        fn write(self, bytes: &mut Vec<u8>);
        /// All numbers of `bytes`; `None` if bytes are left over.
        fn read(bytes: &[u8]) -> Option<Vec<Self>>;
    }

    macro_rules! bits {
        ($($number:ty),*) => {$(
            impl Bits for $number {
                fn write(self, bytes: &mut Vec<u8>) {
                    bytes.extend(self.to_le_bytes());
                }

                fn read(bytes: &[u8]) -> Option<Vec<Self>> {
                    let (numbers, rest) = bytes.as_chunks();
                    rest.is_empty().then(|| numbers.iter().copied().map(Self::from_le_bytes).collect())
                }
            }
        )*};
    }
    bits!(i8, i64, f32, f64);

    pub(crate) fn serialize<T: Bits, S: Serializer>(numbers: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(size_of_val(numbers));
        numbers.iter().for_each(|number| number.write(&mut bytes));
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            // Writing to a text cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }

    pub(crate) fn deserialize<'de, T: Bits, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        let byte = |pair: &[u8]| Some((digit(pair.first()?)? << 4 | digit(pair.get(1)?)?) as u8);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.and_then(|bytes| T::read(&bytes)).ok_or_else(|| D::Error::custom("expected the digits of numbers"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, of: &str) -> Result<Log, String> {
        Log::open(folder.join("log"), of, true).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_come_back_to_the_bit_and_later_ones_take_the_place_of_earlier() {
        let folder = tempfile::tempdir().unwrap();
        let log = open(folder.path(), "a").unwrap();
        log.append(7, &0.1).unwrap();
        log.append(3, &1e-300).unwrap();
        log.append(7, &(0.1 + 0.2)).unwrap();
        for log in [log, open(folder.path(), "a").unwrap()] {
            assert_eq!(log.rows::<f64>(..).unwrap(), [1e-300, 0.1 + 0.2]);
            assert_eq!((log.get::<f64>(4).unwrap(), log.holds(7), log.holds(4)), (None, true, false));
        }
        assert!(Log::open(folder.path().join("log"), "b", false).unwrap().rows::<f64>(..).unwrap().is_empty());
    }

    #[test]
    fn a_line_that_was_cut_off_goes_and_others_follow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = open(folder.path(), "a").unwrap();
        (0..3).for_each(|key| log.append(key, &"row").unwrap());
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let log = open(folder.path(), "a").unwrap();
            (0..3).filter(|key| !log.holds(*key)).for_each(|key| log.append(key, &"row").unwrap());
            assert_eq!(log.rows::<String>(..).unwrap(), ["row"; 3], "{length} bytes");
        }
    }

    #[test]
    fn a_tidy_log_has_the_same_bytes_whatever_came_before() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, two] = folders.each_ref().map(|folder| open(folder.path(), "a").unwrap());
        [(1, "b"), (0, "a")].iter().for_each(|(key, row)| one.append(*key, row).unwrap());
        // More than the permitted stale bytes: the file is compacted in between.
        let long = "x".repeat(STALE as usize);
        (0..7).for_each(|_| two.append(0, &long).unwrap());
        [(0, "a"), (1, "c"), (1, "b")].iter().for_each(|(key, row)| two.append(*key, row).unwrap());
        [&one, &two].iter().for_each(|log| log.tidy().unwrap());
        let [first, second] = folders.each_ref().map(|folder| std::fs::read(folder.path().join("log")).unwrap());
        assert_eq!(String::from_utf8(first).unwrap(), String::from_utf8(second).unwrap());
        two.append(2, &"d").unwrap();
        assert_eq!(open(folders[1].path(), "a").unwrap().rows::<String>(..).unwrap(), ["a", "b", "d"]);
    }

    #[test]
    fn what_is_damaged_or_of_another_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        open(folder.path(), "a").unwrap().append(0, &"row").unwrap();
        assert!(open(folder.path(), "b").unwrap_err().contains("log is of another specification"));
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(open(folder.path(), "a").unwrap_err().contains("log is damaged: the line at byte"));
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        std::fs::write(&path, "PAR1").unwrap();
        assert!(open(folder.path(), "a").unwrap_err().contains("of another specification"));
    }

    #[test]
    fn no_flipped_bit_makes_another_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = open(folder.path(), "a").unwrap();
        (0..3).for_each(|key| log.append(key, &(key as f64 / 7.0)).unwrap());
        let rows = |log: &Log| log.rows::<f64>(..).map_err(|error| error.to_string());
        let (whole, all) = (std::fs::read(&path).unwrap(), rows(&log).unwrap());
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).unwrap();
            // Without its end, the last row counts as truncated.
            let is_end = bit / 8 == whole.len() - 1;
            let found = open(folder.path(), "a").and_then(|log| rows(&log));
            assert!(if is_end { found.unwrap() == all[..2] } else { found.is_err() }, "bit {bit}");
            assert!(is_end || bit / 8 < log.head.len() || rows(&log).is_err(), "bit {bit} under way");
        }
    }

    #[test]
    fn lists_of_numbers_keep_their_bits() {
        #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
        struct Row(#[serde(with = "bits")] Vec<f32>, #[serde(with = "bits")] Vec<i64>);
        let text = serde_json::to_string(&Row(vec![f32::NAN, -0.0], vec![i64::MIN])).unwrap();
        assert_eq!(text, r#"["0000c07f00000080","0000000000000080"]"#);
        let Row(reals, whole) = serde_json::from_str(&text).unwrap();
        assert!(reals[0].is_nan() && reals[1].to_bits() == 1 << 31 && whole == [i64::MIN]);
        for wrong in [r#"["0",""]"#, r#"["00",""]"#, r#"["0000000g",""]"#, r#"["é000000",""]"#] {
            assert!(serde_json::from_str::<Row>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_bytes_make_a_log_panic() {
        let folder = tempfile::tempdir().unwrap();
        let log = open(folder.path(), "a").unwrap();
        (0..3).for_each(|key| log.append(key, &[0.5, 1e-300]).unwrap());
        let seed = std::fs::read(folder.path().join("log")).unwrap();
        crate::fuzz::against("work-log", &[seed], |bytes| {
            std::fs::write(folder.path().join("log"), bytes).unwrap();
            let _ = open(folder.path(), "a").map(|log| log.rows::<Vec<f64>>(..));
        });
    }
}
