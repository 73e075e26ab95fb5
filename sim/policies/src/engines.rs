//! The engines that Mandheling is compared with, which keep everything and hand out nothing: a stack, the processor
//! that it trains on, and the number format (Xu et al., MobiCom 2022, section 4.1).

use crate::entry::{Choice, Engine, EngineProcessor, Entry};
use crate::original::Original;

/// How scenarios name it, and what they can set.
pub(crate) static TFLITE_FP32: Entry = Entry {
    id: "tflite-fp32",
    about: "TFLite in fp32 on the big cores: everything is kept",
    description: "The baseline that Mandheling is compared with: TensorFlow Lite trains in fp32 on four big cores, keeps every tensor, and gives nothing up.",
    citation: "Xu et al., MobiCom 2022, section 4.1",
    engine: Some(BIG_CORES),
    ..Entry::built_by(|_| Ok(Box::new(Original)))
};

/// How scenarios name it, and what they can set.
pub(crate) static MNN_FP32: Entry = Entry {
    id: "mnn-fp32",
    about: "MNN in fp32 on the big cores: everything is kept",
    description: "As tflite-fp32 with the kernels and the graph of MNN.",
    citation: "Xu et al., MobiCom 2022, section 4.1",
    engine: Some(Engine { stack: "mnn", ..BIG_CORES }),
    ..Entry::built_by(|_| Ok(Box::new(Original)))
};

/// How scenarios name it, and what they can set.
pub(crate) static MNN_INT8: Entry = Entry {
    id: "mnn-int8",
    about: "MNN in eight bits on the big cores: everything is kept, scale factors are taken anew in every batch",
    description: "MNN trains in eight-bit integers on four big cores, without a DSP: scale factors are taken anew in every batch, and every tensor is kept.",
    citation: "Xu et al., MobiCom 2022, section 4.1",
    engine: Some(Engine { stack: "mnn", eight_bit: true, ..BIG_CORES }),
    parameters: &[&ALGORITHM],
    ..Entry::built_by(|settings| {
        // The graph is rewritten for the algorithm beforehand: here it only has to be known.
        settings.get(&ALGORITHM)?;
        Ok(Box::new(Original))
    })
};

/// How scenarios name it, and what they can set.
pub(crate) static MNN_FP32_GPU: Entry = Entry {
    id: "mnn-fp32-gpu",
    about: "MNN in fp32 on the GPU: everything is kept",
    description: "MNN trains in fp32 on the GPU by OpenCL, and keeps every tensor.",
    citation: "Xu et al., MobiCom 2022, section 4.1",
    engine: Some(Engine { stack: "mnn", processor: EngineProcessor::Gpu, cores: None, ..BIG_CORES }),
    ..Entry::built_by(|_| Ok(Box::new(Original)))
};

const BIG_CORES: Engine = Engine {
    stack: "tflite",
    processor: EngineProcessor::Cpu,
    cores: Some("big:4"),
    eight_bit: false,
    keeps_learning: false,
};

/// The algorithm of mixed precision that an integer engine runs (table 1).
pub static ALGORITHM: Choice<&str> = Choice::new(
    "algorithm",
    "niti",
    &[
        ("niti", "niti"),
        ("octo", "octo"),
        ("adaptive-fixed-point", "adaptive-fixed-point"),
        ("wageubn", "wageubn"),
        ("mls", "mls"),
    ],
    "the algorithm of integer training (Mandheling, table 1)",
)
.given();
