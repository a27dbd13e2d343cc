//! Programs of nodes' images, and the addresses of probes in them. Workers share them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everett_inspect::mapping::Mapping;
use everett_inspect::program_stack::Files;
use everett_symbols::lines::{LineAddresses, Lines};
use everett_symbols::program::{FrameRule, Program};
use everett_symbols::variables::{Member, Shape, TypeAt, Variable};

use super::limits::ADDRESSES_MAX;
use super::probe::{Place, Probe};
use crate::inside::debug_files::DebugFolders;
use crate::inside::mapped_files::MappedFiles;
use crate::run::launch::Launcher;

/// Programs of all nodes.
pub(super) struct Programs(Mutex<Vec<NodePrograms>>);

/// Addresses, or the reason why there are none.
type Places = Result<Arc<[u64]>, String>;

/// Programs of a node.
pub(super) struct NodePrograms {
    files: MappedFiles,
    /// Addresses by path and by the number of the probe, or the reason why there are none.
    places: BTreeMap<(String, usize), Places>,
    /// Addresses of variables without debug information by path and name.
    symbols: BTreeMap<(String, String), Option<u64>>,
    /// Answers from the debug information, by path.
    known: BTreeMap<String, Known>,
}

/// Answers from the debug information of a program, kept because each hit asks again.
#[derive(Default)]
struct Known {
    /// Variables by the address of code that sees them, and by name.
    variables: BTreeMap<(u64, String), Option<Variable>>,
    shapes: BTreeMap<TypeAt, Option<Shape>>,
    members: BTreeMap<(TypeAt, String), Option<Member>>,
    frames: BTreeMap<u64, Option<FrameRule>>,
}

impl Programs {
    pub(super) fn of_launcher(launcher: &Launcher, debug: &DebugFolders) -> anyhow::Result<Programs> {
        let of_node = |node: &str| {
            let files = MappedFiles::of_node(&launcher.files, &launcher.world, node, debug.clone())?;
            Ok(NodePrograms {
                files,
                places: BTreeMap::new(),
                symbols: BTreeMap::new(),
                known: BTreeMap::new(),
            })
        };
        let all = launcher.nodes().map(|node| of_node(&node.name));
        Ok(Programs(Mutex::new(all.collect::<anyhow::Result<_>>()?)))
    }

    /// Calls `look` with the programs of a node. `None` if there is no such node.
    pub(super) fn with<T>(&self, node: usize, look: impl FnOnce(&mut NodePrograms) -> T) -> Option<T> {
        let mut all: MutexGuard<'_, Vec<NodePrograms>> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(node).map(look)
    }
}

impl NodePrograms {
    pub(super) fn files(&self) -> &MappedFiles {
        &self.files
    }

    pub(super) fn program(&self, mapping: &Mapping) -> Option<Arc<Program>> {
        self.files.program(mapping)
    }

    pub(super) fn lines(&self, mapping: &Mapping, program: &Program) -> Option<Arc<Lines>> {
        self.files.lines(mapping, program)
    }

    /// Returns the addresses of a probe in a program, as its file states them.
    pub(super) fn addresses(
        &mut self,
        (number, probe): (usize, &Probe),
        mapping: &Mapping,
        program: &Program,
    ) -> Result<Arc<[u64]>, String> {
        let key = (mapping.name.clone(), number);
        if let Some(known) = self.places.get(&key) {
            return known.clone();
        }
        let lines = self.lines(mapping, program);
        let found = addresses(probe, program, lines.as_deref());
        let found = match found {
            Ok(all) if all.len() > ADDRESSES_MAX => Err(format!("it has over {ADDRESSES_MAX} addresses")),
            found => found,
        };
        let found = found.map(Arc::from).map_err(|why| format!("{}: {}: {why}", probe.name, mapping.name));
        self.places.insert(key, found.clone());
        found
    }

    /// Returns the address of a program's variable, as the file's symbols state it.
    pub(super) fn symbol(&mut self, mapping: &Mapping, program: &Program, name: &str) -> Option<u64> {
        let key = (mapping.name.clone(), name.to_owned());
        *self.symbols.entry(key).or_insert_with(|| program.variable_named(name))
    }

