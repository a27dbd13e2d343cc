//! Puts an archive of kernel packages, signed by the test's key, on the test's server.

use std::io::Write as _;

use everett_remote_client::Online;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::server::{Answer, Server};
use super::signing::{Recipe, Signer};
use crate::apt::sources::{Source, Sources};
use crate::mirror::{Error, Mirror};

/// The host's clock in these tests: 2027-01-15 08:00:00 UTC.
pub(crate) const NOW_S: u64 = 1_800_000_000;

/// Path of the suite's index on the server, and path of the folder with the list of packages.
pub(super) const INDEX: &str = "dists/test/InRelease";
pub(super) const FOLDER: &str = "dists/test/main/binary-amd64";

/// Date and expiry of an index.
#[derive(Clone, Copy)]
pub(super) struct Dates {
    pub(super) date: &'static str,
    pub(super) until: Option<&'static str>,
}

impl Default for Dates {
    fn default() -> Dates {
        Dates { date: "Fri, 15 Jan 2027 07:00:00 UTC", until: Some("Fri, 22 Jan 2027 07:00:00 UTC") }
    }
}

/// An archive on a server, and a folder for the state of a mirror that reads it.
pub(super) struct Lab {
    pub(super) folder: TempDir,
    pub(super) server: Server,
    pub(super) signer: Signer,
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = liblzma::write::XzEncoder::new(Vec::new(), 1);
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Returns the entry of a package in a list. `content` is the content of the package's file.
pub(super) fn entry(name: &str, version: &str, depends: &str, content: &[u8]) -> String {
    format!(
        "Package: {name}\nArchitecture: amd64\nVersion: {version}\nDepends: {depends}\nFilename: pool/{name}_{version}.deb\n\
         Size: {}\nSHA256: {}\n\n",
        content.len(),
        sha256(content)
    )
}

/// Content of the newest kernel package's file.
pub(super) const KERNEL: &[u8] = b"the newest kernel";

/// Returns a list with the packages of two kernels.
pub(super) fn list() -> String {
    [
        entry("linux-image-6.1.0-9-cloud-amd64", "6.1.9-1", "kmod", b"an old kernel"),
        entry("linux-image-6.1.0-10-cloud-amd64", "6.1.10-1", "kmod", KERNEL),
        entry("linux-image-cloud-amd64", "6.1.10-1", "linux-image-6.1.0-10-cloud-amd64 (= 6.1.10-1)", b""),
    ]
    .concat()
}

/// Returns the text of an index that refers to a list and to its compressed form.
pub(super) fn index(dates: Dates, list: &[u8], packed: &[u8]) -> String {
    let until = dates.until.map(|until| format!("Valid-Until: {until}\n")).unwrap_or_default();
    format!(
        "Origin: Test\nSuite: test\nCodename: test\nDate: {}\n{until}Acquire-By-Hash: yes\nSHA256:\n \
         {} {} main/binary-amd64/Packages\n {} {} main/binary-amd64/Packages.xz\n",
        dates.date,
        sha256(list),
        list.len(),
        sha256(packed),
        packed.len()
    )
}

impl Lab {
    /// Makes an archive without any fault.
    pub(super) fn new() -> Lab {
        let lab = Lab {
            folder: tempfile::tempdir().unwrap(),
            server: Server::start(),
            signer: Signer::new(Recipe::new(1)),
        };
        std::fs::write(lab.folder.path().join("keys.pgp"), lab.signer.file()).unwrap();
        lab.publish(Dates::default(), &list());
        lab.server.put("pool/linux-image-6.1.0-10-cloud-amd64_6.1.10-1.deb", Answer::File(KERNEL.to_vec()));
        lab
    }

    /// Puts a list on the server, with a new index.
    pub(super) fn publish(&self, dates: Dates, list: &str) {
        let packed = xz(list.as_bytes());
        let text = index(dates, list.as_bytes(), &packed);
        self.server.put(INDEX, Answer::File(self.signer.sign(&text, NOW_S - 3_000)));
        self.server.put(&format!("{FOLDER}/by-hash/SHA256/{}", sha256(&packed)), Answer::File(packed));
    }

    /// Puts a signed index with this text on the server, and changes nothing else.
    pub(super) fn publish_index(&self, text: &str) {
        self.server.put(INDEX, Answer::File(self.signer.sign(text, NOW_S - 3_000)));
    }

    pub(super) fn sources(&self, uri: &str, with_keys: bool) -> Sources {
        let keys = self.folder.path().join("keys.pgp").display().to_string();
        let signed_by = with_keys.then_some(keys);
        let source = Source { uri: uri.to_owned(), suites: vec!["test".to_owned()], signed_by };
        Sources { suite: "test".to_owned(), sources: vec![source], transport: Vec::new() }
    }

    /// Opens a mirror and updates its lists.
    pub(super) fn mirror(&self) -> Result<Mirror<'static>, Error> {
        self.mirror_of(&self.sources(&self.server.address, true), NOW_S)
    }

    pub(super) fn mirror_of(&self, sources: &Sources, now_s: u64) -> Result<Mirror<'static>, Error> {
        let mut mirror = Mirror::open(&self.folder.path().join("state"), sources, &Online)?;
        mirror.update(sources, now_s)?;
        Ok(mirror)
    }

    /// Downloads the newest kernel package. Returns the content of its file.
    pub(super) fn kernel(&self, mirror: &mut Mirror<'_>) -> Result<Vec<u8>, Error> {
        let chosen = mirror.kernel("linux-image-cloud-amd64", &[])?;
        let remotes = mirror.locate(&[chosen])?;
        mirror.download(&remotes, self.folder.path(), &mut |_| ())?;
        Ok(std::fs::read(self.folder.path().join(&remotes[0].file)).unwrap())
    }

    /// Tries to fetch the newest kernel. Returns the error, and checks that it is one line.
    pub(super) fn refusal(&self) -> String {
        let result = self.mirror().and_then(|mut mirror| self.kernel(&mut mirror));
        let error = result.expect_err("it was not refused").to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    }
}
