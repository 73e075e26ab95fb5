//! A policy's own entry in the list: what people read of it, and its parameters, each of which is help and parser at
//! once.

use std::ops::RangeInclusive;

use haversack_devices::text::{alternatives, hint, nearest};

use crate::error::PolicyError;
use crate::policy::Policy;

/// A policy as it is listed and built; each stands in the policy's own file.
pub struct Entry {
    /// The name that scenarios use.
    pub id: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// The paper that it is from.
    pub citation: &'static str,
    /// Whether it makes fp32 tensors smaller itself, so that it has nothing to store of a graph in integers.
    pub stores_floats: bool,
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
}

/// Something that can be set of a policy, as help shows it.
pub trait Parameter: Sync {
    /// Its name, as in `--set policy.NAME=value`.
    fn name(&self) -> &'static str;
    /// What it does, its values and its default.
    fn help(&self) -> String;
}

/// A parameter whose value is a `V`.
pub trait Typed<V>: Parameter {
    /// The value of `text`.
    ///
    /// # Errors
    /// What was expected instead.
    fn parse(&self, text: &str) -> Result<V, String>;
    /// The value if nothing is set.
    fn default(&self) -> V;
}

/// A technique that is on or off.
#[derive(Debug)]
#[must_use]
pub struct Switch {
    name: &'static str,
    /// Whether it is on if nothing is set.
    pub default: bool,
    about: &'static str,
}

impl Switch {
    /// In `about`, `{}` stands for the values.
    pub const fn new(name: &'static str, default: bool, about: &'static str) -> Self {
        Self { name, default, about }
    }
}

/// A whole number; `V` is `u64`, or `Option<u64>` if nothing set is a value of its own.
#[derive(Debug)]
#[must_use]
pub struct Number<V: 'static = u64> {
    name: &'static str,
    /// The number if nothing is set.
    pub default: V,
    range: Numbers,
    about: &'static str,
}

impl<V: Copy> Number<V> {
    /// In `about`, `{}` stands for the numbers of a few, `{default}`, `{least}` and `{most}` for those of a range.
    pub const fn new(name: &'static str, default: V, range: Numbers, about: &'static str) -> Self {
        Self { name, default, range, about }
    }
}

/// The numbers that a parameter can be.
#[derive(Debug)]
pub enum Numbers {
    /// A few, in the order in which an error lists them.
    Among(&'static [u64]),
    /// From one to another.
    Within(RangeInclusive<u64>),
    /// From one on, as an error says it.
    From(u64, &'static str),
}

/// One of a few words, each of which stands for a `T`; `V` is `T`, or `Option<T>` if nothing set is a value of its own.
#[derive(Debug)]
#[must_use]
pub struct Choice<T: 'static, V: 'static = T> {
    name: &'static str,
    /// The value if nothing is set.
    pub default: V,
    /// The words, in the order of help, and what each stands for.
    pub words: &'static [(&'static str, T)],
    about: &'static str,
    reason: &'static str,
    in_prose: bool,
}

impl<T: Copy, V: Copy> Choice<T, V> {
    /// In `about`, `{}` stands for the words.
    pub const fn new(name: &'static str, default: V, words: &'static [(&'static str, T)], about: &'static str) -> Self {
        Self { name, default, words, about, reason: "", in_prose: false }
    }

    /// Has help say why the default is one.
    pub const fn because(mut self, reason: &'static str) -> Self {
        self.reason = reason;
        self
    }

    /// Has an error list the words as help does, instead of separating them by commas and naming the nearest.
    pub const fn in_prose(mut self) -> Self {
        self.in_prose = true;
        self
    }
}

impl Parameter for Switch {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> String {
        self.about.replace("{}", if self.default { "on (default) or off" } else { "on or off (default)" })
    }
}

impl Typed<bool> for Switch {
    fn parse(&self, text: &str) -> Result<bool, String> {
        match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err("on or off".to_owned()),
        }
    }

    fn default(&self) -> bool {
        self.default
    }
}

impl<V: Copy + Into<Option<u64>> + Sync> Parameter for Number<V> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> String {
        let default: Option<u64> = self.default.into();
        let shown = default.map(|number| number.to_string()).unwrap_or_default();
        let about = self.about.replace("{default}", &shown);
        match &self.range {
            Numbers::Among(numbers) => {
                let mut sorted = numbers.to_vec();
                sorted.sort_unstable();
                about.replace("{}", &choices(sorted.into_iter().map(|n| (n.to_string(), default == Some(n))), ""))
            }
            Numbers::Within(range) => {
                about.replace("{least}", &range.start().to_string()).replace("{most}", &range.end().to_string())
            }
            Numbers::From(..) => about,
        }
    }
}

