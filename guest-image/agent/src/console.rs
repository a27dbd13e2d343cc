//! Messages on the kernel's console, for failures that cannot be sent to the host.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Writes a line to `/dev/console`. Ignores errors, because there is no other place to report them.
pub(crate) fn say(line: &str) {
    if let Ok(mut console) = OpenOptions::new().write(true).open("/dev/console") {
        let _ = console.write_all(format!("everett-agent: {line}\n").as_bytes());
    }
}
