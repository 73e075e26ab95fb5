//! The update of weights that are integers themselves.

use haversack_workloads::mixed::{Rate, Rounding};
use haversack_workloads::training_graph::Node;

use super::Integers;
use super::coding::draws;
use super::rounding::{LARGEST, Rounder};
use crate::eight::Eight;
use crate::error::ProgramError;
use crate::memory::{Contents, Memory};
use crate::optimiser::MOMENTUM;
use crate::program::Pass;

/// What a state of 32-bit integers counts: such shares of a code.
const SHARES: f32 = 256.0;

impl Integers {
    /// The update of a weight by its gradient, with or without a state, whose step stays.
    pub(super) fn update(&self, node: &Node, memory: &mut dyn Memory, pass: &Pass) -> Result<(), ProgramError> {
        let &[weight, gradient, ref states @ ..] = &node.inputs[..] else { return Ok(()) };
        let Some(held) = memory.take(weight) else { return Ok(()) };
        let rate = pass.rule.rate;
        let mut state = states.first().and_then(|&state| Some((state, memory.take(state)?)));
        let held = match (held, memory.eight(gradient)) {
            (Contents::Eight(held), Some(gradient)) if self.rules.learning_rate == Rate::GradientBits => {
                Contents::Eight(match &mut state {
                    Some((_, Contents::Floats(sums))) => without(held, &with_momentum(sums, &gradient.codes)),
                    _ => without(held, &gradient.codes),
                })
            }
            (Contents::Eight(held), Some(gradient)) => {
                let code = self.code(weight, Some(Rounding::Stochastic), draws(pass));
                let values = gradient.values(memory.meter());
                Contents::Eight(match code {
                    Some(code) => moved(held, &values, rate, code.rounder()),
                    None => held,
                })
            }
            (Contents::Floats(mut values), _) => {
                let gradient = memory.floats(gradient)?;
                values.iter_mut().zip(&*gradient).for_each(|(value, less)| *value -= rate * less);
                Contents::Floats(values)
            }
            (held, _) => held,
        };
        memory.put(weight, held);
        if let Some((state, held)) = state {
            memory.put(state, held);
        }
        Ok(())
    }
}

/// Codes less others (NITI, section 3).
fn without(mut held: Eight, less: &[i8]) -> Eight {
    for (code, &less) in held.codes.iter_mut().zip(less) {
        *code = code.saturating_sub(less).max(-LARGEST);
    }
    held
}

/// Adds codes to what is left of the sums of earlier ones; returns the sums to the nearest code.
fn with_momentum(sums: &mut [f32], codes: &[i8]) -> Vec<i8> {
    let one = |(sum, &code): (&mut f32, &i8)| {
        *sum = ((MOMENTUM * *sum + f32::from(code)) * SHARES).round() / SHARES;
        sum.round().clamp(-f32::from(LARGEST), LARGEST.into()) as i8
    };
    sums.iter_mut().zip(codes).map(one).collect()
}

/// Codes moved against a gradient, by as many steps as the rate makes of it.
fn moved(mut held: Eight, gradient: &[f32], rate: f32, rounder: Rounder) -> Eight {
    if held.step > 0.0 {
        for (place, (code, &gradient)) in held.codes.iter_mut().zip(gradient).enumerate() {
            let to = f64::from(*code) - f64::from(rate * gradient) / f64::from(held.step);
            *code = rounder.round(to, LARGEST.into(), place) as i8;
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Meter;

    #[test]
    fn sums_of_codes_fade_by_tenths_in_shares_of_a_code() {
        let mut sums = [0.0, 4.0];
        // 4; 0.9 · 4 - 1 = 2.6, which is 665.6 shares: 666.
        assert_eq!(with_momentum(&mut sums, &[4, -1]), [4, 3]);
        assert_eq!(sums, [4.0, 666.0 / 256.0]);
        // Beyond the range of a code the sum goes on, and the weight takes 127.
        assert_eq!(with_momentum(&mut [200.0], &[100]), [127]);
    }

    #[test]
    fn codes_move_by_what_the_rate_makes_of_a_gradient_and_end_at_127() {
        let meter = Meter::new();
        let held = Eight::new(meter.copy(&[10_i8, -5, 127, -127]), 0.5);
        let rounder = Rounder { rounding: Rounding::Stochastic, stream: 0 };
        // A tenth of 10 is 1, two steps; nothing; and what is at the end stays there.
        let held = moved(held, &[10.0, 0.0, -10.0, 10.0], 0.1, rounder);
        assert_eq!(*held.codes, [8, -5, 127, -127]);
        assert_eq!(*without(held, &[1, -1, -1, 1]).codes, [7, -4, 127, -127]);
    }
}
