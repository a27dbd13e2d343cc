//! Threads that work for one that waits: a panic of theirs is an error of its.

use std::any::Any;
use std::thread::ScopedJoinHandle;

use anyhow::anyhow;

/// What a worker's thread came to. A panic is an error with its text, for whoever waits to tell as any other.
pub(crate) fn joined<T>(worker: ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    worker.join().unwrap_or_else(|panic| Err(anyhow!("a worker has panicked: {}", text(&*panic))))
}

/// What `panic!` was given.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}
