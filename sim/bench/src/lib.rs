//! How fast the kernels run on this machine, beside what its memory allows and what others' code does.
//!
//! Absolute rates mean little on a machine that is shared, so everything that is compared is measured in one interleaved
//! run: rounds in shuffled order on the same tensor, the thread's own processor time, medians. What two threads do is
//! measured on the wall, and the best pass counts of those in which they ran at the same time. The ratio is worth reading.
//!
//! ```text
//! catalogue ── kernel, limit, peer ──▶ contenders, each made ready on the same tensors
//!                                          │ race: every one in every round, by its clock
//!                                          ▼
//!                     measurements: rate, limit, peer ──▶ bars: the least ratio that each has to reach
//! ```
//!
//! - [`catalogue`](fn@catalogue) lists the kernels, each with its [`Limit`] and its peer; a file a family.
//! - [`run`] races some of them on tensors of one size.
//! - [`bars`] says what they have to reach: `cargo bench -p haversack-bench --features peers` holds them to it.
//! - Peers are plain loops and, with the feature `peers`, crates: [`HAS_PEERS`] says whether it is on.
//!
//! ```
//! use haversack_bench::Measurement;
//! use haversack_devices::units::Bytes;
//!
//! let kernels = haversack_bench::catalogue()?;
//! let minimum: Vec<_> = kernels.iter().filter(|kernel| kernel.id() == "min").collect();
//! let measured: Vec<Measurement> = haversack_bench::run(&minimum, Bytes(204_800), true, || ())?;
//! assert!(measured[0].rate.0 > 0.0 && measured[0].peer.is_some());
//! # Ok::<(), haversack_kernels::KernelError>(())
//! ```

pub mod bars;
mod buffer;
mod catalogue;
mod clock;
mod contender;
mod crates;
mod limit;
mod maps;
mod peers;
mod race;
mod random;

use std::time::Duration;

use haversack_devices::units::{Bytes, BytesPerSecond};
use strum::{IntoStaticStr, VariantArray};

pub use catalogue::catalogue;
pub use clock::{core_clock, thread_time};
pub use crates::HAS_PEERS;
pub use limit::Limit;

use contender::{Contender, Tensors};
use haversack_kernels::KernelError;
use race::{Rules, race};

/// The tensors that everything is measured on: \[1, 256, 14, 14\] and \[1, 512, 768\] of f32, which are activations of
/// a ResNet and of a BERT and which a second and a third cache hold, and 64 MiB, which no cache holds.
pub const SIZES: [Bytes; 3] = [Bytes(204_800), Bytes(1_572_864), Bytes(67_108_864)];

/// The feature maps that the bars of compression are about: \[1, 64, 112, 112\] of f32, what the first convolution of a
/// ResNet leaves behind.
pub const FEATURE_MAPS: Bytes = Bytes(64 * 112 * 112 * 4);

/// Kernels that are drawn in one picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
pub enum Family {
    /// Reductions by one thread.
    #[strum(serialize = "Reductions")]
    Reduction,
    /// The minimum by two threads, one kernel a strategy.
    #[strum(serialize = "The minimum by two threads")]
    Strategy,
    /// Quantisation and packing with one scale a tensor.
    #[strum(serialize = "Quantise and pack, one scale a tensor")]
    Pack,
    /// Quantisation and packing with one scale for 256 elements.
    #[strum(serialize = "Quantise and pack, one scale for 256 elements")]
    GroupPack,
    /// Unpacking and dequantisation by one scale a tensor.
    #[strum(serialize = "Unpack and dequantise, one scale a tensor")]
    Unpack,
    /// Unpacking and dequantisation by one scale for 256 elements.
    #[strum(serialize = "Unpack and dequantise, one scale for 256 elements")]
    GroupUnpack,
    /// Conversions, masks and copies.
    #[strum(serialize = "Conversions, masks and copies")]
    Conversion,
    /// Rescaling, and sums of gradients, of INT8 training.
    #[strum(serialize = "INT8 training: rescaling, and sums of gradients")]
    Rescaling,
    /// Compression of feature maps within an error bound.
    #[strum(serialize = "Compression of smooth feature maps, within 0.1 % of their range")]
    Compression,
    /// Products of i8 matrices.
    #[strum(serialize = "INT8 training: products of matrices")]
    Product,
}

impl Family {
    /// Every family.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its title.
    pub fn title(self) -> &'static str {
        self.into()
    }
}

/// A kernel that can be measured.
pub struct Kernel {
    contender: Contender,
    about: String,
    family: Family,
    limit: Limit,
    peer: Option<Contender>,
    /// The largest tensor that it is measured on: a product's work outgrows its operands.
    largest: Option<Bytes>,
}

impl Kernel {
    /// Its name, of which a variant's is `<kernel>-<variant>`.
    pub fn id(&self) -> &str {
        &self.contender.id
    }

    /// What it does, in a line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// What it is compared with, in a few words.
    pub fn peer(&self) -> Option<&str> {
        self.peer.as_ref().map(|peer| peer.id.as_str())
    }

