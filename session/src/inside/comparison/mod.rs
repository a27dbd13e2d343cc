//! A comparison of what Everett sees in a guest's memory with what the guest says of itself in `/proc`.
//!
//! Everett's program in a fork of the machine reads `/proc`, and no other process runs on the machine's CPU meanwhile.
//! Everett looks at the machine's memory every [`LOOK_NS`] until the program has read everything. What the guest says must
//! be what Everett saw at one of these instants.
//!
//! - [`fact`]: facts about processes
//! - `told`: what the guest says
//! - `seen`: what Everett sees

pub mod fact;
mod seen;
mod told;

use everett_inspect::Kernel;
use everett_protocol::Exec;

use super::fork::{Fork, ForkError};
use super::frames::Frame;
use super::limits::{PROC_BYTES_MAX, PROC_NS_MAX, SEEN_BYTES_MAX};
use super::program::{Program, Said, install, unexpected};
use fact::Part;
use seen::Seen;
use told::Files;

/// Vtime between two looks at a machine's memory, in nanoseconds.
pub const LOOK_NS: u64 = 500_000;

/// Result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Number of processes that were compared.
    pub processes: u64,
    /// Number of kernel stacks that were compared.
    pub stacks: u64,
    /// Number of threads whose entry into the kernel was compared.
    pub entries: u64,
    /// Number of mappings that were compared.
    pub mappings: u64,
    /// Number of instants at which Everett looked.
    pub looks: u64,
    /// Differences.
    pub differences: Vec<Difference>,
}

/// A fact that the guest states and that Everett did not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The process.
    pub pid: u32,
    /// Part of the facts. `None` if the guest does not mention the process, or if Everett never saw it.
    pub part: Option<Part>,
    /// Facts that the guest states.
    pub told: String,
    /// Facts that Everett saw, at any instant.
    pub seen: Vec<String>,
}

/// Error of a comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The fork or the program in it failed.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The machine's memory cannot be read.
    #[error(transparent)]
    Memory(#[from] everett_inspect::Error),
    /// The caller ended the work.
    #[error("interrupted")]
    Interrupted,
    /// The guest says more than the bound.
    #[error("its files about processes have more than {PROC_BYTES_MAX} bytes")]
    TooLong,
    /// The guest's processes change so much that what Everett sees exceeds the bound.
    #[error("the facts about its processes that Everett saw have more than {SEEN_BYTES_MAX} bytes")]
    TooMuch,
}

/// Compares the processes of a machine of a fork. `go_on` returns false to end the work.
///
/// # Errors
/// Returns an error if the machine's memory cannot be read, if the program in the machine cannot do its work, or if `go_on`
/// returns false.
pub fn compare(
    fork: &mut Fork,
    node: usize,
    kernel: &Kernel,
    go_on: &dyn Fn() -> bool,
) -> Result<Comparison, CompareError> {
    let copy = install(fork, node)?;
    let mut seen = Seen::default();
    seen.look(kernel, fork.timeline().machine(node))?;
    let end_ns = fork.vtime().saturating_add(PROC_NS_MAX);
    // The program runs with all rights, as the superuser of the machine.
    let mut program = Program::start(fork, copy, Exec::new(copy.argv(&["processes"])))?;
    let mut look = |fork: &mut Fork| {
        seen.look(kernel, fork.timeline().machine(node))?;
        if seen.bytes > SEEN_BYTES_MAX { Err(CompareError::TooMuch) } else { Ok(()) }
    };
    let files = told_files(fork, &mut program, end_ns, go_on, &mut look);
    program.give_up(fork);
    Ok(result(&files?, &seen))
}

