//! Table 6: the operations and the convolutions of the six networks.

use haversack_workloads::counts::count;
use haversack_workloads::{Network as Layers, Op, models};

use super::setting::{MandhelingNetwork, NETWORKS};
use crate::artefacts::prelude::*;
use crate::scenario::InputShape;

/// The layers of `network`, InceptionV3 at the input that the reading declares.
pub(super) fn layers(context: &Context<'_>, network: MandhelingNetwork) -> Result<Layers> {
    let input: Option<InputShape> = match network.model {
        "inceptionv3" => Some(context.reading_text("inception-input")?.parse()?),
        _ => None,
    };
    Ok(models::build(network.model, input.as_ref().map(|input| input.0.as_slice()))?)
}

fn convolutions(layers: &Layers) -> usize {
    layers.nodes.iter().filter(|node| matches!(node.op, Op::Convolution { .. })).count()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("network,data_set,convolutions,forward_gflop,training_gflop,paper_gflop");
    let mut grid = Grid::default();
    for network in NETWORKS {
        let layers = layers(context, network)?;
        let (counts, convolutions) = (count(&layers, 1), convolutions(&layers) as f64);
        let (name, data) = network.id;
        let mut given = Vec::new();
        for (metric, value, scale) in
            [("flops", counts.training_flops as f64, 1e-9), ("convolutions", convolutions, 1.0)]
        {
            let id = format!("mandheling/table6/{name}/{data}/{metric}");
            let paper = context.paper(&id)?.map(|paper| paper * scale);
            outcome.number(id, value);
            grid.put([network.name, SIMULATED, metric], Some(value * scale), paper);
            given.push(paper);
        }
        let gigaflops = [counts.forward_flops, counts.training_flops].map(|flops| flops as f64 * 1e-9);
        outcome.row((network.name, data, convolutions, gigaflops, given[0]))?;
    }
    outcome.bars("", grid.bars("flops"), axis("operations", "GFLOP").log());
    outcome.bars("", grid.bars("convolutions"), Axis::new("convolutions"));
    Ok(outcome)
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
