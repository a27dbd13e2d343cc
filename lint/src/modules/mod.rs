//! The module tree of a crate, and which of its files import which.
//!
//! A file *imports* another one if it names an item that the other one defines: in a `use`, or by a path that begins
//! with `crate`, `super`, `self`, a child module or an imported module. A name that a module only passes on (`pub use`)
//! counts as an import of the file that defines it. Names inside of macro calls, and tests, do not count.
//!
//! - `scan`: source files to modules; `paths`: the paths that a file names

mod paths;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Number of passed-on names that are followed before a name counts as undefined.
const FOLLOW_MAX: usize = 16;

/// Error from reading a crate's sources.
#[derive(Debug)]
pub struct ScanError(pub String);

/// Path of a module: the names below the crate's root.
type ModulePath = Vec<String>;

/// A module with a file of its own, or the inline modules of that file.
#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    /// Paths that the module names, each with the name by which the module knows its last item, if it is a `use`.
    names: Vec<Named>,
}

/// A path that a module names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    segments: Vec<String>,
    /// Name that a `use` gives to the item; `*` for all names.
    imported_as: Option<String>,
}

/// The modules of a crate.
#[derive(Debug)]
pub struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

impl Crate {
    /// Reads the modules below a crate's root file.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is not Rust.
    pub fn read(root: &Path) -> Result<Crate, ScanError> {
        Ok(Crate { modules: scan::modules(root)? })
    }

    /// Returns the files, each with those that it imports.
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

    /// Returns the module that defines the item at a path, as seen from the module `from`.
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
            // The item is defined here, or passed on from elsewhere.
            let passed_on = self.passed_on(&at, name, follow);
            match (passed_on, rest.peek().is_some()) {
                (Some(module), _) => at = module,
                (None, _) => return Some(at),
            }
        }
        Some(at)
    }

    /// Returns the module that defines what a `use` of the module `at` gives this name to.
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
