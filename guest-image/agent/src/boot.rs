//! Boot: from the initramfs to a connection with the host.

use crate::console;
use crate::failure::{Context as _, Failure};
use crate::ports::{self, Ports};
use crate::virtio::Bus;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::ffi::CStr;
use std::fs;
use std::path::Path;

/// File with the names of the kernel modules to load, one per line, in this order.
const MODULE_LIST: &str = "/etc/everett/modules";
/// Folder of the kernel module files.
const MODULE_FOLDER: &str = "/lib/everett-modules";

/// State of a machine after its boot, with open ports to the host.
pub(crate) struct Booted {
    pub(crate) ports: Ports,
    /// Release of the kernel, as printed by `uname -r`.
    pub(crate) release: String,
    /// Failures that did not stop the boot.
    pub(crate) failures: Vec<Failure>,
}

/// Mounts the kernel's filesystems, loads the modules and opens the ports. Leaves disks and cards without a driver.
pub(crate) fn boot() -> Result<Booted, Failure> {
    let mut failures = Vec::new();
    let mut note = |result: Result<(), Failure>| failures.extend(result.err());

    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
    // The kernel may have mounted devtmpfs already. A second mount over it shows the same filesystem.
    note(mount_at("devtmpfs", "/dev", MountFlags::NOSUID, c"mode=0755"));
    note(mount_at("proc", "/proc", quiet, c""));
    note(mount_at("sysfs", "/sys", quiet, c""));
    note(mount_at("tmpfs", "/run", MountFlags::NOSUID | MountFlags::NODEV, c"mode=0755"));

    note(raise_limits());
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    console::say(&format!("protocol {}, kernel {release}", everett_protocol::VERSION));

    // Listening starts before the driver is loaded, because the driver announces the ports.
    let events = ports::Events::listen()?;
    let bus = Bus::of_machine();
    load_modules(&bus, &mut note);
    note(bus.only_essentials());
    let found = ports::find(&events);
    // Without ports, only the console can show the failures so far.
    if found.is_err() {
        failures.iter().for_each(|failure| console::say(&failure.to_string()));
    }
    Ok(Booted { ports: found?, release, failures })
}

/// Raises the hard limit of open files to systemd's value. PID 1 starts with the kernel's limits of 1024 (soft) and
/// 4096 (hard), and servers complain about 4096. The soft limit stays at 1024, because select(2) cannot handle more.
fn raise_limits() -> Result<(), Failure> {
    let limit = Rlimit { current: Some(1024), maximum: Some(512 << 10) };
    setrlimit(Resource::Nofile, limit).context(|| String::from("raise the limit of open files"))
}

/// Mounts a filesystem without a device on a directory. Creates the directory if necessary.
pub(crate) fn mount_at(kind: &str, at: &str, flags: MountFlags, options: &CStr) -> Result<(), Failure> {
    fs::create_dir_all(at).context(|| format!("make {at}"))?;
    mount(kind, at, kind, flags, options).context(|| format!("mount {kind} on {at}"))
}

/// Loads the modules. Turns off automatic driver binding as soon as the virtio bus exists, built in or from a module.
fn load_modules(bus: &Bus, note: &mut impl FnMut(Result<(), Failure>)) {
    let mut held = hold(bus, note);
    let list = match fs::read_to_string(MODULE_LIST) {
        Ok(list) => list,
        // The initramfs of a kernel with built-in drivers has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => return note(Err(error).context(|| format!("read {MODULE_LIST}"))),
    };
    for name in list.lines().filter(|line| !line.is_empty()) {
        note(load_module(&Path::new(MODULE_FOLDER).join(name)));
        held = held || hold(bus, note);
    }
}

/// Turns off automatic driver binding. Returns false if the kernel has no virtio bus yet.
fn hold(bus: &Bus, note: &mut impl FnMut(Result<(), Failure>)) -> bool {
    let held = bus.set_automatic(false);
    let there = !matches!(held, Ok(false));
    note(held.map(|_| ()));
    there
}

fn load_module(path: &Path) -> Result<(), Failure> {
    let file = fs::File::open(path).context(|| format!("open the module {}", path.display()))?;
    match rustix::system::finit_module(&file, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error).context(|| format!("load the module {}", path.display())),
    }
}