    fn takes(&self, size: Bytes) -> bool {
        self.largest.is_none_or(|largest| size <= largest)
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("id", &self.id()).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// How fast a kernel was at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The kernel.
    pub kernel: String,
    /// The picture that it belongs in.
    pub family: Family,
    /// The tensor in f32: what a reduction or a packing reads, what an unpacking writes. Of micro-batches' gradients all
    /// together, and of a product both operands, which are about as large: see [`edge`].
    pub size: Bytes,
    /// Tensors a second, times the size.
    pub rate: BytesPerSecond,
    /// What it cannot be faster than.
    pub limit: Limit,
    /// How fast that is, for the same tensor in the same run.
    pub limit_rate: BytesPerSecond,
    /// What it was compared with, and how fast that was.
    pub peer: Option<Peer>,
}

impl Measurement {
    /// The rate as a share of the limit.
    pub fn share_of_limit(&self) -> f64 {
        self.rate.0 / self.limit_rate.0
    }

    /// How many times as fast as its peer the kernel is.
    pub fn times_peer(&self) -> Option<f64> {
        self.peer.as_ref().map(|peer| self.rate.0 / peer.rate.0)
    }
}

/// Somebody else's code, measured in the same run.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// What it is.
    pub name: String,
    /// How fast it was.
    pub rate: BytesPerSecond,
}

/// Measures `kernels` on tensors of `size`, with their limits and, where `compare`, with their peers, all in one
/// interleaved run. `after_turn` is called as often as [`turns`] says. Kernels that are not measured on so large a
/// tensor are left out.
///
/// # Errors
/// A kernel that cannot run.
pub fn run(
    kernels: &[&Kernel],
    size: Bytes,
    compare: bool,
    after_turn: impl FnMut(),
) -> Result<Vec<Measurement>, KernelError> {
    let kernels = &taking(kernels, size);
    if kernels.is_empty() {
        return Ok(Vec::new());
    }
    let contenders = contenders(kernels, compare);
    let mut tensors = Tensors::new(usize::try_from(size.0).unwrap_or(usize::MAX));
    let mut runners =
        contenders.iter().map(|contender| contender.runner(&tensors)).collect::<Result<Vec<_>, KernelError>>()?;
    let times = race(&mut tensors, &mut runners, rules(size), after_turn)?;
    let rate = |id: &str| {
        let known = contenders.iter().position(|contender| contender.id == id);
        let time = known.and_then(|place| times.get(place)).copied().unwrap_or(Duration::MAX);
        BytesPerSecond(size.as_f64() / time.as_secs_f64())
    };
    let measurement = |kernel: &&Kernel| Measurement {
        kernel: kernel.contender.id.clone(),
        family: kernel.family,
        size,
        rate: rate(&kernel.contender.id),
        limit: kernel.limit,
        // A limit that can be had in several ways is the fastest of them.
        limit_rate: BytesPerSecond(kernel.limit.contenders().iter().map(|way| rate(&way.id).0).fold(0.0, f64::max)),
        peer: kernel.peer.as_ref().filter(|_| compare).map(|peer| Peer { name: peer.id.clone(), rate: rate(&peer.id) }),
    };
    Ok(kernels.iter().map(measurement).collect())
}

/// How often [`run`] calls back.
pub fn turns(kernels: &[&Kernel], size: Bytes, compare: bool) -> u64 {
    race::turns(contenders(&taking(kernels, size), compare).len(), rules(size))
}

/// Rows and columns of the square i8 matrices that a product of this size multiplies: both take about so many bytes,
/// and 2·edge³ operations. A multiple of sixteen.
pub fn edge(size: Bytes) -> usize {
    let values = usize::try_from(size.0 / 2).unwrap_or(usize::MAX);
    (values.isqrt() / 16 * 16).max(16)
}

/// The kernels that are measured on tensors of this size.
fn taking<'a>(kernels: &[&'a Kernel], size: Bytes) -> Vec<&'a Kernel> {
    kernels.iter().copied().filter(|kernel| kernel.takes(size)).collect()
}

/// Everybody who runs, each once.
fn contenders(kernels: &[&Kernel], compare: bool) -> Vec<Contender> {
    let mut contenders: Vec<Contender> = Vec::new();
    for kernel in kernels {
        let limits = kernel.limit.contenders();
        let others = limits.iter().chain(kernel.peer.as_ref().filter(|_| compare));
        for contender in std::iter::once(&kernel.contender).chain(others) {
            if !contenders.iter().any(|known| known.id == contender.id) {
                contenders.push(contender.clone());
            }
        }
    }
    contenders
}

/// Tensors that a cache holds are measured in it.
fn rules(size: Bytes) -> Rules {
    let in_cache = size < Bytes(8 << 20);
    Rules {
        rounds: if in_cache { 15 } else { 11 },
        least_turn: Duration::from_micros(200),
        patience: Duration::from_millis(300),
        warm: in_cache,
    }
}
