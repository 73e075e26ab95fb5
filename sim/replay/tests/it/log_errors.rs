//! Errors of faulty logs: the file, the line, the field, and the expected content.

use haversack_replay::{Heuristic, Log, replay};
use proptest::prelude::*;

const START: &str = r#"{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}"#;
const CONSTANT: &str = r#"{"INSTRUCTION":"CONSTANT","NAME":"w"}"#;
const MEMORY: &str = r#"{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"8"}"#;
const CALL: &str = r#"{"INSTRUCTION":"CALL","NAME":"f","ARGS":["w"],"RESULT":["y"],"TIME":"7"}"#;
const CALL_MEMORY: &str = r#"{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"8"}"#;
const CALL_ALIAS: &str = r#"{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}"#;

/// The message for a log whose lines are START, CONSTANT, MEMORY and these.
fn fault(lines: &[&str]) -> String {
    let text = [&[START, CONSTANT, MEMORY], lines].concat().join("\n");
    Log::parse("net.log", text).unwrap_err().to_string()
}

#[test]
fn a_sound_log_is_accepted() {
    let text = [START, CONSTANT, MEMORY, CALL, CALL_MEMORY, CALL_ALIAS].join("\n");
    let log = Log::parse("net.log", text).unwrap();
    assert_eq!((log.operators(), log.tensors(), log.storages()), (2, 2, 2));
    // Numbers may be numbers, unbound names may be released, lines may be blank, and anything before
    // START is not part of the log.
    let text = format!(
        "{MEMORY}\n{START}\r\n\n{CONSTANT}\n{MEMORY}\n{}\n{CALL_MEMORY}\n{}\n{}\n",
        CALL.replace("\"7\"", "7"),
        CALL_ALIAS.replace("\"-1\"", "0"),
        r#"{"INSTRUCTION":"RELEASE","NAME":"elsewhere"}"#
    );
    let log = Log::parse("net.log", text).unwrap();
    assert_eq!((log.tensors(), log.storages()), (2, 1));
}

