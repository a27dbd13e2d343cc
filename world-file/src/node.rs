//! Reads the tables `[[node]]`: the machines of a world.

use std::sync::Arc;

use everett_image_origin::ImageOrigin;
use serde::Serialize;

use super::command::{Service, services, user_name};
use super::composed::Composed;
use super::container;
use super::cursor::{Item, Table};
use super::disk::{self, DataDisk, Filesystem};
use super::error::Error;
use super::files;
use super::image::{self, ImageConfig, Root};
use super::paths;

/// Minimum memory of a node, in bytes.
pub(super) const MEMORY_BYTES_MIN: u64 = 32 << 20;
/// Default memory of a node, in bytes.
pub(super) const MEMORY_BYTES_DEFAULT: u64 = 256 << 20;
/// Maximum memory of a node, in bytes. The whole RAM is below the addresses of devices.
pub(super) const MEMORY_BYTES_MAX: u64 = 3 << 30;
/// Default size of the disk for a container image's volumes, in bytes.
pub(super) const VOLUMES_BYTES_DEFAULT: u64 = 1 << 30;
/// Maximum number of entries of `files`.
const FILES_MAX: usize = 256;
/// First bytes of a program: an interpreter line or the ELF magic.
const PROGRAM_MARKS: [&[u8]; 2] = [b"#!", &everett_elf::MAGIC];
/// Mode bits of a program.
const PROGRAM_MODE: u32 = 0o755;
/// Largest value of the key `mode`.
const MODE_MAX: u32 = 0o7777;
/// Name of the superuser.
const ROOT: &str = "root";
/// Permission bits of a file that is not a program.
const FILE_MODE: u32 = 0o644;
/// Maximum number of services of one node.
const SERVICES_MAX: usize = 64;
pub(super) const PAGE_BYTES: u64 = 4096;

/// One machine of a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Host name.
    pub name: String,
    /// Size of the RAM in bytes, a multiple of the page size.
    pub memory_bytes: u64,
    /// Debian packages of this node, in addition to the packages of `[image]`. The world's identity (a digest of
    /// everything that determines its timelines) covers the contents of the packages, because it contains the digest
    /// of the built image.
    #[serde(skip)]
    pub packages: Vec<String>,
    /// Container image that is the node's root filesystem. The digest of the built image covers the container image's
    /// content and configuration.
    #[serde(skip)]
    pub image: Option<ImageOrigin>,
    /// Size of the disk for the container image's volumes, in bytes. `None` if the node has no container image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes_bytes: Option<u64>,
    /// Files that Everett puts into the guest before the services start.
    pub files: Vec<FileEntry>,
    /// Data disks, in the order in which the world file lists them.
    pub disks: Vec<DataDisk>,
    /// Programs that the agent (Everett's program in the guest) starts as soon as the node is up, in this order.
    pub services: Vec<Service>,
    /// Settings that only compose files have. `None` for a node of a world file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composed: Option<Composed>,
}

/// A file that Everett copies from the host into the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// Path in the guest.
    pub guest_path: String,
    /// Content of the file. It is read together with the world file, so that the world's identity, the boot and the run
    /// use the same bytes.
    #[serde(skip)]
    pub content: Arc<[u8]>,
    /// Owner of the file, as a name or number. `None` means root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Group of the file. `None` means the owner's group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Permission bits that the world file gives. `None` if it gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_mode: Option<u32>,
}

impl FileEntry {
    /// Returns a file that root owns. Its content determines the permission bits.
    #[must_use]
    pub fn of_root(guest_path: String, content: Arc<[u8]>) -> FileEntry {
        FileEntry { guest_path, content, owner: None, group: None, own_mode: None }
    }

    /// Returns the owner in the agent's form: `USER` or `USER:GROUP`. `None` means root.
    #[must_use]
    pub fn agent_owner(&self) -> Option<String> {
        match (&self.owner, &self.group) {
            (owner, None) => owner.clone(),
            (owner, Some(group)) => Some(format!("{}:{group}", owner.as_deref().unwrap_or(ROOT))),
        }
    }

    /// Returns the file's permission bits in the guest. If the world file does not give them, they depend only on the
    /// content. The bits of the host's file have no effect, so that a timeline depends only on contents.
    #[must_use]
    pub fn mode(&self) -> u32 {
        if let Some(mode) = self.own_mode {
            return mode;
        }
        let program = PROGRAM_MARKS.iter().any(|mark| self.content.starts_with(mark));
        if program { PROGRAM_MODE } else { FILE_MODE }
    }
}

