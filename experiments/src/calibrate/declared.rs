//! What is calibrated: `calibrations.toml`, embedded and read strictly.
//!
//! ```toml
//! [[calibration]]
//! device = "server-core"
//! others = ["single-core"]              # optional: further devices that were observed, with constants of the stack alone
//! stack = "pytorch-cpu"
//! observations = "pytorch-timings"   # also the `source` of the constants in their files
//! rows = "experiments/truth/pytorch-cpu/rows.csv"
//! about = "what the observations are"
//! simulated = true                   # optional: rows take long, and the search is short
//! system = "android-testbed"         # optional: the operating system, where constants are of it
//!
//! [[calibration.constant]]
//! of = "stack"                       # or "device" or "system": whose file holds it
//! name = "cpu.efficiency.gemm"       # its dotted name there
//! lower = 0.1                        # in the unit of the file, above zero
//! upper = 1.0
//! prior = { value = 0.7, why = "libraries reach two thirds of the peak" } # where the rows do not decide it
//! ```

use std::fmt::Write as _;

use haversack_devices::registry::digest;
use haversack_devices::text::read_toml;
use serde::{Deserialize, Serialize};

use crate::error::{CommandError, Result};
use crate::scenario::{Holder, Scenario, World};

/// The path of the declarations in the project.
pub const FILE: &str = "experiments/calibrations.toml";
const TEXT: &str = include_str!("../../calibrations.toml");

/// What constants are fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Observations {
    /// Timings of PyTorch on a server core, `truth/pytorch-cpu`.
    PytorchTimings,
    /// The latencies of Sage's table 1 that may be fitted.
    SageTable1,
    /// The times of DAF's table 2 that may be fitted.
    DafTable2,
    /// Single operators of Mandheling's paper on the Xiaomi 10, those that may be fitted.
    MandhelingOperators,
    /// The steps of its figure 10, likewise.
    MandhelingSteps,
    /// Times of the paper's CPU engine on the Xiaomi 11 Pro, likewise.
    MandhelingCpu,
    /// Its energies, likewise.
    MandhelingCpuEnergy,
    /// Times of Mandheling itself, likewise.
    MandhelingDsp,
    /// Its energies, likewise.
    MandhelingDspEnergy,
    /// The two phones of FedHybrid's figure 2, likewise.
    FedhybridFigure2,
    /// Steps on an RTX 3090 that users of timm measured, `truth/rtx-3090`, those that may be fitted.
    GpuSteps,
    /// Inference on phones and boards that ncnn's users measured, `truth/ncnn-cpu`, likewise.
    PhoneInference,
    /// Training steps under MNN on two phones, `truth/mnn-phones`, likewise.
    MnnPhones,
    /// Training steps under PyTorch on a board, `truth/jetson-tx2`, likewise.
    JetsonTx2,
}

impl Observations {
    /// The word of the file.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A constant that may move.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Whose it is.
    pub of: Holder,
    /// Its dotted name.
    pub name: String,
    /// The least value, in the unit of its file.
    pub lower: f64,
    /// The greatest value.
    pub upper: f64,
    /// What it is taken to be where the rows do not decide it.
    pub prior: Prior,
}

/// What is believed of a constant before any row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// The value, in the unit of its file.
    pub value: f64,
    /// Where it comes from.
    pub why: String,
}

/// A device under a stack that has observations.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The device.
    pub device: String,
    /// Other devices that were observed under the stack, whose own constants stay as they are.
    #[serde(default)]
    pub others: Vec<String>,
    /// The stack.
    pub stack: String,
    /// The operating system, where constants are of it.
    pub system: Option<String>,
    /// What its constants are fitted to.
    pub observations: Observations,
    /// The file of their rows in the project.
    pub rows: String,
    /// What these are, for people.
    pub about: String,
    /// Whether every row is simulated, batch by batch, so that the search goes one way only, and not far.
    #[serde(default)]
    pub simulated: bool,
    /// The constants.
    #[serde(rename = "constant")]
    pub constants: Vec<Constant>,
}

impl Calibration {
    /// What tells it from the others, for people: `server-core under pytorch-cpu (pytorch-timings)`.
    pub fn title(&self) -> String {
        title(&self.device, &self.stack, self.observations)
    }

    /// What runs for a row, unless the row says otherwise.
    pub(super) fn scenario(&self, model: &str, batch: u64) -> Scenario {
        Scenario { stack: Some(self.stack.clone()), batch, ..Scenario::new(&self.device, model) }
    }

    /// The files that it names, as they are.
    ///
    /// # Errors
    /// A file that does not exist or does not follow its schema.
    pub(super) fn world(&self) -> Result<World> {
        let device = haversack_devices::load(&self.device)?;
        let stack = haversack_devices::load_stack(&self.stack)?;
        let system = self.system.as_deref().map(haversack_devices::load_system).transpose()?;
        Ok(World { device, stack, system })
    }

    /// The digest of what is declared here, but for words to people.
    pub fn digest(&self) -> String {
        let Self { device, others, stack, system, simulated, .. } = self;
        let mut text = format!("{device} {others:?} {stack} {system:?} {simulated}\n");
        for Constant { of, name, lower, upper, prior } in &self.constants {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{} {name} {lower} {upper} {}", of, prior.value);
        }
        digest(&text)
    }
}

/// What tells one calibration from the others, for people.
pub(super) fn title(device: &str, stack: &str, observations: Observations) -> String {
    format!("{device} under {stack} ({})", observations.name())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    calibration: Vec<Calibration>,
}

/// Every declared calibration.
///
/// # Errors
/// A file that does not follow the schema, or bounds between which nothing lies.
pub fn all() -> Result<Vec<Calibration>> {
    let file: File = read_toml(FILE, TEXT).map_err(CommandError::failed)?;
    let constants = || file.calibration.iter().flat_map(|calibration| &calibration.constants);
    let holds = |constant: &Constant| {
        let Constant { lower, upper, ref prior, .. } = *constant;
        lower > 0.0 && lower < upper && (lower..=upper).contains(&prior.value)
    };
    if let Some(wrong) = constants().find(|constant| !holds(constant)) {
        let name = &wrong.name;
        return Err(CommandError::failed(format!("{FILE}: {name}: 0 < lower ≤ prior ≤ upper does not hold")));
    }
    Ok(file.calibration)
}
