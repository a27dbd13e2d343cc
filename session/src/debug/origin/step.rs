//! Steps on the way back to the origin of bytes.

use std::fmt;
use std::net::SocketAddr;

use everett_inspect::program_stack::Frame;
use serde::{Serialize, Serializer};

/// Step on the way back to the origin of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Number of the step, from 1.
    pub number: usize,
    /// Number of the step that this step explains. `None` for the first.
    pub explains: Option<usize>,
    /// Vtime, in nanoseconds since power-on.
    pub vtime_ns: u64,
    /// Number of the node.
    #[serde(skip)]
    pub node: usize,
    /// The event.
    #[serde(flatten)]
    pub what: Happened,
    /// The thread that did it. `None` if no thread is involved or none could be read.
    pub thread: Option<ThreadStack>,
}

/// Thread and its stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadStack {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Name.
    pub name: String,
    /// Frames of the kernel, from the innermost one outwards.
    pub kernel: Vec<String>,
    /// True if the frames of the kernel are all known.
    pub kernel_complete: bool,
    /// Frames of the program.
    pub user: Vec<Frame>,
    /// True if the frames of the program are all known.
    pub user_complete: bool,
}

/// Event of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Happened {
    /// An instruction stored the bytes.
    Store {
        /// Linear address of the first byte.
        #[serde(serialize_with = "as_hex")]
        address: u64,
        /// The bytes before the store.
        before: Bytes,
        /// The bytes that it stored.
        after: Bytes,
        /// Number of wanted bytes that this instruction did not store. They are older.
        older: u64,
        /// The instruction.
        instruction: String,
        /// Memory whose stores the search could not see, as a sentence.
        #[serde(skip_serializing_if = "Option::is_none")]
        not_looked_for: Option<String>,
    },
    /// An instruction computed the value from others.
    Computed {
        /// The instruction.
        instruction: String,
        /// Number of values from which it computed it.
        sources: usize,
        /// True if it also computed it from the CPU's flags. They are not followed.
        flags: bool,
        /// False if the chain ends here because the search has reached its depth.
        followed: bool,
    },
    /// A load from a table in a program's file. The values that its address was computed from chose the entry.
    Chosen {
        /// Path of the file.
        file: String,
        /// The instruction.
        instruction: String,
        /// Number of values that its address was computed from.
        sources: usize,
        /// The bytes.
        bytes: Bytes,
    },
    /// Another chain has come to the same step.
    Joined {
        /// Number of the step that the other chain has there.
        with: usize,
    },
    /// A frame brought the bytes.
    Message {
        /// Number of the frame on the wire.
        message: u64,
        /// Number of the node that sent it.
        #[serde(skip)]
        from: usize,
        /// Sender of the connection's bytes.
        source: SocketAddr,
        /// Receiver of the connection's bytes.
        destination: SocketAddr,
        /// Offset of the first byte in the frame's TCP payload.
        offset: u64,
        /// Sequence number of the first byte.
        sequence: u32,
        /// The bytes.
        bytes: Bytes,
    },
    /// A system call sent the bytes on a TCP connection.
    Sent {
        /// Local address of the connection.
        source: SocketAddr,
        /// Remote address of the connection.
        destination: SocketAddr,
        /// Address of the first byte in the program's memory.
        #[serde(serialize_with = "as_hex")]
        address: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// A system call wrote the bytes into a file.
    Written {
        /// Path of the file.
        path: String,
        /// Offset of the first byte in the file.
        offset: u64,
        /// Address of the first byte in the program's memory.
        #[serde(serialize_with = "as_hex")]
        address: u64,
        /// The bytes.
        bytes: Bytes,
        /// Later changes of the file that the search does not see.
        not_looked_for: &'static str,
    },
    /// The bytes have their origin here.
    Origin {
        /// The origin, as a sentence.
        origin: String,
    },
    /// The origin is not known.
    Unknown {
        /// The reason, as a sentence after "because".
        because: String,
    },
}

/// Bytes. Their `Display` is hexadecimal, with printable text behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// Maximum number of bytes that are shown.
const SHOWN_MAX: usize = 32;

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, byte) in self.0.iter().take(SHOWN_MAX).enumerate() {
            write!(f, "{}{byte:02x}", if n == 0 { "" } else { " " })?;
        }
        if self.0.len() > SHOWN_MAX {
            write!(f, " … ({} bytes)", self.0.len())?;
        }
        let text: String = self.0.iter().take(SHOWN_MAX).map(|byte| char::from(*byte)).collect();
        if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') { write!(f, " \"{text}\"") } else { Ok(()) }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&hex)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn as_hex<S: Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{address:#x}"))
}

/// Returns "one value" or "2 values".
fn values(count: usize) -> String {
    if count == 1 { "one value".to_owned() } else { format!("{count} values") }
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happened::Store { address, before, after, older, instruction, not_looked_for } => {
                write!(f, "stored at {address:#x} by {instruction}: {before} became {after}")?;
                match older {
                    0 => {}
                    1 => f.write_str("; the other byte is older")?,
                    _ => write!(f, "; the other {older} bytes are older")?,
                }
                not_looked_for.iter().try_for_each(|missed| write!(f, "; {missed}"))
            }
            Happened::Computed { instruction, sources, flags, followed } => {
                write!(f, "computed by {instruction} from {}", values(*sources))?;
                if *flags {
                    f.write_str(" and the CPU's flags, which are not followed")?;
                }
                match (*sources > 1, *followed) {
                    (true, true) => f.write_str(": the chain forks"),
                    (true, false) => f.write_str(": the chain forks. It is followed no further: see --depth"),
                    (false, true) => Ok(()),
                    (false, false) => f.write_str(". It is followed no further: see --depth"),
                }
            }
            Happened::Chosen { file, instruction, sources, bytes } => {
                write!(
                    f,
                    "taken by {instruction} from a table, {file}: {bytes}; the entry was chosen by {}",
                    values(*sources)
                )?;
                if *sources > 1 { f.write_str(": the chain forks") } else { Ok(()) }
            }
            Happened::Joined { with } => write!(f, "the same as step {with}: the chains join"),
            Happened::Message { message, source, destination, offset, sequence, bytes, .. } => write!(
                f,
                "came in message {message} from {source} to {destination}, at offset {offset} of its payload \
                 (sequence number {sequence}): {bytes}"
            ),
            Happened::Sent { source, destination, address, bytes } => {
                write!(f, "sent from {address:#x}, from {source} to {destination}: {bytes}")
            }
            Happened::Written { path, offset, address, bytes, not_looked_for } => {
                write!(f, "written from {address:#x} to {path} at offset {offset}: {bytes}; {not_looked_for}")
            }
            Happened::Origin { origin } => f.write_str(origin),
            Happened::Unknown { because } => write!(f, "not known, because {because}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_with_their_text() {
        assert_eq!(Bytes(b"ab c".to_vec()).to_string(), "61 62 20 63 \"ab c\"");
        assert_eq!(Bytes(vec![1, 0x41]).to_string(), "01 41");
        assert!(Bytes(vec![0; 40]).to_string().ends_with("00 … (40 bytes)"));
    }
}
