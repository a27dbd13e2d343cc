//! Stock Debian guest that runs the same programs on Everett's machine and on a peer's, i.e. in QEMU.
//!
//! Kernel, modules and root file system are those of an ordinary image. PID 1 is not the agent (Everett's program in
//! guests), because the agent needs Everett at the other end of its ports. Instead, a second archive follows the
//! image's initramfs, and the kernel unpacks both as one. The second archive contains Debian's static busybox and a
//! script. The kernel parameter `rdinit=` makes this script PID 1. The script enters the root file system and starts
//! the [`workloads`] there.
//!
//! - [`workloads`]: the workloads, their packages and files
//! - [`native`]: runs the workloads on the host, without a guest
//! - `packages`: reads files from the image's packages

pub mod native;
mod packages;
pub mod workloads;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use everett_guest_image::initramfs::Archive;
use everett_guest_image::lock::Lock;
use everett_guest_image::{BuiltImage, Cache, ImageSpec, Silent, build};
use everett_host::interrupt::Interrupt;
use everett_input::causes::with_causes;
use everett_remote_client::Online;
use everett_session::images::configure::SoftConfigure;
use everett_vmm::boot::DEFAULT_CMDLINE;
use everett_vmm::disk::Disk;
use everett_vmm::virtio::blk::Latency;
use everett_vmm::{MachineConfig, machine::DiskConfig};
use tempfile::NamedTempFile;

use crate::peer;
use native::Native;
use workloads::Workload;

/// Guest memory on all machines, in MiB.
pub const MEMORY_MIB: u64 = 1024;

/// Kernel module for the bus of a peer's disk. Everett's machine does not need it.
const PEERS_BUS: &str = "virtio_pci";
const INIT: &str = include_str!("init.sh");

/// Files of the guest.
#[derive(Debug)]
pub struct Debian {
    kernel: PathBuf,
    root: PathBuf,
    initramfs: NamedTempFile,
    lock: Lock,
    cache: Cache,
    workloads: Vec<&'static Workload>,
}

impl Debian {
    /// Returns a guest that runs these workloads. Its image comes from the operator's cache. The first call builds it.
    ///
    /// # Errors
    /// Returns a one-line message if the guest cannot be built.
    pub fn of_user(workloads: &[&'static Workload]) -> Result<Debian, String> {
        let cache = Cache::of_user().map_err(|error| with_causes(&error))?;
        let mut spec =
            ImageSpec::of_packages("bookworm", workloads::packages(), everett_host::time::unix_s());
        spec.modules.push(String::from(PEERS_BUS));
        let interrupt = Interrupt::default();
        let mut machine = SoftConfigure::new(&cache, &interrupt);
        let image =
            build(&spec, &cache, &Online, &mut machine, &mut Silent).map_err(|error| with_causes(&error))?;
        let initramfs = initramfs(&image, &cache, workloads)?;
        let root = image.root.ok_or_else(|| String::from("the image has no root"))?.path;
        let (kernel, lock) = (image.vmlinux.path, image.lock);
        Ok(Debian { kernel, root, initramfs, lock, cache, workloads: workloads.to_vec() })
    }

    /// Prepares native runs, i.e. runs of the same workloads on the host.
    ///
    /// # Errors
    /// Returns a one-line message if the host does not permit such runs.
    pub fn native(&self) -> Result<Native, String> {
        Native::new(&self.root, &self.lock, &self.cache, &self.workloads)
    }

    /// Returns the kernel's command line for all machines. PCI stays enabled, because a peer's disk is on a PCI bus.
    #[must_use]
    pub fn cmdline() -> String {
        let parts = DEFAULT_CMDLINE.split_whitespace().filter(|&part| part != "pci=off");
        parts.chain(["quiet", "rdinit=/everett-bench/init"]).collect::<Vec<_>>().join(" ")
    }

    /// Returns the configuration of a machine with this guest.
    ///
    /// # Errors
    /// Returns a one-line message if the file of the root file system cannot be used.
    pub fn config(&self) -> Result<MachineConfig, String> {
        let mut config = MachineConfig::new(&self.kernel);
        config.memory_bytes = MEMORY_MIB << 20;
        config.initramfs = Some(self.initramfs.path().to_path_buf());
        config.cmdline = Debian::cmdline();
        config.disks.push(DiskConfig {
            disk: Disk::open(&self.root, None).map_err(|error| with_causes(&error))?,
            serial: String::from("root"),
            read_only: true,
            latency: Latency::default(),
        });
        Ok(config)
    }

    /// Returns a QEMU command with this guest. The machine type is not `microvm`, although that has virtio over MMIO
    /// like Everett's machine. In a `microvm` the kernel can calibrate the TSC only with the PIT, and on a busy host it
    /// gives up this calibration for good.
    #[must_use]
    pub fn qemu(&self, acceleration: &[&str]) -> Command {
        let cmdline = Debian::cmdline();
        let mut command = peer::qemu(acceleration, MEMORY_MIB, &self.kernel, self.initramfs.path(), &cmdline);
        command
            .args(["-device", "virtio-blk-pci,drive=root", "-drive"])
            .arg(format!("if=none,id=root,format=raw,readonly=on,file={}", self.root.display()));
        command
    }
}

/// Writes the image's initramfs, followed by the archive with this guest's PID 1, the scripts of all workloads, and the
/// names of those that the guest runs.
fn initramfs(image: &BuiltImage, cache: &Cache, chosen: &[&Workload]) -> Result<NamedTempFile, String> {
    let mut archive = Archive::default();
    archive.folder("everett-bench");
    archive.folder("everett-bench/root");
    archive.file("everett-bench/busybox", 0o755, &packages::busybox(&image.lock, cache)?);
    archive.file("everett-bench/init", 0o755, INIT.as_bytes());
    let names: Vec<_> = chosen.iter().map(|workload| workload.name).collect();
    archive.file("everett-bench/names", 0o644, names.join(" ").as_bytes());
    archive.folder("everett-bench/workloads");
    for (name, text) in workloads::files() {
        archive.file(&format!("everett-bench/workloads/{name}"), 0o644, text.as_bytes());
    }
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let first = &image.initramfs.path;
    let mut bytes = fs::read(first).map_err(|error| failed(first, error))?;
    bytes.extend(archive.finish());
    let file = NamedTempFile::new().map_err(|error| format!("no temporary file: {error}"))?;
    fs::write(file.path(), bytes).map_err(|error| failed(file.path(), error))?;
    Ok(file)
}
