//! The `bitpacking` crate as a quantiser: f32 to integers eight at a time, integers to bits by its `BitPacker8x`.
//!
//! The crate packs blocks of 256 integers by AVX2 and knows no floats, so what stands in front of it and behind it is
//! written here as well as it can be: minimum and maximum in one pass, conversion by adding 2²³, dequantisation by one
//! fused multiply-add. Only whole blocks are packed.

use bitpacking::{BitPacker, BitPacker8x};

/// Integers in a block.
pub(crate) const BLOCK: usize = BitPacker8x::BLOCK_LEN;
/// 2²³ as f32: adding it leaves a small number's integer in the last bits.
const MAGIC: f32 = 8_388_608.0;

/// Where codes stand between quantiser and packer: within the first cache, aligned.
#[repr(align(64))]
struct Codes([u32; BLOCK]);

/// What dequantises a block: the value of code 0 and the step between codes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scale {
    minimum: f32,
    step: f32,
}

impl Scale {
    fn new((minimum, maximum): (f32, f32), bits: u8) -> Self {
        Self { minimum, step: (maximum - minimum) / ((1_u32 << bits) - 1) as f32 }
    }

    fn inverse(self) -> f32 {
        if self.step > 0.0 { 1.0 / self.step } else { 0.0 }
    }
}

/// A packer of tensors at one width.
pub(crate) struct Pipeline {
    packer: BitPacker8x,
    bits: u8,
}

impl Pipeline {
    /// One for codes of `bits`, 1 to 8.
    pub(crate) fn new(bits: u8) -> Self {
        Self { packer: BitPacker8x::new(), bits }
    }

    /// Bytes of the codes of so many values.
    pub(crate) fn bytes(&self, values: usize) -> usize {
        values / BLOCK * self.block_bytes()
    }

    fn block_bytes(&self) -> usize {
        BLOCK * usize::from(self.bits) / 8
    }

