//! The last resort: a line on the kernel's console.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Writes a line to `/dev/console`. A console that cannot be written leaves nothing to tell anyone.
pub(crate) fn say(line: &str) {
    if let Ok(mut console) = OpenOptions::new().write(true).open("/dev/console") {
        let _ = console.write_all(format!("everett-agent: {line}\n").as_bytes());
    }
}
