//! Governors by hand: load averaged and followed, heat stepped down from.

use crate::common;
use crate::common::assert_close;
use haversack_devices::units::{Celsius, Fraction, Nanos, Watts};
use haversack_devices::{CpuCores, Frequency, Schedutil, StepWise, Thermal};

const SECOND: Nanos = Nanos(1_000_000_000);

/// Two big cores: operating points at shares 0.25, 0.75 and 1, the floor at 0.5.
fn cores() -> CpuCores {
    common::device().cpu().unwrap().choose("big:2".parse().unwrap(), Frequency::Governor).unwrap()
}

#[test]
fn schedutil_follows_averaged_load_with_a_quarter_of_headroom() {
    let start = Schedutil::new(&cores());
    assert_eq!(start.share(), Fraction(1.0));
    // Idle for a half-life of 32 ms: utilisation 1/2, × 1.25 = 0.625. For two: 1/4, × 1.25 is below the floor of 0.5.
    let idle = |span| start.after(Nanos(span), Fraction(0.0), Fraction(1.0));
    assert_close(idle(32_000_000).share().0, 0.625, 1e-12);
    assert_eq!(idle(64_000_000).share(), Fraction(0.5));
    // Two spans in a row are one: what is forgotten multiplies.
    let twice = idle(10_000_000).after(Nanos(22_000_000), Fraction(0.0), Fraction(1.0));
    assert_close(twice.share().0, 0.625, 1e-12);
    // Utilisation counts cycles: 0.6 of the time at 0.8 of the frequency for 2 s is 0.48, wanted 0.6.
    assert_close(start.after(Nanos(2_000_000_000), Fraction(0.6), Fraction(0.8)).share().0, 0.6, 1e-9);
    // Nonsense beyond one counts as one, and half of it is forgotten like any other.
    let nonsense = start.after(SECOND, Fraction(3.0), Fraction(1.0));
    assert_close(nonsense.after(Nanos(32_000_000), Fraction(0.0), Fraction(1.0)).share().0, 0.625, 1e-9);
}

#[test]
fn schedutil_lets_busy_cores_climb_back_to_the_highest() {
    // A second forgets all: from the floor of 0.5 always-busy cores want 0.625, 0.781, 0.977 and then all.
    let (mut governor, mut share) = (Schedutil::new(&cores()).after(SECOND, Fraction(0.0), Fraction(1.0)), vec![]);
    for _ in 0..4 {
        governor = governor.after(SECOND, Fraction(1.0), governor.share());
        share.push((governor.share().0 * 1e3).round());
    }
    assert_eq!(share, [625.0, 781.0, 977.0, 1000.0]);
}

fn thermal() -> Thermal {
    common::device().thermal().unwrap()
}

#[test]
fn step_wise_steps_down_while_hot_and_rising_and_up_when_cool() {
    let mut governor = StepWise::new(&cores(), &thermal());
    let mut at = |die| {
        governor.poll(Celsius(die));
        governor.share().0
    };
    // The trip is at 65 °C, the hysteresis 2 K, the shares 1, 0.75 and 0.25.
    assert_eq!(at(65.0), 1.0);
    assert_eq!(at(66.0), 0.75);
    // Hot, but no longer rising.
    assert_eq!(at(66.0), 0.75);
    assert_eq!(at(65.5), 0.75);
    assert_eq!(at(67.0), 0.25);
    // There is nothing below the lowest operating point.
    assert_eq!(at(70.0), 0.25);
    // Within the hysteresis nothing changes; below it one point a look.
    assert_eq!(at(63.5), 0.25);
    assert_eq!(at(62.9), 0.75);
    assert_eq!(at(62.8), 1.0);
    assert_eq!(at(30.0), 1.0);
}

#[test]
fn step_wise_looks_once_a_second_however_time_is_cut() {
    let thermal = thermal();
    let watch = |spans: &[u64]| {
        let (mut governor, mut heat) = (StepWise::new(&cores(), &thermal), Thermal::at_rest(Celsius(64.0)));
        for &span in spans {
            governor.watch(&thermal, &mut heat, Watts(10.0), Nanos(span));
        }
        (governor.share().0, heat.die.0)
    };
    // 10 W into 10 J/K raise the die by less than 1 K in the first second, to more than 65 °C in the second: one step
    // after 2 s, not before, and another after 3 s.
    assert_eq!(watch(&[1_999_999_999]).0, 1.0);
    assert_eq!(watch(&[2_000_000_000]).0, 0.75);
    assert_eq!(watch(&[3_000_000_000]).0, 0.25);
    let (whole, pieces) = (watch(&[2_500_000_000]), watch(&[700_000_000, 700_000_000, 600_000_000, 500_000_000]));
    assert_eq!(whole.0, pieces.0);
    assert_close(whole.1, pieces.1, 1e-9);
}

#[test]
fn a_governed_die_stays_about_the_trip() {
    // In 45 °C two big cores at 3 W would heat the die to 45 + 3 × 10 = 75 °C, at 1500 MHz and 1.8 W to 63 °C.
    let (thermal, cores) = (thermal(), cores());
    let (mut governor, mut heat) = (StepWise::new(&cores, &thermal), thermal.start(Celsius(45.0)).unwrap());
    let mut hottest = 0.0_f64;
    for _ in 0..5000 {
        let power = cores.limited(governor.share()).power();
        governor.watch(&thermal, &mut heat, power, SECOND);
        hottest = hottest.max(heat.die.0);
    }
    assert!(hottest > 65.0 && hottest < 66.0, "{hottest}");
    assert!(heat.die.0 > 62.0 && heat.die.0 < 66.0, "{}", heat.die);
}

#[test]
fn a_thread_is_where_it_fits_and_as_fast_as_its_load_needs() {
    // An iQOO Neo 3 makes 3.72 x 1804.8 = 6,714 iterations of CoreMark on a little core and 8.47 x 2419.2 = 20,491 on a
    // middle one; its fastest core's are not known.
    let device = haversack_devices::load("iqoo-neo3").unwrap();
    let megahertz = |load| {
        let core = device.core_for(Fraction(load)).unwrap();
        (core.cores()[0].frequency.0 / 1e5).round() / 10.0
    };
    // A burst leaves a little core at its floor.
    assert_close(megahertz(0.0), 691.2, 1e-9);
    // 0.2 of 20,491, and a quarter to spare, is 0.76 of 6,714: the next operating point at or above 1,377 MHz.
    assert_close(megahertz(0.2), 1420.8, 1e-9);
    // 0.3, and a quarter to spare, is more than a little core has; 0.375 of 2,419 MHz is 907.
    assert_close(megahertz(0.3), 940.8, 1e-9);
    assert_close(megahertz(1.0), 2419.2, 1e-9);
    // Nothing is compared where nothing is known.
    assert!(common::device().core_for(Fraction(0.5)).is_none());
}
