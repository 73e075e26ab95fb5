//! The specification of a training: scenarios as in a sweep, and in addition the data, the epochs, the
//! rate and the seeds.

use haversack_devices::text::{hint, line_of, read_toml};
use haversack_workloads::data::{DataSet, VALIDATION_SHARE};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::de::DeTable;

use super::{Augment, Pace, Subject, WrongPace};
use crate::limits::key_beyond;
use crate::output::join;
use crate::work::places;
use crate::{Cache, CommandError, Key, Result, Scenario, sweep};

/// The keys that a scenario does not have.
const KEYS: [&str; 7] = ["augment", "data", "epochs", "learning_rate", "schedule", "seeds", "validation_share"];

/// Keys of a scenario that have no effect unless a phone is in use, and the alternative to suggest.
const IDLE: [(&str, &str); 2] =
    [("seed", "`seeds` lists the seeds"), ("iterations", "`epochs` says how long it learns")];
const ON_PHONES: [&str; 3] = ["apps", "system", "trace"];

/// The keys of a training, as written in the file.
#[derive(Debug, Deserialize)]
struct Own {
    augment: Option<String>,
    data: String,
    epochs: Option<u32>,
    learning_rate: Option<f64>,
    schedule: Option<String>,
    seeds: Option<Vec<u64>>,
    validation_share: Option<f64>,
}

/// A specification.
#[derive(Debug)]
pub(super) struct Specification {
    scenarios: sweep::Specification,
    /// The data: a name or a path.
    pub(super) data: String,
    /// The augmentation of the images in every epoch; `None` without one.
    pub(super) augment: Option<Augment>,
    /// The duration and the rate of learning.
    pub(super) pace: Pace,
    /// The seeds, without duplicates.
    pub(super) seeds: Vec<u64>,
    /// The fraction of the train part that becomes the validation part if the data do not have one.
    pub(super) validation_share: Option<f64>,
}

impl Specification {
    /// Parses a specification's text, named `file` in errors; `seed` replaces its seeds.
    ///
    /// # Errors
    /// Unknown keys, and values that a key cannot have, each with its line.
    pub(super) fn parse(file: &str, text: &str, seed: Option<u64>) -> Result<Self> {
        let own: Own = read_toml(file, &own_keys(file, text)?).map_err(CommandError::input)?;
        let scenarios = sweep::Specification::parse_beside(file, text, &KEYS)?;
        let place = |key: &str| {
            let line = text.lines().position(|line| line.trim_start().starts_with(key)).map_or(0, |line| line + 1);
            format!("{file}:{line}")
        };
        let refused = |key: &str, expected: &str, found: String| {
            Err(CommandError::input(format!("{}: `{key}`: expected {expected}, found {found}", place(key))))
        };
        if let Some((key, message)) = key_beyond(text) {
            return Err(CommandError::input(format!("{}: `{key}`: {message}", place(&key))));
        }
        let augment = own.augment.map(|text| Augment::parse(place("augment"), &text)).transpose();
        let augment = augment.map_err(CommandError::input)?;
        let pace = match Pace::new(own.epochs, own.learning_rate, own.schedule) {
            Ok(pace) => pace,
            Err(WrongPace(key, expected, found)) => return refused(key, expected, found),
        };
        let validation_share = own.validation_share;
        if let Some(share) = validation_share.filter(|share| !(*share > 0.0 && *share < 1.0)) {
            return refused("validation_share", "a number between 0 and 1", share.to_string());
        }
        let mut seeds = seed.map_or_else(|| own.seeds.unwrap_or_else(|| vec![0]), |seed| vec![seed]);
        seeds.sort_unstable();
        seeds.dedup();
        if seeds.is_empty() {
            return refused("seeds", "at least one seed", "an empty list".to_owned());
        }
        Ok(Self { scenarios, data: own.data, augment, pace, seeds, validation_share })
    }

