//! The step of a server that buffers updates (FedBuff: Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation",
//! AISTATS 2022): as many phones as may be are at work at any time, and whoever ends makes room for another.

use std::cmp::Ordering;

use super::rules::Buffer;
use super::view::Holds;
use super::{Done, Federation, Finished, LOOKS, PAUSE};
use crate::round::{Outcome, Part, alone};

/// A phone at work. The first to end is the greatest, and of those that end at once the one that began first.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderWay {
    ends_s: f64,
    part: Part,
    pub(super) since: u32,
    turn: u32,
}

impl Ord for UnderWay {
    fn cmp(&self, other: &Self) -> Ordering {
        other.ends_s.total_cmp(&self.ends_s).then(other.turn.cmp(&self.turn))
    }
}

impl PartialOrd for UnderWay {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for UnderWay {}

impl Federation<'_> {
    /// Lets time pass until as many updates as the cohort have come. Where places are left, the server looks for phones every
    /// minute; where nobody has been at work for a day, the step takes in what it has.
    pub(super) fn step(&mut self, round: u32, buffer: Buffer) -> Done {
        let (start_s, places) = (self.now, buffer.concurrency as usize);
        let (mut exclusions, mut finished) = (Vec::new(), Vec::new());
        let (mut arrived, mut looks) = (0, 0);
        while arrived < self.rules.cohort && looks < LOOKS {
            let free = places - self.under_way.len();
            if free > 0 {
                let selected = self.select(round, free, &mut exclusions);
                selected.into_iter().for_each(|phone| self.begin(phone));
            }
            let patience = if self.under_way.len() < places { self.now + PAUSE } else { f64::INFINITY };
            match self.under_way.peek().copied() {
                Some(next) if next.ends_s <= patience => {
                    self.under_way.pop();
                    let ended = self.end(next, buffer);
                    arrived += u32::from(ended.part.outcome == Outcome::Completed);
                    finished.push(ended);
                }
                next => {
                    self.now = patience;
                    looks = if next.is_some() { 0 } else { looks + 1 };
                }
            }
        }
        Done { duration_s: self.now - start_s, finished, exclusions }
    }

    fn begin(&mut self, phone: u32) {
        let turn = self.begun + 1;
        let Some(starter) = self.starter(phone, turn) else { return };
        let part = alone(&starter);
        self.begun = turn;
        self.holds[phone as usize] = Holds::AtWork;
        self.under_way.push(UnderWay { ends_s: self.now + part.ended_s, part, since: self.rounds, turn });
    }

    fn end(&mut self, UnderWay { ends_s, mut part, since, turn }: UnderWay, buffer: Buffer) -> Finished {
        self.now = self.now.max(ends_s);
        self.holds[part.phone as usize] = Holds::Plan;
        let is_old = buffer.max_staleness.is_some_and(|most| self.rounds - since > most);
        if is_old && part.outcome == Outcome::Completed {
            part.outcome = Outcome::TimedOut;
        }
        Finished { part, since, turn }
    }
}
