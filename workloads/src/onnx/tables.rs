//! Tables that are not trained, recognised by their numbers: waves, masks and filters.

use super::constant::imported;
use super::{Order, TensorProto};

/// The tolerance for a number, relative to the largest: that of a table stored in fp16.
const CLOSE: f64 = 4e-3;
/// Fewer positions are not enough to recognise a table.
const LEAST: usize = 4;
/// Larger matrices cannot be filter banks: a transform of 1,024 samples has 1,025 × 1,024 numbers.
const LARGEST_BANK: usize = 1 << 21;

/// Whether the numbers of `tensor` are those of a table: in a weight, waves, a bank of filters or mirrored kernels;
/// elsewhere waves or a mask. Tensors with numbers outside the file are not recognised.
pub(super) fn is_table(tensor: &TensorProto, is_weight: bool) -> bool {
    let sizes: Vec<usize> = tensor.dims.iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
    let count = sizes.iter().try_fold(1_usize, |count, &size| count.checked_mul(size)).unwrap_or(0);
    if count < LEAST || is_weight && count > LARGEST_BANK {
        return false;
    }
    let numbers = imported(tensor, Order::Stored).map(|tensor| tensor.floats()).unwrap_or_default();
    if numbers.iter().all(|number| *number == numbers[0]) {
        return false;
    }
    match sizes.as_slice() {
        [_, _] if is_weight => is_wave(&sizes, &numbers) || is_bank(&sizes, &numbers),
        [_, _, window @ ..] if is_weight => is_mirrored(window.iter().product(), &numbers),
        _ => !is_weight && (is_wave(&sizes, &numbers) || is_mask(&numbers)),
    }
}

/// Whether all numbers of `tensor` are equal.
pub(super) fn is_flat(tensor: &TensorProto) -> bool {
    let numbers = imported(tensor, Order::Stored).map(|tensor| tensor.floats()).unwrap_or_default();
    numbers.first().is_some_and(|first| numbers.iter().all(|number| number == first))
}

/// The lines of a tensor along `axis`.
fn lines<'a>(sizes: &[usize], numbers: &'a [f32], axis: usize) -> impl Iterator<Item = Vec<f64>> + 'a {
    let (size, step) = (sizes[axis], sizes[axis + 1..].iter().product::<usize>());
    (0..numbers.len() / size).map(move |line| {
        let first = line / step * step * size + line % step;
        numbers[first..].iter().step_by(step).take(size).map(|&number| f64::from(number)).collect()
    })
}

/// Whether every line along some axis is a sampled wave or a power: the sum of each number and the second one before it
/// is the same multiple of the number between them, as for sines with equal steps.
fn is_wave(sizes: &[usize], numbers: &[f32]) -> bool {
    let recurs = |line: &Vec<f64>| {
        let around = || line.windows(3).map(|near| (near[1], near[0] + near[2]));
        let (above, below) = around().fold((0.0, 0.0), |(a, b), (mid, sum)| (a + mid * sum, b + mid * mid));
        let factor = if below > 0.0 { above / below } else { 0.0 };
        let largest = line.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
        around().all(|(mid, sum)| (sum - factor * mid).abs() <= CLOSE * largest)
    };
    (0..sizes.len()).any(|axis| {
        let moves = |line: &Vec<f64>| line.windows(2).any(|near| near[0] != near[1]);
        sizes[axis] >= LEAST
            && lines(sizes, numbers, axis).all(|line| recurs(&line))
            && lines(sizes, numbers, axis).any(|line| moves(&line))
    })
}

/// Whether there are only zeros and one other number that masks: one, or far below zero.
fn is_mask(numbers: &[f32]) -> bool {
    const FAR: f32 = -100.0;
    let other = numbers.iter().copied().find(|&number| number != 0.0).unwrap_or(0.0);
    (other == 1.0 || other <= FAR) && numbers.iter().all(|&number| number == 0.0 || number == other)
}

/// Whether most numbers of a matrix are zero, and the others are positive and contiguous along one of its axes:
/// triangles of a filter bank.
fn is_bank(sizes: &[usize], numbers: &[f32]) -> bool {
    let zeros = numbers.iter().filter(|&&number| number == 0.0).count();
    let whole = |line: &Vec<f64>| {
        let rises = line.windows(2).filter(|near| near[0] == 0.0 && near[1] != 0.0).count();
        rises + usize::from(line[0] != 0.0) <= 1
    };
    2 * zeros > numbers.len()
        && numbers.iter().all(|&number| number >= 0.0)
        && (0..sizes.len()).any(|axis| lines(sizes, numbers, axis).all(|line| whole(&line)))
}

/// Whether every kernel of `taps` numbers equals its mirror image, up to the sign: blurs, edges, windowed waves.
fn is_mirrored(taps: usize, numbers: &[f32]) -> bool {
    // Relative to a kernel's largest number, or to a thousandth of the largest of all, for waves of zeros with
    // rounding errors.
    const EQUAL: f32 = 1e-4;
    let largest = |numbers: &[f32]| numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let floor = largest(numbers) / 1e3;
    let mirrored = |kernel: &[f32]| {
        let near = EQUAL * largest(kernel).max(floor);
        // A periodic window is symmetrical without its first number.
        [kernel, &kernel[1..]].iter().any(|part| {
            let like = |sign: f32| part.iter().zip(part.iter().rev()).all(|(a, b)| (a - sign * b).abs() <= near);
            like(1.0) || like(-1.0)
        })
    };
    taps > 2 && numbers.chunks(taps).all(mirrored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(of: impl Fn(usize, usize) -> f32) -> Vec<f32> {
        (0..96).map(|at| of(at / 8, at % 8)).collect()
    }

    #[test]
    fn tables_are_known_by_their_numbers_and_weights_are_none() {
        let (shape, angle) = ([12, 8], |p: usize, c: usize| p as f32 * 0.7_f32.powi(c as i32));
        assert!(
            is_wave(&shape, &table(|p, c| angle(p, c).cos())) && is_wave(&[1, 12, 8], &table(|p, c| angle(p, c).sin()))
        );
        // Each frequency is 0.7 times the one before.
        assert!(is_wave(&[8], &(0..8).map(|c| 0.7_f32.powi(c)).collect::<Vec<_>>()));
        assert!(is_mask(&table(|p, c| if c > p { -1e9 } else { 0.0 })));
        assert!(is_bank(&shape, &table(|p, c| (1.0 - (p as f32 - c as f32).abs() / 2.0).max(0.0))));
        assert!(is_mirrored(9, &[1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0]) && is_mirrored(3, &[-1.0, 0.0, 1.0]));
        // A kernel far smaller than another is judged on its own.
        assert!(!is_mirrored(3, &[1.0, 2.0, -1.0, 500.0, 3.0, 500.0]));
        // Numbers of a generator: no wave, no mask, no bank, no mirror.
        let drawn = table(|p, c| ((p * 8 + c) * 7919 % 101) as f32 / 50.0 - 1.0);
        assert!(!is_wave(&shape, &drawn) && !is_mask(&drawn) && !is_bank(&shape, &drawn) && !is_mirrored(8, &drawn));
    }
}
