//! Who looked at a tensor while pricing another, and a set that is emptied in no time.

use haversack_workloads::TensorId;

/// The tensors in whose price each tensor counted: told when that tensor comes back, since they may be cheaper then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers {
    of: Vec<Vec<TensorId>>,
}

impl Watchers {
    /// For `tensors` tensors, none of which is watched.
    pub(crate) fn new(tensors: usize) -> Self {
        Self { of: vec![Vec::new(); tensors] }
    }

    /// `watched` counts in the price of `watcher`.
    pub(crate) fn watch(&mut self, watched: TensorId, watcher: TensorId) {
        let list = &mut self.of[watched as usize];
        if list.len() == list.capacity() {
            // It is rid of repetitions before it grows.
            list.sort_unstable();
            list.dedup();
        }
        list.push(watcher);
    }

    /// Those in whose price `watched` counted, who watch it no more; one may be named several times.
    pub(crate) fn take(&mut self, watched: TensorId) -> Vec<TensorId> {
        std::mem::take(&mut self.of[watched as usize])
    }
}

/// What a search has come upon, without clearing anything between searches.
#[derive(Clone, Debug)]
pub(crate) struct Stamps {
    of: Vec<u32>,
    search: u32,
}

impl Stamps {
    /// For so many things.
    pub(crate) fn new(things: usize) -> Self {
        Self { of: vec![0; things], search: 0 }
    }

    /// A search begins: nothing was come upon yet.
    pub(crate) fn begin(&mut self) {
        self.search += 1;
    }

    /// Whether the search comes upon `thing` for the first time.
    pub(crate) fn first(&mut self, thing: u32) -> bool {
        std::mem::replace(&mut self.of[thing as usize], self.search) != self.search
    }
}
