//! The tensors of forward that later nodes need, in memory or computed again, as a minimum cut.
//!
//! When a node of backward runs, each tensor of forward that it or a later node reads is in memory in some form, is on
//! flash, or is computed again after that node from tensors for which the same is true. State and samples are always in
//! memory. Given a price per byte, the cheapest combination is the least cut of a network:
//!
//! ```text
//! source ── a form of it ──► operators that make it ── their time ──► sink        for a tensor that later nodes read
//!                               └─ ∞ ─► an input ── a form of it ──► operators that make it ─► …
//! ```
//!
//! The extra time and memory of any plan equal those of some cut. So the least cut at any price, less the price of the
//! available memory, is a lower bound on the extra time (weak duality). The bound is concave in the price, and its
//! maximum is found by Newton's method from both sides.

mod flow;
pub mod policy;

use std::ops::Range;

use haversack_workloads::{Need, NodeId, Phase, Role, TensorId, TrainingGraph, Uses};

use self::flow::{Flow, SINK, SOURCE};

/// The cost of one way to have a tensor available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Nanoseconds in addition to the schedule.
    pub time: u64,
    /// Bytes in memory.
    pub bytes: u64,
    /// Nanoseconds of flash transfers, during which the processor can work.
    pub flash: u64,
}

/// The parts of a tensor that are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Its values.
    pub values: bool,
    /// Its signs, a mask, or positions.
    pub bits: bool,
}

/// The inputs for a micro-batch, with prices.
pub struct Terms<'a> {
    /// The graph.
    pub graph: &'a TrainingGraph,
    /// Uses of its tensors.
    pub uses: &'a Uses,
    /// Samples of the micro-batch.
    pub samples: u64,
    /// Lower bounds on the time of each node when it runs again, in nanoseconds.
    pub times: &'a [u64],
    /// The forms in which a tensor may be stored, given the parts that are needed; at least one is in memory and takes
    /// no time.
    pub forms: &'a dyn Fn(TensorId, Needed) -> Vec<Price>,
    /// Whether a node may be left out of this micro-batch.
    pub leaves_out: &'a dyn Fn(NodeId) -> bool,
}

/// An arc, the ways in which it may be cut, and the tensor that stays in memory then, with the parts that are needed.
type Priced = (u32, Range<usize>, Option<(TensorId, Needed)>);

/// Memory while a node of backward runs, and the tensors that it and later nodes need.
#[derive(Debug)]
#[must_use]
pub struct Moment {
    /// Bytes that are in memory under any plan: of state, of gradients and of the node's own tensors; in the first
    /// micro-batch, and in a later one.
    pub beside: [u64; 2],
    /// Bytes of all tensors needed later, each in the smallest form that takes no time.
    pub all: u64,
    flow: Flow,
    /// Arcs that may be cut, each in one of several ways.
    priced: Vec<Priced>,
    prices: Vec<Price>,
    /// Arcs that may not be cut.
    firm: Vec<u32>,
}

/// Fractions of a nanosecond in which prices are counted, rounded down.
const PARTS: f64 = 64.0;
/// The highest price, so that sums of a hundred thousand stay countable.
const HIGHEST: u64 = 1 << 46;
/// More than any sum of prices.
const FIRM: u64 = 1 << 63;
/// Steps of Newton's method, which takes about five.
const STEPS: usize = 24;

