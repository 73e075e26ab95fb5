//! The documented example of a new policy works.

use haversack_devices::units::Bytes;

#[path = "../../examples/my_policy.rs"]
mod my_policy;

#[test]
fn a_policy_of_sixty_lines_keeps_to_its_budget() {
    let whole = my_policy::run(None).unwrap();
    let budget = Bytes(whole.peak_memory.0 / 100 * 60);
    let dropped = my_policy::run(Some(budget)).unwrap();
    assert!(whole.recomputed == 0 && whole.peak_memory > budget && dropped.peak_memory <= budget);
    assert!(dropped.recomputed > 0 && dropped.iteration > whole.iteration);
    assert!(include_str!("../../examples/my_policy.rs").lines().count() <= 60);
}
