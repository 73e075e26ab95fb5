//! How each tensor of a rewritten graph becomes integers: its bits, who shares a step, and how values are rounded.

use haversack_workloads::mixed::{Arithmetic, FixedSteps, Rounding, Scaling};
use haversack_workloads::{Network, Role, TensorId};

use super::Integers;
use super::rounding::{LARGEST, Rounder, exponent, largest, power_of_two, step_for};
use crate::eight::{Eight, Groups};
use crate::memory::Contents;
use crate::meter::Meter;
use crate::program::step::{Derivative, Step};
use crate::program::{Coded, Pass, Program};
use crate::sixteen::{self, Sixteen};

/// The most by which the step of a group is finer than the tensor's, in powers of two.
const FINEST_GROUP: i32 = 24;
/// What tells the draws of roundings from those of masks.
const PURPOSE: u64 = 0x524F_554E_4453;

/// How the values of a tensor become integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    bits: Coded,
    scaling: Scaling,
    /// The exponent of a step that is always the same.
    fixed: Option<i32>,
    /// The share of the largest magnitude that codes reach to.
    range: f32,
    /// The values of a group.
    group: usize,
    rounder: Rounder,
}

impl Integers {
    /// How `tensor`, which is held as integers, is written in `pass`: as most values are rounded, or as `rounding` says.
    pub(super) fn code(&self, tensor: TensorId, rounding: Option<Rounding>, pass: (u64, u64, u64)) -> Option<Code> {
        let Arithmetic { scaling, values, gradient_range, fixed, .. } = self.rules;
        let role = self.rewritten.graph.tensor(tensor).role;
        // What is updated belongs to no micro-batch.
        let pass = if role.is_state() { (pass.0, pass.1, 0) } else { pass };
        Some(Code {
            bits: self.coded[tensor as usize]?,
            scaling,
            fixed: fixed_step(fixed, role),
            range: if role == Role::Gradient { gradient_range } else { 1.0 },
            group: self.groups[tensor as usize],
            rounder: Rounder { rounding: rounding.unwrap_or(values), stream: stream(pass, tensor) },
        })
    }
}

/// What tells the draws of one pass from those of another: the seed, the update and the first sample.
pub(super) const fn draws(pass: &Pass) -> (u64, u64, u64) {
    (pass.seed, pass.update, pass.first as u64)
}

/// The stream by which what is written to a tensor is rounded.
const fn stream((seed, update, first): (u64, u64, u64), tensor: TensorId) -> u64 {
    let place = update.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ first.wrapping_mul(0xD1B5_4A32_D192_ED03);
    seed ^ place ^ PURPOSE ^ (tensor as u64) << 40
}

/// The step of the tensors with `role`, where it is always the same. That of a weight's gradient is another matter: its codes
/// have a scale of their own, and mean another one.
const fn fixed_step(fixed: FixedSteps, role: Role) -> Option<i32> {
    match role {
        Role::Parameter { .. } => fixed.weight,
        Role::Activation | Role::Input => fixed.activation,
        Role::OptimiserState => fixed.state,
        _ => None,
    }
}

impl Code {
    /// Whether sums of integers become codes of it by a shift.
    pub(super) fn shifts(&self) -> bool {
        self.bits == Coded::Eight && self.scaling == Scaling::PowerOfTwo && self.fixed.is_none() && self.range >= 1.0
    }

    /// The exponent of a step that is always the same.
    pub(super) const fn fixed_step(&self) -> Option<i32> {
        self.fixed
    }

    pub(super) const fn rounder(&self) -> Rounder {
        self.rounder
    }

    /// The step of `values`: none below `finest`, that of what they were chosen from.
    pub(super) fn step(&self, values: &[f32], finest: f32) -> f32 {
        if let Some(exponent) = self.fixed {
            return power_of_two(exponent);
        }
        let (most, largest) = (self.most(), largest(values) * self.range);
        match self.scaling {
            // What was chosen from codes keeps them.
            Scaling::Range if finest > 0.0 && largest <= finest * (most as f32 + 0.5) => finest,
            Scaling::Range => largest / most as f32,
            Scaling::PowerOfTwo | Scaling::Channel => step_for(largest, most).max(finest),
        }
    }

    const fn most(&self) -> i32 {
        match self.bits {
            Coded::Eight => LARGEST as i32,
            Coded::Sixteen => sixteen::LARGEST,
        }
    }

    /// `values` in steps of `step`, or of each group's own below it.
    pub(super) fn encode(&self, values: &[f32], step: f32, meter: &Meter) -> Contents {
        let rounder = self.rounder;
        if self.bits == Coded::Sixteen {
            let inverse = if step > 0.0 { f64::from(step).recip() } else { 0.0 };
            let code = |(place, &value): (usize, &f32)| rounder.round(f64::from(value) * inverse, self.most(), place);
            return Contents::Sixteen(Sixteen::new(values.iter().enumerate().map(code), values.len(), step, meter));
        }
        let mut held = Eight::new(meter.codes(values.len()), step);
        if self.scaling != Scaling::Channel || self.fixed.is_some() {
            rounder.codes(values, step, 0, &mut held.codes);
            return Contents::Eight(held);
        }
        let size = self.group.max(1);
        let mut shifts = meter.bytes(values.len().div_ceil(size));
        let groups = values.chunks(size).zip(held.codes.chunks_mut(size));
        for (group, ((values, codes), shift)) in groups.zip(shifts.iter_mut()).enumerate() {
            let own = step_for(largest(values), self.most());
            let finer = if own > 0.0 { (exponent(step) - exponent(own)).clamp(0, FINEST_GROUP) } else { 0 };
            *shift = finer as u8;
            rounder.codes(values, step * power_of_two(-finer), group * size, codes);
        }
        held.groups = Some(Groups { size, shifts });
        Contents::Eight(held)
    }
}

