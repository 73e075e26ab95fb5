//! Answers of each policy to small hand-made memories, and the registry of policies.

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_memory::pages::ArenaConfig;
use haversack_policies::dtr::Dtr;
use haversack_policies::mandheling::factors::LEAST_HISTORY;
use haversack_policies::ranking::{Ranking, Scored};
use haversack_policies::registry::{self, POLICIES};
use haversack_policies::sage::{Dynamic, Floor, Order};
use haversack_policies::sga::StaticAccumulation;
use haversack_policies::sgc::StaticCheckpointing;
use haversack_policies::{
    Form, Holding, IterationPlan, IterationSummary, MemoryView, NodeTimes, Planner, Policy, PolicyError, Relief,
    Setting, TensorSet, TensorState, Want, fedhybrid,
};
use haversack_replay::Heuristic;
use haversack_workloads::training_graph::{Node, NodeWork, Tensor};
use haversack_workloads::{Extent, NodeId, Phase, Role, TensorId, TrainingGraph};

fn tensor(role: Role) -> Tensor {
    Tensor::new("", Extent::per_sample(4), role)
}

fn node(phase: Phase, inputs: &[TensorId], output: TensorId) -> Node {
    haversack_testing::node("", phase, inputs, &[output], NodeWork::new(OperatorKind::ElementWise))
}

/// Tensor 0 is the samples; node n makes tensor n + 1 in forward from its `inputs`.
fn forward(inputs: &[&[TensorId]]) -> TrainingGraph {
    let mut tensors = vec![tensor(Role::Input)];
    tensors.extend(inputs.iter().map(|_| tensor(Role::Activation)));
    let nodes = inputs.iter().zip(1..).map(|(inputs, output)| node(Phase::Forward, inputs, output)).collect();
    TrainingGraph { name: "by hand".to_owned(), tensors, nodes }
}

fn setting(graph: &TrainingGraph, batch: u64, filling_micro_batch: u64) -> Setting<'_> {
    Setting { filling_micro_batch, ..Setting::plain(graph, batch, NodeTimes::on_demand(Vec::new)) }
}

/// A memory with the bytes and the cost of each tensor; all but the first may be dropped.
struct Memory {
    graph: TrainingGraph,
    tensors: Vec<TensorState>,
    candidates: TensorSet,
    /// Every tensor: any may have changed between two calls.
    all: TensorSet,
    producers: Vec<NodeId>,
}

impl Memory {
    /// Tensors of (bytes, cost, last use), in a chain.
    fn new(of: &[(u64, u64, u64)]) -> Self {
        let inputs: Vec<[TensorId; 1]> = (0..of.len() as u32).map(|id| [id]).collect();
        let graph = forward(&inputs.iter().map(|input| &input[..]).collect::<Vec<_>>());
        let state = |&(bytes, cost, last): &(u64, u64, u64)| TensorState {
            bytes: Bytes(bytes),
            cost: Nanos(cost),
            last_use: Nanos(last),
            next_use: 100,
            form: Form::Whole,
        };
        let mut tensors = vec![TensorState { form: Form::Whole, ..TensorState::default() }];
        tensors.extend(of.iter().map(state));
        let producers = std::iter::once(NodeId::MAX).chain(0..of.len() as u32).collect();
        // A memory without tensors still reports changes for those of an earlier one.
        let all = if of.is_empty() { 0..8 } else { 0..tensors.len() as u32 };
        Self { graph, tensors, candidates: (1..=of.len() as u32).collect(), all: all.collect(), producers }
    }

    /// Current samples, bytes a sample of all that is needed, and the budget; 100 bytes do not depend on the samples.
    fn view(&self, micro_batch: u64, per_sample: u64, budget: u64) -> MemoryView<'_> {
        MemoryView {
            tensors: &self.tensors,
            candidates: &self.candidates,
            changed: &self.all,
            producers: &self.producers,
            micro_batch,
            needed: Extent { fixed: 100, per_sample },
            budget: Bytes(budget),
            now: Nanos(1000),
            ..MemoryView::empty(&self.graph)
        }
    }
}

