//! Seeds: the numbers from which Everett derives streams of random numbers. Seeds are stored, shown and read as plain
//! numbers.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Declares a type for one kind of seed, which is a 64-bit number.
macro_rules! seed {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Returns the seed with this number.
            #[must_use]
            pub const fn new(number: u64) -> $name {
                $name(number)
            }

            /// Returns the number.
            #[must_use]
            pub const fn number(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<$name, ParseIntError> {
                text.parse().map($name)
            }
        }
    };
}

seed! {
    /// Seed of a timeline or of an exploration, as the operator gives it with `--seed`. It determines a timeline's
    /// random numbers once the world is *ready*, i.e. once all services are up.
    Seed
}

seed! {
    /// Seed of the random numbers of a boot. Machines and the wire use the world's boot seed before the timeline
    /// begins. All timelines of a world share this first boot. A machine that restarts in a timeline uses a newly drawn
    /// boot seed. At the next fork of the timeline, the random numbers of the new branch replace the machine's.
    BootSeed
}
