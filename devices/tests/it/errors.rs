//! Errors of wrong calibrations give file, line, field, the expected type, and the nearest name.

use crate::common;
use haversack_devices::{Device, Stack, load, load_stack, load_system};

/// The message about the round device with `old` replaced by `new`, and the line of the replacement.
fn broken(old: &str, new: &str) -> (String, usize) {
    let text = common::device_text();
    let at = text.find(old).unwrap_or_else(|| panic!("{old} is not in the text"));
    let line = 1 + text[..at].matches('\n').count();
    let text = text.replacen(old, new, 1);
    (Device::parse("round", "round.toml", &text).unwrap_err().to_string(), line)
}

fn assert_says(old: &str, new: &str, words: &[&str]) {
    let (message, line) = broken(old, new);
    for word in [format!("round.toml:{line}:").as_str()].iter().chain(words) {
        assert!(message.contains(word), "{message:?} lacks {word:?}");
    }
}

#[test]
fn an_unknown_key_is_named_with_the_nearest() {
    assert_says("launch =", "lanuch =", &["`gpu.lanuch`", "unknown key", "did you mean `launch`"]);
    assert_says("soc =", "sok =", &["`sok`", "did you mean `soc`"]);
    assert_says("source = \"test\"", "sauce = \"test\"", &["`ram.sauce`", "did you mean `source`"]);
    assert_says("core = \"L\"", "kore = \"L\"", &["`cpu.1.kore`", "did you mean `core`"]);
}

#[test]
fn a_wrong_unit_is_named_with_those_expected() {
    assert_says(
        "value = 10, unit = \"us\"",
        "value = 10, unit = \"MHz\"",
        &["`gpu.launch`", "wrong unit `MHz`", "us, ns, ms, s"],
    );
    assert_says("value = 10, unit = \"us\"", "value = 10, unit = \"uS\"", &["did you mean `us`"]);
    assert_says("unit = \"GiB\"", "unit = \"Gib\"", &["`ram`", "did you mean `GiB`"]);
}

#[test]
fn a_missing_key_is_named_at_its_table() {
    // The line is that of the inline table for its own keys.
    assert_says("unit = \"GiB\", ", "", &["`ram.unit`", "missing key"]);
    // For a key of a section it is the section's header.
    let text = common::device_text();
    let header = 1 + text.lines().position(|line| line == "[dram]").unwrap();
    let without = text.replacen("technology = \"test\"\n", "", 1);
    let message = Device::parse("round", "round.toml", &without).unwrap_err().to_string();
    assert!(message.starts_with(&format!("round.toml:{header}: `dram.technology`: missing key")), "{message}");
    let text = text.replacen("soc = \"test\"\n", "", 1);
    let message = Device::parse("round", "round.toml", &text).unwrap_err().to_string();
    assert!(message.starts_with("round.toml:1: `soc`: missing key"), "{message}");
}

#[test]
fn a_wrong_type_kind_or_class_is_named() {
    assert_says("name = \"Round\"", "name = 3", &["`name`", "expected text", "integer"]);
    assert_says("value = 4,", "value = \"4\",", &["`ram.value`", "a decimal number", "string"]);
    assert_says(
        "{ value = 4, unit = \"GiB\", kind = \"estimated\", source = \"test\" }",
        "4",
        &["`ram`", "value, unit, kind, source"],
    );
    assert_says(
        "kind = \"estimated\"",
        "kind = \"estimate\"",
        &["`ram.kind`", "did you mean `estimated`", "datasheet, measured, fitted"],
    );
    assert_says("class = \"little\"", "class = \"litle\"", &["`cpu.1.class`", "did you mean `little`"]);
    assert_says("value = [500, 1500, 2000]", "value = 500", &["`dvfs.0.frequency.value`", "an array"]);
}

#[test]
fn unknown_keys_and_what_is_wrong_first_are_named_in_the_order_of_the_file() {
    let text = common::device_text();
    let text = text.replacen("soc =", "sok =", 1).replacen("class = \"little\"", "class = \"tiny\"", 1);
    let message = Device::parse("round", "round.toml", &text).unwrap_err().to_string();
    let fields: Vec<&str> = message.lines().map(|line| line.split('`').nth(1).unwrap()).collect();
    // The missing `soc` is not reported: `sok` is a misspelling of it.
    assert_eq!(fields, ["sok", "cpu.1.class"], "{message}");
}