use Relief::{Rematerialise, ShrinkMicroBatch};

#[test]
fn the_lowest_score_goes_first_and_the_lowest_id_of_equals() {
    let mut memory = Memory::new(&[(10, 0, 0), (10, 0, 0), (10, 0, 0), (10, 0, 0)]);
    // The order of the candidates must not matter.
    memory.candidates = [4, 2, 1, 3].into_iter().collect();
    let view = memory.view(1, 0, 0);
    let scores = [0.0, 2.0, 1.0, 1.0, 1.0];
    let by = |shortfall, scores: [f64; 5]| {
        let mut ranking = Ranking::default();
        let score = |id: TensorId| -scores[id as usize];
        ranking.refresh(&view, &[], |id, _| Some([score(id)]));
        ranking.evict(Bytes(shortfall), &view, |&[score]| score, |id| Scored::At(score(id), [score(id)]))
    };
    let evict = |shortfall| by(shortfall, scores);
    assert_eq!(evict(0), []);
    assert_eq!(evict(1), [Rematerialise(2)]);
    // 10 bytes are exactly one tensor, 11 take a second.
    assert_eq!(evict(10), [Rematerialise(2)]);
    assert_eq!(evict(11), [Rematerialise(2), Rematerialise(3)]);
    // All 40 bytes, even if more are requested.
    assert_eq!(evict(1000), [Rematerialise(2), Rematerialise(3), Rematerialise(4), Rematerialise(1)]);
    // Infinite and missing scores have a place too.
    let infinite = [0.0, f64::INFINITY, f64::INFINITY, f64::INFINITY, 5.0];
    assert_eq!(by(1, infinite), [Rematerialise(4)]);
    assert_eq!(by(11, infinite), [Rematerialise(4), Rematerialise(1)]);
}

#[test]
fn the_fitting_micro_batch_is_what_the_budget_leaves() {
    let memory = Memory::new(&[]);
    // (450 − 100) / 50 = 7 samples.
    assert_eq!(memory.view(32, 50, 450).fitting_micro_batch(1), 7);
    assert_eq!(memory.view(32, 50, 449).fitting_micro_batch(1), 6);
    // Not below the least, not above the current samples, and the least if not even weights fit.
    assert_eq!(memory.view(32, 50, 450).fitting_micro_batch(9), 9);
    assert_eq!(memory.view(5, 50, 450).fitting_micro_batch(1), 5);
    assert_eq!(memory.view(5, 50, 450).fitting_micro_batch(9), 5);
    assert_eq!(memory.view(5, 50, 20).fitting_micro_batch(2), 2);
    // If nothing depends on the samples nothing can be gained.
    assert_eq!(memory.view(5, 0, 20).fitting_micro_batch(1), 5);
}

/// Latency per byte: 1 → 4, 2 → 1, 3 → 2.
fn three() -> Memory {
    Memory::new(&[(10, 40, 0), (20, 20, 0), (30, 60, 0)])
}

fn dynamic(order: Order, mtp: u64) -> Dynamic {
    let mut policy = Dynamic::new(order, None);
    let graph = forward(&[]);
    // The under-utilisation point is the device's by default.
    assert_eq!(policy.prepare(&setting(&graph, 32, mtp)).unwrap().micro_batch, 32);
    policy
}

#[test]
fn checkpointing_drops_the_lowest_latency_per_byte() {
    let mut dgc = dynamic(Order::CheckpointingOnly, 6);
    let memory = three();
    // 20 bytes of tensor 2, then 30 of tensor 3.
    assert_eq!(dgc.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 450)).unwrap(), [Rematerialise(2)]);
    assert_eq!(
        dgc.relieve(Want::Shortfall(Bytes(21)), &memory.view(32, 50, 450)).unwrap(),
        [Rematerialise(2), Rematerialise(3)]
    );
    // It never shrinks.
    assert_eq!(dgc.relieve(Want::Shortfall(Bytes(1)), &Memory::new(&[]).view(32, 50, 450)).unwrap(), []);
}

