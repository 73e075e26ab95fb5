//! `phrases`: generated sequences of tokens whose class depends on the order of the tokens.
//!
//! Every phrase states two facts, spread over fillers without meaning. *Who acts*: a name of one group and a name of
//! the other; the first acts. *The speaker's judgement*: a word of praise or of blame, reversed by a negation before
//! it; a negation after it changes nothing. The class combines the group that acts with the judgement, good or bad:
//! four classes. The tokens without their order do not determine it.
//!
//! Everything is drawn as integers, so that the bytes are the same on every machine.

use std::ops::Range;

use super::augmentation::Draws;
use super::set::{Content, DataSet, SampleForm, Samples};

/// The number of tokens of a phrase.
pub const LENGTH: usize = 32;

/// The number of different tokens; 0 is reserved for padding, which no phrase has, and 1 begins every phrase.
pub const VOCABULARY: usize = 64;

/// The number of classes.
pub const CLASSES: usize = 4;

/// The numbers of phrases to train on, to choose on and to report on.
const PARTS: [usize; 3] = [8000, 1000, 2000];

/// Another seed would be another set.
const SEED: u64 = 20;

const START: u16 = 1;

/// Tokens of one kind.
type Kind = Range<u16>;

const NAMES: [Kind; 2] = [2..6, 6..10];
const BLAME: Kind = 10..13;
const PRAISE: Kind = 13..16;
const NEGATION: Kind = 16..18;
const FILLERS: Kind = 18..64;

/// Of 100 phrases, the number with a negation before the judgement, and the number with one after it.
const NEGATED_PERCENT: u32 = 30;
const UNTOUCHED_PERCENT: u32 = 30;

/// Labels per 100 that are replaced by a random draw, whatever the phrase.
const NOISE_PERCENT: u32 = 2;

/// The set.
pub fn data_set() -> DataSet {
    of("phrases", part(0, PARTS[0]))
}

/// As many other phrases to train on, for a network that learns the language before it learns the set; the validation
/// and test parts are those of the set.
pub fn more() -> DataSet {
    let first = PARTS.iter().sum::<usize>() as u64;
    of("more-phrases", part(first, PARTS[0]))
}

fn of(id: &str, train: Samples) -> DataSet {
    let [first, validation, test] = PARTS;
    let (validation, test) = (part(first as u64, validation), part((first + validation) as u64, test));
    DataSet {
        id: id.to_owned(),
        description: "sequences of 32 tokens made by code: who acts, and with what judgement".to_owned(),
        number_of_classes: CLASSES,
        form: SampleForm::Tokens { length: LENGTH, vocabulary: VOCABULARY },
        train,
        validation,
        test,
    }
}

fn part(first: u64, number: usize) -> Samples {
    let (ids, labels): (Vec<_>, Vec<_>) = (first..first + number as u64).map(phrase).unzip();
    Samples { content: Content::Tokens(ids.concat()), labels }
}

/// Phrase number `index` and its class.
fn phrase(index: u64) -> ([u16; LENGTH], u16) {
    let mut draws = Draws::new(SEED, "phrases", index);
    let mut tokens = [START; LENGTH];
    for token in &mut tokens[1..] {
        *token = one_of(&mut draws, FILLERS);
    }
    let acting = relation(&mut draws);
    let judgement = judgement(&mut draws);
    let mut places: Vec<usize> = (1..LENGTH).collect();
    draws.shuffle(&mut places);
    let (first, second) = places.split_at_mut(acting.tokens.len());
    put(&mut tokens, first, &acting.tokens);
    put(&mut tokens, &mut second[..judgement.tokens.len()], &judgement.tokens);
    let label =
        if draws.chance(NOISE_PERCENT) { draws.below(CLASSES as u32) as u16 } else { 2 * acting.says + judgement.says };
    (tokens, label)
}

/// Tokens in their order, and the bit that they encode.
struct Saying {
    tokens: Vec<u16>,
    says: u16,
}

fn relation(draws: &mut Draws) -> Saying {
    let first = draws.below(2) as usize;
    let tokens = [first, 1 - first].map(|name| one_of(draws, NAMES[name].clone())).to_vec();
    Saying { tokens, says: first as u16 }
}

fn judgement(draws: &mut Draws) -> Saying {
    let good = draws.below(2) as u16;
    let mut tokens = vec![one_of(draws, if good == 1 { PRAISE } else { BLAME })];
    let chance = draws.below(100);
    let negated = chance < NEGATED_PERCENT;
    if negated {
        tokens.insert(0, one_of(draws, NEGATION));
    } else if chance < NEGATED_PERCENT + UNTOUCHED_PERCENT {
        tokens.push(one_of(draws, NEGATION));
    }
    Saying { tokens, says: good ^ u16::from(negated) }
}

fn one_of(draws: &mut Draws, kind: Kind) -> u16 {
    kind.start + draws.below(kind.len() as u32) as u16
}

/// Puts `said` at `places` from left to right.
fn put(tokens: &mut [u16], places: &mut [usize], said: &[u16]) {
    places.sort_unstable();
    for (&place, &token) in places.iter().zip(said) {
        tokens[place] = token;
    }
}
