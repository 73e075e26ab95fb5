//! Energy by hand.

use crate::common;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{Device, Frequency, Usage};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn energy_is_power_over_busy_and_idle_spans() {
    let device = common::device();
    let cores = device.cpu().unwrap().choose("big:2".parse().unwrap(), Frequency::Highest).unwrap();
    let usage = Usage {
        span: Nanos(2_000_000_000),
        gpu_busy: Nanos(1_500_000_000),
        cpu_busy: Nanos(500_000_000),
        dsp_busy: Nanos::ZERO,
        dram: Bytes(4_000_000_000),
    };
    let energy = device.power(None, &common::stack()).energy(&usage);
    // On the GPU: 5 W × 1.5 s + 0.5 W × 0.5 s = 7.75 J. DRAM: 4e9 × 100 pJ = 0.4 J; its refresh is the idle device's.
    // The rest: 2 W × 2 s = 4 J. In all 12.15 J: without cores of its own a run draws nothing for them.
    assert!(close(energy.gpu.0, 7.75), "{}", energy.gpu);
    assert!(close(energy.dram.0, 0.4), "{}", energy.dram);
    assert!(close(energy.rest.0, 4.0), "{}", energy.rest);
    assert!(close(energy.total().0, 12.15), "{}", energy.total());
    // On cores: 2 × 1 W × 1.5 × 0.5 s = 1.5 J.
    let on_cores = device.power(Some(&cores), &common::stack()).energy(&Usage { gpu_busy: Nanos::ZERO, ..usage });
    assert!(close(on_cores.cpu.0, 1.5), "{}", on_cores.cpu);
    assert!(close(on_cores.total().0, 1.9), "{}", on_cores.total());
}

#[test]
fn cores_beside_a_gpu_add_to_it() {
    let device = common::device();
    let cores = device.cpu().unwrap().choose("big:2".parse().unwrap(), Frequency::Highest).unwrap();
    let second = Nanos(1_000_000_000);
    let usage = Usage { span: second, gpu_busy: second, cpu_busy: Nanos(500_000_000), ..Usage::default() };
    // 5 W × 1 s of the GPU, 2 W × 1 s of the rest, and two cores of 1.5 W for half of it.
    let energy = device.power(None, &common::stack()).beside(&cores).energy(&usage);
    assert!(close(energy.total().0, 8.5), "{}", energy.total());
}

#[test]
fn cores_that_do_nothing_draw_nothing_above_the_idle_device() {
    let device = common::device();
    let cores = device.cpu().unwrap().choose("all".parse().unwrap(), Frequency::Highest).unwrap();
    let usage = Usage { span: Nanos(2_000_000_000), ..Usage::default() };
    assert_eq!(device.power(Some(&cores), &common::stack()).energy(&usage).total().0, 0.0);
}

#[test]
fn busy_cores_keep_what_they_share_awake() {
    let device = common::device_with("rest_of_soc =", "awake = 300 mW");
    let energy = |cores: Option<&str>, cpu_busy, dsp_busy| {
        let cores =
            cores.map(|cores| device.cpu().unwrap().choose(cores.parse().unwrap(), Frequency::Highest).unwrap());
        let usage = Usage { span: Nanos(2_000_000_000), cpu_busy, dsp_busy, ..Usage::default() };
        device.power(cores.as_ref(), &common::stack()).energy(&usage)
    };
    // Once for any number of cores: 1 s of 1.5 W per core and 0.3 W.
    let second = Nanos(1_000_000_000);
    assert!(close(energy(Some("big:1"), second, Nanos::ZERO).total().0, 1.8));
    assert!(close(energy(Some("big:2"), second, Nanos::ZERO).total().0, 3.3));
    // Cores that wait for the DSP draw half of theirs and all of it.
    assert!(close(energy(Some("big:2"), Nanos::ZERO, second).cpu.0, 1.8));
    assert!(close(energy(None, second, Nanos::ZERO).cpu.0, 0.0));
}

#[test]
fn cores_that_wait_for_the_dsp_draw_their_share() {
    let device = common::device();
    let cores = device.cpu().unwrap().choose("big:2".parse().unwrap(), Frequency::Highest).unwrap();
    let energy = |cpu_busy, dsp_busy| {
        let usage = Usage { span: Nanos(2_000_000_000), cpu_busy, dsp_busy, ..Usage::default() };
        device.power(Some(&cores), &common::stack()).energy(&usage)
    };
    // DSP: 2 W × 1 s. CPU: 3 W × 0.5 s busy and half of 3 W × 1 s waiting = 3 J.
    let apart = energy(Nanos(500_000_000), Nanos(1_000_000_000));
    assert!(close(apart.dsp.0, 2.0) && close(apart.cpu.0, 3.0), "{apart:?}");
    // Cores that are busy for 1.5 of 2 s can wait for 0.5 s at most: 3 × 1.5 + 1.5 × 0.5 = 5.25 J.
    let at_once = energy(Nanos(1_500_000_000), Nanos(1_000_000_000));
    assert!(close(at_once.dsp.0, 2.0) && close(at_once.cpu.0, 5.25), "{at_once:?}");
    // More than the whole span counts as the whole: 2 W × 2 s, half of 3 W × 2 s.
    let longer = energy(Nanos::ZERO, Nanos(5_000_000_000));
    assert!(close(longer.dsp.0, 4.0) && close(longer.cpu.0, 3.0), "{longer:?}");
    // A stack that leaves the DSP alone powers none.
    let mut constants = common::stack();
    constants.constants.dsp = None;
    let usage = Usage { span: Nanos(1_000_000_000), dsp_busy: Nanos(1_000_000_000), ..Usage::default() };
    assert!(close(device.power(Some(&cores), &constants).energy(&usage).total().0, 0.0));
}

#[test]
fn a_core_draws_what_the_curve_says_and_without_one_as_its_voltage_does() {
    let text = common::device_text();
    let watts = |device: &Device, cores: &str, frequency| {
        let cpu = device.cpu().unwrap();
        cpu.choose(cores.parse().unwrap(), frequency).unwrap().power().0
    };
    let device = common::device();
    // Curve: 1 GHz is half way from 500 MHz (0.2 W) to 1500 MHz (0.6 W): 0.4 W, × 1.5 for vector kernels = 0.6 W.
    assert!(close(watts(&device, "big:1", Frequency::Highest), 1.5));
    assert!(close(watts(&device, "big:1", Frequency::Lowest), 0.6));
    // No curve for L, at half its frequency 0.8 of its voltage: 0.1 W × 0.5 × 0.8² × 1.5 = 0.048 W.
    assert!(close(watts(&device, "little:1", Frequency::Lowest), 0.048));
    // A frequency outside the curve takes its nearest end: 0.2 W × 1.5.
    let mut slow = Device::parse("slow", "slow.toml", &text).unwrap();
    slow.set("cpu.0.frequency_lowest", 0.3).unwrap();
    assert!(close(watts(&slow, "big:1", Frequency::Lowest), 0.3));
}
