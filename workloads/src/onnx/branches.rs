//! `If`: replaced by the branch that its condition chooses.

use super::{Fault, GraphProto, ModelProto, NodeProto, OnnxNode, Result};
use crate::Network;

/// The most `If` nodes of a file, as the graph is walked once more for each.
const MOST: usize = 64;

/// The branch that an `If` takes.
#[derive(Debug)]
pub(super) struct Branch {
    /// Its first output.
    output: String,
    taken: bool,
    /// The assumption that was made about the condition, if any.
    assumed: Option<String>,
}

impl Branch {
    /// The fault that stops the walk at `node` and requests its branch; the condition is `known` or assumed to be true.
    pub(super) fn of(node: &OnnxNode, known: Option<bool>) -> Fault {
        let assumed = format!("the condition of '{}' depends on the samples: it is taken as true", node.name);
        let assumed = known.is_none().then_some(assumed);
        let output = node.outputs.first().cloned().unwrap_or_default();
        let branch = Self { output, taken: known.unwrap_or(true), assumed };
        Fault(format!("more than {MOST} of these; expected no more"), Some(Box::new(branch)))
    }
}

/// The result of `import` for `model`, with the requested branches inlined.
pub(super) fn choose(
    mut model: ModelProto,
    import: impl Fn(ModelProto, &[String]) -> Result<Network>,
) -> Result<Network> {
    let is_plain = |graph: &GraphProto| graph.node.iter().all(|node| node.op_type != "If");
    let mut assumed = Vec::new();
    for _ in 0..MOST {
        if model.graph.as_ref().is_none_or(is_plain) {
            break;
        }
        match import(model.clone(), &assumed) {
            Err(Fault(message, Some(branch))) => {
                let graph = model.graph.as_mut();
                graph.and_then(|graph| put(graph, &branch)).ok_or_else(|| Fault::new(message))?;
                assumed.extend(branch.assumed);
            }
            done => return done,
        }
    }
    import(model, &assumed)
}

/// Replaces a node in `graph` by its branch; `None` if one of them does not exist.
fn put(graph: &mut GraphProto, branch: &Branch) -> Option<()> {
    let place = graph.node.iter().position(|node| node.op_type == "If" && node.output.contains(&branch.output))?;
    let name = if branch.taken { "then_branch" } else { "else_branch" };
    let node = graph.node.remove(place);
    let body = node.attribute.into_iter().find(|attribute| attribute.name == name)?.g?;
    let given = body.output.into_iter().zip(node.output).map(|(made, output)| NodeProto {
        op_type: "Identity".to_owned(),
        input: vec![made.name],
        output: vec![output],
        ..NodeProto::default()
    });
    graph.node.splice(place..place, body.node.into_iter().chain(given));
    graph.initializer.extend(body.initializer);
    Some(())
}
