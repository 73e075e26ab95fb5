//! The update of weights that are integers themselves.

use haversack_workloads::training_graph::Node;

use super::rounding::LARGEST;
use crate::eight::Eight;
use crate::memory::{Contents, Memory};
use crate::optimiser::MOMENTUM;

/// What a state of 32-bit integers counts: such shares of a code.
const SHARES: f32 = 256.0;

/// The update of a weight by its gradient, with or without a state, whose step stays.
pub(super) fn update(node: &Node, memory: &mut dyn Memory) {
    let &[weight, gradient, ref states @ ..] = &node.inputs[..] else { return };
    let Some(held) = memory.take(weight) else { return };
    let mut state = states.first().and_then(|&state| Some((state, memory.take(state)?)));
    let held = match (held, memory.eight(gradient)) {
        (Contents::Eight(held), Some(gradient)) => Contents::Eight(match &mut state {
            Some((_, Contents::Floats(sums))) => without(held, &with_momentum(sums, &gradient.codes)),
            _ => without(held, &gradient.codes),
        }),
        (held, _) => held,
    };
    memory.put(weight, held);
    if let Some((state, held)) = state {
        memory.put(state, held);
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
    fn codes_end_at_127() {
        let held = Eight { codes: Meter::new().copy(&[8_i8, -5, 127, -127]), step: 0.5 };
        assert_eq!(*without(held, &[1, -1, -1, 1]).codes, [7, -4, 127, -127]);
    }
}
