//! The phone around a run: what an operating system's constants come to on a device, with its apps.

use haversack_devices::processor::{CoreSelection, CpuCores, Frequency};
use haversack_devices::units::Fraction;
use haversack_devices::{Device, ScalarSpeed, System};
use haversack_memory::phone::{Backing, Settings};
use haversack_training::phone::{AppChange, Phone, SystemMemory, Trainer};

/// The core that kswapd is left to.
const KSWAPD: &str = "little:1";

/// A `device` in use under `system`, training on `cores`, with `apps`; the process that trains has the score `adj`, or
/// the system's of what the user would notice.
///
/// # Errors
/// Words for people: what the device lacks.
pub(crate) fn phone(
    device: &Device,
    system: &System,
    cores: Option<&CpuCores>,
    apps: Vec<AppChange>,
    adj: Option<i32>,
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
    let app_pages = system.app_pages();
    let resident = system.resident();
    let part = |bytes, backing, hot| SystemMemory { bytes, backing, hot };
    let trainer = &constants.trainer;
    Ok(Phone {
        memory: Settings::of(system, device),
        training: system.page_costs(training),
        kswapd: system.page_costs(kswapd),
        driver: flash.driver(training),
        flash,
        background: system.background(1),
        own: vec![
            part(resident.kernel, Backing::Pinned, Fraction(0.0)),
            part(resident.file, Backing::File, resident.hot),
            part(resident.anonymous, Backing::Anonymous(app_pages), resident.hot),
        ],
        trainer: Trainer {
            adj: adj.unwrap_or(constants.scores.perceptible.value.0),
            pages: system.trainer_pages(),
            start: trainer.start.value,
        },
        app_pages,
        apps,
    })
}
