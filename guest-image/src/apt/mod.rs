//! Resolves and downloads Debian packages through the host's `apt-get`, with a state folder that belongs to Everett.
//!
//! Everett neither changes nor needs the host's apt state. The package lists, the cache, the list of installed packages
//! and the preferences are in Everett's folder. Everett needs write access only to this folder, and installs nothing.
//! From the host's configuration, Everett uses only the mirrors and the settings to reach them ([`sources`]: addresses,
//! keys, proxies).
//!
//! Not here: packages themselves ([`crate::debian`]) and the versions in a lock ([`crate::lock`]).

mod answers;
mod archive_file;
pub mod sources;

pub(crate) use archive_file::{ArchiveFile, is_path};

use answers::{complaint, failed_source, inst_lines, uri_lines};
use sources::Sources;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

/// Architecture of all machines.
pub const ARCHITECTURE: &str = "amd64";

/// Path of apt's program that fetches files by address.
const HELPER: &str = "/usr/lib/apt/apt-helper";

/// Reason why packages cannot be obtained.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host has no apt.
    #[error(
        "{program} is not on this host, and only apt resolves the dependencies of Debian packages: install apt, take a \
         world.lock from a host that has it, or give each node a container image or the world a root (image.rootfs)"
    )]
    NoApt {
        /// Name of the missing program.
        program: &'static str,
    },
    /// The suite has no package of this name.
    #[error("there is no package {package} in {suite}")]
    Unknown {
        /// Name of the package.
        package: String,
        /// Name of the suite.
        suite: String,
    },
    /// The package exists only for another architecture.
    #[error("the package {package} is for {architecture}, and machines are {ARCHITECTURE}")]
    Architecture {
        /// Name of the package.
        package: String,
        /// Architecture of the package.
        architecture: String,
    },
    /// The mirror no longer has the locked version.
    #[error(
        "{package} {version} is not in {suite} any more: delete world.lock for today's versions, or set `mirror` to a \
         snapshot that has it"
    )]
    Gone {
        /// Name of the package.
        package: String,
        /// Version in the lock.
        version: String,
        /// Name of the suite.
        suite: String,
    },
    /// The mirror cannot be reached.
    #[error("cannot reach the package mirror: {reason}")]
    Network {
        /// Message of apt.
        reason: String,
    },
    /// The package lists could not be updated.
    #[error("the package lists of {suite} cannot be updated: {reason}")]
    Lists {
        /// Name of the suite.
        suite: String,
        /// Message of apt.
        reason: String,
    },
    /// No disk space is left for packages.
    #[error("no space left in {path}")]
    NoSpace {
        /// Path on the full disk.
        path: String,
    },
    /// Any other error of apt.
    #[error("apt-get {action}: {reason}")]
    Apt {
        /// Subcommand of apt that failed, for example `install`.
        action: &'static str,
        /// Message of apt.
        reason: String,
    },
    /// A file in the state folder cannot be read or written.
    #[error("cannot use {path}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: io::Error,
    },
}

/// Name and version of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exact {
    /// Name of the package.
    pub name: String,
    /// Version in Debian's form (deb-version(7)), including the epoch.
    pub version: String,
}

/// A package on a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Name and version.
    pub package: Exact,
    /// Name under which apt saves the package's file.
    pub file: String,
    /// Path of the file below the base address of its archive. `None` if apt's address for the file is not
    /// below the base address of any source, or if the rest of the address is not a valid path.
    pub path: Option<String>,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// The host's apt, with a state folder that belongs to Everett.
#[derive(Debug)]
pub struct Apt {
    folder: PathBuf,
    sources: Sources,
    /// Lock of the state folder, held for the life of this value: only one process at a time may use the folder.
    _lock: File,
}

impl Apt {
    /// True if the host has apt.
    #[must_use]
    pub fn is_on_host() -> bool {
        let mut command = Command::new("apt-get");
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok()
    }

