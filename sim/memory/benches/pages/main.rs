//! Compares the speed of the page table's two orders with alternatives: `cargo bench -p haversack-memory [-- TABLE]`.
//!
//! A table is one process in which the methods take turns in shuffled order; its figures are medians of the thread's
//! CPU time. Read ratios, not nanoseconds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod events;
mod iterations;
mod measure;
mod orders;

fn main() {
    // Cargo passes --bench; any other word selects the tables whose names contain it.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let tables: [(&str, fn()); 5] = [
        ("events", events::any),
        ("victims", events::maximum),
        ("shares", iterations::shares),
        ("arrivals", iterations::arrivals),
        ("counts", iterations::counts),
    ];
    for (_, table) in tables.iter().filter(|(name, _)| name.contains(&wanted)) {
        table();
    }
}
