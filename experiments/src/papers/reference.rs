//! The papers' numbers and claims: the rows of `reference/*.csv`, embedded and typed.
//!
//! Comparisons of simulated answers with a row are in [`super::cells`].

use std::collections::HashSet;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::status::{self, Status};

/// Each paper's file, embedded in the program: the paper, the path and the text.
const FILES: [(&str, &str, &str); 4] = [
    ("daf", "experiments/reference/daf.csv", include_str!("../../reference/daf.csv")),
    ("sage", "experiments/reference/sage.csv", include_str!("../../reference/sage.csv")),
    ("mandheling", "experiments/reference/mandheling.csv", include_str!("../../reference/mandheling.csv")),
    ("fedhybrid", "experiments/reference/fedhybrid.csv", include_str!("../../reference/fedhybrid.csv")),
];

const COLUMNS: [&str; 12] =
    ["id", "artefact", "subject", "method", "metric", "unit", "kind", "value", "lo", "hi", "role", "conditions"];

/// The word for the comparison of the four papers' policies, which has no reference rows.
pub(crate) const COMPARISON: &str = "comparison";

/// The permitted uses of a row, by the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Calibration may use it.
    Fit,
    /// Compared, but never used for fitting.
    Check,
    /// The value is not given: haversack predicts it, and others compare.
    Withheld,
}

impl Role {
    /// Every role, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Fit, Self::Check, Self::Withheld];
}

impl FromStr for Role {
    type Err = ();
    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|role| role.to_string() == word).ok_or(())
    }
}

/// The paper's claim about a row's quantity.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// A value; `None` if the row is withheld.
    Value(Option<f64>),
    /// A target that is never reached (the paper's cell is a dash).
    Never,
    /// A lower bound.
    Min(f64),
    /// An upper bound.
    Max(f64),
    /// A range in which the set lies, and whose ends it comes near.
    Range {
        /// The low end.
        lo: f64,
        /// The high end.
        hi: f64,
    },
    /// A relation, which a predicate of the readings formulates; the paper's words, or empty.
    Order(String),
}

/// One number or claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceRow {
    /// `paper/artefact/subject/method/metric`.
    pub id: String,
    /// The paper.
    pub paper: &'static str,
    /// The table, figure or section.
    pub artefact: String,
    /// Model, data set or device.
    pub subject: String,
    /// Method or variant.
    pub method: String,
    /// The quantity.
    pub metric: String,
    /// Its unit, or empty.
    pub unit: String,
    /// The paper's claim about it.
    pub claim: Claim,
    /// Its permitted uses.
    pub status: Status,
    /// Whether it contradicts other rows of the paper, so that it counts neither for nor against the model.
    pub contradicted: bool,
    /// The setting, where the paper gives it.
    pub conditions: String,
}

impl ReferenceRow {
    /// The paper's number, if it gives exactly one (`value`, `min`, `max`).
    pub fn number(&self) -> Option<f64> {
        match self.claim {
            Claim::Value(value) => value,
            Claim::Min(value) | Claim::Max(value) => Some(value),
            Claim::Never | Claim::Range { .. } | Claim::Order(_) => None,
        }
    }

    /// Its role in the reference.
    pub const fn role(&self) -> Role {
        self.status.role()
    }
}

/// Every row of the four papers, in the order of the files.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    rows: Vec<ReferenceRow>,
    digests: Vec<(&'static str, String)>,
}

impl Reference {
    /// The embedded rows.
    ///
    /// # Errors
    /// A row that does not follow the schema.
    pub fn load() -> Result<Self> {
        let mut reference = Self::default();
        for (paper, file, text) in FILES {
            reference.rows.extend(parse(paper, file, text)?);
            reference.digests.push((file, haversack_devices::registry::digest(text)));
        }
        status::mark(&mut reference.rows).map_err(|message| anyhow!("{}:1: {message}", status::FILE))?;
        Ok(reference)
    }

    /// A reference of made-up rows, for tests of computations on rows.
    #[cfg(test)]
    pub(crate) fn of_rows(rows: Vec<ReferenceRow>) -> Self {
        Self { rows, ..Self::default() }
    }

