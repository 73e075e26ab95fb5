//! The discrete-event engine: time, events, random streams and shared resources.
//!
//! ```text
//!   schedule_at, cancel           pop: (time, event)
//!  ────────────────────▶ EventQueue ────────────────▶ the simulation ◀── Stream: random numbers by name
//!           ▲            heap, ladder                  │        ▲
//!           │                                   insert │        │ advance: what completed
//!           └──────────── next_completion ──────── SharedBandwidth
//! ```
//!
//! * [`EventQueue`] orders pending events by integer time and then by order of scheduling, with
//!   handles to cancel events.
//! * [`Stream`] gives each purpose of each component its own random numbers.
//! * [`SharedBandwidth`] is a resource. It is independent of the event queue: a simulation inserts work, schedules one
//!   event at the time of [`SharedBandwidth::next_completion`], and then collects the completed work with
//!   [`SharedBandwidth::advance`].
//!
//! A run is single-threaded and bit-for-bit repeatable: times and amounts of work are integers, and
//! no order depends on an address, a hash or a rounded number. Nothing here knows devices, networks
//! or policies.
//!
//! ```
//! use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
//! use haversack_engine::{EventHandle, EventQueue, ResourceError, SharedBandwidth};
//!
//! enum Event {
//!     Issue(&'static str, Bytes),
//!     TransferDone,
//! }
//!
//! let mut queue = EventQueue::new();
//! let mut dram = SharedBandwidth::new(BytesPerSecond(10e9))?;
//! let mut prediction: Option<EventHandle> = None;
//! let mut finished = Vec::new();
//!
//! queue.schedule_in(Nanos(0), Event::Issue("convolution", Bytes(3_000)));
//! queue.schedule_in(Nanos(100), Event::Issue("swap", Bytes(1_000)));
//! queue.run(|queue, now, event| {
//!     match event {
//!         Event::Issue(name, volume) => {
//!             dram.insert(now, volume, None, name)?;
//!         }
//!         Event::TransferDone => {
//!             while let Some(done) = dram.advance(now)? {
//!                 finished.push((done.time, done.item));
//!             }
//!         }
//!     }
//!     // One live prediction a resource: the old one is taken back, fired or not.
//!     if let Some(handle) = prediction.take() {
//!         queue.cancel(handle);
//!     }
//!     if let Some(due) = dram.next_completion() {
//!         prediction = queue.schedule_at(due, Event::TransferDone).ok();
//!     }
//!     Ok::<(), ResourceError>(())
//! })?;
//! // Alone at 10 bytes a nanosecond, the convolution moves 1,000 bytes in 100 ns. Then both run at 5:
//! // the swap ends after 200 ns more, and the convolution's last 1,000 bytes take 100 ns alone.
//! assert_eq!(finished, [(Nanos(300), "swap"), (Nanos(400), "convolution")]);
//! # Ok::<(), ResourceError>(())
//! ```

mod agenda;
mod queue;
pub mod resource;
mod slots;

pub use haversack_devices::stream::Stream;
pub use queue::{EventHandle, EventQueue, ScheduleError};
pub use resource::{Cancelled, Completion, FlowId, ResourceError, SharedBandwidth};
