//! How fast the kernels run on this machine, compared with the limits of its memory and with other code:
//! `cargo bench -p haversack-kernels [--features peers] [-- [NAME] [--format json] [--list]]`.
//!
//! Absolute rates mean little on a shared machine, so everything that is compared is measured in one
//! interleaved run: rounds in shuffled order on the same tensor, the thread's own processor time, medians. Read
//! the ratios, not the rates.
//!
//! ```text
//! catalogue ── kernel, limit, peer ──▶ contenders, each made ready on the same tensors
//!                                          │ race: every one in every round
//!                                          ▼
//!                     measurements: rate, limit, peer ──▶ bars: the least ratio that each has to reach
//! ```
//!
//! [`catalogue`](fn@catalogue) lists the kernels, each with its [`Limit`] and its peer, one file a family. With the
//! feature `peers` they are compared with plain loops and crates, and [`bars`] defines the ratios that they have to
//! reach. The tests are in `tests/bench.rs`.

pub(crate) mod bars;
pub(crate) mod buffer;
pub(crate) mod catalogue;
pub(crate) mod contender;
pub(crate) mod crates;
pub(crate) mod limit;
pub(crate) mod maps;
pub(crate) mod peers;
pub(crate) mod race;
pub(crate) mod random;
pub(crate) mod report;
pub(crate) mod yardstick;

use std::time::Duration;

use haversack_devices::units::{Bytes, BytesPerSecond};
use strum::{IntoStaticStr, VariantArray};

use self::catalogue::catalogue;
use self::contender::{Contender, Tensors};
use self::crates::HAS_PEERS;
use self::limit::Limit;
use self::race::{Rules, race};
use haversack_kernels::KernelError;

/// Runs the benchmark with the arguments after `--`.
///
/// # Errors
/// Invalid arguments, a `HAVERSACK_SIMD` that this machine lacks, or a kernel that cannot run.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    report::print(&asked(words)?).map_err(|error| error.to_string())
}

/// The arguments of the benchmark.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Only kernels whose name contains this.
    pub(crate) name: String,
    /// As JSON, not as text.
    pub(crate) json: bool,
    /// Only lists the names; nothing is measured.
    pub(crate) list: bool,
}

/// Parses the arguments after `--`.
pub(crate) fn asked(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--list" => asked.list = true,
            "--format" => match words.next().as_deref() {
                Some("json") => asked.json = true,
                Some("text") => asked.json = false,
                _ => return Err("--format: expected text or json".to_owned()),
            },
            flag if flag.starts_with('-') => {
                return Err(format!("{flag}: expected a part of a kernel's name, --format or --list"));
            }
            name => name.clone_into(&mut asked.name),
        }
    }
    Ok(asked)
}

/// The tensors that everything is measured on: \[1, 256, 14, 14\] and \[1, 512, 768\] of f32, activations of a ResNet
/// and of a BERT that fit in a second-level and in a third-level cache, and 64 MiB, which fits in no cache.
pub(crate) const SIZES: [Bytes; 3] = [Bytes(204_800), Bytes(1_572_864), Bytes(67_108_864)];

/// The feature maps of the bars of compression: \[1, 64, 112, 112\] of f32, the output of a ResNet's first convolution.
pub(crate) const FEATURE_MAPS: Bytes = Bytes(64 * 112 * 112 * 4);

/// Kernels that are listed under one title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
pub(crate) enum Family {
    /// Reductions by one thread.
    #[strum(serialize = "Reductions")]
    Reduction,
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
    /// Masks and copies.
    #[strum(serialize = "Masks and copies")]
    Copy,
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
    pub(crate) const ALL: &[Self] = Self::VARIANTS;

    /// Its title.
    pub(crate) fn title(self) -> &'static str {
        self.into()
    }
}

/// A kernel that can be measured.
pub(crate) struct Kernel {
    contender: Contender,
    about: String,
    family: Family,
    limit: Limit,
    pub(crate) peer: Option<Contender>,
    /// The largest tensor that it is measured on: a product's work outgrows its operands.
    pub(crate) largest: Option<Bytes>,
}

