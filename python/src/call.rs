//! A call from Python: the work is done by a thread of its own while the interpreter is free for others; Ctrl-C ends it, and
//! a panic is an exception.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use haversack::{CommandError, interrupt};
use pyo3::prelude::*;

use crate::error;

/// How often the interpreter is asked whether a signal has come.
const LOOKS: Duration = Duration::from_millis(50);
/// What the thread may put on its stack: as much as the main thread of a program has.
const STACK: usize = 8 << 20;

/// Whether work that Ctrl-C has ended is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterCtrlC {
    /// It comes to an end where nothing is lost, and says how it goes on.
    Wait,
    /// Nobody needs its answer.
    Leave,
}

/// How many calls are under way: what Ctrl-C has left behind is forgotten before the first.
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

/// Does `work` while the interpreter is free.
///
/// # Errors
/// KeyboardInterrupt where Ctrl-C came; a thread that cannot be started, or a panic, as an exception of the package.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    after: AfterCtrlC,
    work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
) -> PyResult<Result<T, CommandError>> {
    let (send, mut ended) = sync_channel(1);
    let call = Call::begin();
    let run = move || {
        let ended = catch_unwind(AssertUnwindSafe(work));
        // Before whoever waits makes the next call.
        drop(call);
        // Nobody listens any more where the call was left.
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
            // Whoever presses Ctrl-C twice does not wait.
            if after == AfterCtrlC::Leave || is_asked_to_end {
                return Err(signal);
            }
            interrupt::request();
            is_asked_to_end = true;
        }
    }
}

/// Waits for an answer without the interpreter.
fn wait<T: Send>(
    py: Python<'_>,
    ended: Receiver<Ended<T>>,
) -> (Result<Ended<T>, RecvTimeoutError>, Receiver<Ended<T>>) {
    py.detach(move || (ended.recv_timeout(LOOKS), ended))
}

/// What a panic says.
fn internal(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("a fault of haversack itself: {text}; please report it with the call that led here")
}
