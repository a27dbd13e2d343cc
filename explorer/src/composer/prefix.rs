//! Prefixes of the names of test commands. Test commands are the executables of a test template. The prefix determines
//! when a command may run.

use std::fmt;

/// Prefix of a test command's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prefix {
    /// If there are `first_` commands, exactly one runs, before all other commands and without faults.
    First,
    /// Runs repeatedly, in parallel with other parallel drivers and with other runs of the same command.
    ParallelDriver,
    /// Runs repeatedly. No other driver runs at the same time.
    SerialDriver,
    /// Runs once. No other driver runs at the same time.
    SingletonDriver,
    /// Runs repeatedly, in parallel with any drivers.
    Anytime,
    /// If there are `eventually_` commands and no `finally_` command runs, one `eventually_` command runs after the
    /// workload, once all other commands have ended or were killed. Then the timeline ends.
    Eventually,
    /// All `finally_` commands run after the workload, one after the other, if all commands before them ended by
    /// themselves. Then the timeline ends. If there are `eventually_` commands, too, each timeline draws at random
    /// which of the two types follows the workload.
    Finally,
    /// A file that commands use, and not a command.
    Helper,
}

impl Prefix {
    /// All prefixes.
    pub const ALL: [Prefix; 8] = [
        Prefix::First,
        Prefix::ParallelDriver,
        Prefix::SerialDriver,
        Prefix::SingletonDriver,
        Prefix::Anytime,
        Prefix::Eventually,
        Prefix::Finally,
        Prefix::Helper,
    ];

    /// Returns the prefix of a file name. Returns `None` if the name has no known prefix, or nothing after the prefix.
    #[must_use]
    pub fn of(file_name: &str) -> Option<Prefix> {
        let is = |prefix: &Prefix| {
            file_name.strip_prefix(prefix.as_str()).is_some_and(|command| !command.is_empty())
        };
        Prefix::ALL.into_iter().find(is)
    }

    /// Returns the prefix with its final underscore, as it appears in file names.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Prefix::First => "first_",
            Prefix::ParallelDriver => "parallel_driver_",
            Prefix::SerialDriver => "serial_driver_",
            Prefix::SingletonDriver => "singleton_driver_",
            Prefix::Anytime => "anytime_",
            Prefix::Eventually => "eventually_",
            Prefix::Finally => "finally_",
            Prefix::Helper => "helper_",
        }
    }

    /// Returns true for parallel, serial and singleton drivers.
    #[must_use]
    pub fn is_driver(self) -> bool {
        self == Prefix::ParallelDriver || self.is_alone()
    }

    /// Returns true for drivers that run while no other driver runs.
    pub(super) fn is_alone(self) -> bool {
        matches!(self, Prefix::SerialDriver | Prefix::SingletonDriver)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_prefixes() {
        for (name, prefix) in [
            ("first_schema.py", Prefix::First),
            ("parallel_driver_write.sh", Prefix::ParallelDriver),
            ("serial_driver_x", Prefix::SerialDriver),
            ("singleton_driver_all tests", Prefix::SingletonDriver),
            ("anytime_first_x", Prefix::Anytime),
            ("eventually__", Prefix::Eventually),
            ("finally_é", Prefix::Finally),
            ("helper_lib.so", Prefix::Helper),
        ] {
            assert_eq!(Prefix::of(name), Some(prefix), "{name}");
        }
        for name in
            ["", "first", "first_", "First_x", "driver_x", "parallel_x", "parallel_driver.sh", " first_x"]
        {
            assert_eq!(Prefix::of(name), None, "{name}");
        }
        for prefix in Prefix::ALL {
            assert_eq!(
                Prefix::of(&format!("{prefix}x")),
                Some(prefix),
                "{prefix} is not mistaken for another prefix"
            );
        }
    }
}
