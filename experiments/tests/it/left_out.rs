//! Leave-one-out errors: the stored ones belong to today's constants, and the shown ones are the stored ones.

use std::fs;

use haversack::calibrate::fit::Problem;
use haversack::calibrate::left_out::{LeftOut, command, digests, errors, errors_of};
use haversack::calibrate::observation;
use haversack::calibrate::observation::all;
use haversack::papers::left_out::Known;
use haversack::papers::reference::Reference;

use crate::support::{call_in, json, refusal, stderr, stdout};

#[test]
fn what_is_stored_is_not_older_than_the_constants() {
    let errors = errors().unwrap();
    let remarks: Vec<&str> = errors.remarks.iter().map(|(_, remark)| remark.as_str()).collect();
    assert!(remarks.is_empty(), "\n{}\n", remarks.join("\n"));
    let stored = LeftOut::committed().unwrap();
    for calibration in all().unwrap() {
        let found = stored.calibrations.iter().find(|stored| stored.is_of(&calibration)).unwrap();
        assert_eq!(found.command, command(&calibration, 0));
        // At least the device, the stack, the rows and the declaration.
        let digests = digests(&calibration, &Reference::load().unwrap()).unwrap();
        assert!(digests.len() >= 4 && digests.contains_key(&calibration.rows), "{digests:?}");
    }
}

#[test]
fn what_is_stored_is_of_the_rows_and_the_mechanisms_of_today() {
    let stored = LeftOut::committed().unwrap();
    for calibration in all().unwrap() {
        let found = stored.calibrations.iter().find(|stored| stored.is_of(&calibration)).unwrap();
        let again = format!("{}: run `{}`", calibration.title(), command(&calibration, 0));
        let problem = Problem::new(&calibration).unwrap();
        let ids = |rows: &[observation::Observation]| rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>();
        let of_file: Vec<String> = found.rows.iter().map(|row| row.id.clone()).collect();
        assert_eq!(of_file, ids(&problem.observations), "{again}");
        let values: Vec<f64> = problem.present().unwrap().into_iter().map(|(value, _)| value).collect();
        for (row, now) in found.rows.iter().zip(problem.simulated(&values).unwrap()) {
            // Six digits are stored.
            assert!((now / row.shipped - 1.0).abs() < 1e-3, "{again}: {} was {}, and is {now}", row.id, row.shipped);
        }
    }
}

#[test]
fn one_calibration_is_stored_beside_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let of = |rest: &str| {
        call_in(
            folder.path(),
            &format!("calibrate fit galaxy-s10 --stack sage-opencl {rest}").split(' ').collect::<Vec<_>>(),
        )
    };
    let line = "--leave-one-out --store left-out.toml";
    let path = folder.path().join("left-out.toml");
    let committed = LeftOut::committed().unwrap();
    // The entries of server-core stay, and those of this phone are replaced.
    let mut before = LeftOut { calibrations: committed.calibrations[..1].to_vec() };
    let mut old = committed.calibrations.iter().find(|stored| stored.device == "galaxy-s10").unwrap().clone();
    old.version = "0.0.1".into();
    before.put(old).unwrap();
    before.write(&path).unwrap();
    // Calibrations that are no longer declared, and a row of this phone that no longer exists, are not an error.
    let text = fs::read_to_string(&path).unwrap();
    let stale = text.replace("\"server-core\"", "\"server\"").replace("\"pytorch-timings\"", "\"timings\"");
    let (_, gone) = stale.split_once("[[calibration]]").unwrap();
    let gone = gone.split("[[calibration]]").next().unwrap();
    fs::write(&path, format!("{}\n[[calibration]]{gone}", text.replacen("sage/table1/", "sage/table9/", 1))).unwrap();
    let report = of(&format!("{line} --format json"));
    let report = json(&report);
    let after = LeftOut::read(&path, &[]).unwrap();
    let titles: Vec<(&str, &str)> =
        after.calibrations.iter().map(|stored| (stored.device.as_str(), stored.observations.name())).collect();
    assert_eq!(titles, [("server-core", "pytorch-timings"), ("galaxy-s10", "sage-table1")]);
    assert!(after.calibrations[0] == before.calibrations[0] && after.calibrations[1].version != "0.0.1");
    let printed = report["rows"][0]["error_left_out"].as_f64().unwrap();
    assert!((after.calibrations[1].rows[0].error() - printed).abs() < 1e-4, "{printed}");
    let errors = errors_of(&after).unwrap();
    assert_eq!(
        errors.of(&after.calibrations[1].rows[0].id),
        Some(Known::LeftOut(after.calibrations[1].rows[0].error()))
    );
    // An invalid store is reported before the fit begins.
    let nowhere = refusal(&of("--leave-one-out --store nowhere/left-out.toml"), 2);
    assert!(nowhere.contains("--store nowhere/left-out.toml: nowhere is not a folder"), "{nowhere}");
    fs::write(&path, "[[calibrations]]\n").unwrap();
    let other = refusal(&of(line), 2);
    assert!(other.contains("left-out.toml:1: `calibrations`: unknown key (did you mean `calibration`?)"), "{other}");
    let alone = of("--store left-out.toml");
    assert_eq!(alone.status.code(), Some(2));
    assert!(stderr(&alone).contains("--leave-one-out"), "{}", stderr(&alone));
}

#[test]
fn a_reproduction_shows_rows_with_their_error_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let output = call_in(folder.path(), &["reproduce", "daf/table2", "--out", "out"]);
    let text = stdout(&output);
    let stored = LeftOut::committed().unwrap();
    let of_table = stored.calibrations.iter().find(|stored| stored.observations.name() == "daf-table2").unwrap();
    let number = of_table.rows.len();
    assert!(text.contains(&format!("({number} left out)")), "{text}");
    let read = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let page = read("index.html");
    assert_eq!(page.matches("<span class=\"muted\">left out ").count(), number);
    let percent = format!("left out {:+.1}%", of_table.rows[0].error() * 100.0).replace('-', "−");
    assert!(page.contains(&percent), "{percent}");
    let record: serde_json::Value = serde_json::from_str(&read("run.json")).unwrap();
    let fit = &record["summary"][0];
    assert_eq!((fit["role"].as_str(), fit["left_out_numbers"].as_u64()), (Some("fit"), Some(number as u64)));
    // The keys that scripts rely on come from cells.csv and are unchanged.
    assert!(fit["median_error"].as_f64() < fit["median_error_left_out"].as_f64(), "{fit}");
    assert!(record["left_out"]["experiments/left-out.toml"].is_string());
    assert!(read("cells.csv").starts_with("id,simulated,unit,paper,role,error,verdict,null,reason\n"));
}
