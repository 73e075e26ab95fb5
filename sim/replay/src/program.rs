//! A log compiled to events over dense integers: what the runtime executes.
//!
//! Tensors are numbered in the order of creation, and so are storages; the outputs of one operator
//! are consecutive tensors. Everything that does not depend on the budget is laid out here once:
//! who aliases whom, which storages are neighbours from which operator on, and the baseline.

use std::collections::{HashMap, HashSet};

use haversack_devices::ensure;
use haversack_devices::text::nearest;

/// Sizes are added up below 2^53, where a float holds every whole number.
const MOST_BYTES: u64 = 1 << 53;
/// Times too; a quarter of it, as the clock runs to several times the baseline.
const MOST_NANOS: u64 = 1 << 51;

/// One thing that the log does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Create the outputs of an operator and execute it.
    Compute(u32),
    /// One reference to a storage goes.
    Release(u32),
    /// One reference to a storage comes.
    Get(u32),
    /// A tensor must be there from now on.
    Pin(u32),
}

/// Half-open range into one of the program's lists.
type Span = (u32, u32);

/// An operator.
pub(crate) struct Op {
    pub(crate) cost: u64,
    /// Bytes of all outputs.
    pub(crate) need: u64,
    args: Span,
    pub(crate) outputs: Span,
    stores: Span,
}

/// A neighbour in one direction, and the operator whose creation made it one.
#[derive(Clone, Copy)]
struct Link {
    op: u32,
    storage: u32,
}

/// Neighbours by storage, each list in order of creation.
#[derive(Default)]
struct Links {
    starts: Vec<u32>,
    links: Vec<Link>,
}

impl Links {
    /// Groups `(from, link)` by `from`, keeping the order within a group.
    fn new(storages: usize, edges: impl Iterator<Item = (u32, Link)> + Clone) -> Self {
        let mut starts = vec![0u32; storages + 1];
        for (from, _) in edges.clone() {
            starts[from as usize + 1] += 1;
        }
        for i in 0..storages {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut links = vec![Link { op: 0, storage: 0 }; starts[storages] as usize];
        for (from, link) in edges {
            links[next[from as usize] as usize] = link;
            next[from as usize] += 1;
        }
        Self { starts, links }
    }

    /// The neighbours that exist once `created` operators have been created.
    #[inline]
    fn of(&self, storage: u32, created: u32) -> impl Iterator<Item = u32> {
        let (start, end) = (self.starts[storage as usize], self.starts[storage as usize + 1]);
        let list = &self.links[start as usize..end as usize];
        list.iter().take_while(move |link| link.op < created).map(|link| link.storage)
    }
}

/// A compiled log.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) events: Vec<Event>,
    pub(crate) ops: Vec<Op>,
    /// By tensor: its operator, its storage and its own bytes (0 for an alias).
    pub(crate) tensor_op: Vec<u32>,
    pub(crate) tensor_storage: Vec<u32>,
    pub(crate) tensor_bytes: Vec<u64>,
    /// By storage: its first tensor, and its bytes as an integer and as the scores take them.
    pub(crate) roots: Vec<u32>,
    pub(crate) bytes: Vec<u64>,
    pub(crate) sizes: Vec<f64>,
    pub(crate) baseline_compute: u64,
    pub(crate) baseline_memory: u64,
    args: Vec<u32>,
    stores: Vec<u32>,
    members: Vec<Vec<u32>>,
    children: Links,
    parents: Links,
}

fn slice(list: &[u32], span: Span) -> &[u32] {
    &list[span.0 as usize..span.1 as usize]
}

impl Program {
    /// The tensors an operator reads, as often as it names them.
    #[inline]
    pub(crate) fn args(&self, op: &Op) -> &[u32] {
        slice(&self.args, op.args)
    }

    /// The distinct storages of an operator's outputs.
    #[inline]
    pub(crate) fn output_storages(&self, op: &Op) -> &[u32] {
        slice(&self.stores, op.stores)
    }

    /// The tensors that share a storage, the root first.
    #[inline]
    pub(crate) fn members(&self, storage: u32) -> &[u32] {
        &self.members[storage as usize]
    }

    /// Storages computed from `storage` by the first `created` operators.
    #[inline]
    pub(crate) fn children(&self, storage: u32, created: u32) -> impl Iterator<Item = u32> {
        self.children.of(storage, created)
    }

    /// Storages from which the first `created` operators computed `storage`.
    #[inline]
    pub(crate) fn parents(&self, storage: u32, created: u32) -> impl Iterator<Item = u32> {
        self.parents.of(storage, created)
    }
}

