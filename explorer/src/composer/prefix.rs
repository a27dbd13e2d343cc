//! Prefixes of test commands' names. They say when a command runs.

use std::fmt;

/// Prefix of a test command's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prefix {
    /// Exactly one of these runs, before all others, alone and without faults.
    First,
    /// Runs repeatedly, beside parallel drivers, including other runs of itself.
    ParallelDriver,
    /// Runs repeatedly, as the only driver at the time.
    SerialDriver,
    /// Runs once, as the only driver at the time.
    SingletonDriver,
    /// Runs repeatedly, beside any drivers.
    Anytime,
    /// One of these runs after the workload, once all other commands were killed. Then the timeline ends.
    Eventually,
    /// All of these run after the workload, in turn, if all other commands ended by themselves. Then the timeline ends.
    Finally,
    /// Not a command, but a file that commands use.
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

    /// Returns the prefix of a file name. `None` if the name has no known prefix, or consists only of one.
    #[must_use]
    pub fn of(file_name: &str) -> Option<Prefix> {
        let is = |prefix: &Prefix| {
            file_name.strip_prefix(prefix.as_str()).is_some_and(|command| !command.is_empty())
        };
        Prefix::ALL.into_iter().find(is)
    }

    /// Returns the prefix as it is written, with its underscore.
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

    /// Returns true for the three types of drivers.
    #[must_use]
    pub fn is_driver(self) -> bool {
        self == Prefix::ParallelDriver || self.is_alone()
    }

    /// Returns true for drivers beside which no other driver runs.
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
