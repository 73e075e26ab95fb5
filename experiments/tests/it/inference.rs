//! Inference: which operators engines fold, how threads scale, and how close ncnn is to its users' measurements.

use haversack::cache::Cache;
use haversack::calibrate::find;
use haversack::calibrate::fit::Problem;
use haversack::run::Plan;
use haversack::scenario::Scenario;
use haversack_devices::work::Precision;
use haversack_training::Machine;
use haversack_workloads::training_graph::LayerKind;

use crate::support::{call, refusal};

/// One picture in half precision on `cores` of `device`.
fn plan(device: &str, stack: &str, model: &str, cores: &str) -> Plan {
    let mut scenario = Scenario::new(device, model);
    (scenario.stack, scenario.cores) = (Some(stack.to_owned()), Some(cores.parse().unwrap()));
    (scenario.precision, scenario.batch, scenario.inference) = (Precision::Fp16, 1, true);
    Plan::new(&scenario, &Cache::new()).unwrap()
}

#[test]
fn batch_normalisation_is_folded_by_inference_engines_and_not_by_pytorch() {
    let norms = |device, stack| {
        let plan = plan(device, stack, "mobilenetv2", "big:1");
        let products = plan.graph.nodes.iter().filter(|node| node.work.is_product()).count();
        assert_eq!(products, 53, "{stack}");
        plan.graph.nodes.iter().filter(|node| node.layer == LayerKind::Norm).count()
    };
    for stack in ["ncnn", "mnn", "mnn-2", "tflite"] {
        assert_eq!(norms("galaxy-s22", stack), 0, "{stack}");
    }
    assert_eq!(norms("server-core", "pytorch-cpu"), 52);
}

#[test]
fn a_session_is_prepared_once_and_inference_does_not_pay_for_it_again() {
    for (stack, preparation) in
        [("mnn", "cpu.preparation_work"), ("mnn-2", "cpu.preparation_work"), ("tflite", "cpu.preparation")]
    {
        let found = plan("galaxy-s22", stack, "mobilenetv2", "big:1");
        // In a session, each operator costs only its dispatch besides its work.
        let dispatch = found.machine().stack.cpu().unwrap().operator_overhead.value;
        let launches = (0..found.graph.nodes.len()).filter(|&id| found.graph.nodes[id].work.launches > 0);
        for id in launches {
            assert_eq!(found.machine().cost(&found.graph, id, 1, Precision::Fp16).launch, dispatch, "{stack}");
        }
        // The preparation of a session and the first touch of memory are free, however large their constants are.
        let mut dear = found.machine().stack.clone();
        dear.set(preparation, 1e6).unwrap();
        dear.set("cpu.first_touch", 1e6).unwrap();
        let again = found.machine().under(found.machine().device.clone(), dear.clone()).unwrap();
        let time = |machine: &Machine| machine.unbounded_time(&found.graph, 1, Precision::Fp16);
        assert_eq!(time(&again), time(found.machine()), "{stack}");
        // A batch of training pays for each of them.
        let mut scenario = Scenario::new("galaxy-s22", "mobilenetv2");
        (scenario.stack, scenario.cores, scenario.batch) = (Some(stack.to_owned()), Some("big:1".parse().unwrap()), 1);
        let training = Plan::new(&scenario, &Cache::new()).unwrap();
        let paid = |name| {
            let mut free = training.machine().stack.clone();
            free.set(name, 0.0).unwrap();
            let machine = training.machine().under(training.machine().device.clone(), free).unwrap();
            let time = |machine: &Machine| machine.unbounded_time(&training.graph, 1, Precision::Fp32);
            time(training.machine()) > time(&machine)
        };
        assert!(paid(preparation) && paid("cpu.first_touch"), "{stack}");
    }
}

#[test]
fn ncnn_trains_nothing_and_says_so() {
    let message = refusal(&call("simulate --device galaxy-s22 --stack ncnn --model lenet5"), 2);
    assert!(message.starts_with("error: --stack: ") && message.contains("--inference"), "{message}");
    assert!(message.contains("mnn"), "{message}");
    let of_graph = refusal(&call("simulate --device galaxy-s22 --stack ncnn --model lenet5 --inference --graph sr"), 2);
    assert!(of_graph.contains("--graph"), "{of_graph}");
}

#[test]
fn threads_scale_with_large_products_and_less_with_many_small_operators() {
    let speed_up = |model| {
        let of = |cores| plan("jetson-agx-orin-64gb", "ncnn", model, cores).unbounded_time().seconds();
        let one = of("big:1");
        ["big:2", "big:4", "big:12"].map(|cores| one / of(cores))
    };
    let (large, small) = (speed_up("vgg16"), speed_up("shufflenetv2"));
    for speed_up in [large, small] {
        assert!(1.0 < speed_up[0] && speed_up[0] < speed_up[1] && speed_up[1] < speed_up[2], "{speed_up:?}");
        assert!(speed_up.iter().zip([2.0, 4.0, 12.0]).all(|(found, ideal)| *found < ideal), "{speed_up:?}");
    }
    assert!(large.iter().zip(small).all(|(large, small)| *large > small), "{large:?} and {small:?}");
    assert!(large[1] > 3.0, "{large:?}");
    // Four cores of a phone need more bandwidth than its DRAM has.
    let of = |cores| plan("snapdragon-855-plus", "ncnn", "vgg16", cores).unbounded_time().seconds();
    assert!(of("big:1") / of("big:4") < large[1], "{}", of("big:1") / of("big:4"));
}

#[test]
fn ncnn_is_near_to_what_its_users_measured() {
    let calibration = find("jetson-agx-orin-64gb", Some("ncnn")).unwrap().remove(0);
    assert_eq!(find("snapdragon-855-plus", Some("ncnn")).unwrap(), std::slice::from_ref(&calibration));
    let problem = Problem::new(&calibration).unwrap();
    let values: Vec<f64> = problem.present().unwrap().into_iter().map(|(value, _)| value).collect();
    let simulated = problem.simulated(&values).unwrap();
    assert_eq!(simulated.len(), 30);
    let errors = problem.observations.iter().zip(simulated).map(|(row, found)| (found / row.observed - 1.0).abs());
    let errors: Vec<f64> = errors.collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(mean <= 0.10, "{mean}");
    assert!(errors.iter().all(|error| *error <= 0.30), "{errors:?}");
}
