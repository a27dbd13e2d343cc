//! Copies of Everett's program for shells and files in the machines of a fork.

use std::collections::BTreeSet;

use everett_guest_image::inside::INSIDE_PATH;

/// A copy of the program. A file cannot be written while it runs, so each program that runs has its own copy. A caller that
/// gives up leaves a program that may still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProgramCopy {
    node: usize,
    number: u32,
}

impl ProgramCopy {
    /// Returns the first copy on a node that does not run.
    pub(super) fn first_besides(node: usize, running: &BTreeSet<ProgramCopy>) -> ProgramCopy {
        let mut copy = ProgramCopy { node, number: 0 };
        while running.contains(&copy) {
            copy.number += 1;
        }
        copy
    }

    pub(super) fn node(self) -> usize {
        self.node
    }

    pub(super) fn path(self) -> String {
        match self.number {
            0 => INSIDE_PATH.to_owned(),
            number => format!("{INSIDE_PATH}-{number}"),
        }
    }

    /// Returns the command line of the program with these arguments.
    pub(super) fn argv(self, arguments: &[&str]) -> Vec<String> {
        [self.path()].into_iter().chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_that_runs_has_its_own_copy() {
        let mut running = BTreeSet::new();
        let first = ProgramCopy::first_besides(1, &running);
        running.insert(first);
        let second = ProgramCopy::first_besides(1, &running);
        running.insert(second);
        assert_eq!((first.path(), second.path()), (INSIDE_PATH.to_owned(), format!("{INSIDE_PATH}-1")));
        assert_eq!(ProgramCopy::first_besides(0, &running).path(), INSIDE_PATH);
        running.remove(&first);
        assert_eq!(ProgramCopy::first_besides(1, &running), first);
    }
}
