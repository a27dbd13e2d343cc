//! Makes the root filesystem of a container image: its layers on top of each other, as a SquashFS. The SquashFS
//! contains the layers' tar archives unchanged, and its tables point to the contents of the files inside the archives.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::changeset;
use super::digest::Digest;
use super::error::{Problem, reading};
use super::limits::{IMAGE_BYTES_MAX, LAYERS_MAX};
use crate::cache::{self, Cache, CacheEntry, Key};
use crate::progress::{BuildProgress, Stage};
use crate::squashfs::{self, HEAD_BYTES, Inserted, PADDING_BYTES};
use crate::tree::{Attributes, OnFolder, Spool, Tree};

/// Version of this code, part of the cache keys. Increase the version if the same inputs would make different files.
const VERSION: &str = "1";

/// Folders at which the agent (Everett's program in the guest) mounts filesystems, with their modes. A file or link at
/// one of these paths is replaced.
const MOUNT_POINTS: [(&str, u32); 4] = [("dev", 0o755), ("proc", 0o555), ("sys", 0o555), ("run", 0o755)];

/// Folders to which the agent writes, with their modes. If a path does not lead to a folder, even through
/// links, Everett makes a folder there. The folder replaces an existing file or link.
const FOLDERS: [(&str, u32); 2] = [("etc", 0o755), ("tmp", 0o1777)];

/// Files that the agent writes at each boot. The image's own files at these paths are removed.
const WRITTEN: [&str; 3] = ["etc/hostname", "etc/hosts", "etc/resolv.conf"];

/// A part of a disk: a range of bytes of a file in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPart {
    /// Path of the file.
    pub path: PathBuf,
    /// Offset of the part in the file, in bytes.
    pub offset: u64,
    /// Length of the part in bytes.
    pub bytes: u64,
}

/// A disk with a root filesystem. It consists of parts of files in the cache. Images that share a layer share the
/// layer's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootDisk {
    /// The parts, in the order in which they are on the disk.
    pub parts: Vec<RootPart>,
    /// Digest of the content: a BLAKE3 of the digests of the parts' files.
    pub digest: [u8; 32],
}

impl RootDisk {
    /// Returns the digest in hexadecimal.
    #[must_use]
    pub fn digest_hex(&self) -> String {
        blake3::Hash::from_bytes(self.digest).to_hex().to_string()
    }

    /// Returns the length of the disk in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

/// Returns the disk whose root filesystem has these layers, and the cache entry of the SquashFS's tables.
pub(super) fn get(
    cache: &Cache,
    diff_ids: &[Digest],
    layers: &[CacheEntry],
    time_s: u64,
    progress: &mut dyn BuildProgress,
) -> Result<(RootDisk, CacheEntry), Problem> {
    let key = Key::new("oci root").with(VERSION).with(time_s.to_le_bytes());
    let key = diff_ids.iter().fold(key, |key, diff_id| key.with(diff_id.to_string()));
    let tables = cache.get_or_put("root", &key, |file| {
        progress.at(Stage::Root, 0, 1);
        build(cache, diff_ids, layers, time_s, file)?;
        progress.at(Stage::Root, 1, 1);
        Ok::<(), Problem>(())
    })?;
    Ok((disk(&tables, layers), tables))
}

/// Checks that the lengths of these files allow them to be parts of one disk.
pub(super) fn check(tables: &CacheEntry, layers: &[CacheEntry]) -> Result<(), Problem> {
    let least = if layers.is_empty() { PADDING_BYTES } else { HEAD_BYTES };
    let is_whole = |entry: &CacheEntry| entry.bytes.is_multiple_of(PADDING_BYTES);
    if layers.len() > LAYERS_MAX || tables.bytes < least || !layers.iter().chain([tables]).all(is_whole) {
        return Err(Problem::Parts);
    }
    Ok(())
}

/// Returns the disk that consists of these tables and layers.
pub(super) fn disk(tables: &CacheEntry, layers: &[CacheEntry]) -> RootDisk {
    // Without layers, the disk consists of the tables only. Otherwise it consists of the first `HEAD_BYTES` bytes of
    // the tables, then the layers, and then the rest of the tables.
    let head = if layers.is_empty() { tables.bytes } else { HEAD_BYTES };
    let of_tables = |offset, bytes| RootPart { path: tables.path.clone(), offset, bytes };
    let mut parts = vec![of_tables(0, head)];
    let layer = |entry: &CacheEntry| RootPart { path: entry.path.clone(), offset: 0, bytes: entry.bytes };
    parts.extend(layers.iter().map(layer));
    if tables.bytes > head {
        parts.push(of_tables(head, tables.bytes - head));
    }
    let mut hasher = blake3::Hasher::new_derive_key("everett root disk");
    for entry in std::iter::once(tables).chain(layers) {
        hasher.update(entry.blake3.as_bytes());
    }
    RootDisk { parts, digest: *hasher.finalize().as_bytes() }
}

fn build(
    cache: &Cache,
    diff_ids: &[Digest],
    layers: &[CacheEntry],
    time_s: u64,
    out: &mut File,
) -> Result<(), Problem> {
    let temporary = cache.temporary();
    let failed = |source: io::Error| cache::Error::of(&temporary, source);
    let mut spool = Spool::new(&temporary, IMAGE_BYTES_MAX).map_err(failed)?;
    let mut tree = Tree::default();
    let mut inserted = Inserted::default();
    for (entry, diff_id) in layers.iter().zip(diff_ids) {
        let file = Arc::new(File::open(&entry.path).map_err(reading(entry.path.display()))?);
        changeset::apply(&diff_id.to_string(), &file, &mut tree, &mut spool)?;
        inserted.files.push((file, entry.bytes));
    }
    spool.flush().map_err(failed)?;
    prepare(&mut tree)?;
    tree.clamp_times(time_s);
    let mut out = io::BufWriter::with_capacity(1 << 20, out);
    squashfs::write_around(&tree, u32::try_from(time_s).unwrap_or(u32::MAX), &inserted, &mut out)?;
    Ok(())
}

/// Makes the folders at which the agent mounts filesystems and the folders to which the agent writes. Removes the files
/// in [`WRITTEN`].
fn prepare(tree: &mut Tree) -> Result<(), Problem> {
    for (path, mode) in MOUNT_POINTS {
        if !tree.is_real_folder(path.as_bytes()) {
            tree.remove(path.as_bytes());
        }
        tree.put_folder(path.as_bytes(), Attributes::of_root(mode), OnFolder::Keep)?;
    }
    for (path, mode) in FOLDERS {
        if !tree.leads_to_folder(path.as_bytes()) {
            tree.remove(path.as_bytes());
            tree.put_folder(path.as_bytes(), Attributes::of_root(mode), OnFolder::Keep)?;
        }
    }
    for path in WRITTEN {
        tree.remove(path.as_bytes());
    }
    Ok(())
}