    /// The papers, in the order of reports.
    pub fn papers() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|(paper, ..)| *paper)
    }

    /// The display name of a paper; other words get a capital letter.
    pub fn name(paper: &str) -> String {
        match paper {
            "daf" => "DAF".to_owned(),
            "fedhybrid" => "FedHybrid".to_owned(),
            other => {
                let mut letters = other.chars();
                let capital: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
                capital + letters.as_str()
            }
        }
    }

    /// All rows.
    pub fn rows(&self) -> &[ReferenceRow] {
        &self.rows
    }

    /// The row with this `id`.
    pub fn row(&self, id: &str) -> Option<&ReferenceRow> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// The rows of one artefact.
    pub fn of(&self, paper: &str, artefact: &str) -> impl Iterator<Item = &ReferenceRow> {
        self.rows.iter().filter(move |row| row.paper == paper && row.artefact == artefact)
    }

    /// `(paper, artefact)` of every artefact, in the order of the rows.
    pub fn artefacts(&self) -> Vec<(&'static str, &str)> {
        let mut seen = HashSet::new();
        let places = self.rows.iter().map(|row| (row.paper, row.artefact.as_str()));
        places.filter(|place| seen.insert(*place)).collect()
    }

    /// Each file with the digest of its text.
    pub fn digests(&self) -> &[(&'static str, String)] {
        &self.digests
    }
}

