//! Lines in which this program passes bytes to Everett.
//!
//! The agent, which takes this program's output, works on lines of text. So a frame is a line: a letter that says what it
//! is, and fields. Fields with bytes are in base64.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Output of the program. Field: bytes.
pub(crate) const OUTPUT: char = 'o';
/// Error output of the program. Field: bytes.
pub(crate) const ERRORS: char = 'e';
/// The program has ended. Fields: `code` or `signal`, and the number.
pub(crate) const EXIT: char = 'x';
/// This program cannot go on. Field: the reason.
pub(crate) const FAILURE: char = 'f';
/// A file. Fields: its attributes.
pub(crate) const ENTRY: char = 'n';
/// Content of the last file. Field: bytes.
pub(crate) const CONTENT: char = 'd';
/// End of the content of the last file, or of the last open folder. No field.
pub(crate) const END: char = 'z';
/// The content of the last file cannot be read any further. Field: the reason.
pub(crate) const BROKEN: char = 'b';
/// Another name of an earlier file. Fields: number of that file's entry, and the name.
pub(crate) const LINK: char = 'l';
/// A file that cannot be read. Field: its path and the reason.
pub(crate) const LEFT_OUT: char = 'r';
/// A file of `/proc`. Field: its path below `/proc`.
pub(crate) const PROC_FILE: char = 'p';

/// Maximum number of bytes in a frame. In base64, they fit a line of the agent, which has at most 128 KiB.
pub(crate) const FRAME_BYTES_MAX: usize = 48 << 10;

/// Writer of frames.
pub(crate) struct Frames<W: Write = io::Stdout> {
    out: W,
    line: String,
}

impl Frames {
    /// Returns a writer to standard output, which leads to Everett.
    pub(crate) fn to_everett() -> Frames {
        Frames { out: io::stdout(), line: String::new() }
    }
}

impl<W: Write> Frames<W> {
    #[cfg(test)]
    pub(crate) fn new(out: W) -> Frames<W> {
        Frames { out, line: String::new() }
    }

    /// Writes a frame with fields that are text.
    pub(crate) fn fields(&mut self, kind: char, fields: &str) -> Result<(), String> {
        self.line.clear();
        self.line.push(kind);
        self.line.push(' ');
        self.line.push_str(fields);
        self.send()
    }

    /// Writes bytes, in as many frames as they need.
    pub(crate) fn bytes(&mut self, kind: char, bytes: &[u8]) -> Result<(), String> {
        for part in bytes.chunks(FRAME_BYTES_MAX) {
            self.line.clear();
            self.line.push(kind);
            self.line.push(' ');
            STANDARD.encode_string(part, &mut self.line);
            self.send()?;
        }
        Ok(())
    }

    /// Writes a frame without fields.
    pub(crate) fn mark(&mut self, kind: char) -> Result<(), String> {
        self.fields(kind, "")
    }

    fn send(&mut self) -> Result<(), String> {
        self.line.push('\n');
        let written = self.out.write_all(self.line.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|error| format!("cannot write to Everett: {error}"))
    }
}

/// Returns bytes as a field.
pub(crate) fn field(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
