//! Values, finite differences and thread pools that the tests share.

use haversack_numerics::dense::batch_norm::{BatchNorm, Normalised};

/// `len` values in −1..1, by the formula that PyTorch's fixture uses.
pub(crate) fn values(len: usize, k: usize) -> Vec<f32> {
    (0..len).map(|i| (0.37 * i as f64 + 1.3 * k as f64).sin() as f32).collect()
}

/// Fails unless each element is within `tolerance` of the expected one, relative to the larger of 1 and its size.
#[track_caller]
pub(crate) fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let within = tolerance * expected.abs().max(1.0);
        assert!((found - expected).abs() <= within, "{what}[{i}] is {found}, not {expected}");
    }
}

/// The loss whose gradient by the output is `direction`, summed in f64.
pub(crate) fn loss(output: &[f32], direction: &[f32]) -> f64 {
    output.iter().zip(direction).map(|(y, d)| f64::from(*y) * f64::from(*d)).sum()
}

/// Fails unless `gradient` is that of `loss` by `at`: central differences of up to forty elements,
/// within 1 % of the largest.
#[track_caller]
pub(crate) fn assert_gradient(what: &str, at: &[f32], gradient: &[f32], loss: impl Fn(&[f32]) -> f64) {
    const STEP: f32 = 1e-2;
    assert_eq!(at.len(), gradient.len(), "{what}: length");
    let largest = gradient.iter().fold(0.1_f64, |most, g| most.max(f64::from(g.abs())));
    let mut moved = at.to_vec();
    for i in (0..at.len()).step_by(at.len().div_ceil(40)) {
        moved[i] = at[i] + STEP;
        let (up, above) = (loss(&moved), moved[i]);
        moved[i] = at[i] - STEP;
        let (down, below) = (loss(&moved), moved[i]);
        moved[i] = at[i];
        let expected = (up - down) / (f64::from(above) - f64::from(below));
        let found = f64::from(gradient[i]);
        assert!((found - expected).abs() <= 0.01 * largest, "{what}[{i}] is {found}, differences say {expected}");
    }
}

/// Fails unless `f` returns the same bits on one, two and three threads.
#[track_caller]
pub(crate) fn assert_same_on_any_threads(f: impl Fn() -> Vec<f32> + Sync) {
    let bits = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(&f).into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let one = bits(1);
    assert!(!one.is_empty());
    for threads in [2, 3] {
        assert!(bits(threads) == one, "{threads} threads give other bits than one");
    }
}

/// The gradient of a batch normalisation's input, from that of its output. Adds those of weight and
/// bias, the last two arguments.
pub(crate) fn batch_norm_backward(
    sizes: BatchNorm,
    of: Normalised<'_>,
    gradient: &[f32],
    weight: &[f32],
    [weight_gradient, bias_gradient, input_gradient]: [&mut [f32]; 3],
) {
    let sums = sizes.gradient_sums(of, gradient).unwrap();
    sizes.add_parameter_gradients(&sums, weight_gradient, bias_gradient).unwrap();
    sizes.input_gradient(of, gradient, weight, &sums, input_gradient).unwrap();
}