    /// Opens the state in `folder` for packages from these sources. Waits while another process uses the folder.
    ///
    /// # Errors
    /// Returns an error if a file in the folder cannot be created, written or locked.
    pub fn open(folder: &Path, sources: &Sources) -> Result<Self, Error> {
        for part in ["lists/partial", "archives/partial", "sources.d"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(file_error(&path))?;
        }
        let path = folder.join("everett.lock");
        let lock = File::create(&path).map_err(file_error(&path))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| file_error(&path)(error.into()))?;
        let apt = Apt { folder: folder.to_path_buf(), sources: sources.clone(), _lock: lock };
        apt.write("status", "")?;
        apt.write("preferences", "")?;
        apt.write("sources.d/everett.sources", &sources.to_string())?;
        apt.write("apt.conf", &configuration(folder, &sources.transport))?;
        Ok(apt)
    }

    /// Fetches the package lists of every source. If a list cannot be fetched, the call fails and older lists are not
    /// used.
    ///
    /// # Errors
    /// Returns an error if a source cannot be reached, has expired, or is not signed by its key, or if no source has a
    /// list of packages.
    pub fn update(&self) -> Result<(), Error> {
        let lists = |reason: String| Error::Lists { suite: self.suite(), reason };
        let output = self.run("apt-get", "update", ["update"]).map_err(|error| match error {
            Error::Network { reason } | Error::Apt { reason, .. } => lists(reason),
            error => error,
        })?;
        // apt before 2.1.15 does not know APT::Update::Error-Mode: it warns, and continues with older lists.
        if let Some(failure) = failed_source(&output.stderr) {
            return Err(lists(failure));
        }
        let folder = self.folder.join("lists");
        let entries = fs::read_dir(&folder).map_err(file_error(&folder))?;
        let is_index = |name: &OsStr| name.to_string_lossy().contains("_Packages");
        if entries.flatten().any(|entry| is_index(&entry.file_name())) {
            return Ok(());
        }
        Err(lists(String::from("none of its sources has an index of packages")))
    }

    /// Returns the packages with these names and all their dependencies, in the order in which apt would unpack them.
    /// `pins` are preferred versions. A name may be an apt pattern.
    ///
    /// # Errors
    /// Returns an error if a package is unknown, is for another architecture, or cannot be installed.
    pub fn resolve(&self, packages: &[String], pins: &[Exact]) -> Result<Vec<Exact>, Error> {
        let pins: String = pins
            .iter()
            .map(|Exact { name, version }| {
                format!("Package: {name}\nPin: version {version}\nPin-Priority: 1001\n\n")
            })
            .collect();
        self.write("preferences", &pins)?;
        let fixed = ["--simulate", "--no-install-recommends", "install"].into_iter();
        let output = self.run("apt-get", "install", fixed.chain(packages.iter().map(String::as_str)));
        self.write("preferences", "")?;
        let mut resolved = Vec::new();
        for (package, architecture) in inst_lines(&output?.stdout) {
            self.check_architecture(&package.name, &architecture)?;
            resolved.push(package);
        }
        if resolved.is_empty() {
            let reason = String::from("it would install nothing");
            return Err(Error::Apt { action: "install", reason });
        }
        Ok(resolved)
    }

    /// Finds the file of each package on the mirror, and the file's digest.
    ///
    /// # Errors
    /// Returns an error if the mirror does not have one of the versions.
    pub fn locate(&self, packages: &[Exact]) -> Result<Vec<Remote>, Error> {
        let names: Vec<String> =
            packages.iter().map(|package| format!("{}={}", package.name, package.version)).collect();
        let fixed = ["download", "--print-uris"].into_iter();
        let output = self.run("apt-get", "download", fixed.chain(names.iter().map(String::as_str)))?;
        let found = uri_lines(&output.stdout, |uri| self.sources.path_of(uri));
        packages
            .iter()
            .map(|package| {
                let remote = found.iter().find(|remote| remote.package == *package).cloned();
                remote.ok_or_else(|| self.gone(package.clone()))
            })
            .collect()
    }

    /// Downloads these packages into `into`, each under its [`Remote::file`].
    ///
    /// # Errors
    /// Returns an error if the mirror cannot be reached, or if a file does not match its digest.
    pub fn download(&self, packages: &[Remote], into: &Path) -> Result<(), Error> {
        let names: Vec<String> = packages
            .iter()
            .map(|remote| format!("{}={}", remote.package.name, remote.package.version))
            .collect();
        let arguments = std::iter::once("download").chain(names.iter().map(String::as_str));
        self.run_in(into, "apt-get", "download", arguments).map(drop)
    }

    /// Fetches files into `into`, each under its [`ArchiveFile::name`]. Needs no package lists. If no archive has a
    /// file with the expected content, or if the host lacks apt's program for downloads, the file is missing
    /// afterwards.
    ///
    /// # Errors
    /// Returns an error if apt's program for downloads is on the host and cannot be started, or if a signal ended it.
    pub(crate) fn fetch(&self, files: &[ArchiveFile], into: &Path) -> Result<(), Error> {
        let addresses: Vec<Vec<String>> =
            files.iter().map(|file| self.sources.addresses(&file.path)).collect();
        for archive in 0..self.sources.sources.len() {
            let missing = files.iter().zip(&addresses).filter(|(file, _)| !into.join(file.name()).exists());
            let arguments: Vec<String> = missing
                .filter_map(|(file, addresses)| Some((file, addresses.get(archive)?)))
                .flat_map(|(file, address)| [address.clone(), file.name(), format!("SHA256:{}", file.sha256)])
                .collect();
            if arguments.is_empty() {
                break;
            }
            let arguments = std::iter::once("download-file").chain(arguments.iter().map(String::as_str));
            match self.output(into, HELPER, arguments) {
                // The exit status is ignored. A failure says only that at least one file is missing; the other files
                // have arrived.
                Ok(output) => check_signal(HELPER, "download", &output)?,
                Err(Error::NoApt { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn check_architecture(&self, package: &str, architecture: &str) -> Result<(), Error> {
        if architecture == ARCHITECTURE || architecture == "all" {
            return Ok(());
        }
        Err(Error::Architecture { package: package.to_owned(), architecture: architecture.to_owned() })
    }

    fn suite(&self) -> String {
        self.sources.suite.clone()
    }

    fn gone(&self, package: Exact) -> Error {
        Error::Gone { package: package.name, version: package.version, suite: self.suite() }
    }

    fn write(&self, name: &str, content: &str) -> Result<(), Error> {
        let path = self.folder.join(name);
        fs::write(&path, content).map_err(file_error(&path))
    }

    fn run<'a>(
        &self,
        program: &'static str,
        action: &'static str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Output, Error> {
        self.run_in(&self.folder, program, action, arguments)
    }

    fn run_in<'a>(
        &self,
        folder: &Path,
        program: &'static str,
        action: &'static str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Output, Error> {
        let output = self.output(folder, program, arguments)?;
        check_signal(program, action, &output)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        if output.status.success() {
            return Ok(Output { stdout, stderr });
        }
        let complaint = complaint(&stderr)
            .unwrap_or_else(|| format!("{program} ended without a message, {}", output.status));
        Err(self.failure(action, &complaint, &stderr))
    }

    fn output<'a>(
        &self,
        folder: &Path,
        program: &'static str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<process::Output, Error> {
        let mut command = Command::new(program);
        // apt reads the file that APT_CONFIG names before it reads /etc/apt. The file tells apt to ignore /etc/apt.
        command.env("APT_CONFIG", self.folder.join("apt.conf")).env("LC_ALL", "C");
        match command.args(arguments).current_dir(folder).stdin(Stdio::null()).output() {
            Ok(output) => Ok(output),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::NoApt { program }),
            Err(source) => Err(Error::File { path: String::from(program), source }),
        }
    }

    /// Returns the error that a message of apt stands for.
    fn failure(&self, action: &'static str, complaint: &str, all: &str) -> Error {
        let suite = self.suite();
        // Messages of apt 1.8 to 3.0 in the C locale.
        let unknown = complaint
            .strip_prefix("Unable to locate package ")
            .or_else(|| quoted_before(complaint, "' has no installation candidate"));
        if let Some(package) = unknown {
            let (name, architecture) = package.split_once(':').unwrap_or((package, ARCHITECTURE));
            if architecture != ARCHITECTURE {
                let (package, architecture) = (name.to_owned(), architecture.to_owned());
                return Error::Architecture { package, architecture };
            }
            return Error::Unknown { package: name.to_owned(), suite };
        }
        if let Some(rest) = complaint.strip_prefix("Version '")
            && let Some((version, rest)) = rest.split_once("' for '")
            && let Some((package, _)) = rest.split_once("' was not found")
        {
            let (package, version) = (package.to_owned(), version.to_owned());
            return Error::Gone { package, version, suite };
        }
        if all.contains("No space left on device") || all.contains("don't have enough free space") {
            return Error::NoSpace { path: self.folder.display().to_string() };
        }
        if complaint.starts_with("Failed to fetch") || complaint.starts_with("Unable to fetch") {
            return Error::Network { reason: complaint.to_owned() };
        }
        Error::Apt { action, reason: complaint.to_owned() }
    }
}

