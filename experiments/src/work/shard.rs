//! A part of a sweep or of a reproduction.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The `part`-th of `parts` parts, from one: of a sweep a range of run numbers, of a reproduction artefacts by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    part: u64,
    parts: u64,
}

impl Shard {
    /// The numbers of this part's runs, of `runs` in all.
    pub fn of(self, runs: u64) -> Range<u64> {
        let end = |part: u64| (u128::from(runs) * u128::from(part) / u128::from(self.parts)) as u64;
        end(self.part - 1)..end(self.part)
    }

    /// Whether what stands at `place`, from zero, is this part's where parts take turns.
    pub const fn is_turn(self, place: usize) -> bool {
        place as u64 % self.parts == self.part - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
        match numbers {
            Some((part, parts)) if (1..=parts).contains(&part) => Ok(Self { part, parts }),
            _ => Err("expected I/N with I from 1 to N, such as 1/4".to_owned()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.parts)
    }
}

/// The place on each of several axes, of these lengths, of the combination numbered `number`: the first varies slowest.
pub(crate) fn places(number: usize, lengths: impl DoubleEndedIterator<Item = usize>) -> Vec<usize> {
    let mut rest = number;
    let place = |length: usize| {
        let place = rest % length.max(1);
        rest /= length.max(1);
        place
    };
    let mut places: Vec<usize> = lengths.rev().map(place).collect();
    places.reverse();
    places
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn shards_cover_every_run_once() {
        let runs: Vec<u64> = (1..=7).flat_map(|part| Shard { part, parts: 7 }.of(24)).collect();
        assert_eq!(runs, (0..24).collect::<Vec<_>>());
        assert_eq!(Shard { part: 1, parts: 4 }.of(1), 0..0);
    }

    #[test]
    fn parts_take_turns() {
        let of = |part| (0..7).filter(|place| Shard { part, parts: 3 }.is_turn(*place)).collect::<Vec<_>>();
        assert_eq!([of(1), of(2), of(3)], [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    }

    #[test]
    fn only_parts_that_exist_are_shards() {
        assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
        assert!(["0/4", "5/4", "1/0", "4", "a/b", "1/4/2", "-1/4"].iter().all(|text| text.parse::<Shard>().is_err()));
    }
}
