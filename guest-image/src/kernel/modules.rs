//! Which modules a machine needs, with what they depend on, in the order in which they load.

use super::{MODULE_BYTES_MAX, elf};
use crate::compression::Format;
use std::collections::{BTreeMap, BTreeSet};

/// What every machine needs: its devices (virtio over MMIO) and the filesystems of its disks.
pub const DEFAULT_MODULES: [&str; 8] = [
    "virtio_mmio",
    "virtio_console",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "squashfs",
    "overlay",
    "ext4",
];

/// Why no order was found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A module is neither there nor built in.
    #[error("the kernel {release} has no module {module}{}, and it is not built in", wanted(needed_by.as_deref()))]
    Missing {
        /// The kernel's release.
        release: String,
        /// The module.
        module: String,
        /// The module that depends on it.
        needed_by: Option<String>,
    },
    /// A module cannot be unpacked.
    #[error("the module {module} of the kernel {release} cannot be unpacked")]
    Packed {
        /// The kernel's release.
        release: String,
        /// The module.
        module: String,
        /// Why.
        source: std::io::Error,
    },
    /// Modules depend on one another in a circle.
    #[error("the module {module} of the kernel {release} depends on itself")]
    Circle {
        /// The kernel's release.
        release: String,
        /// A module of the circle.
        module: String,
    },
}

fn wanted(needed_by: Option<&str>) -> String {
    needed_by.map_or(String::new(), |module| format!(", which {module} needs"))
}

/// A module that is to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, as the kernel has it: with `_`, not `-`.
    pub name: String,
    /// Its ELF.
    pub image: Vec<u8>,
}

/// The modules of one kernel: their files, and the names of those that are built in.
#[derive(Debug, Clone, Default)]
pub struct Available {
    /// The kernel's release.
    pub release: String,
    files: BTreeMap<String, (String, Vec<u8>)>,
    built_in: BTreeSet<String>,
}

impl Available {
    /// No modules yet.
    #[must_use]
    pub fn new(release: &str) -> Self {
        Available { release: release.to_owned(), ..Self::default() }
    }

    /// Takes a file of `/lib/modules/RELEASE`, by its path; ones that are neither modules nor `modules.builtin` are
    /// passed over.
    pub fn add(&mut self, path: &str, content: &[u8]) {
        if path.rsplit('/').next() == Some("modules.builtin") {
            let text = String::from_utf8_lossy(content);
            self.built_in.extend(text.lines().filter_map(|line| module_name(line.trim())));
        } else if let Some(name) = module_name(path) {
            self.files.insert(name, (path.to_owned(), content.to_vec()));
        }
    }

    /// Whether [`Self::add`] would keep a file with this path: others need not be read.
    #[must_use]
    pub fn wants(path: &str) -> bool {
        path.ends_with("/modules.builtin") || module_name(path).is_some()
    }

    /// The files that were kept, in the order of their modules' names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.values().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    /// The modules with these names and all that they depend on, each after what it depends on. Those that are built
    /// in are left out.
    ///
    /// # Errors
    /// A module is missing or damaged.
    pub fn closure<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Module>, Error> {
        let mut closure = Closure { available: self, state: BTreeMap::new(), order: Vec::new() };
        for name in names {
            closure.visit(&canonical(name), None)?;
        }
        Ok(closure.order)
    }
}

struct Closure<'a> {
    available: &'a Available,
    /// False while a module's dependencies are being visited, true when it is in the order.
    state: BTreeMap<String, bool>,
    order: Vec<Module>,
}

impl Closure<'_> {
    fn visit(&mut self, name: &str, needed_by: Option<&str>) -> Result<(), Error> {
        let Available { release, files, built_in } = self.available;
        match self.state.get(name) {
            Some(true) => return Ok(()),
            Some(false) => return Err(Error::Circle { release: release.clone(), module: name.to_owned() }),
            None => {}
        }
        if built_in.contains(name) {
            return Ok(());
        }
        let Some((path, content)) = files.get(name) else {
            let needed_by = needed_by.map(str::to_owned);
            return Err(Error::Missing { release: release.clone(), module: name.to_owned(), needed_by });
        };
        let image = match Format::of_name(path) {
            None => content.clone(),
            Some(format) => format.unpack(content, MODULE_BYTES_MAX).map_err(|source| Error::Packed {
                release: release.clone(),
                module: name.to_owned(),
                source,
            })?,
        };
        self.state.insert(name.to_owned(), false);
        for dependency in dependencies(&image) {
            self.visit(&dependency, Some(name))?;
        }
        self.state.insert(name.to_owned(), true);
        self.order.push(Module { name: name.to_owned(), image });
        Ok(())
    }
}

