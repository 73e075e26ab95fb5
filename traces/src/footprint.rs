//! The memory that apps use: an explicit table, because no public trace contains it.

use std::collections::BTreeMap;

use haversack_devices::text::{aside, nearest};
use haversack_devices::{Bytes, BytesPerSecond, ConstantEntry, Factor, Fraction, Kind, Nanos, Stream, TomlDocument};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Deserializer};

use crate::data::{self, DataError, number};

/// The built-in table, and its name.
const BUILT_IN: (&str, &str) = ("android", include_str!("../footprints/android.toml"));

/// The footprint of one app.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// Heaps and graphics while it is in front; reclaimed only to swap.
    pub anonymous: Bytes,
    /// Code, resources and maps while it is in front; reclaimed by dropping.
    pub file: Bytes,
    /// The fraction of both that remains when it is cached.
    pub kept: Fraction,
    /// The fraction of the remainder that a return to the front touches immediately.
    pub touched: Fraction,
    /// Additional anonymous bytes for the first seconds of a launch.
    pub launch_extra: Bytes,
    /// Its writes to flash while it is cached.
    pub writes: BytesPerSecond,
}

impl Footprint {
    /// Anonymous and file bytes of the whole app, or of the part that remains when it is cached.
    pub fn held(&self, whole: bool) -> (Bytes, Bytes) {
        let share = if whole { 1.0 } else { self.kept.0 };
        (scaled(self.anonymous, share), scaled(self.file, share))
    }
}

/// How a footprint was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Found {
    /// By its package.
    Package,
    /// By its Play category, or the part of the category before the first `-`.
    Category,
    /// The default, because neither is in the table.
    Default,
}

/// Footprints by package, by category, and for all other apps.
#[derive(Clone, Debug)]
#[must_use]
pub struct FootprintTable {
    file: String,
    written: Written,
}

/// The file; categories are as [`plain`] spells them.
#[derive(Clone, Debug, Deserialize)]
struct Written {
    launch: Launch,
    spread: Spread,
    default: Entry,
    #[serde(default)]
    category: BTreeMap<String, Entry>,
    #[serde(default)]
    package: BTreeMap<String, Entry>,
}

/// The launch of an app, and its return from the cache.
#[derive(Clone, Debug, Deserialize)]
pub struct Launch {
    extra: Extra,
    /// The shortest time for which a launch takes extra bytes.
    #[serde(deserialize_with = "seconds")]
    pub least_s: Nanos,
    /// The longest; uniform between the two.
    #[serde(deserialize_with = "seconds")]
    pub most_s: Nanos,
    /// The fraction of the extra bytes that a return to the front takes.
    #[serde(deserialize_with = "share")]
    pub return_share: Fraction,
    /// How long a return takes them.
    #[serde(deserialize_with = "seconds")]
    pub return_s: Nanos,
    kind: Kind,
    source: String,
}

/// Extra bytes of a launch whose `launch` is 1.
#[derive(Clone, Debug, Deserialize)]
struct Extra {
    #[serde(deserialize_with = "megabytes")]
    mb: Bytes,
    kind: Kind,
    source: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Spread {
    #[serde(deserialize_with = "factor")]
    of_ln: Factor,
    kind: Kind,
    source: String,
}

/// A table of the file; `launch` is relative to the launch of the whole table.
#[derive(Clone, Debug, Deserialize)]
struct Entry {
    #[serde(deserialize_with = "megabytes")]
    anonymous_mb: Bytes,
    #[serde(deserialize_with = "megabytes")]
    file_mb: Bytes,
    #[serde(deserialize_with = "share")]
    kept: Fraction,
    #[serde(deserialize_with = "share")]
    touched: Fraction,
    #[serde(deserialize_with = "factor")]
    launch: Factor,
    #[serde(deserialize_with = "rate")]
    writes_mb_s: BytesPerSecond,
    #[expect(dead_code, reason = "every table says it")]
    kind: Kind,
    #[expect(dead_code, reason = "every table says it")]
    source: String,
}

fn megabytes<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    number(from, 65_536.0, " MB").map(|value| Bytes((value * 1e6).round() as u64))
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    number(from, 600.0, " s").map(Nanos::from_seconds)
}

fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Fraction, D::Error> {
    number(from, 1.0, "").map(Fraction)
}

