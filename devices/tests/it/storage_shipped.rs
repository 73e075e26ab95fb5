//! Storage as shipped: classes agree, and a file takes longer on slower cores and with apps in the
//! background (FedHybrid, figure 4).

use crate::common;
use haversack_devices::storage::{Direction, PAGE, ScalarSpeed};
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{ClusterClass, CoreSelection, Cpu, Device, Frequency, list, load, load_system};

/// The file of figure 4.
const FILE: Bytes = Bytes(128_000_000);

fn with_storage() -> Vec<Device> {
    let devices = list().unwrap().into_iter().map(|listing| load(listing.id).unwrap());
    devices.filter(|device| device.flash().is_some()).collect()
}

/// The speeds of a core of every class at its highest frequency and at its governor's floor, where they are known.
fn speeds(cpu: &Cpu) -> Vec<ScalarSpeed> {
    let classes = [ClusterClass::Big, ClusterClass::Middle, ClusterClass::Little];
    let ends = classes.into_iter().flat_map(|class| [(class, Frequency::Highest), (class, Frequency::Lowest)]);
    let cores = ends.filter_map(|(class, end)| cpu.choose(CoreSelection::Some { class, count: 1 }, end).ok());
    let mut speeds: Vec<ScalarSpeed> = cores.filter_map(|cores| ScalarSpeed::of(&cores)).collect();
    speeds.sort_by(|a, b| a.partial_cmp(b).unwrap());
    speeds.dedup();
    speeds
}

#[test]
fn phones_and_boards_have_storage_and_a_class_is_the_same_in_all() {
    let devices = with_storage();
    assert_eq!(devices.len(), 24);
    for device in &devices {
        let flash = device.flash().unwrap();
        assert_eq!(flash.slots(), 31, "{}", device.id);
        // A board has no display that Android would keep memory for.
        assert_eq!(device.display().is_none(), device.id.starts_with("jetson"), "{}", device.id);
        let class = &device.constants.storage.as_ref().unwrap().class;
        // Values measured on a phone's own part may differ.
        for other in devices.iter().filter(|other| ![&device.id, &other.id].contains(&&"pixel-4".to_owned())) {
            if other.constants.storage.as_ref().unwrap().class == *class {
                let numbers = |device: &Device| -> Vec<f64> {
                    let entries = device.entries().into_iter();
                    entries.filter(|entry| entry.name.starts_with("storage.")).map(|entry| entry.value).collect()
                };
                assert_eq!(numbers(device), numbers(other), "{} and {}: {class}", device.id, other.id);
            }
        }
        // One page alone takes longer than its share of a full queue, and a file less than with single pages.
        for direction in [Direction::Read, Direction::Write] {
            let occupation = flash.occupation(direction, PAGE).0;
            assert!(flash.alone(direction, PAGE).seconds() >= occupation, "{}", device.id);
            assert!(PAGE.as_f64() / occupation < flash.sequential(direction).0, "{}", device.id);
        }
    }
}

#[test]
fn a_page_at_depth_one_takes_a_ufs_3_1_100_to_150_us() {
    // The prior for swap-ins: the driver on a big core on top of the device.
    let device = load("galaxy-s22").unwrap();
    let speed = *speeds(&device.cpu().unwrap()).last().unwrap();
    let flash = device.flash().unwrap();
    let taken = load_system("android").unwrap().driver(speed).time(PAGE) + flash.alone(Direction::Read, PAGE);
    assert!(taken > Nanos(100_000) && taken < Nanos(150_000), "{taken}");
}

#[test]
fn a_faster_core_reads_and_writes_a_file_sooner_and_apps_in_the_background_hold_it_up() {
    let android = load_system("android").unwrap();
    let mut seen = 0;
    for device in with_storage() {
        let (flash, cpu) = (device.flash().unwrap(), device.cpu().unwrap());
        let speeds = speeds(&cpu);
        let both =
            |speed, apps| [android.read_file(&flash, FILE, speed, apps), android.write_file(&flash, FILE, speed, apps)];
        for pair in speeds.windows(2) {
            for (slower, faster) in both(pair[0], 0).into_iter().zip(both(pair[1], 0)) {
                assert!(faster < slower, "{}: {pair:?}: {faster} is not below {slower}", device.id);
            }
        }
        let fastest = speeds.last().copied();
        for speed in speeds {
            let with_apps = [0, 2, 4, 8].map(|apps| both(speed, apps));
            for pair in with_apps.windows(2) {
                for (fewer, more) in pair[0].into_iter().zip(pair[1]) {
                    // A core slower than the flash is hardly affected; the arrival of its commands varies.
                    let noticed = Some(speed) == fastest && more > fewer;
                    let varies = Some(speed) != fastest && more.seconds() > fewer.seconds() * 0.999;
                    assert!(noticed || varies, "{}: {speed:?}: {more} is not above {fewer}", device.id);
                }
            }
            // No file is faster than the data sheet: 128 MB at 4,200 MB/s take 30 ms.
            assert!(with_apps[0].iter().all(|&taken| taken > Nanos(30_000_000)));
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn reading_ahead_overlaps_core_and_flash_only_so_far() {
    // Galaxy S22, one big core at 3 GHz and 8.5 CoreMark iterations a megahertz: 25,500 a second. A command of 128 KiB
    // takes the driver (190,000 + 32 × 29,000) millionths = 1.118 iterations = 43.84 us and the flash alone 112 +
    // 126,976 / 2,100 = 172.46 us. If the flash never had two concurrent commands, one would end every (43.84 + 172.46)
    // / 2 us: 977 of them take 105.7 ms; two concurrent ones keep 1 − (1 − 74.9 / 172.46)² = 0.68 of it busy where they
    // need 0.87, and take 1.278 times as long: at most 129 ms.
    let (device, android) = (load("galaxy-s22").unwrap(), load_system("android").unwrap());
    let (flash, cpu) = (device.flash().unwrap(), device.cpu().unwrap());
    let cores = cpu.choose("big:1".parse().unwrap(), Frequency::Highest).unwrap();
    let speed = ScalarSpeed::of(&cores).unwrap();
    let read = android.read_file(&flash, FILE, speed, 0);
    assert!(read > Nanos(105_700_000) && read < Nanos(129_000_000), "{read}");
    // A write copies 31,250 pages of 29,000 millionths first, 35.54 ms; then the queue is full, 128 MB at 750 MB/s:
    // 170.67 ms; and the first command's driver, 7.45 us.
    let written = android.write_file(&flash, FILE, speed, 0);
    common::assert_close(written.seconds() * 1e3, 35.54 + 170.67, 0.3);
}
