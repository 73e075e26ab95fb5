//! Shared bandwidth in lock step with a twin that recomputes every rate and counts down every flow at each step.

use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
use haversack_engine::{FlowId, SharedBandwidth};
use proptest::prelude::*;

/// Units of work: 2⁻⁴⁰ bytes, as the model documents.
const BYTE: i128 = 1 << 40;

fn units(rate: f64) -> i128 {
    (rate / 1e9 * BYTE as f64).round() as i128
}

struct Flow {
    number: usize,
    cap: Option<i128>,
    left: i128,
}

struct Twin {
    now: u64,
    capacity: i128,
    delivered: i128,
    flows: Vec<Flow>,
}

impl Twin {
    /// Water-filling: the flow with the lowest cap first, each gets its cap or an equal share of the rest.
    fn rates(&self) -> Vec<i128> {
        let mut order: Vec<_> = (0..self.flows.len()).collect();
        order.sort_by_key(|&i| self.flows[i].cap.unwrap_or(i128::MAX));
        let mut rates = vec![0; self.flows.len()];
        let mut rest = self.capacity;
        for (position, &i) in order.iter().enumerate() {
            let sharing = (order.len() - position) as i128;
            match self.flows[i].cap {
                Some(cap) if cap * sharing <= rest => {
                    rates[i] = cap;
                    rest -= cap;
                }
                _ => {
                    order[position..].iter().for_each(|&j| rates[j] = rest / sharing);
                    break;
                }
            }
        }
        rates
    }

    fn next(&self) -> Option<u64> {
        let ends = self.flows.iter().zip(self.rates()).filter_map(|(flow, rate)| match (flow.left, rate) {
            (0, _) => Some(0),
            (_, 0) => None,
            (left, rate) => Some((left + rate - 1) / rate),
        });
        ends.min().map(|span| self.now + span as u64)
    }

    fn pass(&mut self, now: u64) {
        let elapsed = i128::from(now - self.now);
        for (rate, flow) in self.rates().into_iter().zip(&mut self.flows) {
            let moved = flow.left.min(rate * elapsed);
            flow.left -= moved;
            self.delivered += moved;
        }
        self.now = now;
    }

    fn advance(&mut self, until: u64) -> Vec<(u64, usize)> {
        let mut completed = Vec::new();
        while let Some(due) = self.next().filter(|&due| due <= until) {
            self.pass(due);
            // Flows are in the order of insertion.
            completed.extend(self.flows.extract_if(.., |flow| flow.left == 0).map(|flow| (due, flow.number)));
        }
        self.pass(until);
        completed
    }
}

fn bytes_begun(work: i128) -> Bytes {
    Bytes(((work + BYTE - 1) / BYTE) as u64)
}

#[derive(Clone, Debug)]
enum Change {
    Insert { volume: u64, cap: Option<f64> },
    Cancel(prop::sample::Index),
    SetCapacity(f64),
    Nothing,
}

/// Few distinct values, so that caps tie and meet the level exactly, and some that need rounding.
fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::sample::select(vec![1e9, 2e9, 3e9, 4e9, 6e9]),
        prop::sample::select(vec![1.0, 1e3, 333_333_333.3, 1e9 / 7.0]),
        1e8..2e10,
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0..3_000u64, prop::option::weighted(0.7, rate()))
            .prop_map(|(volume, cap)| Change::Insert { volume, cap }),
        2 => any::<prop::sample::Index>().prop_map(Change::Cancel),
        1 => prop_oneof![4 => rate(), 1 => Just(0.0)].prop_map(Change::SetCapacity),
        1 => Just(Change::Nothing),
    ]
}

struct Pair {
    link: SharedBandwidth<usize>,
    twin: Twin,
    ids: Vec<FlowId>,
    inserted: u64,
    /// The number of cancelled flows, and their remaining bytes.
    taken_back: (u64, u64),
}

impl Pair {
    fn new(capacity: f64) -> Self {
        let link = SharedBandwidth::new(BytesPerSecond(capacity)).unwrap();
        let twin = Twin { now: 0, capacity: units(capacity), delivered: 0, flows: Vec::new() };
        Self { link, twin, ids: Vec::new(), inserted: 0, taken_back: (0, 0) }
    }

    fn advance(&mut self, now: u64) -> Result<(), TestCaseError> {
        let completed: Vec<_> = std::iter::from_fn(|| self.link.advance(Nanos(now)).unwrap())
            .map(|done| (done.time.0, done.item))
            .collect();
        prop_assert_eq!(completed, self.twin.advance(now));
        Ok(())
    }

