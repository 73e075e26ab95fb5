//! Where errors of rows that were left out come from: the command that finds them, and digests of what they depend on.

use std::collections::BTreeMap;

use haversack_devices::load;
use haversack_devices::registry::digest;

use super::{FILE, LeftOutError};
use crate::calibrate::declared::{self, Calibration, Files};
use crate::calibrate::observation;
use crate::papers::reference::Reference;

/// The command that stores the errors of `calibration` in the committed file.
pub fn command(calibration: &Calibration, seed: u64) -> String {
    let Calibration { device, stack, .. } = calibration;
    let networks = if calibration.observations.needs_networks() { " --networks DIR" } else { "" };
    let seed = if seed == 0 { String::new() } else { format!(" --seed {seed}") };
    format!("haversack calibrate {device} --stack {stack}{networks}{seed} --leave-one-out --store {FILE}")
}

/// The digests of all files that the errors of `calibration` depend on, as they are now.
///
/// # Errors
/// A file that does not load.
pub fn digests(calibration: &Calibration, reference: &Reference) -> Result<BTreeMap<String, String>, LeftOutError> {
    let Files { device, stack, system } =
        Files::load(calibration).map_err(|error| LeftOutError::Declared(error.to_string()))?;
    let mut digests = BTreeMap::from([(device.file, device.digest), (stack.file, stack.digest)]);
    digests.extend(system.map(|system| (system.file, system.digest)));
    for other in &calibration.others {
        let device = load(other)?;
        digests.insert(device.file, device.digest);
    }
    let file = calibration.observations.file();
    let own = observation::FILES.iter().find(|(own, _)| *own == file).map(|(_, text)| digest(text));
    let of_paper = || reference.digests().iter().find(|(of, _)| *of == file).map(|(_, digest)| digest.clone());
    digests.extend(own.or_else(of_paper).map(|digest| (file.to_owned(), digest)));
    digests.insert(declared::FILE.to_owned(), calibration.digest());
    Ok(digests)
}
