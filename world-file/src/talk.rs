//! Parses an exchange that a world file describes: bytes that Everett sends to a TCP port of a node, and the answer
//! that it expects.

use serde::Serialize;

use super::cursor::{Item, Table};
use super::error::Error;

/// Keys of an exchange.
pub(super) const TALK_KEYS: [&str; 3] = ["tcp", "send", "expect"];
/// Maximum length of the bytes to send, and of the expected text, in bytes.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// An exchange of Everett with a TCP port of a node, as a check whether a server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Talk {
    /// The node's TCP port.
    pub tcp: u16,
    /// Bytes to send. If empty, Everett sends nothing, and the node may send first.
    pub send: String,
    /// Text that the answer must contain. If empty, it is enough that the node accepts the connection.
    pub expect: String,
}

/// Parses the exchange in a table that has the keys [`TALK_KEYS`]. `tcp` is the value of the key of this name.
pub(super) fn talk(table: &Table<'_>, tcp: &Item<'_>) -> Result<Talk, Error> {
    Ok(Talk { tcp: tcp_port(tcp)?, send: short_text(table, "send")?, expect: short_text(table, "expect")? })
}

fn short_text(table: &Table<'_>, key: &str) -> Result<String, Error> {
    let Some(item) = table.get(key) else { return Ok(String::new()) };
    let text = item.str()?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(item.error(format!("{} bytes; at most {TEXT_BYTES_MAX} are allowed", text.len())));
    }
    Ok(text.to_owned())
}

fn tcp_port(item: &Item<'_>) -> Result<u16, Error> {
    match u16::try_from(item.u64()?) {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(item.error("a TCP port is between 1 and 65535")),
    }
}
