//! Whole federations with costs set by hand.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use haversack_federation::availability::Availability;
use haversack_federation::federation::{Arrived, Federation, Learn, Learned, Round, Rules, Step, TimingOnly};
use haversack_federation::population::{DeviceKind, Population, PopulationSetting, Sizes};
use haversack_federation::quantiles::Quantiles;
use haversack_federation::round::Outcome;
use haversack_federation::rows::ExclusionRow;
use haversack_federation::selection::SelectorKind;
use haversack_federation::work::{Job, LeftOut, Why, Work};

const PHONES: u32 = 400;

fn population() -> Population {
    let devices: Vec<DeviceKind> = (0..5).map(|memory| DeviceKind { id: format!("class {memory}"), memory }).collect();
    Population::draw(1, PHONES, &PopulationSetting::embedded().unwrap(), &devices, Sizes::Same(20)).unwrap()
}

/// No plan fits phones of the smallest memory class; the others train for a second over their speed. If the second
/// field is above one, then of that many phones one never finishes and one is killed.
struct Told<'p>(&'p Population, u32);

impl Work for Told<'_> {
    fn holds(&self, phone: u32) -> Result<(), LeftOut> {
        let left_out = || LeftOut { why: Why::NoPlan, reason: "4 GB hold no plan".to_owned() };
        if self.0.phones()[phone as usize].memory == 0 { Err(left_out()) } else { Ok(()) }
    }
    fn job(&self, phone: u32, _: u32, _: f64) -> Job {
        let compute_s = if phone % self.1 == 1 { 1e9 } else { self.expected_s(phone) };
        Job {
            budget_bytes: 7,
            plan: 3,
            width: 0,
            down_bytes: 1000,
            up_bytes: 500,
            compute_s,
            energy_j: 2.0,
            killed_after_s: (phone % self.1 == 2).then_some(1.0),
        }
    }
    fn expected_s(&self, phone: u32) -> f64 {
        20.0 / f64::from(self.0.phones()[phone as usize].speed)
    }
    fn batch_s(&self, phone: u32) -> f64 {
        self.expected_s(phone) / 20.0
    }
    fn memory(&self, _: u32) -> f64 {
        1.0
    }
}

fn rules(selector: SelectorKind) -> Rules {
    Rules { over_commit: 1.3, ..Rules::new(selector, 20) }
}

/// Sessions of `ready` seconds, `between` seconds apart.
fn availability(ready: f64, between: f64) -> Availability {
    let length = |length| Quantiles::new(vec![0.0, 1.0], vec![length, length]).unwrap();
    Availability::new(5, PHONES as usize, length(ready), length(between))
}

fn run(rules: Rules, availability: Availability, rounds: usize) -> Vec<Round> {
    let population = population();
    let work = Told(&population, 1);
    let mut federation = Federation::new(9, rules, &population, availability, &work).unwrap();
    (0..rounds).map(|_| federation.round(&mut TimingOnly).unwrap()).collect()
}

#[test]
fn rounds_follow_one_another_and_every_phone_is_accounted_for() {
    for selector in SelectorKind::ALL {
        let rounds = run(rules(selector), availability(3600.0, 3600.0), 30);
        let mut now = 0.0;
        for (number, round) in (1..).zip(&rounds) {
            let row = round.row;
            assert_eq!((row.round, row.start_s), (number, now), "{}", selector.name());
            assert_eq!((row.selected, row.completed), (26, 20));
            assert_eq!(row.selected, row.completed + row.dropped + row.killed + row.timed_out);
            assert_eq!((row.up_bytes, round.clients.len()), (20 * 500, 26));
            // No phone of the smallest class takes part.
            assert!(round.clients.iter().all(|client| client.memory_class > 0 && client.plan == 3));
            // The slowest phone that counts ends the round.
            let ends = |client: &&haversack_federation::rows::ClientRow| client.outcome == Outcome::Completed;
            let times = round.clients.iter().filter(ends).map(|client| client.down_s + client.compute_s + client.up_s);
            assert_eq!(times.fold(0.0, f64::max), row.duration_s);
            assert!(row.energy_j > 20.0 * 2.0 && row.energy_j < 26.0 * 2.0);
            now += row.duration_s;
        }
        assert_eq!(rounds, run(rules(selector), availability(3600.0, 3600.0), 30), "{}", selector.name());
    }
}

#[test]
fn phones_that_hold_no_plan_are_named_once_and_an_oracle_takes_them() {
    let count = |rounds: &[Round]| {
        let mut named: Vec<u32> = rounds.iter().flat_map(|round| &round.exclusions).map(|row| row.client).collect();
        let all = named.len();
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), all);
        all
    };
    let few = population().phones().iter().filter(|phone| phone.memory == 0).count();
    // FedHybrid considers every phone that is ready.
    let always = || availability(1e6, 1.0);
    let rounds = run(rules(SelectorKind::Fedhybrid), always(), 3);
    assert_eq!(count(&rounds), few);
    assert_eq!((rounds[0].exclusions[0].round, rounds[0].exclusions[0].reason.as_str()), (1, "4 GB hold no plan"));
    let oracle = run(Rules { oracle: true, ..rules(SelectorKind::Fedhybrid) }, always(), 3);
    assert_eq!(count(&oracle), 0);
    let all = Rules { cohort: PHONES, over_commit: 1.0, ..rules(SelectorKind::Random) };
    assert_eq!(run(all, always(), 1)[0].row.selected as usize, PHONES as usize - few);
    assert_eq!(run(Rules { oracle: true, ..all }, always(), 1)[0].row.selected, PHONES);
}

