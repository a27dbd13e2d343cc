//! Packing of the root filesystem's changes into a tar on a block device.
//!
//! The changes lie in the overlay's upper folder, with whiteouts and opaque folders. They are far smaller than the
//! whole root, so packing takes the guest little time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use everett_protocol::{Pack, Reply};
use tar::{Builder, EntryType, Header};

use crate::disks;
use crate::failure::{Context as _, Failure};

/// Number of bytes that one write sends to the device.
const WRITE_BYTES: usize = 1 << 20;

/// Extended attribute of an opaque folder. An opaque folder hides the content of the lower folder.
const OPAQUE: &[u8] = b"trusted.overlay.opaque";

/// Maximum length of a packed extended attribute's value, in bytes. `security.capability` has 24 bytes.
const ATTRIBUTE_BYTES_MAX: usize = 4096;

/// Packs the upper folder. The names in each folder are sorted, so equal changes make equal archives.
pub(crate) fn pack(pack: &Pack, upper: &OwnedFd) -> Result<Reply, Failure> {
    let device = disks::by_serial(&pack.serial)?;
    let what = || format!("write the changes to the disk {}", pack.serial);
    let file = OpenOptions::new().write(true).open(&device).context(what)?;
    let counter = Counter { inner: BufWriter::with_capacity(WRITE_BYTES, file), bytes: 0 };
    // The folder has no path any more, because the new root is mounted over the initramfs, which contains the folder.
    let root = PathBuf::from(format!("/proc/self/fd/{}", upper.as_raw_fd()));
    let mut packer = Packer { tar: Builder::new(counter), root, links: BTreeMap::new(), entries: 0 };
    packer.folder(Path::new(""))?;
    let Packer { tar, entries, .. } = packer;
    let mut counter = tar.into_inner().context(what)?;
    counter.flush().context(what)?;
    counter.inner.get_ref().sync_all().context(what)?;
    Ok(Reply::Packed { bytes: counter.bytes, entries })
}

struct Packer {
    tar: Builder<Counter>,
    /// Path of the upper folder.
    root: PathBuf,
    /// Archive path of the first entry of each file with hard links, by inode number. Later entries link to this path.
    links: BTreeMap<u64, PathBuf>,
    entries: u64,
}

impl Packer {
    /// Packs the content of `folder`, a path relative to the upper folder.
    fn folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let what = || format!("read /{}", folder.display());
        let mut names: Vec<OsString> = Vec::new();
        for entry in fs::read_dir(self.root.join(folder)).context(what)? {
            names.push(entry.context(what)?.file_name());
        }
        names.sort();
        for name in names {
            let path = folder.join(name);
            let what = || format!("pack /{}", path.display());
            let metadata = fs::symlink_metadata(self.root.join(&path)).context(what)?;
            self.entry(&path, &metadata).context(what)?;
            if metadata.is_dir() {
                self.folder(&path)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, inside: &Path, metadata: &Metadata) -> io::Result<()> {
        let kind = metadata.file_type();
        // A socket of an earlier boot is useless, so the archive leaves it out.
        if kind.is_socket() {
            return Ok(());
        }
        let path = self.root.join(inside);
        self.attributes(&path)?;
        let mut header = Header::new_gnu();
        header.set_mode(metadata.mode() & 0o7777);
        header.set_uid(u64::from(metadata.uid()));
        header.set_gid(u64::from(metadata.gid()));
        header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or(0));
        header.set_size(0);
        self.entries += 1;
        if kind.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            return self.tar.append_link(&mut header, inside, fs::read_link(path)?);
        }
        if kind.is_file() {
            if metadata.nlink() > 1 {
                if let Some(first) = self.links.get(&metadata.ino()) {
                    header.set_entry_type(EntryType::Link);
                    return self.tar.append_link(&mut header, inside, first);
                }
                self.links.insert(metadata.ino(), inside.to_path_buf());
            }
            header.set_entry_type(EntryType::Regular);
            header.set_size(metadata.len());
            return self.tar.append_data(&mut header, inside, File::open(path)?);
        }
        header.set_entry_type(if kind.is_dir() {
            EntryType::Directory
        } else if kind.is_char_device() {
            EntryType::Char
        } else if kind.is_block_device() {
            EntryType::Block
        } else {
            EntryType::Fifo
        });
        if kind.is_char_device() || kind.is_block_device() {
            header.set_device_major(rustix::fs::major(metadata.rdev()))?;
            header.set_device_minor(rustix::fs::minor(metadata.rdev()))?;
        }
        self.tar.append_data(&mut header, inside, io::empty())
    }

    /// Writes the entry's extended attributes before the entry, in the form of GNU tar (`SCHILY.xattr.`).
    fn attributes(&mut self, path: &Path) -> io::Result<()> {
        let mut names = vec![0u8; 64 << 10];
        let length = match rustix::fs::llistxattr(path, &mut names) {
            Ok(length) => length,
            Err(rustix::io::Errno::NOTSUP) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut records = Vec::new();
        for name in names[..length].split(|&byte| byte == 0) {
            let kept = [&b"security."[..], b"user.", OPAQUE].iter().any(|kept| name.starts_with(kept));
            if !kept {
                continue;
            }
            let mut value = vec![0u8; ATTRIBUTE_BYTES_MAX];
            let length = rustix::fs::lgetxattr(path, std::ffi::OsStr::from_bytes(name), &mut value)?;
            value.truncate(length);
            records.push((format!("SCHILY.xattr.{}", String::from_utf8_lossy(name)), value));
        }
        if records.is_empty() {
            return Ok(());
        }
        records.sort();
        self.tar.append_pax_extensions(records.iter().map(|(name, value)| (name.as_str(), value.as_slice())))
    }
}

/// Writer that counts the bytes written to the device.
struct Counter {
    inner: BufWriter<File>,
    bytes: u64,
}

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