    /// The scenarios, each with a label that distinguishes it: the values of keys that have several; the
    /// policy, if no key has.
    ///
    /// # Errors
    /// Values that no scenario can have.
    pub(super) fn scenarios(&self) -> Result<Vec<(String, Scenario)>> {
        self.scenarios.validate(&Cache::new(), |_| Ok(()))?;
        let axes: Vec<(Key, Vec<String>)> = self.scenarios.axes();
        (0..self.scenarios.runs())
            .map(|run| {
                let scenario = self.scenarios.scenario(run)?;
                let places = places(run as usize, axes.iter().map(|(_, values)| values.len()));
                let several = axes.iter().zip(places).filter(|((_, values), _)| values.len() > 1);
                let word = |((key, values), place): (&(Key, Vec<String>), usize)| match key {
                    Key::Policy => values[place].clone(),
                    key => format!("{} {}", key.name(), values[place]),
                };
                let words: Vec<String> = several.map(word).collect();
                let label = if words.is_empty() { scenario.policy.clone() } else { words.join(", ") };
                Ok((label, scenario))
            })
            .collect()
    }

    /// The record of the folder: the specification, the data, and the calibrations.
    pub(super) fn record(&self, data: &DataSet, subjects: &[Subject]) -> Map<String, Value> {
        let mut specification = self.scenarios.to_json();
        if let Value::Object(keys) = &mut specification {
            keys.extend(self.augment.iter().map(|augment| ("augment".to_owned(), json!(augment.text))));
        }
        let own = json!({
            "data": self.data, "epochs": self.pace.epochs, "learning_rate": self.pace.learning_rate,
            "schedule": self.pace.schedule_text, "seeds": self.seeds,
            "validation_share": self.validation_share.unwrap_or(VALIDATION_SHARE),
        });
        join(&mut specification, own);
        let calibrations: Map<String, Value> = subjects.iter().flat_map(Subject::calibrations).collect();
        let record = serde_json::from_value(json!({
            "command": "train", "version": env!("CARGO_PKG_VERSION"), "specification": specification,
            "scenarios": subjects.iter().map(|subject| subject.label.as_str()).collect::<Vec<_>>(),
            "data": {
                "id": data.id, "description": data.description, "digest": format!("{:016x}", data.digest()),
                "samples": { "train": data.train.len(), "validation": data.validation.len(), "test": data.test.len() },
            },
            "calibrations": calibrations,
        }));
        record.unwrap_or_default()
    }
}

