//! A policy's own entry in the list: what people read of it, and its parameters, each of which is help and parser at
//! once.

use std::collections::BTreeSet;

use haversack_devices::text::{alternatives, hint, nearest};

use crate::{Policy, PolicyError};

/// A policy as it is listed and built; each stands in the policy's own file.
pub struct Entry {
    /// The name that scenarios use.
    pub id: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// What it does, in a paragraph.
    pub description: &'static str,
    /// The paper that it is from, and the section.
    pub citation: &'static str,
    /// Whether it makes fp32 tensors smaller itself, so that it has nothing to store of a graph in integers.
    pub stores_floats: bool,
    /// Whether something gives way where memory is short, so that it makes do with a budget below what it takes without one.
    pub gives_way: bool,
    /// The training engine that it stands for; `None` if it goes with any.
    pub engine: Option<Engine>,
    /// What can be set, in the order of the list.
    pub parameters: &'static [&'static dyn Parameter],
    /// Makes the policy with what was set.
    pub build: fn(&Settings<'_>) -> Result<Box<dyn Policy>, PolicyError>,
}

/// Which processors an engine trains on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineProcessor {
    /// CPU cores.
    Cpu,
    /// The GPU.
    Gpu,
    /// CPU cores and the DSP.
    CpuAndDsp,
}

/// What a policy stands for beside what it decides: a whole training engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine {
    /// The id of the software stack.
    pub stack: &'static str,
    /// Where it trains.
    pub processor: EngineProcessor,
    /// The CPU cores that it takes if a scenario asks for none; `None` if it takes none.
    pub cores: Option<&'static str>,
    /// Whether it trains on the graph that is rewritten in integers.
    pub eight_bit: bool,
    /// Whether it goes on learning in every iteration, so that a mean of several stands for it; others have settled after
    /// the first.
    pub keeps_learning: bool,
}

/// Something that can be set of a policy, as help shows it.
pub trait Parameter: Sync {
    /// Its name, as in `--set policy.NAME=value`.
    fn name(&self) -> &'static str;
    /// What it does.
    fn about(&self) -> &'static str;
    /// The values that it can have: `on or off`, `1 to 100`.
    fn values(&self) -> String;
    /// Its value if nothing is set; `None` where that is none of the values, of which `about` tells.
    fn default_text(&self) -> Option<String>;
    /// Whether it decides something on a phone in use alone.
    fn is_of_a_phone(&self) -> bool;
    /// Values that whoever tunes the policy tries; none where it says what is, not what is done.
    fn tries(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A parameter whose value is a `V`, one of those that `K` describes.
#[derive(Debug)]
#[must_use]
pub struct Typed<V, K> {
    name: &'static str,
    /// The value if nothing is set.
    pub default: V,
    /// The values that it can have.
    pub among: K,
    about: &'static str,
    of_a_phone: bool,
    is_given: bool,
}

/// A technique that is on or off.
pub type Switch = Typed<bool, OnOff>;
/// A whole number; `V` is `u64`, or `Option<u64>` if nothing set is a value of its own.
pub type Number<V = u64> = Typed<V, Numbers>;
/// One of a few words, in the order of help, each of which stands for a `T`; `V` is `T`, or `Option<T>` if nothing set is
/// a value of its own.
pub type Choice<T, V = T> = Typed<V, &'static [(&'static str, T)]>;

/// Values that a parameter can have.
pub trait Values<V>: Sync {
    /// All of them, for people.
    fn text(&self) -> String;
    /// The value of `text`.
    ///
    /// # Errors
    /// What was expected instead.
    fn parse(&self, text: &str) -> Result<V, String>;
    /// How a value is written; `None` where it is nothing set.
    fn written(&self, value: V) -> Option<String>;
    /// Values that are worth a try beside `default`: all of a few, else some below it and above it.
    fn tries(&self, default: V) -> Vec<String>;
}

impl<V: Copy, K: Copy> Typed<V, K> {
    /// One that has a value of `among`.
    pub const fn new(name: &'static str, default: V, among: K, about: &'static str) -> Self {
        Self { name, default, among, about, of_a_phone: false, is_given: false }
    }

    /// Has it say what is, which nobody tunes.
    pub const fn given(mut self) -> Self {
        self.is_given = true;
        self
    }

    /// Has it decide something on a phone in use alone.
    pub const fn on_a_phone(mut self) -> Self {
        self.of_a_phone = true;
        self
    }
}

impl<V: Copy + Sync, K: Values<V>> Parameter for Typed<V, K> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn values(&self) -> String {
        self.among.text()
    }

    fn default_text(&self) -> Option<String> {
        self.among.written(self.default)
    }

    fn is_of_a_phone(&self) -> bool {
        self.of_a_phone
    }

    fn tries(&self) -> Vec<String> {
        if self.is_given || self.of_a_phone { Vec::new() } else { self.among.tries(self.default) }
    }
}

/// `on` and `off`.
#[derive(Clone, Copy, Debug)]
pub struct OnOff;

impl Values<bool> for OnOff {
    fn text(&self) -> String {
        "on or off".to_owned()
    }

    fn parse(&self, text: &str) -> Result<bool, String> {
        match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(self.text()),
        }
    }

    fn written(&self, value: bool) -> Option<String> {
        Some(if value { "on" } else { "off" }.to_owned())
    }

    fn tries(&self, _: bool) -> Vec<String> {
        ["on", "off"].map(str::to_owned).to_vec()
    }
}

