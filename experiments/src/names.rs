//! Guessing which name was meant.

/// The valid name most like `found`, where one is close enough to be meant.
#[must_use]
pub fn nearest<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.to_lowercase();
    valid
        .into_iter()
        .map(|name| (strsim::osa_distance(&found, &name.to_lowercase()), name))
        .min_by_key(|&(distance, name)| (distance, name.len()))
        .filter(|&(distance, name)| distance <= 2.max(found.chars().count().max(name.chars().count()) / 2))
        .map(|(_, name)| name)
}

/// `; did you mean 'name'?`, or nothing where no valid name is near.
#[must_use]
pub fn hint<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    nearest(found, valid).map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

/// Names in a sentence: `a, b or c`.
#[must_use]
pub fn alternatives<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_name_and_nonsense_finds_none() {
        assert_eq!(nearest("memory_bugdet", ["memory_budget", "time_budget"]), Some("memory_budget"));
        assert_eq!(nearest("optimiser", ["optimizer", "iterations"]), Some("optimizer"));
        assert_eq!(nearest("zzzzzz", ["batch", "seed"]), None);
    }
}