fn factor<'de, D: Deserializer<'de>>(from: D) -> Result<Factor, D::Error> {
    number(from, 10.0, "").map(Factor)
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<BytesPerSecond, D::Error> {
    number(from, 1000.0, " MB/s").map(|value| BytesPerSecond(value * 1e6))
}

impl FootprintTable {
    /// The built-in table.
    ///
    /// # Errors
    /// None unless the file was edited: a test reads it.
    pub fn built_in() -> Result<Self, DataError> {
        Self::parse("footprints/android.toml", BUILT_IN.1)
    }

    /// The built-in table `android`, or the one in the file that ends in `.toml`.
    ///
    /// # Errors
    /// Another name; a file that cannot be read; as [`FootprintTable::parse`].
    pub fn load(name: &str) -> Result<Self, DataError> {
        if name == BUILT_IN.0 {
            return Self::built_in();
        }
        if !name.ends_with(".toml") {
            let (valid, guess) = (BUILT_IN.0, aside(nearest(name, std::iter::once(BUILT_IN.0))));
            return Err(DataError::Absent(format!(
                "unknown footprint table `{name}`{guess}; expected the path of a .toml file or `{valid}`"
            )));
        }
        Self::parse(name, &data::read(name)?)
    }

    /// The table in `text`, the contents of `file`.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown or missing key, a number that is negative or absurd (above 65,536 MB, 600 s,
    /// 1,000 MB/s, a factor above 10, a share above 1), a longest launch below the shortest: with file, line and field,
    /// the expected value and the nearest valid name.
    pub fn parse(file: &str, text: &str) -> Result<Self, DataError> {
        let document = TomlDocument::parse(file, text)?;
        let mut written: Written = document.read()?;
        let (least, most) = (written.launch.least_s, written.launch.most_s);
        if least > most {
            let (least, most) = (least.seconds(), most.seconds());
            let message = format!("expected `least_s` not above `most_s`, found {least} and {most}");
            return Err(document.refuse("launch", message).into());
        }
        written.category = written.category.into_iter().map(|(name, entry)| (plain(&name), entry)).collect();
        Ok(Self { file: file.to_owned(), written })
    }

    /// The file of the table, for display.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The launch of an app.
    pub fn launch(&self) -> &Launch {
        &self.written.launch
    }

    /// The numbers of the launch and the spread, for records of runs.
    pub fn entries(&self) -> Vec<ConstantEntry> {
        let Written { launch, spread, .. } = &self.written;
        let of_launch = (launch.kind, &launch.source);
        let numbers = [
            ("launch.least_s", launch.least_s.seconds(), "s", of_launch),
            ("launch.most_s", launch.most_s.seconds(), "s", of_launch),
            ("launch.return_share", launch.return_share.0, "fraction", of_launch),
            ("launch.return_s", launch.return_s.seconds(), "s", of_launch),
            ("launch.extra.mb", launch.extra.mb.megabytes(), "MB", (launch.extra.kind, &launch.extra.source)),
            ("spread.of_ln", spread.of_ln.0, "factor", (spread.kind, &spread.source)),
        ];
        let entry = |(name, value, unit, (kind, source)): (&str, f64, &'static str, (Kind, &String))| {
            let (name, source, file) = (name.to_owned(), source.clone(), self.file.clone());
            ConstantEntry { name, value, unit, kind, source, file }
        };
        numbers.map(entry).to_vec()
    }

    /// The footprint of `package`, whose Play category may be known; falls back to the category, then to the default.
    ///
    /// Categories are compared without case, and `&`, `_` and spaces become `-`: `GAME_PUZZLE` finds
    /// `game-puzzle`, else `game`.
    pub fn find(&self, package: &str, category: Option<&str>) -> (Footprint, Found) {
        if let Some(entry) = self.written.package.get(package) {
            return (self.footprint(entry), Found::Package);
        }
        let category = category.map(plain);
        let mut name = category.as_deref();
        while let Some(part) = name {
            if let Some(entry) = self.written.category.get(part) {
                return (self.footprint(entry), Found::Category);
            }
            name = part.rsplit_once('-').map(|(head, _)| head);
        }
        (self.footprint(&self.written.default), Found::Default)
    }

    /// The footprint of `package` on the phone of `user`: as [`FootprintTable::find`], its bytes scaled by a lognormal
    /// factor of median one that depends only on the seed, the user and the package.
    pub fn find_for(&self, package: &str, category: Option<&str>, user: &str, seed: u64) -> (Footprint, Found) {
        let (footprint, found) = self.find(package, category);
        let normal: f64 = StandardNormal.sample(&mut Stream::of_user(seed, user, &format!("footprint {package}")));
        let factor = (self.written.spread.of_ln.0 * normal).exp();
        let (anonymous, file) = (scaled(footprint.anonymous, factor), scaled(footprint.file, factor));
        (Footprint { anonymous, file, ..footprint }, found)
    }

    fn footprint(&self, entry: &Entry) -> Footprint {
        Footprint {
            anonymous: entry.anonymous_mb,
            file: entry.file_mb,
            kept: entry.kept,
            touched: entry.touched,
            launch_extra: scaled(self.written.launch.extra.mb, entry.launch.0),
            writes: entry.writes_mb_s,
        }
    }
}

/// A size times `factor`, to the nearest byte.
pub(crate) fn scaled(size: Bytes, factor: f64) -> Bytes {
    Bytes((size.as_f64() * factor).round() as u64)
}

/// A category as the table spells it.
fn plain(category: &str) -> String {
    let words = category.to_lowercase().replace('&', " and ");
    words.split([' ', '_', '-']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}
