//! `dtr`: dynamic tensor rematerialisation (Kirisame et al., ICLR 2021): under pressure the tensor with the lowest
//! score is dropped, and computed again when it is read. The scores are those of the replay.

use haversack_devices::units::Nanos;
use haversack_replay::{Candidate, Heuristic};
use haversack_workloads::{NodeId, TensorId};

use crate::entry::{Choice, Entry};
use crate::error::PolicyError;
use crate::policy::{Policy, Relief, Schedule, Want};
use crate::setting::Setting;
use crate::view::{Form, MemoryView, TensorState};

/// How scenarios name it, and what they can set.
pub static ENTRY: Entry = Entry {
    id: "dtr",
    about: "dynamic tensor rematerialisation: the lowest heuristic score gives way",
    citation: "Kirisame et al., ICLR 2021",
    stores_floats: false,
    engine: None,
    parameters: &[&HEURISTIC],
    build: |settings| Ok(Box::new(Dtr::new(settings.get(&HEURISTIC)?))),
};

static HEURISTIC: Choice<Heuristic> = Choice::new(
    "heuristic",
    Heuristic::Dtr,
    &[
        ("dtr", Heuristic::Dtr),
        ("dtr-eq", Heuristic::DtrEq),
        ("dtr-local", Heuristic::DtrLocal),
        ("msps", Heuristic::Msps),
        ("lru", Heuristic::Lru),
        ("size", Heuristic::Size),
    ],
    "{}",
)
.in_prose();

/// Dynamic tensor rematerialisation.
#[derive(Clone, Debug)]
pub struct Dtr {
    heuristic: Heuristic,
    /// The outputs of the nodes that read each tensor, for heuristics that look at descendants.
    readers: Option<Vec<Vec<TensorId>>>,
}

impl Dtr {
    /// Ranks tensors by `heuristic`.
    #[must_use]
    pub const fn new(heuristic: Heuristic) -> Self {
        Self { heuristic, readers: None }
    }
}

impl Policy for Dtr {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.readers = match self.heuristic {
            Heuristic::Dtr | Heuristic::DtrEq => Some(readers(setting.graph)),
            _ => None,
        };
        Ok(Schedule::plain(setting.batch))
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Vec<Relief> {
        let readers = &self.readers;
        memory.evict_lowest(want.bytes(), |id, tensor| {
            let neighbourhood = match self.heuristic {
                Heuristic::Dtr | Heuristic::DtrEq | Heuristic::Msps => {
                    dropped_neighbours(memory, id, readers.as_deref())
                }
                _ => Nanos::ZERO,
            };
            self.heuristic.score(&Candidate {
                compute: tensor.cost,
                neighbourhood: i64::try_from(neighbourhood.0).unwrap_or(i64::MAX),
                size: tensor.bytes,
                last_access: tensor.last_use,
                // The runtime's clock starts at one, so that nothing is fresher than now.
                now: memory.now + Nanos(1),
            })
        })
    }
}

/// The outputs of the nodes that read each tensor.
fn readers(graph: &haversack_workloads::TrainingGraph) -> Vec<Vec<TensorId>> {
    let mut readers = vec![Vec::new(); graph.tensors.len()];
    for node in &graph.nodes {
        for &input in &node.inputs {
            readers[input as usize].extend(node.outputs.iter().filter(|&&output| output != input));
        }
    }
    readers
}

/// The cost of the dropped tensors around `tensor`: ancestors, and descendants where `readers` are given.
fn dropped_neighbours(memory: &MemoryView<'_>, tensor: TensorId, readers: Option<&[Vec<TensorId>]>) -> Nanos {
    let mut total = Nanos::ZERO;
    let mut seen = vec![tensor];
    let dropped = |id: TensorId| -> Option<&TensorState> {
        Some(&memory.tensors[id as usize]).filter(|tensor| tensor.form == Form::Dropped)
    };
    let parents = |id: TensorId| -> &[TensorId] {
        match memory.producers[id as usize] {
            NodeId::MAX => &[],
            node => &memory.graph.nodes[node as usize].inputs,
        }
    };
    let mut visit = |start: TensorId, next: &dyn Fn(TensorId) -> Vec<TensorId>| {
        let mut open = next(start);
        while let Some(id) = open.pop() {
            if let Some(state) = dropped(id)
                && !seen.contains(&id)
            {
                seen.push(id);
                total += state.cost;
                open.extend(next(id));
            }
        }
    };
    visit(tensor, &|id| parents(id).to_vec());
    if let Some(readers) = readers {
        visit(tensor, &|id| readers[id as usize].clone());
    }
    total
}
