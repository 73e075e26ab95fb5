//! Canonical Huffman codes over bytes, of at most [`LONGEST`] bits.

use super::error::CodecError;

/// Bits of the longest code: so a table of 4096 entries decodes any, and four of them fit a 64-bit register beside what
/// a byte has left.
pub(super) const LONGEST: usize = 12;

/// Entries of a decoding table.
pub(super) const TABLE: usize = 1 << LONGEST;

/// The lengths of a code that makes the sum of `counts` times lengths the least that codes of at most [`LONGEST`] bits
/// can have; 0 for what does not occur. Where fewer than two symbols occur, all are 0: there is nothing to tell apart.
///
/// Package-merge (Larmore and Hirschberg, JACM 1990). A coin of 2^-l is a symbol, or a package of two coins of 2^-(l+1);
/// the 2n - 2 cheapest of 1/2 hold a symbol as often as its code is long.

pub(super) fn lengths(counts: &[u32; 256]) -> [u8; 256] {
    let mut lengths = [0; 256];
    let mut used: Vec<(u32, u8)> =
        counts.iter().zip(0..=u8::MAX).filter(|(count, _)| **count > 0).map(|(&count, symbol)| (count, symbol)).collect();
    if used.len() < 2 {
        return lengths;
    }
    used.sort_unstable();
    let symbols: Vec<u32> = used.iter().map(|&(count, _)| count).chain([END]).collect();
    let (mut coins, mut levels) = (symbols.clone(), vec![vec![true; used.len()]]);
    for _ in 1..LONGEST {
        let pairs = coins[..coins.len() - 1].as_chunks::<2>().0;
        let packages: Vec<u32> = pairs.iter().map(|[a, b]| a + b).chain([END]).collect();
        levels.push(merge(&symbols, &packages, &mut coins));
    }
    let mut taken = 2 * used.len() - 2;
    for level in levels.iter().rev() {
        let symbols = level.iter().take(taken).filter(|is_symbol| **is_symbol).count();
        for &(_, symbol) in used.iter().take(symbols) {
            lengths[usize::from(symbol)] += 1;
        }
        taken = 2 * (taken - symbols);
    }
    lengths
}

/// Stands after the last coin, and weighs more than any: a frame's symbols, as often as there are levels, weigh less.
const END: u32 = u32::MAX;

/// The coins of a level in order, and whether each is a symbol. A symbol comes first where a package weighs the same.
fn merge(symbols: &[u32], packages: &[u32], coins: &mut Vec<u32>) -> Vec<bool> {
    let count = symbols.len() + packages.len() - 2;
    coins.clear();
    coins.resize(count + 1, END);
    let mut are_symbols = vec![false; count];
    let (mut symbol, mut package) = (0, 0);
    for (coin, is_symbol) in coins.iter_mut().zip(&mut are_symbols) {
        let (ours, theirs) = (symbols[symbol], packages[package]);
        *coin = ours.min(theirs);
        *is_symbol = ours <= theirs;
        symbol += usize::from(*is_symbol);
        package += usize::from(!*is_symbol);
    }
    are_symbols
}

/// The canonical codes of some lengths: those of a length count up in the order of their symbols, and a longer code
/// begins above the shorter ones. Each is given with its first bit lowest, as it is written.

pub(super) fn codes(lengths: &[u8; 256]) -> [u16; 256] {
    let mut codes = [0; 256];
    let mut next = 0_u16;
    for length in 1..=LONGEST as u8 {
        next <<= 1;
        for (code, _) in codes.iter_mut().zip(lengths).filter(|(_, found)| **found == length) {
            *code = next.reverse_bits() >> (16 - u32::from(length));
            next = next.wrapping_add(1);
        }
    }
    codes
}

/// What the next [`LONGEST`] bits begin with: the symbol, and above it the length of its code.
pub(super) fn table(lengths: &[u8; 256]) -> Result<Box<[u16; TABLE]>, CodecError> {
    let share = |length: u8| if length == 0 { 0 } else { TABLE >> length };
    if lengths.iter().any(|&length| usize::from(length) > LONGEST)
        || lengths.iter().map(|&length| share(length)).sum::<usize>() != TABLE
    {
        return Err(CodecError::damaged("a table of code lengths", "no prefix code has them"));
    }
    let mut table = Box::new([0; TABLE]);
    let codes = codes(lengths);
    for (symbol, (&length, code)) in lengths.iter().zip(codes).enumerate().filter(|(_, (length, _))| **length > 0) {
        for entry in table.iter_mut().skip(usize::from(code)).step_by(1 << length) {
            *entry = symbol as u16 | u16::from(length) << 8;
        }
    }
    Ok(table)
}
