//! Commands that look into machines at an instant of a recorded branch, and at the code that branches execute.
//!
//! - `instant`: arguments that name an instant or a span of time, and the way there
//!
//! Reading from outside, which executes nothing in a guest:
//!
//! - `guests`: the guests of the machines at an instant, read from outside
//! - `new_file`: a file that a command writes
//! - `flame_graph`: flame graphs, and the lines for them
//! - `profile`: makes a profile of a running timeline
//! - `core`: writes processes as core files for gdb
//! - `debug`: debugs a branch, in a session over the whole world or with gdb
//! - `disk`: writes the image of a machine's disk, also as a power loss would leave it
//! - `logs`: prints log lines and events up to an instant
//! - `pcap`: writes the frames on the wire up to an instant as a capture
//! - `named_bytes`: the bytes that a question is about, as the operator names them
//! - `debug_files`: the option `--debug-files`
//! - `ask`: answers questions about everything that happened in a span of time
//! - `coverage`: finds the functions and source lines that an exploration reached
//! - `print`: makes recorded branches print values at places of their programs
//! - `socket_line`: a socket as JSON and as text
//! - `files`: prints open files
//! - `ps`: lists processes
//! - `ss`: prints sockets
//! - `stack`: prints stacks
//! - `vmcore`: writes a machine's RAM as a core file of its kernel
//! - `who`: finds who wrote bytes
//! - `sysroot`: folder with the programs and libraries of a process
//!
//! Commands in a throw-away fork at an instant:
//!
//! - `fork`: arguments that name a fork, and the way there
//! - `place`: a path in a machine, as `NODE:PATH`
//! - `raw_terminal`: the user's terminal, while it shows a terminal of a guest
//! - `shell`: runs a command or a shell
//! - `cp`: copies files out of a machine
//! - `ls`: lists files of a machine

pub(super) mod ask;
pub(super) mod core;
pub(super) mod coverage;
pub(super) mod cp;
pub(super) mod debug;
pub(super) mod debug_files;
pub(super) mod disk;
pub(super) mod files;
mod flame_graph;
mod fork;
mod guests;
mod instant;
pub(super) mod logs;
pub(super) mod ls;
mod named_bytes;
mod new_file;
pub(super) mod pcap;
mod place;
pub(super) mod print;
pub(super) mod profile;
pub(super) mod ps;
mod raw_terminal;
pub(super) mod shell;
mod socket_line;
pub(super) mod ss;
pub(super) mod stack;
mod sysroot;
pub(super) mod vmcore;
pub(super) mod who;

/// Returns a word as a shell reads it.
fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(for_shell("out/n1-85.core"), "out/n1-85.core");
        assert_eq!(for_shell("set sysroot a"), "'set sysroot a'");
        assert_eq!(for_shell("it's"), r"'it'\''s'");
        assert_eq!(for_shell("$(x)"), "'$(x)'");
    }
}
