//! The smallest memory budget with which a policy gets through.

use haversack_devices::units::Bytes;
use haversack_policies::{Policy, PolicyError};

use crate::error::RunError;
use crate::job::Job;
use crate::machine::Machine;
use crate::run::simulate;

/// Budgets are searched to this share of the answer.
const RESOLUTION: f64 = 1e-3;

/// The smallest feasible memory budget of `job`, whatever its own budget, to a thousandth, rounded up.
///
/// `policy` makes a fresh policy for every try. Feasibility is taken to be monotone in the budget,
/// which greedy policies may violate within the resolution; the answer itself was run and works.
///
/// # Errors
/// What a run without a budget yields.
pub fn least_memory(
    machine: &Machine,
    job: &Job<'_>,
    policy: impl Fn() -> Result<Box<dyn Policy>, PolicyError>,
) -> Result<Bytes, RunError> {
    let mut job = Job { iterations: 1, observe: crate::job::Observe::default(), ..job.clone() };
    job.budgets.walls.clear();
    job.budgets.traced.clear();
    let mut attempt = |memory: Option<Bytes>| {
        job.budgets.memory = memory;
        simulate(machine, &job, policy()?.as_mut())
    };
    let works = attempt(None)?.reserved;
    least_that_works(works, |budget| attempt(Some(budget)).map(drop))
}

/// The least budget with which `attempt` works, to a thousandth, rounded up; `works` is one that does.
///
/// # Errors
/// What `attempt` fails with for another reason than its budget.
pub fn least_that_works(
    works: Bytes,
    mut attempt: impl FnMut(Bytes) -> Result<(), RunError>,
) -> Result<Bytes, RunError> {
    // Half of what works, again and again, until something does not.
    let (mut fails, mut works) = (0, works.0);
    while works > fails + 1 && (works - fails) as f64 > RESOLUTION * works as f64 {
        let middle = fails + (works - fails) / 2;
        match attempt(Bytes(middle)) {
            Ok(()) => works = middle,
            Err(error) if error.is_infeasible() => fails = middle,
            Err(error) => return Err(error),
        }
    }
    Ok(Bytes(works))
}
