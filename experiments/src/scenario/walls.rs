//! Budgets that change during every iteration: `200ms=60%,1.5s=800MB`.

use std::fmt;
use std::str::FromStr;

use haversack_devices::units::Nanos;

use super::quantity::{Budget, QuantityError, parse_time, time_text};

/// A budget that holds from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it begins, from the start of the iteration; of a trace, from the start of the run.
    pub at: Nanos,
    /// What may be resident from then on.
    pub budget: Budget,
}

/// Budgets that take the place of the first ones at times of every iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetWalls {
    /// Of all that the framework holds, in order of time.
    pub memory: Vec<Step>,
    /// Of saved tensors alone, in order of time.
    pub activations: Vec<Step>,
}

const WALLS: &str =
    "times with their budgets, each kind in order of time, such as 200ms=60%,1.5s=800MB,1.5s=activations:20%";
/// What stands before a budget of saved tensors.
const OF_ACTIVATIONS: &str = "activations:";

impl BudgetWalls {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.activations.is_empty()
    }
}

impl FromStr for BudgetWalls {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::new(WALLS, text);
        let mut walls = Self::default();
        for wall in text.split(',') {
            let (at, budget) = wall.split_once('=').ok_or_else(wrong)?;
            let budget = budget.trim();
            let (kind, budget) = match budget.strip_prefix(OF_ACTIVATIONS) {
                Some(budget) => (&mut walls.activations, budget),
                None => (&mut walls.memory, budget),
            };
            let step = Step { at: parse_time(at.trim())?, budget: budget.parse()? };
            if kind.last().is_some_and(|last| last.at >= step.at) {
                return Err(wrong());
            }
            kind.push(step);
        }
        Ok(walls)
    }
}

impl fmt::Display for BudgetWalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory.iter().map(|step| (step, ""));
        let all = memory.chain(self.activations.iter().map(|step| (step, OF_ACTIVATIONS)));
        for (place, (Step { at, budget }, kind)) in all.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{}={kind}{budget}", time_text(*at))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use haversack_devices::units::Bytes;

    use super::*;

    #[test]
    fn walls_are_times_with_budgets_and_print_as_they_are_read() {
        let text = "200ms=60%,1500ms=800MB,1s=activations:20%";
        let walls: BudgetWalls = text.parse().unwrap();
        // 1.5 s are 1.5e9 ns, 800 MB are 8e8 B.
        assert_eq!(walls.memory[1], Step { at: Nanos(1_500_000_000), budget: Budget::Bytes(Bytes(800_000_000)) });
        assert_eq!(walls.activations, [Step { at: Nanos(1_000_000_000), budget: Budget::Percent(20.0) }]);
        assert_eq!(walls.to_string(), text);
    }

    #[test]
    fn walls_without_order_time_or_budget_are_refused() {
        for text in ["", "60%", "0s=60%", "1s=60%,1s=50%", "2s=60%,1s=50%", "1s=", "1s=60%,"] {
            assert!(text.parse::<BudgetWalls>().is_err(), "{text}");
        }
        let error = "1=60%".parse::<BudgetWalls>().unwrap_err().to_string();
        assert!(error.contains("a time above zero with its unit"), "{error}");
    }
}
