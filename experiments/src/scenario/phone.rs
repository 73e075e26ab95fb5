//! The phone around a run: what an operating system's constants come to on a device, with its apps.

use haversack_devices::processor::{CoreSelection, CpuCores, Frequency};
use haversack_devices::system::{PageLists, Victim};
use haversack_devices::units::{Bytes, Count, Fraction, Nanos};
use haversack_devices::{Device, ScalarSpeed, System};
use haversack_memory::phone::lmkd::Lmkd;
use haversack_memory::phone::{Backing, Costs, Lists, PAGE, Settings, Watermarks};
use haversack_training::phone::{AppChange, Holding, Phone, Trainer};

/// The generations of the kernel.
const GENERATIONS: u8 = 4;
/// The core that kswapd is left to.
const KSWAPD: &str = "little:1";

/// A `device` in use under `system`, training on `cores`, with `apps`.
///
/// # Errors
/// Words for people: what the device lacks.
pub(crate) fn phone(
    device: &Device,
    system: &System,
    cores: Option<&CpuCores>,
    apps: Vec<AppChange>,
) -> Result<Phone, String> {
    let id = &device.id;
    let flash = device.flash().ok_or_else(|| format!("{id} has no [storage]; the system {} swaps to it", system.id))?;
    let cpu = device.cpu().ok_or_else(|| format!("{id} has no [[cpu]], which the system {} runs on", system.id))?;
    let choose = |cores: CoreSelection| cpu.choose(cores, Frequency::Highest).map_err(|error| error.to_string());
    let all = choose(CoreSelection::All)?;
    let little = KSWAPD.parse().ok().and_then(|cores| choose(cores).ok());
    let speed = |cores: &CpuCores| {
        ScalarSpeed::of(cores).ok_or_else(|| format!("the CoreMark of {id}'s cores is not known; expected `coremark`"))
    };
    let training = speed(cores.unwrap_or(&all))?;
    let kswapd = speed(little.as_ref().unwrap_or(&all))?;
    let constants = &system.constants;
    let app_ratio = Count(system.zram_ratio().0);
    let resident = system.resident();
    let part = |bytes, backing, hot| Holding { bytes, backing, hot };
    let trainer = &constants.trainer;
    Ok(Phone {
        memory: settings(device, system),
        training: costs(system, training),
        kswapd: costs(system, kswapd),
        driver: flash.driver(training),
        flash,
        background: system.background(1),
        own: vec![
            part(resident.kernel, Backing::Pinned, Fraction(0.0)),
            part(resident.file, Backing::File, resident.hot),
            part(resident.anonymous, Backing::Anonymous { ratio: app_ratio }, resident.hot),
        ],
        trainer: Trainer {
            adj: constants.scores.perceptible.value.0,
            ratio: Count(trainer.ratio.value.0),
            start: trainer.start.value,
        },
        app_ratio,
        apps,
    })
}

fn settings(device: &Device, system: &System) -> Settings {
    let reclaim = &system.constants.reclaim;
    let marks = system.watermarks(device);
    let marks = Watermarks { min: marks.min, low: marks.low, high: marks.high };
    let lists = match reclaim.lists {
        PageLists::Two => Lists::Two,
        PageLists::Generations => Lists::Generations {
            count: GENERATIONS,
            min_ttl: reclaim.min_ttl.as_ref().map_or(Nanos::ZERO, |ttl| ttl.value),
        },
    };
    Settings {
        extent: reclaim.extent.value,
        swappiness: reclaim.swappiness.value.0 as u32,
        lists,
        zram: system.zram(device),
        swap: system.swap_partition(),
        swap_read_ahead: Bytes(PAGE * system.swap_read_ahead()),
        file_read_ahead: system.constants.files.read_ahead.value,
        productive: reclaim.productive.value,
        lmkd: Some(killer(device, system)),
        ..Settings::new(system.managed(device), marks)
    }
}

/// lmkd's properties are whole percentages.
fn killer(device: &Device, system: &System) -> Lmkd {
    let (killer, own) = (&system.constants.killer, system.killer(device));
    let percent = |share: f64| (share * 100.0).round() as u64;
    Lmkd {
        partial_stall: own.psi_partial_stall,
        complete_stall: killer.psi_complete_stall.value,
        swap_free_low: percent(killer.swap_free_low.value.0),
        swap_compression_ratio: killer.swap_compression_ratio.value,
        thrashing_limit: percent(own.thrashing_limit.0),
        thrashing_limit_decay: percent(own.thrashing_limit_decay.0),
        thrashing_limit_critical: percent(own.thrashing_limit.0 * killer.thrashing_limit_critical.value.0),
        swap_util_max: percent(killer.swap_util_max.value.0),
        filecache_min: killer.filecache_min.value,
        stall_limit_critical: percent(killer.stall_limit_critical.value.0),
        kill_heaviest: killer.victim == Victim::Heaviest,
    }
}

fn costs(system: &System, speed: ScalarSpeed) -> Costs {
    let costs = system.page_costs(speed);
    Costs {
        fault: costs.fault,
        zero: costs.zero,
        scan: costs.scan,
        walk: costs.walk,
        unmap: costs.unmap,
        compress: costs.compress,
        decompress: costs.decompress,
        submit: costs.submit,
        wake: costs.wake_up,
    }
}
