//! Calls that can take long. They run on a thread of their own, without the global interpreter lock, and Ctrl-C ends them.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use everett_host::interrupt::Interrupt;
use everett_remote_client::Online;
use everett_scripting::error::Error;
use everett_scripting::host::Host;
use everett_session::output::progress::Quiet;
use pyo3::prelude::*;

use crate::errors::{EverettError, exception};

/// Host time between two looks at the signals.
const LOOK: Duration = Duration::from_millis(50);
/// Size of the thread's stack, in bytes: that of a program's first thread on Linux.
const STACK_BYTES: usize = 8 << 20;

/// Does `work` on another thread. A signal handler of Python that raises an exception, such as that of Ctrl-C, ends it.
pub(crate) fn long<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Host<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let interrupt = Interrupt::default();
    py.detach(|| {
        thread::scope(|scope| {
            let (done, wait) = channel::<()>();
            let flag = interrupt.clone();
            let body = move || {
                let host = Host::new(&Online, &Quiet, flag);
                let came = work(&host);
                drop(done);
                came
            };
            let worker = thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, body)
                .map_err(|error| EverettError::new_err(format!("no thread can be started: {error}")))?;
            let mut signal = None;
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(LOOK) {
                if let Err(raised) = Python::attach(|py| py.check_signals()) {
                    interrupt.raise();
                    signal = Some(raised);
                }
            }
            match (worker.join(), signal) {
                // The exception takes the place of the result.
                (Ok(_), Some(raised)) => Err(raised),
                (Ok(came), None) => came.map_err(exception),
                (Err(_), _) => Err(EverettError::new_err("the call panicked, which is a defect of Everett")),
            }
        })
    })
}
