//! Ctrl-C, or the signal to end: long work looks whether it came, and ends where nothing is lost.
//!
//! Nothing is changed for a program that does not call [`watch`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

use haversack_reports::remove_parts;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// The exit code of a program that Ctrl-C has ended.
pub const EXIT_CODE: u8 = 130;

static CAME: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// As if Ctrl-C had come: for a program that watches for it itself.
pub fn request() {
    CAME.get_or_init(Default::default).store(true, Ordering::Relaxed);
}

/// As if Ctrl-C had not come, once what it has ended is over.
pub fn forget() {
    if let Some(flag) = CAME.get() {
        flag.store(false, Ordering::Relaxed);
    }
}

/// How often it is looked for signals.
const LOOK: Duration = Duration::from_millis(10);

/// From now on Ctrl-C ends the program and leaves no part of a file; where work is `long`, the first is for [`came`] to see.
///
/// # Errors
/// An operating system that takes no handler or starts no thread.
pub fn watch(long: bool) -> io::Result<()> {
    if CAME.get().is_some() {
        return Ok(());
    }
    let came = CAME.get_or_init(Default::default);
    let pressed = Arc::new(AtomicBool::new(false));
    flag::register(SIGINT, Arc::clone(&pressed))?;
    flag::register(SIGTERM, Arc::clone(&pressed))?;
    thread::Builder::new().spawn(move || {
        while !pressed.swap(false, Ordering::Relaxed) || long && !came.swap(true, Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        remove_parts();
        low_level::exit(i32::from(EXIT_CODE))
    })?;
    Ok(())
}

/// Whether Ctrl-C has come since [`watch`], or was [`request`]ed.
pub fn came() -> bool {
    CAME.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}
