//! Clouds of points with their Pareto fronts, and bounds that no method can beat.

use super::axis::Frame;
use super::canvas::{Canvas, Pen, Rect};
use super::legend::{Entry, Key, speck};
use super::plot::{Numbers, Plot};
use super::style::{Look, MUTED, Styles, WHITE, mix};
use crate::pareto::{self, Sense, Senses};

/// The radius of a mark, in pixels.
const MARK: f64 = 4.0;
/// How much larger a mark is for each other mark that covers it.
const RING: f64 = 3.0;

/// A point of a front.
struct FrontMark {
    /// The number of its cloud.
    cloud: usize,
    /// In data units.
    point: (f64, f64),
    /// On the sheet.
    centre: (f64, f64),
}

/// Whether marks at these positions cover one another.
fn touches(a: (f64, f64), b: (f64, f64)) -> bool {
    (a.0 - b.0).hypot(a.1 - b.1) < MARK
}

/// Clouds of points, each with its front as a step line.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Front {
    /// The clouds, the last on top.
    pub clouds: Vec<Cloud>,
    /// Which way is better on the horizontal and the vertical axis.
    pub senses: Senses,
    /// Whether the front over all clouds of each class is drawn beneath their own.
    pub overall: bool,
    /// A value of the horizontal axis beyond which nothing is possible, and its name; drawn if the axis reaches it.
    pub wall: Option<(f64, String)>,
    /// Bounds that no point beats, one list for each kind of point: with at most the first value on the horizontal
    /// axis, no point is better than the second on the vertical.
    pub bounds: Vec<Vec<(f64, f64)>>,
    /// A band between two values of the vertical axis, and what it is.
    pub band: Option<([f64; 2], String)>,
}

impl Front {
    /// No clouds yet, both axes minimised.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more cloud.
    pub fn cloud(self, name: impl Into<String>, points: impl Into<Vec<(f64, f64)>>) -> Self {
        self.cloud_of("", name, points)
    }

    /// With one more cloud of a class, within which points are compared.
    pub fn cloud_of(
        mut self,
        class: impl Into<String>,
        name: impl Into<String>,
        points: impl Into<Vec<(f64, f64)>>,
    ) -> Self {
        let (class, name, points) = (class.into(), name.into(), points.into());
        self.clouds.push(Cloud { name, class, points, look: Look::Solid });
        self
    }

    /// With the bound of one more kind of point.
    pub fn bound(mut self, points: impl Into<Vec<(f64, f64)>>) -> Self {
        self.bounds.push(points.into());
        self
    }

    /// The corners of the bound of all kinds together, from the least value of the horizontal axis on, where the
    /// bounds of all kinds are known.
    fn limit(&self) -> Vec<(f64, f64)> {
        let largest = self.clouds.iter().flat_map(|cloud| &cloud.points).map(|point| point.0).fold(0.0, f64::max);
        let mut ends: Vec<f64> = self.bounds.iter().flatten().map(|point| point.0).collect();
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        let better = if self.senses[1] == Sense::Minimise { f64::min } else { f64::max };
        let at = |end: f64| {
            let of = |kind: &Vec<(f64, f64)>| {
                let beyond = kind.iter().filter(|point| point.0 >= end);
                beyond.min_by(|a, b| a.0.total_cmp(&b.0)).map(|point| point.1)
            };
            self.bounds.iter().map(of).collect::<Option<Vec<f64>>>()?.into_iter().reduce(better)
        };
        let mut corners = Vec::new();
        let mut start = ends.first().map_or(0.0, |first| first.min(largest) * 1e-6);
        for (end, value) in ends.into_iter().map_while(|end| Some((end, at(end)?))) {
            let end = end.min(largest * 2.0);
            corners.extend([(start, value), (end, value)]);
            start = end;
        }
        corners
    }