#[test]
fn accumulation_shrinks_to_what_fits_and_by_one_at_least() {
    let mut dga = dynamic(Order::AccumulationOnly, 6);
    let memory = three();
    assert_eq!(dga.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 450)).unwrap(), [ShrinkMicroBatch(7)]);
    // Seven samples fit by the sum, but memory is short nevertheless: one sample goes.
    assert_eq!(dga.relieve(Want::Shortfall(Bytes(20)), &memory.view(7, 50, 450)).unwrap(), [ShrinkMicroBatch(6)]);
    assert_eq!(dga.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 10)).unwrap(), [ShrinkMicroBatch(1)]);
    assert_eq!(dga.relieve(Want::Shortfall(Bytes(20)), &memory.view(1, 50, 10)).unwrap(), []);
    // The update does not belong to a micro-batch.
    let update = MemoryView { phase: Phase::Update, ..memory.view(32, 50, 450) };
    assert_eq!(dga.relieve(Want::Shortfall(Bytes(20)), &update).unwrap(), []);
}

#[test]
fn sage_accumulates_while_the_current_part_fills_the_processor() {
    let mut sage = dynamic(Order::AccumulationFirst, 6);
    let memory = three();
    // 32 ≥ 6: to the 7 that fit. With 3 that fit it stops at MTP − 1 = 5, the first part below MTP.
    assert_eq!(sage.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 450)).unwrap(), [ShrinkMicroBatch(7)]);
    assert_eq!(sage.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 250)).unwrap(), [ShrinkMicroBatch(5)]);
    assert_eq!(sage.relieve(Want::Shortfall(Bytes(20)), &memory.view(6, 50, 450)).unwrap(), [ShrinkMicroBatch(5)]);
    // Algorithm 1 compares MTP with the current part: a last part of 4 is checkpointed, whatever the first was.
    assert_eq!(sage.relieve(Want::Shortfall(Bytes(20)), &memory.view(5, 50, 250)).unwrap(), [Rematerialise(2)]);
    assert_eq!(sage.relieve(Want::Shortfall(Bytes(20)), &memory.view(4, 50, 250)).unwrap(), [Rematerialise(2)]);
    // With nothing left to drop it can free no more; with another floor it continues below MTP, to single samples.
    let bare = Memory::new(&[]);
    assert_eq!(sage.relieve(Want::Shortfall(Bytes(20)), &bare.view(5, 50, 250)).unwrap(), []);
    let mut further = dynamic(Order::AccumulationFirst, 6).down_to(Floor::OneSample);
    assert_eq!(further.relieve(Want::Shortfall(Bytes(20)), &memory.view(4, 50, 250)).unwrap(), [Rematerialise(2)]);
    assert_eq!(further.relieve(Want::Shortfall(Bytes(20)), &bare.view(4, 50, 250)).unwrap(), [ShrinkMicroBatch(3)]);
    assert_eq!(further.relieve(Want::Shortfall(Bytes(20)), &bare.view(1, 50, 250)).unwrap(), []);
    // A point that is set replaces the device's.
    let mut set = Dynamic::new(Order::AccumulationFirst, Some(20));
    set.prepare(&setting(&memory.graph, 32, 6)).unwrap();
    assert_eq!(set.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 450)).unwrap(), [ShrinkMicroBatch(19)]);
    assert_eq!(set.relieve(Want::Shortfall(Bytes(20)), &memory.view(19, 50, 450)).unwrap(), [Rematerialise(2)]);
}

