//! The phones of a federation, each drawn from its number.

mod setting;

pub use setting::{Link, MemoryClass, PopulationError, PopulationSetting, Sessions};

use crate::draw::{Draws, Purpose};

/// A device that some phones of a population are modelled after.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceKind {
    /// Its id.
    pub id: String,
    /// The memory class of its phones, by number.
    pub memory: u8,
}

/// One phone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phone {
    /// Its memory class, by number.
    pub memory: u8,
    /// The device that it is modelled after, by number.
    pub device: u8,
    /// Its speed as a multiple of that device's: benchmark ratios within a memory class, as the paper scales
    /// measured times (section 5.2).
    pub speed: f32,
    /// Bytes a second from the server.
    pub down: f32,
    /// Bytes a second to the server.
    pub up: f32,
    /// The number of its samples.
    pub samples: u32,
}

/// The numbers of phones' samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// All the same number.
    Same(u32),
    /// The total over all phones, up to rounding, with at least one sample each.
    Split {
        /// The total.
        total: u64,
        /// The concentration of the Dirichlet distribution of their shares; `None` for even shares. If each of
        /// `c` classes is split separately with a concentration `a`, a phone's share of all samples is
        /// distributed almost as with `c · a`.
        alpha: Option<f64>,
    },
}

impl Sizes {
    /// Samples for each unit of the drawn share; 0 if sizes are not shares.
    fn for_one(self, seed: u64, number: u32) -> f64 {
        let Self::Split { total, alpha } = self else { return 0.0 };
        let all = alpha.map_or(f64::from(number), |alpha| (0..number).map(|phone| share(seed, phone, alpha)).sum());
        total as f64 / all.max(f64::MIN_POSITIVE)
    }
}

/// A phone's share before normalisation: from a gamma distribution.
fn share(seed: u64, phone: u32, alpha: f64) -> f64 {
    Draws::new(seed, Purpose::Samples, phone).gamma(alpha)
}

/// All phones. A phone's numbers follow from the seed and its own number, so that a larger population begins with the
/// phones of a smaller one, except for the numbers of samples that are split.
#[derive(Clone, Debug)]
pub struct Population {
    phones: Vec<Phone>,
}

impl Population {
    /// Removes a phone's samples, because there are fewer samples than phones.
    pub fn leave_without_samples(&mut self, phone: u32) {
        if let Some(phone) = self.phones.get_mut(phone as usize) {
            phone.samples = 0;
        }
    }

    /// `number` phones, modelled after the `devices` of their memory class.
    ///
    /// # Errors
    /// A setting that contradicts itself, a memory class without a device, or zero phones.
    pub fn draw(
        seed: u64,
        number: u32,
        setting: &PopulationSetting,
        devices: &[DeviceKind],
        sizes: Sizes,
    ) -> Result<Self, PopulationError> {
        setting.check()?;
        if number == 0 {
            return Err(PopulationError::wrong("population", "0", "at least 1"));
        }
        let classes: Vec<Vec<u8>> = (0..).zip(&setting.memory).map(|(class, _)| of_class(devices, class)).collect();
        if let Some(empty) = classes.iter().position(Vec::is_empty) {
            let size_gb = setting.memory[empty].size_gb;
            return Err(PopulationError(format!(
                "no device has {size_gb} GB of memory, which some phones of the population have"
            )));
        }
        let for_one = sizes.for_one(seed, number);
        let phones = (0..number).map(|phone| draw(seed, phone, setting, &classes, sizes, for_one));
        Ok(Self { phones: phones.collect() })
    }

    /// The phones, by number.
    pub fn phones(&self) -> &[Phone] {
        &self.phones
    }
}

fn of_class(devices: &[DeviceKind], class: u8) -> Vec<u8> {
    (0..).zip(devices).filter(|(_, device)| device.memory == class).map(|(number, _)| number).collect()
}

