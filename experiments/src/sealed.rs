//! A file of a line that names its format, a line of JSON, and bytes; its last eight are FNV-1a of all before.

/// The whole file.
pub(crate) fn sealed(format: &str, head: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{format}\n{head}\n").into_bytes();
    bytes.extend(values);
    bytes.extend(fnv1a(&bytes).to_le_bytes());
    bytes
}

/// The line of JSON and the bytes of a file.
///
/// # Errors
/// In words: another format, or a file that is not whole.
pub(crate) fn opened<'b>(bytes: &'b [u8], format: &str) -> Result<(&'b [u8], &'b [u8]), String> {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if first != format.as_bytes() {
        let found = String::from_utf8_lossy(first).chars().take(40).collect::<String>();
        return Err(format!("found a file that begins with '{found}'; expected '{format}'"));
    }
    let (content, sum) = bytes.split_at(bytes.len().saturating_sub(size_of::<u64>()));
    if sum != fnv1a(content).to_le_bytes() {
        return Err(format!("damaged: its checksum is not that of its {} bytes", content.len()));
    }
    let mut lines = content.splitn(3, |&byte| byte == b'\n').skip(1);
    Ok((lines.next().unwrap_or_default(), lines.next().unwrap_or_default()))
}

/// Takes `len` values of `N` bytes from the front; `None` if there are too few.
pub(crate) fn take<'b, const N: usize>(
    bytes: &mut &'b [u8],
    len: usize,
) -> Option<impl Iterator<Item = [u8; N]> + use<'b, N>> {
    let (front, rest) = bytes.split_at_checked(len.checked_mul(N)?)?;
    *bytes = rest;
    Some(front.as_chunks::<N>().0.iter().copied())
}

/// Fowler, Noll and Vo's hash, variant 1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