#[test]
fn the_other_hybrids_differ_in_who_gives_way() {
    let (memory, bare) = (three(), Memory::new(&[]));
    let mut first = dynamic(Order::CheckpointingFirst, 6);
    assert_eq!(first.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 450)).unwrap(), [Rematerialise(2)]);
    assert_eq!(first.relieve(Want::Shortfall(Bytes(20)), &bare.view(32, 50, 450)).unwrap(), [ShrinkMicroBatch(7)]);
    let mut half = dynamic(Order::Half, 6);
    // Of 240 bytes, dropping is to free 120, which takes all three tensors; 120 / 50 → 3 of 32 samples free the rest.
    let all = [Rematerialise(2), Rematerialise(3), Rematerialise(1), ShrinkMicroBatch(29)];
    assert_eq!(half.relieve(Want::Shortfall(Bytes(240)), &memory.view(32, 50, 450)).unwrap(), all);
    // A single sample cannot shrink: tensors are dropped instead.
    assert_eq!(half.relieve(Want::Shortfall(Bytes(30)), &memory.view(1, 50, 450)).unwrap(), [Rematerialise(2)]);
    assert_eq!(half.relieve(Want::Shortfall(Bytes(1)), &memory.view(1, 50, 450)).unwrap(), [Rematerialise(2)]);
    let mut alternate = dynamic(Order::Alternate, 6);
    let mut turn = || alternate.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 450)).unwrap()[0];
    let turns = [turn(), turn(), turn()];
    assert!(matches!(turns[0], ShrinkMicroBatch(7)) == matches!(turns[2], ShrinkMicroBatch(7)));
    assert!(matches!(turns[0], ShrinkMicroBatch(7)) != matches!(turns[1], ShrinkMicroBatch(7)));
    // Each takes over when the other can free nothing.
    assert_eq!(alternate.relieve(Want::Shortfall(Bytes(20)), &bare.view(32, 50, 450)).unwrap(), [ShrinkMicroBatch(7)]);
    assert_eq!(alternate.relieve(Want::Shortfall(Bytes(20)), &bare.view(32, 50, 450)).unwrap(), [ShrinkMicroBatch(7)]);
    assert_eq!(alternate.relieve(Want::Shortfall(Bytes(20)), &memory.view(1, 50, 450)).unwrap(), [Rematerialise(2)]);
    assert_eq!(alternate.relieve(Want::Shortfall(Bytes(20)), &memory.view(1, 50, 450)).unwrap(), [Rematerialise(2)]);
}

#[test]
fn an_iteration_begins_where_the_one_before_it_ended() {
    for (parts, begins) in [(vec![32], 32), (vec![20, 12], 20), (vec![14, 14, 4], 14), (vec![17, 14, 1], 14)] {
        let mut sage = dynamic(Order::AccumulationFirst, 6);
        let begins_with = |sage: &mut Dynamic| {
            let mut plan = IterationPlan::new(32);
            sage.begin_iteration(&mut plan).unwrap();
            plan.micro_batch
        };
        assert_eq!(begins_with(&mut sage), 32);
        sage.end_iteration(&IterationSummary { time: Nanos(1), micro_batches: parts.clone() }).unwrap();
        // The last part may be small only because few samples were left.
        assert_eq!(begins_with(&mut sage), begins, "{parts:?}");
    }
}

#[test]
fn static_accumulation_halves_and_original_keeps() {
    let graph = forward(&[]);
    for (batch, half) in [(32, 16), (7, 4), (1, 1)] {
        assert_eq!(StaticAccumulation::default().prepare(&setting(&graph, batch, 6)).unwrap().micro_batch, half);
    }
    for id in ["original", "sga", "sgc"] {
        let mut policy = registry::build(id, &[]).unwrap();
        policy.prepare(&setting(&graph, 32, 6)).unwrap();
        assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &three().view(32, 50, 450)).unwrap(), [], "{id}");
    }
}

