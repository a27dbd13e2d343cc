//! Lines of Everett's program for shells and files (`guest-image/inside/`). Every program of a guest can write such lines, so
//! they are not trusted.

use everett_input::text;
use everett_protocol::Exit;

use super::field::{bytes, is_name};
use super::file_entry::FileEntry;

/// A decoded line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// Output of the program that runs.
    Output(Vec<u8>),
    /// Error output of the program that runs.
    Errors(Vec<u8>),
    /// The program that ran has ended.
    Exit(Exit),
    /// A file.
    Entry(Box<FileEntry>),
    /// Content of the last file.
    Content(Vec<u8>),
    /// End of the last file's content, or of the last open folder.
    End,
    /// The content of the last file cannot be read any further.
    Broken(String),
    /// Another name of the file with this number.
    Link(u64, Vec<u8>),
    /// A file that cannot be read.
    LeftOut(String),
    /// A file of `/proc`, by its path below `/proc`.
    ProcFile(String),
    /// Everett's program cannot go on.
    Failure(String),
}

/// Decodes a line without its newline. `None` if it is invalid.
pub(super) fn decode(line: &[u8]) -> Option<Frame> {
    let line = std::str::from_utf8(line).ok()?;
    let (kind, rest) = line.split_once(' ')?;
    let words: Vec<&str> = rest.split(' ').collect();
    let told = |text: &str| bytes(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Some(match (kind, &words[..]) {
        ("o", [field]) => Frame::Output(bytes(field)?),
        ("e", [field]) => Frame::Errors(bytes(field)?),
        ("x", ["code", number]) => Frame::Exit(Exit::Code(number.parse().ok()?)),
        ("x", ["signal", number]) => Frame::Exit(Exit::Signal(number.parse().ok()?)),
        ("n", words) => Frame::Entry(Box::new(FileEntry::decode(words)?)),
        ("d", [field]) => Frame::Content(bytes(field)?),
        ("z", [""]) => Frame::End,
        ("b", [field]) => Frame::Broken(told(field)?),
        ("l", [number, name]) => Frame::Link(number.parse().ok()?, bytes(name).filter(|name| is_name(name))?),
        ("r", [field]) => Frame::LeftOut(told(field)?),
        ("p", [field]) => Frame::ProcFile(told(field)?),
        ("f", [field]) => Frame::Failure(text::one_line(&told(field)?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_decoded() {
        assert_eq!(decode(b"o AAE="), Some(Frame::Output(vec![0, 1])));
        assert_eq!(decode(b"x code 3"), Some(Frame::Exit(Exit::Code(3))));
        assert_eq!(decode(b"x signal 9"), Some(Frame::Exit(Exit::Signal(9))));
        assert_eq!(decode(b"z "), Some(Frame::End));
        assert_eq!(decode(b"p MS9tYXBz"), Some(Frame::ProcFile("1/maps".to_owned())));
        assert_eq!(decode(b"l 7 YQ=="), Some(Frame::Link(7, b"a".to_vec())));
        assert_eq!(decode(b"f G1syYQ=="), Some(Frame::Failure("\\u{1b}[2a".to_owned())));
    }

    #[test]
    fn invalid_lines_are_refused() {
        for line in [
            &b""[..],
            b"o",
            b"o *",
            b"x code",
            b"x code a",
            b"q ",
            b"n - 644",
            b"\xff ",
            b"z z",
            b"l 1 Li4=",
            b"l 1 YS9i",
            b"l -1 YQ==",
            b"o AAE= AAE=",
        ] {
            assert_eq!(decode(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
