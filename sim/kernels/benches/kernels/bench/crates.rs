//! Peers that are crates: `bitpacking`, `lz4_flex` and `zstd`. They are compiled in only with the feature `peers`.

use haversack_kernels::quantise::Grouping;

use crate::bench::contender::Contender;

/// Whether the peers that are crates are compiled in, which needs the feature `peers`.
pub(crate) const HAS_PEERS: bool = cfg!(feature = "peers");

/// The operation that a crate performs as a kernel's peer.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "peers"), allow(dead_code, reason = "only the crates look at the widths"))]
pub(crate) enum ByCrate {
    /// Packs to this many bits behind a vectorised quantiser, with one scale for the tensor or one for 256 elements.
    Pack(u8, Grouping),
    /// Packs with a scale for 256 elements whose ranges are found by plain folds, as a user of the crate would.
    PackByFolds(u8),
    /// Unpacks.
    Unpack(u8, Grouping),
    /// Makes the tensor smaller without loss. It is noise, which hardly shrinks; a tensor with many zeros takes longer.
    Lossless,
    /// Makes smooth maps smaller without loss, fast.
    LosslessMaps,
    /// The same by zstd, at its default level.
    ZstdMaps,
    /// Restores smooth maps from zstd's fastest level.
    ZstdBack,
}

/// A width in words.
pub(crate) fn width(bits: u8) -> String {
    if bits == 1 { "1 bit".to_owned() } else { format!("{bits} bits") }
}

#[cfg(not(feature = "peers"))]
impl ByCrate {
    /// The contender, if it is compiled in.
    pub(crate) fn contender(self) -> Option<Contender> {
        None
    }
}

#[cfg(feature = "peers")]
impl ByCrate {
    /// The contender, if it is compiled in.
    pub(crate) fn contender(self) -> Option<Contender> {
        use crate::bench::peers::bitpacked::{self, Scales};
        use crate::bench::peers::lossless;
        let scales = |grouping| if grouping == Grouping::Tensor { "one scale" } else { "a scale for 256 elements" };
        Some(match self {
            Self::Pack(bits, grouping) => {
                let by = if grouping == Grouping::Tensor { Scales::OfTensor } else { Scales::OfBlocks };
                bitpacked::packing(format!("bitpacking, {}, {}", width(bits), scales(grouping)), bits, by)
            }
            Self::PackByFolds(bits) => {
                bitpacked::packing(format!("bitpacking{bits}-group256-folds"), bits, Scales::ByFolds)
            }
            Self::Unpack(bits, grouping) => bitpacked::unpacking(
                format!("bitpacking, back from {}, {}", width(bits), scales(grouping)),
                bits,
                grouping,
            ),
            Self::Lossless => lossless::lz4("lz4_flex, without loss", false),
            Self::LosslessMaps => lossless::lz4("lz4_flex on the same maps", true),
            Self::ZstdMaps => lossless::zstd("compress-zstd3"),
            Self::ZstdBack => lossless::zstd_back("zstd, level 1, back to the same maps"),
        })
    }
}
