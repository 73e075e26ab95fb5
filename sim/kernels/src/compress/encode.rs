//! From a feature map to bytes.

use super::wire::{self};
use super::{
    BitWriter, Blocks, Bound, Codec, CodecError, FeatureMap, FrameWriter, Mask, Mode, Record, Sections, Shape,
    Statistics, Steps, Summary, ThreeSigma,
};
use crate::quantise::{Scale, quantise_into};
use crate::{Bits, Format, GROUP, Grouping, Isa, Layout, Rounding};

/// The share of an element's magnitude that is taken off the bound for f32 arithmetic: an inverse, a product and the
/// product back each err by 2^-24 of it.
const ARITHMETIC: f32 = 1.0 / 4_194_304.0;
/// A bound below this share of the largest magnitude leaves too little for a step.
const LEAST_BOUND: f32 = 4.0 * ARITHMETIC;
/// The largest bound that is used: steps of twice as much, and their inverses, are normal numbers.
const MOST_BOUND: f32 = 1e37;
/// A channel is stored whole if more than one of this many elements has no step.
const MOST_EXACT: usize = 8;

/// [`Codec::compress`].
pub(super) fn compress(codec: &Codec, map: FeatureMap<'_>, out: &mut Vec<u8>) -> Result<Summary, CodecError> {
    let (shape, values) = (map.shape(), map.values);
    if shape.elements() != Some(values.len()) || shape.plane().is_none_or(|plane| u32::try_from(plane).is_err()) {
        return Err(CodecError::Shape { found: values.len(), shape });
    }
    wire::begin(out);
    let mut encoder = Encoder::new(codec.isa, shape, std::mem::take(out));
    if !values.is_empty() {
        encoder.add(codec.mode, values)?;
    }
    encoder.finish(out)
}

/// How a channel may be stored.
enum Plan {
    /// As codes of this many bits.
    Quantise(Bits),
    /// As codes of this many bits, or of the fewest that keep the bound; otherwise predicted.
    Normal {
        bits: Option<Bits>,
        bound: f32,
    },
    /// In blocks.
    Salient {
        bound: f32,
        blocks: Blocks,
    },
    Predict {
        bound: f32,
    },
}

/// The output so far.
struct Encoder {
    isa: Isa,
    shape: Shape,
    sections: Sections<Vec<u8>>,
    extras: BitWriter,
    frames: FrameWriter,
    steps: Steps,
    words: Vec<u32>,
    params: Vec<u32>,
    summary: Summary,
}

