//! Whether every operator of a network is described well enough to be computed.

use super::{Network, OperatorNode};
use crate::error::Result;
use crate::{Addend, Copying, Mask, Op, Role, Unary, WorkloadError};

impl Network {
    /// Whether the network can be trained with data: every operator, parameter and buffer is described in full.
    ///
    /// # Errors
    /// The first operator that is not, with its module and the missing detail; a network without a loss, or a value
    /// without a layout.
    pub fn computable(&self) -> Result<()> {
        self.loss()?;
        self.layouts()?;
        self.nodes.iter().try_for_each(|node| match self.missing(node) {
            None => Ok(()),
            Some(missing) => {
                let (module, operator) = (&node.module, node.op.name());
                Err(WorkloadError::Refused(format!(
                    "{module}: {operator} cannot be computed with data: the network does not describe {missing}"
                )))
            }
        })
    }

    /// The detail that the description of `node` lacks.
    fn missing(&self, node: &OperatorNode) -> Option<&'static str> {
        let by_itself = match &node.op {
            Op::Unary { function: Unary::AddConstant(Addend::Tensor), .. } => Some("the numbers that are added"),
            Op::Unary { function: Unary::Where(Mask::Tensor), .. } => Some("the mask's numbers"),
            Op::Copy(Copying::Computed) => Some("how its integers are computed"),
            Op::Unary { function: Unary::Other(_), .. }
            | Op::TransposedConvolution { .. }
            | Op::Recurrent { .. }
            | Op::GroupNorm { .. }
            | Op::Pairwise(_)
            | Op::Reduce { .. }
            | Op::Take(_) => Some("arithmetic for its operator, which has counts alone"),
            Op::Convolution { window, .. } if window.dilation != [1, 1] => Some("a window whose taps are neighbours"),
            Op::Subtract => Some("a backward pass that turns the sign"),
            Op::IndexTable if node.parameters.len() > 1 => Some("how its weight is normalised"),
            Op::IndexTable if !self.looks_up_rows(node) => Some("rows that fill its output"),
            _ => None,
        };
        let unknown = |&parameter: &u32| !self.knows(self.parameter(parameter).storage);
        by_itself.or_else(|| {
            if node.parameters.iter().any(unknown) {
                return Some("the values of a weight: a file has to be imported with its values, and to hold them");
            }
            node.inputs.iter().find_map(|&input| self.unknown_source(self.value(input).storage))
        })
    }

    /// Why the content of an operand's storage is unknown, if it comes from outside and is not described.
    fn unknown_source(&self, storage: u32) -> Option<&'static str> {
        let inputs = || self.storages.iter().filter(|storage| storage.role == Role::Input);
        match self.storage(storage).role {
            Role::Buffer if !self.knows(storage) => Some("the numbers of a buffer that it reads"),
            Role::Input if inputs().count() > 1 => Some("which of several inputs the samples are"),
            _ => None,
        }
    }

    /// Whether the output has one row per id.
    fn looks_up_rows(&self, node: &OperatorNode) -> bool {
        let ids = self.shape(node.inputs[0]).elements();
        let made = self.shape(node.output).elements();
        let width = made.fixed.checked_div(ids.fixed).unwrap_or(0);
        made.per_sample == 0
            && width * ids.fixed == made.fixed
            && width > 0
            && self.parameter(node.parameters[0]).elements.is_multiple_of(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{self, MODELS};

    #[test]
    fn every_model_but_swin_and_those_with_rotary_positions_can_be_computed() {
        for model in MODELS.iter() {
            let found = models::build(model.id, None).unwrap().computable();
            match model.id {
                // The mask of its shifted windows is not described.
                "swin-t" => {
                    let error = found.unwrap_err().to_string();
                    assert!(error.contains("features.1.1.attn.mask") && error.contains("add_constant"), "{error}");
                }
                "qwen2-0.5b-lora" | "tinyllama-lora" => {
                    let error = found.unwrap_err().to_string();
                    assert!(error.contains("model.rotary_emb.cos"), "{error}");
                }
                id => assert!(found.is_ok(), "{id}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_difference_is_named() {
        let mut n = Network::new("difference");
        let x = n.input(&[4]);
        let a = n.linear("a", x, 4, false).unwrap();
        let b = n.linear("b", x, 4, false).unwrap();
        let x = n.subtract("minus", a, b).unwrap();
        assert!(matches!(n.computable(), Err(WorkloadError::NoLoss(_))));
        let target = n.target(1);
        n.cross_entropy("loss", x, target).unwrap();
        let error = n.computable().unwrap_err().to_string();
        assert!(error.contains("minus") && error.contains("add"), "{error}");
    }
}
