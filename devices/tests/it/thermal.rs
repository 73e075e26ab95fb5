//! Heat against what is known in closed form, against conservation, and against small steps.

use crate::common;
use crate::common::assert_close;
use haversack_devices::units::{Celsius, Nanos, Watts};
use haversack_devices::{Device, Heat, Thermal, load};

fn seconds(seconds: f64) -> Nanos {
    Nanos::from_seconds(seconds)
}

fn with(changes: &[(&str, f64)]) -> Thermal {
    let mut device = common::device();
    for (name, value) in changes {
        device.set(&format!("thermal.{name}"), *value).unwrap();
    }
    device.thermal().unwrap()
}

fn after(thermal: &Thermal, from: Heat, power: f64, span: f64) -> Heat {
    let mut heat = from;
    thermal.advance(&mut heat, Watts(power), seconds(span));
    heat
}

fn parts(heat: &Heat) -> [f64; 3] {
    [heat.die.0, heat.chassis.0, heat.battery.0]
}

fn assert_heat(heat: &Heat, expected: [f64; 3], tolerance: f64) {
    for (part, expected) in parts(heat).into_iter().zip(expected) {
        assert_close(part, expected, tolerance);
    }
}

#[test]
fn a_chassis_that_never_warms_leaves_one_time_constant() {
    // Die: 2 K/W × 10 J/K = 20 s. 3 W: 25 + 6 (1 − e^(−t/20)).
    let thermal = with(&[("chassis_capacity", 1e9)]);
    for t in [1.0, 20.0, 100.0] {
        let heat = after(&thermal, Thermal::at_rest(Celsius(25.0)), 3.0, t);
        assert_heat(&heat, [25.0 + 6.0 * (1.0 - (-t / 20.0_f64).exp()), 25.0, 25.0], 1e-5);
    }
}

#[test]
fn parts_that_touch_are_one_lump() {
    // 100 J/K behind 5 K/W: 500 s. From 45 °C without power in 25 °C: 25 + 20 e^(−t/500).
    let thermal = with(&[("die_resistance", 1e-7), ("chassis_resistance", 1e-7)]);
    let hot = Heat { ambient: Celsius(25.0), ..Thermal::at_rest(Celsius(45.0)) };
    let cooled = 25.0 + 20.0 * (-0.5_f64).exp();
    assert_heat(&after(&thermal, hot, 0.0, 250.0), [cooled; 3], 1e-4);
}

#[test]
fn constant_power_ends_above_the_surroundings_by_power_times_resistance() {
    // 4 W: battery 20 + 4 × 5 = 40 °C, chassis 40 + 4 × 3 = 52 °C, die 52 + 4 × 2 = 60 °C.
    let thermal = common::device().thermal().unwrap();
    assert_heat(&thermal.steady(Celsius(20.0), Watts(4.0)), [60.0, 52.0, 40.0], 1e-12);
    let long = after(&thermal, Thermal::at_rest(Celsius(20.0)), 4.0, 1e5);
    assert_heat(&long, [60.0, 52.0, 40.0], 1e-9);
    // There it stays, and at rest it stays too.
    assert_heat(&after(&thermal, long, 4.0, 7.0), [60.0, 52.0, 40.0], 1e-9);
    assert_heat(&after(&thermal, Thermal::at_rest(Celsius(20.0)), 0.0, 1e5), [20.0; 3], 1e-9);
}

#[test]
fn heat_is_conserved() {
    // Stored heat and what the battery gave to the surroundings add up to the power: Simpson's rule over 2 s steps.
    let thermal = common::device().thermal().unwrap();
    let (power, step, steps) = (6.0, 2.0, 200);
    let mut heat = Thermal::at_rest(Celsius(25.0));
    let mut given = 0.0;
    let outflow = |heat: &Heat| (heat.battery.0 - 25.0) / 5.0;
    for _ in 0..steps {
        let middle = after(&thermal, heat, power, step / 2.0);
        let end = after(&thermal, heat, power, step);
        given += step / 6.0 * (outflow(&heat) + 4.0 * outflow(&middle) + outflow(&end));
        heat = end;
    }
    let [die, chassis, battery] = parts(&heat).map(|part| part - 25.0);
    let stored = 10.0 * die + 40.0 * chassis + 50.0 * battery;
    // 6 W × 400 s = 2400 J, of which a good part has left by then.
    assert!(given > 200.0, "{given}");
    assert_close(stored + given, 2400.0, 1e-5);
}

#[test]
fn a_span_is_its_parts_and_agrees_with_small_steps() {
    let thermal = common::device().thermal().unwrap();
    let start = Heat { die: Celsius(60.0), chassis: Celsius(30.0), battery: Celsius(35.0), ambient: Celsius(20.0) };
    let whole = after(&thermal, start, 5.0, 60.0);
    let pieces = [0.5, 17.5, 2.0, 40.0].iter().fold(start, |heat, &span| after(&thermal, heat, 5.0, span));
    assert_heat(&pieces, parts(&whole), 1e-9);
    // Euler's method: each step adds net heat flow over capacity; halving the step halves its distance.
    let distance = |step: f64| {
        let [mut die, mut chassis, mut battery] = parts(&start);
        for _ in 0..(60.0 / step).round() as usize {
            let (to_chassis, to_battery) = ((die - chassis) / 2.0, (chassis - battery) / 3.0);
            let to_ambient = (battery - 20.0) / 5.0;
            die += step * (5.0 - to_chassis) / 10.0;
            chassis += step * (to_chassis - to_battery) / 40.0;
            battery += step * (to_battery - to_ambient) / 50.0;
        }
        parts(&whole).into_iter().zip([die, chassis, battery]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let (coarse, fine) = (distance(0.01), distance(0.005));
    assert!(coarse < 0.01 && (1.9..2.1).contains(&(coarse / fine)), "{coarse} {fine}");
}

#[test]
fn a_device_hotter_than_its_limit_neither_starts_nor_runs_on() {
    let thermal = common::device().thermal().unwrap();
    assert_eq!(thermal.trip(), Celsius(65.0));
    let heat = thermal.start(Celsius(85.0)).unwrap();
    assert_eq!(heat, Thermal::at_rest(Celsius(85.0)));
    assert!(thermal.check(&heat).is_ok());
    let error = thermal.start(Celsius(85.5)).unwrap_err().to_string();
    assert_eq!(error, "the device does not start at 85.5 °C: its limit is 85.0 °C");
    assert!(thermal.start(Celsius(f64::NAN)).is_err());
    let error = thermal.check(&Heat { die: Celsius(90.0), ..heat }).unwrap_err().to_string();
    assert_eq!(error, "the device shuts down: its die is at 90.0 °C, above its limit of 85.0 °C");
}

#[test]
fn shipped_phones_heat_up_and_boards_say_nothing_of_heat() {
    for listing in haversack_devices::list().unwrap() {
        let device: Device = load(listing.id).unwrap();
        assert_eq!(device.thermal().is_some(), device.constants.battery.is_some(), "{}", listing.id);
        let Some(thermal) = device.thermal() else { continue };
        let constants = device.constants.thermal.as_ref().unwrap();
        let resistance = [&constants.die_resistance, &constants.chassis_resistance, &constants.battery_resistance];
        let resistance: f64 = resistance.iter().map(|constant| constant.value.0).sum();
        // All three decays are found for any constants: two days reach the steady state.
        let heat = after(&thermal, thermal.start(Celsius(25.0)).unwrap(), 3.0, 172_800.0);
        assert_close(heat.die.0, 25.0 + 3.0 * resistance, 1e-6);
    }
}
