//! From bytes to a feature map.

use super::wire::read;
use super::{BitReader, CodecError, FrameReader, Mask, Reader, Record, Shape, Steps};
use crate::quantise::dequantise_into;
use crate::{Bits, Format, Grouping, Isa, Layout};

/// Decompresses the output of [`Codec::compress`](super::Codec::compress) in any mode.
///
/// # Errors
/// [`CodecError::Shape`] unless `values` has as many elements as were compressed; the other errors for bytes that no
/// compressor wrote. The contents of `values` are then undefined.
pub fn decompress(bytes: &[u8], isa: Isa, values: &mut [f32]) -> Result<(), CodecError> {
    let (shape, sections) = read(bytes)?;
    if shape.elements() != Some(values.len()) {
        return Err(CodecError::Shape { found: values.len(), shape });
    }
    let mut records = sections.records;
    let mut predicted = 0;
    let channels = if values.is_empty() { 0 } else { shape.channels };
    for _ in 0..channels {
        predicted += usize::from(matches!(Record::read(&mut records)?, Record::Predicted { .. }));
    }
    records.finish()?;
    let plane = values.len() / channels.max(1);
    let mut decoder = Decoder {
        isa,
        shape,
        quantised: sections.quantised,
        blocks: sections.blocks,
        exact: sections.exact,
        extras: BitReader::new(sections.extras.bytes),
        frames: FrameReader::new(sections.frames, plane * predicted),
        steps: Steps::default(),
        words: Vec::new(),
    };
    let mut records = sections.records;
    for channel in values.chunks_mut(plane.max(1)) {
        decoder.channel(Record::read(&mut records)?, channel)?;
    }
    decoder.finish()
}

/// The sections that have not been read yet.
struct Decoder<'a> {
    isa: Isa,
    shape: Shape,
    quantised: Reader<'a>,
    blocks: Reader<'a>,
    exact: Reader<'a>,
    extras: BitReader<'a>,
    frames: FrameReader<'a>,
    steps: Steps,
    words: Vec<u32>,
}

impl Decoder<'_> {
    fn channel(&mut self, record: Record, values: &mut [f32]) -> Result<(), CodecError> {
        match record {
            Record::Constant { value } => {
                values.fill(value);
                Ok(())
            }
            Record::Whole => {
                let words = self.exact.words(values.len())?;
                values.iter_mut().zip(words).for_each(|(x, word)| *x = f32::from_bits(word));
                Ok(())
            }
            Record::Quantised { bits } => self.quantised(bits, values),
            Record::Predicted { step, exact, edge } => {
                let symbols = self.frames.take(values.len(), self.isa)?;
                self.steps.resize(values.len(), self.shape.width);
                self.steps.restore(symbols, step, self.isa, &mut self.extras, values)?;
                if let Some(edge) = edge {
                    Mask::read(self.shape, edge, &mut self.blocks, values)?;
                }
                self.exact(exact as usize, values)
            }
        }
    }

    fn quantised(&mut self, bits: Bits, values: &mut [f32]) -> Result<(), CodecError> {
        let format = Format::new(bits, Grouping::Group256, Layout::Interleaved);
        let (params, words) = (format.params(values.len()), format.words(values.len()));
        self.words.clear();
        self.words.extend(self.quantised.words(params + words)?);
        let (params, words) = self.words.split_at(params);
        Ok(dequantise_into(words, params, format, self.isa, values)?)
    }

    /// Sets elements that are kept exactly.
    fn exact(&mut self, count: usize, values: &mut [f32]) -> Result<(), CodecError> {
        let places = self.exact.words(count)?;
        for (place, word) in places.zip(self.exact.words(count)?) {
            let Some(x) = values.get_mut(place as usize) else {
                return Err(self.exact.damaged("an element lies outside its channel"));
            };
            *x = f32::from_bits(word);
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), CodecError> {
        self.quantised.finish()?;
        self.blocks.finish()?;
        self.exact.finish()?;
        self.extras.finish()?;
        self.frames.finish()
    }
}