#[test]
fn articulation_points_are_what_all_later_work_depends_on() {
    // Two residual blocks on x (1): 2 = f(1), 3 = g(2), 4 = 3 + 1; 5 = f(4), 6 = g(5), 7 = 6 + 4; then 8, 9, 10 in a
    // chain. 1, 4, 7, 8 and 9 are points: within a block the shortcut bypasses the branch, and 10 has no reader.
    let graph = forward(&[&[0], &[1], &[2], &[3, 1], &[4], &[5], &[6, 4], &[7], &[8], &[9]]);
    let mut sgc = StaticCheckpointing::default();
    sgc.prepare(&setting(&graph, 8, 1)).unwrap();
    // √5 = 2.2 rounds to 2: the first, third and fifth are kept.
    let kept: Vec<TensorId> =
        (0..11).filter(|&id| sgc.hold(id, &MemoryView::empty(&graph)).unwrap() == Holding::Keep).collect();
    assert_eq!(kept, [1, 7, 9]);
    // A plain chain of nine, the last unread: eight points, √8 = 2.8 rounds to 3: 1, 4, 7.
    let chain: Vec<[TensorId; 1]> = (0..9).map(|id| [id]).collect();
    let graph = forward(&chain.iter().map(|input| &input[..]).collect::<Vec<_>>());
    sgc.prepare(&setting(&graph, 8, 1)).unwrap();
    assert_eq!(
        (0..10).filter(|&id| sgc.hold(id, &MemoryView::empty(&graph)).unwrap() == Holding::Keep).collect::<Vec<_>>(),
        [1, 4, 7]
    );
}

/// All candidates in the order in which `dtr` drops them.
fn ranked(memory: &Memory, heuristic: Heuristic) -> Vec<Relief> {
    let mut dtr = Dtr::new(heuristic);
    dtr.prepare(&setting(&memory.graph, 8, 1)).unwrap();
    dtr.relieve(Want::Shortfall(Bytes(1000)), &memory.view(8, 50, 450)).unwrap()
}

#[test]
fn dtr_ranks_by_its_heuristic() {
    // (bytes, cost, last use) at time 1000, which the runtime counts as 1001.
    let memory = Memory::new(&[(10, 100, 901), (40, 100, 991), (20, 10, 1)]);
    let order = |heuristic| ranked(&memory, heuristic);
    // dtr-local: 100 / (10 × 100) = 0.1; 100 / (40 × 10) = 0.25; 10 / (20 × 1000) = 0.0005.
    assert_eq!(order(Heuristic::DtrLocal), [3, 1, 2].map(Rematerialise));
    // Nothing is dropped yet, so the neighbourhood adds nothing.
    assert_eq!(order(Heuristic::Dtr), [3, 1, 2].map(Rematerialise));
    assert_eq!(order(Heuristic::Lru), [3, 1, 2].map(Rematerialise));
    assert_eq!(order(Heuristic::Size), [2, 3, 1].map(Rematerialise));
    // MSPS: cost per byte, 10, 2.5 and 0.5.
    assert_eq!(order(Heuristic::Msps), [3, 2, 1].map(Rematerialise));
}

#[test]
fn dtr_counts_the_dropped_around_a_tensor() {
    // A chain 1 → 2 → 3 → 4 → 5 of equals; 2 was dropped at a cost of 1,000 and 4 of 10.
    let mut memory = Memory::new(&[(10, 100, 0), (10, 1000, 0), (10, 100, 0), (10, 10, 0), (10, 100, 0)]);
    for dropped in [2, 4] {
        memory.tensors[dropped].form = Form::Dropped;
    }
    memory.candidates = [1, 3, 5].into_iter().collect();
    // dtr, both ways: 1 → 100 + 1,000; 3 → 100 + 1,000 + 10; 5 → 100 + 10.
    let order = |heuristic| ranked(&memory, heuristic);
    assert_eq!(order(Heuristic::Dtr), [5, 1, 3].map(Rematerialise));
    // MSPS, ancestors only: 1 → 100; 3 → 1,100; 5 → 110.
    assert_eq!(order(Heuristic::Msps), [1, 5, 3].map(Rematerialise));
}

