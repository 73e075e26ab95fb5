//! The specification of a sweep: a list of values for each key, and the numbered product of all.

use haversack_devices::ensure;
use haversack_policies::{original, registry};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::class::{self, Members, expand};
use super::users;
use crate::run::Brought;
use crate::scenario::{Document, Fault, Field, Item, Literal, Mistakes, Resolved, ScenarioError, Takes};
use crate::source::Source;
use crate::work::places;
use crate::{Cache, CommandError, Key, Result, Scenario};

/// Far more runs than a user would wait for.
const MOST_RUNS: u64 = 10_000_000;
/// Keys whose values can be checked independently of other keys.
const NUMBERS: [Key; 5] = [Key::MemoryBudget, Key::ActivationBudget, Key::TimeBudget, Key::Iterations, Key::Seed];

/// Combinations that are checked in parallel.
const AT_ONCE: usize = 256;

/// A value, and its line.
type Placed = (Literal, usize);

/// The settings of one step on an axis of the product: a key, the policy with its parameters, or entries of a key
/// that takes a table.
#[derive(Clone, Debug)]
struct Setting {
    /// The key whose name it sets.
    key: Key,
    values: Vec<Assigned>,
}

/// A value of a key, or of an entry of its table.
#[derive(Clone, Debug)]
struct Assigned {
    key: Key,
    entry: Option<String>,
    value: Placed,
}

impl Setting {
    fn one(key: Key, value: Placed) -> Self {
        Self { key, values: vec![Assigned { key, entry: None, value }] }
    }
}

/// The values of an entry of a table.
struct Entry {
    key: Key,
    name: String,
    values: Vec<Placed>,
}

/// A sweep's specification; its runs are numbered from zero, the first key varying slowest.
#[derive(Clone, Debug)]
pub struct Specification {
    document: Document,
    axes: Vec<Vec<Setting>>,
    members: Members,
    runs: u64,
    brought: Vec<Brought>,
}

impl Specification {
    /// Reads a specification.
    ///
    /// # Errors
    /// A file that cannot be read, or as [`Specification::parse`].
    pub fn of(source: &Source) -> Result<Self> {
        let (file, text) = source.read()?;
        Ok(Self::parse(&file, &text)?)
    }

