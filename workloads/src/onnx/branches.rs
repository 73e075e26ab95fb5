//! `If`: the branch that its condition chooses stands in its place.

use super::{Fault, GraphProto, ModelProto, NodeProto, OnnxNode, Result};
use crate::Network;

/// Nodes `If` of a file beyond which it is refused: it is walked once more for each.
const MOST: usize = 64;

/// Which branch an `If` takes.
#[derive(Debug)]
pub(super) struct Branch {
    /// Its first output.
    output: String,
    taken: bool,
    /// What had to be assumed.
    assumed: Option<String>,
}

impl Branch {
    /// What stops the walk at `node`, whose condition is `known` or not.
    pub(super) fn of(node: &OnnxNode, known: Option<bool>) -> Fault {
        let assumed = format!("the condition of '{}' hangs on the samples: it is taken as true", node.name);
        let assumed = known.is_none().then_some(assumed);
        let output = node.outputs.first().cloned().unwrap_or_default();
        let branch = Self { output, taken: known.unwrap_or(true), assumed };
        Fault(format!("more than {MOST} of these; expected no more"), Some(Box::new(branch)))
    }
}

/// What `import` makes of `model`, with the branches that it asks for in the place of their nodes.
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

/// Puts a branch in the place of its node in `graph`; `None` where there is none.
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
