//! A call from Python: a separate thread does the work while the interpreter is free for others; Ctrl-C ends it, and a
//! panic becomes an exception.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use haversack::{CommandError, interrupt};
use pyo3::prelude::*;

use crate::error;

/// The interval at which the interpreter checks for signals.
const LOOKS: Duration = Duration::from_millis(50);
/// The thread's stack size: as large as the main thread of a program has.
const STACK: usize = 8 << 20;

/// Whether to wait for work that Ctrl-C has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterCtrlC {
    /// It stops where nothing is lost, and reports how to resume.
    Wait,
    /// Its answer is not needed.
    Leave,
}

/// The number of calls in progress: an old request of Ctrl-C is cleared before the first.
static CALLS: Mutex<u32> = Mutex::new(0);

struct Call;

impl Call {
    fn begin() -> Self {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        if *calls == 0 {
            interrupt::forget();
        }
        *calls += 1;
        Self
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        *CALLS.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

type Ended<T> = thread::Result<Result<T, CommandError>>;

/// Does `work` while the interpreter is free for other threads.
///
/// # Errors
/// KeyboardInterrupt after Ctrl-C; a thread that cannot be started, or a panic, as an exception of the package.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    after: AfterCtrlC,
    work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
) -> PyResult<Result<T, CommandError>> {
    let (send, mut ended) = sync_channel(1);
    let call = Call::begin();
    let run = move || {
        let ended = catch_unwind(AssertUnwindSafe(work));
        // Before the waiting caller makes its next call.
        drop(call);
        // Fails if the caller has left; its answer is then not needed.
        let _ = send.send(ended);
    };
    let thread = thread::Builder::new().name("haversack".to_owned()).stack_size(STACK).spawn(run);
    thread.map_err(|reason| error::failed(py, format!("cannot start a thread: {reason}")))?;
    let mut is_asked_to_end = false;
    loop {
        let found;
        (found, ended) = wait(py, ended);
        match found {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(panic)) => return Err(error::failed(py, internal(&*panic))),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(error::failed(py, internal(&"the thread has ended without an answer")));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals() {
            // A second Ctrl-C ends the wait.
            if after == AfterCtrlC::Leave || is_asked_to_end {
                return Err(signal);
            }
            interrupt::request();
            is_asked_to_end = true;
        }
    }
}

/// Waits for an answer with the interpreter released.
fn wait<T: Send>(
    py: Python<'_>,
    ended: Receiver<Ended<T>>,
) -> (Result<Ended<T>, RecvTimeoutError>, Receiver<Ended<T>>) {
    py.detach(move || (ended.recv_timeout(LOOKS), ended))
}

/// The message of a panic.
fn internal(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("a fault of haversack itself: {text}; please report it with the call that led here")
}
