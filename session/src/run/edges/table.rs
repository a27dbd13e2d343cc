//! Edges with names, as JSON lines for other tools and as counts for people. An edge leads from a branch instruction
//! (the source) to the instruction that was executed after it (the target).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::RangeInclusive;

use everett_cpu::CodeLocation;
use everett_guest_image::programs::Error;
use everett_symbols::kernel::Symbols;
use serde::Serialize;

use super::Collected;
use super::functions::Functions;
use super::programs::{ProgramPlace, Programs};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    from_function: Option<String>,
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_function: Option<String>,
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

/// Sources of names: the files of images, their functions, and the kernel's functions.
pub struct Names {
    programs: Programs,
    functions: Functions,
    kernel: Symbols,
}

/// An executed function, or executed code of a program that is in no function with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Index of the node.
    pub node: usize,
    /// Path of the program's file, "kernel", or "no file of the image".
    pub program: String,
    /// Name of the function, or the range of the targets that are in no function with a name.
    pub place: String,
    /// Number of edges whose target is in the function.
    pub edges: u64,
}

/// Edges into code of a program.
struct Targets {
    /// Number of edges.
    edges: u64,
    /// First and last address of a target.
    addresses: RangeInclusive<u64>,
}

impl Targets {
    fn add(&mut self, target: u64) {
        self.edges += 1;
        self.addresses = target.min(*self.addresses.start())..=target.max(*self.addresses.end());
    }

    fn range(&self) -> String {
        format!("{:#x} to {:#x}", self.addresses.start(), self.addresses.end())
    }
}

impl Names {
    /// Reads the names from a world's images and kernel.
    ///
    /// # Errors
    /// Returns an error if an image cannot be read.
    pub fn of(launcher: &Launcher) -> Result<Names, Error> {
        Ok(Names {
            programs: Programs::of_launcher(launcher)?,
            functions: Functions::of_launcher(launcher)?,
            kernel: symbols::of_file(&launcher.files.kernel),
        })
    }

    /// Returns the functions that contain targets of edges. Programs come before kernel functions, and each group is in
    /// descending order of edges.
    #[must_use]
    pub fn functions(&self, edges: &Collected) -> Vec<Function> {
        let mut kernel: BTreeMap<(usize, String), u64> = BTreeMap::new();
        let mut programs: BTreeMap<(usize, &str, Option<String>), Targets> = BTreeMap::new();
        for (_, to, seen) in edges.iter() {
            if !seen.user {
                let name = self.kernel.show(seen.address).function();
                for &node in &seen.nodes {
                    *kernel.entry((node, name.clone())).or_default() += 1;
                }
                continue;
            }
            let (path, at, function) = match self.programs.find(to) {
                Some(place) => (place.path, place.address, self.function(place).map(|(name, _)| name)),
                None => (OTHER, seen.address, None),
            };
            for &node in &seen.nodes {
                let targets = programs.entry((node, path, function.clone()));
                targets.or_insert(Targets { edges: 0, addresses: at..=at }).add(at);
            }
        }
        let programs = programs.into_iter().map(|((node, path, function), targets)| Function {
            node,
            program: path.to_owned(),
            place: function.unwrap_or_else(|| targets.range()),
            edges: targets.edges,
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
        if let Some(ProgramPlace { path, address, .. }) = self.programs.find(place) {
            return format!("{path}:{address:#x}");
        }
        match address.filter(|_| !user) {
            Some(address) => {
                let name = self.kernel.name(address).unwrap_or_else(|| format!("{address:#x}"));
                format!("{KERNEL}:{name}")
            }
            None => format!("page {:013x}:{:#x}", place.page(), place.offset()),
        }
    }

    /// Returns the name of the function at a place of a program, and the distance from its start.
    fn function(&self, place: ProgramPlace<'_>) -> Option<(String, u64)> {
        self.functions.name(place.image, place.path, place.address)
    }

    /// Returns `FUNCTION+0x12` for a place of a program, if its function has a name.
    fn show_function(&self, place: CodeLocation) -> Option<String> {
        let (name, offset) = self.function(self.programs.find(place)?)?;
        Some(format!("{name}+{offset:#x}"))
    }

    fn program(&self, place: CodeLocation, user: bool) -> &str {
        match self.programs.find(place) {
            Some(place) => place.path,
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
                from_function: self.show_function(from),
                to_function: self.show_function(to),
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
