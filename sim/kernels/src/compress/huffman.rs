//! Canonical Huffman codes over bytes, of at most [`LONGEST`] bits.

use super::CodecError;

/// Bits of the longest code: a table of 4096 entries then decodes any code, and four codes fit in a 64-bit register
/// together with up to 7 bits left of a byte.
pub(super) const LONGEST: usize = 12;

/// Entries of a decoding table.
pub(super) const TABLE: usize = 1 << LONGEST;

/// The code lengths for symbols that occur this often, close to the shortest total for codes of at most
/// [`LONGEST`] bits; 0 for a symbol that does not occur. Where fewer than two symbols occur, all lengths are 0:
/// nothing has to be distinguished.
///
/// Huffman's tree from two queues, in which nodes come in order; leaves below the limit are then moved up to it, and
/// others down until all fit.
pub(super) fn lengths(counts: &[u32; 256]) -> [u8; 256] {
    let mut lengths = [0; 256];
    let mut used: Vec<(u32, u8)> = counts
        .iter()
        .zip(0..=u8::MAX)
        .filter(|(count, _)| **count > 0)
        .map(|(&count, symbol)| (count, symbol))
        .collect();
    if used.len() < 2 {
        return lengths;
    }
    used.sort_unstable();
    let mut left = leaves_at(&used);
    // The rarest symbol has the longest code.
    let mut length = LONGEST;
    for (_, symbol) in used {
        while left[length] == 0 {
            length -= 1;
        }
        left[length] -= 1;
        lengths[usize::from(symbol)] = length as u8;
    }
    lengths
}

/// The number of leaves at each depth, none deeper than [`LONGEST`], of the tree of two or more symbols.
fn leaves_at(used: &[(u32, u8)]) -> [usize; LONGEST + 1] {
    let leaves = used.len();
    let mut weights: Vec<u32> = used.iter().map(|&(count, _)| count).collect();
    let mut parents = vec![0; 2 * leaves - 1];
    let (mut leaf, mut node) = (0, leaves);
    for parent in leaves..2 * leaves - 1 {
        let mut lightest = || {
            let place =
                if leaf < leaves && (node == parent || weights[leaf] <= weights[node]) { &mut leaf } else { &mut node };
            *place += 1;
            *place - 1
        };
        let (first, second) = (lightest(), lightest());
        (parents[first], parents[second]) = (parent, parent);
        weights.push(weights[first] + weights[second]);
    }
    let (mut depths, mut at) = (vec![0; 2 * leaves - 1], [0; LONGEST + 1]);
    for node in (0..2 * leaves - 2).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths[..leaves].iter().for_each(|&depth: &usize| at[depth.min(LONGEST)] += 1);
    // How much of the 2^LONGEST code space the codes take.
    let mut taken: usize = at.iter().enumerate().map(|(depth, leaves)| leaves << (LONGEST - depth)).sum();
    while taken > TABLE {
        // A leaf moves one level down, and a leaf from the limit becomes its sibling.
        let Some(above) = at[..LONGEST].iter().rposition(|&leaves| leaves > 0) else { break };
        at[above] -= 1;
        at[above + 1] += 2;
        at[LONGEST] -= 1;
        taken -= 1;
    }
    at
}

/// The canonical codes of some lengths: codes of one length count up in the order of their symbols, and a longer code
/// begins above the shorter ones. The first bit of each is the lowest, as it is written.
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

