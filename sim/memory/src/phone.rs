//! The phone memory that the kernel manages: page reclaim, ZRAM, swap and the low-memory killer.
