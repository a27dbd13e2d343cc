//! Watchpoints: reports of accesses to chosen bytes of guest memory. Reports do not change the timeline.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, bail};
use everett_cpu::Watchpoint;
use everett_symbols::kernel::Symbols;
use everett_world_file::Node;

use crate::guest::symbols;

/// Maximum number of watchpoints on all nodes together. Every access to a watched page is compared with all of them.
pub const WATCHPOINTS_MAX: usize = 64;
/// Maximum length of a watchpoint, in bytes.
pub const WATCHED_BYTES_MAX: u64 = 1 << 20;

/// A watchpoint from the command line, such as `n1:0xffffffff82a12340+8:w`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    node: Option<String>,
    point: Watchpoint,
}

impl FromStr for Watched {
    type Err = String;

    fn from_str(text: &str) -> Result<Watched, String> {
        let mut parts: Vec<&str> = text.split(':').collect();
        let (loads, stores) = match parts.last() {
            Some(&"r") => (true, false),
            Some(&"w") => (false, true),
            Some(&"rw") => (true, true),
            _ => (false, true),
        };
        if parts.len() > 1 && matches!(parts.last(), Some(&("r" | "w" | "rw"))) {
            parts.pop();
        }
        let (node, place) = match parts[..] {
            [place] => (None, place),
            [node, place] => (Some(node.to_owned()), place),
            _ => return Err("expected [NODE:]ADDRESS[+BYTES][:r|w|rw], as in n1:0x7ffe0010+8:w".to_owned()),
        };
        let (address, len) = place.split_once('+').unwrap_or((place, "8"));
        let address = number(address)?;
        let len = number(len)?;
        if !(1..=WATCHED_BYTES_MAX).contains(&len) || address.checked_add(len - 1).is_none() {
            return Err(format!(
                "{len} bytes from {address:#x}: a watchpoint has 1 to {WATCHED_BYTES_MAX} bytes within the address space"
            ));
        }
        Ok(Watched { node, point: Watchpoint { address, len, loads, stores } })
    }
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("\"{text}\" is not a number; addresses begin with 0x"))
}

/// All watchpoints of a world.
#[derive(Debug)]
pub struct Watching {
    /// Watchpoints of each started node.
    points: Vec<Vec<Watchpoint>>,
    /// Functions of the kernel.
    pub(super) kernel: Symbols,
}

impl Watching {
    /// Resolves `watched` for these nodes, which all boot `kernel`. Returns `None` without watchpoints.
    ///
    /// # Errors
    /// Returns an error for more than [`WATCHPOINTS_MAX`] watchpoints and for an unknown node. A watchpoint without a
    /// node is an error in a world of several nodes.
    pub fn new<'n>(
        watched: &[Watched],
        nodes: impl Iterator<Item = &'n Node>,
        kernel: &Path,
    ) -> anyhow::Result<Option<Arc<Watching>>> {
        if watched.is_empty() {
            return Ok(None);
        }
        let points = by_node(watched, nodes)?;
        Ok(Some(Arc::new(Watching { points, kernel: symbols::of_file(kernel) })))
    }

    /// Returns the watchpoints of the node with this index.
    pub(super) fn of_node(&self, number: usize) -> &[Watchpoint] {
        self.points.get(number).map_or(&[], Vec::as_slice)
    }
}

/// Returns a list of watchpoints for each node.
///
/// # Errors
/// Returns an error for more than [`WATCHPOINTS_MAX`] watchpoints and for an unknown node. A watchpoint without a node
/// is an error in a world of several nodes.
pub fn by_node<'n>(
    watched: &[Watched],
    nodes: impl Iterator<Item = &'n Node>,
) -> anyhow::Result<Vec<Vec<Watchpoint>>> {
    if watched.len() > WATCHPOINTS_MAX {
        bail!("--watch: {} watchpoints; at most {WATCHPOINTS_MAX} are allowed", watched.len());
    }
    let names: Vec<&str> = nodes.map(|node| node.name.as_str()).collect();
    let mut points = vec![Vec::new(); names.len()];
    for Watched { node, point } in watched {
        let number = match node {
            None if names.len() == 1 => 0,
            None => bail!("--watch {:#x}: name the node, one of {}", point.address, names.join(", ")),
            Some(node) => names
                .iter()
                .position(|name| name == node)
                .with_context(|| format!("--watch: there is no node {node:?}, only {}", names.join(", ")))?,
        };
        points[number].push(*point);
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(Option<String>, u64, u64, bool, bool), String> {
        let Watched { node, point } = text.parse()?;
        Ok((node, point.address, point.len, point.loads, point.stores))
    }

    #[test]
    fn watchpoints_are_parsed_with_defaults() {
        let n1 = || Some("n1".to_owned());
        assert_eq!(parsed("n1:0x1000"), Ok((n1(), 0x1000, 8, false, true)));
        assert_eq!(parsed("0x1000+4:r"), Ok((None, 0x1000, 4, true, false)));
        assert_eq!(parsed("n1:4096+0x10:rw"), Ok((n1(), 4096, 16, true, true)));
        assert_eq!(parsed("n1:0xffffffffffffffff+1"), Ok((n1(), u64::MAX, 1, false, true)));
        for bad in [
            "",
            "n1:",
            "n1:x",
            "n1:0x1000+0",
            "n1:0x1000+2000000",
            "0xffffffffffffffff",
            "a:b:c:d",
            "w",
            "0x1+",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
