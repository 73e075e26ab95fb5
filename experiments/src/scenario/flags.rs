//! The flags of a scenario, made from its keys: a new key is a new flag.

use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use super::{Fault, Key, Literal, Origin, Result, Scenario, ScenarioError, Takes};

/// The keys that were given as flags.
#[derive(Clone, Debug, Default)]
pub struct ScenarioFlags {
    given: Vec<(Key, String)>,
}

impl ScenarioFlags {
    /// The scenario of `file`, if one is given, overridden by the flags.
    ///
    /// # Errors
    /// A file or a flag that is wrong; no device or no model.
    pub fn over(&self, file: Option<&Path>) -> Result<Scenario> {
        let (mut scenario, mut mistakes) = Scenario::begin(file)?;
        let in_file = |file: &Path| Origin::File { file: file.display().to_string().into(), line: 0 };
        let by = file.map_or(Origin::Flag, in_file);
        for (key, text) in &self.given {
            mistakes.note(Self::set(&mut scenario, *key, text));
        }
        mistakes.note(scenario.complete(by));
        scenario.finish(mistakes)
    }

    /// Sets `key` to the value of its flag.
    fn set(scenario: &mut Scenario, key: Key, text: &str) -> Result<()> {
        let Takes::Table { flag: expected, .. } = key.takes() else {
            return scenario.set(key, &Literal::text(text), Origin::Flag);
        };
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            let fault = Fault::value(expected, format!("'{text}'"));
            ScenarioError::new(Origin::Flag, key.name(), fault)
        })?;
        scenario.set_entry(key, name.trim(), &Literal::text(value.trim()), Origin::Flag);
        Ok(())
    }
}

impl FromArgMatches for ScenarioFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for key in Key::ALL {
            for text in matches.get_many::<String>(key.name()).into_iter().flatten() {
                self.given.push((key, text.clone()));
            }
        }
        Ok(())
    }
}

impl Args for ScenarioFlags {
    fn augment_args(command: Command) -> Command {
        Key::ALL.into_iter().fold(command, |command, key| {
            let [value, about] = key.about();
            let action = if key.is_table() { ArgAction::Append } else { ArgAction::Set };
            let argument = Arg::new(key.name());
            let argument = match key.takes() {
                Takes::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
                _ => argument,
            };
            command.arg(
                argument
                    .long(key.flag())
                    .value_name(value)
                    .help(sentence(about))
                    .action(action)
                    // The key itself checks values that begin with a hyphen, because it can give a better error.
                    .allow_hyphen_values(true)
                    .help_heading("Scenario"),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// `text` with a capital at the beginning, as in clap's own help; no text of a key begins with a value.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
