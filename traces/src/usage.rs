//! The usage model: sessions, apps and what they take of memory.