/// The text with only the training's own keys, each on its line; refuses text that is not TOML, and keys of neither a
/// scenario nor a training.
fn own_keys(file: &str, text: &str) -> Result<String> {
    let wrong = |line: usize, message: String| CommandError::input(format!("{file}:{line}: {message}"));
    let table = DeTable::parse(text)
        .map_err(|error| wrong(error.span().map_or(0, |span| line_of(text, span.start)), error.message().to_owned()))?;
    let mut own: Vec<u8> = text.bytes().map(|byte| if byte == b'\n' { byte } else { b' ' }).collect();
    for (key, value) in table.get_ref() {
        let (name, place) = (key.get_ref().as_ref(), key.span().start..value.span().end);
        let idle = IDLE
            .iter()
            .find(|(key, _)| *key == name && !ON_PHONES.iter().any(|key| table.get_ref().contains_key(*key)));
        if let Some((_, instead)) = idle {
            return Err(wrong(line_of(text, place.start), format!("`{name}` does nothing in a training; {instead}")));
        }
        if KEYS.contains(&name) {
            own[place.clone()].copy_from_slice(&text.as_bytes()[place]);
        } else if Key::named(name).is_none() {
            let valid = || Key::ALL.iter().map(|key| key.name()).chain(KEYS);
            let names = valid().collect::<Vec<_>>().join(", ");
            let message = format!("`{name}`: unknown key{}; valid keys are {names}", hint(name, valid()));
            return Err(wrong(line_of(text, place.start), message));
        }
    }
    String::from_utf8(own).map_err(|error| wrong(0, error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::papers::readings::{Readings, Value as Read};
    use crate::papers::reference::Reference;

    const SPEC: &str = "data = \"glyphs\"\ndevice = \"jetson-agx-xavier\"\nmodel = \"lenet5\"\npolicy = [\"original\", \"daf\"]\nseeds = [3,\n 1]\nbatch = 8\n";

    fn refusal(more: &str) -> String {
        Specification::parse("s.toml", &format!("{SPEC}{more}"), None).unwrap_err().to_string()
    }

    #[test]
    fn own_keys_and_a_scenario_s_stand_side_by_side() {
        let found = Specification::parse("s.toml", SPEC, None).unwrap();
        assert_eq!((found.data.as_str(), found.pace.epochs, found.seeds.as_slice()), ("glyphs", 8, [1, 3].as_slice()));
        let scenarios = found.scenarios().unwrap();
        let labels: Vec<&str> = scenarios.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!((labels, scenarios[1].1.batch), (vec!["original", "daf"], 8));
        assert_eq!(Specification::parse("s.toml", SPEC, Some(9)).unwrap().seeds, [9]);
    }

    fn read(path: &Path) -> Specification {
        let text = std::fs::read_to_string(path).unwrap();
        Specification::parse(&path.display().to_string(), &text, None).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_papers_figures_of_accuracy_are_specifications() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/accuracy");
        let mut found = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let specification = read(&path);
            assert!(
                !specification.scenarios().unwrap_or_else(|error| panic!("{error}")).is_empty(),
                "{}",
                path.display()
            );
            found += 1;
        }
        assert!(found >= 15, "{found}");
    }

    /// Specifications that repeat the training of a paper's figure, with the reading that the figure uses.
    const OF_FIGURES: [(&str, [&str; 3]); 9] = [
        ("daf-table1", ["daf", "table1", "images-resnet8"]),
        ("daf-figure8", ["daf", "figure8", "images-lenet5"]),
        ("daf-figure10", ["daf", "figure10", "images-lenet5"]),
        ("daf-figure11", ["daf", "figure11", "images-lenet5"]),
        ("mandheling-figure4a", ["mandheling", "figure4b", "factors-vgg-small"]),
        ("mandheling-figure8a-fp32", ["mandheling", "figure8a", "fp32-lenet5"]),
        ("mandheling-figure8a-int8", ["mandheling", "table8", "int8-lenet5"]),
        ("mandheling-figure8b-fp32", ["mandheling", "figure8b", "fp32-vgg-small"]),
        ("mandheling-figure8b-int8", ["mandheling", "figure8b", "int8-vgg-small"]),
    ];

    #[test]
    fn they_learn_as_the_figures_of_reproduce_do() {
        let readings = Readings::load(&Reference::load().unwrap()).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/accuracy");
        for (file, [paper, artefact, id]) in OF_FIGURES {
            let own = read(&folder.join(format!("{file}.toml")));
            let reading = readings.reading(paper, artefact, id).unwrap_or_else(|| panic!("{id}"));
            let Read::Text(text) = &reading.value else { panic!("{id}") };
            let declared = Specification::parse(id, text, None).unwrap();
            let how = |one: &Specification| format!("{} {:?} {:?} {:?}", one.data, one.pace, one.augment, one.seeds);
            assert_eq!(how(&own), how(&declared), "{file}");
            let scenario = |one: &Specification| {
                let Scenario { device, model, batch, optimizer, .. } = one.scenarios().unwrap().swap_remove(0).1;
                (device, model, batch, optimizer)
            };
            assert_eq!(scenario(&own), scenario(&declared), "{file}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert!(refusal("epoch = 3").contains("s.toml:8: `epoch`: unknown key; did you mean 'epochs'?"));
        assert!(refusal("epochs = 0").contains("s.toml:8: `epochs`: expected at least 1, found 0"));
        assert!(refusal("learning_rate = -1.0").contains("s.toml:8: `learning_rate`: expected a number above 0"));
        assert!(refusal("augment = \"flop\"").contains("s.toml:8: `augment`: expected `shift=PIXELS`, `flip` or both"));
        assert!(refusal("validation_share = 1.5").contains("`validation_share`: expected a number between 0 and 1"));
        assert!(refusal("schedule = \"cosin\"").contains("found 'cosin'; expected constant, cosine or step"));
        assert!(refusal("epochs = \"three\"").contains("s.toml:8"));
        let lots = Specification::parse("s.toml", &format!("{SPEC}memory_budget = \"lots\""), None).unwrap();
        let error = lots.scenarios().unwrap_err().to_string();
        assert!(error.contains("s.toml:8") && error.contains("memory_budget"), "{error}");
        let error =
            Specification::parse("s.toml", "device = \"jetson-agx-xavier\"\nmodel = \"lenet5\"\n", None).unwrap_err();
        assert!(error.to_string().contains("data"), "{error}");
    }

    #[test]
    fn no_text_makes_it_panic() {
        crate::fuzz::against_text(
            "training",
            &["examples/training.toml", "examples/accuracy/batch-norm.toml"],
            |text| {
                let _ = Specification::parse("s.toml", text, None);
            },
        );
    }
}
