//! The records of an artefact, and their conversion to data, answers, quantities and panels, as the
//! readings declare ([`crate::papers::shown`]).

use anyhow::{Context as _, Result, ensure};
use haversack_reports::figure::{Cloud, Stack};
use haversack_reports::{Axis, Bars, Cell, Chart, Front, Lines, Look, Series, Stroke, Table};
use indexmap::{IndexMap, IndexSet};

use super::chart::{axis, beside};
use crate::papers::catalogue::Entry;
use crate::papers::shown::{
    AnswerRule, AxisRule, ChartKind, DerivedColumn, Filter, OneOrMany, PanelRule, Plotted, QuantityRule, Relation,
    Shown, Take, WordsRule,
};
use crate::papers::{Answer, Claim, ReferenceRow, spelled};
use crate::quantities::{mean, range};
use crate::reproduce::{Cells, Context, Outcome};

/// Rows of named columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// The declarations about the artefact's records.
pub(super) fn declared<'c>(context: &'c Context<'_>) -> Result<&'c Shown> {
    let Entry { paper, id, .. } = context.artefact.entry;
    context.readings.shown(paper, id).with_context(|| format!("nothing says how {paper}/{id} is shown"))
}

/// Adds to `outcome` everything declared for the artefact's records.
///
/// # Errors
/// An unknown column or row of the reference.
pub(super) fn show(context: &Context<'_>, mut records: Records, mut outcome: Outcome) -> Result<Outcome> {
    let shown = declared(context)?;
    for column in &shown.columns {
        records.derive(context, column)?;
    }
    if !shown.data.is_empty() {
        outcome.table = Some(records.table(shown)?);
    }
    for rule in &shown.answers {
        records.answer(context, rule, &mut outcome)?;
    }
    for rule in &shown.quantities {
        records.offer(rule, &mut outcome)?;
    }
    for rule in &shown.words {
        records.tell(rule, &mut outcome)?;
    }
    let is_open = |row: &&&ReferenceRow| !outcome.answers.iter().any(|(id, _)| *id == row.id);
    let open: Vec<_> = context.rows.iter().filter(is_open).filter(|row| matches!(row.claim, Claim::Order(_))).collect();
    for row in open {
        context.judge(&mut outcome, &row.id)?;
    }
    for (metric, words) in &shown.beside_null {
        outcome.compare_with_null(&context.rows, metric, words);
    }
    for line in &shown.summary {
        for rows in records.groups(&records.all(), &named(line))? {
            outcome.summary.push(records.filled(line, &rows)?);
        }
    }
    for rule in &shown.panels {
        records.panels(context, rule, &mut outcome)?;
    }
    Ok(outcome)
}

impl Records {
    /// An empty table with the columns of this header.
    pub(super) fn of(header: &str) -> Self {
        Self { columns: header.split(',').map(str::to_owned).collect(), rows: Vec::new() }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// A record without exactly one cell for each column.
    pub(super) fn row(&mut self, cells: impl Cells) -> Result<()> {
        let row = cells.row();
        ensure!(row.len() == self.columns.len(), "{} cells for the columns {}", row.len(), self.columns.join(","));
        self.rows.push(row);
        Ok(())
    }

    /// The largest number in a column, among the records that have a word in another.
    ///
    /// # Errors
    /// An unknown column.
    pub(super) fn most(&self, column: &str, of: &str, word: &str) -> Result<Option<f64>> {
        let only = Filter::from([(of.to_owned(), OneOrMany::One(word.to_owned()))]);
        Ok(taken(&self.numbers(&self.select(&only, &Filter::default())?, column)?, Take::Most))
    }

    fn all(&self) -> Vec<usize> {
        (0..self.rows.len()).collect()
    }

    fn cell(&self, row: usize, column: &str) -> Result<&Cell> {
        let place = self.columns.iter().position(|known| known == column);
        place.map(|place| &self.rows[row][place]).with_context(|| format!("no column is called `{column}`"))
    }

    /// The words of a column; for `method.name` without such a column, those of `method` spelled out.
    fn text(&self, row: usize, column: &str) -> Result<String> {
        match column.strip_suffix(".name") {
            Some(id) if !self.columns.iter().any(|known| known == column) => Ok(spelled(&self.text(row, id)?)),
            _ => Ok(self.cell(row, column)?.exact()),
        }
    }

    /// The number in a column, if it has one.
    fn number(&self, row: usize, column: &str) -> Result<Option<f64>> {
        Ok(match self.cell(row, column)? {
            Cell::Number(number) => Some(*number),
            Cell::Count(count) => Some(*count as f64),
            _ => None,
        })
    }

    fn numbers(&self, rows: &[usize], column: &str) -> Result<Vec<Option<f64>>> {
        rows.iter().map(|&row| self.number(row, column)).collect()
    }

    /// The records that have the words of `only` and none of those of `not`.
    fn select(&self, only: &Filter, not: &Filter) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        for row in self.all() {
            let has =
                |(column, words): (&String, &OneOrMany)| Ok::<_, anyhow::Error>(words.has(&self.text(row, column)?));
            let wanted = only.iter().map(has).collect::<Result<Vec<_>>>()?;
            let unwanted = not.iter().map(has).collect::<Result<Vec<_>>>()?;
            if wanted.into_iter().all(|has| has) && !unwanted.into_iter().any(|has| has) {
                found.push(row);
            }
        }
        Ok(found)
    }

