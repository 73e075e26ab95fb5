//! A calibration that overrides a few numbers of another: `base = "ID|FILE"`.
//!
//! A calibration with a few of its values changed by name: `ram = "6 GiB"`, `reclaim.lists = "generations"`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::calibrated::{BuiltIn, Schema};
use super::{Calibrated, CalibrationError, Dimension, Unit};
use crate::text::{TomlDocument, TomlError, aside, nearest};

/// A calibration's text, and the file's name for errors.
#[derive(Clone, Debug)]
pub(super) struct Text<'a> {
    pub(super) file: Cow<'a, str>,
    pub(super) text: Cow<'a, str>,
    /// Identifies the file, however its path is written.
    identity: PathBuf,
}

impl<'a> Text<'a> {
    pub(super) fn new(file: impl Into<Cow<'a, str>>, text: impl Into<Cow<'a, str>>) -> Self {
        let (file, text) = (file.into(), text.into());
        let identity = Path::new(file.as_ref()).canonicalize().unwrap_or_else(|_| PathBuf::from(file.as_ref()));
        Self { file, text, identity }
    }

    /// A built-in calibration; its base is never a file of the user.
    fn built_in(found: &BuiltIn) -> Self {
        let identity = PathBuf::from(format!("built-in {}", found.file));
        Self { file: found.file.into(), text: found.text.into(), identity }
    }
}

/// `first`, its base, that base's own base, and so on.
///
/// # Errors
/// Text that is not TOML; a base that does not exist, cannot be read, or is already in the chain.
pub(super) fn chain<'a, T: Schema>(first: Text<'a>) -> Result<Vec<Text<'a>>, CalibrationError> {
    let mut chain = vec![first];
    while let Some(base) = chain.last().map(base_of::<T>).transpose()?.flatten() {
        let is_circle = chain.iter().any(|text| text.identity == base.identity);
        if let (true, Some(last)) = (is_circle, chain.last()) {
            let files: Vec<&str> = chain.iter().chain([&base]).map(|text| text.file.as_ref()).collect();
            return Err(refuse(last, &format!("goes in a circle: {}", files.join(" → "))).into());
        }
        chain.push(base);
    }
    Ok(chain)
}

/// The calibration that `text` overrides, if it names one.
fn base_of<'a, T: Schema>(text: &Text<'a>) -> Result<Option<Text<'a>>, CalibrationError> {
    let document = TomlDocument::parse(&text.file, &text.text)?;
    let Some(base) = document.top_text("base") else { return Ok(None) };
    if let Some(found) = T::BUILT_IN.iter().find(|built_in| built_in.id == base) {
        return Ok(Some(Text::built_in(found)));
    }
    if !is_path(base) {
        let ids = || T::BUILT_IN.iter().map(|built_in| built_in.id);
        let (near, valid) = (aside(nearest(base, ids())), ids().collect::<Vec<_>>().join(", "));
        let message = format!(
            "unknown {} `{base}`{near}; expected a .toml file, from this file's folder, or one of {valid}",
            T::WHAT
        );
        return Err(refuse(text, &message).into());
    }
    let path = Path::new(text.file.as_ref()).parent().unwrap_or(Path::new("")).join(base);
    match std::fs::read_to_string(&path) {
        Ok(read) => Ok(Some(Text::new(path.display().to_string(), read))),
        Err(error) => Err(refuse(text, &format!("cannot read {}: {error}", path.display())).into()),
    }
}

/// Whether an id is the path of a file.
pub(crate) fn is_path(id: &str) -> bool {
    let path = Path::new(id);
    path.extension().is_some_and(|extension| extension == "toml") || path.components().count() > 1
}

/// An error about the base that `text` names.
fn refuse(text: &Text<'_>, message: &str) -> TomlError {
    match TomlDocument::parse(&text.file, &text.text) {
        Ok(document) => document.refuse("base", message),
        Err(error) => error,
    }
}

/// Names of constants and words, and their values as text: a number in the file's unit, or with its own.
pub type Settings = BTreeMap<String, String>;

