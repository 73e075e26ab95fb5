//! Shared by runs: devices, stacks, networks, graphs, machines, and the memory that `original` needs.
//!
//! Code that runs more than one scenario makes a [`Cache`] and passes it down; no global one exists. The cache
//! does not depend on the types of its values: the modules above it choose keys and values, and each pair of
//! types has its own map.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The slot of one value, which one thread at a time computes.
type Slot<V> = Arc<Mutex<Option<Arc<V>>>>;

/// The values of one pair of types.
type Slots<K, V> = Mutex<HashMap<K, Slot<V>>>;

/// Values that are computed once, by the first thread that needs them; other threads wait.
#[derive(Default)]
#[must_use]
pub struct Cache {
    by_type: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Cache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The cached value of `key`, computed by `make` if it is missing; errors are not cached.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn get<K, V, E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E>
    where
        K: Hash + Eq + Send + 'static,
        V: Send + Sync + 'static,
    {
        let Some(slot) = self.slot::<K, V>(key) else { return make().map(Arc::new) };
        let mut value = lock(&slot);
        if let Some(value) = &*value {
            return Ok(Arc::clone(value));
        }
        let made = Arc::new(make()?);
        *value = Some(Arc::clone(&made));
        Ok(made)
    }

    /// The slot of a value; always `Some`, because the map stored under a type's id has that type.
    fn slot<K, V>(&self, key: K) -> Option<Slot<V>>
    where
        K: Hash + Eq + Send + 'static,
        V: Send + Sync + 'static,
    {
        let slots = Arc::clone(lock(&self.by_type).entry(TypeId::of::<Slots<K, V>>()).or_insert_with(|| {
            let none: Slots<K, V> = Mutex::default();
            Arc::new(none)
        }));
        let slots = slots.downcast::<Slots<K, V>>().ok()?;
        Some(Arc::clone(lock(&slots).entry(key).or_default()))
    }
}

/// A thread that panicked under the lock has left either a whole value or none, so poisoning is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_types_do_not_meet() {
        let cache = Cache::new();
        let get = |value: u64| cache.get::<_, u64, ()>("key", || Ok(value)).map(|found| *found);
        assert_eq!(get(1), Ok(1));
        assert_eq!(get(2), Ok(1), "the first value stays");
        assert_eq!(cache.get::<_, String, ()>("key", || Ok("text".to_owned())).unwrap().as_str(), "text");
        assert!(cache.get::<_, u64, &str>("other", || Err("not made")).is_err());
        assert_eq!(cache.get::<_, u64, ()>("other", || Ok(3)), Ok(Arc::new(3)), "an error is not kept");
    }
}