    /// The records, grouped by the words of these columns, in the order of first appearance.
    fn groups(&self, rows: &[usize], columns: &[String]) -> Result<Vec<Vec<usize>>> {
        let mut groups: IndexMap<Vec<String>, Vec<usize>> = IndexMap::new();
        for &row in rows {
            let key = columns.iter().map(|column| self.text(row, column)).collect::<Result<Vec<_>>>()?;
            groups.entry(key).or_default().push(row);
        }
        Ok(groups.into_values().collect())
    }

    /// `text` with its placeholders filled: columns from the first of `rows`, statistics from all.
    fn filled(&self, text: &str, rows: &[usize]) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((words, after)) = rest.split_once('{') {
            let (inside, after) = after.split_once('}').with_context(|| format!("a `{{` without its `}}`: {text}"))?;
            filled.push_str(words);
            filled.push_str(&self.placeholder(inside, rows)?);
            rest = after;
        }
        Ok(filled + rest)
    }

    fn placeholder(&self, inside: &str, rows: &[usize]) -> Result<String> {
        let (what, digits) = inside.split_once(':').map_or((inside, None), |(what, digits)| (what, Some(digits)));
        let first = *rows.first().with_context(|| format!("no record has a `{what}`"))?;
        let number = match what.split_once(' ') {
            Some((take, column)) => taken(&self.numbers(rows, column)?, take_called(take)?),
            None if digits.is_none() => return self.text(first, what),
            None => self.number(first, what)?,
        };
        let number = number.with_context(|| format!("the number `{what}` is missing"))?;
        Ok(match digits {
            Some(digits) => format!("{number:.0$}", digits.parse()?),
            None => number.to_string(),
        })
    }

    /// `text` filled from the records of each combination of its columns.
    fn each(&self, rows: &[usize], text: &str) -> Result<Vec<String>> {
        self.groups(rows, &named(text))?.iter().map(|rows| self.filled(text, rows)).collect()
    }

    /// The words of a column, or of several in braces.
    fn label(&self, row: usize, column: &str) -> Result<String> {
        if column.contains('{') { self.filled(column, &[row]) } else { self.text(row, column) }
    }

    fn table(&self, shown: &Shown) -> Result<Table> {
        let columns: Vec<(&str, &str)> =
            shown.data.iter().map(|column| column.split_once(": ").unwrap_or((column, column))).collect();
        let mut table = Table::new(columns.iter().map(|(name, _)| *name));
        let rows = self.select(&shown.data_of, &Filter::default())?;
        let groups = match &shown.means_by[..] {
            [] => rows.into_iter().map(|row| vec![row]).collect(),
            columns => self.groups(&rows, columns)?,
        };
        for rows in groups {
            let cell = |(_, column): &(&str, &str)| match (self.cell(rows[0], column), column.split_once(' ')) {
                (Err(_), _) if column.ends_with(".name") => Ok(self.text(rows[0], column)?.into()),
                (Err(_), Some((take, column))) => Ok(taken(&self.numbers(&rows, column)?, take_called(take)?).into()),
                (Ok(Cell::Number(_) | Cell::Empty), _) if rows.len() > 1 => {
                    Ok(taken(&self.numbers(&rows, column)?, Take::Mean).into())
                }
                (other, _) => other.cloned(),
            };
            table.push(columns.iter().map(cell).collect::<Result<Vec<_>>>()?)?;
        }
        Ok(table)
    }

    fn derive(&mut self, context: &Context<'_>, column: &DerivedColumn) -> Result<()> {
        let wanted = self.select(&column.only, &Filter::default())?;
        let mut values = Vec::new();
        for row in self.all() {
            values.push(match &column.paper {
                _ if !wanted.contains(&row) => None,
                Some(id) => {
                    let id = place(context, &self.filled(id, &[row])?);
                    let absent = column.optional && context.row(&id).is_err();
                    if absent { None } else { context.paper(&id)?.map(|paper| paper * column.times.unwrap_or(1.0)) }
                }
                None => self.related(row, column)?,
            });
        }
        self.columns.push(column.name.clone());
        self.rows.iter_mut().zip(values).for_each(|(row, value)| row.push(value.into()));
        Ok(())
    }

    /// The relation of a record to the one that a column names.
    fn related(&self, row: usize, column: &DerivedColumn) -> Result<Option<f64>> {
        let Some(own) = self.number(row, &column.of)? else { return Ok(None) };
        if let Some(factor) = column.times {
            return Ok(Some(own * factor));
        }
        let mut like: Filter =
            column.over.iter().map(|(key, word)| (key.clone(), OneOrMany::One(word.clone()))).collect();
        for key in &column.same {
            like.insert(key.clone(), OneOrMany::One(self.text(row, key)?));
        }
        let other = self.select(&like, &Filter::default())?.first().map(|&other| self.number(other, &column.of));
        Ok(other.transpose()?.flatten().map(|other| match column.is {
            Relation::Ratio => own / other,
            Relation::SpeedUp => other / own,
            Relation::More => (own / other - 1.0) * 100.0,
        }))
    }

    fn answer(&self, context: &Context<'_>, rule: &AnswerRule, outcome: &mut Outcome) -> Result<()> {
        for rows in self.groups(&self.select(&rule.only, &rule.not)?, &named(&rule.row))? {
            let id = place(context, &self.filled(&rule.row, &rows)?);
            if rule.optional && context.row(&id).is_err() {
                continue;
            }
            let claim = &context.row(&id)?.claim;
            let values = rule.value.as_ref().map_or(Ok(Vec::new()), |value| self.numbers(&rows, value))?;
            let answer = match (rule.take, range(values.iter().copied().flatten())) {
                (Take::Range, Some((lo, hi))) if matches!(claim, Claim::Range { .. }) => Some(Answer::Range(lo, hi)),
                _ => taken(&values, rule.take).map(if rule.input { Answer::Input } else { Answer::Number }),
            };
            let answer = answer.or_else(|| match rule.or.as_deref()? {
                "never" => Some(Answer::Never),
                reason => Some(Answer::NotModelled(reason.to_owned())),
            });
            if let Some(answer) = answer {
                outcome.answer(&id, answer);
            }
            if let Some(null) = &rule.null {
                outcome.nulls.extend(taken(&self.numbers(&rows, null)?, rule.take).map(|null| (id.clone(), null)));
            }
            if let Some(remark) = &rule.remark {
                let each = rule.each.as_ref().map_or(Ok(Vec::new()), |each| self.each(&rows, each))?;
                let end = self.filled(&rule.end, &rows)?;
                let each = each.join(rule.between.as_deref().unwrap_or(", "));
                outcome.remark(id, self.filled(remark, &rows)? + &each + &end);
            }
        }
        Ok(())
    }

    fn offer(&self, rule: &QuantityRule, outcome: &mut Outcome) -> Result<()> {
        for rows in self.groups(&self.select(&rule.only, &rule.not)?, &named(&rule.name))? {
            let values = match (&rule.by, rule.take) {
                (Some(by), take) => {
                    let groups = self.groups(&rows, std::slice::from_ref(by))?.into_iter();
                    let one =
                        |rows: Vec<usize>| Ok(taken(&self.numbers(&rows, &rule.value)?, take.unwrap_or(Take::Mean)));
                    groups.map(one).collect::<Result<Vec<_>>>()?
                }
                (None, Some(take)) => vec![taken(&self.numbers(&rows, &rule.value)?, take)],
                (None, None) => self.numbers(&rows, &rule.value)?,
            };
            let values = values.into_iter().flatten().collect();
            outcome.quantities.offer(&self.filled(&rule.name, &rows)?, &rule.unit, values);
        }
        Ok(())
    }

    fn tell(&self, rule: &WordsRule, outcome: &mut Outcome) -> Result<()> {
        let mut rows = self.select(&rule.only, &Filter::default())?;
        if let Some(missing) = &rule.missing {
            let mut numbers = self.numbers(&rows, missing)?.into_iter();
            rows.retain(|_| numbers.next().flatten().is_none());
        }
        let mut words = self.each(&rows, &rule.each)?;
        if words.is_empty() {
            words.extend(rule.or.clone());
        }
        if !words.is_empty() {
            outcome.words(&rule.name, words.join(rule.between.as_deref().unwrap_or(", ")));
        }
        Ok(())
    }

    fn panels(&self, context: &Context<'_>, rule: &PanelRule, outcome: &mut Outcome) -> Result<()> {
        for rows in self.groups(&self.select(&rule.only, &rule.not)?, &rule.each)? {
            let chart: Chart = match rule.kind {
                ChartKind::Bars => self.bars(rule, &rows)?.into(),
                ChartKind::Ends => self.ends(context, rule, &rows)?.into(),
                ChartKind::Stack => self.stack(rule, &rows)?.into(),
                ChartKind::Lines => self.lines(rule, &rows)?.into(),
                ChartKind::Front => self.front(rule, &rows)?.into(),
            };
            let mut x = self.axis(&rule.x_axis, &rows)?;
            if rule.x_axis.ticks {
                let mut ticks: Vec<f64> = self.numbers(&rows, &rule.x)?.into_iter().flatten().collect();
                ticks.sort_by(f64::total_cmp);
                ticks.dedup();
                x = x.ticks_at(ticks);
            }
            outcome.panel(&self.filled(&rule.title, &rows)?, chart, x, self.axis(&rule.y_axis, &rows)?);
        }
        Ok(())
    }

    /// An axis, whose label and unit may quote the records.
    fn axis(&self, rule: &AxisRule, rows: &[usize]) -> Result<Axis> {
        let axis = axis(&self.filled(&rule.label, rows)?, &self.filled(&rule.unit, rows)?);
        let axis = if rule.log { axis.log() } else { axis };
        let axis = if rule.ticks_at.is_empty() { axis } else { axis.ticks_at(rule.ticks_at.clone()) };
        Ok(Axis { from_zero: rule.from_zero, range: rule.range, ..axis })
    }

    /// The series of a panel: the name, the records, and the values to draw.
    fn series<'r>(&self, rule: &'r PanelRule, rows: &[usize]) -> Result<Vec<(String, Vec<usize>, &'r Plotted)>> {
        let Some(column) = &rule.series else {
            return Ok(rule.values.iter().map(|value| (value.name.clone(), rows.to_vec(), value)).collect());
        };
        let mut series = Vec::new();
        for rows in self.groups(rows, std::slice::from_ref(column))? {
            for value in &rule.values {
                series.push((self.text(rows[0], column)?, rows.clone(), value));
            }
        }
        Ok(series)
    }

    /// The groups of bars and of stacks, in the order of first appearance.
    fn categories(&self, rule: &PanelRule, rows: &[usize]) -> Result<Vec<String>> {
        if let Some(group) = &rule.group {
            return Ok(vec![group.clone()]);
        }
        let labels: IndexSet<String> = rows.iter().map(|row| self.label(*row, &rule.x)).collect::<Result<_>>()?;
        Ok(labels.into_iter().collect())
    }

    /// The numbers of a column, one for each category: the mean of its records.
    fn at(&self, rule: &PanelRule, rows: &[usize], categories: &[String], column: &str) -> Result<Vec<Option<f64>>> {
        let mut values = vec![Vec::new(); categories.len()];
        for &row in rows {
            let label = if rule.group.is_some() { None } else { Some(self.label(row, &rule.x)?) };
            let place = label.map_or(Some(0), |label| categories.iter().position(|known| *known == label));
            if let Some(values) = place.and_then(|place| values.get_mut(place)) {
                values.push(self.number(row, column)?);
            }
        }
        Ok(values.iter().map(|values| taken(values, Take::Mean)).collect())
    }

    fn bars(&self, rule: &PanelRule, rows: &[usize]) -> Result<Bars> {
        if let Some(series) = &rule.across {
            let of = |column: &str| Ok(taken(&self.numbers(rows, column)?, Take::Mean));
            let bars = Bars::new(rule.values.iter().map(|value| value.name.as_str()));
            let values = rule.values.iter().map(|value| of(&value.of)).collect::<Result<Vec<_>>>()?;
            let papers =
                rule.values.iter().filter_map(|value| value.paper.as_deref()).map(of).collect::<Result<Vec<_>>>()?;
            return Ok(Bars { values_shown: rule.show_values, ..beside(bars, series, values, papers) });
        }
        let categories = self.categories(rule, rows)?;
        let mut bars = Bars::new(categories.iter().map(String::as_str));
        for (name, rows, value) in self.series(rule, rows)? {
            let of = |column: &str| self.at(rule, &rows, &categories, column);
            bars = beside(bars, &name, of(&value.of)?, value.paper.as_deref().map_or(Ok(Vec::new()), of)?);
        }
        Ok(Bars { values_shown: rule.show_values, ..bars })
    }

    /// Bars of the least and the most of each category, where the paper claims a range.
    fn ends(&self, context: &Context<'_>, rule: &PanelRule, rows: &[usize]) -> Result<Bars> {
        let mut series: Vec<(&str, IndexMap<String, [f64; 2]>)> = Vec::new();
        for (value, row) in rule.values.iter().filter_map(|value| Some((value, value.paper.as_ref()?))) {
            let mut ends = IndexMap::new();
            for rows in self.groups(rows, std::slice::from_ref(&rule.x))? {
                let Some(found) = range(self.numbers(&rows, &value.of)?.into_iter().flatten()) else { continue };
                let given = match context.row(&place(context, &self.filled(row, &rows)?))?.claim {
                    Claim::Range { lo, hi } => [Some(lo), Some(hi)],
                    Claim::Max(hi) => [None, Some(hi)],
                    _ => [None, None],
                };
                for (end, found, given) in [("least", found.0, given[0]), ("most", found.1, given[1])] {
                    let label = format!("{} {end}", self.text(rows[0], &rule.x)?);
                    ends.extend(given.map(|given| (label, [found, given])));
                }
            }
            series.push((&value.name, ends));
        }
        let labels: IndexSet<&str> = series.iter().flat_map(|(_, ends)| ends.keys()).map(String::as_str).collect();
        let bars = series.iter().filter(|(_, ends)| !ends.is_empty()).fold(
            Bars::new(labels.iter().copied()),
            |bars, (name, ends)| {
                let of = |which: usize| labels.iter().map(move |label| ends.get(*label).map(|both| both[which]));
                beside(bars, name, of(0), of(1))
            },
        );
        Ok(bars.show_values())
    }

    fn stack(&self, rule: &PanelRule, rows: &[usize]) -> Result<Stack> {
        let categories = self.categories(rule, rows)?;
        let mut stack = Stack::new(categories.iter().map(String::as_str));
        for (name, rows, value) in self.series(rule, rows)? {
            let parts = self.at(rule, &rows, &categories, &value.of)?;
            stack = stack.part(name, parts.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>());
        }
        Ok(Stack { totals_shown: rule.show_totals, shares_shown: rule.show_shares, ..stack })
    }

    /// The points of a series, and whether some of its records have none.
    fn points(&self, rule: &PanelRule, rows: &[usize], column: &str) -> Result<(Vec<(f64, f64)>, bool)> {
        let pairs = self.numbers(rows, &rule.x)?.into_iter().zip(self.numbers(rows, column)?);
        let points: Vec<_> = pairs.filter_map(|(x, y)| x.zip(y)).collect();
        let ends = points.len() < rows.len();
        Ok((points, ends))
    }

    fn lines(&self, rule: &PanelRule, rows: &[usize]) -> Result<Lines> {
        let mut lines = Lines::new();
        for (name, rows, value) in self.series(rule, rows)? {
            let (points, ends) = self.points(rule, &rows, &value.of)?;
            let look = if value.hatched { Look::Hatched } else { Look::Solid };
            let (unmarked, ends_low) = (rule.unmarked || value.hatched, ends && !value.hatched);
            lines = lines.series(Series { look, unmarked, ends_low, ..Series::new(name.as_str(), points) });
            if let Some(paper) = &value.paper {
                let (points, _) = self.points(rule, &rows, paper)?;
                lines = lines.series(Series::new(name, points).look(Look::Hatched).stroke(Stroke::None));
            }
        }
        Ok(lines)
    }

    fn front(&self, rule: &PanelRule, rows: &[usize]) -> Result<Front> {
        let mut front = Front::new();
        for (name, rows, value) in self.series(rule, rows)? {
            let look = if value.hatched { Look::Hatched } else { Look::Solid };
            for rows in self.groups(&rows, rule.class.as_slice())? {
                let (points, _) = self.points(rule, &rows, &value.of)?;
                let class = rule.class.as_ref().map_or_else(|| Ok(String::new()), |class| self.text(rows[0], class))?;
                if !points.is_empty() {
                    front.clouds.push(Cloud { name: name.clone(), class, points, look });
                }
            }
        }
        Ok(Front { overall: rule.overall, ..front })
    }
}

