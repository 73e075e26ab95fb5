//! The same bytes on every machine: the results of training do not depend on the instruction set.

use std::process::Command;

use haversack_kernels::Isa;
use haversack_kernels::compress::{Bound, Codec, FeatureMap, Mode};
use haversack_kernels::quantise::{Bits, Format, Grouping, Layout, Packed, Rounding};
use haversack_kernels::reduce::sum_of_squares;
use haversack_numerics::memory::Contents;
use haversack_numerics::state::State;

use crate::{integers, steps};

/// FNV-1a of the results of all trainings.
const DIGEST: u64 = 0x4d44_f0e6_6d7c_68fa;

fn hash(digest: &mut u64, bytes: impl IntoIterator<Item = u8>) {
    for byte in bytes {
        *digest = (*digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

/// Adds the results of a training to the digest: the state, and its weights quantised and compressed.
fn hash_state(digest: &mut u64, state: &State, isa: Isa) {
    for (_, contents) in state.tensors() {
        match contents {
            Contents::Floats(values) => {
                hash(digest, values.iter().flat_map(|x| x.to_bits().to_le_bytes()));
                hash(digest, sum_of_squares(values, isa).to_bits().to_le_bytes());
                let format = Format::new(Bits::new(4).unwrap(), Grouping::Group256, Layout::Interleaved);
                let packed = Packed::quantise(values, format, Rounding::Stochastic { seed: 5 }, isa).unwrap();
                hash(digest, packed.words().iter().chain(packed.params()).flat_map(|word| word.to_le_bytes()));
                let map = FeatureMap { values, channels: 1, height: 1, width: values.len() };
                let mut bytes = Vec::new();
                let codec = Codec::new(Mode::mixed(Bound::OfTensor(1e-3)), isa).unwrap();
                codec.compress(map, &mut bytes).unwrap();
                hash(digest, bytes);
            }
            Contents::Eight(held) => {
                hash(digest, held.codes.iter().map(|code| code.cast_unsigned()));
                hash(digest, held.step.to_bits().to_le_bytes());
            }
            Contents::Integers(values) => hash(digest, values.iter().flat_map(|x| x.to_le_bytes())),
        }
    }
}

#[test]
fn trainings_end_with_the_same_bytes_under_every_instruction_set() {
    let (isa, mut digest) = (Isa::chosen().unwrap(), 0xcbf2_9ce4_8422_2325);
    steps::trained(|state, loss| {
        hash(&mut digest, loss.mean.to_bits().to_le_bytes());
        hash_state(&mut digest, state, isa);
    });
    integers::trained(|state| hash_state(&mut digest, state, isa));
    assert_eq!(digest, DIGEST, "{isa}: {digest:#018x}");
    // Each other instruction set runs in its own process, because a process chooses it once.
    if std::env::var_os("HAVERSACK_SIMD").is_none() {
        for other in Isa::available().into_iter().filter(|&other| other != isa) {
            let test = "bytes::trainings_end_with_the_same_bytes_under_every_instruction_set";
            let mut command = Command::new(std::env::current_exe().unwrap());
            let output = command.args(["--exact", test]).env("HAVERSACK_SIMD", other.name()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{other}: {said}");
        }
    }
}
