//! Works for Everett in a throw-away fork of a machine: runs a program on a terminal, lists and reads files, and prints what
//! `/proc` says.
//!
//! Everett writes this program into the fork as `/run/everett/inside` when a user asks for a shell or for files there. It
//! is not part of an image, and no recorded timeline contains it.
//!
//! ```text
//! inside run INPUT [--tty ROWSxCOLUMNS] -- [PROGRAM [ARGUMENT]…]   runs PROGRAM, or the user's shell
//! inside list PATH                                                prints the attributes of files, as `ls -la` does
//! inside pack PATH                                                prints the attributes and contents of files
//! inside processes                                                prints files of /proc about all processes
//! inside start -- PROGRAM [ARGUMENT]…                             becomes PROGRAM, on a terminal of its own
//! ```
//!
//! - [`frames`]: lines in which this program passes bytes to Everett.
//! - [`input`]: the file from which this program takes keys, bytes and window sizes.
//! - [`shell`]: the shell of the user.
//! - [`relay`]: runs a program and passes its input and output on.
//! - [`attributes`]: attributes of a file.
//! - [`list`]: lists a folder. [`pack`]: reads files and folders.
//! - [`processes`]: what `/proc` says about all processes.
//!
//! **Invariants.** The first failure is the last frame, and the exit status is then 125. Everett does not trust a frame:
//! other programs of the machine could have written it.

mod attributes;
mod frames;
mod input;
mod list;
mod pack;
mod processes;
mod relay;
mod shell;

use std::ffi::OsString;
use std::process::ExitCode;

use frames::Frames;

/// Exit status after a failure of this program, as in container engines.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&std::ffi::OsStr> = words.iter().map(OsString::as_os_str).collect();
    let frames = &mut Frames::to_everett();
    let done = match words.split_first() {
        Some((command, words)) => match (command.to_str(), words) {
            (Some("run"), words) => relay::run(words, frames),
            (Some("start"), words) => return relay::start(words),
            (Some("list"), [path]) => list::list(path.as_ref(), frames),
            (Some("pack"), [path]) => pack::pack(path.as_ref(), frames),
            (Some("processes"), []) => processes::processes(frames),
            _ => Err(String::from("wrong use of the program inside")),
        },
        None => Err(String::from("wrong use of the program inside")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // If Everett does not read any more, the exit status remains.
            let _ = frames.bytes(frames::FAILURE, problem.as_bytes());
            ExitCode::from(FAILED)
        }
    }
}