/// The numbers that a parameter can be.
#[derive(Clone, Copy, Debug)]
pub enum Numbers {
    /// A few.
    Among(&'static [u64]),
    /// From one to another.
    Within(u64, u64),
    /// From one on.
    From(u64),
}

impl<V: Copy + Into<Option<u64>> + From<u64>> Values<V> for Numbers {
    fn text(&self) -> String {
        match self {
            Self::Among(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                alternatives(numbers.iter().map(String::as_str))
            }
            Self::Within(least, most) => format!("a whole number from {least} to {most}"),
            Self::From(least) => format!("a whole number of at least {least}"),
        }
    }

    fn parse(&self, text: &str) -> Result<V, String> {
        let holds = |number: &u64| match *self {
            Self::Among(numbers) => numbers.contains(number),
            Self::Within(least, most) => (least..=most).contains(number),
            Self::From(least) => *number >= least,
        };
        let number = text.parse().ok().filter(holds);
        number.map(V::from).ok_or_else(|| Values::<V>::text(self))
    }

    fn written(&self, value: V) -> Option<String> {
        value.into().map(|number| number.to_string())
    }

    fn tries(&self, default: V) -> Vec<String> {
        let (least, most) = match *self {
            Self::Among(numbers) => return numbers.iter().map(u64::to_string).collect(),
            Self::Within(least, most) => (least, most),
            Self::From(least) => (least, u64::MAX),
        };
        let around = |number: u64| vec![number / 4, number / 2, number.saturating_mul(2), number.saturating_mul(4)];
        let numbers = default.into().map_or_else(|| (0..7).map(|power| 1 << power).collect(), around);
        let numbers: BTreeSet<u64> = numbers.into_iter().map(|number| number.clamp(least, most)).collect();
        numbers.iter().map(u64::to_string).collect()
    }
}

impl<T: Copy + Sync, V: Copy + From<T> + PartialEq> Values<V> for &'static [(&'static str, T)] {
    fn text(&self) -> String {
        alternatives(self.iter().map(|(word, _)| *word))
    }

    fn parse(&self, text: &str) -> Result<V, String> {
        let known = self.iter().find(|(word, _)| *word == text);
        let words = || self.iter().map(|(word, _)| *word);
        known.map(|&(_, value)| V::from(value)).ok_or_else(|| alternatives(words()) + &hint(text, words()))
    }

    fn written(&self, value: V) -> Option<String> {
        self.iter().find(|&&(_, known)| V::from(known) == value).map(|(word, _)| (*word).to_owned())
    }

    fn tries(&self, _: V) -> Vec<String> {
        self.iter().map(|(word, _)| (*word).to_owned()).collect()
    }
}

/// What was set of a policy's parameters, by name.
pub struct Settings<'a> {
    policy: &'static str,
    values: &'a [(String, String)],
}

impl Settings<'_> {
    /// The value of `parameter`: what was set last, or its default.
    ///
    /// # Errors
    /// A value that the parameter cannot have.
    pub fn get<V: Copy, K: Values<V>>(&self, parameter: &Typed<V, K>) -> Result<V, PolicyError> {
        let Some(found) = self.text(parameter.name) else { return Ok(parameter.default) };
        parameter.among.parse(found).map_err(|expected| PolicyError::BadValue {
            policy: self.policy,
            parameter: parameter.name,
            found: found.to_owned(),
            expected,
        })
    }

    /// What was set last of the parameter `name`, as it is written; `None` if nothing was.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.as_str())
    }

    /// Checks that none of `parameters`, which do nothing without `other`, is set where that is not so.
    ///
    /// # Errors
    /// The first of them that is set, and what it needs.
    pub(crate) fn only_with(
        &self,
        other: &'static str,
        is_so: bool,
        parameters: &[&'static dyn Parameter],
    ) -> Result<(), PolicyError> {
        let is_set = |parameter: &&&dyn Parameter| self.values.iter().any(|(name, _)| name == parameter.name());
        match parameters.iter().find(is_set) {
            Some(parameter) if !is_so => {
                Err(PolicyError::Idle { policy: self.policy, parameter: parameter.name(), other })
            }
            _ => Ok(()),
        }
    }
}

impl Entry {
    /// What an entry begins with, apart from its texts: nothing gives way, it goes with any engine, and nothing can be set.
    pub const fn built_by(build: fn(&Settings<'_>) -> Result<Box<dyn Policy>, PolicyError>) -> Self {
        Self {
            id: "",
            about: "",
            description: "",
            citation: "",
            stores_floats: false,
            gives_way: false,
            engine: None,
            parameters: &[],
            build,
        }
    }

    /// Makes the policy with parameters set by name; of two values of one parameter the later holds.
    ///
    /// # Errors
    /// An unknown parameter, with the nearest name, or a value that a parameter cannot have.
    pub fn build(&self, set: &[(String, String)]) -> Result<Box<dyn Policy>, PolicyError> {
        let names = || self.parameters.iter().map(|parameter| parameter.name());
        if let Some((found, _)) = set.iter().find(|(name, _)| !names().any(|known| known == name)) {
            let nearest = nearest(found, names()).map(str::to_owned);
            let has = if self.parameters.is_empty() { "none".to_owned() } else { alternatives(names()) };
            let (policy, found, has) = (self.id, found.clone(), format!("it has {has}"));
            return Err(PolicyError::UnknownParameter { policy, found, nearest, has });
        }
        (self.build)(&Settings { policy: self.id, values: set })
    }
}
