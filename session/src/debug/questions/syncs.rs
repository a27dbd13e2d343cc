//! Writes to files, and the calls that make them durable.
//!
//! Writes through a mapping (`mmap`) or `io_uring` are not seen.

use std::collections::BTreeMap;

use everett_inspect::current::Current;
use everett_inspect::files::OpenFile;

use super::follow::Observer;
use super::limits::{PENDING_CALLS_MAX, WRITTEN_FILES_MAX};
use super::place::Place;
use super::syscalls::{FUNCTIONS, Registers, Wanted, arguments, result};
use crate::debug::cursor::Listener;

/// Writes to a file that no call has made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsynced {
    /// Name of the file at the last write.
    pub file: String,
    /// Number of writes, and of changes of the length.
    pub writes: u64,
    /// Number of bytes that were written.
    pub bytes: u64,
    /// Vtime of the first, in nanoseconds.
    pub since_ns: u64,
}

/// A call that makes writes durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sync {
    /// Number of the node.
    pub node: usize,
    /// The thread that made the call.
    pub thread: Current,
    /// Name of the call.
    pub name: &'static str,
    /// Name of the file, or of a file of the file system. `None` for `sync`, which has no argument.
    pub file: Option<String>,
    /// Vtime of the beginning, in nanoseconds.
    pub begin_ns: u64,
    /// Vtime of the end, in nanoseconds.
    pub end_ns: u64,
    /// The writes that the call covers, i.e. those of any process that ended before the call began and that no earlier call has
    /// covered. Empty if the call failed.
    pub covered: Vec<Unsynced>,
    /// True if the call failed.
    pub has_failed: bool,
}

/// Effect of a call on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Writes as many bytes as the result says, to the descriptor that is this argument.
    Writes(usize),
    /// Changes the length.
    Changes,
    /// Makes the file durable.
    Syncs(&'static str),
    /// Makes all files of the file system durable.
    SyncsFileSystem,
    /// Makes everything durable.
    SyncsAll,
}

impl Does {
    /// Returns what a system call of Linux on x86-64 does. `None` if it does nothing of this.
    fn of(number: u64) -> Option<Does> {
        Some(match number {
            1 | 18 | 20 | 40 | 296 | 328 => Does::Writes(0),
            275 | 326 => Does::Writes(2),
            77 | 285 => Does::Changes,
            74 => Does::Syncs("fsync"),
            75 => Does::Syncs("fdatasync"),
            306 => Does::SyncsFileSystem,
            162 => Does::SyncsAll,
            _ => return None,
        })
    }

    /// Returns the number of the argument that is the descriptor.
    fn descriptor(self) -> Option<usize> {
        match self {
            Does::Writes(argument) => Some(argument),
            Does::SyncsAll => None,
            _ => Some(0),
        }
    }
}

/// Identity of a file: node, device (major, minor), and inode.
type FileId = (usize, (u32, u32), u64);

/// A call that has begun.
struct Pending {
    does: Does,
    begin_ns: u64,
    file: Option<(FileId, String)>,
    /// The writes that a sync covers: those that had ended when it began.
    covered: BTreeMap<FileId, Unsynced>,
}

/// Observer of writes and syncs.
pub struct Syncs<'s> {
    /// Processes whose syncs are wanted. Writes of all processes count.
    pub wanted: Wanted<'s>,
    /// Returns false to end the run.
    pub goes_on: &'s dyn Fn() -> bool,
    /// Takes each sync at its end.
    pub found: &'s mut dyn FnMut(Sync) -> anyhow::Result<()>,
    pending: BTreeMap<(usize, u32), Pending>,
    unsynced: BTreeMap<FileId, Unsynced>,
    left_out: u64,
}

