//! What a federation has learned so far, so that one that was cut off goes on to the same bytes.
//!
//! Rounds themselves are simulated again, which takes no time beside learning; what the phones of the rounds before have
//! learned is read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haversack_devices::registry::digest;
use haversack_federation::federation::Learned;
use haversack_federation::learning::{Server, ServerRule};
use haversack_reports::write_atomically;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::CommandError;
use crate::sealed::{opened, sealed, take};

/// The file's name in its folder.
pub(super) const NAME: &str = "checkpoint";
const FORMAT: &str = "haversack federation 3";
/// It is written at most so often.
const PAUSE: Duration = Duration::from_secs(2);

/// The checkpoint of a folder.
pub(super) struct Checkpoint {
    /// `None` if nothing is to be written.
    path: Option<PathBuf>,
    digest: String,
    rounds: Vec<Learned>,
    /// The server's weights, and the mean and the mean square of changes that its rule keeps.
    server: [Vec<f32>; 3],
    written: Option<Instant>,
}

/// The line of JSON; real numbers are the integers of their bits.
#[derive(Serialize, Deserialize)]
struct Head {
    version: String,
    digest: String,
    /// Of each round the number of losses, and the accuracy if it was measured.
    rounds: Vec<(usize, Option<u64>)>,
    /// The numbers of values that the server keeps.
    server: [usize; 3],
}

impl Checkpoint {
    /// The checkpoint of what `record` says, at `path`; with `resume` what it holds is kept, otherwise it begins anew.
    ///
    /// # Errors
    /// A checkpoint to go on from that is damaged, or of another version or specification; it is left as it is.
    pub(super) fn open(path: PathBuf, record: &Map<String, Value>, resume: bool) -> Result<Self, CommandError> {
        let digest = digest(&Value::Object(record.clone()).to_string());
        let mut checkpoint = Self { path: Some(path.clone()), digest, ..Self::nowhere() };
        if resume && path.is_file() {
            checkpoint.read(&path).map_err(|why| {
                let path = path.display();
                CommandError::input(format!("{path}: {why}; choose another folder, or go without --resume"))
            })?;
        }
        Ok(checkpoint)
    }

    /// One that is never written.
    pub(super) const fn nowhere() -> Self {
        let server = [const { Vec::new() }; 3];
        Self { path: None, digest: String::new(), rounds: Vec::new(), server, written: None }
    }