impl<V: Copy + Into<Option<u64>> + From<u64> + Sync> Typed<V> for Number<V> {
    fn parse(&self, text: &str) -> Result<V, String> {
        let number = text.parse().ok().filter(|number| match &self.range {
            Numbers::Among(numbers) => numbers.contains(number),
            Numbers::Within(range) => range.contains(number),
            Numbers::From(least, _) => number >= least,
        });
        number.map(V::from).ok_or_else(|| match &self.range {
            Numbers::Among(numbers) => numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            Numbers::Within(range) => format!("a whole number from {} to {}", range.start(), range.end()),
            Numbers::From(_, expected) => (*expected).to_owned(),
        })
    }

    fn default(&self) -> V {
        self.default
    }
}

impl<T: Copy + Sync, V: Copy + From<T> + PartialEq + Sync> Parameter for Choice<T, V> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> String {
        let words = self.words.iter().map(|&(word, value)| (word.to_owned(), V::from(value) == self.default));
        self.about.replace("{}", &choices(words, self.reason))
    }
}

impl<T: Copy + Sync, V: Copy + From<T> + PartialEq + Sync> Typed<V> for Choice<T, V> {
    fn parse(&self, text: &str) -> Result<V, String> {
        let known = self.words.iter().find(|(word, _)| *word == text);
        known.map(|&(_, value)| V::from(value)).ok_or_else(|| {
            let words = || self.words.iter().map(|(word, _)| *word);
            match self.in_prose {
                true => alternatives(words()),
                false => format!("{}{}", words().collect::<Vec<_>>().join(", "), hint(text, words())),
            }
        })
    }

    fn default(&self) -> V {
        self.default
    }
}

/// `a, b (default) or c`, with the reason of the default after it if there is one.
fn choices(values: impl Iterator<Item = (String, bool)>, reason: &str) -> String {
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let shown = |(value, default)| if default { format!("{value} (default{reason})") } else { value };
    let values: Vec<String> = values.map(shown).collect();
    alternatives(values.iter().map(String::as_str))
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
    pub fn get<V>(&self, parameter: &impl Typed<V>) -> Result<V, PolicyError> {
        let set = self.values.iter().rev().find(|(name, _)| name == parameter.name());
        let Some((_, found)) = set else { return Ok(parameter.default()) };
        parameter.parse(found).map_err(|expected| PolicyError::BadValue {
            policy: self.policy,
            parameter: parameter.name(),
            found: found.clone(),
            expected,
        })
    }
}

impl Entry {
    /// Makes the policy with parameters set by name; of two values of one parameter the later holds.
    ///
    /// # Errors
    /// An unknown parameter, with the nearest name, or a value that a parameter cannot have.
    pub fn build(&self, set: &[(String, String)]) -> Result<Box<dyn Policy>, PolicyError> {
        let names = || self.parameters.iter().map(|parameter| parameter.name());
        if let Some((found, _)) = set.iter().find(|(name, _)| !names().any(|known| known == name)) {
            let nearest = nearest(found, names()).map(str::to_owned);
            return Err(PolicyError::UnknownParameter { policy: self.id, found: found.clone(), nearest });
        }
        (self.build)(&Settings { policy: self.id, values: set })
    }
}