fn refusal(id: &str, set: &[(&str, &str)]) -> PolicyError {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    registry::build(id, &set).err().expect("a refusal")
}

#[test]
fn the_registry_names_what_it_knows() {
    let ids: Vec<&str> = POLICIES.iter().map(|entry| entry.id).collect();
    let quantising = ["fixed8", "elastictrainer", "actnn", "daf"];
    assert_eq!(ids[..7], ["original", "sgc", "sga", "dgc", "dga", "sage", "dtr"]);
    assert_eq!(ids[7..11], quantising);
    assert_eq!(ids[11..15], ["gact", "capuchin", "melon", "fedhybrid"]);
    assert_eq!(ids[15..], ["tflite-fp32", "mnn-fp32", "mnn-int8", "mnn-fp32-gpu", "mandheling", "mincut"]);
    // They store fp32 tensors their own way, so they cannot save anything on a graph in integers.
    let floats = POLICIES.iter().filter(|entry| entry.stores_floats).map(|entry| entry.id);
    assert!(floats.eq(quantising.into_iter().chain(["gact"])));
    for entry in POLICIES.iter() {
        assert!(registry::build(entry.id, &[]).is_ok() && !entry.about.is_empty() && !entry.citation.is_empty());
    }
    assert_eq!(refusal("sag", &[]).to_string(), "unknown policy 'sag'; did you mean 'sage'?");
    assert_eq!(refusal("orignal", &[]).to_string(), "unknown policy 'orignal'; did you mean 'original'?");
    assert_eq!(refusal("zzz", &[]), PolicyError::Unknown { found: "zzz".to_owned(), nearest: None });
    assert_eq!(
        refusal("sage", &[("oder", "half")]).to_string(),
        "policy 'sage' has no parameter 'oder'; did you mean 'order'?"
    );
    assert!(matches!(
        refusal("dgc", &[("mtp", "3")]),
        PolicyError::UnknownParameter { policy: "dgc", nearest: None, .. }
    ));
    assert_eq!(
        refusal("sage", &[("order", "dga")]).to_string(),
        "sage.order cannot be 'dga'; expected dga-first, dgc-first, half or alternate; did you mean 'dga-first'?"
    );
    for bad in ["0", "-1", "2.5", "many", ""] {
        assert!(matches!(refusal("sage", &[("mtp", bad)]), PolicyError::BadValue { parameter: "mtp", .. }), "{bad}");
    }
    assert!(matches!(refusal("dtr", &[("heuristic", "newest")]), PolicyError::BadValue { parameter: "heuristic", .. }));
}

/// The help text of a parameter matches the parser: the words or numbers, and the default.
#[test]
fn help_and_parser_come_from_one_line() {
    let help = |id: &str, name: &str| {
        let entry = registry::find(id).unwrap();
        let parameter = entry.parameters.iter().find(|parameter| parameter.name == name).unwrap();
        let default = parameter.default_text().map_or_else(String::new, |default| format!(" (default {default})"));
        format!("{}{default}: {}", parameter.values(), parameter.about)
    };
    let heuristics = "dtr, dtr-eq, dtr-local, msps, lru or size (default dtr): ";
    assert!(help("dtr", "heuristic").starts_with(heuristics), "{}", help("dtr", "heuristic"));
    assert_eq!(help("actnn", "bits"), "1, 2, 4 or 8 (default 2): bits of a value, in the mean over a tensor");
    assert_eq!(help("fedhybrid", "swapping"), "on or off (default off): tensors may go to flash");
    let percent = "a whole number from 1 to 100 (default 90): percent of its window that a new plan leaves";
    assert_eq!(help("fedhybrid", "ws_adj"), percent);
    // The behaviour of an unset parameter need not be one of its values.
    assert!(help("sage", "mtp").starts_with("a whole number of at least 1: "));
    let refused = |id: &str, name: &str, value: &str| refusal(id, &[(name, value)]).to_string();
    assert_eq!(refused("daf", "bits", "3"), "daf.bits cannot be '3'; expected 1, 2, 4, 8, 16 or 32");
    assert_eq!(
        refused("fedhybrid", "epoch", "4"),
        "fedhybrid.epoch does nothing without budget; set that too, or leave epoch out"
    );
    assert_eq!(
        refused("fedhybrid", "ws_adj", "101"),
        "fedhybrid.ws_adj cannot be '101'; expected a whole number from 1 to 100"
    );
    assert_eq!(
        refused("daf", "control", "fuesd"),
        "daf.control cannot be 'fuesd'; expected fused or own-kernels; did you mean 'fused'?"
    );
    assert_eq!(refused("melon", "micro_batching", "yes"), "melon.micro_batching cannot be 'yes'; expected on or off");
    assert_eq!(refused("sage", "mtp", "0"), "sage.mtp cannot be '0'; expected a whole number of at least 1");
}

