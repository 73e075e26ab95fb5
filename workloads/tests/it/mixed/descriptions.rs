//! Descriptions of algorithms: their fields, and the errors.

use super::*;

const NITI: &str = include_str!("../../../algorithms/niti.toml");

/// The error for NITI with `from` replaced, and the line of the replacement.
fn fault(from: &str, to: &str) -> (String, usize) {
    let at = NITI.find(from).unwrap();
    let line = 1 + NITI[..at].matches('\n').count();
    let error = Algorithm::parse("own.toml", &NITI.replacen(from, to, 1)).unwrap_err();
    (error.to_string(), line)
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    for (from, to, words) in [
        (
            "rotates_weight =",
            "rotate_weight =",
            vec!["`backpropagation.rotate_weight`: unknown key", "did you mean `rotates_weight`?"],
        ),
        ("update = \"int8\"", "update = \"fp23\"", vec!["unknown value `fp23`", "int8, fp32, fp24", "did you mean"]),
        ("\"max_pool\"", "\"maxpool\"", vec!["unknown value `maxpool`", "did you mean `max_pool`?"]),
        ("[weight]", "[weights]", vec!["`weights`: unknown key", "did you mean `weight`?"]),
        ("\"input_gradient\"", "\"inputs_gradient\"", vec!["forward", "did you mean `input_gradient`?"]),
    ] {
        let (message, line) = fault(from, to);
        assert!(message.starts_with(&format!("own.toml:{line}: ")), "{message}");
        for word in words {
            assert!(message.contains(word), "{word} in {message}");
        }
    }
}

#[test]
fn what_is_missing_or_of_another_type_is_named() {
    let (message, _) = fault("rotates_weight = true\n", "");
    assert!(
        message.starts_with("own.toml:") && message.contains("`backpropagation.rotates_weight`: missing key"),
        "{message}"
    );
    let (message, line) = fault("rotates_weight = true", "rotates_weight = 1");
    assert!(message.starts_with(&format!("own.toml:{line}: ")) && message.contains("expected a boolean"), "{message}");
    let (message, line) = fault("id = \"niti\"", "id = ");
    assert!(message.starts_with(&format!("own.toml:{line}: ")), "{message}");
}

#[test]
fn an_operator_has_one_translation_that_it_can_have() {
    let (message, line) = fault("fp32 = [", "fp32 = [\"relu\", ");
    let expected = format!("own.toml:{line}: `translation.fp32`: `relu` is already in `translation.int8`");
    assert_eq!(message, expected);
    let (message, _) = fault("absent = [", "absent = [\"max_unpool\", ");
    assert!(message.contains("did you mean `max_pool`?"), "{message}");
    let (message, _) = fault("absent = [", "absent = [\"gelu\", ");
    assert!(message.contains("expected one of `batch_norm`, `layer_norm`, found `gelu`"), "{message}");
    let (message, line) = fault("int8 = [", "int8 = [\"softmax\", ");
    let expected = format!("own.toml:{line}: `translation.int8`: expected an operator on integers, found `softmax`");
    assert_eq!(message, expected);
}

#[test]
fn ids_that_are_unknown_are_refused_with_the_nearest() {
    let message = mixed::algorithm("nitti").unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown algorithm 'nitti'; did you mean 'niti'?; expected one of niti, octo, adaptive-fixed-point, wageubn, mls"
    );
    assert_eq!(mixed::algorithm("mls").unwrap().name, "MLS Format");
}

#[test]
fn a_network_without_a_loss_has_no_iteration() {
    let mut network = Network::new("headless");
    network.input(&[1, 4, 4]);
    let error = mixed::rewrite(&network, mixed::algorithm("niti").unwrap(), Optimiser::Sgd).unwrap_err();
    assert_eq!(error.to_string(), "network 'headless' has no loss: nothing to differentiate");
}