    /// The classes of clouds, each once.
    fn classes(&self) -> Vec<&str> {
        let mut classes: Vec<&str> = self.clouds.iter().map(|cloud| cloud.class.as_str()).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    with! {
        /// With these senses.
        senses(senses: Senses) => senses: senses;
        /// With the front over all clouds of each class.
        overall() => overall: true;
        /// With a band between these values of the vertical axis, and its name.
        band(ends: [f64; 2], name: impl Into<String>) => band: Some((ends, name.into()));
        /// With a wall at this value and with this name.
        wall(at: f64, name: impl Into<String>) => wall: Some((at, name.into()));
    }

    /// The corners of the boundary of the region that a front reaches.
    fn boundary(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> =
            pareto::front(points, self.senses).iter().filter_map(|i| points.get(*i).copied()).collect();
        // From best to worst on the first axis, each second value is the best that can be had until the next point.
        corners.dedup();
        super::lines::steps(&corners)
    }

    /// The marks, the last on top.
    fn marks(&self, frame: &Frame<'_>) -> Vec<FrontMark> {
        let of = |(cloud, of): (usize, &Cloud)| {
            let reached = pareto::front(&of.points, self.senses).into_iter().map(|index| of.points[index]);
            let marks = reached.filter(|point| frame.holds(*point));
            marks.map(|point| FrontMark { cloud, point, centre: frame.at(point) }).collect::<Vec<_>>()
        };
        self.clouds.iter().enumerate().flat_map(of).collect()
    }

    /// Whether the horizontal axis of these points reaches a value.
    fn reaches(&self, at: f64) -> bool {
        let largest = self.clouds.iter().flat_map(|cloud| &cloud.points).map(|point| point.0).fold(0.0, f64::max);
        largest >= at
    }

    fn limit_pen() -> Pen {
        Pen::new(MUTED, 1.25)
    }

    fn overall_pen() -> Pen {
        Pen::new(mix(MUTED, WHITE, 0.62), 6.0)
    }
}

/// One cloud: the points that one method reaches.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// The name.
    pub name: String,
    /// Its class; clouds are compared only within a class.
    pub class: String,
    /// Points in data units; the dominated ones are drawn small.
    pub points: Vec<(f64, f64)>,
    /// Full line and filled markers, or dashed with open ones.
    pub look: Look,
}

