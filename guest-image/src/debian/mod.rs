//! Reads Debian packages, and unpacks a set of them into a tree (a filesystem in memory) as dpkg would.
//!
//! - [`ar`], [`package`]: read the file of one package (deb(5)).
//! - [`control`]: parses the control fields of a package.
//! - [`version`]: compares versions.
//! - [`unpack`]: unpacks packages into a tree, with files, owners, hard links and merged `/usr`.
//! - [`database`]: writes dpkg's records of unpacked packages. `dpkg --configure` in the guest continues the
//!   installation from these records.
//! - [`order`]: decides in which order preinst scripts run and packages are configured.
//!
//! Not here: the choice of packages ([`crate::apt`]), their download without apt ([`crate::mirror`]), and their
//! configuration, which the guest does ([`crate::configure`]).

pub mod ar;
pub mod control;
pub mod database;
pub(crate) mod order;
pub mod package;
pub mod unpack;
pub mod version;

use everett_input::file::Reason;

/// Reason why a package cannot be read or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The package's file cannot be read.
    #[error("cannot read the package {path}")]
    Read {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: Reason,
    },
    /// The file is not a package, or is damaged.
    #[error("{path} is not a Debian package: {problem}")]
    Format {
        /// Path of the file.
        path: String,
        /// Description of the defect.
        problem: String,
    },
    /// The package is for another architecture.
    #[error("the package {package} is for {architecture}, and machines are amd64")]
    Architecture {
        /// Name of the package.
        package: String,
        /// Architecture of the package.
        architecture: String,
    },
    /// The tree refuses a file of the package.
    #[error("the package {package} cannot be unpacked")]
    Tree {
        /// Name of the package.
        package: String,
        /// Cause of the failure.
        source: crate::archive::Error,
    },
    /// The tree refuses a record of dpkg.
    #[error("cannot write dpkg's records")]
    Database(#[from] crate::tree::Error),
}

#[cfg(test)]
pub(crate) mod tests;
