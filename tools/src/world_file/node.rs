//! `[[node]]`: one machine.

use std::sync::Arc;

use serde::Serialize;

use super::command::{Service, services};
use super::cursor::{Item, Table};
use super::disk::{self, DataDisk};
use super::error::Error;
use super::files;
use super::image::{self, Image, Root};
use super::paths;
use crate::units;

/// A node's memory, in bytes: least, default, most.
pub(super) const MEMORY_BYTES_MIN: u64 = 32 << 20;
/// See [`MEMORY_BYTES_MIN`].
pub(super) const MEMORY_BYTES_DEFAULT: u64 = 256 << 20;
/// See [`MEMORY_BYTES_MIN`]. RAM is one region below the devices' addresses.
pub(super) const MEMORY_BYTES_MAX: u64 = 3 << 30;
/// The most entries in `files`.
const FILES_MAX: usize = 256;
/// What a program begins with: the interpreter that it asks for, or the ELF header.
const PROGRAM_MARKS: [&[u8]; 2] = [b"#!", b"\x7fELF"];
/// Mode bits of a program.
const PROGRAM_MODE: u32 = 0o755;
/// Mode bits of any other file.
const FILE_MODE: u32 = 0o644;
/// The most services of one node.
const SERVICES_MAX: usize = 64;
const PAGE_BYTES: u64 = 4096;

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its host name.
    pub name: String,
    /// RAM in bytes, a multiple of a page.
    pub memory_bytes: u64,
    /// Debian packages besides the image's. The image's digest says what is in them.
    #[serde(skip)]
    pub packages: Vec<String>,
    /// Files put in place before the services start, by guest path.
    pub files: Vec<FileEntry>,
    /// Data disks, by mount point.
    pub disks: Vec<DataDisk>,
    /// Programs started when the node is up, in this order.
    pub services: Vec<Service>,
}

/// A file of the host that the guest gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// Where it goes.
    pub guest_path: String,
    /// What it contains, read with the world: identities, boots and runs are all of the same bytes.
    #[serde(skip)]
    pub content: Arc<[u8]>,
}

impl FileEntry {
    /// Its mode bits in the guest. They follow from the content alone: those that it has on the host would make a timeline
    /// depend on more than what was read.
    #[must_use]
    pub fn mode(&self) -> u32 {
        let program = PROGRAM_MARKS.iter().any(|mark| self.content.starts_with(mark));
        if program { PROGRAM_MODE } else { FILE_MODE }
    }
}

/// Read a node; the second value is its name's place, for errors about duplicates.
pub(super) fn read<'a>(
    table: &Table<'a>,
    image: &Image,
    reader: &mut files::Reader,
) -> Result<(Node, Item<'a>), Error> {
    table.only(&["name", "memory", "packages", "files", "disk", "service"], &["cpus", "address"])?;
    let name_item = table.require("name")?;
    let name = host_name(&name_item)?;
    let memory_bytes = match table.get("memory") {
        None => MEMORY_BYTES_DEFAULT,
        Some(item) => memory(&item)?,
    };
    let packages = match table.get("packages") {
        None => Vec::new(),
        Some(item) => {
            if matches!(image.root, Root::Path(_)) {
                return Err(item.error("packages cannot be added to image.rootfs"));
            }
            image::packages(&item)?
        }
    };
    let files = table.get("files").map(|item| files(&item, reader)).transpose()?.unwrap_or_default();
    let disks = table.get("disk").map(|item| disk::read(&item)).transpose()?.unwrap_or_default();
    let services =
        table.get("service").map(|item| services(&item, SERVICES_MAX)).transpose()?.unwrap_or_default();
    Ok((Node { name, memory_bytes, packages, files, disks, services }, name_item))
}

/// RFC 1123 labels in lower case: they end up in the guest's host table.
fn host_name(item: &Item<'_>) -> Result<String, Error> {
    let text = item.str()?;
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let ends_ok = !text.starts_with('-') && !text.ends_with('-');
    if !(1..=63).contains(&text.len()) || !text.bytes().all(inner) || !ends_ok {
        return Err(item.error(format!("\"{text}\" is not a host name: 1 to 63 of a-z, 0-9 and inner '-'")));
    }
    if text == "localhost" {
        return Err(item.error("\"localhost\" is every node's own name for itself"));
    }
    Ok(text.to_owned())
}

fn size(item: &Item<'_>) -> Result<u64, Error> {
    units::parse_size_bytes(item.str()?).map_err(|e| item.error(e.to_string()))
}

fn memory(item: &Item<'_>) -> Result<u64, Error> {
    let bytes = size(item)?;
    if !(MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX).contains(&bytes) || !bytes.is_multiple_of(PAGE_BYTES) {
        return Err(item.error("a node has between 32M and 3G of memory, in whole pages of 4K"));
    }
    Ok(bytes)
}

fn files(item: &Item<'_>, reader: &mut files::Reader) -> Result<Vec<FileEntry>, Error> {
    let mut files: Vec<FileEntry> = Vec::new();
    for (guest, host) in item.table()?.entries() {
        let guest_path = paths::guest(&host, &guest)?;
        let host_path = paths::host(&host)?;
        let content = reader.read(&host_path).map_err(|what| host.error(what))?;
        if files.iter().any(|other| other.guest_path == guest_path) {
            return Err(host.error(format!("{guest_path} is named twice")));
        }
        files.push(FileEntry { guest_path, content });
        if files.len() > FILES_MAX {
            return Err(item.error(format!("at most {FILES_MAX} files are allowed")));
        }
    }
    Ok(files)
}
