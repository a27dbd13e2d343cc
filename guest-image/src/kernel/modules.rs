//! Chooses a machine's kernel modules, with all dependencies, in the order in which the agent (Everett's program in the
//! guest) loads them.

use super::MODULE_BYTES_MAX;
use crate::compression::Format;
use everett_elf::Elf;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Modules for every machine: drivers of its virtio devices and filesystems of its disks.
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

/// Maximum total length of the modules in an initramfs, decompressed, in bytes. All modules of Debian's cloud kernel
/// together have 100 MiB.
pub const CLOSURE_BYTES_MAX: u64 = 256 << 20;

/// Maximum length of a chain of modules, each of which depends on the next. Debian's longest chain has about ten.
pub const CHAIN_MAX: usize = 64;

/// Folder whose modules take precedence over modules of the same name elsewhere, as depmod does by default
/// (depmod.d(5): `search updates built-in`).
const UPDATES: &str = "updates/";

/// Reason why the modules to load cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A module neither exists nor is built in.
    #[error("the kernel {release} has no module {module}{}, and it is not built in", wanted(needed_by.as_deref()))]
    Missing {
        /// Release of the kernel.
        release: String,
        /// Name of the module.
        module: String,
        /// Name of the module that depends on the missing one. `None` if the world or Everett requests it.
        needed_by: Option<String>,
    },
    /// A module cannot be decompressed.
    #[error("the module {module} of the kernel {release} cannot be unpacked")]
    Packed {
        /// Release of the kernel.
        release: String,
        /// Name of the module.
        module: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The total length of the needed modules exceeds the bound.
    #[error(
        "the needed modules of the kernel {release}, up to {module}, have more than {CLOSURE_BYTES_MAX} bytes"
    )]
    TooLong {
        /// Release of the kernel.
        release: String,
        /// Name of the module with which the total length exceeds the bound.
        module: String,
    },
    /// A chain of dependencies is too long.
    #[error(
        "the module {module} of the kernel {release} is needed through a chain of more than {CHAIN_MAX} modules"
    )]
    TooDeep {
        /// Release of the kernel.
        release: String,
        /// Name of the first module beyond the bound.
        module: String,
    },
    /// Two files with different content are the same module, and neither file takes precedence.
    #[error("the kernel {release} has the module {module} twice: {first} and {second}; remove one")]
    Twice {
        /// Release of the kernel.
        release: String,
        /// Name of the module.
        module: String,
        /// Path of one file.
        first: String,
        /// Path of the other file.
        second: String,
    },
    /// Modules depend on each other in a cycle.
    #[error("the module {module} of the kernel {release} depends on itself")]
    Circle {
        /// Release of the kernel.
        release: String,
        /// Name of a module in the cycle.
        module: String,
    },
}

fn wanted(needed_by: Option<&str>) -> String {
    needed_by.map_or(String::new(), |module| format!(", which {module} needs"))
}

/// A module to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Name of the module, as the kernel spells it: with `_`, not `-`.
    pub name: String,
    /// The module's ELF file, decompressed.
    pub image: Vec<u8>,
}

/// The modules of one kernel: their files, and the names of the modules that are built in.
#[derive(Debug, Clone, Default)]
pub struct Available {
    /// Release of the kernel.
    pub release: String,
    files: BTreeMap<String, ModuleFile>,
    built_in: BTreeSet<String>,
}

/// File of a module.
#[derive(Debug, Clone)]
struct ModuleFile {
    path: String,
    content: Vec<u8>,
    /// True if the file is below `updates/`, so that it takes precedence over other files of the same name.
    is_update: bool,
    /// Path of another file with the same name and precedence but different content.
    twin: Option<String>,
}

impl Available {
    /// Returns an empty set of modules.
    #[must_use]
    pub fn new(release: &str) -> Self {
        Available { release: release.to_owned(), ..Self::default() }
    }

