//! What to tell of an operator that cannot be imported: those of its family that can, and how to go on.

use haversack_devices::text::nearest;

use super::Fault;

/// Operators of one kind.
struct Family {
    /// What they are called together.
    name: &'static str,
    /// Parts of names by which one is known to belong here.
    marks: &'static [&'static str],
    /// What a user can do about one that is not supported.
    advice: &'static str,
}

const FAMILIES: &[Family] = &[
    Family {
        name: "control flow",
        marks: &["If", "Loop", "Scan", "Sequence", "Optional"],
        advice: "export by tracing, with the branches and the number of turns that training takes",
    },
    Family {
        name: "quantised operators",
        marks: &["Quantize", "QLinear", "Integer"],
        advice: "export the network in floating point; `--precision int8` trains it in integers",
    },
    Family {
        name: "convolutions",
        marks: &["Conv", "Col2Im"],
        advice: "write it in the network as one of these, or leave it out of the export",
    },
    Family {
        name: "pooling",
        marks: &["Pool", "RoiAlign"],
        advice: "write it in the network as one of these, or leave it out of the export",
    },
    Family { name: "reductions", marks: &["Reduce", "Arg"], advice: "write it in the network as one of these" },
    Family {
        name: "normalisations",
        marks: &["Normalization", "LRN"],
        advice: "write it in the network as one of these, or export it in parts",
    },
    Family { name: "recurrent layers", marks: &["LSTM", "GRU", "RNN"], advice: "write its steps out in the network" },
    Family {
        name: "look-ups and scatters",
        marks: &["Gather", "Scatter", "TopK", "NonZero", "OneHot", "Unique", "Compress", "NonMax"],
        advice: "what depends on the data's values is left out of the export, behind the scores that are trained",
    },
    Family {
        name: "random numbers",
        marks: &["Random", "Bernoulli", "Multinomial"],
        advice: "write it in the network as one of these",
    },
    Family {
        name: "activations",
        marks: &["Relu", "Swish", "Sigmoid", "elu", "Elu", "Soft", "Shrink", "Hard", "Mish", "Tanh"],
        advice: "write it in the network as one of these, or in their parts",
    },
];

/// The fault of a node of the unsupported `operator`, where those of `supported` are.
pub(super) fn unsupported(operator: &str, supported: &[&str]) -> Fault {
    let plain = operator.rsplit('.').next().unwrap_or(operator);
    let family = FAMILIES.iter().find(|family| family.marks.iter().any(|mark| belongs(plain, mark)));
    let siblings = |family: &Family| {
        let is_of_it = |name: &&&str| family.marks.iter().any(|mark| belongs(name, mark));
        supported.iter().filter(is_of_it).copied().collect::<Vec<_>>().join(", ")
    };
    let (near, advice) = match family {
        Some(family) => match siblings(family) {
            none if none.is_empty() => (format!("; no {} are", family.name), family.advice),
            names => (format!("; of {} these are: {names}", family.name), family.advice),
        },
        None => {
            let near = nearest(plain, supported.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("; the nearest that are: {near}"));
            (near, "write it in the network by operators that are, or leave it out of the export")
        }
    };
    Fault::new(format!(
        "the operator '{operator}' is not supported{near}; to go on, {advice} (`haversack list operators` has all)"
    ))
}

/// Whether an operator's name shows `mark`: short marks are whole names.
fn belongs(name: &str, mark: &str) -> bool {
    const SHORT: usize = 3;
    if mark.len() < SHORT || mark == "Scan" { name == mark } else { name.contains(mark) }
}
