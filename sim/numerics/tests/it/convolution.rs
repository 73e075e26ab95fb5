//! Convolution against a twin in seven loops, finite differences and a case by hand.

use haversack_numerics::Meter;
use haversack_numerics::dense::convolution::Convolution;
use haversack_workloads::operator::Window;
use proptest::prelude::*;

use crate::common::{assert_close, assert_gradient, assert_same_on_any_threads, loss, values};

/// The parameters of a convolution: input, filters, window, groups.
#[derive(Clone, Copy, Debug)]
struct Case([usize; 4], usize, Window, usize);

const fn window(kernel: [u64; 2], stride: [u64; 2], padding: [u64; 2]) -> Window {
    Window { kernel, stride, padding, dilation: [1, 1] }
}

/// Sizes that differ along both axes, strides beyond the kernel, groups, one channel, filters of every tile.
const CASES: [Case; 10] = [
    Case([3, 3, 9, 7], 16, Window::square(3, 1, 1), 1),
    Case([2, 5, 8, 8], 13, Window::square(3, 2, 1), 1),
    Case([2, 4, 7, 7], 8, Window::square(1, 2, 0), 1),
    Case([1, 1, 12, 12], 6, Window::square(5, 1, 0), 1),
    Case([2, 6, 9, 8], 6, Window::square(3, 2, 1), 6),
    Case([2, 6, 5, 6], 4, window([3, 2], [1, 3], [1, 0]), 2),
    Case([20, 2, 6, 5], 9, window([1, 5], [2, 1], [0, 2]), 1),
    Case([1, 3, 23, 25], 64, Window::square(7, 2, 3), 1),
    Case([2, 2, 5, 5], 2, Window::square(2, 3, 2), 1),
    // The last tap reads only padding.
    Case([1, 1, 1, 1], 1, window([1, 3], [1, 3], [0, 1]), 1),
];

impl Case {
    fn sizes(self) -> Convolution {
        Convolution::new(self.0, self.1, self.2, self.3).unwrap()
    }

    /// Input, weight, bias and gradient of the output.
    fn operands(self) -> [Vec<f32>; 4] {
        let sizes = self.sizes();
        [values(sizes.input_len(), 1), values(sizes.weight_len(), 2), values(self.1, 3), values(sizes.output_len(), 4)]
    }

    /// Output, and the gradients of input, weight and bias.
    fn computed(self) -> [Vec<f32>; 4] {
        let (sizes, [x, w, b, dy], meter) = (self.sizes(), self.operands(), Meter::default());
        let [mut y, mut dx] = [dy.clone(), x.clone()];
        let [mut dw, mut db] = [vec![0.0; w.len()], vec![0.0; b.len()]];
        sizes.forward(&x, &w, Some(&b), &meter, &mut y).unwrap();
        sizes.input_gradient(&dy, &w, &meter, &mut dx).unwrap();
        sizes.weight_gradient(&x, &dy, &meter, &mut dw, Some(&mut db)).unwrap();
        assert_eq!(meter.live(), 0, "scratch space was not given back");
        [y, dx, dw, db]
    }

    /// The same by a loop over every product, in f64.
    fn expected(self) -> [Vec<f32>; 4] {
        let (sizes, [x, w, b, dy]) = (self.sizes(), self.operands());
        let Self([batch, channels, h, width], filters, window, groups) = self;
        let [[ky, kx], [sy, sx], [py, px]] =
            [window.kernel, window.stride, window.padding].map(|of| of.map(|side| side as usize));
        let [_, _, oh, ow] = sizes.output();
        let (inner, outer) = (channels / groups, filters / groups);
        let [mut y, mut dx, mut dw, mut db] = [&dy, &x, &w, &b].map(|of| vec![0.0_f64; of.len()]);
        for n in 0..batch * filters * oh * ow {
            let (j, i, f, s) = (n % ow, n / ow % oh, n / ow / oh % filters, n / ow / oh / filters);
            y[n] += f64::from(b[f]);
            db[f] += f64::from(dy[n]);
            for tap in 0..inner * ky * kx {
                let (iy, ix) = ((i * sy + tap / kx % ky).wrapping_sub(py), (j * sx + tap % kx).wrapping_sub(px));
                if iy < h && ix < width {
                    let m = ((s * channels + f / outer * inner + tap / kx / ky) * h + iy) * width + ix;
                    let k = f * inner * ky * kx + tap;
                    y[n] += f64::from(x[m]) * f64::from(w[k]);
                    dx[m] += f64::from(dy[n]) * f64::from(w[k]);
                    dw[k] += f64::from(dy[n]) * f64::from(x[m]);
                }
            }
        }
        [y, dx, dw, db].map(|of| of.into_iter().map(|x| x as f32).collect())
    }