    /// Parses a specification from TOML; `file` is its name in errors.
    ///
    /// # Errors
    /// Text that is not TOML; every unknown key, and every list or span whose values its key cannot have.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        Self::parse_beside(file, text, &[])
    }

    /// The same for a text with the additional keys `others`, which the caller reads.
    pub(crate) fn parse_beside(file: &str, text: &str, others: &[&'static str]) -> Result<Self, ScenarioError> {
        let mut mistakes = Mistakes::default();
        let mut document = Document::parse(file, text, &[&users::KEYS, others].concat(), &mut mistakes)?;
        let members = mistakes.note(expand(&mut document)).unwrap_or_default();
        mistakes.note(users::expand(&mut document));
        let axes: Vec<Vec<Setting>> =
            Key::ALL.into_iter().filter_map(|key| mistakes.note(axis(&document, key)).flatten()).collect();
        let runs = axes.iter().try_fold(1_u64, |runs, axis: &Vec<_>| runs.checked_mul(axis.len() as u64));
        let runs = runs.filter(|runs| *runs <= MOST_RUNS).unwrap_or_else(|| {
            let fault = Fault::Refused(format!("the product is more than {MOST_RUNS} runs; split it"));
            mistakes.add(ScenarioError::new(document.origin(0), "", fault));
            0
        });
        let specification = Self { document, axes, members, runs, brought: Vec::new() };
        if !mistakes.is_empty() {
            specification.check_values(&Cache::new(), &mut mistakes);
        }
        mistakes.finish().map(|()| specification)
    }

    /// Adds a mistake for every impossible value, every unknown name, and every missing key.
    fn check_values(&self, cache: &Cache, mistakes: &mut Mistakes) {
        let mut scratch = Scenario::new("", "");
        for setting in self.axes.iter().flatten() {
            if mistakes.is_full() {
                return;
            }
            if mistakes.note(self.apply(setting, &mut scratch)).is_some() {
                scratch.unknown_name(setting.key, cache, mistakes);
            }
        }
        mistakes.note(scratch.complete(self.document.origin(0)));
    }

    /// The same with policies from a program, which `policy` may name.
    ///
    /// # Errors
    /// A name that a policy has already.
    pub fn with(mut self, brought: Vec<Brought>) -> Result<Self> {
        for own in brought {
            let is_taken = registry::find(&own.name).is_ok() || self.own(&own.name).is_some();
            ensure!(!is_taken, CommandError::input(format!("policy: '{}' is already the name of a policy", own.name)));
            self.brought.push(own);
        }
        Ok(self)
    }

    /// The policy from a program with this name.
    fn own(&self, name: &str) -> Option<&Brought> {
        self.brought.iter().find(|own| own.name == name)
    }

    /// The policy from a program of the run numbered `run`; `None` if it has one of the catalogue.
    pub(super) fn brought(&self, run: u64) -> Option<&Brought> {
        let axes: Vec<_> = self.axes.iter().map(Vec::as_slice).collect();
        let settings = values_of(run, &axes).into_iter().zip(axes).map(|(value, axis)| &axis[value]);
        let mut policies = settings.filter(|setting| setting.key == Key::Policy).flat_map(|setting| &setting.values);
        policies.find_map(|assigned| self.own(&assigned.value.0.text))
    }

    /// The number of runs.
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    /// Whether runs may be on a phone in use.
    pub(super) fn is_on_phones(&self) -> bool {
        let names_phones = |axis: &Vec<Setting>| {
            axis.first().is_some_and(|setting| [Key::System, Key::Apps, Key::Trace].contains(&setting.key))
        };
        self.axes.iter().any(names_phones)
    }

    /// The scenario of the run numbered `run`.
    ///
    /// # Errors
    /// A value that its key cannot have.
    pub fn scenario(&self, run: u64) -> Result<Scenario, ScenarioError> {
        self.scenario_of(run, &self.axes.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn scenario_of(&self, run: u64, axes: &[&[Setting]]) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::new("", "");
        for (value, axis) in values_of(run, axes).into_iter().zip(axes).rev() {
            self.apply(&axis[value], &mut scenario)?;
        }
        scenario.complete(self.document.origin(0))?;
        Ok(scenario)
    }

    fn apply(&self, setting: &Setting, scenario: &mut Scenario) -> Result<(), ScenarioError> {
        for Assigned { key, entry, value: (value, line) } in &setting.values {
            let origin = self.document.origin(*line);
            match entry {
                Some(name) => scenario.set_entry(*key, name, value, origin),
                // Planned as `original`, whose graph and engine it has.
                None if *key == Key::Policy && self.own(&value.text).is_some() => {
                    scenario.policy = original::ID.to_owned()
                }
                None => scenario.set(*key, value, origin)?,
            }
        }
        Ok(())
    }

    /// Checks every value, and every combination of those that depend on each other; `see` is called with each valid
    /// combination. A value without any valid combination is a mistake, unless it came from a group word such as `all`;
    /// a combination that is invalid although each of its values is valid elsewhere, such as a policy for DSPs on one
    /// of several devices, is only marked in the table. Returns the number of runs that are known to be invalid.
    ///
    /// # Errors
    /// Every value that is wrong; otherwise the first fault of each value that fits nowhere, or the error of `see`.
    pub fn validate(&self, cache: &Cache, mut see: impl FnMut(&Resolved) -> Result<()>) -> Result<u64> {
        let is_number = |axis: &[Setting]| axis.first().is_some_and(|setting| NUMBERS.contains(&setting.key));
        let mut mistakes = Mistakes::default();
        self.check_values(cache, &mut mistakes);
        mistakes.finish()?;
        // One value of each of these keys is enough: all were checked above.
        let axes: Vec<&[Setting]> =
            self.axes.iter().map(|axis| if is_number(axis) { &axis[..1] } else { axis.as_slice() }).collect();
        let combinations: u64 = axes.iter().map(|axis| axis.len() as u64).product();
        let resolve = |run: u64| self.scenario_of(run, &axes)?.resolve_in(cache);
        // For each value, whether it fits anywhere, and whether a fault of it is kept.
        let mut seen: Vec<Vec<(bool, bool)>> = axes.iter().map(|axis| vec![(false, false); axis.len()]).collect();
        let mut faults: Vec<(u64, ScenarioError)> = Vec::new();
        let mut unsupported = 0;
        for start in (0..combinations).step_by(AT_ONCE) {
            let some = start..combinations.min(start + AT_ONCE as u64);
            let resolved: Vec<Result<Resolved, ScenarioError>> = some.into_par_iter().map(resolve).collect();
            for (run, resolved) in (start..).zip(resolved) {
                let mut is_first = faults.is_empty();
                for (value, seen) in values_of(run, &axes).into_iter().zip(&mut seen) {
                    let (fits, failed) = &mut seen[value];
                    match &resolved {
                        Ok(_) => *fits = true,
                        Err(_) => is_first |= !std::mem::replace(failed, true),
                    }
                }
                unsupported += u64::from(resolved.is_err());
                match resolved {
                    Ok(resolved) => see(&resolved)?,
                    Err(fault) if is_first => faults.push((run, fault)),
                    Err(_) => {}
                }
            }
        }
        let fits_nowhere = |run: u64| {
            let mut values = values_of(run, &axes).into_iter().zip(&axes).zip(&seen);
            values.any(|((value, axis), seen)| !seen[value].0 && !self.is_member(&axis[value]))
        };
        let mut mistakes = Mistakes::default();
        for (_, fault) in faults.into_iter().filter(|(run, _)| axes.is_empty() || fits_nowhere(*run)) {
            // Combinations with other values may refuse the same value in different words.
            if !mistakes.is_known(&fault) {
                mistakes.add(fault);
            }
        }
        mistakes.finish()?;
        Ok(unsupported * (self.runs / combinations.max(1)))
    }

    /// Whether the value came from a group word such as `all`.
    fn is_member(&self, setting: &Setting) -> bool {
        let named = setting.values.iter().filter(|assigned| assigned.entry.is_none());
        let is_brought = |text: &str| self.members.iter().any(|(of, name)| *of == setting.key && name == text);
        named.map(|assigned| &assigned.value.0.text).any(|text| is_brought(text))
    }

    /// Each key with its values, in the order of the product; a policy with its parameters is one value.
    pub fn axes(&self) -> Vec<(Key, Vec<String>)> {
        let own = |name: &String| name.rsplit('.').next().unwrap_or_default().to_owned();
        let one = |Assigned { entry, value: (value, _), .. }: &Assigned| match entry {
            Some(name) => format!("{}={}", own(name), value.text),
            None => value.text.clone(),
        };
        let text = |setting: &Setting| setting.values.iter().map(one).collect::<Vec<_>>().join(" ");
        let key = |axis: &Vec<Setting>| axis.first().map_or(Key::Policy, |setting| setting.key);
        self.axes.iter().map(|axis| (key(axis), axis.iter().map(text).collect())).collect()
    }

    /// The specification as JSON: each key with its values.
    pub fn to_json(&self) -> Value {
        let mut keys = Map::new();
        for (key, field) in &self.document.fields {
            let values = match (&field.item, literals(&self.document, *key, field)) {
                (Item::Table(parameters), _) => {
                    let parameters = parameters.iter().map(|field| {
                        let values = literals(&self.document, *key, field).unwrap_or_default();
                        (field.name.clone(), texts(&values))
                    });
                    Value::Object(parameters.collect())
                }
                (_, Ok(values)) => texts(&values),
                (_, Err(_)) => Value::Null,
            };
            keys.insert(key.name().to_owned(), values);
        }
        Value::Object(Key::ALL.iter().filter_map(|key| keys.remove_entry(key.name())).collect())
    }
}

/// The index of the value on each axis, for the combination numbered `run`: the first axis varies slowest.
fn values_of(run: u64, axes: &[&[Setting]]) -> Vec<usize> {
    places(run as usize, axes.iter().map(|axis| axis.len()))
}

fn texts(values: &[Placed]) -> Value {
    values.iter().map(|(value, _)| json!(value.text)).collect()
}

/// The values of `key` in `document`, those of a policy with its parameters; `None` if it has none.
fn axis(document: &Document, key: Key) -> Result<Option<Vec<Setting>>, ScenarioError> {
    let field = |key: Key| document.fields.iter().find(|(found, _)| *found == key).map(|(_, field)| field);
    let values = field(key).map(|field| literals(document, key, field)).transpose();
    match key {
        // Parameters are combined with the policy that has them.
        Key::Set => Ok(None),
        key if key.is_table() => {
            let entries = field(key).map(|field| entries(document, key, field)).transpose()?;
            let settings =
                |entries: Vec<Entry>| combinations(entries.iter()).into_iter().map(|values| Setting { key, values });
            Ok(entries.map(|entries| settings(entries).collect()))
        }
        Key::Policy => {
            let parameters = field(Key::Set).map_or(Ok(Vec::new()), |field| entries(document, Key::Set, field))?;
            let policies = values?;
            let is_given = policies.is_some() || !parameters.is_empty();
            Ok(is_given.then(|| policy_axis(policies, &parameters)))
        }
        key => Ok(values?.map(|values| values.into_iter().map(|value| Setting::one(key, value)).collect())),
    }
}

/// The values of a field.
fn literals(document: &Document, key: Key, field: &Field) -> Result<Vec<Placed>, ScenarioError> {
    let is_entry = key.is_table() && field.name != key.name();
    let name = if is_entry { format!("{}.{}", key.name(), field.name) } else { field.name.clone() };
    let wrong = |fault: Fault| ScenarioError::new(document.origin(field.line), name.clone(), fault);
    match &field.item {
        Item::One(value) => Ok(vec![(value.clone(), field.line)]),
        Item::Many(values) if values.is_empty() => {
            Err(wrong(Fault::Refused("the list is empty; expected at least one value".to_owned())))
        }
        Item::Many(values) => Ok(values.clone()),
        Item::Span { from, to, steps } => {
            let values = class::values(key, from, to, *steps).map_err(wrong)?;
            Ok(values.into_iter().map(|value| (value, field.line)).collect())
        }
        Item::Table(_) => Err(wrong(Fault::Refused("expected a value, a list or a span, found a table".to_owned()))),
    }
}

/// The entries of a key's table with their values.
fn entries(document: &Document, key: Key, field: &Field) -> Result<Vec<Entry>, ScenarioError> {
    let Item::Table(entries) = &field.item else {
        let expected = if let Takes::Table { file, .. } = key.takes() { file.as_str() } else { "one value" };
        let fault = Fault::Refused(format!("expected {expected}"));
        return Err(ScenarioError::new(document.origin(field.line), key.name(), fault));
    };
    let entry = |field: &Field| Ok(Entry { key, name: field.name.clone(), values: literals(document, key, field)? });
    entries.iter().map(entry).collect()
}

/// Every combination of the values of entries, the first varying slowest.
fn combinations<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<Vec<Assigned>> {
    entries.fold(vec![Vec::new()], |combinations, Entry { key, name, values }| {
        let assigned = |value: &Placed| Assigned { key: *key, entry: Some(name.clone()), value: value.clone() };
        let with = |before: &Vec<Assigned>, value: &Placed| [before.as_slice(), &[assigned(value)]].concat();
        combinations.iter().flat_map(|before| values.iter().map(move |value| with(before, value))).collect()
    })
}

/// Every policy with every combination of its parameters; a parameter named for another policy is not its own.
fn policy_axis(policies: Option<Vec<Placed>>, parameters: &[Entry]) -> Vec<Setting> {
    let policies: Vec<Option<Placed>> = policies.map_or(vec![None], |found| found.into_iter().map(Some).collect());
    let names: Vec<String> = policies.iter().flatten().map(|(value, _)| value.text.clone()).collect();
    let mut axis = Vec::new();
    for policy in policies {
        let own = |entry: &&Entry| match (entry.name.split_once('.'), &policy) {
            // A parameter of a policy that is not in the sweep is kept, so that it is refused.
            (Some((other, _)), Some((value, _))) => other == value.text || !names.iter().any(|name| name == other),
            _ => true,
        };
        for parameters in combinations(parameters.iter().filter(own)) {
            let mut setting = Setting { key: Key::Policy, values: parameters };
            if let Some(value) = policy.clone() {
                setting.values.splice(0..0, Setting::one(Key::Policy, value).values);
            }
            axis.push(setting);
        }
    }
    axis
}