impl Moment {
    /// The moment of node `at` of backward.
    pub fn new(terms: &Terms<'_>, at: NodeId) -> Self {
        let (graph, needed, reads) = (terms.graph, terms.needed(at), terms.read_by(at));
        let mut moment = Self {
            beside: terms.beside(at, &needed, &reads),
            all: 0,
            flow: Flow::new(),
            priced: Vec::new(),
            prices: Vec::new(),
            firm: Vec::new(),
        };
        let (mut operators, mut places) = (vec![None; graph.nodes.len()], vec![None; graph.tensors.len()]);
        let mut open: Vec<(TensorId, u32)> = Vec::new();
        reads.iter().filter(|(_, own)| own.values).for_each(|&(input, _)| places[input as usize] = Some(SINK));
        for (tensor, of) in (0..).zip(&needed).filter(|(_, of)| of.values || of.bits) {
            if reads.iter().any(|(input, own)| *input == tensor && (own.values || !of.values)) {
                continue;
            }
            let forms = (terms.forms)(tensor, *of);
            moment.all += in_memory(&forms);
            // Where bits are enough, stored values also provide them.
            let place = if of.values { SOURCE } else { moment.flow.node() };
            if place != SOURCE {
                moment.may_cut(SOURCE, place, &forms, Some((tensor, *of)));
            }
            places[tensor as usize] = Some(place);
            open.push((tensor, place));
        }
        while let Some((tensor, place)) = open.pop() {
            let mut makers = Vec::new();
            for maker in terms.makers(tensor) {
                if let Some(known) = operators[maker as usize] {
                    makers.push(known);
                    continue;
                }
                let operator = moment.flow.node();
                operators[maker as usize] = Some(operator);
                makers.push(operator);
                let again = Price { time: terms.times[maker as usize], ..Price::default() };
                moment.may_cut(operator, SINK, &[again], None);
                let node = &graph.nodes[maker as usize];
                for &input in node.inputs.iter().filter(|&&input| terms.is_made(input, at)) {
                    let place = *places[input as usize].get_or_insert_with(|| {
                        let place = moment.flow.node();
                        open.push((input, place));
                        place
                    });
                    if place > SINK && node.need_of(input) != Need::Shape {
                        moment.never_cut(operator, place);
                    }
                }
            }
            // One that is written in place is made by all its writers.
            let again = if let [one] = makers[..] { one } else { moment.flow.node() };
            makers.iter().filter(|&&maker| maker != again).for_each(|&maker| moment.never_cut(again, maker));
            let whole = Needed { values: true, ..needed[tensor as usize] };
            moment.may_cut(place, again, &(terms.forms)(tensor, whole), Some((tensor, whole)));
        }
        moment
    }

    fn may_cut(&mut self, from: u32, to: u32, ways: &[Price], of: Option<(TensorId, Needed)>) {
        let first = self.prices.len();
        self.prices.extend_from_slice(ways);
        self.priced.push((self.flow.arc(from, to), first..self.prices.len(), of));
    }

    fn never_cut(&mut self, from: u32, to: u32) {
        self.firm.push(self.flow.arc(from, to));
    }

    /// The least nanoseconds in addition to the schedule if tensors needed later have `room` bytes; flash time has the
    /// weight `flash` in the objective.
    pub fn least(&mut self, room: u64, flash: f64) -> u64 {
        self.bound(room, flash).0
    }

    /// The place of each stored tensor's form among its forms, under the cheapest cut found with `room` bytes; `None`
    /// for tensors that are computed again.
    pub fn choice(&mut self, room: u64, flash: f64) -> Vec<(TensorId, Needed, Option<usize>)> {
        let (_, byte) = self.bound(room, flash);
        self.cut(byte, flash);
        let way = |(arc, range, of): &Priced| {
            let (tensor, needed) = (*of)?;
            let cheapest = || range.clone().min_by_key(|&way| rate(&self.prices[way], byte, flash));
            let way = cheapest().filter(|_| self.flow.is_cut(*arc)).map(|way| way - range.start);
            Some((tensor, needed, way))
        };
        self.priced.iter().filter_map(way).collect()
    }

