//! Ctrl-C: long work looks whether it came, and ends where nothing is lost.
//!
//! Nothing is changed for a program that does not call [`watch`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

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

/// From now on the first Ctrl-C is for [`came`] to see, and the second ends the program at once.
///
/// # Errors
/// An operating system that takes no handler.
pub fn watch() -> io::Result<()> {
    if CAME.get().is_none() {
        let flag = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(SIGINT, i32::from(EXIT_CODE), Arc::clone(&flag))?;
        flag::register(SIGINT, Arc::clone(&flag))?;
        CAME.get_or_init(|| flag);
    }
    Ok(())
}

/// Whether Ctrl-C has come since [`watch`], or was [`request`]ed.
pub fn came() -> bool {
    CAME.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}
