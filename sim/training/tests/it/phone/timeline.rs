//! The phone around a run in its timeline.

use haversack_devices::units::{Bytes, Nanos};
use haversack_training::phone::Phone;
use haversack_training::{Job, Observe, Record, simulate};
use haversack_workloads::TrainingGraph;
use serde_json::Value;

use super::{on, with_even_flash, with_games};
use crate::support::phones::{app, layer, ms};
use crate::support::{Script, phone_cpu};

fn run(phone: &Phone, graph: &TrainingGraph, iterations: u32, timeline: bool) -> Record {
    let job = Job { observe: Observe { timeline, ..Observe::default() }, ..on(phone, graph, iterations) };
    simulate(&phone_cpu(), &job, &mut Script::default()).unwrap()
}

/// The events of `record`'s timeline with this name, read back from JSON.
fn events(record: &Record, graph: &TrainingGraph, name: &str) -> Vec<Value> {
    let text = record.timeline.as_ref().unwrap().to_chrome_json(graph).to_string();
    let read: Value = serde_json::from_str(&text).unwrap();
    let all = read["traceEvents"].as_array().unwrap().clone();
    assert!(all.iter().all(|event| event["ph"] == "M" || event["ts"].as_f64().is_some_and(|at| at >= 0.0)));
    all.into_iter().filter(|event| event["name"] == name).collect()
}

#[test]
fn a_kill_is_an_instant_with_its_reason() {
    let graph = layer();
    // The game comes 30 ms after the start, in the second iteration, which is the last; the trainer is ended then.
    let record = run(&with_games(&[ms(30)]), &graph, 2, true);
    let kill = &record.phone.as_ref().unwrap().kills[0].kill;
    let shown = events(&record, &graph, "trainer killed");
    let [event] = &shown[..] else { panic!("{shown:?}") };
    let at = (kill.at - record.iterations[0]).0 as f64 * 1e-3;
    assert_eq!((event["ph"].as_str(), event["ts"].as_f64()), (Some("i"), Some(at)));
    assert_eq!(
        (event["args"]["reason"].as_str(), event["args"]["adj"].as_i64()),
        (Some(kill.reason.name()), Some(200))
    );
}

#[test]
fn counters_and_stalls_add_up_to_what_the_phone_reports() {
    let graph = layer();
    // A game of 6 MiB is in front, and half of both is on flash most of the time.
    let phone = Phone { apps: vec![app(Nanos::ZERO, "game", 0, 6)], ..with_even_flash(20) };
    let record = run(&phone, &graph, 3, true);
    let seen = record.phone.as_ref().unwrap().iteration;
    assert!(seen.counters.pgmajfault > 0 && seen.trainer.count > 0);
    let faults = events(&record, &graph, "vmstat pgmajfault");
    let count = |event: &Value| event["args"]["count"].as_u64();
    assert!(faults.iter().all(|event| event["ph"] == "C"));
    assert_eq!((count(&faults[0]), count(faults.last().unwrap())), (Some(0), Some(seen.counters.pgmajfault)));
    let stalls = events(&record, &graph, "stall of the trainer");
    let total: f64 = stalls.iter().map(|event| event["dur"].as_f64().unwrap()).sum();
    assert_eq!(stalls.len() as u64, seen.trainer.count);
    assert!((total - seen.trainer.total.0 as f64 * 1e-3).abs() < 1e-3 * stalls.len() as f64, "{total}");
    // PSI is a share of the time until the next sample: weighted by that time, it sums to all stalled time.
    let track = record.timeline.as_ref().unwrap().phone.as_ref().unwrap();
    let spans = track.samples.windows(2).map(|pair| pair[1].at - pair[0].at).filter(|span| *span > Nanos::ZERO);
    let shares = events(&record, &graph, "PSI memory");
    let some: f64 =
        spans.zip(&shares).map(|(span, event)| span.seconds() * event["args"]["some_percent"].as_f64().unwrap()).sum();
    assert!((some / 100.0 - seen.pressure.some.seconds()).abs() < 1e-9, "{some}");
    assert_eq!(Some(&track.samples.last().unwrap().at), record.iterations.last());
    assert!(track.samples.iter().all(|sample| sample.unavailable > Bytes::ZERO));
    // Recording changes nothing.
    let unseen = run(&phone, &graph, 3, false);
    assert_eq!((unseen.iterations, unseen.phone), (record.iterations, record.phone));
}