    /// That bound, and the least price per byte tried at which the cut fits.
    fn bound(&mut self, room: u64, flash: f64) -> (u64, f64) {
        let again: u64 = self.prices.iter().filter(|price| price.bytes == 0).map(|price| price.time).sum();
        let room = room as f64;
        // The two ends: everything kept, and everything computed again. A line is a cut's cost as a function of the
        // price per byte.
        let (mut kept, mut lost) = ((0.0, self.all as f64 - room), (again as f64 * (1.0 - flash), -room));
        let (mut best, mut fits) = (0.0_f64, 0.0);
        for _ in 0..STEPS {
            let byte = (lost.0 - kept.0) / (kept.1 - lost.1);
            // Everything fits, or nothing takes time.
            if kept.1 <= 0.0 || byte <= 0.0 {
                break;
            }
            let (sum, bytes) = self.cut(byte, flash);
            best = best.max(sum - byte * room);
            let line = (sum - byte * bytes, bytes - room);
            if line.1 <= 0.0 || fits == 0.0 {
                fits = byte;
            }
            let promised = kept.0 + byte * kept.1;
            if sum - byte * room >= promised - 1.0 || line == kept || line == lost {
                break;
            }
            *if line.1 > 0.0 { &mut kept } else { &mut lost } = line;
        }
        (best as u64, fits)
    }

    /// The time of the least cut at `byte` nanoseconds per byte, and its bytes.
    fn cut(&mut self, byte: f64, flash: f64) -> (f64, f64) {
        let rate = |price: &&Price| rate(price, byte, flash);
        let ways = |ways: &Range<usize>| self.prices[ways.clone()].iter().min_by_key(rate);
        for (arc, range, _) in &self.priced {
            self.flow.set(*arc, ways(range).as_ref().map_or(FIRM, rate));
        }
        self.firm.iter().for_each(|&arc| self.flow.set(arc, FIRM));
        let sum = self.flow.fill() as f64 / PARTS;
        let cut = self.priced.iter().filter(|(arc, ..)| self.flow.is_cut(*arc));
        (sum, cut.filter_map(|(_, range, _)| ways(range)).map(|price| price.bytes as f64).sum())
    }
}

/// A cost in fractions of a nanosecond at `byte` nanoseconds per byte.
fn rate(price: &Price, byte: f64, flash: f64) -> u64 {
    let time = price.time as f64 * (1.0 - flash) + price.flash as f64 * flash;
    (((time + price.bytes as f64 * byte) * PARTS) as u64).min(HIGHEST)
}

/// Bytes of the smallest form that takes no time.
fn in_memory(forms: &[Price]) -> u64 {
    forms.iter().filter(|form| form.time + form.flash == 0).map(|form| form.bytes).min().unwrap_or(0)
}

