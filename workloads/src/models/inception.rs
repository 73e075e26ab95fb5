//! Inception v3 (Szegedy et al., "Rethinking the Inception architecture", CVPR 2016) as torchvision
//! builds it without the auxiliary classifier.

use super::Built;
use super::blocks::{Convolution, classifier};
use crate::{Network, ValueId, Window};

/// Added to the variance of every batch normalisation.
const EPSILON: f32 = 1e-3;

pub(super) fn inception_v3(n: &mut Network, input: &[u64], classes: u64) -> Built {
    let x = n.input(input);
    let x = basic(n, "Conv2d_1a_3x3", x, Convolution::square(32, 3, 2, 0))?;
    let x = basic(n, "Conv2d_2a_3x3", x, Convolution::square(32, 3, 1, 0))?;
    let x = basic(n, "Conv2d_2b_3x3", x, Convolution::square(64, 3, 1, 1))?;
    let x = n.max_pool("maxpool1", x, Window::square(3, 2, 0), false)?;
    let x = basic(n, "Conv2d_3b_1x1", x, Convolution::square(80, 1, 1, 0))?;
    let x = basic(n, "Conv2d_4a_3x3", x, Convolution::square(192, 3, 1, 0))?;
    let mut x = n.max_pool("maxpool2", x, Window::square(3, 2, 0), false)?;
    for (name, pooled) in [("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)] {
        x = block_a(n, name, x, pooled)?;
    }
    x = block_b(n, "Mixed_6a", x)?;
    for (name, narrow) in [("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)] {
        x = block_c(n, name, x, narrow)?;
    }
    x = block_d(n, "Mixed_7a", x)?;
    for name in ["Mixed_7b", "Mixed_7c"] {
        x = block_e(n, name, x)?;
    }
    let x = n.adaptive_average_pool("avgpool", x, 1)?;
    let x = n.dropout("dropout", x, 0.5);
    let x = n.flatten("flatten", x)?;
    classifier(n, "fc", x, classes)
}

/// A named 1×1 convolution.
const fn point(name: &str, channels: u64) -> (&str, Convolution) {
    (name, Convolution::square(channels, 1, 1, 0))
}

/// A named 3×3 convolution that keeps the size.
const fn around(name: &str, channels: u64) -> (&str, Convolution) {
    (name, Convolution::square(channels, 3, 1, 1))
}

/// A named 3×3 convolution that halves the size.
const fn halving(name: &str, channels: u64) -> (&str, Convolution) {
    (name, Convolution::square(channels, 3, 2, 0))
}

/// A named convolution over `kernel` positions in one row.
const fn row(name: &str, channels: u64, kernel: u64) -> (&str, Convolution) {
    let window = Window { kernel: [1, kernel], stride: [1, 1], padding: [0, kernel / 2], dilation: [1, 1] };
    (name, Convolution { channels, window, groups: 1 })
}

/// A named convolution over `kernel` positions in one column.
const fn column(name: &str, channels: u64, kernel: u64) -> (&str, Convolution) {
    let window = Window { kernel: [kernel, 1], stride: [1, 1], padding: [kernel / 2, 0], dilation: [1, 1] };
    (name, Convolution { channels, window, groups: 1 })
}

fn block_a(n: &mut Network, name: &str, x: ValueId, pooled: u64) -> Built<ValueId> {
    let five = ("branch5x5_2", Convolution::square(64, 5, 1, 2));
    let branches = [
        chain(n, name, x, &[point("branch1x1", 64)])?,
        chain(n, name, x, &[point("branch5x5_1", 48), five])?,
        chain(n, name, x, &[point("branch3x3dbl_1", 64), around("branch3x3dbl_2", 96), around("branch3x3dbl_3", 96)])?,
        pool_branch(n, name, x, pooled)?,
    ];
    n.concat(&format!("{name}.cat"), &branches, 1)
}

fn block_b(n: &mut Network, name: &str, x: ValueId) -> Built<ValueId> {
    let branches = [
        chain(n, name, x, &[halving("branch3x3", 384)])?,
        chain(n, name, x, &[point("branch3x3dbl_1", 64), around("branch3x3dbl_2", 96), halving("branch3x3dbl_3", 96)])?,
        n.max_pool(&format!("{name}.pool"), x, Window::square(3, 2, 0), false)?,
    ];
    n.concat(&format!("{name}.cat"), &branches, 1)
}

fn block_c(n: &mut Network, name: &str, x: ValueId, narrow: u64) -> Built<ValueId> {
    let single = [point("branch7x7_1", narrow), row("branch7x7_2", narrow, 7), column("branch7x7_3", 192, 7)];
    let double = [
        point("branch7x7dbl_1", narrow),
        column("branch7x7dbl_2", narrow, 7),
        row("branch7x7dbl_3", narrow, 7),
        column("branch7x7dbl_4", narrow, 7),
        row("branch7x7dbl_5", 192, 7),
    ];
    let branches = [
        chain(n, name, x, &[point("branch1x1", 192)])?,
        chain(n, name, x, &single)?,
        chain(n, name, x, &double)?,
        pool_branch(n, name, x, 192)?,
    ];
    n.concat(&format!("{name}.cat"), &branches, 1)
}

fn block_d(n: &mut Network, name: &str, x: ValueId) -> Built<ValueId> {
    let seven = [
        point("branch7x7x3_1", 192),
        row("branch7x7x3_2", 192, 7),
        column("branch7x7x3_3", 192, 7),
        halving("branch7x7x3_4", 192),
    ];
    let branches = [
        chain(n, name, x, &[point("branch3x3_1", 192), halving("branch3x3_2", 320)])?,
        chain(n, name, x, &seven)?,
        n.max_pool(&format!("{name}.pool"), x, Window::square(3, 2, 0), false)?,
    ];
    n.concat(&format!("{name}.cat"), &branches, 1)
}

fn block_e(n: &mut Network, name: &str, x: ValueId) -> Built<ValueId> {
    let one = chain(n, name, x, &[point("branch1x1", 320)])?;
    let three = chain(n, name, x, &[point("branch3x3_1", 384)])?;
    let three = fork(n, name, three, ["branch3x3_2a", "branch3x3_2b"])?;
    let double = chain(n, name, x, &[point("branch3x3dbl_1", 448), around("branch3x3dbl_2", 384)])?;
    let double = fork(n, name, double, ["branch3x3dbl_3a", "branch3x3dbl_3b"])?;
    let pool = pool_branch(n, name, x, 192)?;
    n.concat(&format!("{name}.cat"), &[one, three, double, pool], 1)
}

/// A row and a column convolution of the same input, joined.
fn fork(n: &mut Network, name: &str, x: ValueId, parts: [&str; 2]) -> Built<ValueId> {
    let halves = [chain(n, name, x, &[row(parts[0], 384, 3)])?, chain(n, name, x, &[column(parts[1], 384, 3)])?];
    n.concat(&format!("{name}.{}.cat", parts[0]), &halves, 1)
}

fn pool_branch(n: &mut Network, name: &str, x: ValueId, channels: u64) -> Built<ValueId> {
    let x = n.average_pool(&format!("{name}.avg_pool"), x, Window::square(3, 1, 1))?;
    chain(n, name, x, &[point("branch_pool", channels)])
}

fn chain(n: &mut Network, name: &str, x: ValueId, steps: &[(&str, Convolution)]) -> Built<ValueId> {
    steps.iter().try_fold(x, |x, &(step, convolution)| basic(n, &format!("{name}.{step}"), x, convolution))
}

/// Convolution, batch normalisation and ReLU in place.
fn basic(n: &mut Network, name: &str, x: ValueId, convolution: Convolution) -> Built<ValueId> {
    let Convolution { channels, window, groups } = convolution;
    let x = n.convolution(&format!("{name}.conv"), x, channels, window, groups, false)?;
    let x = n.batch_norm_of(&format!("{name}.bn"), x, EPSILON)?;
    Ok(n.relu_in_place(&format!("{name}.relu"), x))
}