#[test]
fn broken_lines_are_named() {
    assert_eq!(
        fault(&[r#"{"INSTRUCTION":"CALL","ARGS":["#]),
        "net.log:4: expected a JSON object: EOF while parsing a list at column 30"
    );
    assert!(fault(&["[1]"]).starts_with("net.log:4: expected a JSON object: invalid type: sequence"));
    let text = [START.as_bytes(), b"\n{\"NAME\":\"\xff\"}"].concat();
    assert_eq!(
        Log::parse("net.log", text).unwrap_err().to_string(),
        "net.log:2: not UTF-8 from byte 10 of the line; expected a JSON object"
    );
    // Deep nesting is a separate error, not a stack overflow.
    assert!(fault(&[&"[".repeat(100_000)]).starts_with("net.log:4: expected a JSON object"));
}

#[test]
fn instructions_and_fields_are_checked() {
    assert_eq!(
        fault(&[r#"{"INSTRUCTION":"MUTATED"}"#]),
        "net.log:4: field INSTRUCTION: unknown instruction 'MUTATED'; did you mean 'MUTATE'?"
    );
    assert_eq!(fault(&[r#"{"NAME":"w"}"#]), "net.log:4: line: field INSTRUCTION is missing; expected a string");
    assert_eq!(
        fault(&[r#"{"INSTRUCTION":"CALL","ARGS":["w"],"RESULT":["y"]}"#]),
        "net.log:4: CALL: field TIME is missing; expected a whole number of nanoseconds"
    );
    for (bad, found) in [("\"-7\"", "\"-7\""), ("\"7.5\"", "\"7.5\""), ("\"soon\"", "\"soon\""), ("-7", "-7")] {
        assert_eq!(
            fault(&[&CALL.replace("\"7\"", bad)]),
            format!("net.log:4: field TIME: expected a whole number of nanoseconds, found {found}")
        );
    }
    assert_eq!(
        fault(&[CALL, &CALL_MEMORY.replace("\"8\"", "\"-8\"")]),
        "net.log:5: field MEMORY: expected a whole number of bytes, found \"-8\""
    );
    assert_eq!(
        fault(&[&CALL.replace("[\"w\"]", "\"w\"")]),
        "net.log:4: field ARGS: expected a list of tensor names, found \"w\""
    );
    assert_eq!(
        fault(&[&CALL.replace("[\"y\"]", "[]")]),
        "net.log:4: field RESULT: the operator has no output; expected at least one"
    );
}

#[test]
fn the_lines_after_an_operator_are_checked() {
    let missing = |found: &str| format!("net.log:5: expected a MEMORY line for 'y', found {found}");
    assert_eq!(fault(&[CALL]), missing("the end of the log"));
    assert_eq!(fault(&[CALL, CALL_ALIAS]), missing("ALIAS"));
    assert_eq!(fault(&[CALL, MEMORY]), missing("one for 'w' in field NAME"));
    assert_eq!(fault(&[CALL, CALL_MEMORY, CALL]), "net.log:6: expected an ALIAS line for 'y', found CALL");
    assert_eq!(
        fault(&[CALL, CALL_MEMORY, &CALL_ALIAS.replace("-1", "1")]),
        "net.log:6: field ALIAS: index 1 is out of range; expected -1 or an index below 1, the number of arguments"
    );
    assert_eq!(fault(&[MEMORY]), "net.log:4: MEMORY line without a CALL or CONSTANT before it");
    assert_eq!(
        fault(&[r#"{"INSTRUCTION":"MUTATE","NAME":"f_","ARGS":["w"],"MUTATE":[3],"TIME":"1"}"#]),
        "net.log:4: field MUTATE: index 3 is out of range; expected an index below 1, the number of arguments"
    );
}

#[test]
fn unknown_tensors_are_named_with_the_nearest() {
    let constants = [r#"{"INSTRUCTION":"CONSTANT","NAME":"weight"}"#, &MEMORY.replace("\"w\"", "\"weight\"")];
    let call = CALL.replace("[\"w\"]", "[\"wieght\"]");
    assert_eq!(
        fault(&[constants[0], constants[1], &call, CALL_MEMORY, CALL_ALIAS]),
        "net.log:6: field ARGS: unknown tensor 'wieght' (did you mean 'weight'?); \
         expected the name of a CONSTANT, a RESULT or a DST"
    );
    assert_eq!(
        fault(&[r#"{"INSTRUCTION":"COPY","DST":"a","SRC":"q"}"#]),
        "net.log:4: field SRC: unknown tensor 'q'; expected the name of a CONSTANT, a RESULT or a DST"
    );
}

#[test]
fn logs_that_hold_nothing_are_refused() {
    let refused = |text: &str| Log::parse("net.log", text).unwrap_err().to_string();
    assert_eq!(refused(""), "net.log: the log is empty; expected one JSON instruction per line");
    assert_eq!(
        refused(CONSTANT),
        r#"net.log: no line starts the log; expected {"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}"#
    );
    assert_eq!(
        refused(START),
        "net.log: no operator after START takes time; expected at least one CALL or MUTATE with a positive TIME"
    );
    let missing = Log::read("no/such.log").unwrap_err().to_string();
    assert!(missing.starts_with("no/such.log: "), "{missing}");
}

#[test]
fn totals_past_exactness_are_refused() {
    let huge = format!("\"{}\"", u64::MAX);
    assert_eq!(
        fault(&[CALL, &CALL_MEMORY.replace("\"8\"", &huge), CALL_ALIAS]),
        "net.log:4: field MEMORY: the log's total passes 9007199254740992, the most that is counted exactly"
    );
    assert!(fault(&[&CALL.replace("\"7\"", &huge), CALL_MEMORY, CALL_ALIAS]).contains("field TIME"));
}

proptest! {
    /// Reading and replaying terminate for any text cut out of or inserted into a log.
    #[test]
    fn a_damaged_log_never_panics(
        cuts in prop::collection::vec((0usize..1_000, 1usize..3), 0..4),
        bytes in prop::collection::vec((0usize..20_000, any::<u8>()), 0..2),
        ratio in 0.1f64..1.2,
    ) {
        let sound = include_str!("../data/synthetic_logs/syn1.log");
        let mut lines: Vec<&str> = sound.lines().collect();
        for (place, count) in cuts {
            let at = 1 + place % (lines.len() - 4);
            lines.drain(at..at + count);
        }
        let mut text = lines.join("\n").into_bytes();
        for (place, byte) in bytes {
            let at = place % text.len();
            text[at] = byte;
        }
        if let Ok(log) = Log::parse("damaged.log", text) {
            for heuristic in Heuristic::ALL {
                prop_assert!(replay(&log, heuristic, ratio, 4.0).is_ok());
            }
        }
    }
}