impl Kernel {
    /// Its name, of which a variant's is `<kernel>-<variant>`.
    pub(crate) fn id(&self) -> &str {
        &self.contender.id
    }

    /// A one-line description.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }

    fn takes(&self, size: Bytes) -> bool {
        self.largest.is_none_or(|largest| size <= largest)
    }
}

/// How fast a kernel was at one size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    /// The kernel.
    pub(crate) kernel: String,
    /// The title that it belongs under.
    pub(crate) family: Family,
    /// The size of the tensor in f32: the input of a reduction or a packing, the output of an unpacking. For gradients
    /// of micro-batches, their total; for a product, both operands, which are about as large: see [`edge`].
    pub(crate) size: Bytes,
    /// Tensors a second, times the size.
    pub(crate) rate: BytesPerSecond,
    /// The limit of its speed.
    pub(crate) limit: Limit,
    /// The rate of the limit, for the same tensor in the same run.
    pub(crate) limit_rate: BytesPerSecond,
    /// The peer that it was compared with, and the peer's rate.
    pub(crate) peer: Option<Peer>,
}

impl Measurement {
    /// The rate as a share of the limit.
    pub(crate) fn share_of_limit(&self) -> f64 {
        self.rate.0 / self.limit_rate.0
    }

    /// How many times as fast as its peer the kernel is.
    pub(crate) fn times_peer(&self) -> Option<f64> {
        self.peer.as_ref().map(|peer| self.rate.0 / peer.rate.0)
    }
}

/// Other code, measured in the same run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Peer {
    /// Its name.
    pub(crate) name: String,
    /// Its rate.
    pub(crate) rate: BytesPerSecond,
}

/// Measures `kernels` on tensors of `size`, with their limits and, where `compare`, with their peers, all in one
/// interleaved run. Kernels that are not measured on so large a tensor are left out.
///
/// # Errors
/// A kernel that cannot run.
pub(crate) fn measure(kernels: &[&Kernel], size: Bytes, compare: bool) -> Result<Vec<Measurement>, KernelError> {
    let kernels: Vec<&Kernel> = kernels.iter().copied().filter(|kernel| kernel.takes(size)).collect();
    if kernels.is_empty() {
        return Ok(Vec::new());
    }
    let contenders = contenders(&kernels, compare);
    let mut tensors = Tensors::new(usize::try_from(size.0).unwrap_or(usize::MAX));
    let mut runners =
        contenders.iter().map(|contender| contender.ready(&tensors)).collect::<Result<Vec<_>, KernelError>>()?;
    let times = race(&mut tensors, &mut runners, rules(size))?;
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
        // The fastest way to a limit is the limit.
        limit_rate: BytesPerSecond(kernel.limit.contenders().iter().map(|way| rate(&way.id).0).fold(0.0, f64::max)),
        peer: kernel.peer.as_ref().filter(|_| compare).map(|peer| Peer { name: peer.id.clone(), rate: rate(&peer.id) }),
    };
    Ok(kernels.iter().map(measurement).collect())
}

/// Rows and columns of the square i8 matrices that a product of this size multiplies: both together take about `size`
/// bytes, and the product takes 2·edge³ operations. A multiple of sixteen.
pub(crate) fn edge(size: Bytes) -> usize {
    let values = usize::try_from(size.0 / 2).unwrap_or(usize::MAX);
    (values.isqrt() / 16 * 16).max(16)
}

/// All contenders that run, each once.
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

/// Tensors that fit in a cache are measured in it.
fn rules(size: Bytes) -> Rules {
    let in_cache = size < Bytes(8 << 20);
    Rules {
        rounds: if in_cache { 15 } else { 11 },
        least_turn: Duration::from_micros(200),
        patience: Duration::from_millis(300),
        warm: in_cache,
    }
}
