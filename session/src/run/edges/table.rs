//! Edges with names, as JSON lines for other tools and as counts for people. An edge leads from a branch instruction
//! (the source) to the instruction that was executed after it (the target).

use std::collections::{BTreeMap, BTreeSet};
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
#[cfg(feature = "inside")]
use crate::inside::debug_files::DebugFolders;
use crate::run::launch::Launcher;

/// Program name of the kernel's code.
const KERNEL: &str = "kernel";
/// Program name of user code that is in no file of the image.
const OTHER: &str = "no file of the image";

/// Maximum number of source lines of a function.
pub const LINES_MAX: usize = 8;
/// Maximum number of targets in a function whose source lines are looked up.
const TARGETS_MAX: usize = 64;

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
    /// Source lines of targets: `FILE:LINE`, or `FUNCTION (inlined) at FILE:LINE`. Empty if the program has no debug
    /// information. At most [`LINES_MAX`].
    pub lines: Vec<String>,
}

/// Function of a program that contains a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum InProgram {
    /// Its demangled name.
    Named(String),
    /// First address of a function without a symbol.
    Unnamed(u64),
    /// No function is known at the target.
    Nowhere,
}

/// Edges into code of a program.
struct Targets {
    /// Number of edges.
    edges: u64,
    /// First and last address of a target.
    addresses: RangeInclusive<u64>,
    /// Lowest addresses of targets, at most [`TARGETS_MAX`].
    first: BTreeSet<u64>,
}

impl Targets {
    fn at(target: u64) -> Targets {
        Targets { edges: 0, addresses: target..=target, first: BTreeSet::new() }
    }

    fn add(&mut self, target: u64) {
        self.edges += 1;
        self.first.insert(target);
        if self.first.len() > TARGETS_MAX {
            self.first.pop_last();
        }
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

    /// Reads the names from a world's images and kernel. Separate debug files of programs are looked for in the folders
    /// `debug`.
    ///
    /// # Errors
    /// Returns an error if an image cannot be read.
    #[cfg(feature = "inside")]
    pub fn with_debug_files(launcher: &Launcher, debug: DebugFolders) -> Result<Names, Error> {
        Ok(Names {
            programs: Programs::of_launcher(launcher)?,
            functions: Functions::with_debug_files(launcher, debug)?,
            kernel: symbols::of_file(&launcher.files.kernel),
        })
    }

    /// Returns the functions that contain targets of edges, at most `most`. Programs come before kernel functions, and
    /// each group is in descending order of edges.
    #[must_use]
    pub fn functions(&self, edges: &Collected, most: usize) -> Vec<Function> {
        let mut kernel: BTreeMap<(usize, String), u64> = BTreeMap::new();
        let mut programs: BTreeMap<(usize, Option<usize>, &str, InProgram), Targets> = BTreeMap::new();
        for (_, to, seen) in edges.iter() {
            if !seen.user {
                let name = self.kernel.show(seen.address).function();
                for &node in &seen.nodes {
                    *kernel.entry((node, name.clone())).or_default() += 1;
                }
                continue;
            }
            let (image, path, at, function) = match self.programs.find(to) {
                Some(place) => (Some(place.image), place.path, place.address, self.in_program(place)),
                None => (None, OTHER, seen.address, InProgram::Nowhere),
            };
            for &node in &seen.nodes {
                let targets = programs.entry((node, image, path, function.clone()));
                targets.or_insert_with(|| Targets::at(at)).add(at);
            }
        }
        let mut programs: Vec<_> = programs.into_iter().collect();
        programs.sort_by_key(|(_, targets)| std::cmp::Reverse(targets.edges));
        let programs = programs.into_iter().take(most).map(|((node, image, path, function), targets)| {
            let lines = image.map(|image| self.lines(image, path, &targets)).unwrap_or_default();
            Function {
                node,
                program: path.to_owned(),
                place: self.show_in_program(image, path, function, &targets),
                edges: targets.edges,
                lines,
            }
        });
        let mut programs: Vec<_> = programs.collect();
        let kernel = kernel.into_iter().map(|((node, place), edges)| Function {
            node,
            program: KERNEL.to_owned(),
            place,
            edges,
            lines: Vec::new(),
        });
        let mut kernel: Vec<_> = kernel.collect();
        kernel.sort_by_key(|function| std::cmp::Reverse(function.edges));
        programs.extend(kernel);
        programs.truncate(most);
        programs
    }

    /// Returns the function that contains a place of a program.
    fn in_program(&self, place: ProgramPlace<'_>) -> InProgram {
        let ProgramPlace { image, path, address } = place;
        match (self.function(place), self.functions.start(image, path, address)) {
            (Some((name, _)), _) => InProgram::Named(name),
            (None, Some(start)) => InProgram::Unnamed(start),
            (None, None) => InProgram::Nowhere,
        }
    }

    /// Returns the name of a function, or its address in the file, or the range of `targets`.
    fn show_in_program(
        &self,
        image: Option<usize>,
        path: &str,
        function: InProgram,
        targets: &Targets,
    ) -> String {
        match (function, image) {
            (InProgram::Named(name), _) => name,
            (InProgram::Unnamed(start), Some(image)) => {
                let name = self.functions.name_of_start(image, path, start);
                name.unwrap_or_else(|| format!("function at {start:#x}"))
            }
            _ => targets.range(),
        }
    }

    /// Returns the source lines of targets in a program, at most [`LINES_MAX`], ascending by address.
    fn lines(&self, image: usize, path: &str, targets: &Targets) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut all = targets.first.iter().filter_map(|at| self.functions.line(image, path, *at));
        while lines.len() < LINES_MAX
            && let Some(line) = all.next()
        {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
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