/// Reads a node. The second value is the item with the node's name, for errors about duplicate names.
pub(super) fn read<'a>(
    table: &Table<'a>,
    image: &ImageConfig,
    reader: &mut files::Reader,
) -> Result<(Node, Item<'a>), Error> {
    table.only(
        &["name", "memory", "image", "volumes", "packages", "files", "disk", "service"],
        &["cpus", "address"],
    )?;
    let name_item = table.require("name")?;
    let name = host_name(&name_item)?;
    let memory_bytes = match table.get("memory") {
        None => MEMORY_BYTES_DEFAULT,
        Some(item) => memory(&item)?,
    };
    let own_image = table.get("image").map(|item| container::read(&item)).transpose()?;
    let volumes_bytes = match (table.get("volumes"), &own_image) {
        (None, None) => None,
        (None, Some(_)) => Some(VOLUMES_BYTES_DEFAULT),
        (Some(item), None) => return Err(item.error("this has no effect without image; remove it")),
        (Some(item), Some(_)) => Some(disk::size(&item, Filesystem::Ext4)?),
    };
    let packages = match table.get("packages") {
        None => Vec::new(),
        Some(item) => {
            if own_image.is_some() {
                return Err(item.error("packages cannot be added to a container image"));
            }
            if matches!(image.root, Root::Path(_)) {
                return Err(item.error("packages cannot be added to image.rootfs"));
            }
            image::packages(&item)?
        }
    };
    let files = table.get("files").map(|item| files(&item, reader)).transpose()?.unwrap_or_default();
    let disks = table.get("disk").map(|item| disk::read(&item)).transpose()?.unwrap_or_default();
    let of_image = own_image.as_ref().map(|_| name.as_str());
    let services = match (table.get("service"), of_image) {
        (Some(item), node) => services(&item, SERVICES_MAX, node)?,
        (None, Some(node)) => vec![Service::of_image(node.to_owned())],
        (None, None) => Vec::new(),
    };
    let image = own_image;
    let node =
        Node { name, memory_bytes, packages, image, volumes_bytes, files, disks, services, composed: None };
    Ok((node, name_item))
}

/// Reads a host name. It must be an RFC 1123 label in lower case, because Everett writes it to the `/etc/hosts` of all
/// guests.
fn host_name(item: &Item<'_>) -> Result<String, Error> {
    let text = item.str()?;
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let ends_ok = !text.starts_with('-') && !text.ends_with('-');
    if !(1..=63).contains(&text.len()) || !text.bytes().all(inner) || !ends_ok {
        return Err(item.error(format!(
            "\"{text}\" is not a host name, which has 1 to 63 characters out of a-z, 0-9 and '-', and neither begins nor \
             ends with '-'"
        )));
    }
    if text == "localhost" {
        return Err(item.error("\"localhost\" is every node's own name for itself"));
    }
    Ok(text.to_owned())
}

fn memory(item: &Item<'_>) -> Result<u64, Error> {
    let bytes = item.size_bytes()?;
    if !(MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX).contains(&bytes) || !bytes.is_multiple_of(PAGE_BYTES) {
        return Err(item.error(
            "a node has at most 3G of memory, and at least what its kernel needs (never less than 32M), in whole pages of 4K",
        ));
    }
    Ok(bytes)
}

fn files(item: &Item<'_>, reader: &mut files::Reader) -> Result<Vec<FileEntry>, Error> {
    let mut files: Vec<FileEntry> = Vec::new();
    for (guest, entry) in item.table()?.entries() {
        let guest_path = paths::guest(&entry, &guest)?;
        if files.iter().any(|other| other.guest_path == guest_path) {
            return Err(entry.error(format!("{guest_path} is named twice")));
        }
        files.push(file_entry(guest_path, &entry, reader)?);
        if files.len() > FILES_MAX {
            return Err(item.error(format!("at most {FILES_MAX} files are allowed")));
        }
    }
    Ok(files)
}

/// Reads the entry for a guest path: a host path, or a table with the key `from`.
fn file_entry(guest_path: String, entry: &Item<'_>, reader: &mut files::Reader) -> Result<FileEntry, Error> {
    let mut content = |host: &Item<'_>| reader.read(&paths::host(host)?).map_err(|what| host.error(what));
    if !entry.is_table() {
        return Ok(FileEntry::of_root(guest_path, content(entry)?));
    }
    let table = entry.table()?;
    table.only(&["from", "owner", "group", "mode"], &[])?;
    Ok(FileEntry {
        guest_path,
        content: content(&table.require("from")?)?,
        owner: table.get("owner").map(|item| user_name(&item)).transpose()?,
        group: table.get("group").map(|item| user_name(&item)).transpose()?,
        own_mode: table.get("mode").map(|item| mode(&item)).transpose()?,
    })
}

fn mode(item: &Item<'_>) -> Result<u32, Error> {
    let text = item.str().map_err(|error| Error {
        what: format!("{}; write the mode as a string, such as \"0400\"", error.what),
        ..error
    })?;
    let octal = (1..=4).contains(&text.len()) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| octal && *mode <= MODE_MAX);
    mode.ok_or_else(|| {
        item.error(format!("\"{text}\" is not a mode of up to four octal digits, such as \"0400\""))
    })
}