impl Terms<'_> {
    fn is_forward(&self, id: NodeId) -> bool {
        self.graph.nodes[id as usize].phase == Phase::Forward
    }

    /// The nodes that make a tensor, all of which run again for it.
    fn makers(&self, tensor: TensorId) -> impl Iterator<Item = NodeId> {
        self.uses.writers(tensor).iter().copied().filter(|&id| self.is_forward(id))
    }

    /// Whether forward makes the tensor, so that it can be dropped.
    fn is_made(&self, tensor: TensorId, at: NodeId) -> bool {
        let first = self.uses.producers()[tensor as usize];
        self.uses.is_rematerialisable(tensor) && first < at && self.is_forward(first)
    }

    /// The tensors of forward that node `id` reads, each once, with the parts it needs.
    fn read_by(&self, id: NodeId) -> Vec<(TensorId, Needed)> {
        let node = &self.graph.nodes[id as usize];
        let made = node.inputs.iter().filter(|&&input| self.is_made(input, id));
        let of = |&input: &TensorId| match node.need_of(input) {
            Need::Shape => None,
            Need::Values | Need::Statistics => Some((input, Needed { values: true, bits: false })),
            Need::Signs | Need::Mask | Need::Indices => Some((input, Needed { values: false, bits: true })),
        };
        let mut reads: Vec<_> = made.filter_map(of).collect();
        reads.sort_unstable_by_key(|(input, _)| *input);
        reads.dedup();
        reads
    }

    /// The parts of each tensor of forward that node `at` of backward and later ones need.
    fn needed(&self, at: NodeId) -> Vec<Needed> {
        let mut needed = vec![Needed::default(); self.graph.tensors.len()];
        let backward = (at..self.graph.nodes.len() as NodeId)
            .take_while(|&id| self.graph.nodes[id as usize].phase == Phase::Backward);
        for (input, of) in backward.filter(|&id| !(self.leaves_out)(id)).flat_map(|id| self.read_by(id)) {
            let all = &mut needed[input as usize];
            *all = Needed { values: all.values || of.values, bits: all.bits || of.bits };
        }
        needed
    }

    /// Bytes in memory in addition to tensors needed later: see [`Moment::beside`].
    fn beside(&self, at: NodeId, needed: &[Needed], reads: &[(TensorId, Needed)]) -> [u64; 2] {
        let node = &self.graph.nodes[at as usize];
        let mut sums = [0; 2];
        for (id, tensor) in (0..).zip(&self.graph.tensors) {
            let bytes = tensor.bytes.at(self.samples);
            let uses = self.uses.of(id);
            let is_live = self.uses.producers()[id as usize] <= at && uses.last().is_some_and(|&last| last >= at);
            let is_summed = |last: &NodeId| self.graph.nodes[*last as usize].phase == Phase::Update;
            let of = match tensor.role {
                role if role.is_state() => [tensor.bytes.fixed; 2],
                Role::Input | Role::Target => [bytes; 2],
                _ if node.outputs.contains(&id) => [bytes; 2],
                Role::ParameterGradient if uses.last().is_some_and(is_summed) => {
                    [if is_live { bytes } else { 0 }, bytes]
                }
                Role::Gradient | Role::ParameterGradient if is_live => [bytes; 2],
                Role::Activation if node.inputs.contains(&id) && !self.is_made(id, at) => [bytes; 2],
                _ => [0; 2],
            };
            sums = [sums[0] + of[0], sums[1] + of[1]];
        }
        // Its bits are contained in its values, if later nodes need those.
        let read = reads.iter().filter(|(input, own)| own.values || !needed[*input as usize].values);
        let read: u64 = read.map(|&(input, own)| in_memory(&(self.forms)(input, own))).sum();
        sums.map(|sum| sum + read)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use haversack_testing::Draws;
    use haversack_testing::GraphBuilder;

    use super::*;

    /// Activations, each made from earlier ones, some written again in place, some two at a time; backward reads most
    /// of them.
    fn graph(draws: &mut Draws) -> TrainingGraph {
        let mut builder = GraphBuilder::default();
        let input = builder.tensor(Role::Input, 100);
        let mut made: Vec<TensorId> = vec![input];
        while made.len() < 8 {
            let from = [made[made.len() - 1], made[draws.below(made.len())]];
            let mut outputs = vec![builder.tensor(Role::Activation, 1 + draws.below(90) as u64)];
            match draws.below(4) {
                0 => outputs.push(builder.tensor(Role::Activation, 1 + draws.below(90) as u64)),
                1 if from[0] != input => outputs = vec![from[0]],
                _ => {}
            }
            builder.node(Phase::Forward, &from, &outputs);
            made.extend(outputs.iter().filter(|output| **output != from[0]));
        }
        for _ in 0..6 {
            let gradient = builder.tensor(Role::Gradient, 10);
            let need = if draws.below(3) == 0 { Need::Signs } else { Need::Values };
            builder.backward(&[(made[draws.below(made.len())], need, true)], &[gradient]);
        }
        builder.graph
    }

    #[test]
    fn the_cut_is_the_cheapest_way_of_all() {
        let mut draws = Draws(5);
        for _ in 0..120 {
            let graph = graph(&mut draws);
            let times: Vec<u64> = graph.nodes.iter().map(|_| draws.below(500) as u64).collect();
            let bytes = |tensor: TensorId| graph.tensor(tensor).bytes.at(1);
            let whole = |tensor| Price { bytes: bytes(tensor), ..Price::default() };
            let bits = |tensor| Price { bytes: bytes(tensor) / 8, ..Price::default() };
            let forms = |tensor, needed: Needed| {
                if needed.values { vec![whole(tensor)] } else { vec![whole(tensor), bits(tensor)] }
            };
            let uses = Uses::new(&graph);
            let leaves_out = |_| false;
            let terms =
                Terms { graph: &graph, uses: &uses, samples: 1, times: &times, forms: &forms, leaves_out: &leaves_out };
            let first = graph.nodes.iter().position(|node| node.phase == Phase::Backward).unwrap() as NodeId;
            let at = first + draws.below(4) as NodeId;
            let (reads, needed) = (terms.read_by(at), terms.needed(at));
            let tensors: Vec<TensorId> =
                (0..graph.tensors.len() as TensorId).filter(|&id| terms.is_made(id, at)).collect();
            let price = draws.below(8) as f64;
            let is_read = |tensor: TensorId| reads.iter().any(|&(input, _)| input == tensor);
            let of_bits = tensors
                .iter()
                .filter(|&&id| needed[id as usize] == Needed { values: false, bits: true } && !is_read(id));
            let of_bits: Vec<TensorId> = of_bits.copied().collect();
            // The cost of keeping one set of tensors and the bits of another: the nodes that then have to run again.
            let cost = |kept: u32, held: u32, room: Option<u64>| {
                let is_kept =
                    |tensor: TensorId| kept >> tensors.iter().position(|&own| own == tensor).unwrap() & 1 == 1;
                let is_there = |tensor| reads.iter().any(|&(input, own)| input == tensor && own.values);
                let (mut open, mut ran, mut seen) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
                let mut memory: u64 = tensors
                    .iter()
                    .filter(|&&tensor| is_kept(tensor) && !is_there(tensor))
                    .map(|&tensor| bytes(tensor))
                    .sum();
                for &tensor in tensors.iter().filter(|&&tensor| !is_there(tensor) && !is_kept(tensor)) {
                    let place = of_bits.iter().position(|&own| own == tensor);
                    match place.is_some_and(|place| held >> place & 1 == 1) {
                        true => memory += bytes(tensor) / 8,
                        false if place.is_some() || needed[tensor as usize].values => open.push(tensor),
                        false => {}
                    }
                }
                while let Some(tensor) = open.pop() {
                    if is_there(tensor) || is_kept(tensor) || !seen.insert(tensor) {
                        continue;
                    }
                    for maker in terms.makers(tensor) {
                        ran.insert(maker);
                        open.extend(
                            graph.nodes[maker as usize].inputs.iter().filter(|&&input| terms.is_made(input, at)),
                        );
                    }
                }
                let time = ran.iter().map(|&id| times[id as usize]).sum::<u64>() as f64;
                match room {
                    None => time + price * memory as f64,
                    Some(room) => {
                        if memory <= room {
                            time
                        } else {
                            f64::INFINITY
                        }
                    }
                }
            };
            let mut moment = Moment::new(&terms, at);
            let all = |room: Option<u64>| {
                let sets =
                    (0..1_u32 << tensors.len()).flat_map(|kept| (0..1 << of_bits.len()).map(move |held| (kept, held)));
                sets.map(|(kept, held)| cost(kept, held, room)).fold(f64::INFINITY, f64::min)
            };
            let (sum, _) = moment.cut(price, 0.0);
            assert!((sum - all(None)).abs() < 0.5, "{sum}, {}", all(None));
            for share in 0..5 {
                let room = moment.all * share / 4;
                let (least, best) = (moment.least(room, 0.0) as f64, all(Some(room)));
                assert!(least <= best, "{least}, {best}");
                // With zero room, and with full room, the bound is exact.
                assert!(!matches!(share, 0 | 4) || best - least <= 1.5, "{share}: {least}, {best}");
            }
        }
    }
}
