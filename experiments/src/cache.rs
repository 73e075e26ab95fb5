//! What runs share: devices, stacks, networks, graphs, machines, and what `original` needs.
//!
//! A [`Cache`] is made by whoever runs more than one scenario and handed down; there is no global one. It knows nothing
//! of what it holds: the modules above it choose keys and values, and each pair of types has a place of its own.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The place of one value, which one thread at a time makes.
type Slot<V> = Arc<Mutex<Option<Arc<V>>>>;

/// The values of one pair of types.
type Slots<K, V> = Mutex<HashMap<K, Slot<V>>>;

/// Values that are made once, whichever thread asks first; others wait for it.
#[derive(Default)]
#[must_use]
pub struct Cache {
    by_type: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Cache {
    /// Nothing shared yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `key` among those of its type, made by `make` if there is none; an error is not kept.
    ///
    /// # Errors
    /// What `make` fails with.
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

    /// The place of a value; always there, since what stands under a type's own id is of that type.
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

/// A thread that panicked while it held a lock has left a value or none, never half of one.
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
