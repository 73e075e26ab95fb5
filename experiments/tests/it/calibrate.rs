//! `calibrate`: its results, its messages, and that it finds the shipped constants.

use std::sync::LazyLock;

use haversack::calibrate::fit::Problem;
use haversack::calibrate::observation::{Calibration, Constant, Observations, Prior, all};
use haversack::calibrate::observation::{Measure, Part};
use haversack::calibrate::report::{Report, Residual};
use haversack::calibrate::{calibrate, find};
use haversack_devices::calibration::Kind;
use haversack_devices::{fitted_constants, load, load_stack, load_system};

use crate::support::{call, json, refusal, stdout};

/// A fit of `server-core`, and the leave-one-out error of each row.
static REPORT: LazyLock<Report> = LazyLock::new(|| calibrate(&server_core(), 0, true, || ()).unwrap());

fn server_core() -> Calibration {
    find("server-core", None).unwrap().remove(0)
}

fn shipped(calibration: &Calibration) -> (Problem, Vec<f64>) {
    let problem = Problem::new(calibration).unwrap();
    let values = problem.present().unwrap().into_iter().map(|(value, _)| value).collect();
    (problem, values)
}

#[test]
fn the_shipped_constants_are_the_ones_that_fit() {
    // Rows that are simulated batch by batch take minutes.
    for calibration in all().unwrap().into_iter().filter(|calibration| !calibration.simulated) {
        let (mut problem, present) = shipped(&calibration);
        // Only from the shipped constants: another test, for one device, checks that other starts lead to them.
        problem.other_starts = 0;
        let [before, after] =
            [present, problem.fit(0, || ()).unwrap().values].map(|values| problem.objective(&values).unwrap());
        assert!(after <= before && after >= 0.98 * before, "{}: {before} to {after}", calibration.device);
    }
}

#[test]
fn server_core_stays_as_near_to_pytorch_as_it_was_measured() {
    let report = &*REPORT;
    assert_eq!(report.rows.len(), 16);
    // Measured with these constants: median 6.1 %, worst 17.9 %; two points of room.
    let (median, worst) = report.errors_before();
    assert!(median <= 0.081 && worst <= 0.199, "median {median}, worst {worst}");
    assert!(report.constants.iter().all(|constant| constant.is_identified), "{:?}", report.constants);
}

#[test]
fn other_starts_and_other_seeds_lead_to_the_same_optimum() {
    // The seed only changes where the search starts.
    let other = calibrate(&server_core(), 1, false, || ()).unwrap();
    let objectives = [REPORT.objective[1], other.objective[1]];
    assert!((objectives[0] / objectives[1] - 1.0).abs() < 0.01, "{objectives:?}");
    assert_eq!(other.errors_left_out(), None);
}

#[test]
fn what_is_left_out_is_further_away_than_what_is_fitted() {
    let report = &*REPORT;
    let ((median, _), (left_out, _)) = (report.errors(), report.errors_left_out().unwrap());
    // Measured: 6.1 % and 12.0 %. A row influences the constants that it is compared with, unless it is left out.
    assert!(left_out > 1.5 * median && left_out < 0.15, "{median} and {left_out}");
    let squares =
        |error: fn(&Residual) -> f64| report.rows.iter().map(error).map(|error| error.ln_1p().powi(2)).sum::<f64>();
    assert!(squares(|row| row.error_left_out().unwrap()) > squares(Residual::error));
    // Only LeNet-5 separates the cost of an operator from that of its arithmetic.
    let of = |id: &str| report.rows.iter().find(|row| row.id == id).unwrap();
    assert!(of("lenet5/backward_s").error_left_out().unwrap() > 2.0 * of("lenet5/backward_s").error());
}

#[test]
fn a_constant_that_the_rows_do_not_decide_goes_back_to_its_prior() {
    // Energies are above the idle device, so a CPU has no part in the power that the rest of the chip draws for a GPU.
    let mut energies = find("xiaomi-11-pro", Some("mnn")).unwrap().remove(1);
    let [curve, _] = &energies.constants[..] else { panic!("{:?}", energies.constants) };
    let rest = Constant { name: "power.rest_of_soc".to_owned(), lower: 0.02, upper: 2.0, ..curve.clone() };
    energies.constants.push(Constant { prior: Prior { value: 0.3, why: "a round guess".to_owned() }, ..rest });
    let report = calibrate(&energies, 0, false, || ()).unwrap();
    let [curve, _, rest] = &report.constants[..] else { panic!("{:?}", report.constants) };
    assert!(curve.is_identified && !rest.is_identified, "{:?}", report.constants);
    assert_eq!((rest.name.as_str(), rest.after), ("power.rest_of_soc", 0.3));
}

