//! Reads the key `disk`: the data disks of a node.

use everett_vmm::disk::SectorSize;
use everett_vmm::virtio::blk::Latency;
use serde::Serialize;

use super::command::user_name;
use super::cursor::{Item, Table};
use super::error::Error;
use super::paths;

/// Maximum number of data disks of one node.
const DISKS_MAX: usize = 4;
/// Maximum size of a data disk, in bytes.
const DISK_BYTES_MAX: u64 = 64 << 30;
/// Block size in bytes. The size of a disk is a multiple of it.
const BLOCK_BYTES: u64 = 4096;
/// Default sector size. Today's drives have it, and file systems have blocks of this size.
const SECTOR_DEFAULT: SectorSize = SectorSize::Bytes4096;
/// Maximum latency of a disk request, in nanoseconds. A world file may not set more. Linux gives up on a request after
/// 30 s.
const LATENCY_NS_MAX: u64 = 10_000_000_000;

/// A data disk that starts with an empty file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DataDisk {
    /// Path in the guest at which the disk is mounted.
    pub guest_path: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// User who owns the file system's top folder. `None` means root.
    pub owner: Option<String>,
    /// File system with which Everett formats the disk.
    pub filesystem: Filesystem,
    /// Size of a sector. The drive writes a sector completely or not at all.
    pub sector: SectorSize,
    /// Times that the disk takes for requests.
    pub latency: Latency,
}

/// File system of a data disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// The ext4 file system, with a journal.
    Ext4,
    /// The XFS file system.
    Xfs,
}

impl Filesystem {
    /// Returns the name that mount(8) has for the file system.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Filesystem::Ext4 => "ext4",
            Filesystem::Xfs => "xfs",
        }
    }

    /// Returns the Debian package with the file system's mkfs. `None` if every root file system has it.
    #[must_use]
    pub fn package(self) -> Option<&'static str> {
        match self {
            Filesystem::Ext4 => None,
            Filesystem::Xfs => Some("xfsprogs"),
        }
    }

    /// Returns the file system's kernel module. `None` if every machine loads it.
    #[must_use]
    pub fn module(self) -> Option<&'static str> {
        match self {
            Filesystem::Ext4 => None,
            Filesystem::Xfs => Some("xfs"),
        }
    }

    /// Returns the smallest size of a disk with the file system, in bytes. A smaller ext4 would have no journal, and
    /// mkfs.xfs refuses a smaller disk.
    fn bytes_min(self) -> u64 {
        match self {
            Filesystem::Ext4 => 8 << 20,
            Filesystem::Xfs => 300 << 20,
        }
    }
}

/// Reads the key `disk`: one table, or a list of tables.
pub(super) fn read(item: &Item<'_>) -> Result<Vec<DataDisk>, Error> {
    if item.is_table() {
        return Ok(vec![disk(item)?]);
    }
    let mut disks: Vec<DataDisk> = Vec::new();
    for element in item.list(DISKS_MAX)? {
        let disk = disk(&element)?;
        if disks.iter().any(|other| other.guest_path == disk.guest_path) {
            return Err(element.error(format!("two disks have the path {}", disk.guest_path)));
        }
        disks.push(disk);
    }
    Ok(disks)
}

fn disk(item: &Item<'_>) -> Result<DataDisk, Error> {
    let table = item.table()?;
    table.only(&["path", "size", "owner", "fs", "sector", "read", "write", "flush"], &[])?;
    let path = table.require("path")?;
    let guest_path = paths::guest(&path, path.str()?)?;
    let filesystem = table.get("fs").map(|item| filesystem(&item)).transpose()?.unwrap_or(Filesystem::Ext4);
    let size_bytes = size(&table.require("size")?, filesystem)?;
    let owner = table.get("owner").map(|item| user_name(&item)).transpose()?;
    let sector = table.get("sector").map(|item| sector(&item)).transpose()?.unwrap_or(SECTOR_DEFAULT);
    Ok(DataDisk { guest_path, size_bytes, owner, filesystem, sector, latency: latency(&table)? })
}

/// Reads the size of a disk in bytes, and checks it.
pub(super) fn size(item: &Item<'_>, filesystem: Filesystem) -> Result<u64, Error> {
    checked_size(item.size_bytes()?, filesystem).map_err(|what| item.error(what))
}

/// Checks that a size in bytes is a whole number of blocks and within the bounds of a disk. Returns the size.
pub(super) fn checked_size(size_bytes: u64, filesystem: Filesystem) -> Result<u64, String> {
    let least = filesystem.bytes_min();
    if !(least..=DISK_BYTES_MAX).contains(&size_bytes) || !size_bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(format!(
            "a disk with {} has between {}M and 64G, in whole blocks of 4K",
            filesystem.name(),
            least >> 20
        ));
    }
    Ok(size_bytes)
}

fn filesystem(item: &Item<'_>) -> Result<Filesystem, Error> {
    match item.str()? {
        "ext4" => Ok(Filesystem::Ext4),
        "xfs" => Ok(Filesystem::Xfs),
        other => {
            Err(item.error(format!("there is no file system \"{other}\"; there are \"ext4\" and \"xfs\"")))
        }
    }
}

fn sector(item: &Item<'_>) -> Result<SectorSize, Error> {
    match item.size_bytes() {
        Ok(512) => Ok(SectorSize::Bytes512),
        Ok(4096) => Ok(SectorSize::Bytes4096),
        _ => Err(item.error("the size of a sector is \"512B\" or \"4K\"")),
    }
}

fn latency(table: &Table<'_>) -> Result<Latency, Error> {
    let usual = Latency::default();
    let ns = |key: &str, usual: u64| {
        let Some(item) = table.get(key) else { return Ok(usual) };
        let ns = item.duration_ns()?;
        if ns > LATENCY_NS_MAX { Err(item.error("a request takes at most 10s")) } else { Ok(ns) }
    };
    Ok(Latency {
        read_ns: ns("read", usual.read_ns)?,
        write_ns: ns("write", usual.write_ns)?,
        flush_ns: ns("flush", usual.flush_ns)?,
        ..usual
    })
}
