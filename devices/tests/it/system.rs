//! Operating systems: the formulas, the shipped files, and the errors of wrong calibrations.

use crate::common;
use haversack_devices::storage::{Direction, ScalarSpeed, Stream};
use haversack_devices::system::{ExtraFree, OomScore, PageCosts, PageLists, PageMix, Victim, Watermarks};
use haversack_devices::units::{Bytes, BytesPerSecond, Factor, Fraction, Nanos};
use haversack_devices::{Device, System, load, load_system};

const ANDROID: &str = include_str!("../../calibrations/systems/android.toml");

fn android() -> System {
    load_system("android").unwrap()
}

fn kib(low: u64) -> Bytes {
    Bytes(1024 * low)
}

const GIB: u64 = 1 << 30;

#[test]
fn watermarks_are_the_kernels() {
    let at = |device: &Device, scale: f64| {
        let mut system = android();
        system.set("watermark_scale_factor", scale).unwrap();
        system.watermarks(device)
    };
    // 4 GiB less 255 MiB of carve-outs, 64 MiB for 1,048,576 pages and 48 MiB are 3,818,496 KiB; √(16 × 3,818,496) =
    // 7,816; the display is the usual one, 1080 × 2400 × 4 B × 3 = 30,375 KiB. Scale 10: a step of max(1,954, 3,818 +
    // 30,375): low = 7,816 + 34,193, high another 34,193.
    let four = common::device();
    let marks = |min, low, high| Watermarks { min: kib(min), low: kib(low), high: kib(high) };
    assert_eq!(at(&four, 10.0), marks(7816, 42_009, 76_202));
    assert_eq!(at(&four, 1.0), marks(7816, 38_572, 69_328));
    assert_eq!(at(&four, 100.0), marks(7816, 76_375, 144_934));
    // A kernel with the setting adds the screens on top; scale 1 gives 381 KiB, less than a quarter of min, 1,954.
    let mut own = android();
    own.set("watermark_scale_factor", 1.0).unwrap();
    own.constants.reclaim.extra_free = ExtraFree::OnTop;
    assert_eq!(own.watermarks(&four), marks(7816, 40_145, 42_099));
    // 12 GiB with a display of its own, 1440 × 3200: 54,000 KiB; 12,076,032 KiB managed; min 13,900.
    let twelve = common::device_with_storage(&[("ram", 12.0)]);
    assert_eq!(at(&twelve, 10.0), marks(13_900, 79_976, 146_052));
    // The bounds of min: 64 MiB is less than the root at 1 PiB, and 128 KiB more than that at 1 MiB.
    let huge = common::device_with_storage(&[("ram", f64::from(1 << 20))]);
    assert_eq!(at(&huge, 1.0).min, kib(65_536));
    // Nothing is left of 1 MiB.
    let tiny = common::device_with_storage(&[("ram", 1.0 / 1024.0)]);
    assert_eq!((at(&tiny, 1.0).min, android().managed(&tiny)), (kib(128), Bytes::ZERO));
    // A device may define its own carve-outs: 1 GiB of 4, in addition to 64 and 48 MiB.
    let kept = common::device_with("[[cpu]]", "carve_outs = 1 GiB");
    assert_eq!(android().managed(&kept), Bytes(3 * GIB - (112 << 20)));
    assert_eq!(android().managed(&four), Bytes(3_910_139_904));
    // Of 3,910,139,904 bytes 2 GiB are the low zone's: a 256th of the rest is reserved from its users.
    assert_eq!(android().protection(&four), Bytes((3_910_139_904 - 2 * GIB) / 256));
    assert_eq!(android().protection(&common::device_with_storage(&[("ram", 1.0)])), Bytes::ZERO);
}

#[test]
fn zram_is_half_the_memory_up_to_a_cap_or_a_size() {
    let (four, twelve) = (common::device(), common::device_with_storage(&[("ram", 12.0)]));
    let system = android();
    // Half of 4 GiB; half of 12 GiB is above the cap of 4 GiB. No swap on flash.
    assert_eq!([&four, &twelve].map(|device| system.zram(device)), [Bytes(2 * GIB), Bytes(4 * GIB)]);
    assert_eq!(system.swap_partition(), Bytes::ZERO);
    // Of 100 pages of apps 8.56 take nothing, 5 are kept whole and the others at 1 / 2.58.
    let ratio = system.app_pages().mean_ratio().0;
    assert!((ratio - 100.0 / (5.0 + 86.44 / 2.58)).abs() < 0.01, "{ratio}");
    let testbed = load_system("android-testbed").unwrap();
    assert_eq!([&four, &twelve].map(|device| testbed.zram(device)), [Bytes(GIB); 2]);
    assert_eq!(testbed.swap_partition(), Bytes(3 * GIB));
    // Neither section: no swap at all.
    let text = without(without(ANDROID.to_owned(), "[zram]"), "[swap]");
    let none = System::parse("none", "none.toml", &text).unwrap();
    assert_eq!((none.zram(&four), none.app_pages().mean_ratio()), (Bytes::ZERO, Factor(1.0)));
}

