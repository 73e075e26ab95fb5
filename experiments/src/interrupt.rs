//! Ctrl-C and SIGTERM: long work polls for them and stops at a point where no results are lost.
//!
//! A program that does not call [`watch`] is not affected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

use haversack_reports::remove_parts;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// The exit code of a program that was ended by Ctrl-C.
pub const EXIT_CODE: u8 = 130;

static CAME: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Acts as if Ctrl-C had been pressed; for programs that watch for it themselves.
pub fn request() {
    CAME.get_or_init(Default::default).store(true, Ordering::Relaxed);
}

/// Clears the request, once the work that it interrupted has ended.
pub fn forget() {
    if let Some(flag) = CAME.get() {
        flag.store(false, Ordering::Relaxed);
    }
}

/// The interval at which signals are polled.
const LOOK: Duration = Duration::from_millis(10);

/// From now on Ctrl-C ends the program without leaving partial files; for `long` work the first Ctrl-C
/// only sets [`came`].
///
/// # Errors
/// The operating system refuses the signal handler or the thread.
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
