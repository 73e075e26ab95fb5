//! A run: its iterations, one after the other, and the governors between them.

use haversack_policies::Policy;

use crate::error::RunError;
use crate::executor::Executor;
use crate::governors::Governors;
use crate::job::Job;
use crate::machine::Machine;
use crate::machine::codec::CodecProfile;
use crate::record::Record;
use crate::setting::with_codec;

/// Runs `job` on `machine` under `policy`; the record is that of the last iteration.
///
/// # Errors
/// [`RunError`]: memory that the policy cannot free, an illegal answer of the policy, a malformed graph.
pub fn simulate(machine: &Machine, job: &Job<'_>, policy: &mut dyn Policy) -> Result<Record, RunError> {
    if job.batch == 0 {
        return Err(RunError::EmptyBatch);
    }
    let codec = CodecProfile::new(machine, job.graph);
    let mut schedule = with_codec(machine, job, &codec, |setting| policy.prepare(setting))?;
    let mut governors = Governors::start(machine, job)?;
    let rule = schedule.budget_rule.take();
    let mut executor = Executor::new(machine, job, &schedule, policy, &codec, rule)?;
    executor.start()?;
    let mut record = Record::default();
    let mut iterations = Vec::new();
    for _ in 0..job.iterations.max(1) {
        record = executor.iteration(schedule.micro_batch)?;
        iterations.push(record.iteration);
        if let Some(cores) = governors.after(&record, executor.usage())? {
            executor.run_on(cores);
        }
    }
    record.heat = governors.into_seen();
    record.iterations = iterations;
    record.planned = executor.into_planned();
    Ok(record)
}