    /// Returns the variable that code at an address sees.
    pub(super) fn variable(
        &mut self,
        mapping: &Mapping,
        program: &Program,
        (address, name): (u64, &str),
    ) -> Option<(Arc<Lines>, Variable)> {
        let lines = self.lines(mapping, program)?;
        let known = self.known.entry(mapping.name.clone()).or_default();
        let key = (address, name.to_owned());
        let variable = *known.variables.entry(key).or_insert_with(|| lines.variable(address, name));
        Some((lines, variable?))
    }

    /// Returns the rule for the canonical frame address at an address of code.
    pub(super) fn frame(&mut self, mapping: &Mapping, program: &Program, address: u64) -> Option<FrameRule> {
        let known = self.known.entry(mapping.name.clone()).or_default();
        *known.frames.entry(address).or_insert_with(|| program.frame_rule(address))
    }

    /// Returns the shape of a type.
    pub(super) fn shape(&mut self, mapping: &Mapping, program: &Program, kind: TypeAt) -> Option<Shape> {
        let lines = self.lines(mapping, program)?;
        let known = self.known.entry(mapping.name.clone()).or_default();
        *known.shapes.entry(kind).or_insert_with(|| lines.shape(kind))
    }

    /// Returns a member of a structure.
    pub(super) fn member(
        &mut self,
        mapping: &Mapping,
        program: &Program,
        (kind, name): (TypeAt, &str),
    ) -> Option<Member> {
        let lines = self.lines(mapping, program)?;
        let known = self.known.entry(mapping.name.clone()).or_default();
        *known.members.entry((kind, name.to_owned())).or_insert_with(|| lines.member(kind, name))
    }
}

/// Returns the addresses of a probe in a program, or why there are none.
fn addresses(probe: &Probe, program: &Program, lines: Option<&Lines>) -> Result<Vec<u64>, String> {
    match &probe.place {
        Place::Address(address) => Ok(vec![*address]),
        Place::Function(name, offset) => {
            let mut found: Vec<u64> = Vec::new();
            for (start, bytes) in program.functions_called(name) {
                if offset.is_some_and(|offset| bytes != 0 && offset >= bytes) {
                    return Err(format!("{name} has only {bytes} bytes"));
                }
                found.push(match offset {
                    Some(offset) => start.saturating_add(*offset),
                    None => entry(probe, (start, bytes), lines),
                });
            }
            found.sort_unstable();
            found.dedup();
            if found.is_empty() { Err(format!("no function is named {name}")) } else { Ok(found) }
        }
        Place::Line(file, line) => {
            let lines = lines.ok_or("it has no debug information, and --debug-files has none for it")?;
            match lines.addresses(file, *line) {
                LineAddresses::Found(addresses) => Ok(addresses),
                LineAddresses::NoFile => Err(format!("no source file is named {file}")),
                LineAddresses::NoCode(Some(next)) => {
                    Err(format!("line {line} of {file} has no code; the next line with code is {next}"))
                }
                LineAddresses::NoCode(None) => Err(format!("no code follows line {line} of {file}")),
                LineAddresses::TooMany => Err(format!("line {line} of {file} has too many places")),
            }
        }
    }
}

/// Returns where a function's probe is: the first instruction, or the end of the prologue if the probe names a parameter
/// that only the prologue stores on the stack.
fn entry(probe: &Probe, (start, bytes): (u64, u64), lines: Option<&Lines>) -> u64 {
    let Some(lines) = lines else { return start };
    let mut is_on_stack = false;
    let all = probe.values.iter().map(|(_, value)| value).chain(&probe.condition);
    all.for_each(|expression| {
        expression.names(&mut |name| {
            is_on_stack |= lines.variable(start, name).is_some_and(|variable| variable.is_on_stack);
        });
    });
    let after = || lines.after_prologue(start, start.saturating_add(bytes));
    if is_on_stack { after().unwrap_or(start) } else { start }
}