impl<T: Schema> Calibrated<T> {
    /// The calibration `id` with `settings` overriding its own values. A constant is named as for
    /// [`set`](Calibrated::set). Other names are a key whose value is a word, by its full name, or a
    /// [`section`](Schema::section) of the schema: a device's `storage` is a class such as `ufs31`.
    ///
    /// # Errors
    /// Those of [`load`](Calibrated::load) and [`set`](Calibrated::set); a value that is invalid for its key.
    pub fn load_with(id: &str, settings: &Settings) -> Result<Self, CalibrationError> {
        let own = Self::load(id)?;
        if settings.is_empty() {
            return Ok(own);
        }
        let all: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let file = format!("{} with {}", own.file, all.join(", "));
        let refused = |name: &str, message: String| TomlError::of_program(&file, name, message);
        let (mut words, mut sections, mut numbers) = (String::new(), Vec::new(), Vec::new());
        for (name, value) in settings {
            if T::section(name) {
                sections.push((name, value));
            } else if number(value).is_some() || own.full_name(name).is_ok() {
                numbers.push((name, value));
            } else {
                let keys = name.split('.').map(|key| toml::Value::String(key.to_owned()).to_string());
                // A word, or true or false.
                let value = value.parse().map_or_else(|_| toml::Value::String(value.to_owned()), toml::Value::Boolean);
                words += &format!("{} = {value}\n", keys.collect::<Vec<_>>().join("."));
            }
        }
        let mut changed = if words.is_empty() {
            own
        } else {
            // The base of a file is looked up in that file's own folder.
            let name = if is_path(id) { Path::new(id).file_name().map(|name| name.to_string_lossy()) } else { None };
            let base = toml::Value::String(name.map_or_else(|| id.to_owned(), |name| name.into_owned()));
            Self::parse(&own.id, &format!("{} with settings", own.file), &format!("base = {base}\n{words}"))?
        };
        for (name, value) in sections {
            changed.constants.take_section(name, value).map_err(|message| refused(name, message))?;
        }
        // Constants that follow from others are set after them: rates after pipes, and rates of
        // narrow numbers after FP32's.
        numbers.sort_by_key(|(name, _)| (name.ends_with("_rate"), !name.ends_with("fp32_rate")));
        for (name, value) in numbers {
            let unit = changed.unit_of(name)?;
            let value = in_unit(value, unit).map_err(|message| refused(name, message))?;
            changed.set(name, value)?;
        }
        if let Some((section, message)) = changed.constants.contradiction() {
            return Err(refused(&section, message).into());
        }
        changed.file = file;
        Ok(changed)
    }

    /// The unit of the constant called `name` in its file.
    fn unit_of(&self, name: &str) -> Result<&'static Unit, CalibrationError> {
        let full = self.full_name(name)?;
        let mut unit = None;
        self.constants.clone().visit("", &mut |candidate, constant| {
            if candidate == full {
                unit = Some(constant.unit());
            }
        });
        unit.ok_or_else(|| CalibrationError::UnknownConstant { file: self.file.clone(), name: full, nearest: None })
    }
}

/// A number and its unit, which may be empty.
fn number(text: &str) -> Option<(f64, &str)> {
    let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8()).rev();
    let split = |end: usize| Some((text[..end].trim().parse::<f64>().ok().filter(|value| value.is_finite())?, end));
    let (value, end) = ends.into_iter().find_map(split)?;
    Some((value, text[end..].trim()))
}