#[test]
fn zstd_is_a_choice_that_takes_longer_and_keeps_less() {
    let speed = ScalarSpeed::per_second(26_000.0).unwrap();
    let text = ANDROID.replacen("algorithm = \"lz4\"", "algorithm = \"zstd\"", 1);
    let (lz4, zstd) = (android(), System::parse("phone", "phone.toml", &text).unwrap());
    // 10 us of compressing by 1.77, 3.5 us of the way back by 3.35; all other work is the same.
    let costs = lz4.page_costs(speed);
    let slower = PageCosts { compress: Nanos(17_700), decompress: Nanos(11_725), ..costs };
    assert_eq!(zstd.page_costs(speed), slower);
    // Of 100 pages of apps 8.56 take nothing, 5 are kept whole and the others at 1 / 3.46.
    let ratio = zstd.app_pages().mean_ratio().0;
    assert!((ratio - 100.0 / (5.0 + 86.44 / 3.46)).abs() < 0.01, "{ratio}");
    // The trainer's pages have their own constants, except for the same-filled share.
    let mut zstd = zstd;
    zstd.set("zstd.trainer_incompressible", 20.0).unwrap();
    zstd.set("zstd.trainer_ratio", 2.0).unwrap();
    let expected = PageMix { incompressible: Fraction(0.2), ratio: Factor(2.0), ..lz4.trainer_pages() };
    assert_eq!(zstd.trainer_pages(), expected);
    let message = System::parse("phone", "phone.toml", &without(text, "[zstd]")).unwrap_err().to_string();
    assert!(message.contains("`zram`: the algorithm zstd needs the table [zstd]"), "{message}");
    let text = ANDROID.replacen("algorithm = \"lz4\"", "algorithm = \"lzo\"", 1);
    let message = System::parse("phone", "phone.toml", &text).unwrap_err().to_string();
    assert!(message.contains("`zram.algorithm`") && message.contains("lz4, zstd"), "{message}");
}

/// `text` without the section that `header` starts.
fn without(text: String, header: &str) -> String {
    let Some(start) = text.find(header) else { return text };
    let end = text[start..].find("\n\n").unwrap();
    format!("{}{}", &text[..start], &text[start + end + 2..])
}

#[test]
fn systems_differ_in_what_their_names_say() {
    let lists = |id: &str| load_system(id).unwrap().constants.reclaim.lists;
    assert_eq!([lists("android"), lists("android-testbed")], [PageLists::Two; 2]);
    assert_eq!(lists("android-mglru"), PageLists::Generations);
    let numbers = |id: &str, but: &[&str]| -> Vec<(String, f64)> {
        let entries = load_system(id).unwrap().entries().into_iter().map(|entry| (entry.name, entry.value));
        entries.filter(|(name, _)| !but.iter().any(|prefix| name.starts_with(prefix))).collect()
    };
    let swaps = ["zram.share", "zram.cap", "zram.size", "swap.", "killer.swap_compression_ratio"];
    let ratio = |id| load_system(id).unwrap().constants.killer.swap_compression_ratio.value;
    assert_eq!([ratio("android"), ratio("android-testbed")], [Factor(1.0), Factor(0.0)]);
    assert_eq!(numbers("android", &swaps), numbers("android-testbed", &swaps));
    let generations = ["reclaim.generations", "reclaim.min_ttl"];
    assert_eq!(numbers("android", &[]), numbers("android-mglru", &generations));
    assert_eq!(numbers("android", &[]).len() + 2, numbers("android-mglru", &[]).len());
}

