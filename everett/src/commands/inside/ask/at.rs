//! Thread, node and vtime, as all questions print them.

use std::fmt;

use everett_inspect::current::Current;
use serde::Serialize;

/// Thread in a line of `--json`. Its text is the name with both IDs.
#[derive(Serialize)]
pub(super) struct Thread<'a> {
    pid: u32,
    tid: u32,
    process: &'a str,
}

impl<'a> Thread<'a> {
    pub(super) fn of(thread: &'a Current) -> Thread<'a> {
        Thread { pid: thread.pid, tid: thread.tid, process: &thread.process }
    }
}

impl fmt::Display for Thread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.process, self.pid, self.tid)
    }
}

/// Thread, node and vtime in a line of `--json`.
#[derive(Serialize)]
pub(super) struct At<'a> {
    vtime_ns: u64,
    node: &'a str,
    #[serde(flatten)]
    thread: Thread<'a>,
}

impl<'a> At<'a> {
    /// Returns the fields for a thread of the node with this number.
    pub(super) fn of(nodes: &'a [String], node: usize, vtime_ns: u64, thread: &'a Current) -> At<'a> {
        let node = nodes.get(node).map_or("?", String::as_str);
        At { vtime_ns, node, thread: Thread::of(thread) }
    }

    /// Returns the thread as text, with its node if the world has several.
    pub(super) fn who(&self, nodes: &[String]) -> String {
        let node = if nodes.len() > 1 { format!("{}/", self.node) } else { String::new() };
        format!("{node}{}", self.thread)
    }
}
