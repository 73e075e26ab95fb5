//! Bars: the least ratio of each kernel's rate to its limit, to its peer or to another kernel.
//!
//! A bar compares the processor time of one thread. Bars are shares and multiples within one
//! interleaved run, never rates.

use haversack_devices::units::Bytes;

use crate::bench::{FEATURE_MAPS, Measurement, SIZES};
use haversack_kernels::Isa;

/// A size that fits in the second-level cache, and one that fits in no cache.
pub(crate) const SECOND_CACHE: Bytes = SIZES[0];
pub(crate) const DRAM: Bytes = SIZES[2];

/// The rate that a kernel is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    /// Its limit.
    Limit,
    /// Its peer.
    Peer,
    /// Another kernel of the catalogue.
    Kernel(String),
}

/// The least ratio that a kernel has to reach at one size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    /// The kernel.
    pub(crate) kernel: String,
    /// The tensor's size.
    pub(crate) size: Bytes,
    /// The rate that the kernel's rate is divided by.
    pub(crate) against: Against,
    /// The least value of that quotient.
    pub(crate) least: f64,
}

impl Bar {
    /// The measured ratio, or `None` if the kernel was not measured because this machine lacks its instruction set.
    pub(crate) fn reached(&self, measured: &[Measurement]) -> Option<f64> {
        let of = |name: &str| measured.iter().find(|found| found.kernel == name && found.size == self.size);
        let found = of(&self.kernel)?;
        match &self.against {
            Against::Limit => Some(found.share_of_limit()),
            Against::Peer => found.times_peer(),
            Against::Kernel(other) => Some(found.rate.0 / of(other)?.rate.0),
        }
    }

    /// The kernels that have to be measured for it.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &str> {
        let other = if let Against::Kernel(other) = &self.against { Some(other.as_str()) } else { None };
        std::iter::once(self.kernel.as_str()).chain(other)
    }
}

/// Every bar.
///
/// Packing of groups has bars against two pipelines of the bitpacking crate: one finds the ranges by vectors as wide as
/// the kernel's own, the other by plain folds, as a user of the crate would. Both bars have the same ratio; the first
/// is much harder to reach.
pub(crate) fn bars() -> Vec<Bar> {
    let bar = |kernel: String, size, against, least| Bar { kernel, size, against, least };
    let mut bars = Vec::new();
    for kernel in ["min", "max"] {
        bars.extend(SIZES.map(|size| bar(kernel.to_owned(), size, Against::Limit, 0.90)));
    }
    for (isa, tensor, odd_tensor, unpack) in [(Isa::Avx512, 1.8, 1.6, 2.0), (Isa::Avx2, 1.35, 1.35, 1.2)] {
        for bits in [1, 2, 4, 8] {
            // At 1 and 8 bits the crate does less work for a value than the kernel, or as much.
            let tensor = if matches!(bits, 2 | 4) { tensor } else { odd_tensor };
            let of = |kernel: String, least| bar(kernel, SECOND_CACHE, Against::Peer, least);
            bars.push(of(format!("pack{bits}-{isa}"), tensor));
            let groups = format!("pack{bits}-group256-{isa}");
            bars.push(of(groups.clone(), 3.0));
            let folds = Against::Kernel(format!("bitpacking{bits}-group256-folds"));
            bars.push(bar(groups, SECOND_CACHE, folds, 3.0));
            bars.push(of(format!("unpack{bits}-{isa}"), unpack));
            bars.push(bar(format!("pack{bits}-{isa}"), DRAM, Against::Peer, 0.80));
        }
    }
    bars.push(bar("int8-round".to_owned(), SECOND_CACHE, Against::Peer, 4.0));
    bars.push(bar("int8-gradients".to_owned(), SECOND_CACHE, Against::Peer, 2.5));
    // A register has twice as many lanes of i16 as of f32; packing, and a separate addition without
    // VNNI, take some of that gain.
    let floats = Against::Kernel("int8-gemm-in-f32".to_owned());
    bars.push(bar("int8-gemm".to_owned(), SECOND_CACHE, floats, 1.3));
    bars.push(bar("int8-gemm".to_owned(), SECOND_CACHE, Against::Peer, 30.0));
    bars.push(bar("int8-gemm".to_owned(), SECOND_CACHE, Against::Limit, 0.7));
    // zstd, at its fastest level, decodes bytes that it has hardly made smaller.
    for mode in ["bounded", "mixed"] {
        bars.push(bar(format!("compress-{mode}"), FEATURE_MAPS, Against::Peer, 1.7));
        bars.push(bar(format!("decompress-{mode}"), FEATURE_MAPS, Against::Peer, 0.6));
    }
    bars
}
