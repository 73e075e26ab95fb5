//! Tensors of integers, as a checkpoint holds them.

use haversack_numerics::Meter;
use haversack_numerics::eight::{Eight, Groups};
use haversack_numerics::memory::Contents;
use haversack_numerics::sixteen::Sixteen;
use serde::{Deserialize, Serialize};

use crate::work::bits;

/// Codes of eight bits, or of sixteen in two planes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Coded {
    /// The only plane, or the upper one.
    #[serde(with = "bits")]
    pub(super) codes: Vec<i8>,
    /// The lower plane; empty of eight bits.
    #[serde(with = "bits")]
    pub(super) low: Vec<i8>,
    /// What a code is multiplied by.
    pub(super) step: f32,
    /// The codes of a group that has a step of its own, 0 if there are none, and by how many powers of two each is finer.
    pub(super) group: usize,
    #[serde(with = "bits")]
    pub(super) shifts: Vec<u8>,
}

impl Coded {
    pub(super) fn of_eight(held: &Eight) -> Self {
        let groups = held.groups.as_ref();
        Self {
            codes: held.codes.to_vec(),
            low: Vec::new(),
            step: held.step,
            group: groups.map_or(0, |groups| groups.size),
            shifts: groups.map_or_else(Vec::new, |groups| groups.shifts.to_vec()),
        }
    }

    pub(super) fn of_sixteen(held: &Sixteen) -> Self {
        Self { codes: held.high.to_vec(), low: held.low.to_vec(), step: held.step, ..Self::default() }
    }

    pub(super) fn contents(&self, meter: &Meter) -> Contents {
        let codes = meter.copy(&self.codes);
        if !self.low.is_empty() {
            return Contents::Sixteen(Sixteen { high: codes, low: meter.copy(&self.low), step: self.step });
        }
        let groups = (self.group > 0).then(|| Groups { size: self.group, shifts: meter.copy(&self.shifts) });
        Contents::Eight(Eight { codes, step: self.step, groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_with_the_steps_of_their_groups() {
        let meter = Meter::new();
        let groups = Groups { size: 2, shifts: meter.copy(&[0, 3]) };
        let held = Eight { codes: meter.copy(&[64, -64, 64, -64]), step: 0.5, groups: Some(groups) };
        let Contents::Eight(back) = Coded::of_eight(&held).contents(&meter) else { panic!("not eight bits") };
        // 64 × 0.5 = 32, and eight times finer in the second group: 4.
        assert_eq!(back.values(&meter).to_vec(), [32.0, -32.0, 4.0, -4.0]);
    }
}
