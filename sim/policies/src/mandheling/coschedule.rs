//! Which operators run on the DSP (section 3.3): dynamic programming over the order of execution, and the scheme that
//! the paper calls intuitive.

use haversack_devices::units::Nanos;

/// What cannot be reached; no sum of times comes near it.
const NEVER: Nanos = Nanos::MAX;

/// Which operators of an execution order run on the DSP, so that the whole takes least: equations 1 to 3, exactly.
///
/// Operator `i` takes `cpu[i]` or `dsp[i]`, nothing where the DSP has no such operator, and `switch[i]` more where the
/// operator before it ran on the other processor. The first operator comes without a crossing, as in the paper. Of
/// equal times, staying on a processor wins over crossing, and of the two ends the DSP's, which takes less energy.
/// Linear in the number of operators; the slices are of one length.
pub fn assign(cpu: &[Nanos], dsp: &[Option<Nanos>], switch: &[Nanos]) -> Vec<bool> {
    // Whether the best way to end with operator i on the CPU, or on the DSP, had the one before on the DSP.
    let mut before: Vec<[bool; 2]> = Vec::with_capacity(cpu.len());
    let mut least = [Nanos::ZERO; 2];
    for ((&on_cpu, &on_dsp), &crossing) in cpu.iter().zip(dsp).zip(switch) {
        let crossing = if before.is_empty() { Nanos::ZERO } else { crossing };
        let [cpu_then, dsp_then] = least;
        let to_cpu = plus(dsp_then, crossing) < cpu_then;
        let to_dsp = dsp_then <= plus(cpu_then, crossing);
        before.push([to_cpu, to_dsp]);
        let at_cpu = if to_cpu { plus(dsp_then, crossing) } else { cpu_then };
        let at_dsp = if to_dsp { dsp_then } else { plus(cpu_then, crossing) };
        least = [plus(at_cpu, on_cpu), plus(at_dsp, on_dsp.unwrap_or(NEVER))];
    }
    let mut here = least[1] <= least[0] && least[1] < NEVER;
    let mut on_dsp = vec![false; before.len()];
    for (place, came_from) in on_dsp.iter_mut().zip(&before).rev() {
        *place = here;
        here = came_from[usize::from(here)];
    }
    on_dsp
}

/// What the operators take on the processors that `on_dsp` names, crossings included; nothing where the DSP lacks one.
pub fn time_of(cpu: &[Nanos], dsp: &[Option<Nanos>], switch: &[Nanos], on_dsp: &[bool]) -> Option<Nanos> {
    let mut sum = Nanos::ZERO;
    for (place, &there) in on_dsp.iter().enumerate() {
        sum += if there { dsp[place]? } else { cpu[place] };
        if place > 0 && there != on_dsp[place - 1] {
            sum += switch[place];
        }
    }
    Some(sum)
}

/// The scheme without the technique: what the DSP has an operator for and is not `unfriendly` to it runs there, the
/// rest on the CPU, neighbours together, whatever the crossings cost.
pub fn apart(dsp: &[Option<Nanos>], unfriendly: &[bool]) -> Vec<bool> {
    dsp.iter().zip(unfriendly).map(|(time, &unfriendly)| time.is_some() && !unfriendly).collect()
}

fn plus(one: Nanos, other: Nanos) -> Nanos {
    Nanos(one.0.saturating_add(other.0))
}
