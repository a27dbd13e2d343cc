//! Lists the differences between the states of two machines: registers, pages, device fields and blocks.

use std::fmt;

use crate::disk::{BLOCK, Disk};
use crate::layout::PAGE;
use crate::machine::Machine;

/// Maximum number of differing pages or blocks that are listed.
const NAMED_MAX: usize = 32;

/// A difference between two machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Name of what differs: "cpu.gpr.3 (rbx)", "memory page 0x1234 byte 0x10", "devices.interrupts.lapic.irr" and so
    /// on.
    pub name: String,
    /// Value in the first machine.
    pub a: String,
    /// Value in the second machine.
    pub b: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} | {}", self.name, self.a, self.b)
    }
}

/// Names of the general registers, in the order of `CpuState::gpr`.
const GPR: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

/// Returns the differences between two machines. If more than [`NAMED_MAX`] pages or blocks differ, lists the first
/// ones and the total number.
pub fn differences(a: &mut Machine, b: &mut Machine) -> Vec<Difference> {
    let mut found = Vec::new();
    let (cpu_a, cpu_b) = (a.compared_registers(), b.compared_registers());
    text_differences("cpu", &format!("{cpu_a:#x?}"), &format!("{cpu_b:#x?}"), &mut found);
    text_differences("devices", &format!("{:#x?}", a.state()), &format!("{:#x?}", b.state()), &mut found);
    memory_differences(a, b, &mut found);
    disk_differences(a, b, &mut found);
    found
}

/// Compares two pretty-printed values field by field.
fn text_differences(root: &str, a: &str, b: &str, found: &mut Vec<Difference>) {
    let (mut a, mut b) = (fields(root, a), fields(root, b));
    // A field that only one value has (an event, a frame) is compared with "(none)".
    let missing = || "(none)".to_owned();
    let names: Vec<String> = {
        let mut names: Vec<String> = a.iter().chain(&b).map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    };
    a.sort();
    b.sort();
    let value = |fields: &[(String, String)], name: &str| {
        fields
            .binary_search_by(|(n, _)| n.as_str().cmp(name))
            .map_or_else(|_| missing(), |i| fields[i].1.clone())
    };
    for name in names {
        let (a, b) = (value(&a, &name), value(&b, &name));
        if a != b {
            found.push(Difference { name, a, b });
        }
    }
}

/// Returns each innermost field of a pretty-printed value with its path. Elements of lists are numbered.
fn fields(root: &str, text: &str) -> Vec<(String, String)> {
    let mut leaves = Vec::new();
    let mut path = vec![(root.to_owned(), 0usize)];
    for line in text.lines().skip(1) {
        let line = line.trim();
        let closes = line.starts_with(['}', ']', ')']);
        let opens = line.ends_with(['{', '[', '(']);
        let content = line.trim_end_matches(',');
        if closes {
            let Some((name, _)) = path.pop() else { break };
            if path.is_empty() {
                break;
            }
            // `}: value` ends the key of a map entry and starts its value.
            if let Some((_, value)) = content.split_once(": ") {
                if opens {
                    path.push((format!("{name}=>"), 0));
                } else {
                    leaves.push((format!("{}=>", join(&path, &name)), value.to_owned()));
                }
            }
            continue;
        }
        let (name, value) = match content.split_once(": ") {
            Some((name, value)) => (name.to_owned(), value),
            None => {
                let Some((_, count)) = path.last_mut() else { break };
                *count += 1;
                ((*count - 1).to_string(), content)
            }
        };
        if opens {
            path.push((name, 0));
            continue;
        }
        let mut joined = join(&path, &name);
        if let Some(register) =
            joined.strip_prefix("cpu.gpr.").and_then(|i| i.parse::<usize>().ok()).and_then(|i| GPR.get(i))
        {
            joined = format!("{joined} ({register})");
        }
        leaves.push((joined, value.to_owned()));
    }
    leaves
}