#[test]
fn a_number_that_makes_no_sense_is_out_of_range() {
    assert_says(
        "value = 0.5, unit = \"fraction\"",
        "value = 50, unit = \"fraction\"",
        &["`dram.achievable.value`", "50 is out of range", "0 to 1"],
    );
    assert_says("value = 4, unit = \"GiB\"", "value = -4, unit = \"GiB\"", &["expected a number from 0 to 3.72529e6"]);
    assert_says("value = 4, unit = \"GiB\"", "value = nan, unit = \"GiB\"", &["out of range"]);
}

#[test]
fn contradictions_and_zeroes_are_refused() {
    let message = |old: &str, new: &str| broken(old, new).0;
    assert!(message("[500, 1500, 2000]", "[500, 1500]").contains("2 frequencies and 3 powers"));
    assert!(message("[500, 1500, 2000]", "[500, 500, 2000]").contains("do not rise"));
    assert!(message("core = \"B\"\nrun", "core = \"A\"\nrun").contains("no [[cpu]] cluster has the core `A`"));
    assert!(message("[500, 1500, 2000]", "[0, 1500, 2000]").contains("B has an operating point at zero"));
    assert!(
        message("value = 100, unit = \"FLOP/cycle\"", "value = 0, unit = \"FLOP/cycle\"").contains("fp32_rate is zero")
    );
    let upside_down = message("value = 1, unit = \"GHz\"", "value = 3, unit = \"GHz\"");
    assert!(upside_down.contains("frequency_lowest of B, 3000 MHz, is above its 2000 MHz"), "{upside_down}");
    let late = message("value = 65, unit = \"C\"", "value = 85, unit = \"C\"");
    assert!(late.contains("`thermal`: the governor's trip, 85 °C, is not below the limit, 85 °C"), "{late}");
    let cold = message("value = 40, unit = \"J/K\"", "value = 0, unit = \"J/K\"");
    assert!(cold.contains("chassis_capacity is zero"), "{cold}");
    let mut stored = common::device_with_storage(&[]);
    let message = stored.set("reserved_slots", 9.0).unwrap_err().to_string();
    assert!(message.contains("reserved_slots, 9, leaves none of the queue's 9 slots"), "{message}");
    for rate in ["sequential_read", "sustained_write", "random_write", "datasheet_read"] {
        let message = stored.set(rate, 0.0).unwrap_err().to_string();
        assert!(message.contains("`storage`") && message.contains(&format!("{rate} is zero")), "{message}");
    }
    let text = common::stack_text().replacen("value = 50, unit = \"%\"", "value = 0, unit = \"%\"", 1);
    let message = Stack::parse("round", "stack.toml", &text).unwrap_err().to_string();
    assert!(message.contains("stack.toml:") && message.contains("efficiency of convolution is zero"), "{message}");
    let mut stack = common::stack();
    assert!(stack.set("dsp.library.0.irregular_rate", 0.0).unwrap_err().to_string().contains("irregular_rate is zero"));
    let message = stack.set("library.0.product_efficiency", 0.0).unwrap_err().to_string();
    assert!(message.contains("product_efficiency is zero"), "{message}");
    assert!(stack.set("depth_padding", 0.5).unwrap_err().to_string().contains("depth_padding is below one"));
    let mut stack = load_stack("mnn-2").unwrap();
    let error = stack.set("codec.tokens.smooth", 0.9).unwrap_err().to_string();
    assert!(error.contains("`codec.tokens`: smooth is below one"), "{error}");
}

#[test]
fn text_that_is_not_toml_is_named_by_its_line() {
    let message = Device::parse("x", "x.toml", "name = \"a\"\nsoc = = 3\n").unwrap_err().to_string();
    assert!(message.starts_with("x.toml:2: not valid TOML"), "{message}");
}

#[test]
fn an_unknown_id_is_named_with_the_nearest_and_a_path_is_read() {
    let message = load("galaxy-s01").unwrap_err().to_string();
    assert!(
        message.contains("unknown device `galaxy-s01`") && message.contains("did you mean `galaxy-s10`"),
        "{message}"
    );
    let message = load_stack("sage-opncl").unwrap_err().to_string();
    assert!(message.contains("software stack") && message.contains("did you mean `sage-opencl`"), "{message}");
    let message = load_system("androit").unwrap_err().to_string();
    assert!(message.contains("operating system") && message.contains("did you mean `android`"), "{message}");
    assert!(load("no/such/phone.toml").unwrap_err().to_string().contains("no/such/phone.toml"));
    let path = std::env::temp_dir().join(format!("haversack-round-{}.toml", std::process::id()));
    std::fs::write(&path, common::device_text()).unwrap();
    let device = load(path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(device.unwrap().constants.name, "Round");
}
