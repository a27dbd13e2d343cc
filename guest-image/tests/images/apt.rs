//! Tests that run the host's apt with sources that are expired, badly signed, or missing.
//!
//! The source is a repository with one package (`tests/apt`). The key that signs it has no other use.

use everett_guest_image::apt::sources::{Source, Sources};
use everett_guest_image::apt::{Apt, Error};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A folder with a repository and with the state of an apt that uses it.
struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        let lab = Lab(tempfile::tempdir().unwrap());
        let index = lab.0.path().join("repo/dists/test/main/binary-amd64");
        fs::create_dir_all(&index).unwrap();
        fs::copy(fixture("Packages"), index.join("Packages")).unwrap();
        fs::copy(fixture("key.asc"), lab.0.path().join("key.asc")).unwrap();
        lab.signed("good");
        lab
    }

    /// Replaces the suite's signed index with `InRelease.{how}`.
    fn signed(&self, how: &str) {
        let to = self.0.path().join("repo/dists/test/InRelease");
        fs::copy(fixture(&format!("InRelease.{how}")), to).unwrap();
    }

    fn source(&self, uri: &str) -> Source {
        let key = self.0.path().join("key.asc").display().to_string();
        Source { uri: uri.to_owned(), suites: vec!["test".to_owned()], signed_by: Some(key) }
    }

    /// Updates the lists of the repository, and of the source `other` if it is given. Then resolves the repository's
    /// package.
    fn resolve(&self, other: Option<&str>) -> Result<String, Error> {
        let uri = format!("file:{}", self.0.path().join("repo").display());
        let sources = [Some(uri.as_str()), other].into_iter().flatten().map(|uri| self.source(uri)).collect();
        let sources = Sources { suite: "test".to_owned(), sources, transport: Vec::new() };
        let apt = Apt::open(&self.0.path().join("state"), &sources)?;
        apt.update()?;
        let found = apt.resolve(&["tool".to_owned()], &[])?;
        Ok(found.iter().map(|package| format!("{} {}", package.name, package.version)).collect())
    }
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apt").join(name)
}

fn refused(result: Result<String, Error>) -> String {
    let error = result.expect_err("older lists were used").to_string();
    assert!(error.starts_with("the package lists of test cannot be updated: "), "{error}");
    assert_eq!(error.lines().count(), 1);
    error
}

#[test]
#[cfg_attr(not(has_apt), ignore = "because this host has no apt-get, or neither gpgv nor sqv")]
fn older_lists_are_never_used() {
    let lab = Lab::new();
    assert_eq!(lab.resolve(None).unwrap(), "tool 1.0-1");

    lab.signed("altered");
    // gpgv and sqv word the message differently, but it always names the signed file.
    let error = refused(lab.resolve(None));
    assert!(error.contains("InRelease"), "{error}");
    lab.signed("expired");
    assert!(refused(lab.resolve(None)).contains("is expired"));
    lab.signed("good");
    assert_eq!(lab.resolve(None).unwrap(), "tool 1.0-1");

    // Port 9 of this host has no server: the servers of other tests get only ports from 1024 on.
    assert!(refused(lab.resolve(Some("http://127.0.0.1:9/debian"))).contains("127.0.0.1:9"));
    fs::remove_dir_all(lab.0.path().join("repo/dists")).unwrap();
    refused(lab.resolve(None));
}

#[test]
#[cfg_attr(not(has_apt), ignore = "because this host has no apt-get, or neither gpgv nor sqv")]
fn a_suite_without_a_valid_signature_has_no_packages() {
    let lab = Lab::new();
    lab.signed("altered");
    refused(lab.resolve(None));
}