#[test]
fn work_on_a_page_is_time_on_a_core() {
    // At 26,000 iterations a second 260,000 millionths are 10 us, 91,000 are 3.5 us, 18,000 are 692 ns, 13,000 are
    // 500 ns, 520 are 20 ns, 6,500 are 250 ns, 26,000 are 1 us and 39,000 are 1.5 us, 55,000 2.1 us; waking up takes
    // 10 us on any core.
    let costs = android().page_costs(ScalarSpeed::per_second(26_000.0).unwrap());
    let expected = PageCosts {
        fault: Nanos(692),
        zero: Nanos(500),
        walk: Nanos(20),
        scan: Nanos(250),
        unmap: Nanos(1000),
        compress: Nanos(10_000),
        decompress: Nanos(3500),
        copy: Nanos(2115),
        submit: Nanos(1500),
        wake_up: Nanos(10_000),
    };
    assert_eq!(costs, expected);
    // A Cortex-A55 at 1.8 GHz, 3.7 a megahertz, 6,660 a second: 91,000 / 6,660 = 13.66 us, of 12 to 15 expected.
    let little = android().page_costs(ScalarSpeed::per_second(6660.0).unwrap());
    assert_eq!((little.decompress, little.wake_up), (Nanos(13_664), Nanos(10_000)));
}

#[test]
fn the_killers_defaults_are_those_of_its_source() {
    let system = android();
    let killer = &system.constants.killer;
    assert_eq!(
        [killer.psi_complete_stall.value, killer.psi_window.value].map(|span| span.0),
        [700_000_000, 1_000_000_000]
    );
    assert_eq!([killer.poll_short.value, killer.poll_long.value].map(|span| span.0), [10_000_000, 100_000_000]);
    assert_eq!((killer.swap_free_low.value, killer.swap_util_max.value), (Fraction(0.1), Fraction(1.0)));
    assert_eq!((killer.thrashing_limit_critical.value, killer.filecache_min.value), (Factor(2.0), Bytes::ZERO));
    assert_eq!((killer.stall_limit_critical.value, killer.kill_timeout.value), (Fraction(1.0), Nanos(100_000_000)));
    assert_eq!([&killer.low, &killer.medium, &killer.critical].map(|score| score.value.0), [1001, 800, 0]);
    assert_eq!((killer.victim, killer.thrashing_reset.value), (Victim::LeastRecent, Nanos(1_000_000_000)));
    // By memory: 70 ms, 100 % and 10 % above 2 GiB, 200 ms, 30 % and 50 % up to there.
    let (four, two) = (common::device(), common::device_with_storage(&[("ram", 2.0)]));
    let [usual, little] = [&four, &two].map(|device| system.killer(device));
    assert_eq!((usual.psi_partial_stall, little.psi_partial_stall), (Nanos(70_000_000), Nanos(200_000_000)));
    assert_eq!((usual.thrashing_limit, little.thrashing_limit), (Factor(1.0), Factor(0.3)));
    assert_eq!((usual.thrashing_limit_decay, little.thrashing_limit_decay), (Fraction(0.1), Fraction(0.5)));
    // Scores from the least killable to the most.
    let scores = system.constants.scores;
    let rising = [scores.native, scores.system, scores.persistent, scores.persistent_service, scores.foreground];
    assert_eq!(rising.map(|score| score.value.0), [-1000, -900, -800, -700, 0]);
    let more = [scores.visible, scores.perceptible, scores.service, scores.home, scores.previous, scores.cached];
    assert_eq!(more.map(|score| score.value.0), [100, 200, 500, 600, 700, 900]);
}

#[test]
fn an_idle_phone_and_its_apps_are_what_the_file_says() {
    let system = android();
    let resident = system.resident(&load("galaxy-s22").unwrap());
    // On a phone of half of 8 GB half of it.
    let mut small = load("galaxy-s22").unwrap();
    small.set("ram", 4e9 / 1024.0_f64.powi(3)).unwrap();
    assert_eq!(system.resident(&small).total(), Bytes(1_940_000_000));
    // 1.48 + 1.88 + 0.52 GB, between the least and the most of published phones; ten apps share half a gigabyte.
    assert_eq!(resident.total(), Bytes(3_880_000_000));
    let [least, most] = [&system.constants.resident.least, &system.constants.resident.most].map(|bytes| bytes.value);
    assert!((least..most).contains(&resident.total()));
    assert_eq!((resident.cache, resident.cached), (Bytes(2_500_000_000), (Bytes(50_000_000), 10)));
    assert!((0.1..1.0).contains(&resident.hot.0));
    let stream = Stream { direction: Direction::Write, rate: BytesPerSecond(4e6), command: Bytes(4096), depth: 8 };
    assert_eq!(system.background(2), [stream; 2]);
    // A cluster of 2 to the power of zero pages; of three, 8.
    let mut reading = android();
    assert_eq!(reading.swap_read_ahead(), 1);
    reading.set("page_cluster", 3.0).unwrap();
    assert_eq!(reading.swap_read_ahead(), 8);
}

