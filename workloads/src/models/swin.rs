//! Swin-T (Liu et al., "Swin transformer", ICCV 2021) as torchvision builds it, with stochastic depth of
//! 0.2 by sample. Maps are channels-last; windows that do not fill the map are padded.
//!
//! At a batch of one, PyTorch's products read keys and values of a single window in place, so that the
//! last stage keeps its fused projections: there a map a block more than is counted here, 0.3 % in all.

use super::Built;
use super::blocks::{classifier, sizes};
use super::transformer::{fused_heads, join_heads, rows, scores};
use crate::operator::Part;
use crate::{Addend, Initial, Network, Shape, Unary, ValueId, Window};

const WIDTH: u64 = 96;
const BLOCKS: [u64; 4] = [2, 2, 6, 2];
const HEADS: [u64; 4] = [3, 6, 12, 24];
/// Side of an attention window.
const SIDE: u64 = 7;
/// The probability of dropping a branch of the last block; it grows linearly from zero at the first.
const STOCHASTIC_DEPTH: f32 = 0.2;

pub(super) fn swin_t(n: &mut Network, input: &[u64], classes: u64) -> Built {
    let x = n.input(input);
    let x = n.convolution("features.0.0", x, WIDTH, Window::square(4, 4, 0), 1, true)?;
    let x = n.permute("features.0.1", x, &[0, 2, 3, 1])?;
    let mut x = n.layer_norm("features.0.2", x, true);
    let last = (BLOCKS.iter().sum::<u64>() - 1) as f32;
    let mut blocks_before = 0;
    for (stage, (blocks, heads)) in BLOCKS.into_iter().zip(HEADS).enumerate() {
        if stage > 0 {
            x = merge_patches(n, &format!("features.{}", 2 * stage), x)?;
        }
        for block in 0..blocks {
            let name = format!("features.{}.{block}", 2 * stage + 1);
            let drop = STOCHASTIC_DEPTH * blocks_before as f32 / last;
            x = transformer_block(n, &name, x, heads, block % 2 == 1, drop)?;
            blocks_before += 1;
        }
    }
    let x = n.layer_norm("norm", x, true);
    let x = n.permute("permute", x, &[0, 3, 1, 2])?;
    let x = n.adaptive_average_pool("avgpool", x, 1)?;
    let x = n.flatten("flatten", x)?;
    classifier(n, "head", x, classes)
}

fn transformer_block(n: &mut Network, name: &str, x: ValueId, heads: u64, shifted: bool, drop: f32) -> Built<ValueId> {
    let stochastic_depth = |n: &mut Network, part: &str, y| {
        if drop > 0.0 { n.unary(&format!("{name}.stochastic_depth_{part}"), y, Unary::DropPath(drop)) } else { y }
    };
    let width = n.shape(x).last();
    let y = n.layer_norm(&format!("{name}.norm1"), x, true);
    let y = window_attention(n, &format!("{name}.attn"), y, heads, shifted)?;
    let y = stochastic_depth(n, "attn", y);
    let x = n.add(&format!("{name}.add_attention"), x, y)?;
    let y = n.layer_norm(&format!("{name}.norm2"), x, true);
    let y = n.linear(&format!("{name}.mlp.0"), y, 4 * width, true)?;
    let y = n.unary(&format!("{name}.mlp.1"), y, Unary::Gelu);
    let y = n.linear(&format!("{name}.mlp.3"), y, width, true)?;
    let y = stochastic_depth(n, "mlp", y);
    n.add(&format!("{name}.add_mlp"), x, y)
}