#[test]
fn a_deadline_ends_rounds_that_would_not_end() {
    let slow = Rules { deadline_s: Some(18.0), ..rules(SelectorKind::Random) };
    let row = run(slow, availability(1e6, 1.0), 1)[0].row;
    assert!(row.duration_s <= 18.0 && row.timed_out > 6 && row.completed < 20, "{row:?}");
}

#[test]
fn no_phone_fails_twenty_rounds_on_end() {
    let population = population();
    let learners =
        [SelectorKind::OortPaper, SelectorKind::OortFedscale, SelectorKind::Fedhybrid, SelectorKind::FedhybridSampled];
    for (selector, of) in learners.into_iter().flat_map(|selector| [(selector, 8), (selector, 80)]) {
        let work = Told(&population, of);
        // Sessions of a minute end before endless work does, unless the round ends first.
        let (mut failed, mut outcomes) = (vec![0; PHONES as usize], HashSet::<&str>::new());
        let mut federation = Federation::new(9, rules(selector), &population, availability(60.0, 60.0), &work).unwrap();
        for round in 1..=300 {
            for client in federation.round(&mut TimingOnly).unwrap().clients {
                let failed = &mut failed[client.client as usize];
                *failed = if client.outcome == Outcome::Completed { 0 } else { *failed + 1 };
                outcomes.insert(client.outcome.into());
                assert!(*failed < 20, "{} in round {round}: {client:?}", selector.name());
            }
        }
        assert_eq!(outcomes.len(), 4, "{outcomes:?}");
    }
}

#[test]
fn sessions_that_are_too_short_drop_phones() {
    let row = run(rules(SelectorKind::Random), availability(15.0, 15.0), 1)[0].row;
    assert!(row.dropped > 10 && row.completed + row.dropped + row.timed_out == row.selected, "{row:?}");
}

#[test]
fn a_server_waits_for_phones_and_gives_a_round_up_after_a_day() {
    // Ready for one second in every ten days: most of the time, no phone is.
    let rounds = run(rules(SelectorKind::Random), availability(1.0, 864_000.0), 2);
    for round in rounds {
        let row = round.row;
        assert!(row.selected <= 1 && row.duration_s <= 86_400.0, "{row:?}");
    }
}

#[test]
fn rules_that_contradict_the_population_are_refused() {
    let population = population();
    let work = Told(&population, 1);
    let refused = |rules| match Federation::new(1, rules, &population, availability(1.0, 1.0), &work) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    let random = rules(SelectorKind::Random);
    let expected = "`cohort` is 401, expected from 1 to the 400 phones of the population";
    assert_eq!(refused(Rules { cohort: 401, ..random }), expected);
    assert!(refused(Rules { cohort: 0, ..random }).starts_with("`cohort` is 0"));
    assert_eq!(refused(Rules { over_commit: 0.5, ..random }), "`over_commit` is 0.5, expected a number from 1");
    assert!(refused(Rules { deadline_s: Some(0.0), ..random }).starts_with("`deadline_s` is 0"));
}

#[test]
fn losses_reach_the_selector_and_a_learner_can_stop_a_federation() {
    struct Teacher(Vec<u32>);
    impl Learn for Teacher {
        fn learn(&mut self, step: &Step<'_>) -> Result<Learned, String> {
            if step.round == 40 {
                return Err("diverged".to_owned());
            }
            self.0.extend(step.arrived.iter().map(|arrived| arrived.phone));
            // The first hundred phones have little left to learn.
            let loss = |arrived: &Arrived| if arrived.phone < 100 { 0.01 } else { 5.0 };
            Ok(Learned { losses: step.arrived.iter().map(loss).collect(), accuracy: Some(f64::from(step.round)) })
        }
    }
    let population = population();
    let work = Told(&population, 1);
    let mut federation =
        Federation::new(9, rules(SelectorKind::Fedhybrid), &population, availability(1e6, 1.0), &work).unwrap();
    let mut teacher = Teacher(Vec::new());
    let rounds: Vec<Round> = (0..39).map(|_| federation.round(&mut teacher).unwrap()).collect();
    assert_eq!(rounds[4].row.accuracy, Some(5.0));
    assert_eq!(federation.round(&mut teacher), Err("diverged".to_owned()));
    let late = &teacher.0[teacher.0.len() - 200..];
    let dull = late.iter().filter(|&&phone| phone < 100).count();
    // A quarter of the phones, of which only the explored ones take part.
    assert!(dull < 15, "{dull} of 200");
}

#[test]
fn phones_without_samples_are_left_out() {
    let population = Population::draw(
        1,
        50,
        &PopulationSetting::embedded().unwrap(),
        &(0..5).map(|memory| DeviceKind { id: format!("class {memory}"), memory }).collect::<Vec<_>>(),
        Sizes::Same(0),
    )
    .unwrap();
    let work = Told(&population, 1);
    let oracle = Rules { oracle: true, ..rules(SelectorKind::Fedhybrid) };
    let mut federation = Federation::new(9, oracle, &population, availability(1e6, 1.0), &work).unwrap();
    let round = federation.round(&mut TimingOnly).unwrap();
    assert_eq!((round.row.selected, round.exclusions.len()), (0, 50));
    let without = |row: &ExclusionRow| row.why == Why::NoSamples && row.reason == "it holds no samples";
    assert!(round.exclusions.iter().all(without));
}