/// Returns an error if a signal has ended the program. The program's output would not name this cause.
fn check_signal(program: &str, action: &'static str, output: &process::Output) -> Result<(), Error> {
    match output.status.signal() {
        Some(_) => Err(Error::Apt { action, reason: format!("{program} was ended by a {}", output.status) }),
        None => Ok(()),
    }
}

/// Output of a command that succeeded.
struct Output {
    stdout: String,
    stderr: String,
}

/// Returns NAME if the message is `Package 'NAME` followed by `end`.
fn quoted_before<'a>(complaint: &'a str, end: &str) -> Option<&'a str> {
    complaint.strip_suffix(end)?.strip_prefix("Package '")
}

fn configuration(folder: &Path, transport: &[(String, String)]) -> String {
    let folder = folder.display();
    let mut text = format!(
        "Dir::State \"{folder}\";\nDir::State::lists \"{folder}/lists\";\nDir::State::status \"{folder}/status\";\n\
         Dir::Cache \"{folder}\";\nDir::Cache::archives \"{folder}/archives\";\n\
         Dir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts \"{folder}/sources.d\";\n\
         Dir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\n\
         Dir::Etc::preferences \"{folder}/preferences\";\nDir::Etc::preferencesparts \"/dev/null\";\n\
         Dir::Log \"{folder}\";\n\
         APT::Architecture \"{ARCHITECTURE}\";\nAPT::Architectures {{ \"{ARCHITECTURE}\"; }};\n\
         APT::Update::Error-Mode \"any\";\n\
         APT::Install-Recommends \"false\";\nAPT::Get::Assume-Yes \"true\";\nAPT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\nAcquire::Retries \"2\";\n"
    );
    for (key, value) in transport {
        text.push_str(&format!("{key} \"{value}\";\n"));
    }
    text
}

