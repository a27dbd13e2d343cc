//! Debian packages: reading them, and unpacking a set of them into a tree as dpkg would.
//!
//! - [`ar`], [`package`]: the format of one package (deb(5)).
//! - [`control`]: its control fields.
//! - [`unpack`]: a set of packages into a tree: files, owners, hard links, merged `/usr`.
//! - [`database`]: dpkg's own records of them, such that `dpkg --configure -a` in the guest goes on where an
//!   installation would.
//!
//! What is not here: the choice of packages and where they come from ([`crate::apt`]); configuring them, which the
//! guest does ([`crate::configure`]).

pub mod ar;
pub mod control;
pub mod database;
pub mod package;
pub mod unpack;

use std::io;

/// Why a package cannot be read or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its file cannot be read.
    #[error("cannot read the package {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Its file is missing, or no file.
    #[error("cannot read the package {0}")]
    File(#[from] everett_input::file::Error),
    /// It is not a package, or damaged.
    #[error("{path} is not a Debian package: {problem}")]
    Format {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// It is for another architecture.
    #[error("the package {package} is for {architecture}, and machines are amd64")]
    Architecture {
        /// The package.
        package: String,
        /// Its architecture.
        architecture: String,
    },
    /// One of its files cannot be put into the tree.
    #[error("the package {package} cannot be unpacked: {source}")]
    Tree {
        /// The package.
        package: String,
        /// Why.
        source: crate::archive::Error,
    },
    /// A record cannot be put into the tree.
    #[error("cannot write dpkg's records: {0}")]
    Database(#[from] crate::tree::Error),
}

#[cfg(test)]
mod tests;