impl Encoder {
    fn new(isa: Isa, shape: Shape, bytes: Vec<u8>) -> Self {
        Self {
            isa,
            shape,
            sections: Sections::default(),
            extras: BitWriter::default(),
            frames: FrameWriter::new(bytes, shape.plane().unwrap_or(0)),
            steps: Steps::default(),
            words: Vec::new(),
            params: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Writes a tensor that has elements.
    fn add(&mut self, mode: Mode, values: &[f32]) -> Result<(), CodecError> {
        let isa = self.isa;
        let plane = self.shape.height * self.shape.width;
        let channels: Vec<Statistics> = values.chunks(plane).map(|channel| Statistics::of(channel, isa)).collect();
        let Some(tensor) = channels.iter().copied().reduce(Statistics::with) else { return Ok(()) };
        let rule = ThreeSigma::of(tensor);
        for (channel, known) in values.chunks(plane).zip(channels) {
            let absolute = |bound| absolute(bound, tensor, known);
            let plan = match mode {
                Mode::Quantise { bits } => Plan::Quantise(bits),
                Mode::ErrorBounded { bound } => Plan::Predict { bound: absolute(bound) },
                Mode::Mixed { bound, blocks, .. } if rule.is_salient(channel, known, isa) => {
                    Plan::Salient { bound: absolute(bound), blocks }
                }
                Mode::Mixed { bits, bound, .. } => Plan::Normal { bits, bound: absolute(bound) },
            };
            let is_normal = matches!(plan, Plan::Quantise(_) | Plan::Normal { .. });
            let counted = if is_normal { &mut self.summary.normal } else { &mut self.summary.salient };
            *counted += 1;
            self.channel(channel, known, plan)?;
            self.frames.flush(isa);
        }
        Ok(())
    }

    fn channel(&mut self, values: &[f32], known: Statistics, plan: Plan) -> Result<(), CodecError> {
        if known.minimum == known.maximum && values.iter().all(|&x| x == known.minimum) {
            Record::Constant { value: known.minimum }.write(&mut self.sections.records);
            return Ok(());
        }
        let held = match plan {
            Plan::Quantise(bits) => self.quantise(values, bits)?,
            Plan::Normal { bits, bound } => {
                let bits = bits.or_else(|| bits_within(values, bound, self.isa));
                let held = if let Some(bits) = bits { self.quantise(values, bits)? } else { false };
                held || self.predict(values, known, bound, None)
            }
            Plan::Salient { bound, blocks } => self.predict(values, known, bound, Some(blocks)),
            Plan::Predict { bound } => self.predict(values, known, bound, None),
        };
        if !held {
            self.whole(values);
        }
        Ok(())
    }

    /// Stores a channel exactly.
    fn whole(&mut self, values: &[f32]) {
        Record::Whole.write(&mut self.sections.records);
        self.sections.exact.extend(values.iter().flat_map(|x| x.to_le_bytes()));
        self.summary.exact += values.len();
    }

    /// Quantises a channel, unless it contains values that have no code.
    fn quantise(&mut self, values: &[f32], bits: Bits) -> Result<bool, CodecError> {
        if values.iter().any(|x| !x.is_finite()) {
            return Ok(false);
        }
        let format = Format::new(bits, Grouping::Group256, Layout::Interleaved);
        self.words.resize(format.words(values.len()), 0);
        self.params.resize(format.params(values.len()), 0);
        let rounding = Rounding::NearestEven;
        match quantise_into(values, format, rounding, self.isa, &mut self.words, &mut self.params) {
            Ok(()) => {}
            Err(crate::KernelError::Range { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Record::Quantised { bits }.write(&mut self.sections.records);
        let words = self.params.iter().chain(&self.words);
        self.sections.quantised.extend(words.flat_map(|word| word.to_le_bytes()));
        self.summary.quantised += 1;
        Ok(true)
    }

    /// Predicts a channel, or its dense blocks, unless the bound is too tight for it.
    fn predict(&mut self, values: &[f32], known: Statistics, bound: f32, blocks: Option<Blocks>) -> bool {
        let Some(step) = step_within(bound, known) else { return false };
        self.steps.resize(values.len(), self.shape.width);
        let exact = self.steps.quantise(values, step, bound, self.isa);
        if exact.len() > values.len() / MOST_EXACT {
            return false;
        }
        if let Some(blocks) = blocks {
            let mask = Mask::of(values, self.shape, blocks, self.isa);
            mask.clear(self.steps.of_elements());
            mask.write(values, &mut self.sections.blocks);
            let (sparse, dense) = mask.counts();
            self.summary.sparse_blocks += sparse;
            self.summary.dense_blocks += dense;
        }
        self.steps.predict(self.isa, &mut self.frames.pending, &mut self.extras);
        let edge = blocks.map(|blocks| blocks.edge);
        Record::Predicted { step, exact: exact.len() as u32, edge }.write(&mut self.sections.records);
        let elements = exact.iter().map(|&place| values[place as usize].to_bits());
        self.sections.exact.extend(exact.iter().copied().chain(elements).flat_map(u32::to_le_bytes));
        self.summary.exact += exact.len();
        true
    }

    fn finish(mut self, out: &mut Vec<u8>) -> Result<Summary, CodecError> {
        self.sections.extras = self.extras.finish();
        *out = self.frames.finish(self.isa);
        self.sections.finish(self.shape, out)?;
        Ok(Summary { bytes: out.len() as u64, ..self.summary })
    }
}

/// A bound in the unit of the elements, rounded down.
fn absolute(bound: Bound, tensor: Statistics, channel: Statistics) -> f32 {
    let of = |share: f32, known: Statistics| f64::from(share) * known.range();
    let exact = match bound {
        Bound::Absolute(bound) => f64::from(bound),
        Bound::OfTensor(share) => of(share, tensor),
        Bound::OfChannel(share) => of(share, channel),
    };
    let rounded = exact.min(f64::from(MOST_BOUND)) as f32;
    if f64::from(rounded) > exact { rounded.next_down() } else { rounded }
}

/// The largest step whose half, with the errors of f32 arithmetic, stays within a bound.
fn step_within(bound: f32, known: Statistics) -> Option<f32> {
    let magnitude = known.magnitude();
    let step = 2.0 * (bound - ARITHMETIC * magnitude);
    (known.is_some() && bound >= LEAST_BOUND * magnitude && step >= f32::MIN_POSITIVE).then_some(step)
}

/// The fewest bits whose codes, in groups of 256, stay within a bound; `None` if 8 are not enough.
fn bits_within(values: &[f32], bound: f32, isa: Isa) -> Option<Bits> {
    let mut fewest = 1;
    for group in values.chunks(GROUP) {
        let known = Statistics::of(group, isa);
        let enough = |bits: &Bits| bits.get() >= fewest && is_within(known, *bits, bound);
        fewest = Bits::ALL.iter().find(|bits| enough(bits))?.get();
    }
    Bits::ALL.into_iter().find(|bits| bits.get() == fewest)
}

/// Whether the codes of a group stay within a bound: half a step, 2^-12 of it and two units in the last place, as
/// [`quantise_into`] promises.
fn is_within(group: Statistics, bits: Bits, bound: f32) -> bool {
    Scale::of(group.minimum, group.maximum, bits, Grouping::Group256).is_ok_and(|scale| {
        let step = f64::from(scale.step);
        let place = f64::from(group.magnitude()) + step;
        step * (0.5 + 1.0 / 4096.0) + place / 4_194_304.0 <= f64::from(bound)
    })
}
