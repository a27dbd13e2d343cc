//! Edges with names, as JSON lines for other tools and as counts for people. An edge leads from a branch instruction
//! (the source) to the instruction that was executed after it (the target).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use everett_cpu::CodeLocation;
use everett_guest_image::programs::Error;
use everett_symbols::kernel::Symbols;
use serde::Serialize;

use super::Collected;
use super::programs::Programs;
use crate::guest::symbols;
use crate::run::launch::Launcher;

/// Program name of the kernel's code.
const KERNEL: &str = "kernel";
/// Program name of user code that is in no file of the image.
const OTHER: &str = "no file of the image";

/// An edge as a line of JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    from: String,
    to: String,
    user: bool,
    nodes: Vec<&'a str>,
}

/// Counts of the edges that lead into a program, and of their targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Path of the program's file, "kernel", or "no file of the image".
    pub program: String,
    /// Number of edges whose target is in the program.
    pub edges: u64,
    /// Number of different targets.
    pub places: u64,
}

/// Sources of names: the image's files and the kernel's functions.
#[derive(Debug)]
pub struct Names {
    /// Files of the image.
    pub programs: Programs,
    /// Functions of the kernel.
    pub kernel: Symbols,
}

/// An executed function of the kernel, or a program's executed code as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Index of the node.
    pub node: usize,
    /// Path of the program's file, "kernel", or "no file of the image".
    pub program: String,
    /// Name of the kernel function. For a program, the range of its targets.
    pub place: String,
    /// Number of edges whose target is in the function.
    pub edges: u64,
}

impl Names {
    /// Reads the names from a world's images and kernel.
    ///
    /// # Errors
    /// Returns an error if an image cannot be read.
    pub fn of(launcher: &Launcher) -> Result<Names, Error> {
        let mut programs = match &launcher.files.root {
            Some((root, _)) => Programs::of_root(root)?,
            None => Programs::default(),
        };
        let mut read = BTreeSet::new();
        for image in launcher.files.images.values() {
            if read.insert(image.disk.digest) {
                programs.add_disk(&image.disk)?;
            }
        }
        Ok(Names { programs, kernel: symbols::of_file(&launcher.files.kernel) })
    }

    /// Returns the functions that contain targets of edges. Programs come before kernel functions, and each group is in
    /// descending order of edges.
    #[must_use]
    pub fn functions(&self, edges: &Collected) -> Vec<Function> {
        let mut kernel: BTreeMap<(usize, String), u64> = BTreeMap::new();
        let mut programs: BTreeMap<(usize, &str), (u64, u64, u64)> = BTreeMap::new();
        for (_, to, seen) in edges.iter() {
            for &node in &seen.nodes {
                if seen.user {
                    let (path, at) = self.programs.find(to).unwrap_or((OTHER, seen.address));
                    let (count, low, high) = programs.entry((node, path)).or_insert((0, at, at));
                    (*count, *low, *high) = (*count + 1, at.min(*low), at.max(*high));
                } else {
                    let name = self.kernel.show(seen.address).function();
                    *kernel.entry((node, name)).or_default() += 1;
                }
            }
        }
        let programs = programs.into_iter().map(|((node, path), (edges, low, high))| Function {
            node,
            program: path.to_owned(),
            place: format!("{low:#x} to {high:#x}"),
            edges,
        });
        let kernel = kernel.into_iter().map(|((node, place), edges)| Function {
            node,
            program: KERNEL.to_owned(),
            place,
            edges,
        });
        let (mut programs, mut kernel): (Vec<_>, Vec<_>) = (programs.collect(), kernel.collect());
        programs.sort_by_key(|function| std::cmp::Reverse(function.edges));
        kernel.sort_by_key(|function| std::cmp::Reverse(function.edges));
        programs.extend(kernel);
        programs
    }

    /// Returns the name of a place. `address` is its guest-virtual address, if known.
    fn show(&self, place: CodeLocation, address: Option<u64>, user: bool) -> String {
        if let Some((path, at)) = self.programs.find(place) {
            return format!("{path}:{at:#x}");
        }
        match address.filter(|_| !user) {
            Some(address) => {
                let name = self.kernel.name(address).unwrap_or_else(|| format!("{address:#x}"));
                format!("{KERNEL}:{name}")
            }
            None => format!("page {:013x}:{:#x}", place.page(), place.offset()),
        }
    }

    fn program(&self, place: CodeLocation, user: bool) -> &str {
        match self.programs.find(place) {
            Some((path, _)) => path,
            None if user => OTHER,
            None => KERNEL,
        }
    }

    /// Writes all edges as JSON lines, in an order that depends only on the edges.
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails.
    pub fn write(&self, edges: &Collected, nodes: &[&str], out: &mut dyn Write) -> io::Result<()> {
        // Address of each page that has a target. An edge has the address of its target only. The address of its source
        // is known if the source's page is in this map.
        let mut pages = BTreeMap::new();
        for (_, to, seen) in edges.iter() {
            pages.entry(to.page()).or_insert(seen.address & !0xfff);
        }
        for (from, to, seen) in edges.iter() {
            let address = pages.get(&from.page()).map(|page| page | u64::from(from.offset()));
            let line = Line {
                from: self.show(from, address, seen.user),
                to: self.show(to, Some(seen.address), seen.user),
                user: seen.user,
                nodes: seen.nodes.iter().filter_map(|&node| nodes.get(node).copied()).collect(),
            };
            serde_json::to_writer(&mut *out, &line)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Returns the counts of each program, in descending order of edges.
    #[must_use]
    pub fn counts(&self, edges: &Collected) -> Vec<Count> {
        let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut places: BTreeMap<CodeLocation, bool> = BTreeMap::new();
        for (_, to, seen) in edges.iter() {
            counts.entry(self.program(to, seen.user)).or_default().0 += 1;
            places.insert(to, seen.user);
        }
        for (place, user) in places {
            counts.entry(self.program(place, user)).or_default().1 += 1;
        }
        let count = |(program, (edges, places)): (&str, (u64, u64))| Count {
            program: program.to_owned(),
            edges,
            places,
        };
        let mut counts: Vec<Count> = counts.into_iter().map(count).collect();
        counts.sort_by(|a, b| b.edges.cmp(&a.edges).then_with(|| a.program.cmp(&b.program)));
        counts
    }
}