/// Attention inside windows of `SIDE`×`SIDE` positions, which every other block shifts by half a window.
fn window_attention(n: &mut Network, name: &str, x: ValueId, heads: u64, shifted: bool) -> Built<ValueId> {
    let [height, width, channels] = sizes(n, x);
    let [down, across] = [height, width].map(|side| side.div_ceil(SIDE));
    let (windows, positions) = (down * across, SIDE * SIDE);
    // An axis with a single window is not shifted.
    let rolls = shifted && windows > 1;

    let bias = relative_position_bias(n, &format!("{name}.relative_position_bias"), heads)?;
    let mut x = n.pad(&format!("{name}.pad"), x, Shape::batched(&[down * SIDE, across * SIDE, channels]));
    if rolls {
        let back = |windows: u64| if windows > 1 { windows * SIDE - SIDE / 2 } else { 0 };
        x = n.roll(&format!("{name}.roll"), x, &[0, back(down), back(across), 0]);
    }
    let partition = format!("{name}.partition");
    x = n.reshape(&partition, x, Shape::batched(&[down, SIDE, across, SIDE, channels]))?;
    x = n.permute(&partition, x, &[0, 1, 3, 2, 4, 5])?;
    x = n.reshape(&partition, x, rows(windows, &[positions, channels]))?;

    let fused = n.linear(&format!("{name}.qkv"), x, 3 * channels, true)?;
    let mut third = |part: &str, third| fused_heads(n, &format!("{name}.{part}"), fused, third, heads);
    let (query, key, value) = (third("query", 0), third("key", 1), third("value", 2));
    let query = n.unary(&format!("{name}.scale"), query, Unary::Scale(1.0 / ((channels / heads) as f32).sqrt()));
    let weights = scores(n, &format!("{name}.scores"), query, key)?;
    let mut weights = n.add(&format!("{name}.add_bias"), weights, bias)?;
    if rolls {
        // The mask keeps apart what the shift brought together.
        weights = n.unary(&format!("{name}.mask"), weights, Unary::AddConstant(Addend::Tensor));
    }
    let weights = n.softmax(&format!("{name}.softmax"), weights);
    let context = n.matmul(&format!("{name}.context"), weights, value)?;
    let context = join_heads(n, &format!("{name}.context"), context)?;
    let mut x = n.linear(&format!("{name}.proj"), context, channels, true)?;

    let reverse = format!("{name}.reverse");
    x = n.reshape(&reverse, x, Shape::batched(&[down, across, SIDE, SIDE, channels]))?;
    x = n.permute(&reverse, x, &[0, 1, 3, 2, 4, 5])?;
    x = n.reshape(&reverse, x, Shape::batched(&[down * SIDE, across * SIDE, channels]))?;
    if rolls {
        let forth = |windows: u64| if windows > 1 { SIDE / 2 } else { 0 };
        x = n.roll(&format!("{name}.unroll"), x, &[0, forth(down), forth(across), 0]);
    }
    if [height, width] != [down * SIDE, across * SIDE] {
        x = n.slice(&format!("{name}.crop"), x, Part::whole(4), Shape::batched(&[height, width, channels]), false);
        x = n.contiguous(&format!("{name}.crop"), x);
    }
    Ok(x)
}

/// A trained bias for each head and pair of positions, looked up by their distance.
fn relative_position_bias(n: &mut Network, name: &str, heads: u64) -> Built<ValueId> {
    let (distances, positions) = (2 * SIDE - 1, SIDE * SIDE);
    let table = n.weight(&format!("{name}_table"), &[distances * distances, heads], Initial::of_transformer(), true);
    let pairs = positions * positions;
    let index = Initial::RelativePositions { side: SIDE };
    let ids = n.id_buffer(&format!("{name}_index"), &[pairs], pairs, index);
    let bias = n.index_table(name, ids, table, Shape::fixed(&[pairs, heads]));
    let bias = n.reshape(name, bias, Shape::fixed(&[positions, positions, heads]))?;
    let bias = n.permute(name, bias, &[2, 0, 1])?;
    let bias = n.contiguous(name, bias);
    n.reshape(name, bias, Shape::fixed(&[1, heads, positions, positions]))
}

/// Every 2×2 positions become one of twice the channels.
fn merge_patches(n: &mut Network, name: &str, x: ValueId) -> Built<ValueId> {
    let [height, width, channels] = sizes(n, x);
    let [down, across] = [height, width].map(|side| side.div_ceil(2));
    let x = n.pad(&format!("{name}.pad"), x, Shape::batched(&[2 * down, 2 * across, channels]));
    let corner = Shape::batched(&[down, across, channels]);
    // Above left, below left, above right, below right.
    let corners = [0, 1, 2, 3].map(|i| {
        let part = Part::whole(4).from(1, i % 2, 2).from(2, i / 2, 2);
        n.slice(&format!("{name}.corner.{i}"), x, part, corner.clone(), false)
    });
    let x = n.concat(&format!("{name}.cat"), &corners, 3)?;
    let x = n.layer_norm(&format!("{name}.norm"), x, true);
    n.linear(&format!("{name}.reduction"), x, 2 * channels, false)
}
