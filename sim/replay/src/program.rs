//! A log compiled to events over dense integers, which the runtime executes.
//!
//! Tensors are numbered in the order of creation, and so are storages; the outputs of one operator are consecutive
//! tensors. Everything that does not depend on the budget is computed here once: which tensors are aliases, which
//! storages are neighbours from which operator on, and the baseline.

use std::collections::HashSet;
use std::ops::Range;

use haversack_devices::ensure;
use haversack_devices::text::nearest;
use indexmap::IndexMap;

/// Sizes are summed below 2^53, where a float represents every whole number.
const MOST_BYTES: u64 = 1 << 53;
/// Times too; a quarter of it, since the clock reaches several times the baseline.
const MOST_NANOS: u64 = 1 << 51;

/// An event of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Create the outputs of an operator and execute it.
    Compute(u32),
    /// Drop a reference to a storage.
    Release(u32),
    /// Add a reference to a storage.
    Get(u32),
    /// Keep a tensor resident from now on.
    Pin(u32),
}

/// An operator.
pub(crate) struct Op {
    pub(crate) cost: u64,
    /// Bytes of all outputs.
    pub(crate) need: u64,
    /// The tensors that it reads, with repetitions.
    pub(crate) args: Vec<u32>,
    pub(crate) outputs: Range<u32>,
    /// The distinct storages of its outputs.
    pub(crate) stores: Vec<u32>,
}

/// A neighbour in one direction, and the operator since which it is one.
#[derive(Clone, Copy)]
struct Link {
    op: u32,
    storage: u32,
}

/// The direction towards the storages that a storage was computed from.
pub(crate) const PARENTS: usize = 0;
/// The direction towards the storages computed from a storage.
pub(crate) const CHILDREN: usize = 1;

/// A compiled log.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) events: Vec<Event>,
    pub(crate) ops: Vec<Op>,
    /// By tensor: its operator, its storage and its own bytes (0 for an alias).
    pub(crate) tensor_op: Vec<u32>,
    pub(crate) tensor_storage: Vec<u32>,
    pub(crate) tensor_bytes: Vec<u64>,
    /// By storage: its first tensor, and its bytes as an integer and as a float for scores.
    pub(crate) roots: Vec<u32>,
    pub(crate) bytes: Vec<u64>,
    pub(crate) sizes: Vec<f64>,
    pub(crate) baseline_compute: u64,
    pub(crate) baseline_memory: u64,
    /// By storage: the tensors that share it, the root first.
    pub(crate) members: Vec<Vec<u32>>,
    /// By direction and storage: its neighbours, in order of creation.
    links: [Vec<Vec<Link>>; 2],
}

impl Program {
    /// The neighbours of `storage` in a direction, of the first `created` operators.
    #[inline]
    pub(crate) fn neighbours(&self, direction: usize, storage: u32, created: u32) -> impl Iterator<Item = u32> {
        let links = &self.links[direction][storage as usize];
        links.iter().take_while(move |link| link.op < created).map(|link| link.storage)
    }
}

/// An output, as described by the log.
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// The argument whose storage it shares.
    pub(crate) alias: Option<usize>,
}

/// Compiles instructions one by one.
#[derive(Default)]
pub(crate) struct Builder {
    program: Program,
    /// The tensor of each name, in order of first appearance.
    names: IndexMap<String, u32>,
    /// By tensor: the number of names bound to it. Signed, as a log may release one twice.
    holders: Vec<i64>,
    /// By storage, for the baseline.
    references: Vec<i64>,
    resident: Vec<bool>,
    memory: u64,
    total_bytes: u64,
    known_edges: HashSet<(u32, u32)>,
}

impl Builder {
    pub(crate) fn constant(&mut self, name: &str, bytes: u64) -> Result<(), String> {
        let tensor = self.operator(&[], &[(bytes, None)], 0)?;
        self.program.events.push(Event::Pin(tensor));
        self.bind(name, tensor);
        self.holders[tensor as usize] = 1;
        Ok(())
    }

    pub(crate) fn call(&mut self, args: &[String], outputs: &[Output], time: u64) -> Result<(), String> {
        let args = self.lookup_all("ARGS", args)?;
        let shapes: Vec<_> = outputs.iter().map(|o| (o.bytes, o.alias.and_then(|i| args.get(i).copied()))).collect();
        let first = self.operator(&args, &shapes, time)?;
        for (tensor, output) in (first..).zip(outputs) {
            self.bind(&output.name, tensor);
            self.holders[tensor as usize] = 1;
        }
        Ok(())
    }

    /// An in-place operator: a new operator whose outputs take over the names of the arguments that it changes.
    pub(crate) fn mutate(&mut self, names: &[String], changed: &[usize], time: u64) -> Result<(), String> {
        let args = self.lookup_all("ARGS", names)?;
        // An alias is as large as the storage that it shares.
        let changed: Vec<_> = changed.iter().filter_map(|&i| Some((names.get(i)?, *args.get(i)?))).collect();
        let size = |tensor: u32| self.program.bytes[self.program.tensor_storage[tensor as usize] as usize];
        let shapes: Vec<_> = changed.iter().map(|&(_, tensor)| (size(tensor), None)).collect();
        let first = self.operator(&args, &shapes, time)?;
        for (tensor, (name, _)) in (first..).zip(changed) {
            // The present binding, not the initial one: an operator may change one name twice.
            let old = self.lookup("ARGS", name)?;
            self.bind(name, tensor);
            self.holders[tensor as usize] = 1;
            self.drop_reference(old);
        }
        Ok(())
    }

