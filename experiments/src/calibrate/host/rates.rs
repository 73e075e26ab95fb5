//! From times of single operators to the constants of a stack: a rate for each kind, what a call costs, and what products
//! spend on laying out their operands.

use haversack_devices::work::{OperatorKind, Work};

/// An operator, and how long it took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) work: Work,
    /// Seconds.
    pub(super) seconds: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rates {
    /// Seconds that a call costs.
    pub(super) call: f64,
    /// By kind.
    kinds: Vec<(OperatorKind, Rate)>,
}

/// What is known of a kind; infinite where nothing was timed, or nothing is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    /// Operations a second.
    pub(super) operations: f64,
    /// Bytes a second of operands that are laid out beside.
    pub(super) operands: f64,
}

/// Operations of an operator that is all call.
const TINY: f64 = 200.0;

impl Rates {
    /// The rates by which `timed` took so long; `computed` is how many times its arithmetic a kernel computes.
    ///
    /// A call is what operators of next to nothing take. A kind's rate is that of all its operators together. Of convolutions
    /// and products of matrices the time has a part by their bytes, too: the one with which, and a rate of arithmetic, the
    /// squares of what is left of their times are least, each over the time itself.
    pub(super) fn of(timed: &[Timed], computed: impl Fn(&Work) -> f64) -> Self {
        let mut tiny: Vec<f64> = timed.iter().filter(|of| of.work.flops.0 < TINY).map(|of| of.seconds).collect();
        tiny.sort_by(f64::total_cmp);
        let call = tiny.get(tiny.len() / 2).copied().unwrap_or_default();
        let kind = |&kind: &OperatorKind| {
            let of_kind = timed.iter().filter(|of| of.work.kind == kind && of.seconds > 0.0);
            let rows: Vec<Row> = of_kind
                .map(|of| Row {
                    operations: of.work.flops.0 * computed(&of.work),
                    bytes: of.work.traffic.dram.as_f64(),
                    beyond_call: (of.seconds - call).max(0.0),
                    weight: 1.0 / of.seconds,
                })
                .collect();
            let operands = if kind.is_dense_product() { operands(&rows) } else { f64::INFINITY };
            let sum = |f: &dyn Fn(&Row) -> f64| rows.iter().map(f).sum::<f64>();
            let seconds = sum(&|row| (row.beyond_call - row.bytes / operands).max(0.0));
            let operations = if seconds > 0.0 { sum(&|row| row.operations) / seconds } else { f64::INFINITY };
            (kind, Rate { operations, operands })
        };
        Self { call, kinds: OperatorKind::ALL.iter().map(kind).collect() }
    }

    /// What is known of `kind`.
    pub(super) fn of_kind(&self, kind: OperatorKind) -> Rate {
        let nothing = Rate { operations: f64::INFINITY, operands: f64::INFINITY };
        self.kinds.iter().find(|(known, _)| *known == kind).map_or(nothing, |(_, rate)| *rate)
    }

    /// The fastest of all kinds, operations a second.
    pub(super) fn peak(&self) -> f64 {
        self.kinds.iter().map(|(_, rate)| rate.operations).filter(|rate| rate.is_finite()).fold(1.0, f64::max)
    }
}

/// An operator's part of the squares.
struct Row {
    operations: f64,
    bytes: f64,
    beyond_call: f64,
    weight: f64,
}

/// Bytes a second that products lay out, by least squares; infinite where their bytes explain nothing.
fn operands(rows: &[Row]) -> f64 {
    let sum = |f: fn(&Row) -> f64| rows.iter().map(|row| f(row) * row.weight).sum::<f64>();
    let (oo, bb) = (sum(|row| row.operations * row.operations), sum(|row| row.bytes * row.bytes));
    let ob = sum(|row| row.operations * row.bytes);
    let (ot, bt) = (sum(|row| row.operations * row.beyond_call), sum(|row| row.bytes * row.beyond_call));
    // Seconds a byte, by Cramer's rule.
    let slowness = (bt * oo - ot * ob) / (bb * oo - ob * ob);
    if slowness.is_finite() && slowness > 0.0 { 1.0 / slowness } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haversack_devices::units::{Bytes, Flops};
    use haversack_devices::work::{Precision, Traffic};

    fn timed(kind: OperatorKind, flops: f64, bytes: u64, seconds: f64) -> Timed {
        let traffic = Traffic { dram: Bytes(bytes), shared: Bytes::ZERO };
        Timed { work: Work { flops: Flops(flops), traffic, ..Work::empty(kind, Precision::Fp32) }, seconds }
    }

    #[test]
    fn times_that_follow_the_model_give_its_rates_back() {
        // A call of 1 us, 1 GFLOP/s of maps, products of 40 and 20 GFLOP/s that lay out 5 and 10 GB/s.
        let product = |kind, [rate, laying]: [f64; 2], flops: f64, bytes: u64| {
            timed(kind, flops, bytes, 1e-6 + flops / rate + bytes as f64 / laying)
        };
        let all = [
            timed(OperatorKind::ElementWise, 1.0, 0, 1e-6),
            timed(OperatorKind::ElementWise, 1e6, 0, 1e-6 + 1e-3),
            timed(OperatorKind::ElementWise, 4e6, 0, 1e-6 + 4e-3),
            product(OperatorKind::Convolution, [40e9, 5e9], 1e9, 1_000_000),
            product(OperatorKind::Convolution, [40e9, 5e9], 1e8, 8_000_000),
            product(OperatorKind::Gemm, [20e9, 10e9], 3e8, 1_000_000),
            product(OperatorKind::Gemm, [20e9, 10e9], 1e7, 2_000_000),
        ];
        let rates = Rates::of(&all, |_| 1.0);
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        near(rates.call, 1e-6);
        near(rates.of_kind(OperatorKind::ElementWise).operations, 1e9);
        near(rates.of_kind(OperatorKind::Convolution).operations, 40e9);
        near(rates.of_kind(OperatorKind::Convolution).operands, 5e9);
        near(rates.of_kind(OperatorKind::Gemm).operations, 20e9);
        near(rates.of_kind(OperatorKind::Gemm).operands, 10e9);
        near(rates.peak(), 40e9);
        // Nothing was timed of a kind: nothing is said of it.
        assert!(rates.of_kind(OperatorKind::Gather).operations.is_infinite());
    }
}