    /// Adds a file of `/lib/modules/RELEASE`, by its path. Ignores all files except modules and `modules.builtin`. If
    /// two files are the same module, the file below `updates/` is used. If both or neither are below `updates/` and
    /// the files differ, [`Self::closure`] refuses the module.
    pub fn add(&mut self, path: &str, content: &[u8]) {
        if path.rsplit('/').next() == Some("modules.builtin") {
            let text = String::from_utf8_lossy(content);
            self.built_in.extend(text.lines().filter_map(|line| module_name(line.trim())));
        } else if let Some(name) = module_name(path) {
            let is_update = inside(path).starts_with(UPDATES);
            let file =
                || ModuleFile { path: path.to_owned(), content: content.to_vec(), is_update, twin: None };
            match self.files.entry(name) {
                Entry::Vacant(vacant) => {
                    vacant.insert(file());
                }
                Entry::Occupied(mut known) if is_update && !known.get().is_update => {
                    known.insert(file());
                }
                Entry::Occupied(mut known) => {
                    let known = known.get_mut();
                    if known.is_update == is_update && known.content != content && known.twin.is_none() {
                        known.twin = Some(path.to_owned());
                    }
                }
            }
        }
    }

    /// True if [`Self::add`] would keep a file with this path. The caller need not read other files.
    #[must_use]
    pub fn wants(path: &str) -> bool {
        path.ends_with("/modules.builtin") || module_name(path).is_some()
    }

    /// Returns everything that determines the result of [`Self::closure`], as inputs of a cache key. The order in which
    /// files were added has no effect.
    pub fn identity(&self) -> impl Iterator<Item = &[u8]> {
        let files = self.files.values().flat_map(|file| {
            let twin = file.twin.as_deref().unwrap_or_default();
            [file.path.as_bytes(), file.content.as_slice(), twin.as_bytes()]
        });
        // Paths are never empty, so an empty string in place of a path marks the end of the files.
        let built_in = self.built_in.iter().map(String::as_bytes);
        files.chain([[].as_slice()]).chain(built_in)
    }

    /// Returns the modules with these names and all their dependencies. Each module comes after the modules on which it
    /// depends. Built-in modules are left out.
    ///
    /// # Errors
    /// Returns an error if a module is missing, damaged, ambiguous or part of a cycle, or if a bound is exceeded.
    pub fn closure<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Module>, Error> {
        let left = CLOSURE_BYTES_MAX;
        let mut closure = Closure { available: self, state: BTreeMap::new(), order: Vec::new(), left };
        for name in names {
            closure.visit(&canonical(name), None, CHAIN_MAX)?;
        }
        Ok(closure.order)
    }
}

struct Closure<'a> {
    available: &'a Available,
    /// False while a module's dependencies are visited; true as soon as the module is in `order`.
    state: BTreeMap<String, bool>,
    order: Vec<Module>,
    /// Number of bytes that remain for further modules.
    left: u64,
}

impl Closure<'_> {
    /// Visits a module and its dependencies. `chain` is the number of modules by which the chain of dependencies may
    /// still grow.
    fn visit(&mut self, name: &str, needed_by: Option<&str>, chain: usize) -> Result<(), Error> {
        let Available { release, files, built_in } = self.available;
        let (release, module) = (|| release.clone(), || name.to_owned());
        match self.state.get(name) {
            Some(true) => return Ok(()),
            Some(false) => return Err(Error::Circle { release: release(), module: module() }),
            None => {}
        }
        if built_in.contains(name) {
            return Ok(());
        }
        let Some(ModuleFile { path, content, twin, .. }) = files.get(name) else {
            let needed_by = needed_by.map(str::to_owned);
            return Err(Error::Missing { release: release(), module: module(), needed_by });
        };
        if let Some(twin) = twin {
            let (first, second) = (path.clone(), twin.clone());
            return Err(Error::Twice { release: release(), module: module(), first, second });
        }
        let Some(chain) = chain.checked_sub(1) else {
            return Err(Error::TooDeep { release: release(), module: module() });
        };
        let image = match Format::of_name(path) {
            None => content.clone(),
            Some(format) => format.unpack(content, MODULE_BYTES_MAX).map_err(|source| Error::Packed {
                release: release(),
                module: module(),
                source,
            })?,
        };
        let left = self.left.checked_sub(image.len() as u64);
        self.left = left.ok_or_else(|| Error::TooLong { release: release(), module: module() })?;
        self.state.insert(module(), false);
        for dependency in dependencies(&image) {
            self.visit(&dependency, Some(name), chain)?;
        }
        self.state.insert(module(), true);
        self.order.push(Module { name: module(), image });
        Ok(())
    }
}

