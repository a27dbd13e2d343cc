//! Switches from the initramfs to the root filesystem, as the program `switch_root` does.

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use everett_protocol::Root;
use rustix::mount::{MountFlags, mount, mount_move};

use crate::boot::mount_at;
use crate::disks;
use crate::failure::{Context as _, Failure};

/// Mount points: the read-only root filesystem, the writable part of the overlay, and the overlay.
const LOWER: &str = "/.everett/lower";
const WRITABLE: &str = "/.everett/writable";
const NEW_ROOT: &str = "/.everett/root";

/// Makes `root` the root of all processes. Returns the overlay's upper folder, or `None` without a root disk.
pub(crate) fn enter(root: &Root) -> Result<Option<OwnedFd>, Failure> {
    let mut upper = None;
    if let Root::Disk { serial, filesystem, writable_bytes } = root {
        let device = disks::by_serial(serial)?;
        upper = Some(make_overlay(&device, filesystem, *writable_bytes)?);
        switch()?;
    }
    mount_the_rest()?;
    Ok(upper)
}

fn make_overlay(device: &str, filesystem: &str, writable_bytes: Option<u64>) -> Result<OwnedFd, Failure> {
    for folder in [LOWER, WRITABLE, NEW_ROOT] {
        fs::create_dir_all(folder).context(|| format!("make {folder}"))?;
    }
    mount(device, LOWER, filesystem, MountFlags::RDONLY | MountFlags::NODEV, None)
        .context(|| format!("mount {device} as {filesystem}"))?;
    let size = writable_bytes.map_or(String::new(), |bytes| format!(",size={bytes}"));
    let options = CString::new(format!("mode=0755{size}")).context(|| String::from("write mount options"))?;
    mount("tmpfs", WRITABLE, "tmpfs", MountFlags::empty(), options.as_c_str())
        .context(|| String::from("mount the root's writable part"))?;
    let (upper, work) = (format!("{WRITABLE}/upper"), format!("{WRITABLE}/work"));
    for folder in [&upper, &work] {
        fs::create_dir(folder).context(|| format!("make {folder}"))?;
    }
    let options = CString::new(format!("lowerdir={LOWER},upperdir={upper},workdir={work}"))
        .context(|| String::from("write mount options"))?;
    mount("overlay", NEW_ROOT, "overlay", MountFlags::empty(), options.as_c_str())
        .context(|| String::from("mount the root's overlay"))?;
    let folder = fs::File::open(&upper).context(|| format!("open {upper}"))?;
    Ok(OwnedFd::from(folder))
}

/// Moves the mounts into the overlay, empties the initramfs and makes the overlay the new root.
fn switch() -> Result<(), Failure> {
    for path in ["/dev", "/proc", "/sys", "/run"] {
        let target = format!("{NEW_ROOT}{path}");
        fs::create_dir_all(&target).context(|| format!("make {path} in the root filesystem"))?;
        mount_move(path, &target).context(|| format!("move {path} into the root filesystem"))?;
    }
    let device = fs::metadata("/").context(|| String::from("look at /"))?.dev();
    // A file that cannot be removed only takes memory.
    remove_content(Path::new("/"), device);
    rustix::process::chdir(NEW_ROOT).context(|| String::from("enter the root filesystem"))?;
    mount_move(".", "/").context(|| String::from("move the root filesystem to /"))?;
    rustix::process::chroot(".").context(|| String::from("make the root filesystem the root"))?;
    rustix::process::chdir("/").context(|| String::from("enter the root"))
}

/// Removes the content of a folder, which frees memory of the initramfs. Stays within the filesystem `device`.
fn remove_content(folder: &Path, device: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.dev() != device {
            continue;
        }
        if metadata.is_dir() {
            remove_content(&path, device);
            let _ = fs::remove_dir(&path);
        } else {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Mounts and creates the other paths that programs expect.
fn mount_the_rest() -> Result<(), Failure> {
    let quiet = MountFlags::NOSUID | MountFlags::NODEV;
    mount_at("tmpfs", "/dev/shm", quiet, c"mode=1777")?;
    mount_at(
        "devpts",
        "/dev/pts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        c"mode=0620,gid=5,ptmxmode=0666",
    )?;
    let links = [
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ];
    for (target, link) in links {
        if fs::symlink_metadata(link).is_err() {
            std::os::unix::fs::symlink(target, link).context(|| format!("make {link}"))?;
        }
    }
    for (path, mode) in [("/run/lock", 0o1777), ("/tmp", 0o1777)] {
        fs::create_dir_all(path).context(|| format!("make {path}"))?;
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, permissions).context(|| format!("set the mode of {path}"))?;
    }
    Ok(())
}
