//! Lists folders of a throw-away fork, and copies files out of it, as programs in the machine see them.

use std::path::Path;

pub use super::copied::Copied;
pub use super::error::FilesError;
use super::file_entry::FileEntry;
use super::fork::Fork;
use super::frames::Frame;
use super::limits::{ENTRIES_MAX, LEFT_OUT_MAX};
use super::program::{Program, Said, install, unexpected};
use super::unpack::Unpacker;
use everett_protocol::Exec;

/// Vtime for which a fork runs before the caller can end a copy or a list, in nanoseconds.
const SLICE_NS: u64 = 100_000_000;

/// Files of a folder, or a single file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The files. Of a folder, the first two are the folder itself (`.`) and its parent (`..`).
    pub entries: Vec<FileEntry>,
    /// Files that cannot be read, each with the reason.
    pub left_out: Vec<String>,
}

/// Lists a folder of a machine, or a single file. `go_on` returns false to end the work.
///
/// # Errors
/// Returns an error if the path cannot be read or `go_on` returns false.
pub fn list(
    fork: &mut Fork,
    node: usize,
    path: &str,
    go_on: &dyn Fn() -> bool,
) -> Result<Listing, FilesError> {
    let mut listing = Listing::default();
    each(fork, node, "list", path, go_on, &mut |frame| {
        match frame {
            Frame::Entry(_) if listing.entries.len() >= ENTRIES_MAX => return Err(FilesError::TooMany),
            Frame::Entry(entry) => listing.entries.push(*entry),
            Frame::LeftOut(_) if listing.left_out.len() >= LEFT_OUT_MAX => {
                return Err(FilesError::TooManyLeftOut);
            }
            Frame::LeftOut(why) => listing.left_out.push(why),
            _ => return Err(unexpected().into()),
        }
        Ok(())
    })?;
    Ok(listing)
}

/// Copies a file or a folder of a machine to `to` on the host: into this folder if it is one, otherwise as a new file or
/// folder with this name. The contents of files may have at most `bytes_max` bytes. `go_on` returns false to end the work.
///
/// A link at `path` itself is followed. Modes, times and links stay, except the bits that give a program the rights of its
/// owner. All files belong to the user who runs Everett.
///
/// # Errors
/// Returns an error if the path cannot be read, if the destination exists or cannot be written, if a bound is exceeded, or if
/// `go_on` returns false. Files that were copied before stay.
pub fn copy(
    fork: &mut Fork,
    node: usize,
    path: &str,
    to: &Path,
    bytes_max: u64,
    go_on: &dyn Fn() -> bool,
) -> Result<Copied, FilesError> {
    let mut unpacker = Unpacker::new(to, bytes_max)?;
    each(fork, node, "pack", path, go_on, &mut |frame| unpacker.take(frame))?;
    unpacker.finish()
}

/// Runs Everett's program in a machine, and calls `take` for each of its frames.
fn each(
    fork: &mut Fork,
    node: usize,
    command: &str,
    path: &str,
    go_on: &dyn Fn() -> bool,
    take: &mut dyn FnMut(Frame) -> Result<(), FilesError>,
) -> Result<(), FilesError> {
    let copy = install(fork, node)?;
    // The program runs with all rights, as the superuser of the machine.
    let mut program = Program::start(fork, copy, Exec::new(copy.argv(&[command, path])))?;
    let done = frames(fork, &mut program, go_on, take);
    program.give_up(fork);
    done
}

/// Calls `take` for each frame of a program until it ends.
fn frames(
    fork: &mut Fork,
    program: &mut Program,
    go_on: &dyn Fn() -> bool,
    take: &mut dyn FnMut(Frame) -> Result<(), FilesError>,
) -> Result<(), FilesError> {
    loop {
        let until_ns = fork.vtime().saturating_add(SLICE_NS);
        match program.next(fork, until_ns)? {
            Said::Frame(frame) => take(frame)?,
            Said::Nothing => {}
            Said::Done => return Ok(()),
        }
        if !go_on() {
            return Err(FilesError::Interrupted);
        }
    }
}