impl Plot for Front {
    fn numbers(&self) -> Vec<Numbers<'_>> {
        self.clouds.iter().map(|c| (c.name.as_str(), c.points.iter().map(|p| (Some(p.0), p.1)).collect())).collect()
    }

    fn is_front(&self) -> bool {
        true
    }

    fn draw(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        if let Some((ends, _)) = &self.band {
            let [foot, top] = ends.map(|end| frame.y_at(end).clamp(frame.rect.top, frame.rect.bottom()));
            canvas.fill(Rect { top, height: foot - top, ..frame.rect }, mix(MUTED, WHITE, 0.85));
        }
        for class in self.classes().into_iter().filter(|_| self.overall) {
            let own = self.clouds.iter().filter(|cloud| cloud.class == class);
            let all: Vec<(f64, f64)> = own.flat_map(|c| c.points.iter().copied()).collect();
            for piece in frame.clip(&self.boundary(&all)) {
                canvas.line(&piece, Self::overall_pen());
            }
        }
        for piece in frame.clip(&self.limit()) {
            canvas.line(&piece, Self::limit_pen());
        }
        for cloud in &self.clouds {
            canvas.named("series", &cloud.name, || {
                let colour = styles.of(&cloud.name).colour;
                for &point in cloud.points.iter().filter(|point| frame.holds(**point)) {
                    let words = frame.point_in_words(&styles.words(&cloud.name, cloud.look), point.0, point.1);
                    canvas.valued(&words, || canvas.polygon(&speck(frame.at(point)), mix(colour, WHITE, 0.35)));
                }
                let boundary = frame.clip(&self.boundary(&cloud.points));
                boundary.iter().for_each(|piece| canvas.line(piece, Pen::series(colour, 1.75, cloud.look)));
            });
        }
        let wall = self.wall.iter().filter(|(at, _)| frame.x.is_some_and(|x| x.holds(*at)));
        for (at, _) in wall {
            let x = frame.x_at(*at);
            canvas.line(&[(x, frame.rect.top), (x, frame.rect.bottom())], Pen::wall());
        }
        let marks = self.marks(frame);
        for (place, mark) in marks.iter().enumerate() {
            let covers = |other: &&FrontMark| other.cloud != mark.cloud && touches(mark.centre, other.centre);
            let covering = marks[place..].iter().filter(covers).count();
            let Cloud { name, look, .. } = &self.clouds[mark.cloud];
            // A mark that others cover is a ring around them.
            let look = if covering > 0 { Look::Outlined } else { *look };
            let (x, y) = mark.point;
            let words = frame.point_in_words(&styles.words(name, self.clouds[mark.cloud].look), x, y);
            let radius = MARK + RING * covering as f64;
            let draw = || canvas.marker(mark.centre, radius, styles.of(name), look);
            canvas.named("series", name, || canvas.valued(&words, draw));
        }
    }

    fn keys(&self, styles: &Styles<'_>) -> Vec<Entry> {
        let mut keys: Vec<Entry> = Vec::new();
        for cloud in self.clouds.iter().filter(|cloud| !cloud.points.is_empty()) {
            // A method may have a cloud in several classes.
            if keys.iter().all(|known| known.label != cloud.name) {
                let key = Key::Series { style: styles.of(&cloud.name), look: cloud.look, line: true, marker: true };
                keys.push(Entry { key, label: cloud.name.clone() });
            }
        }
        if self.overall {
            let label = if self.classes().len() > 1 { "front of each class" } else { "front over all" };
            keys.push(Entry { key: Key::Stroke(Self::overall_pen()), label: label.into() });
        }
        if let Some((_, name)) = &self.band {
            keys.push(Entry { key: Key::Stroke(Pen::new(mix(MUTED, WHITE, 0.85), 10.0)), label: name.clone() });
        }
        if !self.bounds.is_empty() {
            keys.push(Entry {
                key: Key::Stroke(Self::limit_pen()),
                label: "bound of plans in floats with all gradients".into(),
            });
        }
        if self.clouds.iter().any(|c| pareto::front(&c.points, self.senses).len() < c.points.len()) {
            keys.push(Entry { key: Key::Speck, label: "dominated".into() });
        }
        if let Some((_, name)) = self.wall.as_ref().filter(|(at, _)| self.reaches(*at)) {
            keys.push(Entry { key: Key::Stroke(Pen::wall()), label: name.clone() });
        }
        let better = match self.senses {
            [Sense::Minimise, Sense::Minimise] => "better: down and left",
            [Sense::Maximise, Sense::Minimise] => "better: down and right",
            [Sense::Minimise, Sense::Maximise] => "better: up and left",
            [Sense::Maximise, Sense::Maximise] => "better: up and right",
        };
        keys.push(Entry { key: Key::Blank, label: better.into() });
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_weakest_of_all_kinds_as_far_as_all_are_known() {
        let front = Front::new().cloud("sage", [(2.0, 9.0), (8.0, 5.0)]);
        // Within 4, nothing of the first kind is below 6, and within 8 nothing below 3; of the second,
        // nothing is ever below 5.
        let front = front.bound([(8.0, 3.0), (4.0, 6.0)]).bound([(f64::INFINITY, 5.0)]);
        let corners = front.limit();
        assert_eq!(corners[1..], [(4.0, 5.0), (4.0, 3.0), (8.0, 3.0)]);
        assert!(corners[0].0 < 0.01 && corners[0].1 == 5.0, "{corners:?}");
        assert!(Front::new().limit().is_empty());
        // Throughput is maximised.
        let rates = Front::new().senses([Sense::Minimise, Sense::Maximise]).cloud("sage", [(2.0, 9.0)]);
        assert_eq!(rates.bound([(4.0, 10.0)]).bound([(4.0, 12.0)]).limit()[1], (4.0, 12.0));
    }
}