/// An output as the log describes it.
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
    /// Each name's place among `bound`, which keeps the order of first appearance.
    names: HashMap<String, usize>,
    bound: Vec<u32>,
    /// By tensor: the names that hold it. Signed, as a log may release one twice.
    holders: Vec<i64>,
    /// By storage, for the baseline.
    references: Vec<i64>,
    resident: Vec<bool>,
    memory: u64,
    total_bytes: u64,
    edges: Vec<(u32, u32, u32)>,
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

    /// An in-place operator: a new one whose outputs take the names of the arguments it changes.
    pub(crate) fn mutate(&mut self, names: &[String], changed: &[usize], time: u64) -> Result<(), String> {
        let args = self.lookup_all("ARGS", names)?;
        // An alias is as large as the storage that it shares.
        let changed: Vec<_> = changed.iter().filter_map(|&i| Some((names.get(i)?, *args.get(i)?))).collect();
        let size = |tensor: u32| self.program.bytes[self.program.tensor_storage[tensor as usize] as usize];
        let shapes: Vec<_> = changed.iter().map(|&(_, tensor)| (size(tensor), None)).collect();
        let first = self.operator(&args, &shapes, time)?;
        for (tensor, (name, _)) in (first..).zip(changed) {
            // The binding of now, not of the start: an operator may change one name twice.
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

    /// Names that nothing has bound are ignored: a log starts in the middle of a program's life.
    pub(crate) fn release(&mut self, name: &str) {
        if let Some(&place) = self.names.get(name) {
            self.drop_reference(self.bound[place]);
        }
    }

    /// Ends the log: whatever a name still holds must be resident.
    pub(crate) fn finish(mut self) -> Program {
        for &tensor in self.bound.iter().filter(|&&tensor| self.holders[tensor as usize] > 0) {
            self.program.events.push(Event::Pin(tensor));
        }
        let storages = self.program.roots.len();
        let edges = self.edges.iter();
        let down = edges.clone().map(|&(parent, child, op)| (parent, Link { op, storage: child }));
        self.program.children = Links::new(storages, down);
        let up = edges.map(|&(parent, child, op)| (child, Link { op, storage: parent }));
        self.program.parents = Links::new(storages, up);
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
        let (args_start, stores_start) = (index(p.args.len())?, index(p.stores.len())?);
        p.args.extend_from_slice(args);
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
            if !p.stores[stores_start as usize..].contains(&storage) {
                p.stores.push(storage);
            }
        }
        for &storage in &p.stores[stores_start as usize..] {
            for &arg in args {
                let parent = p.tensor_storage[arg as usize];
                if parent != storage && self.known_edges.insert((parent, storage)) {
                    self.edges.push((parent, storage, op));
                }
            }
        }
        let end = index(p.tensor_op.len())?;
        let (args_end, stores_end) = (index(p.args.len())?, index(p.stores.len())?);
        p.ops.push(Op {
            cost,
            need,
            args: (args_start, args_end),
            outputs: (first, end),
            stores: (stores_start, stores_end),
        });
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
        if let Some(&place) = self.names.get(name) {
            self.bound[place] = tensor;
        } else {
            self.names.insert(name.to_owned(), self.bound.len());
            self.bound.push(tensor);
        }
    }

    fn lookup_all(&self, field: &'static str, names: &[String]) -> Result<Vec<u32>, String> {
        names.iter().map(|name| self.lookup(field, name)).collect()
    }

    fn lookup(&self, field: &'static str, name: &str) -> Result<u32, String> {
        let place = self.names.get(name).ok_or_else(|| {
            let nearest = nearest(name, self.names.keys().map(String::as_str));
            let guess = nearest.map_or_else(String::new, |nearest| format!(" (did you mean '{nearest}'?)"));
            format!("field {field}: unknown tensor '{name}'{guess}; expected the name of a CONSTANT, a RESULT or a DST")
        })?;
        Ok(self.bound[*place])
    }
}

/// What is said of a field whose sum over the log is past what is counted exactly.
fn too_large(field: &str, limit: u64) -> String {
    format!("field {field}: the log's total passes {limit}, the most that is counted exactly")
}

/// A dense index; a log with more than four thousand million of anything is refused.
fn index(place: usize) -> Result<u32, String> {
    let limit = u32::MAX - 1;
    match u32::try_from(place) {
        Ok(index) if index < limit => Ok(index),
        _ => Err(too_large("INSTRUCTION", u64::from(limit))),
    }
}