    fn apply(&mut self, now: u64, change: Change) -> Result<(), TestCaseError> {
        match change {
            Change::Insert { volume, cap } => {
                let number = self.ids.len();
                let id = self.link.insert(Nanos(now), Bytes(volume), cap.map(BytesPerSecond), number);
                self.ids.push(id.unwrap());
                let left = i128::from(volume) * BYTE;
                self.twin.flows.push(Flow { number, cap: cap.map(units), left });
                self.inserted += volume;
            }
            Change::Cancel(index) if !self.ids.is_empty() => {
                let number = index.index(self.ids.len());
                let cancelled = self.link.cancel(Nanos(now), self.ids[number]).unwrap();
                // An empty flow is due as soon as it is inserted: it has completed.
                let position = self.twin.flows.iter().position(|flow| flow.number == number && flow.left > 0);
                let left = position.map(|position| self.twin.flows.remove(position).left);
                prop_assert_eq!(cancelled.map(|cancelled| cancelled.remaining), left.map(bytes_begun));
                if let Some(cancelled) = cancelled {
                    self.taken_back.0 += 1;
                    self.taken_back.1 += cancelled.remaining.0;
                }
            }
            Change::SetCapacity(capacity) => {
                self.link.set_capacity(Nanos(now), BytesPerSecond(capacity)).unwrap();
                self.twin.capacity = units(capacity);
            }
            Change::Cancel(_) | Change::Nothing => {}
        }
        Ok(())
    }

    fn compare(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.link.next_completion().map(|time| time.0), self.twin.next());
        prop_assert_eq!(self.link.delivered(), Bytes((self.twin.delivered / BYTE) as u64));
        let live = self.twin.flows.iter().filter(|flow| flow.left > 0).count();
        prop_assert_eq!(self.link.in_flight(), live);
        let mut on_the_way = 0;
        for flow in self.twin.flows.iter().filter(|flow| flow.left > 0) {
            let remaining = self.link.remaining(self.ids[flow.number]);
            prop_assert_eq!(remaining, Some(bytes_begun(flow.left)));
            on_the_way += remaining.unwrap().0;
        }
        // Every byte is delivered, in flight or cancelled. Delivered bytes are rounded down and each flow's remaining
        // bytes up, by less than a byte.
        let total = self.link.delivered().0 + on_the_way + self.taken_back.1;
        let rounded_up = live as u64 + self.taken_back.0;
        prop_assert!(self.inserted <= total + 1 && total <= self.inserted + rounded_up);
        Ok(())
    }

    /// The definition of max-min fairness on one link: a flow below its cap has at least as high a rate as any other,
    /// and then no capacity is left over, except for the loss from rounding the level down, at most a unit per flow.
    fn assert_fair(&mut self) -> Result<(), TestCaseError> {
        let Self { link, twin, ids, .. } = self;
        let rate = |flow: &Flow| Some((units(link.rate(ids[flow.number])?.0), flow.cap));
        let rates: Vec<(i128, Option<i128>)> = twin.flows.iter().filter_map(rate).collect();
        let total: i128 = rates.iter().map(|(rate, _)| rate).sum();
        let highest = rates.iter().map(|(rate, _)| *rate).max().unwrap_or(0);
        prop_assert!(total <= self.twin.capacity);
        for (rate, cap) in &rates {
            if *cap != Some(*rate) {
                prop_assert!(cap.is_none_or(|cap| *rate < cap));
                prop_assert_eq!(*rate, highest);
                prop_assert!(self.twin.capacity - total < rates.len() as i128);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(crate::scripts(400))]

    #[test]
    fn the_model_and_its_twin_agree_to_the_nanosecond_and_the_byte(
        capacity in rate(),
        script in prop::collection::vec((prop_oneof![0..40u64, 0..600u64], change()), 1..120),
    ) {
        let mut pair = Pair::new(capacity);
        for (gap, change) in script {
            let now = pair.twin.now + gap;
            pair.advance(now)?;
            pair.apply(now, change)?;
            pair.compare()?;
            pair.assert_fair()?;
        }
        pair.apply(pair.twin.now, Change::SetCapacity(1e10))?;
        let end = pair.twin.now + 1_000_000;
        pair.advance(end)?;
        pair.compare()?;
    }
}
