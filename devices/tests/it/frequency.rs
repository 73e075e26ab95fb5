//! Operating points: fixed frequencies, limits, and the effect of governors.

use crate::common;
use haversack_devices::processor::Core;
use haversack_devices::units::{Fraction, Hertz};
use haversack_devices::{CpuCores, Device, Frequency, SelectionError, load};

fn choose(device: &Device, cores: &str, frequency: &str) -> Result<CpuCores, SelectionError> {
    device.cpu().unwrap().choose(cores.parse()?, frequency.parse()?)
}

/// The frequency of each core, in MHz.
fn megahertz(cores: &CpuCores) -> Vec<f64> {
    cores.cores().iter().map(|core: &Core| (core.frequency.0 / 1e5).round() / 10.0).collect()
}

#[test]
fn frequencies_are_read_and_written_alike() {
    for (text, frequency) in [
        ("highest", Frequency::Highest),
        ("lowest", Frequency::Lowest),
        ("governor", Frequency::Governor),
        ("1.8GHz", Frequency::Fixed(Hertz(1.8e9))),
        ("1804.8MHz", Frequency::Fixed(Hertz(1.8048e9))),
        ("844.8MHz", Frequency::Fixed(Hertz(844.8e6))),
        ("300MHz", Frequency::Fixed(Hertz(300e6))),
    ] {
        assert_eq!(text.parse::<Frequency>().unwrap(), frequency);
        assert_eq!(frequency.to_string(), text);
    }
    // Other spellings of 1.8 GHz are written in the one that takes fewer characters.
    for text in ["1800MHz", "1.8 GHz", "1800000kHz", "1.80GHz"] {
        assert_eq!(text.parse::<Frequency>().unwrap().to_string(), "1.8GHz");
    }
    let message = |text: &str| text.parse::<Frequency>().unwrap_err().to_string();
    assert!(message("1.8Ghz").contains("did you mean `1.8GHz`?"), "{}", message("1.8Ghz"));
    assert!(message("1800").contains("did you mean `1800MHz`?"), "{}", message("1800"));
    assert!(message("gouvernor").contains("did you mean `governor`?"), "{}", message("gouvernor"));
    for text in ["-1GHz", "0MHz", "1e9Hz", "infGHz", "GHz", ""] {
        assert!(message(text).contains("or an operating point such as `1.8GHz`"), "{}", message(text));
    }
}

#[test]
fn a_fixed_frequency_is_the_fastest_cores_and_the_others_stay_at_or_below_it() {
    let phone = load("xiaomi-11-pro").unwrap();
    let at = |cores, frequency| megahertz(&choose(&phone, cores, frequency).unwrap());
    // The A78's table has 1996.8 and 2112 MHz, the A55's ends at 1804.8 MHz.
    assert_eq!(at("all", "2035.2MHz"), [vec![2035.2], vec![1996.8; 3], vec![1804.8; 4]].concat(),);
    // Without the X1 the A78 is the fastest; 0.02 % off is the same point.
    assert_eq!(at("middle:2", "1997.2MHz"), [1996.8; 2]);
    assert_eq!(at("big:1", "2.8416GHz"), at("big:1", "highest"));
    // No curve for L: its operating points are 800 and 1000 MHz, both above the big cores' 500 MHz.
    let mut round = common::device();
    round.set("cpu.1.frequency_lowest", 800.0).unwrap();
    assert_eq!(megahertz(&choose(&round, "all", "500MHz").unwrap()), [500.0, 500.0, 800.0, 800.0]);
    assert_eq!(megahertz(&choose(&round, "little:1", "800MHz").unwrap()), [800.0]);
}

#[test]
fn a_frequency_between_operating_points_is_refused_with_its_neighbours() {
    let phone = load("xiaomi-11-pro").unwrap();
    let message = |cores, frequency| choose(&phone, cores, frequency).unwrap_err().to_string();
    assert_eq!(
        message("big:4", "2GHz"),
        "Cortex-X1 has no operating point at 2GHz; the nearest are 1900.8MHz and 2035.2MHz, of 844.8MHz to 2841.6MHz"
    );
    assert_eq!(
        message("little:4", "2GHz"),
        "Cortex-A55 has no operating point at 2GHz; the nearest is 1804.8MHz, of 300MHz to 1804.8MHz"
    );
    assert_eq!(
        message("middle:1", "300MHz"),
        "Cortex-A78 has no operating point at 300MHz; the nearest is 710.4MHz, of 710.4MHz to 2419.2MHz"
    );
    // 0.1 % off is not the same point.
    assert!(message("big:1", "2.0332GHz").contains("the nearest are 1900.8MHz and 2035.2MHz"));
    // Points of the curve above the highest frequency are not used.
    let mut round = common::device();
    round.set("cpu.0.frequency", 1.8).unwrap();
    let error = choose(&round, "big:1", "2GHz").unwrap_err().to_string();
    assert!(error.ends_with("the nearest is 1.8GHz, of 500MHz to 1.8GHz"), "{error}");
}

