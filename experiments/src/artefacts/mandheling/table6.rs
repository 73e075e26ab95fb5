//! Table 6: the operations and the convolutions of the six networks.

use haversack_workloads::counts::count;
use haversack_workloads::{Network as Layers, Op, models};

use crate::artefacts::prelude::*;
use crate::artefacts::sweep::swept;

fn convolutions(layers: &Layers) -> usize {
    layers.nodes.iter().filter(|node| matches!(node.op, Op::Convolution { .. })).count()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "convolutions,forward_gflop,training_gflop,flops", |scenario, _| {
        let layers = models::build(&scenario.model, scenario.input.as_ref().map(|input| input.0.as_slice()))?;
        let counts = count(&layers, 1);
        let gigaflops = [counts.forward_flops, counts.training_flops].map(|flops| flops as f64 * 1e-9);
        Ok((convolutions(&layers) as f64, gigaflops, counts.training_flops as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn convolutions_are_those_of_the_networks_names() {
        // VGG-n counts its layers with weights, three of them linear in the original head: n − 3 convolutions. ResNet-n
        // counts one linear layer and leaves out the convolutions of three shortcuts: n − 1 + 3.
        for (model, expected) in
            [("vgg11-cifar", 8), ("vgg16-cifar", 13), ("vgg19", 16), ("resnet34-cifar", 36), ("resnet18", 20)]
        {
            assert_eq!(convolutions(&models::build(model, None).unwrap()), expected, "{model}");
        }
    }
}