    /// The number of rounds that have been learned.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds.len() as u64
    }

    /// What was learned in a round, from one.
    pub(super) fn learned(&self, round: u32) -> Option<Learned> {
        self.rounds.get(round.checked_sub(1)? as usize).cloned()
    }

    /// The server as it was after the last round; `None` before the first.
    pub(super) fn server(&self, rule: ServerRule) -> Option<Server> {
        let [weights, mean, square] = self.server.clone();
        if self.rounds.is_empty() { None } else { Server::restored(weights, rule, mean, square) }
    }

    /// Keeps what a round has taught; on the disc a little later.
    pub(super) fn save(&mut self, learned: Learned, server: &Server) -> Result<(), CommandError> {
        self.rounds.push(learned);
        let [mean, square] = server.kept();
        self.server = [&server.weights, mean, square].map(<[f32]>::to_vec);
        if self.written.is_some_and(|written| written.elapsed() < PAUSE) { Ok(()) } else { self.write() }
    }

    /// Writes it now.
    pub(super) fn write(&mut self) -> Result<(), CommandError> {
        let Some(path) = &self.path else { return Ok(()) };
        let head = Head {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            digest: self.digest.clone(),
            rounds: self.rounds.iter().map(|round| (round.losses.len(), round.accuracy.map(f64::to_bits))).collect(),
            server: [0, 1, 2].map(|place: usize| self.server[place].len()),
        };
        let head = serde_json::to_string(&head).map_err(CommandError::failed)?;
        let losses = self.rounds.iter().flat_map(|round| &round.losses).flat_map(|loss| loss.to_le_bytes());
        let weights = self.server.iter().flatten();
        let values: Vec<u8> = losses.chain(weights.flat_map(|value| value.to_le_bytes())).collect();
        write_atomically(path, &sealed(FORMAT, &head, &values))?;
        self.written = Some(Instant::now());
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<(), String> {
        let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
        let (head, mut values) = opened(&bytes, FORMAT)?;
        let head: Head = serde_json::from_slice(head).map_err(|error| format!("line 2: {error}"))?;
        let version = env!("CARGO_PKG_VERSION");
        if head.version != version {
            return Err(format!("found a checkpoint of version {}; expected {version}", head.version));
        }
        if head.digest != self.digest {
            return Err("found a checkpoint of another specification, other traces or other calibrations".to_owned());
        }
        let few = || "line 2: fewer values than it says".to_owned();
        for (losses, accuracy) in head.rounds {
            let losses = take(&mut values, losses).ok_or_else(few)?.map(f64::from_le_bytes).collect();
            self.rounds.push(Learned { losses, accuracy: accuracy.map(f64::from_bits) });
        }
        for (kept, number) in self.server.iter_mut().zip(head.server) {
            *kept = take(&mut values, number).ok_or_else(few)?.map(f32::from_le_bytes).collect();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(seed: u64) -> Map<String, Value> {
        json!({ "command": "federate", "seed": seed }).as_object().cloned().unwrap()
    }

    #[test]
    fn what_was_learned_comes_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = Checkpoint::open(folder.path().join(NAME), &record(1), true).unwrap();
        let learned = [
            Learned { losses: vec![0.1 + 0.2, 1e-300], accuracy: Some(0.3) },
            Learned { losses: vec![], accuracy: None },
        ];
        let server = Server::new(vec![0.1, -0.0], ServerRule::Add);
        learned.iter().for_each(|learned| written.save(learned.clone(), &server).unwrap());
        written.write().unwrap();
        let read = Checkpoint::open(folder.path().join(NAME), &record(1), true).unwrap();
        assert_eq!((read.rounds(), read.server(ServerRule::Add)), (2, Some(server)));
        assert_eq!(
            [1, 2, 3].map(|round| read.learned(round)),
            [Some(learned[0].clone()), Some(learned[1].clone()), None]
        );
        assert_eq!(Checkpoint::open(folder.path().join(NAME), &record(1), false).unwrap().rounds(), 0);
    }

    #[test]
    fn damaged_ones_and_those_of_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        Checkpoint::open(folder.path().join(NAME), &record(1), false).unwrap().write().unwrap();
        let refused = |seed| Checkpoint::open(folder.path().join(NAME), &record(seed), true).err().unwrap().to_string();
        assert!(refused(2).contains("another specification"), "{}", refused(2));
        let path = folder.path().join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[30] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(refused(1).contains("damaged"), "{}", refused(1));
    }

    #[test]
    fn no_bytes_make_a_checkpoint_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let mut written = Checkpoint::open(path.clone(), &record(1), true).unwrap();
        let server = Server::new(vec![0.1, -0.0], ServerRule::Add);
        let learned = Learned { losses: vec![0.3, 1e-300], accuracy: Some(0.3) };
        written.save(learned, &server).unwrap();
        written.write().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let (head, values) = opened(&bytes, FORMAT).unwrap();
        let content = [head, values].join(&b'\n');
        // What is whole by its checksum, whatever it holds.
        crate::fuzz::against("federation-checkpoint", &[content], |bytes| {
            let (head, values) = bytes.split_at(bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len()));
            let head = String::from_utf8_lossy(head);
            std::fs::write(&path, sealed(FORMAT, &head, values.get(1..).unwrap_or_default())).unwrap();
            let read = Checkpoint::open(path.clone(), &record(1), true);
            let _ = read.map(|read| read.server(ServerRule::Add));
        });
    }
}
