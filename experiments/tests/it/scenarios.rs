//! Scenario and specification files: their mistakes are found and named, and never cause a panic.

use haversack::cache::Cache;
use haversack::run::Plan;
use haversack::scenario::{Budget, BudgetBytes, Key, Literal, Origin, Resolved, Scenario, app_changes};
use haversack::sweep::Specification;
use haversack_devices::units::{Bytes, Nanos};
use haversack_traces::footprint::FootprintTable;
use haversack_traces::usage::{AppTimeline, UsageModel};
use haversack_training::Wall;
use haversack_training::phone::AppChange;
use proptest::prelude::*;

fn refusal(text: &str) -> String {
    Scenario::with(None, "s.toml", text)
        .and_then(|scenario| scenario.resolve_in(&Cache::new()).map(drop))
        .unwrap_err()
        .to_string()
}

#[test]
fn every_fault_of_a_file_is_named_at_once_in_the_order_of_its_lines() {
    let text = "batch = 0\ndevice = \"galaxy-s99\"\npolcy = \"sage\"\nmemory_budget = \"2s\"\n[set]\norder = [1]\n";
    let lines = refusal(text);
    let expected = [
        "s.toml: model: missing; expected",
        "s.toml:1: batch: expected a whole number",
        "s.toml:2: device: unknown device `galaxy-s99`",
        "s.toml:3: polcy: unknown key; did you mean 'policy'?",
        "s.toml:4: memory_budget: expected a size",
        "s.toml:6: set.order: expected one value",
    ];
    assert_eq!(lines.lines().count(), expected.len(), "{lines}");
    assert!(lines.lines().zip(expected).all(|(line, start)| line.starts_with(start)), "{lines}");
    // A missing key is not reported if it was mistyped, or has an invalid value.
    assert_eq!(refusal("device = 3\nmodle = \"lenet5\"\n").lines().count(), 2);
    // If all values of a run are valid in form, every unknown name is reported.
    let names = "device = \"galaxy-s99\"\nmodel = \"lennet5\"\npolicy = \"sagee\"\n";
    assert_eq!(refusal(names).lines().count(), 3);
}

#[test]
fn faults_name_file_line_and_field() {
    let start = "device = \"galaxy-s10\"\nmodel = \"lenet5\"\n";
    let cases = [
        (
            "memory_bugdet = \"30%\"\n",
            "s.toml:3: memory_bugdet: unknown key; did you mean 'memory_budget'?; valid keys are",
        ),
        ("optimiser = \"sgd\"\n", "s.toml:3: optimiser: unknown key; did you mean 'optimizer'?"),
        ("\n\nbatch = 0\n", "s.toml:5: batch: expected a whole number of at least 1"),
        (
            "batch = 1.5\n",
            "s.toml:3: batch: expected a whole number of at least 1 and at most 65536, found the number 1.5",
        ),
        ("policy = \"sagee\"\n", "s.toml:3: policy: unknown policy 'sagee'; did you mean 'sage'?"),
        ("policy = true\n", "s.toml:3: policy: expected text"),
        (
            "batch = [8, 16]\n",
            "s.toml:3: batch: expected one value (lists and spans are for `haversack sweep`), found a list",
        ),
        ("memory_budget = -1\n", "s.toml:3: memory_budget: expected a size above zero"),
        ("memory_budget = nan\n", "s.toml:3: memory_budget: expected a size above zero"),
        (
            "precision = \"int8\"\npolicy = \"daf\"\n",
            "s.toml:3: precision: the policy daf stores fp32 tensors its own way; expected fp32 or fp16",
        ),
        (
            "policy = \"sage\"\n[set]\n\nordr = \"half\"\n",
            "s.toml:6: set: policy 'sage' has no parameter 'ordr'; did you mean 'order'?",
        ),
        ("set = \"order\"\n", "s.toml:3: set: expected a table"),
        ("input = \"3x32x32\"\ninput = \"1x28x28\"\n", "s.toml:4: not valid TOML: "),
        (
            "graph = \"orignal\"\n",
            "s.toml:3: graph: expected original, direct, of or sr, found 'orignal'; did you mean 'original'?",
        ),
    ];
    for (text, expected) in cases {
        let found = refusal(&format!("{start}{text}"));
        assert!(found.starts_with(expected), "{text}: {found}");
    }
    assert!(refusal("device = \"galaxy-s10\"\n").starts_with("s.toml: model: missing"));
    assert!(
        refusal("device = \"galxy-s10\"\nmodel = \"lenet5\"\n")
            .starts_with("s.toml:1: device: unknown device `galxy-s10` (did you mean `galaxy-s10`?)")
    );
}