/// The message about `android.toml` with `old` replaced by `new` contains its location and all of `words`.
fn assert_says(old: &str, new: &str, words: &[&str]) {
    let at = ANDROID.find(old).unwrap_or_else(|| panic!("{old} is not in the text"));
    let line = 1 + ANDROID[..at].matches('\n').count();
    let text = ANDROID.replacen(old, new, 1);
    let message = System::parse("phone", "phone.toml", &text).unwrap_err().to_string();
    for word in [format!("phone.toml:{line}: ").as_str()].iter().chain(words) {
        assert!(message.contains(word), "{message:?} lacks {word:?}");
    }
}

#[test]
fn what_is_wrong_is_named_by_line_and_field() {
    assert_says("swappiness =", "swapiness =", &["`reclaim.swapiness`", "unknown key", "did you mean `swappiness`"]);
    assert_says("\"two\"", "\"too\"", &["`reclaim.lists`", "did you mean `two`", "two, generations"]);
    assert_says("\"least-recent\"", "\"oldest\"", &["`killer.victim`", "least-recent, heaviest"]);
    assert_says(
        "value = 70, unit = \"ms\"",
        "value = 70, unit = \"MHz\"",
        &["`killer.psi_partial_stall`", "wrong unit"],
    );
    assert_says("value = 4, unit = \"MB/s\"", "value = 4, unit = \"MB\"", &["`background.rate`", "GB/s, MB/s, B/s"]);
    assert_says("value = 8.56, unit = \"%\"", "value = 856, unit = \"%\"", &["`zram.same_filled.value`"]);
    assert_says(
        "value = -1000, unit = \"count\"",
        "value = -1000, unit = \"cuont\"",
        &["`scores.native`", "did you mean `count`"],
    );
    assert_says("value = -1000", "value = -2000", &["`scores.native.value`", "a whole number from -1000 to 1001"]);
    assert_says("value = -900", "value = -900.5", &["`scores.system.value`", "-900.5 is out of range"]);
    assert_says("value = -800", "value = \"-800\"", &["`scores.persistent.value`", "a decimal number"]);
    let text = without(ANDROID.to_owned(), "[killer]");
    let message = System::parse("phone", "phone.toml", &text).unwrap_err().to_string();
    assert!(message.starts_with("phone.toml:1: `killer`: missing key"), "{message}");
}

#[test]
fn contradictions_are_refused_and_change_nothing() {
    let text = ANDROID.replacen("lists = \"two\"", "lists = \"generations\"", 1);
    let message = System::parse("phone", "phone.toml", &text).unwrap_err().to_string();
    assert!(message.contains("`reclaim`: lists of generations need `generations`, 3 to 8"), "{message}");
    let text = ANDROID.lines().filter(|line| !line.starts_with("share = ")).collect::<Vec<_>>().join("\n");
    let message = System::parse("phone", "phone.toml", &text).unwrap_err().to_string();
    assert!(message.contains("`zram`: needs a `size` or a `share` of memory"), "{message}");
    let mut system = android();
    for (name, value, words) in [
        ("min_free_lowest", 70_000.0, "min_free_lowest, 71.7 MB, is above min_free_highest, 67.1 MB"),
        ("swappiness", 201.0, "swappiness is at most 200"),
        ("page_cluster", 32.0, "page_cluster is at most 31"),
        ("psi_window", 0.0, "psi_window is zero"),
        ("zram.ratio", 1.25, "`zram`: ratio is below 4,096 to 3,257"),
        ("trainer.incompressible", 100.0, "`trainer`: same_filled and incompressible are more than all pages"),
        ("scores.home", 600.5, "a whole number from -1000 to 1001"),
    ] {
        let message = system.set(name, value).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(system.entries(), android().entries());
    system.set("scores.home", -5.0).unwrap();
    assert_eq!(system.constants.scores.home.value, OomScore(-5));
}

#[test]
fn phones_of_the_papers_reclaim_below_one_per_cent() {
    let system = android();
    for id in ["galaxy-s22", "oneplus-10-pro", "redmi-note10"] {
        let device = load(id).unwrap();
        let share = system.watermarks(&device).low.as_f64() / device.ram().as_f64();
        assert!(share > 0.005 && share < 0.01, "{id}: {share}");
    }
}
