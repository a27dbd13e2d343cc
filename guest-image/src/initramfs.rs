//! Makes the initramfs, an archive with the agent (Everett's program in the guest) as `/init`, and with the modules
//! that the agent loads.
//!
//! The archive is a cpio archive in the "newc" format (Linux,
//! Documentation/driver-api/early-userspace/buffer-format.rst). The archive is not compressed, because the kernel would
//! spend guest instructions on decompression. Names, times and inode numbers are fixed, so equal contents make equal
//! bytes.

use crate::kernel::modules::Module;

/// Path of the list of modules, which the agent reads, and the folder of the modules.
const MODULE_LIST: &str = "etc/everett/modules";
const MODULE_FOLDER: &str = "lib/everett-modules";

const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// Builds the initramfs of an agent and modules. The agent loads the modules in the given order.
#[must_use]
pub fn build(agent: &[u8], modules: &[Module]) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.folder("dev");
    // The kernel opens /dev/console for PID 1 before anything is mounted.
    archive.entry("dev/console", CHARACTER_DEVICE | 0o600, (5, 1), &[]);
    archive.folder("etc");
    archive.folder("etc/everett");
    let list: String = modules.iter().map(|module| format!("{}.ko\n", module.name)).collect();
    archive.file(MODULE_LIST, 0o644, list.as_bytes());
    archive.file("init", 0o755, agent);
    archive.folder("lib");
    archive.folder(MODULE_FOLDER);
    for module in modules {
        archive.file(&format!("{MODULE_FOLDER}/{}.ko", module.name), 0o644, &module.image);
    }
    for folder in ["proc", "run", "sys"] {
        archive.folder(folder);
    }
    archive.finish()
}

/// A cpio archive under construction. The kernel accepts several concatenated archives as one.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    /// Inode number of the last entry. Each entry has its own number.
    inode: u32,
}

impl Archive {
    /// Adds a folder. A folder must come before its content, because the kernel does not create parents.
    pub fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER | 0o755, (0, 0), &[]);
    }

    /// Adds a file with the given permission bits.
    pub fn file(&mut self, name: &str, permissions: u32, content: &[u8]) {
        self.entry(name, FILE | permissions, (0, 0), content);
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.inode += 1;
        self.record(self.inode, name, mode, device, content);
    }

    fn record(&mut self, inode: u32, name: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        let links = if mode & FOLDER == FOLDER { 2 } else { 1 };
        // The fields: inode, mode, user, group, links, time, length, device that holds the file (major, minor), device
        // that a device node stands for (major, minor), name's length, checksum. A file of an initramfs is far smaller
        // than 4 GiB, so the length fits 32 bits.
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let name_length = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        let fields = [inode, mode, 0, 0, links, 0, length, 0, 0, major, minor, name_length, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Ends the archive and returns its bytes. The length is a multiple of four, so another archive may follow.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.record(0, "TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::build;
    use crate::kernel::modules::Module;

    /// Reads an archive back. Returns the name, mode and content of each entry.
    fn read(mut archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&archive[..6], b"070701");
            let field = |index: usize| {
                let at = 6 + index * 8;
                u32::from_str_radix(std::str::from_utf8(&archive[at..at + 8]).unwrap(), 16).unwrap()
            };
            let (mode, length, name_length) = (field(1), field(6) as usize, field(11) as usize);
            let name = String::from_utf8(archive[110..110 + name_length - 1].to_vec()).unwrap();
            if name == "TRAILER!!!" {
                return entries;
            }
            let start = (110 + name_length).next_multiple_of(4);
            entries.push((name, mode, archive[start..start + length].to_vec()));
            archive = &archive[(start + length).next_multiple_of(4)..];
        }
    }

    #[test]
    fn the_archive_holds_the_agent_and_its_modules() {
        let module = |name: &str| Module { name: name.to_owned(), image: name.as_bytes().to_vec() };
        let entries = read(&build(b"agent", &[module("b"), module("a")]));
        let content = |name: &str| &entries.iter().find(|entry| entry.0 == name).unwrap().2;
        assert_eq!(content("init"), b"agent");
        assert_eq!(content("etc/everett/modules"), b"b.ko\na.ko\n");
        assert_eq!(content("lib/everett-modules/b.ko"), b"b");
        assert_eq!(entries.iter().find(|entry| entry.0 == "dev/console").unwrap().1, 0o020_600);
        // The kernel does not create parents, so each folder must come before its content.
        for (index, (name, ..)) in entries.iter().enumerate() {
            if let Some((parent, _)) = name.rsplit_once('/') {
                assert!(
                    entries[..index].iter().any(|(name, mode, _)| name == parent && mode & 0o040_000 != 0)
                );
            }
        }
    }

    #[test]
    fn equal_content_makes_equal_bytes() {
        assert_eq!(build(b"agent", &[]), build(b"agent", &[]));
    }
}
