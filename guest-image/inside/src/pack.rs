//! Reads files and folders.
//!
//! The frames of a folder are its entry, those of its files in the order of the bytes of their names, and an end. An
//! entry has the name of a file only, never a path.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::attributes::attributes;
use crate::frames::{self, FRAME_BYTES_MAX, Frames, field};

/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 256;

/// Filesystems whose files the kernel makes when they are read. A folder of another filesystem does not include them
/// (Linux, `include/uapi/linux/magic.h`): cgroup, cgroup2, debugfs, devpts, proc, sysfs, tracefs and bpf.
const OF_KERNEL: [i64; 8] =
    [0x0027_e0eb, 0x6367_7270, 0x6462_6720, 0x1cd1, 0x9fa0, 0x6265_6572, 0x7472_6163, 0xcafe_4a11];

/// Reads a file or a folder with all that is in it. A link at `path` itself is followed.
pub(crate) fn pack(path: &Path, frames: &mut Frames) -> Result<(), String> {
    let what = |error: io::Error| format!("{}: {error}", path.display());
    let real = fs::canonicalize(path).map_err(what)?;
    let metadata = fs::symlink_metadata(&real).map_err(what)?;
    let name = path.file_name().or(real.file_name()).unwrap_or(OsStr::new("root")).to_owned();
    let mut packer = Packer { frames, seen: BTreeMap::new(), entries: 0 };
    packer.entry(&name, &real, &metadata, 0)
}

struct Packer<'f, W: Write> {
    frames: &'f mut Frames<W>,
    /// Numbers of the entries of files with several names, by device and inode.
    seen: BTreeMap<(u64, u64), u64>,
    /// Number of entries so far.
    entries: u64,
}

impl<W: Write> Packer<'_, W> {
    fn left_out(&mut self, path: &Path, why: &str) -> Result<(), String> {
        let told = [path.as_os_str().as_bytes(), b": ", why.as_bytes()].concat();
        // The reason can be longer than a frame only if the path is.
        self.frames.bytes(frames::LEFT_OUT, &told[..told.len().min(FRAME_BYTES_MAX)])
    }

    fn entry(&mut self, name: &OsStr, path: &Path, metadata: &Metadata, depth: usize) -> Result<(), String> {
        let is_file = metadata.is_file();
        let identity = (metadata.dev(), metadata.ino());
        if is_file && let Some(number) = self.seen.get(&identity) {
            let fields = format!("{number} {}", field(name.as_bytes()));
            return self.frames.fields(frames::LINK, &fields);
        }
        // The content of a file is readable if it can be opened.
        let file = if is_file { Some(open(path)) } else { None };
        let file = match file.transpose() {
            Ok(file) => file,
            Err(error) => return self.left_out(path, &error.to_string()),
        };
        let names = if metadata.is_dir() { Some(names(path)) } else { None };
        let names = match names.transpose() {
            Ok(names) => names,
            Err(error) => return self.left_out(path, &error.to_string()),
        };
        let fields = match attributes(name, path, metadata) {
            Ok(fields) => fields,
            Err(error) => return self.left_out(path, &error.to_string()),
        };
        if names.is_some() && depth >= DEPTH_MAX {
            return self.left_out(path, &format!("it lies in more than {DEPTH_MAX} folders"));
        }
        self.frames.fields(frames::ENTRY, &fields)?;
        if is_file && metadata.nlink() > 1 {
            self.seen.insert(identity, self.entries);
        }
        self.entries += 1;
        if let Some(file) = file {
            self.content(file)?;
        }
        let Some(names) = names else { return Ok(()) };
        for name in names {
            let path = path.join(&name);
            match fs::symlink_metadata(&path) {
                Ok(below) if below.is_dir() && below.dev() != metadata.dev() && is_of_kernel(&path) => {
                    self.left_out(&path, "the kernel makes its files")?;
                }
                Ok(below) => self.entry(&name, &path, &below, depth + 1)?,
                Err(error) => self.left_out(&path, &error.to_string())?,
            }
        }
        self.frames.mark(frames::END)
    }

    fn content(&mut self, mut file: File) -> Result<(), String> {
        let mut buffer = vec![0; FRAME_BYTES_MAX];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return self.frames.mark(frames::END),
                Ok(length) => self.frames.bytes(frames::CONTENT, &buffer[..length])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.frames.bytes(frames::BROKEN, error.to_string().as_bytes()),
            }
        }
    }
}

/// Opens a file that may have become another kind of file in the meantime.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

fn names(path: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name());
    }
    names.sort();
    Ok(names)
}

fn is_of_kernel(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|about| OF_KERNEL.contains(&about.f_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(path: &Path) -> Vec<String> {
        let mut out = Vec::new();
        let metadata = fs::symlink_metadata(path).unwrap();
        let mut frames = Frames::new(&mut out);
        let mut packer = Packer { frames: &mut frames, seen: BTreeMap::new(), entries: 0 };
        packer.entry(OsStr::new("top"), path, &metadata, 0).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_folder_has_its_files_in_order_and_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("b"), "content").unwrap();
        fs::hard_link(at("b"), at("c")).unwrap();
        std::os::unix::fs::symlink("../x", at("a")).unwrap();
        fs::create_dir(at("d")).unwrap();
        let frames = packed(folder.path());
        let kinds: String = frames.iter().filter_map(|line| line.chars().next()).collect();
        assert_eq!(kinds, "nnndzlnzz", "{frames:#?}");
        assert!(frames[1].ends_with(&format!("{} {}", field(b"a"), field(b"../x"))), "{}", frames[1]);
        assert!(frames[2].starts_with("n - ") && frames[2].ends_with(&field(b"b")));
        assert_eq!(frames[3], format!("d {}", field(b"content")));
        assert_eq!(frames[5], format!("l 2 {}", field(b"c")));
    }

    #[test]
    fn the_kernels_files_have_contents() {
        let frames = packed(Path::new("/proc/self/status"));
        assert!(frames[0].starts_with("n - ") && frames[1].starts_with("d ") && frames[2] == "z ");
        assert!(is_of_kernel(Path::new("/proc")) && !is_of_kernel(Path::new("/tmp")));
    }
}