#[test]
fn a_limit_is_a_share_of_the_highest_and_lets_go() {
    let round = common::device();
    let highest = choose(&round, "all", "governor").unwrap();
    let limited = |share| highest.limited(Fraction(share));
    // Big: 500, 1500, 2000 MHz. Little, without a curve: 500, 1000 MHz.
    assert_eq!(megahertz(&limited(1.0)), [2000.0, 2000.0, 1000.0, 1000.0]);
    assert_eq!(megahertz(&limited(0.8)), [1500.0, 1500.0, 500.0, 500.0]);
    assert_eq!(megahertz(&limited(0.75)), [1500.0, 1500.0, 500.0, 500.0]);
    assert_eq!(megahertz(&limited(0.74)), [500.0; 4]);
    assert_eq!(megahertz(&limited(0.0)), [500.0; 4]);
    // 1496 MHz is 0.3 % short of a point: more than rounding.
    assert_eq!(megahertz(&limited(0.748)), [500.0; 4]);
    // Rates and power follow: 2 × 8 × 1.5 GHz + 2 × 4 × 0.5 GHz = 28 GFLOP/s.
    assert_eq!(limited(0.8).peak(haversack_devices::Precision::Fp32).0, 28e9);
    // Big 0.6 W on the curve, little 0.1 W × 0.5 at 0.8 of its voltage, × 1.5: 2 × (0.9 + 0.048) W.
    common::assert_close(limited(0.8).power().0, 1.896, 1e-12);
    // Lifting a limit restores the chosen frequencies, and nothing above them.
    assert_eq!(megahertz(&limited(0.1).limited(Fraction(1.0))), megahertz(&highest));
    let lowest = choose(&round, "all", "lowest").unwrap();
    assert_eq!(megahertz(&lowest.limited(Fraction(1.0))), [1000.0, 1000.0, 500.0, 500.0]);
    assert_eq!(megahertz(&lowest.limited(Fraction(0.3))), [500.0; 4]);
}

#[test]
fn following_a_governor_rounds_up_and_stays_above_the_floor() {
    let round = common::device();
    let highest = choose(&round, "all", "governor").unwrap();
    let following = |share| highest.following(Fraction(share));
    // 1200 MHz → 1500 of 500, 1500, 2000; 600 MHz → 1000 of 500, 1000.
    assert_eq!(megahertz(&following(0.6)), [1500.0, 1500.0, 1000.0, 1000.0]);
    assert_eq!(megahertz(&following(0.75)), [1500.0, 1500.0, 1000.0, 1000.0]);
    assert_eq!(megahertz(&following(0.752)), megahertz(&highest));
    assert_eq!(megahertz(&following(1.0)), megahertz(&highest));
    // The floors are the frequencies of `lowest`: 1000 and 500 MHz.
    assert_eq!(megahertz(&following(0.1)), megahertz(&choose(&round, "all", "lowest").unwrap()));
    // Heat comes on top of load, and is lifted to what load wanted.
    assert_eq!(megahertz(&following(0.6).limited(Fraction(0.5))), [500.0; 4]);
    assert_eq!(megahertz(&following(0.6).limited(Fraction(1.0))), megahertz(&following(0.6)));
}

#[test]
fn the_share_of_an_operating_point_leads_back_to_it() {
    // Dividing by the highest frequency and multiplying by it again rounds, to either side.
    let phone = load("xiaomi-11-pro").unwrap();
    for cores in ["big:1", "middle:1", "little:1"] {
        let highest = choose(&phone, cores, "highest").unwrap();
        for share in highest.operating_shares() {
            let nudged = |by: f64| Fraction(share.0 * (1.0 + by));
            assert_eq!(highest.limited(nudged(-1e-12)).share(), share, "{cores}");
            let followed = if share.0 < highest.floor().0 { highest.floor() } else { share };
            assert_eq!(highest.following(nudged(1e-12)).share(), followed, "{cores}");
        }
    }
}

#[test]
fn shares_are_those_of_the_fastest_core() {
    let round = common::device();
    let shares = |cores: &CpuCores| cores.operating_shares().iter().map(|share| share.0).collect::<Vec<_>>();
    let highest = choose(&round, "all", "highest").unwrap();
    // 500, 1500 and 2000 of 2000 MHz; the floor is 1000 MHz.
    assert_eq!(shares(&highest), [0.25, 0.75, 1.0]);
    assert_eq!((highest.share(), highest.floor()), (Fraction(1.0), Fraction(0.5)));
    let lowest = choose(&round, "all", "lowest").unwrap();
    assert_eq!(shares(&lowest), [0.25, 0.5]);
    assert_eq!(lowest.share(), Fraction(0.5));
    assert_eq!(shares(&choose(&round, "little:2", "highest").unwrap()), [0.5, 1.0]);
}
