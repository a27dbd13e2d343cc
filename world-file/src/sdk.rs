//! Reads the table `[sdk]`: whether guests get the SDK, and how long Everett waits until a program reports that its
//! setup is complete.

use everett_input::units;
use serde::Serialize;

use super::cursor::Table;
use super::error::Error;

/// Default of [`Sdk::setup_timeout_ns`], in nanoseconds of vtime.
const SETUP_TIMEOUT_NS_DEFAULT: u64 = 60_000_000_000;
/// Maximum of [`Sdk::setup_timeout_ns`], in nanoseconds of vtime: ten minutes, the time limit of a boot.
const SETUP_TIMEOUT_NS_MAX: u64 = 600_000_000_000;

/// Settings of the SDK in a world's guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sdk {
    /// True if a program must report through the SDK that the setup is complete, before the world is ready. False if
    /// the world is ready as soon as its services are.
    pub setup: bool,
    /// Time after which the boot fails if all services are ready but no program has reported a complete setup, in
    /// nanoseconds of vtime.
    pub setup_timeout_ns: u64,
}

pub(super) fn read(table: &Table<'_>) -> Result<Sdk, Error> {
    table.only(&["setup", "setup_timeout"], &[])?;
    let setup = table.get("setup").map(|item| item.bool()).transpose()?.unwrap_or(true);
    let setup_timeout_ns = match table.get("setup_timeout") {
        None => SETUP_TIMEOUT_NS_DEFAULT,
        Some(item) if !setup => {
            return Err(item.error("nothing is waited for, because \"setup\" is false"));
        }
        Some(item) => {
            let ns = item.duration_ns()?;
            if !(1..=SETUP_TIMEOUT_NS_MAX).contains(&ns) {
                let most = units::show_duration_ns(SETUP_TIMEOUT_NS_MAX);
                return Err(item.error(format!("more than 0 and at most {most}")));
            }
            ns
        }
    };
    Ok(Sdk { setup, setup_timeout_ns })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{World, parse};
    use super::{SETUP_TIMEOUT_NS_DEFAULT, Sdk};

    fn world(sdk: &str) -> Result<World, String> {
        let text = format!("{sdk}\n[[node]]\nname = \"a\"\n");
        parse(&text, Path::new("w.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn worlds_without_the_table_are_as_before() {
        let plain = world("").unwrap();
        assert_eq!(plain.sdk, None);
        assert!(!serde_json::to_string(&plain).unwrap().contains("sdk"));
    }

    #[test]
    fn setup_is_waited_for_unless_the_world_says_otherwise() {
        let sdk = |text: &str| world(text).unwrap().sdk.unwrap();
        let default = Sdk { setup: true, setup_timeout_ns: SETUP_TIMEOUT_NS_DEFAULT };
        assert_eq!(sdk("[sdk]"), default);
        assert_eq!(sdk("[sdk]\nsetup = false"), Sdk { setup: false, ..default });
        assert_eq!(sdk("[sdk]\nsetup_timeout = \"5s\"").setup_timeout_ns, 5_000_000_000);
    }

    #[test]
    fn bad_values_are_named() {
        for (text, what) in [
            ("[sdk]\nsetup = 1", "w.toml:2: sdk.setup: "),
            ("[sdk]\nready = true", "w.toml:2: "),
            ("[sdk]\nsetup_timeout = \"0s\"", "w.toml:2: sdk.setup_timeout: more than 0 and at most 600 s"),
            ("[sdk]\nsetup_timeout = \"11m\"", "w.toml:2: sdk.setup_timeout: more than 0 and at most 600 s"),
            (
                "[sdk]\nsetup = false\nsetup_timeout = \"1s\"",
                "w.toml:3: sdk.setup_timeout: nothing is waited for",
            ),
            ("sdk = true", "w.toml:1: sdk: "),
        ] {
            let error = world(text).unwrap_err();
            assert!(error.starts_with(what), "{error}");
        }
    }
}
