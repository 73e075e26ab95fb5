//! What a command line selects: `all`, a paper, `comparison`, or the beginning of an id.
//!
//! A selector with a `/` is the beginning of ids as text: `sage/figure9` selects `figure9`, `figure9a` and `figure9b`.
//! It never ends inside a number: `sage/figure1` does not select `figure10`.

use super::reference::{Reference, Row};
use crate::names;

/// The word for everything.
pub(super) const ALL: &str = "all";
/// The word for the four papers' policies side by side, which has no reference rows.
pub(super) const COMPARISON: &str = "comparison";

/// A selector that selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is called `{selector}`{}; expected `all`, a paper ({}), `comparison` or the beginning of an id such as `sage/table1`", hint(nearest.as_deref()), papers())]
pub struct UnknownSelector {
    /// What was given.
    pub selector: String,
    /// The valid selector most like it.
    pub nearest: Option<String>,
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

fn papers() -> String {
    Reference::papers().collect::<Vec<_>>().join(", ")
}

/// The selected rows, in the order of the reference, and whether the comparison is among them.
#[derive(Clone, Debug)]
pub struct Selection<'r> {
    /// The rows.
    pub rows: Vec<&'r Row>,
    /// Whether `comparison` was asked for, by name or by `all`.
    pub comparison: bool,
    /// The selectors, as they were given; `all` where none was.
    pub selectors: Vec<String>,
}

impl<'r> Selection<'r> {
    /// What `selectors` select together; no selector means all.
    ///
    /// # Errors
    /// [`UnknownSelector`] for the first that selects nothing.
    pub fn new(reference: &'r Reference, selectors: &[String]) -> Result<Self, UnknownSelector> {
        let selectors = if selectors.is_empty() { vec![ALL.to_owned()] } else { selectors.to_vec() };
        for selector in &selectors {
            if selector != COMPARISON && !reference.rows().iter().any(|row| selects(selector, row)) {
                let nearest = nearest(reference, selector);
                return Err(UnknownSelector { selector: selector.clone(), nearest });
            }
        }
        let selected = |row: &&Row| selectors.iter().any(|selector| selects(selector, row));
        Ok(Self {
            rows: reference.rows().iter().filter(selected).collect(),
            comparison: selectors.iter().any(|selector| selector == ALL || selector == COMPARISON),
            selectors,
        })
    }
}

fn selects(selector: &str, row: &Row) -> bool {
    if selector == ALL || selector == row.paper {
        return true;
    }
    let ends_in_digit = selector.ends_with(|c: char| c.is_ascii_digit());
    selector.contains('/')
        && row.id.strip_prefix(selector).is_some_and(|rest| {
            let cuts_a_number = ends_in_digit && rest.starts_with(|c: char| c.is_ascii_digit());
            !cuts_a_number
        })
}

/// The valid selector that begins with `selector`, or is most like it, among those with as many parts.
fn nearest(reference: &Reference, selector: &str) -> Option<String> {
    let parts = selector.split('/').count();
    let beginning = |row: &Row| row.id.split('/').take(parts).collect::<Vec<_>>().join("/");
    let beginnings: Vec<String> = reference.rows().iter().map(beginning).collect();
    let valid = || [ALL, COMPARISON].into_iter().chain(beginnings.iter().map(String::as_str));
    let completion = valid().find(|name| !selector.is_empty() && name.starts_with(selector));
    completion.or_else(|| names::nearest(selector, valid())).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artefacts(selectors: &[&str]) -> Vec<String> {
        let reference = Reference::load().unwrap();
        let selectors: Vec<String> = selectors.iter().map(|s| (*s).to_owned()).collect();
        let selection = Selection::new(&reference, &selectors).unwrap();
        let mut places: Vec<String> = selection.rows.iter().map(|row| row.place()).collect();
        places.dedup();
        places
    }

    fn refused(selector: &str) -> UnknownSelector {
        let reference = Reference::load().unwrap();
        Selection::new(&reference, &[selector.to_owned()]).unwrap_err()
    }

    #[test]
    fn a_selector_is_the_beginning_of_ids() {
        assert_eq!(artefacts(&["sage/table1"]), ["sage/table1"]);
        assert_eq!(artefacts(&["sage/figure9"]), ["sage/figure9a", "sage/figure9b", "sage/figure9"]);
        assert_eq!(artefacts(&["sage/figure9/"]), ["sage/figure9"]);
        assert_eq!(artefacts(&["sage/section3.4"]), ["sage/section3.4.3"]);
        assert_eq!(artefacts(&["sage/table1/resnet50/original", "sage/figure13"]), ["sage/table1", "sage/figure13"]);
        assert!(artefacts(&["fedhybrid"]).iter().all(|place| place.starts_with("fedhybrid/")));
    }

    #[test]
    fn it_does_not_end_inside_a_number() {
        // fedhybrid has figure1, figure1c, figure11a, figure17, figure19a …: only the first two begin with figure 1.
        assert_eq!(artefacts(&["fedhybrid/figure1"]), ["fedhybrid/figure1", "fedhybrid/figure1c"]);
        let unknown = refused("sage/figure1");
        assert_eq!(unknown.nearest.as_deref(), Some("sage/figure10"), "{unknown}");
    }

    #[test]
    fn all_is_every_row_once_and_the_default() {
        let reference = Reference::load().unwrap();
        let all = Selection::new(&reference, &[]).unwrap();
        assert_eq!(all.rows.len(), reference.rows().len());
        assert!(all.comparison);
        let twice = Selection::new(&reference, &["sage".into(), "sage/table1".into()]).unwrap();
        assert_eq!(twice.rows.len(), reference.rows().iter().filter(|row| row.paper == "sage").count());
        assert!(!twice.comparison);
        let comparison = Selection::new(&reference, &["comparison".into()]).unwrap();
        assert!(comparison.rows.is_empty() && comparison.comparison);
    }

    #[test]
    fn what_selects_nothing_is_an_error_with_the_nearest() {
        assert_eq!(refused("sage/table99").nearest.as_deref(), Some("sage/table1"));
        assert_eq!(refused("mandhelng").nearest.as_deref(), Some("mandheling"));
        assert_eq!(refused("sage/table1/resnet5o/original").nearest.as_deref(), Some("sage/table1/resnet50/original"));
        assert_eq!(refused("").nearest, None);
        let message = refused("sag").to_string();
        assert!(message.contains("did you mean `sage`?") && message.contains("daf, sage"), "{message}");
    }
}
