//! Equations 1 to 3 against all assignments.

use haversack_devices::units::Nanos;
use haversack_policies::mandheling::placement::{apart, assign};
use proptest::prelude::*;

/// The time of the operators on the processors given by `on_dsp`, crossings included; `None` if the DSP lacks one.
fn time_of(cpu: &[Nanos], dsp: &[Option<Nanos>], switch: &[Nanos], on_dsp: &[bool]) -> Option<Nanos> {
    let mut sum = Nanos::ZERO;
    for (place, &there) in on_dsp.iter().enumerate() {
        sum += if there { dsp[place]? } else { cpu[place] };
        if place > 0 && there != on_dsp[place - 1] {
            sum += switch[place];
        }
    }
    Some(sum)
}

fn nanos(times: &[u64]) -> Vec<Nanos> {
    times.iter().copied().map(Nanos).collect()
}

fn on_dsp(times: &[Option<u64>]) -> Vec<Option<Nanos>> {
    times.iter().map(|time| time.map(Nanos)).collect()
}

#[test]
fn what_the_dsp_lacks_takes_its_neighbours_along_where_crossing_costs_more() {
    let dsp = on_dsp(&[Some(1), Some(1), None, Some(1), Some(1)]);
    // To the CPU and back costs 2 × 3 more than the operator in the middle: 1 + 1 + 3 + 2 + 3 + 1 + 1 = 12. All on the
    // CPU: 9 + 9 + 2 + 9 + 9 = 38.
    let cpu = nanos(&[9, 9, 2, 9, 9]);
    let switch = nanos(&[0, 3, 3, 3, 3]);
    assert_eq!(assign(&cpu, &dsp, &switch), [true, true, false, true, true]);
    assert_eq!(time_of(&cpu, &dsp, &switch, &[true, true, false, true, true]), Some(Nanos(12)));
    // Crossings of 20: one and the rest on the CPU takes 2 + 20 + 20 = 42, two take 4 + 2 + 40 = 46; 38 without any.
    assert_eq!(assign(&cpu, &dsp, &nanos(&[0, 20, 20, 20, 20])), [false; 5]);
    // Only the last two crossings are dear: 1 + 1 + 3 + 2 + 9 + 9 = 25 with one, 12 + 17 = 29 with two.
    assert_eq!(assign(&cpu, &dsp, &nanos(&[0, 3, 3, 20, 20])), [true, true, false, false, false]);
}

#[test]
fn equal_times_are_decided_in_one_way() {
    let all = |time: u64| on_dsp(&[Some(time); 3]);
    // 15 on either: ties end on the DSP.
    assert_eq!(assign(&nanos(&[5; 3]), &all(5), &nanos(&[1; 3])), [true; 3]);
    // Free crossings between equals: no crossing happens.
    assert_eq!(assign(&nanos(&[5; 3]), &all(5), &nanos(&[0; 3])), [true; 3]);
    // 5 + 5 + 3 + 2 on the DSP from the third on equals three on the CPU.
    let dsp = on_dsp(&[None, None, Some(2)]);
    assert_eq!(assign(&nanos(&[5; 3]), &dsp, &nanos(&[3; 3])), [false, false, true]);
    // The DSP runs nothing.
    assert_eq!(assign(&nanos(&[5; 3]), &on_dsp(&[None; 3]), &nanos(&[0; 3])), [false; 3]);
    assert_eq!(assign(&[], &[], &[]), [false; 0]);
}

#[test]
fn without_the_technique_each_is_where_it_is_at_home() {
    let dsp = on_dsp(&[Some(1), None, Some(1), Some(9)]);
    assert_eq!(apart(&dsp, &[false, false, true, false]), [true, false, false, true]);
}

/// The least time over all assignments.
fn exhaustive(cpu: &[Nanos], dsp: &[Option<Nanos>], switch: &[Nanos]) -> Option<Nanos> {
    let assignments = (0..1_u32 << cpu.len()).map(|bits| (0..cpu.len()).map(|i| bits >> i & 1 == 1).collect());
    assignments.filter_map(|on_dsp: Vec<bool>| time_of(cpu, dsp, switch, &on_dsp)).min()
}

proptest! {
    #![proptest_config(super::cases(300))]

    #[test]
    fn no_assignment_takes_less(
        row in prop::collection::vec((0_u64..30, prop::option::weighted(0.8, 0_u64..30), 0_u64..15), 0..=12),
    ) {
        let cpu: Vec<Nanos> = row.iter().map(|&(cpu, ..)| Nanos(cpu)).collect();
        let dsp: Vec<Option<Nanos>> = row.iter().map(|&(_, dsp, _)| dsp.map(Nanos)).collect();
        let switch: Vec<Nanos> = row.iter().map(|&(.., switch)| Nanos(switch)).collect();
        let chosen = assign(&cpu, &dsp, &switch);
        prop_assert_eq!(chosen.len(), row.len());
        prop_assert_eq!(time_of(&cpu, &dsp, &switch, &chosen), exhaustive(&cpu, &dsp, &switch));
        // The intuitive scheme is one of the assignments.
        let unfriendly = vec![false; row.len()];
        prop_assert!(time_of(&cpu, &dsp, &switch, &chosen) <= time_of(&cpu, &dsp, &switch, &apart(&dsp, &unfriendly)));
    }
}
