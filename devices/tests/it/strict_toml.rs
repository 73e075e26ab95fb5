//! TOML read strictly: valid files, and the errors of invalid ones.

use std::collections::BTreeMap;

use haversack_devices::text::{TomlDocument, read_toml};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename = "{ value, unit }")]
struct Written {
    value: f64,
    unit: String,
}

/// A number from 0 to 1, with its unit.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Written")]
struct Share(f64);

impl TryFrom<Written> for Share {
    type Error = String;

    fn try_from(Written { value, unit }: Written) -> Result<Self, String> {
        if unit != "%" {
            return Err(format!("wrong unit `{unit}`"));
        }
        if value <= 100.0 { Ok(Self(value / 100.0)) } else { Err(format!(".value: {value} is out of range")) }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    FirstCome,
    LastCome,
    Every(u32),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(f64),
    Text(String),
}

#[derive(Debug, Deserialize)]
struct Top {
    name: String,
    order: Order,
    share: Option<Share>,
    #[serde(default)]
    core: Vec<Core>,
    package: BTreeMap<String, BTreeMap<String, NumberOrText>>,
    truth: bool,
}

#[derive(Debug, Deserialize)]
struct Core {
    cores: u8,
    share: Share,
}

const TEXT: &str = r#"name = "top"
order = "last-come"
truth = true
share = { value = 50, unit = "%" }
[[core]]
cores = 0x10
share = { value = 2.5e1, unit = "%" }
[[core]]
cores = 1_0
share = { value = 1, unit = "%" }
[package."a.mail"]
kept = 0.5
is = "mail"
"#;

fn refusal(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    read_toml::<Top>("t.toml", &TEXT.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn what_is_right_is_read() {
    let top: Top = read_toml("t.toml", TEXT).unwrap();
    assert_eq!((top.name.as_str(), top.truth, top.order), ("top", true, Order::LastCome));
    assert_eq!(top.share.unwrap().0, 0.5);
    let cores: Vec<_> = top.core.iter().map(|core| (core.cores, core.share.0)).collect();
    assert_eq!(cores, [(16, 0.25), (10, 0.01)]);
    assert_eq!(top.package["a.mail"]["kept"], NumberOrText::Number(0.5));
    assert_eq!(top.package["a.mail"]["is"], NumberOrText::Text("mail".to_owned()));
    // Fields with a default, or optional ones, may be left out; a variant with data is a table of one key.
    let top: Top = read_toml("t.toml", "name = ''\ntruth = false\norder = { every = 3 }\npackage = {}").unwrap();
    assert_eq!((top.order, top.core.len(), top.share.is_none()), (Order::Every(3), 0, true));
}

#[test]
fn what_is_wrong_is_named_by_line_and_field() {
    let keys = "valid keys: name, order, share, core, package, truth";
    for (from, to, message) in [
        ("order =", "ordre =", format!("t.toml:2: `ordre`: unknown key (did you mean `order`?); {keys}")),
        ("cores = 1_0", "kores = 1", "t.toml:9: `core.1.kores`: unknown key (did you mean `cores`?); valid keys: cores, share".to_owned()),
        ("\"last-come\"", "\"last-came\"", "t.toml:2: `order`: unknown value `last-came` (did you mean `last-come`?); expected one of first-come, last-come, every".to_owned()),
        ("\"last-come\"", "7", "t.toml:2: `order`: expected one of first-come, last-come, every, found a value of type integer".to_owned()),
        ("name = \"top\"", "name = 3", "t.toml:1: `name`: expected text, found a value of type integer".to_owned()),
        ("truth = true", "truth = 1", "t.toml:3: `truth`: expected a boolean, found a value of type integer".to_owned()),
        ("cores = 1_0", "cores = 300", "t.toml:9: `core.1.cores`: expected a whole number from 0 to 255, found `300`".to_owned()),
        ("cores = 1_0", "cores = 1.5", "t.toml:9: `core.1.cores`: expected a whole number, found a value of type float".to_owned()),
        ("value = 1,", "value = 0x1,", "t.toml:10: `core.1.share.value`: expected a decimal number, found a value of type integer".to_owned()),
        ("kept = 0.5", "kept = [1]", "t.toml:12: `package.\"a.mail\".kept`: data did not match any variant of untagged enum NumberOrText".to_owned()),
        ("{ value = 50, unit = \"%\" }", "50", "t.toml:4: `share`: expected { value, unit }, found a value of type integer".to_owned()),
        // Errors of the caller's own checks name their location, too.
        ("value = 1,", "value = 101,", "t.toml:10: `core.1.share.value`: 101 is out of range".to_owned()),
        ("value = 50, unit = \"%\"", "value = 50, unit = \"m\"", "t.toml:4: `share`: wrong unit `m`".to_owned()),
        ("[package.", "[[package.", "t.toml:11: not valid TOML: ".to_owned()),
    ] {
        let found = refusal(from, to);
        assert!(found == message || message.ends_with("TOML: ") && found.starts_with(&message), "{found}\n{message}");
    }
}

#[test]
fn a_missing_key_says_what_was_expected() {
    assert_eq!(refusal("name = \"top\"\n", ""), "t.toml:1: `name`: missing key; expected text");
    assert_eq!(refusal("truth = true\n", ""), "t.toml:1: `truth`: missing key; expected a boolean");
    let order = "t.toml:1: `order`: missing key; expected one of first-come, last-come, every";
    assert_eq!(refusal("order = \"last-come\"\n", ""), order);
    // The line of an inline table's or a section's error is that of the table.
    assert_eq!(refusal("value = 50, ", ""), "t.toml:4: `share.value`: missing key; expected a decimal number");
    let share = "t.toml:8: `core.1.share`: missing key; expected { value, unit }";
    assert_eq!(refusal("share = { value = 1, unit = \"%\" }\n", ""), share);
}

#[test]
fn what_was_read_can_be_refused_at_its_line() {
    let document = TomlDocument::parse("t.toml", TEXT).unwrap();
    let refused = |field| document.refuse(field, "no").to_string();
    assert_eq!(refused("core.1.share"), "t.toml:10: `core.1.share`: no");
    assert_eq!(refused("package.\"a.mail\".is"), "t.toml:13: `package.\"a.mail\".is`: no");
    // A missing field is located at the table around it.
    assert_eq!(refused("core.1.clock"), "t.toml:8: `core.1`: no");
    assert_eq!(refused(""), "t.toml:1: no");
}
