//! The sweep of an artefact, as the readings declare it: every combination of its keys' cases, and their records.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use haversack_reports::Cell;

use super::records::{Records, declared, show};
use crate::papers::shown::{Sweep, SweptCase, SweptKey};
use crate::papers::spelled;
use crate::reproduce::{Cells, Context, Outcome};
use crate::scenario::{Key, Literal, Origin, Scenario};

/// Simulates every case of the declared sweep by `measure`, which gives the columns of `header`, and shows them.
///
/// # Errors
/// A scenario that is wrong, and the errors of `measure`.
pub(super) fn swept<C: Cells>(
    context: &Context<'_>,
    header: &str,
    measure: impl Fn(&Scenario, &[String]) -> Result<C>,
) -> Result<Outcome> {
    show(context, records(context, header, measure)?, Outcome::default())
}

/// Only the records.
///
/// # Errors
/// As [`swept`].
pub(super) fn records<C: Cells>(
    context: &Context<'_>,
    header: &str,
    measure: impl Fn(&Scenario, &[String]) -> Result<C>,
) -> Result<Records> {
    gathered(context, header, |cases| {
        let ids: Vec<String> = cases.iter().map(|case| case.id.clone()).collect();
        Ok(vec![measure(&scenario(context, sweep(context)?, cases)?, &ids)?])
    })
}

/// The same with several records for each combination of cases, as returned by `measure`.
///
/// # Errors
/// As [`swept`].
pub(super) fn gathered<C: Cells>(
    context: &Context<'_>,
    header: &str,
    mut measure: impl FnMut(&[SweptCase]) -> Result<Vec<C>>,
) -> Result<Records> {
    let combinations = combinations(context)?;
    let columns = |(key, case): (&SweptKey, &SweptCase)| {
        let also = case.also.keys().map(|word| format!("{}.{word},", key.name));
        format!("{0},{0}.name,{1}", key.name, also.collect::<String>())
    };
    let first = combinations.first().context("nothing is swept")?;
    let keys = &sweep(context)?.keys;
    let mut records = Records::of(&(keys.iter().zip(first).map(columns).collect::<String>() + header));
    for cases in &combinations {
        measure(cases)?.into_iter().try_for_each(|found| records.row((words(cases), found)))?;
    }
    Ok(records)
}

/// The names of a combination of cases, for the first columns of a sweep's records.
pub(super) fn words(cases: &[SweptCase]) -> Vec<Cell> {
    let words = |case: &SweptCase| {
        let also = case.also.values().map(|word| word.as_str().into());
        [cell(&case.id), name(case).into()].into_iter().chain(also).collect::<Vec<Cell>>()
    };
    cases.iter().flat_map(words).collect()
}

fn sweep<'c>(context: &'c Context<'_>) -> Result<&'c Sweep> {
    declared(context)?.sweep.as_ref().context("nothing is declared to be swept")
}

/// Numbers are kept as numbers.
fn cell(id: &str) -> Cell {
    id.parse::<f64>().map_or_else(|_| id.into(), Cell::Number)
}

/// The display name of a case.
pub(super) fn name(case: &SweptCase) -> String {
    case.name.clone().unwrap_or_else(|| spelled(&case.id))
}

/// Every combination of cases, the last key varying fastest.
///
/// # Errors
/// No sweep is declared.
pub(super) fn combinations(context: &Context<'_>) -> Result<Vec<Vec<SweptCase>>> {
    let mut combinations = vec![Vec::new()];
    for key in &sweep(context)?.keys {
        let cases = cases(context, key)?;
        let with =
            |before: Vec<SweptCase>| cases.iter().map(move |case| [&before[..], std::slice::from_ref(case)].concat());
        combinations = combinations.into_iter().flat_map(with).collect();
    }
    Ok(combinations)
}

fn cases(context: &Context<'_>, key: &SweptKey) -> Result<Vec<SweptCase>> {
    let SweptKey { name, cases, shared, only, numbers, more } = key;
    let shared =
        shared.as_ref().map_or(&[][..], |shared| context.readings.shared(context.artefact.entry.paper, shared));
    let shared = shared.iter().filter(|case| only.is_empty() || only.contains(&case.id));
    let numbers = numbers.as_ref().map_or(Ok(&[][..]), |numbers| context.reading_numbers(numbers))?;
    let set = Key::named(name).map(Key::name);
    let numbers = numbers.iter().map(|number| {
        let with = set.map(|key| (key.to_owned(), number.to_string().into())).into_iter().collect();
        SweptCase { id: number.to_string(), name: None, with, also: BTreeMap::new() }
    });
    Ok(cases.iter().chain(shared).cloned().chain(numbers).chain(more.iter().cloned()).collect())
}

/// The scenario of a combination: the common keys, then the keys of each case, those of the last key last.
fn scenario(context: &Context<'_>, sweep: &Sweep, cases: &[SweptCase]) -> Result<Scenario> {
    let mut scenario = Scenario::new("", "");
    for (name, value) in [&sweep.scenario].into_iter().chain(cases.iter().map(|case| &case.with)).flatten() {
        let key = Key::named(name).with_context(|| format!("no scenario has a key `{name}`"))?;
        match value {
            toml::Value::Table(entries) if entries.is_empty() => scenario.set.clear(),
            toml::Value::Table(entries) => {
                for (name, value) in entries {
                    scenario.set_entry(key, name, &Literal::text(text(context, value)?), Origin::default());
                }
            }
            _ => scenario.set(key, &Literal::text(text(context, value)?), Origin::default())?,
        }
    }
    Ok(scenario)
}

/// A value in a scenario's form; in braces, that of a reading.
fn text(context: &Context<'_>, value: &toml::Value) -> Result<String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Some(reading) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { return Ok(text) };
    Ok(context.reading(reading)?.value.to_string())
}