/// For every value of the next [`LONGEST`] bits, the symbol that they begin with and, above it, the length of its code.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The least sum of counts times lengths that codes of at most `LONGEST` bits can have: package-merge (Larmore and
    /// Hirschberg, JACM 1990). A coin of 2^-l is a symbol, or a package of two coins of 2^-(l + 1); the 2n - 2 cheapest
    /// of 1/2 weigh what the code costs.
    fn least(counts: &[u32; 256]) -> u64 {
        let symbols: Vec<u64> = counts.iter().filter(|count| **count > 0).map(|&count| u64::from(count)).collect();
        let mut coins = Vec::new();
        for _ in 0..LONGEST {
            coins =
                coins.chunks_exact(2).map(|pair: &[u64]| pair[0] + pair[1]).chain(symbols.iter().copied()).collect();
            coins.sort_unstable();
        }
        coins.iter().take(2 * symbols.len() - 2).sum()
    }

    fn cost(counts: &[u32; 256], lengths: &[u8; 256]) -> u64 {
        counts.iter().zip(lengths).map(|(&count, &length)| u64::from(count) * u64::from(length)).sum()
    }

    fn counts(of: impl Fn(u32) -> u32) -> [u32; 256] {
        std::array::from_fn(|symbol| of(symbol as u32))
    }

    #[test]
    fn lengths_by_hand() {
        // 1 + 1 = 2, 2 + 2 = 4, 4 + 5 = 9: lengths 3, 3, 2 and 1.
        let mut few = [0; 256];
        [few[7], few[9], few[200], few[0]] = [1, 1, 2, 5];
        let lengths = lengths(&few);
        assert_eq!([lengths[7], lengths[9], lengths[200], lengths[0]], [3, 3, 2, 1]);
        assert_eq!(lengths.iter().map(|&length| u32::from(length)).sum::<u32>(), 9);
        // 0; then 10; then 110 and 111 in the order of symbols; first bit lowest.
        let codes = codes(&lengths);
        assert_eq!([codes[0], codes[200], codes[7], codes[9]], [0, 0b01, 0b011, 0b111]);
    }

    #[test]
    fn lengths_fill_the_code_and_cost_no_more_than_the_least() {
        let even = counts(|_| 3);
        let falling = counts(|symbol| 100_000 >> (symbol / 48));
        let deep = counts(|symbol| 100_000 >> (symbol / 16));
        // Without a limit the rarest codes would have 16 bits.
        let steep = counts(|symbol| if symbol < 17 { 1 << symbol } else { 0 });
        let fibonacci = counts(|symbol| (1.618_f64.powi(symbol as i32 % 20)) as u32);
        for (counts, is_limited) in [(even, false), (falling, false), (deep, true), (steep, true), (fibonacci, true)] {
            let lengths = lengths(&counts);
            assert!(counts.iter().zip(&lengths).all(|(&count, &length)| (count > 0) == (length > 0)));
            assert!(lengths.iter().all(|&length| usize::from(length) <= LONGEST));
            // The table exists only where the code is complete.
            assert!(table(&lengths).is_ok());
            let (cost, least) = (cost(&counts, &lengths), least(&counts));
            // Where the limit does not matter, that is Huffman's own code; elsewhere it is within
            // a hundredth of the best.
            assert!(if is_limited { cost <= least + least / 100 } else { cost == least }, "{cost} {least}");
        }
    }

    #[test]
    fn a_table_reads_what_a_walk_bit_by_bit_reads() {
        let lengths = lengths(&counts(|symbol| 100_000 >> (symbol / 12)));
        let (codes, table) = (codes(&lengths), table(&lengths).unwrap());
        for bits in 0..TABLE {
            // No code is a prefix of another, so the one that fits is the only one.
            let fits = |symbol: &usize| {
                let length = lengths[*symbol];
                length > 0 && bits & ((1 << length) - 1) == usize::from(codes[*symbol])
            };
            let found: Vec<usize> = (0..256).filter(fits).collect();
            assert_eq!(found, [usize::from(table[bits] & 0xFF)]);
            assert_eq!(table[bits] >> 8, u16::from(lengths[found[0]]));
        }
    }

    #[test]
    fn nothing_to_tell_apart_has_no_lengths_and_what_is_no_code_no_table() {
        assert_eq!(lengths(&counts(|symbol| u32::from(symbol == 5))), [0; 256]);
        assert_eq!(lengths(&[0; 256]), [0; 256]);
        for wrong in [[0; 256], [7; 256], [13; 256]] {
            assert!(table(&wrong).is_err());
        }
        assert!(table(&[8; 256]).is_ok());
    }
}