#[test]
fn a_program_needs_no_command_line() {
    let cache = Cache::new();
    let scenario = Scenario {
        policy: "sage".to_owned(),
        memory_budget: Some(Budget::Percent(70.0)),
        batch: 32,
        ..Scenario::new("galaxy-s10", "resnet18-cifar")
    };
    let plan = Plan::new(&scenario, &cache).unwrap();
    let record = plan.run().unwrap();
    assert!(record.peak_memory <= plan.budgets.memory.unwrap());
    // Another run of the same configuration shares its graph.
    let again = Plan::new(&Scenario { memory_budget: None, ..scenario }, &cache).unwrap();
    assert!(std::sync::Arc::ptr_eq(&plan.graph, &again.graph));
    let least = plan.least_memory().unwrap();
    assert!(least > Bytes(1) && least <= record.reserved);
}

#[test]
fn what_a_figure_runs_on_a_phone_in_use_is_a_scenario() {
    let text = |more: &str| {
        let keys = "device = \"galaxy-s22\"\nmodel = \"lenet5\"\nstack = \"mnn-2\"\ncores = \"big:4\"\nseed = 3\n";
        Scenario::with(None, "s.toml", &format!("{keys}{more}")).unwrap()
    };
    let phone = |more: &str| text(more).resolve_in(&Cache::new()).unwrap().phone.unwrap();
    let plain = phone("system = \"android-testbed\"");
    assert_eq!(plain.apps.len(), 0);
    let scored = phone("system = \"android-testbed\"\ntrainer_adj = -800");
    assert_eq!((scored.trainer.adj, plain.trainer.adj), (-800, 200), "200 is the score of what the user perceives");
    // Apps imply an operating system, and are those that the usage model generates with the scenario's seed.
    let used = phone("apps = \"synthetic-0001@68400s+10min\"");
    let (model, table) = (UsageModel::built_in().unwrap(), FootprintTable::built_in().unwrap());
    let (from, length) = (Nanos::from_seconds(68_400.0), Nanos::from_seconds(600.0));
    let apps = app_changes(&AppTimeline::generated(&model, 3, "synthetic-0001", from, length), &table, &model, 3);
    let names = |apps: &[AppChange]| apps.iter().map(|change| (change.at, change.app.clone())).collect::<Vec<_>>();
    assert!(!apps.is_empty());
    assert_eq!(names(&used.apps), names(&apps));
    assert!(text("apps = \"none\"").resolve_in(&Cache::new()).unwrap().phone.is_none());
}

#[test]
fn walls_are_budgets_of_the_run_and_percentages_of_what_original_needs() {
    let plan = |more: &str| {
        let text = format!("device = \"galaxy-s10\"\nmodel = \"lenet5\"\nbatch = 8\npolicy = \"sage\"\n{more}");
        Plan::new(&Scenario::with(None, "s.toml", &text).unwrap(), &Cache::new()).unwrap()
    };
    let whole = plan("memory_budget = \"100%\"\nactivation_budget = \"100%\"").budgets;
    let walls = plan("budget_walls = \"1ms=50%,2ms=1MB,1ms=activations:25%\"").budgets;
    let share = |of: Option<Bytes>, percent: f64| Bytes((of.unwrap().as_f64() * percent / 100.0).ceil() as u64);
    let wall = |milliseconds: u64, memory: Bytes| Wall { at: Nanos(milliseconds * 1_000_000), memory };
    assert_eq!(walls.walls, [wall(1, share(whole.memory, 50.0)), wall(2, Bytes(1_000_000))]);
    assert_eq!(walls.activation_walls, [wall(1, share(whole.activations, 25.0))]);
}

#[test]
fn keys_that_came_later_are_shown_only_if_they_were_given() {
    let names = |text: &str| {
        let text = format!("device = \"galaxy-s10\"\nmodel = \"lenet5\"\n{text}");
        let cells = Scenario::with(None, "s.toml", &text).unwrap().cells(BudgetBytes::default());
        cells.into_iter().map(|(name, _)| name).collect::<Vec<&str>>()
    };
    // 22 keys, and for both budgets the bytes and those of their reference.
    assert_eq!(names("").len(), 26);
    let given =
        names("trainer_adj = 0\napps = \"none\"\nbudget_reference = \"stack-default\"\nbudget_walls = \"1s=50%\"");
    let later: Vec<&&str> = given.iter().filter(|name| !names("").contains(name)).collect();
    assert_eq!(later, [&"trainer_adj", &"apps", &"budget_reference", &"budget_walls"]);
}