#[test]
fn the_list_says_what_the_code_has() {
    let parameter = |id: &str, name: &str| {
        let entry = registry::find(id).unwrap();
        entry.parameters.iter().find(|parameter| parameter.name == name).unwrap()
    };
    let of_arena = ["page_kib", "step_mb"].map(|name| parameter("daf", name).default_text().unwrap());
    assert_eq!(
        of_arena,
        [ArenaConfig::PAGE.0 / 1024, ArenaConfig::STEP.0 / 1_000_000].map(|number| number.to_string())
    );
    assert_eq!(parameter("mandheling", "history").values(), format!("a whole number from {LEAST_HISTORY} to 10000"));
    let unset = fedhybrid::Parameters::default();
    let switches = [
        ("compression", unset.compression),
        ("recomputation", unset.recomputation),
        ("swapping", unset.swapping),
        ("layout", unset.layout),
        ("crossing", unset.crossing),
    ];
    for (name, on) in switches {
        let listed = parameter("fedhybrid", name).default_text();
        assert_eq!(listed.as_deref(), Some(if on { "on" } else { "off" }), "{name}");
    }
    assert_eq!(parameter("fedhybrid", "planner").default_text().as_deref(), Some("server"));
    assert!(unset.planner == Planner::Server && unset.budget.is_none());
    // A parameter with only a name repeats that of a policy above.
    for (id, of, name) in [("gact", "elastictrainer", "importance"), ("melon", "sga", "batch_norm")] {
        let told = |id| format!("{:?}", parameter(id, name));
        assert!(told(id) == told(of) && !parameter(id, name).about.is_empty());
    }
    assert!(matches!(refusal("planned", &[]), PolicyError::Plan(_)));
}

#[test]
fn parameters_reach_the_policy_and_the_last_one_counts() {
    let memory = three();
    let answer = |id: &str, set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut policy = registry::build(id, &set).unwrap();
        policy.prepare(&setting(&memory.graph, 32, 6)).unwrap();
        policy.relieve(Want::Shortfall(Bytes(20)), &memory.view(32, 50, 450)).unwrap()
    };
    assert_eq!(answer("sage", &[]), [ShrinkMicroBatch(7)]);
    assert_eq!(answer("sage", &[("order", "dga-first")]), [ShrinkMicroBatch(7)]);
    assert_eq!(answer("sage", &[("order", "dgc-first")]), [Rematerialise(2)]);
    assert_eq!(answer("sage", &[("mtp", "10"), ("mtp", "21")]), [ShrinkMicroBatch(20)]);
    assert_eq!(answer("sage", &[("mtp", "40")]), [Rematerialise(2)]);
    assert_eq!(answer("dtr", &[("heuristic", "size")]), [Rematerialise(3)]);
    assert_eq!(answer("dga", &[]), [ShrinkMicroBatch(7)]);
    assert_eq!(answer("dgc", &[]), [Rematerialise(2)]);
}
