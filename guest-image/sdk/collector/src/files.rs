//! Reads the `.jsonl` files in the output folder while programs write to them.
//!
//! The folder is a filesystem in memory. A power loss empties it, so after a reboot the collector finds no old lines.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::{Context as _, Failure, port};

/// Output folder, the value of `ANTITHESIS_OUTPUT_DIR`.
const FOLDER: &str = "/tmp/antithesis";
/// File to which the SDK's libraries append if they cannot load `libvoidstar.so`.
const COMMON: &str = "/tmp/antithesis/sdk.jsonl";
/// Suffix of the names of files that the collector reads.
const SUFFIX: &str = ".jsonl";
/// Mount options of the folder: any user may write, and the size is bounded.
const OPTIONS: &std::ffi::CStr = c"mode=1777,size=64m";
/// Maximum number of files that the collector reads.
const FILES_MAX: usize = 1024;
/// Maximum length of a line, in bytes. If a line is longer, the collector sends its beginning, and Everett reports it.
const LINE_BYTES_MAX: usize = 256 << 10;
/// Minimum number of read bytes before the collector frees their memory.
const FREED_BYTES_MIN: u64 = 1 << 20;
/// Size of a page of memory, in bytes. The kernel frees a file's memory in whole pages.
const PAGE_BYTES: u64 = 4096;

/// Mounts the output folder, and creates the file to which all programs may append.
pub(crate) fn make() -> Result<(), Failure> {
    let what = || format!("make {FOLDER}");
    fs::create_dir_all(FOLDER).context(what)?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount("everett-sdk", FOLDER, "tmpfs", flags, OPTIONS).context(what)?;
    File::create(COMMON).context(what)?;
    fs::set_permissions(COMMON, fs::Permissions::from_mode(0o666)).context(what)
}

/// Progress of reading a file.
#[derive(Debug, Default)]
struct Progress {
    inode: u64,
    /// Number of bytes that the collector has sent.
    read: u64,
    /// Number of bytes at the start of the file whose memory the collector has freed.
    freed: u64,
    /// True inside a line that was too long. The collector drops the remaining bytes of the line.
    skips: bool,
}

/// Output folder with the progress of each file.
pub(crate) struct Folder {
    events: OwnedFd,
    files: BTreeMap<String, Progress>,
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

impl Folder {
    /// Starts to watch the folder for changes.
    pub(crate) fn watch() -> Result<Folder, Failure> {
        let what = || format!("watch {FOLDER}");
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).context(what)?;
        let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        inotify::add_watch(&events, FOLDER, changes).context(what)?;
        Ok(Folder { events, files: BTreeMap::new() })
    }

    /// Sends the new lines of all files, in the order of the files' names.
    pub(crate) fn read(&mut self, port: &File) -> Result<(), Failure> {
        self.forget_events()?;
        let mut names = Vec::new();
        for entry in fs::read_dir(FOLDER).context(|| format!("read {FOLDER}"))?.flatten() {
            if let Ok(name) = entry.file_name().into_string()
                && name.ends_with(SUFFIX)
                && names.len() < FILES_MAX
            {
                names.push(name);
            }
        }
        names.sort();
        self.files.retain(|name, _| names.contains(name));
        for name in names {
            let progress = self.files.entry(name.clone()).or_default();
            // A program may remove or replace a file at any time.
            let Ok(file) = open(&Path::new(FOLDER).join(&name)) else { continue };
            let Ok(metadata) = file.metadata() else { continue };
            if metadata.is_file() {
                if metadata.ino() != progress.inode || metadata.len() < progress.read {
                    *progress = Progress { inode: metadata.ino(), ..Progress::default() };
                }
                lines(&file, progress, port)?;
            }
        }
        Ok(())
    }

    /// Discards the pending events. They only tell that some file has changed.
    fn forget_events(&self) -> Result<(), Failure> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        loop {
            match events.next() {
                Ok(event) if event.events().contains(ReadFlags::IGNORED) => {
                    return Err(Failure(format!("{FOLDER} is gone")));
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error).context(|| format!("watch {FOLDER}")),
            }
        }
    }
}

/// Opens a file. Does not follow a symbolic link, and does not wait for the writer of a pipe.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path)
}

/// Sends the new complete lines of a file, and frees the memory of the lines.
fn lines(file: &File, progress: &mut Progress, port: &File) -> Result<(), Failure> {
    let mut buffer = vec![0; LINE_BYTES_MAX];
    while let Ok(length @ 1..) = file.read_at(&mut buffer, progress.read) {
        let bytes = &buffer[..length];
        let complete = match bytes.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => &bytes[..=last],
            None if length < LINE_BYTES_MAX => break,
            None => {
                if !std::mem::replace(&mut progress.skips, true) {
                    port::send(port, bytes)?;
                }
                progress.read += length as u64;
                continue;
            }
        };
        for line in complete.split(|&byte| byte == b'\n') {
            let is_rest = std::mem::replace(&mut progress.skips, false);
            if !is_rest && !line.is_empty() {
                port::send(port, line)?;
            }
        }
        progress.read += complete.len() as u64;
    }
    let whole_pages = progress.read / PAGE_BYTES * PAGE_BYTES;
    // A program may have emptied the file and written to it again in the meantime.
    let is_longer = file.metadata().is_ok_and(|metadata| metadata.len() >= progress.read);
    if whole_pages >= progress.freed + FREED_BYTES_MIN && is_longer {
        progress.freed = whole_pages;
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Fails if the filesystem cannot do this. The lines then keep their memory.
        let _ = rustix::fs::fallocate(file, how, 0, whole_pages);
    }
    Ok(())
}