/// A row of the artefact's paper.
fn place(context: &Context<'_>, row: &str) -> String {
    format!("{}/{row}", context.artefact.entry.paper)
}

/// The columns in the braces of `text`, which distinguish its records.
fn named(text: &str) -> Vec<String> {
    let inside = text.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    inside.filter(|inside| !inside.contains([' ', ':'])).map(str::to_owned).collect()
}

fn take_called(word: &str) -> Result<Take> {
    let take = word.parse().ok().filter(|take| !matches!(take, Take::One | Take::Range | Take::Missing));
    take.with_context(|| format!("`{word}` of a column is none of mean, least, most, first, last and count"))
}

/// The statistic of the values; `None` if there are none.
fn taken(values: &[Option<f64>], take: Take) -> Option<f64> {
    let there: Vec<f64> = values.iter().copied().flatten().collect();
    match take {
        Take::First => there.first().copied(),
        Take::One | Take::Last => there.last().copied(),
        Take::Mean => mean(&there),
        Take::Least => there.into_iter().min_by(f64::total_cmp),
        Take::Most | Take::Range => there.into_iter().max_by(f64::total_cmp),
        Take::Count => Some(there.len() as f64),
        Take::Missing => Some((values.len() - there.len()) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two networks under two methods, one of which does not fit one of them.
    fn records() -> Records {
        let mut records = Records::of("network,method,time_s");
        for (network, method, time) in [
            ("vgg16", "mnn", Some(8.0)),
            ("vgg16", "own", Some(2.0)),
            ("lenet5", "mnn", None),
            ("lenet5", "own", Some(1.0)),
        ] {
            records.row((network, method, time)).unwrap();
        }
        records
    }

    fn only(column: &str, word: &str) -> Filter {
        Filter::from([(column.to_owned(), OneOrMany::One(word.to_owned()))])
    }

    #[test]
    fn texts_are_filled_from_a_group_of_records() {
        let records = records();
        let rows = records.select(&only("method", "mnn"), &only("network", "nosuch")).unwrap();
        assert_eq!(rows, [0, 2]);
        // LeNet-5 has no time under MNN; the mean of 2 and 1 is 1.5.
        assert_eq!(records.filled("{network}: {time_s:1}", &rows).unwrap(), "vgg16: 8.0");
        assert_eq!(records.filled("{network.name} {mean time_s:2}", &[3, 1]).unwrap(), "LeNet-5 1.50");
        assert_eq!(
            records.each(&records.all(), "{method} {most time_s} of {count time_s}").unwrap(),
            ["mnn 8 of 1", "own 2 of 2"]
        );
        assert_eq!(records.most("time_s", "network", "lenet5").unwrap(), Some(1.0));
        for wrong in ["{nosuch}", "{time_s", "{time_s:x}", "{sum time_s}"] {
            assert!(records.filled(wrong, &[0]).is_err(), "{wrong}");
        }
        assert!(records.filled("{time_s:1}", &[2]).is_err());
    }

    #[test]
    fn a_record_is_set_in_relation_to_the_one_that_is_named() {
        let records = records();
        let column = |is| DerivedColumn {
            of: "time_s".to_owned(),
            is,
            over: [("method".to_owned(), "own".to_owned())].into(),
            same: vec!["network".to_owned()],
            ..DerivedColumn::default()
        };
        let found = |row, is| records.related(row, &column(is)).unwrap();
        // 8 / 2, 2 / 8 and (8 / 2 − 1) · 100.
        assert_eq!(found(0, Relation::Ratio), Some(4.0));
        assert_eq!(found(0, Relation::SpeedUp), Some(0.25));
        assert_eq!(found(0, Relation::More), Some(300.0));
        assert_eq!(found(2, Relation::Ratio), None);
    }

    #[test]
    fn panels_have_a_series_for_each_name_and_a_bar_is_the_mean_of_its_records() {
        let records = records();
        let value = || vec![Plotted { of: "time_s".to_owned(), ..Plotted::default() }];
        let rule = PanelRule {
            x: "network.name".to_owned(),
            series: Some("method".to_owned()),
            values: value(),
            ..PanelRule::default()
        };
        let bars = records.bars(&rule, &records.all()).unwrap();
        assert_eq!(bars.categories, [spelled("vgg16"), spelled("lenet5")]);
        let series: Vec<_> = bars.series.iter().map(|one| (one.name.as_str(), one.values.clone())).collect();
        assert_eq!(series, [("mnn", vec![Some(8.0), None]), ("own", vec![Some(2.0), Some(1.0)])]);
        // In a stack, a missing part takes no space.
        let stack = records.stack(&rule, &records.all()).unwrap();
        assert_eq!(stack.parts.iter().map(|part| part.values.clone()).collect::<Vec<_>>(), [[8.0, 0.0], [2.0, 1.0]]);
        let together = PanelRule { group: Some("mean".to_owned()), values: value(), ..PanelRule::default() };
        let bars = records.bars(&together, &[1, 3]).unwrap();
        assert_eq!((bars.categories, bars.series[0].values.clone()), (vec!["mean".to_owned()], vec![Some(1.5)]));
    }

    #[test]
    fn data_can_be_means_by_columns_and_the_values_of_a_panel_its_groups() {
        let records = records();
        let data = ["network", "time_s", "least_s: least time_s"].map(str::to_owned).to_vec();
        let shown = Shown { data, means_by: vec!["network".to_owned()], ..Shown::default() };
        // The mean of 8 and 2 s is 5; LeNet-5 has only one time.
        assert_eq!(records.table(&shown).unwrap().to_csv(), "network,time_s,least_s\nvgg16,5,2\nlenet5,1,1\n");
        let plotted = Plotted {
            name: "all".to_owned(),
            of: "time_s".to_owned(),
            paper: Some("time_s".to_owned()),
            ..Plotted::default()
        };
        let rule = PanelRule { across: Some("time".to_owned()), values: vec![plotted], ..PanelRule::default() };
        let bars = records.bars(&rule, &[0, 1]).unwrap();
        let series: Vec<_> = bars.series.iter().map(|one| (one.name.as_str(), one.values.clone(), one.look)).collect();
        assert_eq!(bars.categories, ["all"]);
        let all = || vec![Some(5.0)];
        assert_eq!(series, [("time", all(), Look::Solid), ("time", all(), Look::Hatched)]);
    }

    #[test]
    fn words_are_of_the_records_that_are_named_and_say_so_where_there_are_none() {
        let (records, mut outcome) = (records(), Outcome::default());
        let rule = |method: &str| WordsRule {
            name: method.to_owned(),
            each: "{network}".to_owned(),
            between: Some("; ".to_owned()),
            only: only("method", method),
            missing: None,
            or: Some("none".to_owned()),
        };
        records.tell(&rule("own"), &mut outcome).unwrap();
        records.tell(&WordsRule { missing: Some("time_s".to_owned()), ..rule("mnn") }, &mut outcome).unwrap();
        records.tell(&rule("nosuch"), &mut outcome).unwrap();
        let said = ["own", "mnn", "nosuch"].map(|name| outcome.quantities.quoted(name).unwrap());
        assert_eq!(said, ["vgg16; lenet5", "lenet5", "none"]);
    }
}
