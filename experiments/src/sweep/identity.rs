//! What a sweep's results are of: the specification, and the digests of everything it reads.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use haversack_devices::registry::digest;
use serde_json::{Map, Value, json};

use super::Specification;
use crate::cache::Cache;
use crate::error::CommandError;
use crate::scenario::{PhoneApps, trace_file, workload};
use crate::work::{Identity, Shard};

/// Checks every combination of the specification, and says what all of them read, and of how many runs it is known
/// that their values do not go together.
pub(super) fn identity(
    specification: &Specification,
    shard: Option<Shard>,
    cache: &Cache,
) -> Result<(Identity, u64), CommandError> {
    let mut calibrations = BTreeMap::new();
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let unsupported = specification.validate(cache, |resolved| {
        let (device, stack) = (&resolved.device, &resolved.stack);
        calibrations.insert(device.id.clone(), device.digest.clone());
        calibrations.insert(stack.id.clone(), stack.digest.clone());
        let scenario = &resolved.scenario;
        let model = Path::new(&scenario.model);
        let trace = scenario.trace.as_deref().map(|named| trace_file(named).0);
        let apps = match &scenario.apps {
            Some(PhoneApps::Table(named)) => Some(trace_file(named).0),
            _ => None,
        };
        let read = [workload::is_file(&scenario.model).then_some(model), trace.as_deref(), apps.as_deref()];
        for path in read.into_iter().flatten() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Entry::Vacant(entry) = files.entry(name) {
                let bytes =
                    std::fs::read(path).map_err(|error| CommandError::input(format!("{}: {error}", path.display())))?;
                entry.insert(digest(&String::from_utf8_lossy(&bytes)));
            }
        }
        Ok(())
    })?;
    let whole = json!({
        "command": "sweep",
        "version": env!("CARGO_PKG_VERSION"),
        "specification": specification.to_json(),
        "runs": specification.runs(),
        "calibrations": calibrations,
        "files": files,
    });
    let whole = match whole {
        Value::Object(whole) => whole,
        _ => Map::new(),
    };
    Ok((Identity::of(whole, shard), unsupported))
}
