//! Native runs: the guest's root file system in a folder of the host, and its workloads in namespaces of the host.
//!
//! The programs, their libraries and their files are the guest's. Kernel and processor are the host's, so programs use
//! instructions that the guest's CPU does not have, for example those for SHA-256. All processes of a run share one CPU,
//! as in the guest. A run needs no privileges, but a kernel that lets the operator make a user namespace. Debian's
//! squashfs-tools unpack the root file system.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use everett_guest_image::Cache;
use everett_guest_image::lock::Lock;
use everett_input::causes::with_causes;
use tempfile::TempDir;

use super::packages::{self, UNPACKER};
use super::workloads::{self, Workload};
use crate::{host, peer};

/// Package of unsquashfs, and the packages of its libraries.
const PACKAGES: [&str; 7] = [UNPACKER, "libc6", "liblz4-1", "liblzma5", "liblzo2-2", "libzstd1", "zlib1g"];
/// Folders of libraries in Debian's packages, for Debian releases before and after the move of `/lib` to `/usr`.
const LIBRARIES: [&str; 2] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
/// Dynamic loader in a folder of libraries.
const LOADER: &str = "ld-linux-x86-64.so.2";
/// User and group of all processes: Debian's `daemon`. PostgreSQL refuses to run as root.
const USER: u32 = 1;
const SETUP: &str = include_str!("native.sh");

/// Root file system in a folder of the host. Dropping it deletes the folder.
#[derive(Debug)]
pub struct Native {
    folder: TempDir,
    names: Vec<&'static str>,
    cpu: usize,
}

impl Native {
    /// Unpacks an image's root file system into a temporary folder of the cache, and makes a run without workloads.
    ///
    /// # Errors
    /// Returns a one-line message if the root file system cannot be unpacked, or if the host does not permit the run.
    pub(super) fn new(
        root: &Path,
        lock: &Lock,
        cache: &Cache,
        chosen: &[&Workload],
    ) -> Result<Native, String> {
        let place = cache.temporary();
        let failed = |error: std::io::Error| format!("{}: {error}", place.display());
        let folder = TempDir::new_in(&place).map_err(failed)?;
        let mut native = Native { folder, names: Vec::new(), cpu: host::last_cpu()? };
        unpack(root, lock, cache, &native.path("tools"), &native.root())?;
        let scripts = native.path("workloads");
        std::fs::create_dir(&scripts).map_err(failed)?;
        for (name, text) in workloads::files() {
            std::fs::write(scripts.join(name), text).map_err(failed)?;
        }
        std::fs::write(native.path("native.sh"), SETUP).map_err(failed)?;
        peer::spans(&mut native.command())?;
        native.names = chosen.iter().map(|workload| workload.name).collect();
        Ok(native)
    }

    /// Returns a command that runs the workloads. Its standard output has the same marks as a guest's console.
    #[must_use]
    pub fn command(&self) -> Command {
        let user = USER.to_string();
        let mut command = loaded(&self.root(), "usr/bin/unshare");
        command
            .args(["--user", "--map-user", &user, "--map-group", &user, "--keep-caps"])
            .args(["--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child"])
            .arg(self.root().join("usr/bin/busybox"))
            .arg("sh")
            .arg(self.path("native.sh"))
            .args([self.root(), self.path("workloads")])
            .arg(self.cpu.to_string())
            .args(&self.names)
            .env_clear();
        command
    }

    fn root(&self) -> PathBuf {
        self.path("root")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Unpacks the root file system `image` into the new folder `root`, with Debian's unsquashfs. Unpacks the packages of
/// unsquashfs into the new folder `tools`.
fn unpack(image: &Path, lock: &Lock, cache: &Cache, tools: &Path, root: &Path) -> Result<(), String> {
    for name in PACKAGES {
        let package = packages::open(lock, cache, name)?;
        let unpacked = package.data().and_then(|data| tar::Archive::new(data).unpack(tools));
        unpacked.map_err(|error| format!("{name}: {}", with_causes(&error)))?;
    }
    let mut command = loaded(tools, "usr/bin/unsquashfs");
    command.args(["-quiet", "-no-progress", "-no-xattrs", "-dest"]).args([root, image]);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start unsquashfs of {}: {error}", tools.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let complaints = String::from_utf8_lossy(&output.stderr);
    Err(format!("unsquashfs ends with {}: {}", output.status, complaints.lines().next().unwrap_or_default()))
}

/// Returns a command that starts a program of a tree with the dynamic loader and the libraries of the tree.
fn loaded(tree: &Path, program: &str) -> Command {
    let folders = LIBRARIES.map(|folder| tree.join(folder));
    let loader = folders.iter().map(|folder| folder.join(LOADER)).find(|loader| loader.exists());
    let mut command = Command::new(loader.unwrap_or_else(|| folders[0].join(LOADER)));
    let folders = folders.map(|folder| folder.into_os_string());
    command.arg("--library-path").arg(folders.join(":".as_ref())).arg(tree.join(program));
    command
}