fn draw(seed: u64, phone: u32, setting: &PopulationSetting, classes: &[Vec<u8>], sizes: Sizes, for_one: f64) -> Phone {
    let draws = |purpose| Draws::new(seed, purpose, phone);
    let memory = setting.memory_at(draws(Purpose::Memory).even(0));
    let devices = &classes[memory];
    let device = (draws(Purpose::Device).even(0) * devices.len() as f64) as usize;
    let link =
        |purpose| (setting.link.bytes_per_s() * libm::exp(setting.link.spread * draws(purpose).normal(0))) as f32;
    Phone {
        memory: memory as u8,
        device: devices[device.min(devices.len() - 1)],
        speed: libm::exp(setting.memory[memory].speed_spread * draws(Purpose::Speed).normal(0)) as f32,
        down: link(Purpose::Down),
        up: link(Purpose::Up),
        samples: match sizes {
            Sizes::Same(samples) => samples,
            // A float cast saturates.
            Sizes::Split { alpha, .. } => {
                (for_one * alpha.map_or(1.0, |alpha| share(seed, phone, alpha))).round().max(1.0) as u32
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices() -> Vec<DeviceKind> {
        let kinds = [("a", 0), ("b", 1), ("c", 2), ("d", 2), ("e", 3), ("f", 4)];
        kinds.map(|(id, memory)| DeviceKind { id: id.to_owned(), memory }).to_vec()
    }

    #[test]
    fn phones_have_the_shares_that_were_asked_for() {
        let setting = PopulationSetting::embedded().unwrap();
        let population = Population::draw(1, 40_000, &setting, &devices(), Sizes::Same(100)).unwrap();
        let share = |of: &dyn Fn(&Phone) -> bool| {
            population.phones().iter().filter(|phone| of(phone)).count() as f64 / population.phones().len() as f64
        };
        for (class, memory) in (0..).zip(&setting.memory) {
            let found = share(&|phone| phone.memory == class);
            assert!((found - memory.share).abs() < 0.01, "{found} for {}", memory.share);
        }
        // Half of the phones with 8 GB are modelled after each of its two devices.
        assert!((share(&|phone| phone.device == 3) - 0.15).abs() < 0.01);
        // FedScale's facts: a median of 6.1 Mbit/s, 26% below 3.
        let below = |mbit: f32| share(&|phone| phone.down < mbit * 1e6 / 8.0);
        assert!((below(6.1) - 0.5).abs() < 0.01 && (below(3.0) - 0.26).abs() < 0.01);
        assert!((share(&|phone| phone.speed < 1.0) - 0.5).abs() < 0.01);
        assert_eq!(share(&|phone| phone.samples == 100), 1.0);
    }

    #[test]
    fn samples_are_split_by_shares_of_a_dirichlet_distribution() {
        let setting = PopulationSetting::embedded().unwrap();
        let samples = |alpha| {
            let sizes = Sizes::Split { total: 2_000_000, alpha };
            let population = Population::draw(1, 10_000, &setting, &devices(), sizes).unwrap();
            population.phones().iter().map(|phone| f64::from(phone.samples)).collect::<Vec<_>>()
        };
        assert!(samples(None).iter().all(|&samples| samples == 200.0));
        for alpha in [0.4, 6.0] {
            let (samples, mean) = (samples(Some(alpha)), 200.0);
            let total: f64 = samples.iter().sum();
            // Phones that would have had none have one sample.
            assert!((total / 2e6 - 1.0).abs() < 2e-3, "{total}");
            // A gamma distribution's variance over the square of its mean is 1/alpha.
            let variance = samples.iter().map(|samples| (samples / mean - 1.0).powi(2)).sum::<f64>() / 10_000.0;
            assert!((variance * alpha - 1.0).abs() < 0.08, "{alpha}: {variance}");
        }
    }

    #[test]
    fn a_larger_population_begins_with_the_smaller_one() {
        let draw = |number| {
            Population::draw(7, number, &PopulationSetting::embedded().unwrap(), &devices(), Sizes::Same(9)).unwrap()
        };
        assert_eq!(draw(50).phones(), &draw(80).phones()[..50]);
    }

    #[test]
    fn a_phone_is_few_bytes() {
        assert!(size_of::<Phone>() <= 20, "{}", size_of::<Phone>());
    }

    #[test]
    fn a_class_without_a_device_and_no_phones_are_refused() {
        let setting = PopulationSetting::embedded().unwrap();
        let none = Population::draw(1, 0, &setting, &devices(), Sizes::Same(1)).unwrap_err().to_string();
        assert_eq!(none, "`population` is 0, expected at least 1");
        let missing = Population::draw(1, 5, &setting, &devices()[..5], Sizes::Same(1)).unwrap_err().to_string();
        assert_eq!(missing, "no device has 16 GB of memory, which some phones of the population have");
    }
}