/// Parses one file; `file` is its name in errors.
///
/// # Errors
/// Another header, a row of another width, an unknown kind or role, a value that does not fit its kind, an id that does
/// not begin with its paper and artefact, or a duplicate id.
pub fn parse(paper: &'static str, file: &str, text: &str) -> Result<Vec<ReferenceRow>> {
    let fail = |line: u64, message: String| anyhow!("{file}:{line}: {message}");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut rows: Vec<ReferenceRow> = Vec::new();
    let mut seen = HashSet::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(|e| fail(e.position().map_or(0, csv::Position::line), e.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        if index == 0 {
            if !record.iter().eq(COLUMNS) {
                return Err(fail(line, format!("expected the columns {}", COLUMNS.join(","))));
            }
            continue;
        }
        let row = row(paper, &record).map_err(|message| fail(line, message))?;
        if !seen.insert(row.id.clone()) {
            return Err(fail(line, format!("`id`: `{}` is given twice", row.id)));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn row(paper: &'static str, record: &csv::StringRecord) -> Result<ReferenceRow, String> {
    let text = |column: &str| {
        let index = COLUMNS.iter().position(|name| *name == column);
        index.and_then(|index| record.get(index)).unwrap_or_default().to_owned()
    };
    let role = text("role");
    let role = role.parse().map_err(|()| format!("`role`: expected fit, check or withheld, found `{role}`"))?;
    let (id, artefact) = (text("id"), text("artefact"));
    if !id.starts_with(&format!("{paper}/{artefact}/")) {
        return Err(format!("`id`: expected it to begin with `{paper}/{artefact}/`, found `{id}`"));
    }
    Ok(ReferenceRow {
        claim: claim(&text, role)?,
        id,
        paper,
        artefact,
        subject: text("subject"),
        method: text("method"),
        metric: text("metric"),
        unit: text("unit"),
        status: role.into(),
        contradicted: false,
        conditions: text("conditions"),
    })
}

fn claim(text: &dyn Fn(&str) -> String, role: Role) -> Result<Claim, String> {
    let number = |column: &str| {
        let found = text(column);
        let value = found.parse::<f64>().ok().filter(|value| value.is_finite());
        value.ok_or_else(|| format!("`{column}`: expected a number, found `{found}`"))
    };
    let (kind, value) = (text("kind"), text("value"));
    match (kind.as_str(), role) {
        ("value", Role::Withheld) if value.is_empty() => Ok(Claim::Value(None)),
        (_, Role::Withheld) => Err("a withheld row is of kind `value` and gives none".to_owned()),
        ("value", _) if value.is_empty() => Ok(Claim::Never),
        ("value", _) => Ok(Claim::Value(Some(number("value")?))),
        ("min", _) => Ok(Claim::Min(number("value")?)),
        ("max", _) => Ok(Claim::Max(number("value")?)),
        ("range", _) => {
            let (lo, hi) = (number("lo")?, number("hi")?);
            if lo <= hi { Ok(Claim::Range { lo, hi }) } else { Err(format!("`lo`: {lo} is above `hi`, {hi}")) }
        }
        ("order", _) => Ok(Claim::Order(value)),
        _ => Err(format!("`kind`: expected value, min, max, range or order, found `{kind}`")),
    }
}

/// A row with this claim, for tests of comparisons.
#[cfg(test)]
pub(crate) fn example(metric: &str, claim: Claim, role: Role) -> ReferenceRow {
    ReferenceRow {
        id: format!("sage/table1/net/method/{metric}"),
        paper: "sage",
        artefact: "table1".into(),
        subject: "net".into(),
        method: "method".into(),
        metric: metric.into(),
        unit: "ms".into(),
        claim,
        status: role.into(),
        contradicted: false,
        conditions: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "id,artefact,subject,method,metric,unit,kind,value,lo,hi,role,conditions\n";

    fn one(line: &str) -> Result<ReferenceRow> {
        parse("sage", "sage.csv", &format!("{HEADER}{line}\n")).map(|mut rows| rows.remove(0))
    }

    #[test]
    fn every_embedded_row_is_read() {
        let reference = Reference::load().unwrap();
        // One line per row below the header: no field of the files contains a line break.
        let lines: usize = FILES.iter().map(|(.., text)| text.trim_end().lines().count() - 1).sum();
        assert_eq!(reference.rows().len(), lines);
        assert_eq!(reference.digests().len(), 4);
        for paper in Reference::papers() {
            assert!(reference.rows().iter().any(|row| row.paper == paper), "{paper}");
        }
    }

    #[test]
    fn a_row_becomes_the_claim_of_its_kind() {
        assert_eq!(one("sage/t/a/b/c,t,a,b,c,ms,value,3.5,,,fit,").unwrap().claim, Claim::Value(Some(3.5)));
        assert_eq!(one("sage/t/a/b/c,t,a,b,c,ms,value,,,,check,").unwrap().claim, Claim::Never);
        assert_eq!(one("sage/t/a/b/c,t,a,b,c,ms,value,,,,withheld,").unwrap().claim, Claim::Value(None));
        assert_eq!(one("sage/t/a/b/c,t,a,b,c,ms,min,8,,,fit,").unwrap().claim, Claim::Min(8.0));
        assert_eq!(one("sage/t/a/b/c,t,a,b,c,ms,max,7,,,check,").unwrap().claim, Claim::Max(7.0));
        let range = one("sage/t/a/b/c,t,a,b,c,ms,range,,5,100,check,").unwrap();
        assert_eq!(range.claim, Claim::Range { lo: 5.0, hi: 100.0 });
        let order = one("sage/t/a/b/c,t,a,b,c,,order,20+12; rest,,,check,\"a, b\"").unwrap();
        assert_eq!((order.claim, order.conditions.as_str()), (Claim::Order("20+12; rest".into()), "a, b"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_column() {
        let cases = [
            ("sage/t/a/b/c,t,a,b,c,ms,value,x,,,fit,", "`value`: expected a number, found `x`"),
            ("sage/t/a/b/c,t,a,b,c,ms,value,3,,,withheld,", "a withheld row"),
            ("sage/t/a/b/c,t,a,b,c,ms,range,,9,5,fit,", "`lo`: 9 is above `hi`, 5"),
            ("sage/t/a/b/c,t,a,b,c,ms,values,3,,,fit,", "`kind`: expected"),
            ("sage/t/a/b/c,t,a,b,c,ms,value,3,,,fitted,", "`role`: expected"),
            ("daf/t/a/b/c,t,a,b,c,ms,value,3,,,fit,", "`id`: expected it to begin with `sage/t/`"),
            ("sage/t/a/b/c,t,a", "found record with 3 fields"),
        ];
        for (line, message) in cases {
            let error = one(line).unwrap_err().to_string();
            assert!(error.starts_with("sage.csv:2: ") && error.contains(message), "{error}");
        }
        let twice = "sage/t/a/b/c,t,a,b,c,ms,min,8,,,fit,";
        let error = one(&format!("{twice}\n{twice}")).unwrap_err();
        assert!(error.to_string().starts_with("sage.csv:3: `id`"), "{error}");
        assert!(parse("sage", "sage.csv", "id,value\n").unwrap_err().to_string().contains("expected the columns"));
    }
}