    pub(crate) fn copy(&mut self, to: &str, from: &str) -> Result<(), String> {
        let tensor = self.lookup("SRC", from)?;
        self.bind(to, tensor);
        self.add_reference(tensor);
        Ok(())
    }

    pub(crate) fn copy_from(&mut self, to: &str, from: &str) -> Result<(), String> {
        let old = self.lookup("DST", to)?;
        let tensor = self.lookup("SRC", from)?;
        self.bind(to, tensor);
        self.drop_reference(old);
        self.add_reference(tensor);
        Ok(())
    }

    /// Releasing an unbound name is ignored: a log starts in the middle of a program's life.
    pub(crate) fn release(&mut self, name: &str) {
        if let Some(&tensor) = self.names.get(name) {
            self.drop_reference(tensor);
        }
    }

    /// Ends the log: all tensors with a name must be resident.
    pub(crate) fn finish(mut self) -> Program {
        for &tensor in self.names.values().filter(|&&tensor| self.holders[tensor as usize] > 0) {
            self.program.events.push(Event::Pin(tensor));
        }
        self.program
    }

    /// Adds an operator and its `COMPUTE`; returns its first output. Each output has bytes and,
    /// for an alias, the tensor whose storage it joins.
    fn operator(&mut self, args: &[u32], outputs: &[(u64, Option<u32>)], cost: u64) -> Result<u32, String> {
        let p = &mut self.program;
        p.baseline_compute = p.baseline_compute.saturating_add(cost);
        ensure!(p.baseline_compute <= MOST_NANOS, too_large("TIME", MOST_NANOS));
        let first = index(p.tensor_op.len())?;
        let op = index(p.ops.len())?;
        let mut stores = Vec::new();
        let mut need = 0;
        for &(bytes, alias) in outputs {
            let tensor = index(p.tensor_op.len())?;
            let own = if alias.is_some() { 0 } else { bytes };
            self.total_bytes = self.total_bytes.saturating_add(own);
            ensure!(self.total_bytes <= MOST_BYTES, too_large("MEMORY", MOST_BYTES));
            need += own;
            let storage = if let Some(base) = alias {
                p.tensor_storage[base as usize]
            } else {
                p.roots.push(tensor);
                p.bytes.push(own);
                p.sizes.push(own as f64);
                p.members.push(Vec::new());
                p.links.iter_mut().for_each(|links| links.push(Vec::new()));
                self.references.push(0);
                self.resident.push(true);
                index(p.roots.len() - 1)?
            };
            p.tensor_op.push(op);
            p.tensor_storage.push(storage);
            p.tensor_bytes.push(own);
            p.members[storage as usize].push(tensor);
            self.holders.push(0);
            self.references[storage as usize] += 1;
            if !stores.contains(&storage) {
                stores.push(storage);
            }
        }
        for &storage in &stores {
            for &arg in args {
                let parent = p.tensor_storage[arg as usize];
                if parent != storage && self.known_edges.insert((parent, storage)) {
                    p.links[CHILDREN][parent as usize].push(Link { op, storage });
                    p.links[PARENTS][storage as usize].push(Link { op, storage: parent });
                }
            }
        }
        let outputs = first..index(p.tensor_op.len())?;
        p.ops.push(Op { cost, need, args: args.to_vec(), outputs, stores });
        p.events.push(Event::Compute(op));
        self.memory += need;
        p.baseline_memory = p.baseline_memory.max(self.memory);
        Ok(first)
    }

    fn add_reference(&mut self, tensor: u32) {
        let storage = self.program.tensor_storage[tensor as usize];
        self.holders[tensor as usize] += 1;
        self.references[storage as usize] += 1;
        self.program.events.push(Event::Get(storage));
    }

    fn drop_reference(&mut self, tensor: u32) {
        let storage = self.program.tensor_storage[tensor as usize];
        self.holders[tensor as usize] -= 1;
        self.program.events.push(Event::Release(storage));
        let s = storage as usize;
        self.references[s] -= 1;
        if self.references[s] == 0 && self.resident[s] {
            self.resident[s] = false;
            self.memory -= self.program.bytes[s];
        }
    }

    fn bind(&mut self, name: &str, tensor: u32) {
        self.names.insert(name.to_owned(), tensor);
    }

    fn lookup_all(&self, field: &'static str, names: &[String]) -> Result<Vec<u32>, String> {
        names.iter().map(|name| self.lookup(field, name)).collect()
    }

    fn lookup(&self, field: &'static str, name: &str) -> Result<u32, String> {
        self.names.get(name).copied().ok_or_else(|| {
            let nearest = nearest(name, self.names.keys().map(String::as_str));
            let guess = nearest.map_or_else(String::new, |nearest| format!(" (did you mean '{nearest}'?)"));
            format!("field {field}: unknown tensor '{name}'{guess}; expected the name of a CONSTANT, a RESULT or a DST")
        })
    }
}

/// The error for a field whose sum over the log exceeds the range that is counted exactly.
fn too_large(field: &str, limit: u64) -> String {
    format!("field {field}: the log's total passes {limit}, the most that is counted exactly")
}

/// A dense index; a log with more than four thousand million items of a kind is an error.
fn index(place: usize) -> Result<u32, String> {
    let limit = u32::MAX - 1;
    match u32::try_from(place) {
        Ok(index) if index < limit => Ok(index),
        _ => Err(too_large("INSTRUCTION", u64::from(limit))),
    }
}