/// Returns a module's declared dependencies (`depends=a,b` in `.modinfo`). Returns an iterator, because a hostile
/// module may declare millions.
fn dependencies(image: &[u8]) -> impl Iterator<Item = String> {
    let sections = Elf::parse(image).and_then(|elf| elf.sections()).ok();
    let information = sections.and_then(|sections| sections.named(".modinfo")?.content().ok());
    let information = information.unwrap_or_default();
    let values = |key: &'static str| {
        let entries = information.split(|&byte| byte == 0);
        entries.filter_map(move |entry| std::str::from_utf8(entry).ok()?.strip_prefix(key))
    };
    let hard = values("depends=").flat_map(|list| list.split(','));
    hard.filter(|name| !name.is_empty()).map(canonical)
}

/// Returns the part of a path below `lib/modules/RELEASE/`. A path without that folder is returned unchanged.
fn inside(path: &str) -> &str {
    let below = path.split_once("lib/modules/").and_then(|(_, path)| path.split_once('/'));
    below.map_or(path, |(_, inside)| inside)
}

/// Returns the module's name, given the path of its file: `ext4` for `kernel/fs/ext4/ext4.ko.xz`.
fn module_name(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    let (name, end) = file.split_once(".ko")?;
    if matches!(end, "" | ".xz" | ".gz" | ".zst") { Some(canonical(name)) } else { None }
}

