//! The engines that Mandheling is compared with, which keep everything and hand out nothing: a stack, the processor
//! that it trains on, and the number format (Xu et al., MobiCom 2022, section 4.1).

/// Which processors an engine trains on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineProcessor {
    /// CPU cores.
    Cpu,
    /// The GPU.
    Gpu,
    /// CPU cores and the DSP.
    CpuAndDsp,
}

/// What a policy stands for beside what it decides: a whole training engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Its software stack.
    pub stack: &'static str,
    /// Where it trains.
    pub processor: EngineProcessor,
    /// The CPU cores that it takes where none are asked for; nothing where it takes none.
    pub cores: Option<&'static str>,
    /// Whether it trains on the graph that is rewritten in integers.
    pub eight_bit: bool,
}

/// The algorithms of mixed precision that integer engines run (table 1), the default first.
pub const ALGORITHMS: [&str; 5] = ["niti", "octo", "adaptive-fixed-point", "wageubn", "mls"];

/// TFLite, in fp32 on the big cores.
pub const TFLITE_FP32: Engine =
    Engine { stack: "tflite", processor: EngineProcessor::Cpu, cores: Some("big:4"), eight_bit: false };
/// MNN, in fp32 on the big cores.
pub const MNN_FP32: Engine = Engine { stack: "mnn", ..TFLITE_FP32 };
/// MNN, in eight bits on the big cores.
pub const MNN_INT8: Engine = Engine { eight_bit: true, ..MNN_FP32 };
/// MNN, in fp32 on the GPU through OpenCL.
pub const MNN_FP32_GPU: Engine = Engine { processor: EngineProcessor::Gpu, cores: None, ..MNN_FP32 };
/// Mandheling: eight bits on the DSP, and two big cores for the rest.
pub const MANDHELING: Engine =
    Engine { stack: "mandheling", processor: EngineProcessor::CpuAndDsp, cores: Some("big:2"), eight_bit: true };