    /// The scale of the tensor: one pass over the values.
    pub(crate) fn scale(&self, values: &[f32]) -> Scale {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return Scale::new(unsafe { x86::range(values) }, self.bits);
        }
        Scale::new(plain::range(values), self.bits)
    }

    /// Packs the tensor by one scale: another pass.
    pub(crate) fn pack(&self, values: &[f32], scale: Scale, packed: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { x86::pack(self, values, scale, packed) };
        }
        self.blocks(values, packed, |block, codes| plain::quantise(block, scale, codes));
    }

    /// Packs the tensor with a scale for every block: one pass.
    pub(crate) fn pack_groups(&self, values: &[f32], packed: &mut [u8], scales: &mut [Scale]) {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { x86::pack_groups(self, values, packed, scales) };
        }
        let mut scales = scales.iter_mut();
        self.blocks(values, packed, |block, codes| {
            let scale = Scale::new(plain::range(block), self.bits);
            plain::quantise(block, scale, codes);
            scales.next().into_iter().for_each(|place| *place = scale);
        });
    }

    /// The same, each block's range found by plain folds: what a user of the crate would write. The folds are compiled
    /// with the instructions that the rest is written for.
    pub(crate) fn pack_groups_by_folds(&self, values: &[f32], packed: &mut [u8], scales: &mut [Scale]) {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { x86::pack_groups_by_folds(self, values, packed, scales) };
        }
        self.pack_groups(values, packed, scales);
    }

    /// Unpacks a tensor that was packed with one scale.
    pub(crate) fn unpack(&self, packed: &[u8], scale: Scale, values: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { x86::unpack(self, packed, scale, values) };
        }
        self.unpack_blocks(packed, values, |codes, block| plain::dequantise(codes, scale, block));
    }

    /// Unpacks a tensor that was packed with a scale for every block.
    pub(crate) fn unpack_groups(&self, packed: &[u8], scales: &[Scale], values: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { x86::unpack_groups(self, packed, scales, values) };
        }
        let mut scales = scales.iter().copied();
        self.unpack_blocks(packed, values, |codes, block| {
            plain::dequantise(codes, scales.next().unwrap_or_default(), block);
        });
    }

    #[inline(always)]
    fn blocks(&self, values: &[f32], packed: &mut [u8], mut quantise: impl FnMut(&[f32; BLOCK], &mut Codes)) {
        let mut codes = Codes([0; BLOCK]);
        for (block, packed) in values.as_chunks().0.iter().zip(packed.chunks_exact_mut(self.block_bytes())) {
            quantise(block, &mut codes);
            self.packer.compress(&codes.0, packed, self.bits);
        }
    }

    #[inline(always)]
    fn unpack_blocks(&self, packed: &[u8], values: &mut [f32], mut dequantise: impl FnMut(&Codes, &mut [f32; BLOCK])) {
        let mut codes = Codes([0; BLOCK]);
        for (block, packed) in values.as_chunks_mut().0.iter_mut().zip(packed.chunks_exact(self.block_bytes())) {
            self.packer.decompress(packed, &mut codes.0, self.bits);
            dequantise(&codes, block);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// The parts in plain Rust.
mod plain {
    use super::{BLOCK, Codes, MAGIC, Scale};

    #[inline(always)]
    pub(super) fn range(values: &[f32]) -> (f32, f32) {
        (super::super::minimum(values), super::super::maximum(values))
    }

    pub(super) fn quantise(block: &[f32; BLOCK], scale: Scale, codes: &mut Codes) {
        let inverse = scale.inverse();
        for (code, &value) in codes.0.iter_mut().zip(block) {
            *code = ((value - scale.minimum) * inverse + MAGIC).to_bits() - MAGIC.to_bits();
        }
    }

    pub(super) fn dequantise(codes: &Codes, scale: Scale, block: &mut [f32; BLOCK]) {
        for (value, &code) in block.iter_mut().zip(&codes.0) {
            *value = code as f32 * scale.step + scale.minimum;
        }
    }
}

/// The parts by AVX2.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m256i, _mm256_castps_si256, _mm256_cvtepi32_ps, _mm256_fmadd_ps, _mm256_load_si256, _mm256_loadu_ps,
        _mm256_max_ps, _mm256_min_ps, _mm256_set1_ps, _mm256_store_si256, _mm256_storeu_ps, _mm256_sub_epi32,
        _mm256_sub_ps,
    };

    use super::{BLOCK, Codes, MAGIC, Pipeline, Scale, plain};

    /// Lanes of a vector.
    const LANES: usize = 8;
    /// Accumulators of each kind, enough to hide the latency of their instruction.
    const CHAINS: usize = 4;

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn pack(pipeline: &Pipeline, values: &[f32], scale: Scale, packed: &mut [u8]) {
        pipeline.blocks(values, packed, |block, codes| quantise(block, scale, codes));
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn pack_groups_by_folds(pipeline: &Pipeline, values: &[f32], packed: &mut [u8], scales: &mut [Scale]) {
        let mut scales = scales.iter_mut();
        pipeline.blocks(values, packed, |block, codes| {
            let scale = Scale::new(plain::range(block), pipeline.bits);
            quantise(block, scale, codes);
            scales.next().into_iter().for_each(|place| *place = scale);
        });
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn pack_groups(pipeline: &Pipeline, values: &[f32], packed: &mut [u8], scales: &mut [Scale]) {
        let mut scales = scales.iter_mut();
        pipeline.blocks(values, packed, |block, codes| {
            let scale = Scale::new(range(block), pipeline.bits);
            quantise(block, scale, codes);
            scales.next().into_iter().for_each(|place| *place = scale);
        });
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn unpack(pipeline: &Pipeline, packed: &[u8], scale: Scale, values: &mut [f32]) {
        pipeline.unpack_blocks(packed, values, |codes, block| dequantise(codes, scale, block));
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn unpack_groups(pipeline: &Pipeline, packed: &[u8], scales: &[Scale], values: &mut [f32]) {
        let mut scales = scales.iter().copied();
        pipeline.unpack_blocks(packed, values, |codes, block| {
            dequantise(codes, scales.next().unwrap_or_default(), block);
        });
    }

    /// Minimum and maximum in one pass; values after the last whole block are not looked at.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn range(values: &[f32]) -> (f32, f32) {
        let (chunks, _) = values.as_chunks::<{ LANES * CHAINS }>();
        let mut minima = [_mm256_set1_ps(f32::INFINITY); CHAINS];
        let mut maxima = [_mm256_set1_ps(f32::NEG_INFINITY); CHAINS];
        for chunk in chunks {
            for chain in 0..CHAINS {
                // SAFETY: `chain < CHAINS`, so that eight values follow within the chunk.
                let vector = unsafe { _mm256_loadu_ps(chunk.as_ptr().add(chain * LANES)) };
                minima[chain] = _mm256_min_ps(vector, minima[chain]);
                maxima[chain] = _mm256_max_ps(vector, maxima[chain]);
            }
        }
        let [a, b, c, d] = minima;
        let minimum = lanes(_mm256_min_ps(_mm256_min_ps(a, b), _mm256_min_ps(c, d)));
        let [a, b, c, d] = maxima;
        let maximum = lanes(_mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d)));
        (minimum.into_iter().fold(f32::INFINITY, f32::min), maximum.into_iter().fold(f32::NEG_INFINITY, f32::max))
    }

    #[target_feature(enable = "avx2")]
    fn lanes(vector: __m256) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        // SAFETY: the array holds eight floats.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), vector) };
        lanes
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn quantise(block: &[f32; BLOCK], scale: Scale, codes: &mut Codes) {
        let magic = _mm256_set1_ps(MAGIC);
        let (minimum, inverse) = (_mm256_set1_ps(scale.minimum), _mm256_set1_ps(scale.inverse()));
        for at in (0..BLOCK).step_by(LANES) {
            // SAFETY: a block is a whole number of vectors, and so are its codes.
            let value = unsafe { _mm256_loadu_ps(block.as_ptr().add(at)) };
            let sum = _mm256_fmadd_ps(_mm256_sub_ps(value, minimum), inverse, magic);
            let code = _mm256_sub_epi32(_mm256_castps_si256(sum), _mm256_castps_si256(magic));
            // SAFETY: as above; `Codes` is aligned to 64 bytes.
            unsafe { _mm256_store_si256(codes.0.as_mut_ptr().add(at).cast::<__m256i>(), code) };
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn dequantise(codes: &Codes, scale: Scale, block: &mut [f32; BLOCK]) {
        let (minimum, step) = (_mm256_set1_ps(scale.minimum), _mm256_set1_ps(scale.step));
        for at in (0..BLOCK).step_by(LANES) {
            // SAFETY: a block is a whole number of vectors, and so are its codes, aligned to 64 bytes.
            let code = unsafe { _mm256_load_si256(codes.0.as_ptr().add(at).cast::<__m256i>()) };
            let value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(code), step, minimum);
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(block.as_mut_ptr().add(at), value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_within_half_a_step_for_one_scale_and_for_one_a_block() {
        // Three blocks of different ranges.
        let values: Vec<f32> =
            (0..3 * BLOCK).map(|i| ((i * 37 % 101) as f32 - 50.0) * (1 + i / BLOCK) as f32).collect();
        for bits in 1..=8 {
            let pipeline = Pipeline::new(bits);
            assert_eq!(pipeline.bytes(values.len()), 3 * 32 * usize::from(bits));
            let mut packed = vec![0; pipeline.bytes(values.len())];
            let mut back = vec![0.0; values.len()];
            // Half a step, and the rounding of f32 at values of up to 150.
            let near = |back: f32, value: f32, scale: Scale| (back - value).abs() <= scale.step / 2.0 + 1e-4;

            let scale = pipeline.scale(&values);
            pipeline.pack(&values, scale, &mut packed);
            pipeline.unpack(&packed, scale, &mut back);
            assert!(back.iter().zip(&values).all(|(&b, &v)| near(b, v, scale)), "{bits} bits");

            let mut scales = [Scale::default(); 3];
            pipeline.pack_groups(&values, &mut packed, &mut scales);
            pipeline.unpack_groups(&packed, &scales, &mut back);
            // The first block runs over all of −50 to 50, the others over two and three times that.
            assert_eq!(scales.map(|scale| scale.minimum), [-50.0, -100.0, -150.0]);
            assert!((0..values.len()).all(|i| near(back[i], values[i], scales[i / BLOCK])), "{bits} bits");

            // By folds the same blocks come out.
            let (mut by_folds, mut scales_by_folds) = (vec![0; packed.len()], [Scale::default(); 3]);
            pipeline.pack_groups_by_folds(&values, &mut by_folds, &mut scales_by_folds);
            assert_eq!((by_folds, scales_by_folds), (packed, scales), "{bits} bits");
        }
    }

    #[test]
    fn a_constant_tensor_is_all_zeros() {
        let mut packed = [1; 64];
        let scale = Pipeline::new(2).scale(&[3.0; BLOCK]);
        Pipeline::new(2).pack(&[3.0; BLOCK], scale, &mut packed);
        assert_eq!((scale, packed), (Scale { minimum: 3.0, step: 0.0 }, [0; 64]));
    }
}
