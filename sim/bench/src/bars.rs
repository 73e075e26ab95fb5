//! What the kernels have to reach: the least ratio to a limit, to a peer or to another kernel.
//!
//! Bars hold for one thread by its processor time, except the one about atomics, which is about two threads. They
//! are shares and multiples within one interleaved run, never rates.

use haversack_devices::units::Bytes;

use super::{FEATURE_MAPS, Measurement, SIZES};
use haversack_kernels::Isa;

/// What fits in a second cache, and in none.
const SECOND_CACHE: Bytes = SIZES[0];
const DRAM: Bytes = SIZES[2];

/// What a kernel is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against {
    /// Its limit.
    Limit,
    /// Its peer.
    Peer,
    /// Another kernel of the catalogue.
    Kernel(String),
}

/// The least ratio that a kernel has to reach at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The kernel.
    pub kernel: String,
    /// The tensor's size.
    pub size: Bytes,
    /// What its rate is divided by.
    pub against: Against,
    /// What that must give, at least.
    pub least: f64,
}

impl Bar {
    /// What was reached, or `None` where the kernel was not measured: this machine lacks its instruction set.
    pub fn reached(&self, measured: &[Measurement]) -> Option<f64> {
        let of = |name: &str| measured.iter().find(|found| found.kernel == name && found.size == self.size);
        let found = of(&self.kernel)?;
        match &self.against {
            Against::Limit => Some(found.share_of_limit()),
            Against::Peer => found.times_peer(),
            Against::Kernel(other) => Some(found.rate.0 / of(other)?.rate.0),
        }
    }

    /// The kernels that have to be measured for it.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        let other = if let Against::Kernel(other) = &self.against { Some(other.as_str()) } else { None };
        std::iter::once(self.kernel.as_str()).chain(other)
    }
}

/// Every bar.
///
/// The packing of groups stands against two pipelines of the bitpacking crate: one whose ranges are found by vectors
/// as wide as the kernel's own, and one that finds them by plain folds, as a user of the crate would. The bar is
/// the same for both; the first is much the harder.
pub fn bars() -> Vec<Bar> {
    let bar = |kernel: String, size, against, least| Bar { kernel, size, against, least };
    let mut bars = Vec::new();
    for kernel in ["min", "max"] {
        bars.extend(SIZES.map(|size| bar(kernel.to_owned(), size, Against::Limit, 0.90)));
    }
    bars.push(bar("triple".to_owned(), SECOND_CACHE, Against::Limit, 0.70));
    // One stream, since the order of a sum is fixed; the limit has eight.
    bars.push(bar("triple".to_owned(), DRAM, Against::Limit, 0.60));
    for (isa, tensor, odd_tensor, unpack) in [(Isa::Avx512, 1.8, 1.6, 2.0), (Isa::Avx2, 1.35, 1.35, 1.2)] {
        for bits in [1, 2, 4, 8] {
            // At 1 and 8 bits the crate has less to do for a value, or as much as anybody.
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
    bars.push(bar("f2i".to_owned(), SECOND_CACHE, Against::Peer, 8.0));
    bars.extend([SECOND_CACHE, DRAM].map(|size| bar("int8-scale".to_owned(), size, Against::Limit, 0.85)));
    bars.push(bar("int8-round".to_owned(), SECOND_CACHE, Against::Peer, 4.0));
    bars.push(bar("int8-gradients".to_owned(), SECOND_CACHE, Against::Peer, 2.5));
    // A register holds twice as many i16 as f32; packing, and a separate addition without VNNI, take their share.
    let floats = Against::Kernel("int8-gemm-in-f32".to_owned());
    bars.push(bar("int8-gemm".to_owned(), SECOND_CACHE, floats, 1.3));
    bars.push(bar("int8-gemm".to_owned(), SECOND_CACHE, Against::Peer, 30.0));
    bars.push(bar("int8-gemm".to_owned(), SECOND_CACHE, Against::Limit, 0.7));
    // zstd, at its fastest level, decodes bytes that it has hardly made smaller.
    for mode in ["bounded", "mixed"] {
        bars.push(bar(format!("compress-{mode}"), FEATURE_MAPS, Against::Peer, 1.7));
        bars.push(bar(format!("decompress-{mode}"), FEATURE_MAPS, Against::Peer, 0.6));
    }
    // Where a cache holds the tensor, waking the second thread is a good part of the pass; in DRAM it is nothing.
    for size in SIZES {
        let per_element = Against::Kernel("min-atomic-unconditional".to_owned());
        bars.push(bar("min-hybrid".to_owned(), size, per_element, 100.0));
    }
    bars
}

#[cfg(test)]
mod tests {
    use haversack_devices::units::BytesPerSecond;

    use super::*;
    use crate::{Family, Limit, Peer};

    fn measured(kernel: &str, rate: f64) -> Measurement {
        Measurement {
            kernel: kernel.to_owned(),
            family: Family::Reduction,
            size: DRAM,
            rate: BytesPerSecond(rate),
            limit: Limit::Read,
            limit_rate: BytesPerSecond(40.0),
            peer: Some(Peer { name: "other".to_owned(), rate: BytesPerSecond(10.0) }),
        }
    }

    #[test]
    fn a_ratio_is_to_the_limit_the_peer_or_the_other_kernel() {
        let measured = [measured("a", 30.0), measured("b", 20.0)];
        let bar = |against| Bar { kernel: "a".to_owned(), size: DRAM, against, least: 1.0 };
        // 30 of 40, 30 to 10, 30 to 20.
        assert_eq!(bar(Against::Limit).reached(&measured), Some(0.75));
        assert_eq!(bar(Against::Peer).reached(&measured), Some(3.0));
        assert_eq!(bar(Against::Kernel("b".to_owned())).reached(&measured), Some(1.5));
        assert_eq!(bar(Against::Kernel("c".to_owned())).reached(&measured), None);
        assert_eq!(Bar { size: SECOND_CACHE, ..bar(Against::Limit) }.reached(&measured), None);
    }

    #[test]
    fn every_bar_is_about_a_kernel_of_the_catalogue_or_about_instructions_that_are_not_here() {
        let kernels = super::super::catalogue().unwrap();
        let missing: Vec<&str> = Isa::ALL.into_iter().filter(|isa| !isa.is_available()).map(Isa::name).collect();
        for bar in bars() {
            for name in bar.kernels() {
                let kernel = kernels.iter().find(|kernel| kernel.id() == name);
                if kernel.is_none() && !crate::HAS_PEERS && name.starts_with("bitpacking") {
                    continue;
                }
                assert!(kernel.is_some() || missing.iter().any(|isa| name.ends_with(isa)), "{name}");
                assert!(
                    kernel.is_none_or(|kernel| kernel.peer().is_some()
                        || !crate::HAS_PEERS
                        || bar.against != Against::Peer),
                    "{name}"
                );
            }
        }
    }
}
