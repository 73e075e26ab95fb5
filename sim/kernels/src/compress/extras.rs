//! A string of bits, filled from the lowest bit up: the extra bits of large misses, whose symbol
//! gives only their number.

use super::CodecError;

/// A string of bits that is being written.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl BitWriter {
    /// Adds the `bits` ≤ 32 low bits of `value`, which has no others.
    pub(super) fn push(&mut self, value: u32, bits: u32) {
        self.held |= u64::from(value) << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.bytes.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// The bytes, the last of them filled up with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.held as u8);
        }
        self.bytes
    }
}

/// Reads the output of a [`BitWriter`].
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    held: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, held: 0, count: 0 }
    }

    /// The next `bits` ≤ 32 bits.
    pub(super) fn take(&mut self, bits: u32) -> Result<u32, CodecError> {
        while self.count < bits {
            let Some((&byte, rest)) = self.bytes.split_first() else {
                return Err(CodecError::damaged("the section of extra bits", "it ends too early"));
            };
            self.bytes = rest;
            self.held |= u64::from(byte) << self.count;
            self.count += 8;
        }
        let value = (self.held & ((1 << bits) - 1)) as u32;
        self.held >>= bits;
        self.count -= bits;
        Ok(value)
    }

    /// Fails unless everything has been read.
    pub(super) fn finish(&self) -> Result<(), CodecError> {
        if self.bytes.is_empty() && self.held == 0 {
            Ok(())
        } else {
            Err(CodecError::damaged("the section of extra bits", "it continues after the last"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_in_order_and_nothing_after_them() {
        let mut writer = BitWriter::default();
        for (value, bits) in [(5, 3), (0, 0), (u32::MAX, 32), (1, 1), (300, 9)] {
            writer.push(value, bits);
        }
        let bytes = writer.finish();
        // 3 + 32 + 1 + 9 = 45 bits are six bytes.
        assert_eq!(bytes.len(), 6);
        let mut reader = BitReader::new(&bytes);
        assert_eq!([3, 0, 32, 1, 9].map(|bits| reader.take(bits).unwrap()), [5, 0, u32::MAX, 1, 300]);
        assert!(reader.finish().is_ok());
        assert!(reader.take(4).is_err());
        assert!(BitReader::new(&bytes).finish().is_err());
    }
}