/// The values of a group with one step of its own, of each tensor of the graph that was rewritten: a plane of a channel of a
/// sample or of a filter, or a row of features.
pub(super) fn groups(network: &Network, eager: &Program, tensors: usize) -> Vec<usize> {
    let mut sizes = vec![0; tensors];
    for value in &network.values {
        let size = &mut sizes[value.storage as usize];
        // Views come after what they show.
        if *size == 0 {
            let planes: u64 = value.shape.sizes().iter().skip(2).product();
            *size = if value.shape.rank() == 4 { planes } else { value.shape.last() } as usize;
        }
    }
    for parameter in &network.parameters {
        let planes: u64 = parameter.dims.iter().skip(2).product();
        let row = parameter.dims.last().copied().unwrap_or(1);
        sizes[parameter.storage as usize] = if parameter.dims.len() > 2 { planes } else { row } as usize;
    }
    for step in &eager.steps {
        match step {
            Step::Backward(Derivative { operator, inputs, weights, .. }) => {
                let node = &network.nodes[*operator as usize];
                for &(place, gradient) in inputs {
                    sizes[gradient as usize] = sizes[network.value(node.inputs[place]).storage as usize];
                }
                for &(place, gradient) in weights {
                    sizes[gradient as usize] = sizes[network.parameter(node.parameters[place]).storage as usize];
                }
            }
            Step::Accumulate { parts, sum } => sizes[*sum as usize] = sizes[parts[0].tensor as usize],
            _ => {}
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(bits: Coded, scaling: Scaling, rounding: Rounding) -> Code {
        Code { bits, scaling, fixed: None, range: 1.0, group: 4, rounder: Rounder { rounding, stream: 3 } }
    }

    fn back(code: &Code, values: &[f32], finest: f32) -> Vec<f32> {
        let meter = Meter::new();
        let made = code.encode(values, code.step(values, finest), &meter);
        made.decoded(&meter).unwrap().to_vec()
    }

    #[test]
    fn a_group_has_as_fine_a_step_as_its_values_allow() {
        let by_channel = code(Coded::Eight, Scaling::Channel, Rounding::Nearest);
        // The tensor's 127 have steps of 1; the second group's largest, 1.5, has steps of 2^-6, 96 of them.
        let values = [127.0, 0.4, 0.0, -3.0, 1.5, 0.015_625, 0.0, -0.5];
        assert_eq!(back(&by_channel, &values, 0.0), [127.0, 0.0, 0.0, -3.0, 1.5, 0.015_625, 0.0, -0.5]);
        // With one step for all, the small ones are gone.
        let one = code(Coded::Eight, Scaling::PowerOfTwo, Rounding::Nearest);
        assert_eq!(back(&one, &values, 0.0)[4..], [2.0, 0.0, 0.0, -1.0]);
    }

    #[test]
    fn what_does_not_change_keeps_its_codes() {
        // Of 0.3 times 1, 5 and 127 the largest is cut away: the rest keeps its step.
        let by_range = code(Coded::Eight, Scaling::Range, Rounding::Stochastic);
        let (step, values) = (0.3, [0.3, 1.5]);
        assert_eq!(by_range.step(&values, step), step);
        assert_eq!(back(&by_range, &values, step), values);
        assert_eq!(by_range.step(&values, 0.0), 1.5 / 127.0);
    }

    #[test]
    fn a_range_that_is_cut_and_a_step_that_is_fixed_saturate() {
        let cut = Code { range: 0.5, ..code(Coded::Eight, Scaling::Range, Rounding::Nearest) };
        assert_eq!(back(&cut, &[1.0, -0.5, 0.25], 0.0)[..2], [0.5, -0.5]);
        let fixed = Code { fixed: Some(-7), ..code(Coded::Eight, Scaling::PowerOfTwo, Rounding::Nearest) };
        assert_eq!(back(&fixed, &[2.0, -2.0, 0.5, 0.0], 0.0), [127.0 / 128.0, -127.0 / 128.0, 0.5, 0.0]);
    }

    proptest! {
        #[test]
        fn what_is_held_is_within_half_a_step(
            values in prop::collection::vec(-1e3_f32..1e3, 1..40),
            wide: bool,
            scaling in prop_oneof![Just(Scaling::PowerOfTwo), Just(Scaling::Range), Just(Scaling::Channel)],
        ) {
            let bits = if wide { Coded::Sixteen } else { Coded::Eight };
            let code = code(bits, scaling, Rounding::Nearest);
            let step = code.step(&values, 0.0);
            for (value, held) in values.iter().zip(back(&code, &values, 0.0)) {
                // Beside the half step what a float of the value's size cannot tell apart.
                let apart = step * 0.5001 + value.abs() * f32::EPSILON;
                prop_assert!((held - value).abs() <= apart, "{value} as {held}");
                prop_assert!(*value != 0.0 || held == 0.0);
            }
            // A second time nothing changes.
            let once = back(&code, &values, 0.0);
            prop_assert_eq!(back(&code, &once, step), once);
        }
    }
}
