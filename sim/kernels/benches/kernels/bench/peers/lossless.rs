//! `lz4_flex` and `zstd`: lossless compressors of the same bytes. Their task differs from the kernel's, which rounds;
//! they are the peers where no crate does the same.

use std::hint::black_box;

use haversack_kernels::KernelError;

use crate::bench::buffer::Buffer;
use crate::bench::contender::{Contender, Tensors};
use crate::bench::maps::maps;

/// zstd's default level, and its fastest.
pub(crate) const DEFAULT_LEVEL: i32 = 3;
const FASTEST_LEVEL: i32 = 1;

/// `lz4_flex`, on the tensor or on smooth maps of its size.
pub(crate) fn lz4(id: &str, of_maps: bool) -> Contender {
    let own = move |tensors: &Tensors| {
        Ok((of_maps.then(|| maps(tensors).0), Buffer::<u8>::zeroed(lz4_bound(tensors.values.len()))))
    };
    Contender::with(id, own, |(own, packed), Tensors { values, .. }| {
        black_box(lz4_into(black_box(own.as_ref().unwrap_or(values)), black_box(packed))?);
        Ok(())
    })
}

/// zstd at its default level, on smooth maps.
pub(crate) fn zstd(id: &str) -> Contender {
    Contender::owning(id, move |tensors| {
        let (values, _) = maps(tensors);
        let mut packed = Buffer::zeroed(zstd::zstd_safe::compress_bound(size_of_val(&*values)));
        Ok(Box::new(move |_| zstd_into(black_box(&values), DEFAULT_LEVEL, black_box(&mut packed)).map(|_| ())))
    })
}

/// Decompresses smooth maps that zstd's fastest level compressed.
pub(crate) fn zstd_back(id: &str) -> Contender {
    Contender::owning(id, move |tensors| {
        let (values, _) = maps(tensors);
        let mut packed = Buffer::zeroed(zstd::zstd_safe::compress_bound(size_of_val(&*values)));
        let length = zstd_into(&values, FASTEST_LEVEL, &mut packed)?;
        let mut bytes = Buffer::zeroed(size_of_val(&*values));
        Ok(Box::new(move |_| zstd_from(black_box(&packed[..length]), black_box(&mut bytes))))
    })
}

/// Compresses the bytes of `values` by `lz4_flex` into `packed`, which must have [`lz4_bound`] bytes.
///
/// # Errors
/// A `packed` that is too short.
pub(crate) fn lz4_into(values: &[f32], packed: &mut [u8]) -> Result<usize, KernelError> {
    let found = packed.len();
    let too_short = |_| KernelError::Length { what: "the compressed tensor", found, expected: lz4_bound(values.len()) };
    lz4_flex::block::compress_into(bytes(values), packed).map_err(too_short)
}

/// Bytes that `lz4_flex` may need for `values` values.
pub(crate) fn lz4_bound(values: usize) -> usize {
    lz4_flex::block::get_maximum_output_size(values * size_of::<f32>())
}

/// Compresses the bytes of `values` by zstd into `packed`, which must have room for zstd's worst case.
///
/// # Errors
/// A `packed` that is too short.
pub(crate) fn zstd_into(values: &[f32], level: i32, packed: &mut [u8]) -> Result<usize, KernelError> {
    let (found, expected) = (packed.len(), zstd::zstd_safe::compress_bound(size_of_val(values)));
    let too_short = |_| KernelError::Length { what: "the compressed tensor", found, expected };
    zstd::bulk::compress_to_buffer(bytes(values), packed, level).map_err(too_short)
}

/// Decompresses the output of [`zstd_into`].
///
/// # Errors
/// Bytes that zstd did not write, or that decompress to more than `bytes` has room for.
pub(crate) fn zstd_from(packed: &[u8], bytes: &mut [u8]) -> Result<(), KernelError> {
    let expected = bytes.len();
    let found = zstd::bulk::decompress_to_buffer(packed, bytes).unwrap_or(0);
    if found == expected { Ok(()) } else { Err(KernelError::Length { what: "the tensor", found, expected }) }
}

/// The bytes of `values`.
pub(crate) fn bytes(values: &[f32]) -> &[u8] {
    // SAFETY: floats have no padding and bytes no alignment; the length is that of the slice in bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}
