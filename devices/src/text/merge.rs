//! TOML tables laid over each other.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// By what the tables of an array know each other, in this order.
const IDENTITIES: [&str; 4] = ["id", "name", "core", "class"];

/// Lays `over`, of the file `file`, over `under`: what `over` does not say, `under` does.
pub(super) fn lay_over<'a>(over: &mut DeTable<'a>, under: DeTable<'a>, file: &'a str) {
    for (key, value) in under {
        let Some(own) = over.get_mut(&key) else {
            over.insert(key, value);
            continue;
        };
        // An empty array drops what stands there: tables of an array, a section, a constant.
        if value.get_ref().is_table() && own.get_ref().as_array().is_some_and(|items| items.is_empty()) {
            over.remove(&key);
        } else {
            lay_value_over(own.get_mut(), value.into_inner(), file);
        }
    }
}

fn lay_value_over<'a>(over: &mut DeValue<'a>, under: DeValue<'a>, file: &'a str) {
    match (over, under) {
        (DeValue::Table(over), DeValue::Table(mut under)) => {
            if over.contains_key("value") && under.contains_key("value") {
                // Another's number never lends its source to this one.
                let unit = under.remove_entry("unit");
                under = unit.into_iter().collect();
                own_provenance(over, file);
            }
            lay_over(over, under, file);
        }
        (DeValue::Array(over), DeValue::Array(under)) => {
            let tables = |items: &[Spanned<DeValue<'_>>]| {
                !items.is_empty() && items.iter().all(|item| item.get_ref().is_table())
            };
            if tables(over) && tables(&under) {
                let own = std::mem::replace(over, DeArray::new());
                *over = joined(own.into_iter().collect(), under.into_iter().collect(), file).into_iter().collect();
            }
        }
        _ => {}
    }
}

/// Says how the constant `table` is known where it does not: somebody wrote it into `file`.
fn own_provenance<'a>(table: &mut DeTable<'a>, file: &'a str) {
    let span = table.get("value").map_or(0..0, Spanned::span);
    for (key, value) in [("kind", "estimated"), ("source", file)] {
        if !table.contains_key(key) {
            let value = DeValue::String(Cow::Borrowed(value));
            table.insert(Spanned::new(span.clone(), Cow::Borrowed(key)), Spanned::new(span.clone(), value));
        }
    }
}

/// The base's tables in their order, each below the one that overrides it, then those of none of the base's.
fn joined<'a>(
    over: Vec<Spanned<DeValue<'a>>>,
    mut under: Vec<Spanned<DeValue<'a>>>,
    file: &'a str,
) -> Vec<Spanned<DeValue<'a>>> {
    let mut added = Vec::new();
    for mut table in over {
        match overridden(&table, &under).and_then(|at| under.get_mut(at)) {
            Some(base) => {
                let below = std::mem::replace(base.get_mut(), DeValue::Boolean(false));
                lay_value_over(table.get_mut(), below, file);
                *base = table;
            }
            None => added.push(table),
        }
    }
    under.extend(added);
    under
}

/// The place of the one table among `under` that `table` overrides.
fn overridden(table: &Spanned<DeValue<'_>>, under: &[Spanned<DeValue<'_>>]) -> Option<usize> {
    fn identity<'t>(table: &'t Spanned<DeValue<'_>>, key: &str) -> Option<&'t str> {
        table.get_ref().as_table()?.get(key)?.get_ref().as_str()
    }
    IDENTITIES.iter().find_map(|key| {
        let own = identity(table, key)?;
        let mut fits = under.iter().enumerate().filter(|(_, base)| identity(base, key) == Some(own));
        let (at, _) = fits.next()?;
        fits.next().is_none().then_some(at)
    })
}

/// `table` with every offset later by `by`.
pub(super) fn shifted(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    table.into_iter().map(|(key, value)| (moved(key, by), shifted_value(value, by))).collect()
}

fn shifted_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let mut value = moved(value, by);
    match value.get_mut() {
        DeValue::Table(table) => *table = shifted(std::mem::take(table), by),
        DeValue::Array(items) => {
            *items = std::mem::replace(items, DeArray::new()).into_iter().map(|item| shifted_value(item, by)).collect();
        }
        _ => {}
    }
    value
}

fn moved<T>(spanned: Spanned<T>, by: usize) -> Spanned<T> {
    let span = spanned.span();
    Spanned::new(span.start + by..span.end + by, spanned.into_inner())
}