#[test]
fn specifications_are_numbered_products() {
    let text = "model = [\"lenet5\", \"resnet8-cifar\"]\ndevice = \"galaxy-s10\"\npolicy = [\"dtr\", \"sage\"]\n\
        memory_budget = { from = \"50%\", to = \"100%\", steps = 3 }\n[set.sage]\norder = [\"half\", \"alternate\"]\n";
    let specification = Specification::parse("s.toml", text).unwrap();
    // Two models, (dtr, sage with half, sage with alternate), three budgets.
    assert_eq!(specification.runs(), 2 * 3 * 3);
    let order = |run: u64| {
        let scenario = specification.scenario(run).unwrap();
        let set: Vec<String> = scenario.set.values().cloned().collect();
        (scenario.model, scenario.policy, set.join(""), scenario.memory_budget.unwrap().to_string())
    };
    let expected = |model: &str, policy: &str, set: &str, budget: &str| {
        (model.to_owned(), policy.to_owned(), set.to_owned(), budget.to_owned())
    };
    assert_eq!(order(0), expected("lenet5", "dtr", "", "50%"));
    assert_eq!(order(1), expected("lenet5", "dtr", "", "75%"));
    assert_eq!(order(3), expected("lenet5", "sage", "half", "50%"));
    assert_eq!(order(8), expected("lenet5", "sage", "alternate", "100%"));
    assert_eq!(order(9), expected("resnet8-cifar", "dtr", "", "50%"));
    let mut combinations = 0;
    let count = |_: &Resolved| {
        combinations += 1;
        Ok(())
    };
    specification.validate(&Cache::new(), count).unwrap();
    assert_eq!(combinations, 6);
}

#[test]
fn faults_of_specifications_name_their_line() {
    let refusal = |text: &str| {
        let text = format!("device = \"galaxy-s10\"\nmodel = \"lenet5\"\n{text}");
        let specification = Specification::parse("s.toml", &text);
        let validated =
            specification.map_err(haversack::CommandError::from).and_then(|s| s.validate(&Cache::new(), |_| Ok(())));
        validated.unwrap_err().to_string()
    };
    let cases = [
        ("batch = []", "s.toml:3: batch: the list is empty"),
        ("batch = [8,\n0]", "s.toml:4: batch: expected a whole number"),
        ("batch = { from = 1, to = 8 }", "s.toml:3: batch: the span has no 'steps'"),
        ("batch = { from = 1, to = 8, stops = 2 }", "s.toml:3: batch.stops: unknown key; did you mean 'steps'?"),
        ("batch = { from = 1, to = 8, steps = 0 }", "s.toml:3: batch.steps: expected a whole number of steps"),
        ("policy = { from = \"a\", to = \"b\", steps = 2 }", "s.toml:3: policy: there is nothing between two values"),
        ("policy = [\"sage\", \"dga\", \"sagee\"]", "s.toml:3: policy: unknown policy 'sagee'"),
        ("policy = [\"dga\", \"sage\"]\nset.order = \"half\"", "s.toml:4: set: policy 'dga' has no parameter 'order'"),
        ("policy = [\"dga\"]\nset.sage.order = \"half\"", "s.toml:4: set: sage.order is a parameter of 'sage'"),
        ("polcy = [\"dga\"]", "s.toml:3: polcy: unknown key; did you mean 'policy'?"),
        (
            "seed = { from = 0, to = 999999, steps = 1000000 }\nbatch = { from = 1, to = 100, steps = 100 }",
            "s.toml: the product is more than",
        ),
    ];
    for (text, expected) in cases {
        let found = refusal(text);
        assert!(found.starts_with(expected), "{text}: {found}");
    }
}

/// Values of every kind, valid and invalid.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "\"galaxy-s10\"",
            "\"lenet5\"",
            "\"30%\"",
            "\"1.5s\"",
            "8",
            "-1",
            "1e400",
            "nan",
            "inf",
            "0x10",
            "true",
            "[]",
            "[1, 2]",
            "[[1]]",
            "{}",
            "{ from = 1, to = 2, steps = 2 }",
            "{ from = \"20%\", to = \"9MB\", steps = 3 }",
            "{ order = \"half\" }",
            "{ sage = { order = [\"half\"] } }",
            "1979-05-27",
            "\"\"",
            "\"big:4\"",
            "\"3x96x96\"",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,16}".prop_map(|text| format!("{text:?}")),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let keys: Vec<&str> =
        Key::ALL.iter().map(|key| key.name()).chain(["set.order", "set.sage.mtp", "devise", "[set]"]).collect();
    prop_oneof![
        9 => (prop::sample::select(keys), value()).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => "[ -~]{0,30}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_document_makes_a_reader_panic(lines in prop::collection::vec(line(), 0..8)) {
        let text = lines.join("\n");
        if let Err(error) = Scenario::with(None, "f.toml", &text) {
            prop_assert!(error.to_string().starts_with("f.toml:"), "{error}");
        }
        if let Ok(specification) = Specification::parse("f.toml", &text) {
            let last = specification.runs().saturating_sub(1);
            let _ = (specification.scenario(0), specification.scenario(last), specification.to_json());
        }
    }

    #[test]
    fn no_flag_makes_a_key_panic(place in 0..Key::ALL.len(), text in "\\PC{0,24}") {
        let key = Key::ALL[place];
        let mut scenario = Scenario::new("galaxy-s10", "lenet5");
        if let Err(error) = scenario.set(key, &Literal::text(text), Origin::Flag) {
            let start = format!("--{}: ", key.flag());
            prop_assert!(error.to_string().starts_with(&start), "{}", error);
        }
    }
}
