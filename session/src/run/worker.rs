//! Worker threads whose panics become errors in the thread that joins them.

use std::any::Any;
use std::thread::ScopedJoinHandle;

use anyhow::anyhow;

/// Joins a worker thread and returns its result. A panic becomes an error with the panic's text.
pub(crate) fn joined<T>(worker: ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    worker.join().unwrap_or_else(|panic| Err(anyhow!("a worker has panicked: {}", text(&*panic))))
}

/// Returns the text of a panic.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