/// Returns the files of `/proc` that the guest sends. Calls `look` while it has sent none.
fn told_files(
    fork: &mut Fork,
    program: &mut Program,
    end_ns: u64,
    go_on: &dyn Fn() -> bool,
    look: &mut dyn FnMut(&mut Fork) -> Result<(), CompareError>,
) -> Result<Files, CompareError> {
    let mut files = Files::new();
    let mut open: Option<String> = None;
    let mut bytes = 0;
    loop {
        if !go_on() {
            return Err(CompareError::Interrupted);
        }
        if fork.vtime() >= end_ns {
            return Err(ForkError::NoEnd(PROC_NS_MAX).into());
        }
        let until_ns = fork.vtime().saturating_add(LOOK_NS);
        match program.next(fork, until_ns)? {
            Said::Done => return Ok(files),
            Said::Nothing if files.is_empty() => look(fork)?,
            Said::Nothing => {}
            Said::Frame(Frame::ProcFile(path)) => {
                bytes += path.len();
                files.insert(path.clone(), Vec::new());
                open = Some(path);
            }
            Said::Frame(Frame::Content(content)) => {
                bytes += content.len();
                let file = open.as_ref().and_then(|path| files.get_mut(path));
                file.ok_or_else(unexpected)?.extend(content);
            }
            Said::Frame(Frame::End) => open = None,
            Said::Frame(_) => return Err(unexpected().into()),
        }
        if bytes > PROC_BYTES_MAX {
            return Err(CompareError::TooLong);
        }
    }
}

/// Compares what the guest says with what Everett saw. Of processes that began later than the first look, only the existence is
/// compared.
fn result(files: &Files, seen: &Seen) -> Comparison {
    let mut comparison = Comparison { looks: seen.instants, ..Comparison::default() };
    let told = told::processes(files);
    comparison.processes = told.intersection(&seen.first).count() as u64;
    for pid in told.difference(&seen.ever) {
        let told = "it exists".to_owned();
        comparison.differences.push(Difference { pid: *pid, part: None, told, seen: Vec::new() });
    }
    for pid in seen.always.difference(&told) {
        comparison.differences.push(Difference {
            pid: *pid,
            part: None,
            told: String::new(),
            seen: Vec::new(),
        });
    }
    for ((pid, part), fact) in told::facts(files) {
        if !seen.first.contains(&pid) {
            continue;
        }
        match part {
            Part::Stack(_) => comparison.stacks += 1,
            Part::Entry(_) => comparison.entries += 1,
            Part::Mappings => comparison.mappings += fact.lines().count() as u64,
            _ => {}
        }
        let values = seen.facts.get(&(pid, part));
        if values.is_none_or(|values| !values.contains(&fact)) {
            let seen = values.into_iter().flatten().cloned().collect();
            comparison.differences.push(Difference { pid, part: Some(part), told: fact, seen });
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn seen() -> Seen {
        let facts = [(Part::User, ["0", "5"]), (Part::Stack(7), ["", "f+0x1"])];
        let facts = facts.into_iter().map(|(part, values)| {
            ((7, part), values.into_iter().map(str::to_owned).collect::<BTreeSet<String>>())
        });
        Seen {
            facts: facts.collect::<BTreeMap<_, _>>(),
            ever: BTreeSet::from([7, 8, 9]),
            first: BTreeSet::from([7, 8]),
            always: BTreeSet::from([7]),
            instants: 2,
            ..Seen::default()
        }
    }

    fn files(files: &[(&str, &str)]) -> Files {
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn facts_that_were_seen_at_any_instant_are_equal() {
        for uid in ["0", "5"] {
            let files =
                files(&[("7/status", &format!("Uid:\t{uid}\n")), ("7/task/7/stack", "[<0>] f+0x1/0x2\n")]);
            let expected = Comparison { processes: 1, stacks: 1, looks: 2, ..Comparison::default() };
            assert_eq!(result(&files, &seen()), expected);
        }
    }

    #[test]
    fn facts_that_were_not_seen_and_missing_processes_are_differences() {
        let told = files(&[("7/status", "Uid:\t1\n"), ("7/maps", "m\n"), ("9/status", "Uid:\t1\n")]);
        let differences = result(&told, &seen()).differences;
        let all: Vec<_> = differences.iter().map(|it| (it.pid, it.part, &*it.told, it.seen.len())).collect();
        assert_eq!(all, [(7, Some(Part::User), "1", 2), (7, Some(Part::Mappings), "m", 0)]);
        let differences = result(&files(&[("8/status", ""), ("10/status", "")]), &seen()).differences;
        let all: Vec<_> = differences.iter().map(|it| (it.pid, it.part, &*it.told)).collect();
        assert_eq!(all, [(10, None, "it exists"), (7, None, "")]);
    }
}
