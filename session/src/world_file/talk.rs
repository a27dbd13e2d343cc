//! What is said to a TCP port of a node, and what it is to answer.

use serde::Serialize;

use super::cursor::{Item, Table};
use super::error::Error;

/// The keys of a talk.
pub(super) const TALK_KEYS: [&str; 3] = ["tcp", "send", "expect"];
/// The most bytes that are said, and that are looked for.
const SAID_BYTES_MAX: usize = 16 << 10;

/// What is said to a node, and what it is to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Talk {
    /// The node's TCP port.
    pub tcp: u16,
    /// What is said. Nothing: the node speaks first, if at all.
    pub send: String,
    /// What the answer has in it. Nothing: it is enough that there is a connection.
    pub expect: String,
}

/// The talk in a table with [`TALK_KEYS`], whose port this is.
pub(super) fn talk(table: &Table<'_>, tcp: &Item<'_>) -> Result<Talk, Error> {
    Ok(Talk { tcp: tcp_port(tcp)?, send: said(table, "send")?, expect: said(table, "expect")? })
}

fn said(table: &Table<'_>, key: &str) -> Result<String, Error> {
    let Some(item) = table.get(key) else { return Ok(String::new()) };
    let text = item.str()?;
    if text.len() > SAID_BYTES_MAX {
        return Err(item.error(format!("{} bytes; at most {SAID_BYTES_MAX} are allowed", text.len())));
    }
    Ok(text.to_owned())
}

fn tcp_port(item: &Item<'_>) -> Result<u16, Error> {
    match u16::try_from(item.u64()?) {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(item.error("a TCP port is between 1 and 65535")),
    }
}
