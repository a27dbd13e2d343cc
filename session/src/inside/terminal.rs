//! A program on a terminal in a throw-away fork.

use everett_protocol::Exit;

use super::fork::{Fork, ForkError};
use super::frames::Frame;
use super::program::{Program, Said, install, unexpected};

/// File in the machine from which the program takes keys. The path is on a filesystem that is new at each boot.
const INPUT_PATH: &str = "/run/everett/inside-input";

/// Maximum number of bytes in a record of the input. The program refuses longer records.
const RECORD_BYTES_MAX: usize = 64 << 10;

/// A program on a terminal in a fork.
pub struct GuestTerminal {
    node: usize,
    program: Program,
    exit: Option<Exit>,
}

/// Rows and columns of a terminal.
pub type Size = (u16, u16);

/// Progress of a program on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalProgress {
    /// Bytes for the screen.
    Output(Vec<u8>),
    /// The program has ended.
    Ended(Exit),
    /// The fork has reached the vtime up to which the caller let it run.
    Runs,
}

impl GuestTerminal {
    /// Starts a command on a new terminal. If `command` is empty, starts the user's shell. `term` is the kind of terminal
    /// (`TERM`). A fork can have one terminal at a time.
    ///
    /// # Errors
    /// Returns an error if the machine's agent cannot start the program.
    pub fn open(
        fork: &mut Fork,
        node: usize,
        command: &[String],
        user: Option<&str>,
        term: &str,
        (rows, columns): Size,
    ) -> Result<GuestTerminal, ForkError> {
        let copy = install(fork, node)?;
        fork.put_file(node, INPUT_PATH, 0o644, None, &[])?;
        let mut words = copy.argv(&["run", INPUT_PATH, "--tty", &format!("{rows}x{columns}"), "--"]);
        words.extend(command.iter().cloned());
        let mut exec = fork.command(node, words, user);
        exec.env.insert("TERM".to_owned(), term.to_owned());
        Ok(GuestTerminal { node, program: Program::start(fork, copy, exec)?, exit: None })
    }

    /// Types keys.
    ///
    /// # Errors
    /// Returns an error if the machine's agent cannot be asked.
    pub fn press(&mut self, fork: &mut Fork, keys: &[u8]) -> Result<(), ForkError> {
        keys.chunks(RECORD_BYTES_MAX).try_for_each(|keys| self.send(fork, b'i', keys))
    }

    /// Changes the size of the window.
    ///
    /// # Errors
    /// See [`GuestTerminal::press`].
    pub fn resize(&mut self, fork: &mut Fork, (rows, columns): Size) -> Result<(), ForkError> {
        let size = [rows.to_le_bytes(), columns.to_le_bytes()].concat();
        self.send(fork, b'w', &size)
    }

    fn send(&mut self, fork: &mut Fork, kind: u8, content: &[u8]) -> Result<(), ForkError> {
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes();
        fork.append(self.node, INPUT_PATH, &[&[kind], &length[..], content].concat())
    }

    /// Gives up waiting for the program, which goes on with the fork. A caller that does not wait for its end, or for which a
    /// method failed, calls it before it goes on with the fork.
    pub fn give_up(&self, fork: &mut Fork) {
        self.program.give_up(fork);
    }

    /// Lets the fork run until the program writes to the terminal or ends, but at most up to the vtime `until_ns`.
    ///
    /// # Errors
    /// Returns an error if the machine or the fork cannot go on.
    pub fn next(&mut self, fork: &mut Fork, until_ns: u64) -> Result<TerminalProgress, ForkError> {
        loop {
            match self.program.next(fork, until_ns)? {
                Said::Frame(Frame::Output(bytes)) => return Ok(TerminalProgress::Output(bytes)),
                Said::Frame(Frame::Exit(exit)) => self.exit = Some(exit),
                Said::Nothing => return Ok(TerminalProgress::Runs),
                Said::Done => return self.exit.map(TerminalProgress::Ended).ok_or_else(unexpected),
                Said::Frame(_) => return Err(unexpected()),
            }
        }
    }
}
