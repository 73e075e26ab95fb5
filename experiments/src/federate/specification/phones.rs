//! The phones of a federation, and their samples.

use std::collections::BTreeMap;

use haversack_federation::learning::Deal;
use haversack_federation::population::{DeviceKind, Link, MemoryClass, Population, PopulationSetting, Sizes};

use super::Specification;
use super::keys::{Asked, Place};
use crate::{Cache, CommandError, Result};

/// The phones of a federation.
pub(crate) struct Phones {
    /// The device kinds: devices, one for each size of memory that phones have; every phone is of one kind.
    pub(in crate::federate) kinds: Vec<DeviceKind>,
    pub(crate) population: Population,
}

impl Phones {
    /// # Errors
    /// A population that cannot be drawn.
    pub(crate) fn draw(asked: &Specification) -> Result<Self> {
        let kinds: Vec<DeviceKind> = (0..)
            .zip(&asked.setting.memory)
            .flat_map(|(memory, class)| class.devices.iter().map(move |id| DeviceKind { id: id.clone(), memory }))
            .collect();
        let population = Population::draw(asked.seed, asked.phones, &asked.setting, &kinds, asked.sizes);
        Ok(Self { population: population.map_err(CommandError::input)?, kinds })
    }

    /// If a set with fewer samples than phones is dealt out, marks the phones without samples.
    ///
    /// # Errors
    /// Data that cannot be loaded.
    pub(in crate::federate) fn dealt(mut self, asked: &Specification, cache: &Cache) -> Result<Self> {
        let Some(learning) = asked.learning.as_ref().filter(|learning| learning.dealt) else { return Ok(self) };
        let Some(set) = learning.data_set(cache)? else { return Ok(self) };
        let sizes: Vec<u32> = self.population.phones().iter().map(|phone| phone.samples).collect();
        let numbers = (0..).zip(Deal::numbers(set.train.len() as u64, &sizes));
        let without = numbers.filter(|(_, number)| *number == 0);
        without.for_each(|(phone, _)| self.population.leave_without_samples(phone));
        Ok(self)
    }
}

/// The distribution that phones are drawn from.
pub(super) fn setting(asked: &Asked, place: &Place<'_>) -> Result<PopulationSetting> {
    let mut setting = PopulationSetting::embedded().map_err(CommandError::failed)?;
    if let Some(mix) = &asked.memory_mix {
        mixed(&mut setting, mix).map_err(|why| place.says("memory_mix", &why))?;
        setting.check().map_err(|error| place.says("memory_mix", &error.to_string()))?;
    }
    if let Some(id) = &asked.device {
        let both = || place.says("device", "`device` and `memory_mix` both say what phones are; expected one of them");
        asked.memory_mix.as_ref().map_or(Ok(()), |_| Err(both()))?;
        let device = haversack_devices::load(id).map_err(|error| place.says("device", &error.to_string()))?;
        let size_gb = (device.ram().as_f64() / f64::from(1 << 30)).round();
        setting.memory = vec![MemoryClass { size_gb, devices: vec![id.clone()], share: 1.0, speed_spread: 0.0 }];
    }
    if let Some(median_mbit_per_s) = asked.link_mbit_per_s {
        setting.link = Link { median_mbit_per_s, spread: 0.0 };
        let says =
            |error: String| place.says("link_mbit_per_s", &error.replace("link.median_mbit_per_s", "link_mbit_per_s"));
        setting.check().map_err(|error| says(error.to_string()))?;
    }
    Ok(setting)
}

/// Replaces the shares of the memory classes; a class that is not named has no phones.
fn mixed(setting: &mut PopulationSetting, mix: &BTreeMap<String, f64>) -> Result<(), String> {
    let sizes: Vec<String> = setting.memory.iter().map(|class| class.size_gb.to_string()).collect();
    if let Some(unknown) = mix.keys().find(|size| !sizes.contains(size)) {
        return Err(format!("`memory_mix` has phones with {unknown} GB, expected {} GB", sizes.join(", ")));
    }
    for (class, size) in setting.memory.iter_mut().zip(&sizes) {
        class.share = mix.get(size).copied().unwrap_or(0.0);
    }
    setting.memory.retain(|class| class.share != 0.0);
    Ok(())
}

/// The number of samples per phone.
pub(super) fn sizes(asked: &Asked, place: &Place<'_>) -> Result<Sizes> {
    let Some(total) = asked.total_samples else {
        if asked.size_alpha.is_some() {
            return Err(place.says("size_alpha", "`size_alpha` says how `total_samples` are split, which is not given"));
        }
        let samples = asked.samples.unwrap_or(60);
        return if samples > 0 {
            Ok(Sizes::Same(samples))
        } else {
            Err(place.says("samples", "`samples` is 0, expected at least 1"))
        };
    };
    if asked.samples.is_some() {
        let message = "`total_samples` and `samples` both say how many samples phones hold; expected one of them";
        return Err(place.says("total_samples", message));
    }
    if total < u64::from(asked.population) {
        let message =
            format!("`total_samples` is {total}, expected one at least for each of {} phones", asked.population);
        return Err(place.says("total_samples", &message));
    }
    match asked.size_alpha {
        Some(alpha) if !(alpha > 0.0 && alpha.is_finite()) => {
            Err(place.says("size_alpha", &format!("`size_alpha` is {alpha}, expected a number above 0")))
        }
        alpha => Ok(Sizes::Split { total, alpha }),
    }
}
