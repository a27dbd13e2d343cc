//! Module tree of a crate, and the imports of its files.
//!
//! A file *imports* another file if it names an item that the other file defines. The name may be in a `use`, or in a
//! path that begins with `crate`, `super`, `self`, a child module or an imported module. A name that a module
//! re-exports (`pub use`) counts as an import of the file that defines the item. Names in macro calls and in tests do
//! not count.
//!
//! - `paths`: collects the paths that a file names
//! - `scan`: reads the modules of a crate from its source files

mod paths;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of re-exports that are followed before a name counts as undefined.
const FOLLOW_MAX: usize = 16;

/// Error from reading a crate's sources.
#[derive(Debug)]
pub struct ScanError(pub String);

/// Path of a module: the names below the crate's root.
type ModulePath = Vec<String>;

/// Module of a file, together with the inline modules in that file.
#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    /// Paths that the module names.
    names: Vec<Named>,
}

/// Path that a module names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    segments: Vec<String>,
    /// Name that a `use` gives to the item; `*` for all names. `None` if the path is not in a `use`.
    imported_as: Option<String>,
}

/// Modules of a crate.
#[derive(Debug)]
pub struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

impl Crate {
    /// Reads the modules below a crate's root file.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is not valid Rust.
    pub fn read(root: &Path) -> Result<Crate, ScanError> {
        Ok(Crate { modules: scan::modules(root)? })
    }

    /// Returns the files, each with the files that it imports.
    #[must_use]
    pub fn imports(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut all: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let into = all.entry(module.file.clone()).or_default();
            for named in &module.names {
                if let Some(defined) = self.defining(path, &named.segments, FOLLOW_MAX)
                    && let Some(other) = self.modules.get(&defined)
                    && other.file != module.file
                {
                    into.insert(other.file.clone());
                }
            }
        }
        all
    }

    /// Returns the module that defines the item at a path. The path is relative to the module `from`. `None` if the
    /// path does not lead to a module of the crate, or if `follow` re-exports are not enough to find it.
    fn defining(&self, from: &ModulePath, segments: &[String], follow: usize) -> Option<ModulePath> {
        let follow = follow.checked_sub(1)?;
        let (first, rest) = segments.split_first()?;
        let mut at = match first.as_str() {
            "crate" => ModulePath::new(),
            "self" => from.clone(),
            "super" => from.split_last()?.1.to_vec(),
            name => {
                let child = child(from, name);
                if self.modules.contains_key(&child) { child } else { self.passed_on(from, name, follow)? }
            }
        };
        let mut rest = rest.iter().peekable();
        while let Some(name) = rest.next() {
            if name == "super" {
                at.pop()?;
                continue;
            }
            if name == "self" || name == "*" {
                continue;
            }
            let child = child(&at, name);
            if self.modules.contains_key(&child) {
                at = child;
                continue;
            }
            // The module defines the item itself, or re-exports it.
            let passed_on = self.passed_on(&at, name, follow);
            match (passed_on, rest.peek().is_some()) {
                (Some(module), _) => at = module,
                (None, _) => return Some(at),
            }
        }
        Some(at)
    }

    /// Returns the module that defines the item that a `use` of the module `at` imports under this name. `None` if no
    /// `use` does, or if this crate does not define the item.
    fn passed_on(&self, at: &ModulePath, name: &str, follow: usize) -> Option<ModulePath> {
        let module = self.modules.get(at)?;
        let import = module.names.iter().find(|named| named.imported_as.as_deref() == Some(name))?;
        if import.segments.len() == 1 && import.segments.first().is_some_and(|first| first == name) {
            return None;
        }
        self.defining(at, &import.segments, follow)
    }
}

fn child(parent: &ModulePath, name: &str) -> ModulePath {
    let mut child = parent.clone();
    child.push(name.to_owned());
    child
}
