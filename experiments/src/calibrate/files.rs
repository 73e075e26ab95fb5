//! The calibration files whose constants are fitted.

use haversack_devices::calibration::ConstantEntry;
use haversack_devices::{CalibrationError, Device, Stack, System};

use super::declared::{Calibration, Constant, Of};
use crate::error::CommandError;

/// A device, a stack, and an operating system if constants are of one.
#[derive(Clone, Debug)]
pub struct Files {
    /// The device.
    pub device: Device,
    /// The stack.
    pub stack: Stack,
    /// The operating system.
    pub system: Option<System>,
}

impl Files {
    /// The files that `calibration` names, as they are.
    ///
    /// # Errors
    /// A file that does not exist or does not follow its schema.
    pub fn load(calibration: &Calibration) -> Result<Self, CommandError> {
        Ok(Self {
            device: haversack_devices::load(&calibration.device)?,
            stack: haversack_devices::load_stack(&calibration.stack)?,
            system: calibration.system.as_deref().map(haversack_devices::load_system).transpose()?,
        })
    }

    /// The constants of one of the files.
    #[must_use]
    pub fn entries(&self, of: Of) -> Vec<ConstantEntry> {
        match of {
            Of::Device => self.device.entries(),
            Of::Stack => self.stack.entries(),
            Of::System => self.system.as_ref().map(System::entries).unwrap_or_default(),
        }
    }

    /// Sets a constant, in the unit of its file.
    ///
    /// # Errors
    /// A constant that the file does not have, or a value that it cannot take.
    pub fn set(&mut self, constant: &Constant, value: f64) -> Result<(), CalibrationError> {
        match (constant.of, &mut self.system) {
            (Of::Device, _) => self.device.set(&constant.name, value),
            (Of::Stack, _) => self.stack.set(&constant.name, value),
            (Of::System, Some(system)) => system.set(&constant.name, value),
            // [`Self::entries`] has no such constant, which is what is reported.
            (Of::System, None) => Ok(()),
        }
    }
}