    fn check(self) {
        let (found, expected) = (self.computed(), self.expected());
        for (what, (found, expected)) in ["output", "dx", "dw", "db"].iter().zip(found.iter().zip(&expected)) {
            assert_close(&format!("{self:?}: {what}"), found, expected, 1e-4);
        }
    }
}

#[test]
fn an_edge_detector_by_hand() {
    // Rows 1 2 3 and 4 5 6 under the kernel (−1 1), padded by one column: 1 1 1 −3 and 4 1 1 −6, plus the bias of 10.
    let sizes = Convolution::new([1, 1, 2, 3], 1, window([1, 2], [1, 1], [0, 1]), 1).unwrap();
    let mut y = [0.0; 8];
    sizes.forward(&[1., 2., 3., 4., 5., 6.], &[-1., 1.], Some(&[10.]), &Meter::default(), &mut y).unwrap();
    assert_eq!(y, [11., 11., 11., 7., 14., 11., 11., 4.]);
}

#[test]
fn every_kind_agrees_with_the_twin() {
    CASES.iter().for_each(|case| case.check());
}

#[test]
fn gradients_agree_with_differences() {
    for case in &CASES[..6] {
        let (sizes, [x, w, b, dy], [_, dx, dw, db]) = (case.sizes(), case.operands(), case.computed());
        let of = |x: &[f32], w: &[f32], b: &[f32]| {
            let mut y = vec![0.0; dy.len()];
            sizes.forward(x, w, Some(b), &Meter::default(), &mut y).unwrap();
            loss(&y, &dy)
        };
        assert_gradient("dx", &x, &dx, |x| of(x, &w, &b));
        assert_gradient("dw", &w, &dw, |w| of(&x, w, &b));
        assert_gradient("db", &b, &db, |b| of(&x, &w, b));
    }
}

#[test]
fn gradients_of_weights_are_added() {
    let case = CASES[0];
    let (sizes, [x, _, _, dy], [_, _, dw, db]) = (case.sizes(), case.operands(), case.computed());
    let [mut twice, mut bias] = [dw.clone(), db.clone()];
    sizes.weight_gradient(&x, &dy, &Meter::default(), &mut twice, Some(&mut bias)).unwrap();
    assert_eq!(twice, dw.iter().map(|w| w + w).collect::<Vec<_>>());
    assert_eq!(bias, db.iter().map(|b| b + b).collect::<Vec<_>>());
}

#[test]
fn threads_change_no_bit() {
    for case in [CASES[0], CASES[6]] {
        assert_same_on_any_threads(|| case.computed().concat());
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let error =
        |input, filters, window, groups| Convolution::new(input, filters, window, groups).unwrap_err().to_string();
    let big = error([1, 3, 4, 4], 8, Window::square(5, 1, 0), 1);
    assert_eq!(big, "a window of 5x5 does not fit an input of 4x4 with its padding");
    let groups = error([1, 3, 4, 4], 8, Window::square(3, 1, 0), 2);
    assert_eq!(groups, "3 channels and 8 filters do not split into 2 groups");
    let sizes = CASES[0].sizes();
    let short = sizes.forward(&[0.0; 3], &[], None, &Meter::default(), &mut []).unwrap_err().to_string();
    assert_eq!(short, "the input of a convolution has 3 elements; expected 567");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_shape_agrees_with_the_twin(
        (batch, inner, outer, groups) in (1_usize..4, 1_usize..5, 1_usize..14, 1_usize..4),
        input in [1_usize..12, 1_usize..20],
        kernel in [1_u64..5, 1_u64..5],
        stride in [1_u64..4, 1_u64..4],
        padding in [0_u64..4, 0_u64..4],
    ) {
        let window = window(kernel, stride, padding);
        let [h, w] = input;
        let case = Case([batch, inner * groups, h, w], outer * groups, window, groups);
        prop_assume!(Convolution::new(case.0, case.1, case.2, case.3).is_ok());
        case.check();
    }
}