/// Returns a module's name as the kernel spells it. File names may have `-` where the kernel has `_`.
fn canonical(name: &str) -> String {
    name.trim().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::{Available, CHAIN_MAX, CLOSURE_BYTES_MAX, Error, dependencies, module_name};

    /// Makes an ELF file whose only section is `.modinfo`.
    fn module(depends: &str) -> Vec<u8> {
        let names = b"\0.modinfo\0";
        let information = format!("license=GPL\0depends={depends}\0name=x\0");
        let (names_at, information_at) = (64usize, 64 + names.len());
        let table = information_at + information.len();
        let mut elf = vec![0u8; 64];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[40..48].copy_from_slice(&(table as u64).to_le_bytes());
        for (at, half) in [(58, 64u16), (60, 3), (62, 1)] {
            elf[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        elf.extend_from_slice(names);
        elf.extend_from_slice(information.as_bytes());
        elf.extend([0; 64]);
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
    fn dependencies_come_first_and_built_in_modules_are_left_out() {
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
    fn a_missing_module_is_named_with_the_module_that_needs_it() {
        let available = available(&[("k/a.ko", "b")]);
        let error = available.closure(["a"]).unwrap_err().to_string();
        assert_eq!(error, "the kernel 6.1 has no module b, which a needs, and it is not built in");
        assert!(matches!(available.closure(["c"]), Err(Error::Missing { needed_by: None, .. })));
    }

    #[test]
    fn a_dependency_cycle_is_an_error() {
        let available = available(&[("k/a.ko", "b"), ("k/b.ko", "a")]);
        assert!(matches!(available.closure(["a"]), Err(Error::Circle { .. })));
    }

    #[test]
    fn the_total_length_of_decompressed_modules_is_bounded() {
        let long = [module(""), vec![0; 50 << 20]].concat();
        let packed = zstd::encode_all(long.as_slice(), 1).unwrap();
        assert!(packed.len() < 50 << 10, "the compressed module is small");
        let mut available = Available::new("6.1");
        let names: Vec<String> = (0..7).map(|number| format!("m{number}")).collect();
        for name in &names {
            available.add(&format!("k/{name}.ko.zst"), &packed);
        }
        let closure = |count: usize| available.closure(names[..count].iter().map(String::as_str));
        assert_eq!(closure(5).unwrap().len(), 5);
        let expected = format!(
            "the needed modules of the kernel 6.1, up to m5, have more than {CLOSURE_BYTES_MAX} bytes"
        );
        assert_eq!(closure(7).unwrap_err().to_string(), expected);
    }

    #[test]
    fn chains_are_bounded() {
        let chain = |length: usize| {
            let mut available = Available::new("6.1");
            for number in 0..length {
                let next = if number + 1 < length { format!("m{}", number + 1) } else { String::new() };
                available.add(&format!("k/m{number}.ko"), &module(&next));
            }
            available.closure(["m0"])
        };
        assert_eq!(chain(CHAIN_MAX).unwrap().len(), CHAIN_MAX);
        // Without the bound, a chain of 200,000 modules would overflow the stack.
        for length in [CHAIN_MAX + 1, 200_000] {
            let error = chain(length).unwrap_err().to_string();
            let expected = format!(
                "the module m{CHAIN_MAX} of the kernel 6.1 is needed through a chain of more than {CHAIN_MAX} modules"
            );
            assert_eq!(error, expected);
        }
    }

    /// Adds the files in this order, and returns the file that is used for module `a`.
    fn found(files: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        let mut available = Available::new("6.1");
        for (path, depends) in files {
            available.add(path, &module(depends));
        }
        available.add("modules.builtin", b"kernel/x.ko\nkernel/y.ko\nkernel/z.ko\n");
        let closure = available.closure(["a"]).map_err(|error| error.to_string())?;
        Ok(closure[0].image.clone())
    }

    #[test]
    fn a_module_file_below_updates_takes_precedence() {
        let mut files =
            [("extra/a.ko", "x"), ("updates/dkms/a.ko", "y"), ("kernel/a.ko", "z"), ("kernel/b.ko", "")];
        for _ in 0..2 {
            assert_eq!(found(&files).unwrap(), module("y"));
            files.reverse();
        }
        let packed = ["./lib/modules/6.1/updates/a.ko", "./usr/lib/modules/6.1/kernel/a.ko"];
        assert_eq!(found(&[(packed[0], "x"), (packed[1], "y")]).unwrap(), module("x"));
        // Only a top-level folder `updates` takes precedence.
        assert!(found(&[("kernel/updates/a.ko", "x"), ("kernel/a.ko", "y")]).is_err());
    }

    #[test]
    fn two_files_of_a_module_without_an_update_are_refused_if_they_differ() {
        assert_eq!(
            found(&[("extra/a.ko", "x"), ("kernel/a.ko", "y")]).unwrap_err(),
            "the kernel 6.1 has the module a twice: extra/a.ko and kernel/a.ko; remove one"
        );
        assert_eq!(found(&[("extra/a.ko", "x"), ("kernel/a.ko", "x")]).unwrap(), module("x"));
        // An ambiguous module is an error only if the module is needed.
        assert!(found(&[("kernel/a.ko", ""), ("extra/b.ko", "x"), ("kernel/b.ko", "y")]).is_ok());
    }

    #[test]
    fn names_and_dependencies_have_the_kernels_spelling() {
        assert_eq!(module_name("a/virtio-rng.ko.xz").as_deref(), Some("virtio_rng"));
        assert_eq!(module_name("a/virtio.kobject"), None);
        assert!(dependencies(&module("a,b-c")).eq(["a", "b_c"]));
        assert_eq!(dependencies(b"garbage").count(), 0);
    }
}