impl<'s> Syncs<'s> {
    /// Creates the observer.
    pub fn new(
        wanted: Wanted<'s>,
        goes_on: &'s dyn Fn() -> bool,
        found: &'s mut dyn FnMut(Sync) -> anyhow::Result<()>,
    ) -> Syncs<'s> {
        let (pending, unsynced) = (BTreeMap::new(), BTreeMap::new());
        Syncs { wanted, goes_on, found, pending, unsynced, left_out: 0 }
    }

    /// Returns the writes that no call has made durable, with the numbers of their nodes, and the number of calls that were
    /// not followed because of the [bounds](super::limits) or because the kernel's structures could not be read.
    #[must_use]
    pub fn unsynced(mut self) -> (Vec<(usize, Unsynced)>, u64) {
        // A sync that has not ended has made nothing durable.
        for call in std::mem::take(&mut self.pending).into_values() {
            self.put_back(call.covered);
        }
        let files = self.unsynced.into_iter().map(|((node, ..), writes)| (node, writes));
        (files.collect(), self.left_out)
    }

    fn begin(&mut self, place: &Place<'_>, thread: &Current, registers: &Registers) {
        let (number, values) = arguments(registers);
        if let Some(lost) = self.pending.remove(&(place.node, thread.tid)) {
            // The thread has ended within the call, or its machine has lost power.
            self.put_back(lost.covered);
        }
        let Some(does) = Does::of(number) else { return };
        let file = match does.descriptor() {
            None => None,
            Some(argument) => match place.guest.open_file_of(thread, values[argument] as u32) {
                Ok(Some(file)) if !can_be_durable(&file) || is_durable(does, &file) => return,
                Ok(Some(file)) => Some(((place.node, file.device, file.inode), file.name)),
                Ok(None) => return,
                Err(_) => {
                    self.left_out += 1;
                    return;
                }
            },
        };
        if self.pending.len() >= PENDING_CALLS_MAX {
            self.left_out += 1;
            return;
        }
        let node = place.node;
        let covered = match (does, &file) {
            (Does::Syncs(_), Some((id, _))) => self.take(|other| other == id),
            (Does::SyncsFileSystem, Some(((_, device, _), _))) => {
                self.take(|id| id.0 == node && id.1 == *device)
            }
            (Does::SyncsAll, _) => self.take(|id| id.0 == node),
            _ => BTreeMap::new(),
        };
        let call = Pending { does, begin_ns: place.vtime_ns, file, covered };
        self.pending.insert((node, thread.tid), call);
    }

    fn end(&mut self, place: &Place<'_>, thread: &Current, registers: &Registers) -> anyhow::Result<()> {
        let Some(call) = self.pending.remove(&(place.node, thread.tid)) else { return Ok(()) };
        let (result, node) = (result(registers), place.node);
        let has_failed = result < 0;
        let (name, file) = match (call.does, call.file) {
            (Does::Writes(_) | Does::Changes, _) if has_failed => return Ok(()),
            (Does::Writes(_), Some(file)) => {
                self.write(file, result.unsigned_abs(), call.begin_ns);
                return Ok(());
            }
            (Does::Changes, Some(file)) => {
                self.write(file, 0, call.begin_ns);
                return Ok(());
            }
            (Does::Syncs(name), file) => (name, file),
            (Does::SyncsFileSystem, file) => ("syncfs", file),
            (Does::SyncsAll, _) => ("sync", None),
            (_, None) => return Ok(()),
        };
        let mut covered = call.covered;
        if has_failed {
            self.put_back(std::mem::take(&mut covered));
        }
        let covered: Vec<Unsynced> = covered.into_values().collect();
        if !(self.wanted)(thread) {
            return Ok(());
        }
        let (begin_ns, end_ns) = (call.begin_ns, place.vtime_ns);
        let (thread, file) = (thread.clone(), file.map(|(_, name)| name));
        (self.found)(Sync { node, thread, name, file, begin_ns, end_ns, covered, has_failed })
    }

    fn write(&mut self, (id, file): (FileId, String), bytes: u64, begin_ns: u64) {
        if self.unsynced.len() >= WRITTEN_FILES_MAX && !self.unsynced.contains_key(&id) {
            self.left_out += 1;
            return;
        }
        let new = || Unsynced { file: String::new(), writes: 0, bytes: 0, since_ns: begin_ns };
        let writes = self.unsynced.entry(id).or_insert_with(new);
        writes.file = file;
        writes.writes += 1;
        writes.bytes = writes.bytes.saturating_add(bytes);
    }

    /// Takes the writes to some files.
    fn take(&mut self, is_one: impl Fn(&FileId) -> bool) -> BTreeMap<FileId, Unsynced> {
        let all = std::mem::take(&mut self.unsynced);
        let (taken, kept) = all.into_iter().partition(|(id, _)| is_one(id));
        self.unsynced = kept;
        taken
    }

    /// Adds writes that a sync was to cover and did not.
    fn put_back(&mut self, writes: BTreeMap<FileId, Unsynced>) {
        for (id, earlier) in writes {
            let Unsynced { file, writes, bytes, since_ns } = earlier;
            let now = self.unsynced.entry(id).or_insert(Unsynced { file, writes: 0, bytes: 0, since_ns });
            now.writes += writes;
            now.bytes = now.bytes.saturating_add(bytes);
            now.since_ns = now.since_ns.min(since_ns);
        }
    }
}

/// Returns false for pipes, sockets, devices and the kernel's own files, which have nothing to make durable.
fn can_be_durable(file: &OpenFile) -> bool {
    let is_kernels = ["/proc/", "/sys/"].iter().any(|folder| file.name.starts_with(folder));
    file.name.starts_with('/') && file.special_device.is_none() && !is_kernels
}

/// True if a write returns only when it is durable (`O_DSYNC`, `O_SYNC`).
fn is_durable(does: Does, file: &OpenFile) -> bool {
    const O_DSYNC: u32 = 0o10_000;
    matches!(does, Does::Writes(_)) && file.flags & O_DSYNC != 0
}

impl Listener for Syncs<'_> {
    fn goes_on(&mut self) -> bool {
        (self.goes_on)()
    }
}

impl Observer for Syncs<'_> {
    fn functions(&self) -> Vec<&'static str> {
        FUNCTIONS.to_vec()
    }

    fn at(&mut self, function: usize, place: &Place<'_>) -> anyhow::Result<()> {
        let (Ok(thread), Some(registers)) = (place.guest.current_thread(), place.words(place.first())) else {
            self.left_out += 1;
            return Ok(());
        };
        match function {
            0 => {
                self.begin(place, &thread, &registers);
                Ok(())
            }
            _ => self.end(place, &thread, &registers),
        }
    }
}