fn join(path: &[(String, usize)], name: &str) -> String {
    let mut full: Vec<&str> = path.iter().map(|(name, _)| name.as_str()).collect();
    full.push(name);
    full.join(".")
}

fn memory_differences(a: &mut Machine, b: &mut Machine, found: &mut Vec<Difference>) {
    // Pages beyond the end of the smaller machine's RAM count as zero.
    let content = |machine: &Machine, page| machine.ram().page(page).copied().unwrap_or([0; PAGE as usize]);
    let pages = a.ram().len().max(b.ram().len()) / PAGE;
    let differ: Vec<u64> = (0..pages).filter(|&page| a.ram().page(page) != b.ram().page(page)).collect();
    for &page in differ.iter().take(NAMED_MAX) {
        let name = format!("memory page {page:#x}");
        found.push(byte_difference(&name, &content(a, page), &content(b, page)));
    }
    more("pages of memory", differ.len(), found);
}

fn disk_differences(a: &mut Machine, b: &mut Machine, found: &mut Vec<Difference>) {
    for disk in 0.. {
        let (Some(x), Some(y)) = (a.disk_mut(disk), b.disk_mut(disk)) else { return };
        let (cache_x, cache_y) = (x.cache_text(), y.cache_text());
        if cache_x != cache_y {
            found.push(Difference { name: format!("disk {disk} cache"), a: cache_x, b: cache_y });
        }
        let (faults_x, faults_y) = (format!("{:?}", x.faults()), format!("{:?}", y.faults()));
        if faults_x != faults_y {
            found.push(Difference { name: format!("disk {disk} faults"), a: faults_x, b: faults_y });
        }
        let read = |disk: &Disk, block: u64| {
            let mut content = [0; BLOCK as usize];
            disk.read(block * BLOCK, &mut content);
            content
        };
        let mut written = x.written_blocks();
        written.append(&mut y.written_blocks());
        written.retain(|&block| read(x, block) != read(y, block));
        for &block in written.iter().take(NAMED_MAX) {
            let name = format!("disk {disk} block {block:#x}");
            found.push(byte_difference(&name, &read(x, block), &read(y, block)));
        }
        more(&format!("blocks of disk {disk}"), written.len(), found);
    }
}

fn more(what: &str, count: usize, found: &mut Vec<Difference>) {
    if count > NAMED_MAX {
        let text = count.to_string();
        found.push(Difference { name: format!("{what} that differ, in all"), a: text.clone(), b: text });
    }
}

/// Returns the offset of the first byte that differs, with the 16 bytes from that offset on.
fn byte_difference(name: &str, a: &[u8], b: &[u8]) -> Difference {
    let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
    let show = |bytes: &[u8]| {
        let shown: Vec<String> = bytes[at..].iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        shown.join(" ")
    };
    Difference { name: format!("{name} byte {at:#x}"), a: show(a), b: show(b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_cpu::CpuState;

    #[test]
    fn fields_are_named_by_path() {
        let a = CpuState::default();
        let mut b = a.clone();
        b.gpr[3] = 0x10;
        b.msrs.lstar = 5;
        b.fpu.xmm[2] = 7;
        b.fpu.r[1].1 = 9;
        let mut found = Vec::new();
        text_differences("cpu", &format!("{a:#x?}"), &format!("{b:#x?}"), &mut found);
        let names: Vec<&str> = found.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["cpu.fpu.r.1.1", "cpu.fpu.xmm.2", "cpu.gpr.3 (rbx)", "cpu.msrs.lstar"]);
        assert_eq!((found[2].a.as_str(), found[2].b.as_str()), ("0x0", "0x10"));
    }

    #[test]
    fn bytes_are_located() {
        let mut page = vec![0; 4096];
        page[100] = 1;
        let difference = byte_difference("memory page 0x5", &vec![0; 4096], &page);
        assert_eq!(difference.name, "memory page 0x5 byte 0x64");
        assert!(difference.b.starts_with("01 00"));
    }
}
