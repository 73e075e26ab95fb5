//! What phones leave to training, by user and by hour.

use std::collections::BTreeMap;

use haversack_reports::figure::{Axis, Lines, Series};
use haversack_reports::{Figure, Panel};

use super::budgets::{Budget, quantile};

/// The shares of moments that have less, and what the lines are called.
const SHARES: [(f64, &str); 3] =
    [(0.9, "a tenth of the moments have more"), (0.5, "the median"), (0.1, "a tenth have less")];
/// The name of a kind of budget, and its bytes.
type Kind = (&'static str, fn(&Budget) -> u64);
/// Kinds of budgets, each with a panel.
const KINDS: [Kind; 3] = [
    ("available", |budget| budget.available.0),
    ("safe", |budget| budget.safe.0),
    ("predicted", |budget| budget.predicted.0),
];

/// Panels of the three kinds over `groups`, each at its place.
fn figure(title: &str, setting: &str, x: &Axis, groups: &BTreeMap<u64, Vec<&Budget>>) -> Figure {
    let figure = Figure::new(title).note(setting).share_y().columns(KINDS.len()).panel_size(300, 260);
    KINDS.into_iter().fold(figure, |figure, (kind, value)| {
        let lines = SHARES.into_iter().fold(Lines::new(), |lines, (share, name)| {
            let points = groups.iter().map(|(place, budgets)| {
                let mut values: Vec<u64> = budgets.iter().map(|budget| value(budget)).collect();
                values.sort_unstable();
                (*place as f64, quantile(&values, share) as f64 / 1e9)
            });
            lines.series(Series::new(name, points.collect::<Vec<_>>()))
        });
        figure.panel(Panel::new(lines).title(kind).x(x.clone()).y(Axis::new("memory").unit("GB").from_zero()))
    })
}

/// By user: those with the least available first.
pub(super) fn by_user(budgets: &[Budget], setting: &str) -> Figure {
    let mut users: BTreeMap<&str, Vec<&Budget>> = BTreeMap::new();
    for budget in budgets {
        users.entry(&budget.user).or_default().push(budget);
    }
    let median = |budgets: &Vec<&Budget>| {
        let mut values: Vec<u64> = budgets.iter().map(|budget| budget.available.0).collect();
        values.sort_unstable();
        quantile(&values, 0.5)
    };
    let mut sorted: Vec<Vec<&Budget>> = users.into_values().collect();
    sorted.sort_by_key(median);
    let number = sorted.len();
    let groups = (1..).zip(sorted).collect();
    let x = Axis::new("user, by the median available").range(0.0, number as f64 + 1.0);
    figure("What phones leave to training, user by user", setting, &x, &groups)
}

/// By the hour of the user's clock.
pub(super) fn by_hour(budgets: &[Budget], setting: &str) -> Figure {
    let mut groups: BTreeMap<u64, Vec<&Budget>> = BTreeMap::new();
    for budget in budgets {
        groups.entry(budget.hour).or_default().push(budget);
    }
    let x =
        Axis::new("hour of the user\u{2019}s day").unit("h").range(0.0, 24.0).ticks_at([0.0, 6.0, 12.0, 18.0, 24.0]);
    figure("What phones leave to training, hour by hour", setting, &x, &groups)
}
