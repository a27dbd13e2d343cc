//! What the name of a test command says about when it runs.

use std::fmt;

/// The prefix of a test command's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prefix {
    /// Exactly one of these, before all others, alone and without faults.
    First,
    /// Repeated, beside other parallel ones and itself.
    ParallelDriver,
    /// Repeated, the only driver while it runs.
    SerialDriver,
    /// Once, the only driver while it runs.
    SingletonDriver,
    /// Whatever drivers run.
    Anytime,
    /// After the workload, when all others were killed; the timeline ends with it.
    Eventually,
    /// After the workload, if all others finished; the timeline ends with these.
    Finally,
    /// No command: a file that commands use.
    Helper,
}

impl Prefix {
    /// All of them.
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

    /// The prefix of a file's name. `None` if it has none of these, or nothing behind it.
    #[must_use]
    pub fn of(file_name: &str) -> Option<Prefix> {
        let is = |prefix: &Prefix| {
            file_name.strip_prefix(prefix.as_str()).is_some_and(|command| !command.is_empty())
        };
        Prefix::ALL.into_iter().find(is)
    }

    /// As it is written, with its underscore.
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

    /// Whether it is one of the three drivers.
    #[must_use]
    pub fn is_driver(self) -> bool {
        self == Prefix::ParallelDriver || self.is_alone()
    }

    /// Whether no driver runs beside it.
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
            assert_eq!(Prefix::of(&format!("{prefix}x")), Some(prefix), "each is found, and only once");
        }
    }
}