#[test]
fn floors_of_frequency_are_found_among_operating_points() {
    let times = find("xiaomi-11-pro", Some("mnn")).unwrap().remove(0);
    let (mut problem, mut truth) = shipped(&times);
    let floors: Vec<usize> =
        (0..truth.len()).filter(|&at| times.constants[at].name.ends_with("frequency_lowest")).collect();
    assert_eq!(floors.len(), 3);
    // Rows as other constants would give them, some steps away on either side.
    let elsewhere = [1420.8, 960.0, 1094.4];
    for (&at, point) in floors.iter().zip(elsewhere) {
        truth[at] = point;
    }
    for (row, seconds) in problem.simulated(&truth).unwrap().into_iter().enumerate() {
        problem.observations[row].observed = seconds;
    }
    let found = problem.fit(0, || ()).unwrap().values;
    for (&at, point) in floors.iter().zip(elsewhere) {
        // Up to the rounding of a unit.
        assert!((found[at] / point - 1.0).abs() < 1e-9, "{} for {point}", found[at]);
    }
}

#[test]
fn a_constant_that_is_moved_away_is_found_again() {
    // Rows made from other constants than the shipped ones: the optimum is zero, at those constants.
    let calibration = server_core();
    let (mut problem, shipped) = shipped(&calibration);
    let truth: Vec<f64> = shipped.iter().enumerate().map(|(i, value)| value * [1.2, 0.8][i % 2]).collect();
    for (row, seconds) in problem.simulated(&truth).unwrap().into_iter().enumerate() {
        problem.observations[row].observed = seconds;
    }
    problem.other_starts = 0;
    let found = problem.fit(0, || ()).unwrap().values;
    for (found, truth) in found.iter().zip(&truth) {
        assert!((found / truth - 1.0).abs() < 0.02, "{found} for {truth}");
    }
}

#[test]
fn a_sum_of_costs_is_what_the_executor_takes() {
    for calibration in all().unwrap() {
        let (problem, values) = shipped(&calibration);
        let simulated = problem.simulated(&values).unwrap();
        for (row, simulated) in problem.observations.iter().zip(simulated) {
            // BERT-base would run for long and shows no more than BERT-small.
            if row.id.starts_with("bert_base") {
                continue;
            }
            let Measure::Time(part, plan) = &row.measure else { continue };
            let record = plan.run().unwrap();
            let executed = match part {
                Part::Forward => record.forward,
                Part::Backward => record.backward,
                Part::Iteration => record.iteration,
                Part::Packing => record.breakdown.packing + record.breakdown.paging,
                Part::BesidePacking => record.iteration - record.breakdown.packing - record.breakdown.paging,
            };
            // Each operator's time is rounded to a nanosecond, in both.
            assert!((simulated / executed.seconds() - 1.0).abs() < 1e-4, "{}: {simulated} {executed}", row.id);
        }
    }
}

/// The source texts that mark constants, in the calibrations, as fitted to these observations.
fn sources(observations: Observations) -> Vec<&'static str> {
    match observations {
        Observations::MandhelingOperators => vec!["mandheling-table3", "mandheling-table4", "mandheling-section3.3"],
        Observations::MandhelingCpu => vec!["mandheling-table7-cpu", "mandheling-section3.6"],
        Observations::MandhelingCpuEnergy => vec!["mandheling-table7-cpu-energy"],
        Observations::MandhelingDsp => vec!["mandheling-table7-dsp"],
        Observations::MandhelingDspEnergy => vec!["mandheling-table7-dsp-energy"],
        Observations::MandhelingSteps => vec!["mandheling-figure10"],
        other => vec![other.name()],
    }
}

#[test]
fn exactly_the_constants_that_the_files_call_fitted_are_fitted() {
    // Some of the GPU's constants are fitted by hand, as their notes say.
    for calibration in all().unwrap().into_iter().filter(|known| known.observations != Observations::GpuSteps) {
        let (device, stack) = (load(&calibration.device).unwrap(), load_stack(&calibration.stack).unwrap());
        let mut fitted = fitted_constants(&device, &stack);
        if let Some(system) = &calibration.system {
            let of_system = load_system(system).unwrap().entries();
            fitted.extend(of_system.into_iter().filter(|entry| entry.kind == Kind::Fitted));
        }
        let of_these = |source: &str| sources(calibration.observations).contains(&source);
        let mut marked: Vec<&str> =
            fitted.iter().filter(|entry| of_these(&entry.source)).map(|entry| entry.name.as_str()).collect();
        // A constant that the rows do not determine stays at its prior, and is not marked as fitted.
        let (problem, values) = shipped(&calibration);
        let found = calibration.constants.iter().zip(values);
        let (at_prior, fits): (Vec<_>, Vec<_>) = found.partition(|(constant, value)| *value == constant.prior.value);
        for (constant, _) in at_prior {
            assert!(!fitted.iter().any(|entry| entry.name == constant.name && of_these(&entry.source)), "{constant:?}");
        }
        let mut declared: Vec<&str> = fits.iter().map(|(constant, _)| constant.name.as_str()).collect();
        marked.sort_unstable();
        declared.sort_unstable();
        assert_eq!(marked, declared, "{} under {}", calibration.device, calibration.stack);
        assert!(2 * declared.len() <= problem.observations.len());
    }
}

