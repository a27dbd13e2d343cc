//! Paths: a timeline's position in the tree, as the list of forks from the root moment (at which all timelines begin)
//! to the timeline.

use std::fmt;
use std::str::FromStr;

use everett_streams::{Lineage, Seed};
use serde::{Deserialize, Serialize};

/// Maximum number of forks in a path.
pub const FORKS_MAX: usize = 4096;

/// Point at which a branch leaves its parent's timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fork {
    /// Vtime of the fork, in nanoseconds.
    pub vtime_ns: u64,
    /// Number of the branch among the branches that start at the same moment, from 1.
    pub child: u64,
}

/// Forks from the root moment to a timeline. The text form is `VTIME.CHILD/VTIME.CHILD/…`. The root moment's path is
/// empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Path(Vec<Fork>);

/// Reason why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A part of the text is not a fork.
    #[error(
        "\"{0}\" is not a fork: expected a vtime in nanoseconds, a dot and a child's number, e.g. 4500000000.7"
    )]
    Fork(String),
    /// A fork is not later than the fork before it.
    #[error("the fork {1} is not later than the fork before it, {0}")]
    Order(Fork, Fork),
    /// The path has more than [`FORKS_MAX`] forks.
    #[error("more than {FORKS_MAX} forks")]
    TooLong,
}

impl Path {
    /// Returns this path extended by a fork.
    ///
    /// # Errors
    /// Returns an error if the new fork is not later than the path's last fork, if its child number is 0, or if the
    /// path already has [`FORKS_MAX`] forks.
    pub fn child(&self, fork: Fork) -> Result<Path, PathError> {
        let mut path = self.clone();
        path.push(fork)?;
        Ok(path)
    }

    pub(crate) fn push(&mut self, fork: Fork) -> Result<(), PathError> {
        if fork.child == 0 {
            return Err(PathError::Fork(fork.to_string()));
        }
        if let Some(&last) = self.0.last().filter(|last| last.vtime_ns >= fork.vtime_ns) {
            return Err(PathError::Order(last, fork));
        }
        if self.0.len() >= FORKS_MAX {
            return Err(PathError::TooLong);
        }
        self.0.push(fork);
        Ok(())
    }

    /// Returns the lineage of the timeline at the path's end. `seed` is the seed of the root moment. A lineage is the
    /// key from which a timeline's random streams are derived.
    #[must_use]
    pub fn lineage(&self, seed: Seed) -> Lineage {
        self.0.iter().fold(Lineage::new(seed), |lineage, fork| lineage.child(fork.vtime_ns, fork.child))
    }

    /// Returns the forks, starting at the root moment.
    #[must_use]
    pub fn forks(&self) -> &[Fork] {
        &self.0
    }

    /// Returns the path without its last fork, or `None` for the root moment's path.
    #[must_use]
    pub fn parent(&self) -> Option<Path> {
        self.0.split_last().map(|(_, before)| Path(before.to_vec()))
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.vtime_ns, self.child)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fork) in self.0.iter().enumerate() {
            let slash = if i > 0 { "/" } else { "" };
            write!(f, "{slash}{fork}")?;
        }
        Ok(())
    }
}

impl FromStr for Fork {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Fork, PathError> {
        // Each fork has exactly one text form, so signs and leading zeros are refused.
        let number = |digits: &str| {
            let plain =
                digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
            plain.then(|| digits.parse().ok()).flatten()
        };
        let (vtime, child) = text.split_once('.').unwrap_or_default();
        match (number(vtime), number(child)) {
            (Some(vtime_ns), Some(child)) if child > 0 => Ok(Fork { vtime_ns, child }),
            _ => Err(PathError::Fork(text.chars().take(64).collect())),
        }
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        let mut path = Path::default();
        for fork in text.split('/').filter(|_| !text.is_empty()) {
            path.push(fork.parse()?)?;
        }
        Ok(path)
    }
}

impl TryFrom<String> for Path {
    type Error = PathError;

    fn try_from(text: String) -> Result<Path, PathError> {
        text.parse()
    }
}

impl From<Path> for String {
    fn from(path: Path) -> String {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths() -> impl Strategy<Value = Path> {
        let forks = prop::collection::vec((1..u64::MAX / 64, 1..u64::MAX), 0..20);
        forks.prop_map(|forks| {
            let mut vtime_ns = 0;
            forks.into_iter().fold(Path::default(), |path, (more, child)| {
                vtime_ns += more;
                path.child(Fork { vtime_ns, child }).unwrap()
            })
        })
    }

    proptest! {
        #[test]
        fn a_path_survives_a_round_trip_as_text(path in paths()) {
            prop_assert_eq!(&path.to_string().parse::<Path>(), &Ok(path.clone()));
            let json = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Path>(&json).unwrap(), &path);
            let text = path.to_string();
            prop_assert_eq!(text.split('/').filter(|fork| !fork.is_empty()).count(), path.forks().len());
            if let Some(parent) = path.parent() {
                prop_assert_eq!(&parent.child(path.forks()[parent.forks().len()]), &Ok(path));
            }
        }

        /// Any text that parses is printed back unchanged.
        #[test]
        fn a_path_has_exactly_one_text(text in "[0-9./ +-]{0,24}|\\PC{0,8}") {
            if let Ok(path) = text.parse::<Path>() {
                prop_assert_eq!(path.to_string(), text);
            }
        }
    }

    #[test]
    fn invalid_paths_are_refused_with_a_reason() {
        for bad in [
            "7",
            "7.",
            ".1",
            "7.0",
            "7.1/",
            "/7.1",
            "7.1//8.1",
            "07.1",
            "7.01",
            "+7.1",
            "7.1.1",
            "7.18446744073709551616",
        ] {
            assert!(matches!(bad.parse::<Path>(), Err(PathError::Fork(_))), "{bad}");
        }
        let error = "5.1/5.2".parse::<Path>().unwrap_err();
        assert_eq!(error.to_string(), "the fork 5.2 is not later than the fork before it, 5.1");
        let long: Vec<String> = (0..=FORKS_MAX).map(|i| format!("{i}.1")).collect();
        assert_eq!(long.join("/").parse::<Path>(), Err(PathError::TooLong));
        assert_eq!("".parse::<Path>(), Ok(Path::default()));
        assert_eq!(Path::default().parent(), None);
    }
}