/// The number in `text`, converted to `unit`.
fn in_unit(text: &str, unit: &'static Unit) -> Result<f64, String> {
    let symbols = || unit.dimension.symbols();
    let valid = || match unit.dimension {
        Dimension::Count | Dimension::Factor => String::new(),
        _ => format!(", in {} or with one of {}", unit.symbol, symbols().collect::<Vec<_>>().join(", ")),
    };
    let Some((value, own)) = number(text) else { return Err(format!("expected a number{}, found '{text}'", valid())) };
    if own.is_empty() {
        return Ok(value);
    }
    let found = unit.dimension.unit(own).ok_or_else(|| {
        format!("expected a number{}, found '{text}' with the unit `{own}`{}", valid(), aside(nearest(own, symbols())))
    })?;
    Ok(if found == unit { value } else { value * found.scale / unit.scale })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Balance;
    use crate::units::Bytes;
    use crate::{Device, System};

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn device(pairs: &[(&str, &str)]) -> Result<Device, CalibrationError> {
        Device::load_with("galaxy-s22", &settings(pairs))
    }

    fn refusal(pairs: &[(&str, &str)]) -> String {
        device(pairs).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_number_is_in_the_units_of_the_file_or_its_own() {
        for text in ["6", "6 GiB", "6GiB", "6144 MiB"] {
            assert_eq!(device(&[("ram", text)]).unwrap().constants.ram.value, Bytes(6 << 30), "{text}");
        }
        let plain = Device::load("galaxy-s22").unwrap();
        let changed = device(&[("ram", "6 GiB")]).unwrap();
        assert_eq!(changed.id, plain.id);
        assert!(changed.file != plain.file && changed.file.ends_with("with ram=6 GiB"), "{}", changed.file);
        assert_eq!(device(&[]).unwrap().file, plain.file);
    }

    #[test]
    fn peaks_follow_from_units_clock_and_rate() {
        let peak = |pairs: &[(&str, &str)]| {
            device(pairs).unwrap().constants.gpu.unwrap().general_peak(crate::work::Precision::Fp16).0
        };
        let base = peak(&[]);
        for (name, twice) in [("gpu.units", "8"), ("gpu.clock", "1636"), ("gpu.fp32_rate", "1024")] {
            assert!((peak(&[(name, twice)]) / base - 2.0).abs() < 1e-9, "{name}");
        }
        let told = refusal(&[("gpu.fp32_peak", "3350")]);
        assert!(told.contains("no constant is named `gpu.fp32_peak` (did you mean `gpu.fp32_rate`?)"), "{told}");
        let cores = device(&[("cpu.0.pipes", "8")]).unwrap().constants.cpu[0].clone();
        assert_eq!([cores.fp32_rate, cores.fp16_rate, cores.int8_rate].map(|rate| rate.value.0), [64.0, 128.0, 256.0]);
        let both =
            [("cpu.0.fp16_rate", "32"), ("cpu.0.pipes", "8"), ("gpu.fp32_rate", "256"), ("gpu.fp16_rate", "256")];
        let both = device(&both).unwrap().constants;
        let gpu = both.gpu.unwrap();
        assert_eq!([&both.cpu[0].fp32_rate, &both.cpu[0].fp16_rate].map(|rate| rate.value.0), [64.0, 32.0]);
        assert_eq!([gpu.fp32_rate, gpu.fp16_rate, gpu.int8_rate].map(|rate| rate.value.0), [256.0, 256.0, 1024.0]);
    }

    #[test]
    fn a_file_that_gives_a_peak_gives_the_one_that_follows() {
        let gpu = |keys: &str| {
            let text = format!("base = \"galaxy-s22\"\n[gpu]\nclock.value = 900\n{keys}");
            Device::parse("x", "x.toml", &text).map(|device| device.constants.gpu.unwrap())
        };
        let written = |key: &str, value: f64, unit: &str| {
            format!("{key} = {{ value = {value}, unit = \"{unit}\", kind = \"datasheet\", source = \"sheet\" }}\n")
        };
        assert!(gpu(&written("fp32_peak", 1.84, "TFLOP/s")).is_ok(), "a data sheet rounds");
        let other = gpu(&written("fp32_peak", 2000.0, "GFLOP/s")).map(|_| ()).unwrap_err().to_string();
        let said = "x.toml:2: `gpu`: fp32_peak, 2000.0 GFLOP/s, is not units × clock × fp32_rate: 4 × 900 MHz × 512 FLOP/cycle";
        assert!(other.contains(said) && other.contains("= 1843.2 GFLOP/s"), "{other}");
        // A rate that the file leaves out follows from its peak.
        let tensor = gpu(&written("fp16_tensor_peak", 7372.8, "GFLOP/s")).unwrap().fp16_tensor_rate.unwrap();
        assert!((tensor.value.0 - 2048.0).abs() < 1e-9, "{tensor:?}");
        let card = format!("base = \"rtx-3090\"\n[gpu]\n{}", written("fp16_tensor_peak_fp32_sums", 142.0, "TFLOP/s"));
        let card = Device::parse("x", "x.toml", &card).map(|_| ()).unwrap_err().to_string();
        let said = "fp16_tensor_peak_fp32_sums, 142000.0 GFLOP/s, is not units × clock × fp16_tensor_rate_fp32_sums: 82 × 1695";
        assert!(card.contains(said), "{card}");
        let dsp = format!("base = \"galaxy-s22\"\n[dsp]\n{}", written("int8_peak", 3000.0, "GOP/s"));
        let dsp = Device::parse("x", "x.toml", &dsp).map(|_| ()).unwrap_err().to_string();
        assert!(dsp.contains("4 × 128 B × 1400 MHz × 4 = 2867.2 GOP/s"), "{dsp}");
    }

    #[test]
    fn a_constant_beyond_every_machine_is_refused_with_its_line_and_what_it_can_be() {
        let refused = |line: &str| {
            let text = format!("base = \"galaxy-s22\"\n{line}\n");
            Device::parse("x", "x.toml", &text).map(|_| ()).unwrap_err().to_string()
        };
        for (line, expected) in [
            (
                "gpu.clock.value = 1e15",
                "`gpu.clock.value`: 1000000000000000 is out of range; expected 0, or a number from 0.001 to",
            ),
            ("gpu.clock.value = 1e-9", "`gpu.clock.value`: 0.000000001 is out of range"),
            ("gpu.launch.value = 1e18", "`gpu.launch.value`: 1e18 is out of range; expected a number from 0 to"),
            ("ram.value = 1e9", "`ram.value`: 1000000000 is out of range"),
        ] {
            let found = refused(line);
            assert!(found.starts_with("x.toml:2: ") && found.contains(expected), "{line}: {found}");
        }
    }

    #[test]
    fn what_a_phone_keeps_from_its_kernel_is_not_given_out() {
        let plain = Device::load("galaxy-s22").unwrap();
        assert_eq!(plain.available(), Bytes((8 << 30) - (807 << 20)));
    }

    #[test]
    fn a_class_of_flash_brings_all_that_is_known_of_it() {
        let changed = device(&[("storage", "ufs21"), ("storage.random_read", "90 MB/s")]).unwrap();
        let old = Device::load("galaxy-s10").unwrap();
        let [changed, old] = [changed, old].map(|device| device.constants.storage.unwrap());
        assert_eq!(changed.sequential_read.value.0, old.sequential_read.value.0);
        assert_eq!(changed.random_read.value.0, 90e6);
    }

    #[test]
    fn a_word_of_a_system_is_changed_by_its_key() {
        let changed = System::load_with("android", &settings(&[("reclaim.balance", "both")])).unwrap();
        assert_eq!(changed.constants.reclaim.balance, Balance::Both);
        assert_eq!(changed.id, "android");
    }

    #[test]
    fn what_cannot_be_names_what_can() {
        let unknown = refusal(&[("rom", "6 GiB")]);
        assert!(unknown.contains("no constant is named `rom` (did you mean `ram`?)"), "{unknown}");
        let unit = refusal(&[("ram", "6 GBit")]);
        assert!(unit.contains("`ram`: expected a number, in GiB or with one of B, KiB") && unit.contains("`GBit`"));
        let word = refusal(&[("ram", "much")]);
        assert!(word.contains("`ram`: expected a number, in GiB") && word.contains("found 'much'"), "{word}");
        let class = refusal(&[("storage", "ufs5")]);
        assert!(class.contains("`storage`: expected a class of flash") && class.contains("ufs40"), "{class}");
        assert!(refusal(&[("ram", "-1")]).contains("out of range"));
        let key = System::load_with("android", &settings(&[("reclaim.list", "two")])).unwrap_err().to_string();
        assert!(key.contains("did you mean `lists`?"), "{key}");
    }
}