/// Returns a function that turns an I/O error for `path` into an [`Error`] that names the path.
pub(crate) fn file_error(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| {
        let path = path.display().to_string();
        if source.kind() == io::ErrorKind::StorageFull {
            Error::NoSpace { path }
        } else {
            Error::File { path, source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Apt, Error, Sources};
    use std::fs::File;

    fn apt() -> Apt {
        let folder = std::path::PathBuf::from("/state");
        let sources = Sources { suite: String::from("bookworm"), sources: Vec::new(), transport: Vec::new() };
        Apt { folder, sources, _lock: File::open("/dev/null").unwrap() }
    }

    fn said(complaint: &str) -> String {
        apt().failure("install", complaint, complaint).to_string()
    }

    #[test]
    fn the_signal_that_killed_a_program_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let apt = Apt { folder: folder.path().to_owned(), ..apt() };
        let said = |script: &str| apt.run("sh", "update", ["-c", script]).err().unwrap().to_string();
        assert_eq!(said("kill -KILL $$"), "apt-get update: sh was ended by a signal: 9 (SIGKILL)");
        assert_eq!(
            said("echo 'W: a warning' >&2; kill -TERM $$"),
            "apt-get update: sh was ended by a signal: 15 (SIGTERM)"
        );
        assert_eq!(said("exit 7"), "apt-get update: sh ended without a message, exit status: 7");
    }

    #[test]
    fn complaints_become_errors_of_one_line() {
        assert_eq!(said("Unable to locate package nosuch"), "there is no package nosuch in bookworm");
        assert_eq!(
            said("Package 'awk' has no installation candidate"),
            "there is no package awk in bookworm"
        );
        assert_eq!(
            said("Unable to locate package redis-server:arm64"),
            "the package redis-server is for arm64, and machines are amd64"
        );
        assert!(
            said("Version '9' for 'libcap2' was not found")
                .starts_with("libcap2 9 is not in bookworm any more")
        );
        let full = "Write error - write (28: No space left on device)";
        assert_eq!(said(full), "no space left in /state");
        let network = "Failed to fetch http://a/b  Could not resolve 'a'";
        assert!(matches!(apt().failure("download", network, network), Error::Network { .. }));
        assert_eq!(said("Held broken packages"), "apt-get install: Held broken packages");
    }
}