#[test]
fn the_timings_are_those_of_the_ground_truth() {
    // The copy that the workloads are tested against, with PyTorch's names: forward and backward of the same run.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../workloads/tests/data/counts.csv");
    let mut truth: Vec<f64> = Vec::new();
    let mut reader = csv::Reader::from_path(path).unwrap();
    let headers = reader.headers().unwrap().clone();
    let column = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let (forward, backward) = (column("m_fwd_cpu_s"), column("m_bwd_cpu_s"));
    for record in reader.records().map(Result::unwrap).filter(|record| !record[forward].is_empty()) {
        truth.extend([record[forward].parse::<f64>().unwrap(), record[backward].parse::<f64>().unwrap()]);
    }
    let rows = Problem::new(&server_core()).unwrap().observations;
    assert_eq!(rows.iter().map(|row| row.observed).collect::<Vec<_>>(), truth);
}

#[test]
fn only_rows_that_may_be_fitted_are() {
    let problem = Problem::new(&find("galaxy-s10", Some("sage-opencl")).unwrap()[0]).unwrap();
    assert_eq!(problem.observations.len(), 9);
    // Table 1 withholds three latencies of DenseNet-121 and three of MobileNetV2.
    let of = |model: &str| problem.observations.iter().filter(|row| row.id.contains(model)).count();
    assert_eq!([of("resnet50"), of("densenet121"), of("mobilenetv2"), of("bert-small")], [4, 1, 1, 3]);
}

#[test]
fn fedhybrids_constants_are_near_their_best() {
    // Three rows of two phones. A tenth less is worse, and half of the share that is left to all does not help: the
    // rows hardly determine this constant.
    let of_system = find("galaxy-s22", Some("mnn-2")).unwrap().remove(0);
    assert_eq!((of_system.system.as_deref(), of_system.simulated), (Some("android-testbed"), true));
    let (problem, values) = shipped(&of_system);
    assert_eq!(problem.observations.len(), 3);
    let here = problem.objective(&values).unwrap();
    assert!(here < 0.25, "{here}");
    for (value, times) in [(values[0] * 0.9, 1.1), ((values[0] + 1.0) / 2.0, 1.0)] {
        let there = problem.objective(&[value]).unwrap();
        assert!(there > times * here, "{value}: {there}, and {here} as shipped");
    }
}

#[test]
fn the_program_prints_the_same_bytes_twice() {
    let (first, second) = (call("calibrate fit server-core"), call("calibrate fit server-core"));
    assert_eq!(first.status.code(), Some(0));
    assert!(first.stdout == second.stdout && first.stderr.is_empty());
    let text = stdout(&first);
    assert!(text.contains("cpu.operator_overhead") && text.contains("bert_base_s128_cls/backward_s"), "{text}");
    let report = json(&call("calibrate fit server-core --format json"));
    assert_eq!(report["constants"].as_array().unwrap().len(), 6);
    assert_eq!(report["rows"].as_array().unwrap().len(), 16);
    assert_eq!(report["constants"][5]["unit"], "us");
}

#[test]
fn what_cannot_be_calibrated_is_refused_with_what_can() {
    let can = "only server-core under pytorch-cpu, galaxy-s10 under sage-opencl, jetson-agx-xavier under pytorch-cuda, \
               xiaomi-10 under mandheling, xiaomi-11-pro under mnn, xiaomi-11-pro under mandheling, galaxy-s22 under \
               mnn-2, rtx-3090 under pytorch-cuda, jetson-agx-orin-64gb under ncnn, xiaomi-mi9 \
               under mnn or jetson-tx2 under pytorch-cuda-1.6 can be calibrated";
    for (line, also) in [
        ("calibrate fit pixel-6", "nothing was observed of pixel-6"),
        ("calibrate fit server-cor", "did you mean `server-core`?"),
        ("calibrate fit server-core --stack pytorch-cp", "did you mean `pytorch-cpu`?"),
        ("calibrate fit server-core --stack pytorch-cuda", "nothing was observed of server-core under pytorch-cuda"),
    ] {
        let message = refusal(&call(line), 2);
        assert!(message.contains(can) && message.contains(also), "{message}");
    }
}
