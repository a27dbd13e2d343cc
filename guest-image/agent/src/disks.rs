//! Search for block devices by serial number, and mounting of data disks.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, Stdio};

use everett_protocol::DataDisk;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::failure::{Context as _, Failure};
use crate::kernel_log;
use crate::users;
use crate::virtio::Bus;

/// Number of bytes that the agent checks at the start of a disk. If all are zero, the disk is blank. The superblocks of
/// ext4 and xfs lie within these bytes. (The superblock of btrfs, which the agent cannot make, starts at 64 KiB.)
const BLANK_BYTES: u64 = 64 << 10;

/// Returns the device node of the disk with this serial number. The kernel shows a serial number only after the disk
/// has a driver. So this function binds disks one by one, in the order of their slots, until it finds the right disk.
/// If the root disk is in the first slot, no other disk gets a driver.
pub(crate) fn by_serial(serial: &str) -> Result<String, Failure> {
    loop {
        match among_bound(serial) {
            Ok(device) => return Ok(device),
            Err(failure) => {
                if !Bus::of_machine().bind_next_disk()? {
                    return Err(failure);
                }
            }
        }
    }
}

fn among_bound(serial: &str) -> Result<String, Failure> {
    let mut seen = Vec::new();
    let folder = fs::read_dir("/sys/block").context(|| String::from("read /sys/block"))?;
    for entry in folder {
        let name = entry.context(|| String::from("read /sys/block"))?.file_name();
        let name = name.to_string_lossy().into_owned();
        // Only disks of virtio-blk have the file `serial`.
        let Ok(found) = fs::read_to_string(format!("/sys/block/{name}/serial")) else { continue };
        if found.trim_end_matches(['\n', '\0']) == serial {
            return Ok(format!("/dev/{name}"));
        }
        seen.push(found.trim_end().to_owned());
    }
    seen.sort();
    let seen = if seen.is_empty() { String::from("none") } else { seen.join(", ") };
    Err(Failure::new(format!("cannot find a disk with the serial number {serial} (there: {seen})")))
}

/// Block size of new filesystems, in bytes. It is also the largest sector size of an Everett disk.
const BLOCK_BYTES: u32 = 4096;

/// Errors of mount(2) that do not concern the disk's content: the kernel lacks the filesystem's driver, or memory.
const NOT_OF_THE_DISK: [Errno; 2] = [Errno::NODEV, Errno::NOMEM];

/// Mounts a data disk. If the disk is blank and the host allows it, makes a filesystem first. Returns the reason if the
/// kernel refuses to mount a filesystem that was already on the disk.
pub(crate) fn mount_data(disk: &DataDisk) -> Result<Option<String>, Failure> {
    let device = by_serial(&disk.serial)?;
    let fresh = disk.format_blank && blank(&device)?;
    if fresh {
        format(disk, &device)?;
    }
    let path = disk.path.as_str();
    fs::create_dir_all(path).context(|| format!("make {path}"))?;
    let kind = disk.filesystem.as_str();
    match mount(device.as_str(), path, kind, MountFlags::NOATIME, None) {
        Err(error) if !fresh && !NOT_OF_THE_DISK.contains(&error) => {
            let name = Path::new(&device).file_name().unwrap_or_default().to_string_lossy();
            let said = kernel_log::about(&name);
            return Ok(Some(format!("the {kind} at {path} cannot be mounted: {error}{said}")));
        }
        mounted => mounted.context(|| format!("mount the {kind} disk {} on {path}", disk.serial))?,
    }
    if let Some(owner) = &disk.owner {
        let (uid, gid) = users::owner(owner)?;
        chown(path, Some(uid), Some(gid)).context(|| format!("give {path} to {owner}"))?;
    }
    Ok(None)
}

fn blank(device: &str) -> Result<bool, Failure> {
    let mut start = Vec::new();
    let file = File::open(device).context(|| format!("open {device}"))?;
    file.take(BLANK_BYTES).read_to_end(&mut start).context(|| format!("read {device}"))?;
    Ok(start.iter().all(|&byte| byte == 0))
}

/// Runs the root filesystem's mkfs. All random values are derived from the serial number. The options leave nothing for
/// the kernel to initialise later in the background. The block size is fixed, so that all disks have the same. By
/// default, mke2fs would make blocks of 1 KiB on a small disk.
fn format(disk: &DataDisk, device: &str) -> Result<(), Failure> {
    let uuid = uuid_of(&disk.serial);
    let kind = disk.filesystem.as_str();
    let options = match kind {
        "xfs" => format!("-q -f -K -b size={BLOCK_BYTES} -m uuid={uuid}"),
        _ => format!(
            "-q -F -b {BLOCK_BYTES} -m 0 -U {uuid} -E hash_seed={uuid},lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        ),
    };
    let program = format!("/sbin/mkfs.{kind}");
    let result = Command::new(&program)
        .args(options.split(' '))
        .arg(device)
        .stdin(Stdio::null())
        .output()
        .context(|| format!("make the {kind} on the disk {}: start {program}", disk.serial))?;
    if result.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&result.stderr);
    let said = said.lines().last().unwrap_or("it said nothing");
    Err(Failure::new(format!(
        "cannot make the {kind} on the disk {}: {}: {said}",
        disk.serial, result.status
    )))
}

/// Derives a UUID from all bytes of the serial number (version 8, whose content is free: RFC 9562).
fn uuid_of(serial: &str) -> String {
    let mut bytes = [0u8; 16];
    for (index, byte) in serial.bytes().enumerate() {
        // Serial numbers have up to 20 bytes. Bytes 17 to 20 are mixed into bytes 1 to 4.
        bytes[index % 16] = bytes[index % 16].rotate_left(3) ^ byte;
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[0..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32]].join("-")
}