/// What a module says it depends on: `depends=a,b` in `.modinfo`.
fn dependencies(image: &[u8]) -> Vec<String> {
    let information = elf::section(image, ".modinfo").unwrap_or_default();
    let values = |key: &'static str| {
        let entries = information.split(|&byte| byte == 0);
        entries.filter_map(move |entry| std::str::from_utf8(entry).ok()?.strip_prefix(key))
    };
    let hard = values("depends=").flat_map(|list| list.split(','));
    hard.filter(|name| !name.is_empty()).map(canonical).collect()
}

/// `kernel/fs/ext4/ext4.ko.xz` is the module `ext4`.
fn module_name(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    let (name, end) = file.split_once(".ko")?;
    if matches!(end, "" | ".xz" | ".gz" | ".zst") { Some(canonical(name)) } else { None }
}

/// Files may be written with `-`; the kernel knows only `_`.
fn canonical(name: &str) -> String {
    name.trim().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::{Available, Error, dependencies, module_name};

    /// An ELF with one section, `.modinfo`.
    fn module(depends: &str) -> Vec<u8> {
        let names = b"\0.modinfo\0";
        let information = format!("license=GPL\0depends={depends}\0name=x\0");
        let (names_at, information_at) = (64usize, 64 + names.len());
        let table = information_at + information.len();
        let mut elf = vec![0u8; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[40..48].copy_from_slice(&(table as u64).to_le_bytes());
        elf[60..62].copy_from_slice(&2u16.to_le_bytes());
        elf.extend_from_slice(names);
        elf.extend_from_slice(information.as_bytes());
        for (name, start, length) in [(0u32, names_at, names.len()), (1, information_at, information.len())] {
            let mut header = vec![0u8; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[24..32].copy_from_slice(&(start as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(length as u64).to_le_bytes());
            elf.extend(header);
        }
        elf
    }

    fn available(modules: &[(&str, &str)]) -> Available {
        let mut available = Available::new("6.1");
        for (path, depends) in modules {
            available.add(path, &module(depends));
        }
        available.add("lib/modules/6.1/modules.builtin", b"kernel/fs/ext4/ext4.ko\nkernel/a/built-in.ko\n");
        available
    }

    fn names(available: &Available, wanted: &[&str]) -> Vec<String> {
        let closure = available.closure(wanted.iter().copied()).unwrap();
        closure.into_iter().map(|module| module.name).collect()
    }

    #[test]
    fn dependencies_come_first_and_built_in_ones_not_at_all() {
        let available = available(&[
            ("k/virtio_net.ko", "virtio_ring,net_failover,built-in"),
            ("k/net_failover.ko", "failover"),
            ("k/failover.ko", ""),
            ("k/virtio_ring.ko", "virtio"),
            ("k/virtio.ko", ""),
        ]);
        let order = names(&available, &["ext4", "virtio-net", "virtio"]);
        assert_eq!(order, ["virtio", "virtio_ring", "failover", "net_failover", "virtio_net"]);
    }

    #[test]
    fn packed_modules_are_unpacked() {
        let mut available = Available::new("6.1");
        available.add("k/a-b.ko.zst", &zstd::encode_all(module("").as_slice(), 1).unwrap());
        let closure = available.closure(["a_b"]).unwrap();
        assert_eq!(closure[0].image, module(""));
        available.add("k/c.ko.xz", b"no xz");
        assert!(matches!(available.closure(["c"]), Err(Error::Packed { .. })));
    }

    #[test]
    fn what_is_missing_is_named_with_who_needs_it() {
        let available = available(&[("k/a.ko", "b")]);
        let error = available.closure(["a"]).unwrap_err().to_string();
        assert_eq!(error, "the kernel 6.1 has no module b, which a needs, and it is not built in");
        assert!(matches!(available.closure(["c"]), Err(Error::Missing { needed_by: None, .. })));
    }

    #[test]
    fn a_circle_ends() {
        let available = available(&[("k/a.ko", "b"), ("k/b.ko", "a")]);
        assert!(matches!(available.closure(["a"]), Err(Error::Circle { .. })));
    }

    #[test]
    fn names_and_dependencies_are_read_as_the_kernel_has_them() {
        assert_eq!(module_name("a/virtio-rng.ko.xz").as_deref(), Some("virtio_rng"));
        assert_eq!(module_name("a/virtio.kobject"), None);
        assert_eq!(dependencies(&module("a,b-c")), ["a", "b_c"]);
        assert!(dependencies(b"garbage").is_empty());
    }
}
