//! Preparation of a machine by the first shim that runs, for all later processes.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::options::Options;
use crate::{Context as _, Failure, copy, volumes};

/// Folder of Everett's own files. Its filesystem is new at each boot.
pub(crate) const FOLDER: &str = "/run/everett";
/// Second mount of the root filesystem during the preparation. It shows the content that other mounts hide.
const BARE: &str = "/run/everett/bare";
/// File that the shim creates after it has prepared the machine.
const DONE: &str = "/run/everett/prepared";
/// File that a process locks while it prepares the machine.
const LOCK: &str = "/run/everett/lock";

/// Kernel settings that container engines make.
const SETTINGS: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"),
    ("/proc/sys/net/ipv4/ping_group_range", "0\t2147483647"),
];

/// Prepares the machine, once after each boot. If another process is preparing it, waits for that process.
pub(crate) fn once(options: &Options) -> Result<(), Failure> {
    if Path::new(DONE).exists() {
        return Ok(());
    }
    // Other users must not look into the folder: it contains the volumes and, during the preparation, the bare root.
    let only_root = fs::Permissions::from_mode(0o700);
    fs::create_dir_all(FOLDER)
        .and_then(|()| fs::set_permissions(FOLDER, only_root))
        .context(|| format!("make {FOLDER}"))?;
    let lock = File::create(LOCK).context(|| format!("make {LOCK}"))?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).context(|| format!("lock {LOCK}"))?;
    if Path::new(DONE).exists() {
        return Ok(());
    }
    fs::create_dir_all(BARE).context(|| format!("make {BARE}"))?;
    mount_bind("/", BARE).context(|| String::from("look below the mounts"))?;
    let prepared = prepare(options);
    unmount(BARE, UnmountFlags::empty()).context(|| format!("unmount {BARE}"))?;
    prepared?;
    File::create(DONE).context(|| format!("make {DONE}"))?;
    Ok(())
}

fn prepare(options: &Options) -> Result<(), Failure> {
    // The agent has mounted a tmpfs on `/run`, which hides the image's files there.
    let bare = Path::new(BARE);
    merge(&bare.join("run"), Path::new("/run"))?;
    volumes::mount_all(bare, &options.volumes)?;
    for (how, path) in &options.tmpfs {
        in_memory(how, path)?;
    }
    for bind in &options.binds {
        volumes::mount_bound(bind)?;
    }
    for (path, value) in SETTINGS {
        // A kernel without the setting does not have the file.
        if let Err(error) = fs::write(path, value)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error).context(|| format!("write {path}"));
        }
    }
    for (name, value) in &options.sysctls {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        fs::write(&path, value.as_bytes()).context(|| format!("set {name}"))?;
    }
    Ok(())
}

/// Mounts a tmpfs with these mount options. Creates the mount point if necessary.
fn in_memory(how: &OsStr, path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).context(|| format!("make {}", path.display()))?;
    let options = CString::new(how.as_bytes()).map_err(|_| Failure::new("options of a tmpfs with a NUL"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", path, "tmpfs", flags, options.as_c_str())
        .context(|| format!("mount a tmpfs on {}", path.display()))
}

/// Copies the content and the attributes of a folder, unless the folder is empty.
fn merge(from: &Path, to: &Path) -> Result<(), Failure> {
    if fs::read_dir(from).context(|| format!("read {}", from.display()))?.next().is_none() {
        return Ok(());
    }
    copy::folder(from, to)
}
