//! A stack on a DSP: the libraries of its vendor, each for the generations that it is built for, and the host that drives it.

use crate::calibration::{Constant, Contradiction, against, section};
use crate::device::HexagonVersion;
use crate::units::{BytesPerCycle, Count, Factor, Fraction, Interval, Nanos};

section! {
    /// `[dsp]`: the stack on a DSP, with the host that drives it.
    pub struct StackOnDsp {
        /// Dispatch of an operator within a subgraph.
        pub operator_overhead: Constant<Nanos>,
        /// Preparing a subgraph: its memory and its references.
        pub preparation: Constant<Nanos>,
        /// Products of at most this depth in samples run unpadded.
        pub short_depth: Constant<Count>,
        /// Deeper ones are padded to a multiple of it.
        pub depth_padding: Constant<Count>,
        /// Bytes a cycle at which operands stream from L2.
        pub l2_rate: Constant<BytesPerCycle>,
        /// The wait for each line that misses L2: DRAM's latency, over the lines that are fetched at a time.
        pub miss: Constant<Interval>,
        /// The host's time for a cache line of a buffer that crosses between the processors, on cores whose CoreMark is not
        /// known: to lay it out for the other side, and to clean or invalidate it.
        pub line: Constant<Interval>,
        /// The same as scalar work, in millionths of a CoreMark iteration; always that time where it is not given.
        pub line_work: Option<Constant<Factor>>,
        /// The share of the time, and so of their power, for which the host's cores run while they wait for the DSP.
        pub waiting_share: Constant<Fraction>,
        /// The libraries that it calls.
        pub library: Vec<DspLibrary>,
    }
}

section! {
    /// `[[dsp.library]]`: what a library of the vendor's reaches on the generations of the DSP that it is built for.
    pub struct DspLibrary {
        /// The library.
        pub name: String,
        /// The oldest generation that it runs on; it also serves all later ones that no other library begins with.
        pub from: HexagonVersion,
        /// The share of the vector units' eight-bit peak that its products reach.
        pub product_efficiency: Constant<Fraction>,
        /// The same of weights' gradients, convolutions whose depth is the batch; that of products where it is not given.
        pub gradient_efficiency: Option<Constant<Fraction>>,
        /// Bytes that a hardware thread reads and writes in a cycle of operators that move elements one by one, where they
        /// are scalar code: transposition, rotation, cuts. As fast as a stream where it is not given.
        pub irregular_rate: Option<Constant<BytesPerCycle>>,
    }
}

impl StackOnDsp {
    /// The library for a DSP of `version`: the latest that is not newer. `None` if all are.
    pub fn library(&self, version: HexagonVersion) -> Option<&DspLibrary> {
        self.library.iter().filter(|library| library.from <= version).max_by_key(|library| library.from)
    }

    pub(super) fn contradiction(&self) -> Option<Contradiction> {
        if self.depth_padding.value.0 < 1.0 {
            return against("dsp", "depth_padding is below one: work is divided by it");
        }
        if self.library.is_empty() {
            return against("dsp", "it needs a [[dsp.library]]");
        }
        let begun_by = |from| self.library.iter().filter(move |library| library.from == from).count();
        let twice = self.library.iter().find(|library| begun_by(library.from) > 1)?;
        against("dsp.library", format!("two libraries begin with {}", twice.from))
    }
}
