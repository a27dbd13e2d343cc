//! Reads arguments from the memory of the program that makes a call.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use super::flags::{self, EPOLL_EVENTS, Flag, POLL_EVENTS};
use super::kind::Kind;
use super::limits::{ITEMS_MAX, PATH_ARGUMENT_BYTES_MAX, SOCKET_ADDRESS_BYTES_MAX, STRING_BYTES_MAX};
use super::text::quoted;
use super::{ARGUMENTS, Caller};

/// Number of bytes that are read at a time while the end of a text is looked for.
const STEP: usize = 64;

/// Mark of an argument that is not in memory.
pub(super) const UNMAPPED: &str = " (unmapped)";

/// Reader of a call's arguments.
pub(super) struct Values<'c> {
    pub(super) caller: &'c dyn Caller,
    /// Number of bytes of a text that are shown.
    pub(super) strings: usize,
    /// All arguments of the call.
    pub(super) all: &'c [u64; ARGUMENTS],
}

impl Values<'_> {
    /// Returns an argument as text at the beginning of the call.
    pub(super) fn at_begin(&self, kind: Kind, value: u64) -> String {
        match kind {
            Kind::File => self.descriptor(value),
            Kind::Folder if value as i32 == -100 => "AT_FDCWD".to_owned(),
            Kind::Folder => self.descriptor(value),
            Kind::Int => (value as i32).to_string(),
            Kind::Long => (value as i64).to_string(),
            Kind::Size => value.to_string(),
            Kind::Mode => format!("0{:o}", value as u32),
            Kind::Flags(table) => named(table, value),
            Kind::Path => self.or_address(value, self.path(value)),
            Kind::Paths => self.or_address(value, self.paths(value)),
            Kind::Bytes(length) => self.or_address(value, self.bytes(value, self.all[length])),
            Kind::Parts(count) => self.or_address(value, self.parts(value, self.all[count], u64::MAX)),
            Kind::Socket(length) => self.or_address(value, self.socket(value, self.all[length])),
            Kind::Message => self.or_address(value, self.message(value, u64::MAX)),
            Kind::Event => self.or_address(value, self.events(value, 1).map(|text| unlisted(&text))),
            Kind::Polled(count) => self.or_address(value, self.polled(value, self.all[count], false)),
            Kind::Time => self.or_address(value, self.time(value)),
            Kind::Address
            | Kind::Filled
            | Kind::FilledPath
            | Kind::FilledParts(_)
            | Kind::FilledSocket(_)
            | Kind::FilledMessage
            | Kind::FilledEvents
            | Kind::FilledTime
            | Kind::FilledInt
            | Kind::FilledPair => address(value),
        }
    }

    /// Returns an argument to which the kernel has stored as text, at the end of a call that has succeeded. `None` for
    /// other arguments.
    pub(super) fn at_end(&self, kind: Kind, value: u64, result: u64) -> Option<String> {
        if value == 0 {
            return None;
        }
        let text = match kind {
            Kind::Filled => self.bytes(value, result),
            Kind::FilledPath => self.path(value),
            Kind::FilledParts(count) => self.parts(value, self.all[count], result),
            Kind::FilledSocket(length) => {
                self.int(self.all[length]).and_then(|length| self.socket(value, u64::from(length)))
            }
            Kind::FilledMessage => self.message(value, result),
            Kind::FilledEvents => self.events(value, result),
            Kind::Polled(count) => self.polled(value, self.all[count], true),
            Kind::FilledTime => self.time(value),
            Kind::FilledInt => self.int(value).map(|number| format!("[{}]", number as i32)),
            Kind::FilledPair => self.words::<8>(value).map(|pair| {
                let number =
                    |at: usize| u32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
                let (first, second) = (u64::from(number(0)), u64::from(number(4)));
                format!("[{}, {}]", self.descriptor(first), self.descriptor(second))
            }),
            _ => return None,
        };
        Some(self.or_address(value, text))
    }

    /// Returns a descriptor with the name of its file.
    pub(super) fn descriptor(&self, value: u64) -> String {
        let number = value as i32;
        match u32::try_from(number).ok().and_then(|number| self.caller.descriptor(number)) {
            Some(name) => format!("{number}<{name}>"),
            None => number.to_string(),
        }
    }

    /// Returns a text, or the address at which it is missing.
    fn or_address(&self, value: u64, text: Option<String>) -> String {
        match text {
            Some(text) => text,
            None if value == 0 => address(value),
            None => format!("{}{UNMAPPED}", address(value)),
        }
    }

    fn words<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.caller.read(at, &mut bytes) == N).then_some(bytes)
    }

    fn word(&self, at: u64) -> Option<u64> {
        self.words(at).map(u64::from_le_bytes)
    }

    fn int(&self, at: u64) -> Option<u32> {
        self.words(at).map(u32::from_le_bytes)
    }

    /// Reads a text that ends with a zero byte.
    fn path(&self, at: u64) -> Option<String> {
        let mut bytes = Vec::new();
        // A path is shown whole.
        while at != 0 && bytes.len() < PATH_ARGUMENT_BYTES_MAX {
            let mut step = [0; STEP];
            let read = self.caller.read(at.checked_add(bytes.len() as u64)?, &mut step);
            if let Some(end) = step[..read].iter().position(|byte| *byte == 0) {
                bytes.extend_from_slice(&step[..end]);
                return Some(quoted(&bytes, false));
            }
            if read < STEP {
                return None;
            }
            bytes.extend_from_slice(&step);
        }
        (at != 0).then(|| quoted(&bytes, true))
    }

    fn paths(&self, at: u64) -> Option<String> {
        let mut texts = Vec::new();
        for n in 0..ITEMS_MAX as u64 {
            let one = self.word(at.checked_add(8 * n)?)?;
            if one == 0 {
                return Some(format!("[{}]", texts.join(", ")));
            }
            texts.push(self.or_address(one, self.path(one)));
        }
        Some(format!("[{}, ...]", texts.join(", ")))
    }

    fn bytes(&self, at: u64, length: u64) -> Option<String> {
        if at == 0 {
            return None;
        }
        let shown = length.min(self.strings as u64).min(STRING_BYTES_MAX as u64) as usize;
        let mut bytes = vec![0; shown];
        let read = self.caller.read(at, &mut bytes);
        (read == shown).then(|| quoted(&bytes, length > shown as u64))
    }

    /// Reads parts of a message, with at most `left` bytes in all.
    fn parts(&self, at: u64, count: u64, mut left: u64) -> Option<String> {
        let mut texts = Vec::new();
        for n in 0..count.min(ITEMS_MAX as u64) {
            let part = at.checked_add(16 * n)?;
            let (base, length) = (self.word(part)?, self.word(part.checked_add(8)?)?);
            let content = length.min(left);
            left -= content;
            let text = self.or_address(base, self.bytes(base, content));
            texts.push(format!("{{{text}, {length}}}"));
        }
        Some(list(&texts, count))
    }

    /// Reads the address of a socket.
    fn socket(&self, at: u64, length: u64) -> Option<String> {
        if at == 0 {
            return None;
        }
        let length = length.min(SOCKET_ADDRESS_BYTES_MAX as u64) as usize;
        let mut bytes = [0; SOCKET_ADDRESS_BYTES_MAX];
        if self.caller.read(at, &mut bytes[..length]) < length {
            return None;
        }
        let bytes = &bytes[..length];
        let [low, high, rest @ ..] = bytes else { return Some("{}".to_owned()) };
        let family = u16::from_le_bytes([*low, *high]);
        let name = flags::names(flags::FAMILY, u64::from(family));
        let port = || Some(u16::from_be_bytes(*rest.first_chunk()?));
        let inside = match family {
            1 => unix(rest),
            2 => rest
                .get(2..)
                .and_then(<[u8]>::first_chunk::<4>)
                .zip(port())
                .map(|(ip, port)| SocketAddrV4::new(Ipv4Addr::from(*ip), port).to_string()),
            10 => rest
                .get(6..)
                .and_then(<[u8]>::first_chunk::<16>)
                .zip(port())
                .map(|(ip, port)| SocketAddrV6::new(Ipv6Addr::from(*ip), port, 0, 0).to_string()),
            _ => Some(quoted(rest, false)),
        };
        // A shorter address than its family has is shown as it is.
        Some(format!("{{{name} {}}}", inside.unwrap_or_else(|| quoted(rest, false))))
    }

    fn message(&self, at: u64, left: u64) -> Option<String> {
        let bytes = self.words::<56>(at)?;
        let word = |n: usize| {
            bytes.get(8 * n..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
        };
        let mut fields = Vec::new();
        let (name, name_bytes) = (word(0), word(1) & 0xffff_ffff);
        if name != 0 {
            fields.push(format!("msg_name={}", self.or_address(name, self.socket(name, name_bytes))));
        }
        let parts = self.or_address(word(2), self.parts(word(2), word(3), left));
        fields.push(format!("msg_iov={parts}"));
        if word(5) != 0 {
            fields.push(format!("msg_controllen={}", word(5)));
        }
        Some(format!("{{{}}}", fields.join(", ")))
    }

    fn events(&self, at: u64, count: u64) -> Option<String> {
        let mut texts = Vec::new();
        for n in 0..count.min(ITEMS_MAX as u64) {
            // The structure is packed on x86-64.
            let event = at.checked_add(12 * n)?;
            let (events, data) = (self.int(event)?, self.word(event.checked_add(4)?)?);
            texts.push(format!("{{{}, data={data:#x}}}", flags::names(EPOLL_EVENTS, u64::from(events))));
        }
        Some(list(&texts, count))
    }

    fn polled(&self, at: u64, count: u64, is_done: bool) -> Option<String> {
        let mut texts = Vec::new();
        for n in 0..count.min(ITEMS_MAX as u64) {
            let entry = self.words::<8>(at.checked_add(8 * n)?)?;
            let [a, b, c, d, e, f, g, h] = entry;
            let file = self.descriptor(u64::from(u32::from_le_bytes([a, b, c, d])));
            let names = |low, high| flags::names(POLL_EVENTS, u64::from(u16::from_le_bytes([low, high])));
            let got = if is_done { format!(", revents={}", names(g, h)) } else { String::new() };
            texts.push(format!("{{fd={file}, events={}{got}}}", names(e, f)));
        }
        Some(list(&texts, count))
    }

    fn time(&self, at: u64) -> Option<String> {
        if at == 0 {
            return None;
        }
        let (seconds, nanoseconds) = (self.word(at)? as i64, self.word(at.checked_add(8)?)? as i64);
        Some(format!("{{tv_sec={seconds}, tv_nsec={nanoseconds}}}"))
    }
}

/// Returns the path or abstract name of a Unix socket.
fn unix(name: &[u8]) -> Option<String> {
    let is_abstract = name.first() == Some(&0) && name.len() > 1;
    let end = if is_abstract { None } else { name.iter().position(|byte| *byte == 0) };
    let name = &name[..end.unwrap_or(name.len())];
    Some(if is_abstract { format!("@{}", quoted(&name[1..], false)) } else { quoted(name, false) })
}

/// Returns the names of flags. All kernels read them from the low 32 bits.
fn named(table: &[Flag], value: u64) -> String {
    let text = flags::names(table, value & 0xffff_ffff);
    text.replace("|FUTEX_PRIVATE_FLAG", "_PRIVATE")
}

fn address(value: u64) -> String {
    if value == 0 { "NULL".to_owned() } else { format!("{value:#x}") }
}

/// Returns texts as a list of `count` entries. Those beyond the bound are left out.
fn list(texts: &[String], count: u64) -> String {
    let more = if count > texts.len() as u64 { ", ..." } else { "" };
    format!("[{}{more}]", texts.join(", "))
}

/// Returns the only entry of a list.
fn unlisted(text: &str) -> String {
    text.trim_start_matches('[').trim_end_matches(']').to_owned()
}
