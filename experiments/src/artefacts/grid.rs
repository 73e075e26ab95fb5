//! What artefacts draw alike: values of subjects under methods, each beside the paper's own.

use haversack_reports::{BarSeries, Bars, Look};
use indexmap::IndexSet;

use crate::reproduce::{Context, Outcome};

/// The method whose bars are the simulation's beside a paper that compares none: its own bars are called `paper`.
const SIMULATED: &str = "simulated";

/// Values by subject, method and metric, all as people call them, each beside the paper's own.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    places: Vec<GridValue>,
}

#[derive(Clone, Debug)]
struct GridValue {
    subject: String,
    method: String,
    metric: String,
    simulated: Option<f64>,
    paper: Option<f64>,
}

impl Grid {
    /// Answers the row `id` with `value`, and keeps it for bars at `[subject, method, metric]`; gives the paper's number.
    ///
    /// # Errors
    /// No such row of the artefact.
    pub(super) fn answer(
        &mut self,
        context: &Context<'_>,
        outcome: &mut Outcome,
        id: &str,
        place: [&str; 3],
        value: f64,
    ) -> anyhow::Result<Option<f64>> {
        let paper = context.row(id)?.number();
        self.put(place, Some(value), paper);
        outcome.number(id, value);
        Ok(paper)
    }

    /// Keeps a value and the paper's at `[subject, method, metric]`.
    pub(super) fn put(&mut self, [subject, method, metric]: [&str; 3], simulated: Option<f64>, paper: Option<f64>) {
        let [subject, method, metric] = [subject, method, metric].map(str::to_owned);
        self.places.push(GridValue { subject, method, metric, simulated, paper });
    }

    /// The bars of one metric: a group for each subject, and in it for each method what is simulated and the paper's.
    pub(super) fn bars(&self, metric: &str) -> Bars {
        let of_metric = || self.places.iter().filter(|place| place.metric == metric);
        let subjects: IndexSet<&str> = of_metric().map(|place| place.subject.as_str()).collect();
        let methods: IndexSet<&str> = of_metric().map(|place| place.method.as_str()).collect();
        let column = |method: &str, value: fn(&GridValue) -> Option<f64>| {
            let at = |subject: &&str| of_metric().find(|place| place.subject == **subject && place.method == method);
            subjects.iter().map(|subject| at(subject).and_then(value)).collect::<Vec<_>>()
        };
        methods.into_iter().fold(Bars::new(subjects.iter().copied()), |bars, method| {
            beside(bars, method, column(method, |place| place.simulated), column(method, |place| place.paper))
        })
    }
}

/// `bars` with what is simulated under `name` and, hatched, the paper's where it has any.
pub(super) fn beside<S: Into<Option<f64>>, P: Into<Option<f64>>>(
    bars: Bars,
    name: &str,
    simulated: impl IntoIterator<Item = S>,
    paper: impl IntoIterator<Item = P>,
) -> Bars {
    let papers = BarSeries::new(if name == SIMULATED { "paper" } else { name }, paper).look(Look::Hatched);
    let bars = bars.series(BarSeries::new(name, simulated));
    if papers.values.iter().any(Option::is_some) { bars.series(papers) } else { bars }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_grouped_by_subject_with_the_papers_beside() {
        let mut grid = Grid::default();
        grid.put(["a", "m", "time"], Some(1.0), Some(2.0));
        grid.put(["a", "n", "time"], Some(3.0), None);
        grid.put(["b", "m", "time"], Some(4.0), None);
        grid.put(["a", "m", "memory"], Some(9.0), None);
        let bars = grid.bars("time");
        assert_eq!(bars.categories, ["a", "b"]);
        let series: Vec<_> = bars.series.iter().map(|one| (one.name.as_str(), one.values.clone(), one.look)).collect();
        // Of b under n there is nothing, nor of the paper but one value, so that n has no bars of the paper's.
        assert_eq!(series[0], ("m", vec![Some(1.0), Some(4.0)], Look::Solid));
        assert_eq!(series[1], ("m", vec![Some(2.0), None], Look::Hatched));
        assert_eq!(series[2], ("n", vec![Some(3.0), None], Look::Solid));
        assert_eq!(series.len(), 3);
        let names = beside(Bars::new(["a"]), SIMULATED, [1.0], [2.0]);
        assert_eq!(names.series[1].name, "paper");
    }
}
