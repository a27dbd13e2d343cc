//! Facts about processes.

use std::collections::BTreeMap;
use std::fmt;

/// Subject of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Name and state of the first thread, and the parent.
    Status,
    /// The user.
    User,
    /// The arguments.
    Command,
    /// IDs and names of all threads.
    Threads,
    /// Functions on the kernel stack of the thread with this ID, except those that sleep.
    Stack(u32),
    /// Program counter and stack pointer with which the thread with this ID entered the kernel.
    Entry(u32),
    /// The mappings.
    Mappings,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Status => f.write_str("name, state, parent"),
            Part::User => f.write_str("user"),
            Part::Command => f.write_str("arguments"),
            Part::Threads => f.write_str("threads"),
            Part::Stack(tid) => write!(f, "kernel stack of {tid}"),
            Part::Entry(tid) => write!(f, "entry of {tid} into the kernel"),
            Part::Mappings => f.write_str("mappings"),
        }
    }
}

/// Facts about the processes of a guest: process, part, and the fact as text.
pub(super) type Facts = BTreeMap<(u32, Part), String>;

/// Returns the name of a thread without the queue that a worker of the kernel works on, because it changes all the time.
pub(super) fn plain_name(name: &str) -> &str {
    match name.starts_with("kworker/") {
        true => name.split(['-', '+']).next().unwrap_or(name),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workers_of_the_kernel_lose_a_part_of_their_names() {
        assert_eq!(plain_name("kworker/0:1-events"), "kworker/0:1");
        assert_eq!(plain_name("kworker/u2:0+flush-254:0"), "kworker/u2:0");
        assert_eq!(plain_name("redis-server"), "redis-server");
    }
}
